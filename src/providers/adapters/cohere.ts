// Cohere: plain conversations through chat v1 as every relay of it knows them, tools and pictures through v2, embeddings.
// Refuses by name what neither version takes; rerank is OpenAI-shaped enough to need no adapter.
import type { Adapter, AdapterCall } from "../adapter.ts";
import { asList, asNumber, asObject, asString, parseJson } from "../../protocol/json.ts";
import type { CanonicalRequest } from "../../protocol/canonical.ts";
import { decodeChatRequest } from "./chat-request.ts";
import { answerOf, chatResponse, errorResponse, post } from "../adapter-kit.ts";
import { requestV1, streamedV1, wholeV1 } from "./cohere-v1.ts";
import { requestV2, streamedV2, wholeV2 } from "./cohere-v2.ts";
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
  const { status, headers } = response;
  return errorResponse(status, message, status, undefined, headers.get("retry-after"));
}

async function chat(call: AdapterCall): Promise<Response> {
  const request = decodeChatRequest(call, { tools: true, images: true, formats: true });
  const isV2 = needsV2(request);
  const url = isV2 ? call.url.replace(/\/v1\/chat$/, "/v2/chat") : call.url;
  const response = await post(call, url, isV2 ? requestV2(request, call) : requestV1(request, call));
  if (response.status !== 200) return refusal(response);
  if (call.isStream) return chatResponse(call, isV2 ? streamedV2(response, call) : streamedV1(response));
  const body = await answerOf(response);
  return chatResponse(call, isV2 ? wholeV2(body, call) : wholeV1(body));
}

async function embed(call: AdapterCall): Promise<Response> {
  const texts = embeddingTexts(call);
  const dimensions = asNumber(call.body["dimensions"]);
  const vectors: unknown[] = [];
  let tokens = 0;
  for (let at = 0; at < texts.length; at += TEXTS_PER_CALL) {
    const response = await post(call, call.url, {
      model: call.model,
      texts: texts.slice(at, at + TEXTS_PER_CALL),
      // Required here and unknown to OpenAI: what is stored is the ordinary case, searches say so themselves.
      input_type: asString(call.body["input_type"]) ?? "search_document",
      embedding_types: ["float"],
      ...(dimensions === undefined ? {} : { output_dimension: dimensions }),
    });
    if (response.status !== 200) return refusal(response);
    const body = await answerOf(response);
    vectors.push(...asList(asObject(body["embeddings"])?.["float"]));
    tokens += asNumber(asObject(asObject(body["meta"])?.["billed_units"])?.["input_tokens"]) ?? 0;
  }
  return embeddingsAnswer(call, vectors, tokens);
}

export const cohere: Adapter = (call) => (call.operation === "embeddings" ? embed(call) : chat(call));
