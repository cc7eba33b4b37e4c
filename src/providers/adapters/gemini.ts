// Gemini's calls beside the conversation: embeddings and Imagen, from and to their OpenAI forms.
// Refuses token lists, and picture sizes that Imagen has no shape for.
import { cannotCarry } from "../../protocol/carry.ts";
import { asList, asObject, asString } from "../../protocol/json.ts";
import { Failure } from "../../shared/failures.ts";
import type { AdapterCall } from "../adapter.ts";
import { jsonResponse, post, readJson } from "../adapter-kit.ts";
import { embeddedTexts, embeddingsAnswer } from "./ollama.ts";

const ASPECTS: Readonly<Record<string, string>> = {
  "256x256": "1:1",
  "512x512": "1:1",
  "1024x1024": "1:1",
  "1024x1792": "9:16",
  "1792x1024": "16:9",
  "1024x1536": "3:4",
  "1536x1024": "4:3",
};

async function embeddings(call: AdapterCall): Promise<Response> {
  const texts = embeddedTexts(call.body["input"]);
  const { dimensions } = call.body;
  const requests = texts.map((text) => ({
    model: `models/${call.model}`,
    content: { parts: [{ text }] },
    ...(typeof dimensions === "number" ? { outputDimensionality: dimensions } : {}),
  }));
  const response = await post(call, call.url.replace(/:embedContent$/, ":batchEmbedContents"), { requests });
  if (response.status !== 200) return response;
  const vectors = asList((await readJson(response))["embeddings"]).map(
    (item) => asObject(item)?.["values"] ?? [],
  );
  // Google reports no tokens here: the relay counts the prompt.
  return embeddingsAnswer(call.model, vectors, undefined);
}

async function imagen(call: AdapterCall): Promise<Response> {
  const { prompt, n, size } = call.body;
  const shape = typeof size === "string" && size !== "auto" ? ASPECTS[size] : "1:1";
  if (shape === undefined) throw cannotCarry("size");
  const count = typeof n === "number" ? n : 1;
  const response = await post(call, call.url, {
    instances: [{ prompt }],
    parameters: { sampleCount: count, aspectRatio: shape, personGeneration: "allow_adult" },
  });
  if (response.status !== 200) return response;
  const pictures = asList((await readJson(response))["predictions"]).flatMap((item) => {
    const data = asString(asObject(item)?.["bytesBase64Encoded"]);
    return data === undefined ? [] : [{ b64_json: data }];
  });
  // Every picture was filtered: an answer without one is a refusal on principle.
  if (pictures.length === 0) throw new Failure("upstream-refusal", "upstream_refusal");
  return jsonResponse({ created: Math.floor(call.nowMs() / 1000), data: pictures });
}

export function gemini(call: AdapterCall): Promise<Response> {
  return call.operation === "embeddings" ? embeddings(call) : imagen(call);
}
