// Gemini beside its conversations: embeddings (of Google's own clients as they wrote them) and Imagen pictures, in OpenAI's
// form on this side.
// Refuses token lists as input, and sizes that Imagen has no shape for.
import type { JsonObject } from "../../protocol/canonical.ts";
import { cannotCarry } from "../../protocol/carry.ts";
import { asList, asNumber, asObject, asString, dataUrl, rest } from "../../protocol/json.ts";
import { Failure } from "../../shared/failures.ts";
import type { Adapter, AdapterCall } from "../adapter.ts";
import { answerOf, errorResponse, jsonResponse, post } from "../adapter-kit.ts";
import { embeddingsAnswer } from "./embeddings.ts";
import { googleRequests } from "./google-embeddings.ts";

/** What one picture counts as, for prices by the token. */
const TOKENS_PER_IMAGE = 258;

async function embed(call: AdapterCall): Promise<Response> {
  const { own } = call;
  const name = call.model.startsWith("models/") ? call.model : `models/${call.model}`;
  const requests = googleRequests(call).map((request) => ({ ...request, model: name }));
  // One text has a call of its own, which every version and every relay of Google's API knows; its own clients choose.
  const isOne = own ? !Array.isArray(own["requests"]) : requests.length === 1;
  const url = isOne ? call.url : call.url.replace(/:embedContent$/, ":batchEmbedContents");
  const batch = { ...(own && rest(own, ["model"])), requests };
  const response = await post(call, url, isOne ? requests[0] : batch);
  if (response.status !== 200) return response;
  const body = await answerOf(response);
  const vectors = (isOne ? [body["embedding"]] : asList(body["embeddings"])).map(asObject);
  return embeddingsAnswer(
    call,
    vectors.map((vector) => vector?.["values"]),
    asNumber(asObject(body["usageMetadata"])?.["promptTokenCount"]),
    own && {
      answer: rest(body, ["embedding", "embeddings"]),
      vectors: vectors.map((vector) => vector && rest(vector, ["values"])),
    },
  );
}

const RATIOS: Readonly<Record<string, string>> = {
  auto: "1:1",
  "1024x1024": "1:1",
  "1024x1792": "9:16",
  "1792x1024": "16:9",
  "1024x1536": "3:4",
  "1536x1024": "4:3",
};

/** OpenAI's sizes, or one of Imagen's own shapes. */
function ratioOf(size: unknown): string {
  if (size === undefined || size === null || size === "") return "1:1";
  if (typeof size === "string" && /^\d{1,2}:\d{1,2}$/.test(size)) return size;
  const ratio = typeof size === "string" ? RATIOS[size] : undefined;
  if (ratio === undefined) throw cannotCarry("size");
  return ratio;
}

/** Imagen's request, the same at both of Google's addresses. */
export function imagenRequest({ body }: AdapterCall): JsonObject {
  const { prompt, n, size } = body;
  const parameters = {
    sampleCount: asNumber(n) ?? 1,
    aspectRatio: ratioOf(size),
    personGeneration: "allow_adult",
  };
  return { instances: [{ prompt }], parameters };
}

export function imagenAnswer(call: AdapterCall, body: JsonObject): Response {
  const { response_format: format } = call.body;
  const predictions = asList(body["predictions"]).map(asObject);
  const data = predictions.flatMap((prediction): JsonObject[] => {
    const b64 = asString(prediction?.["bytesBase64Encoded"]);
    if (!b64) return [];
    // Nobody keeps the picture: who asks for an address gets one that carries it.
    if (format === "url") return [{ url: dataUrl(asString(prediction?.["mimeType"]) ?? "image/png", b64) }];
    return [{ b64_json: b64 }];
  });
  if (data.length === 0) {
    const filtered = asString(predictions.find((each) => each?.["raiFilteredReason"])?.["raiFilteredReason"]);
    if (filtered) return errorResponse(400, filtered, "content_filter", "content_filter");
    throw new Failure("upstream-down", "upstream_bad_answer", { retryable: true });
  }
  const tokens = TOKENS_PER_IMAGE * data.length;
  return jsonResponse({
    created: Math.floor(call.nowMs() / 1000),
    data,
    usage: { prompt_tokens: tokens, completion_tokens: 0, total_tokens: tokens },
  });
}

async function draw(call: AdapterCall): Promise<Response> {
  const response = await post(call, call.url, imagenRequest(call));
  return response.status === 200 ? imagenAnswer(call, await answerOf(response)) : response;
}

export const gemini: Adapter = (call) => (call.operation === "embeddings" ? embed(call) : draw(call));
