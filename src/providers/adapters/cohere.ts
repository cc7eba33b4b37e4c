// Cohere: plain conversations through chat v1 as every relay of it knows them, tools and pictures through v2, embeddings.
// Refuses by name what neither version takes; rerank is OpenAI-shaped enough to need no adapter.
import type { Adapter, AdapterCall } from "../adapter.ts";
import { asList, asNumber, asObject, asString, parseJson } from "../../protocol/json.ts";
import type { CanonicalRequest } from "../../protocol/canonical.ts";
import { askedOf } from "./asked.ts";
import { errorAnswer, jsonOf, postJson, streamAnswer, wholeAnswer } from "./answers.ts";
import { answerV1, decodeV1, requestV1 } from "./cohere-v1.ts";
import { answerV2, decodeV2, requestV2 } from "./cohere-v2.ts";
import { embeddingsAnswer, embeddingTexts } from "./embeddings.ts";

/** Most texts that one embedding call takes. */
const TEXTS_PER_CALL = 96;

function needsV2(request: CanonicalRequest): boolean {
  if ((request.tools?.length ?? 0) > 0 || request.responseFormat || request.reasoning) return true;
  return request.messages.some((message) => message.parts.some((part) => part.type !== "text"));
}

/** Cohere's errors are a bare message; their names stand in no field. */
async function refusal(response: Response): Promise<Response> {
  const text = await response.text();
  const message = asString(asObject(parseJson(text))?.["message"]) ?? text;
  return errorAnswer(response.status, { message }, response.headers.get("retry-after"));
}

async function chat(call: AdapterCall): Promise<Response> {
  const request = askedOf(call, { tools: true, images: true, formats: true });
  if (needsV2(request)) {
    const response = await postJson(
      call,
      call.url.replace(/\/v1\/chat$/, "/v2/chat"),
      requestV2(request, call),
    );
    if (response.status !== 200) return refusal(response);
    if (call.isStream) return streamAnswer(call, response, decodeV2(call));
    return wholeAnswer(call, answerV2(await jsonOf(response), call));
  }
  const response = await postJson(call, call.url, requestV1(request, call));
  if (response.status !== 200) return refusal(response);
  if (call.isStream) return streamAnswer(call, response, decodeV1());
  return wholeAnswer(call, answerV1(await jsonOf(response)));
}

async function embed(call: AdapterCall): Promise<Response> {
  const texts = embeddingTexts(call);
  const dimensions = asNumber(call.body["dimensions"]);
  const vectors: unknown[] = [];
  let tokens = 0;
  for (let at = 0; at < texts.length; at += TEXTS_PER_CALL) {
    const response = await postJson(call, call.url, {
      model: call.model,
      texts: texts.slice(at, at + TEXTS_PER_CALL),
      // Required here and unknown to OpenAI: what is stored is the ordinary case, searches say so themselves.
      input_type: asString(call.body["input_type"]) ?? "search_document",
      embedding_types: ["float"],
      ...(dimensions === undefined ? {} : { output_dimension: dimensions }),
    });
    if (response.status !== 200) return refusal(response);
    const body = await jsonOf(response);
    vectors.push(...asList(asObject(body["embeddings"])?.["float"]));
    tokens += asNumber(asObject(asObject(body["meta"])?.["billed_units"])?.["input_tokens"]) ?? 0;
  }
  return embeddingsAnswer(call, vectors, tokens);
}

export const cohere: Adapter = (call) => (call.operation === "embeddings" ? embed(call) : chat(call));
