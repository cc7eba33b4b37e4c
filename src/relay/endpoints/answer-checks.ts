// What a whole answer must hold to be one, endpoint by endpoint: with status 200 some upstreams say that they cannot, and what was not
// delivered is not charged. Refuses to judge how good an answer is, and members that no reader here needs.
import { isError } from "../../protocol/classify.ts";
import { asList, asObject } from "../../protocol/json.ts";
import type { Json } from "./endpoint.ts";

/** Of a large answer long texts are left out before it is read: they may be pictures. */
function isPicture(value: unknown): boolean {
  if (typeof value === "string") return true;
  const picture = asObject(value);
  return picture !== undefined && Object.keys(picture).length > 0 && !isError(picture["error"]);
}

/** Pictures that came; of several some may have failed, each with an error in its place. */
export function picturesIn(json: unknown): number {
  const answer = asObject(json);
  const list = Array.isArray(answer?.["data"]) ? answer["data"] : asList(answer?.["images"]);
  return list.filter(isPicture).length;
}

export const hasPictures = (json: unknown): boolean => picturesIn(json) > 0;

/** Texts, or lists of tokens, that are embedded one by one; parts of one input (pictures with text) may be embedded together. */
function inputsIn(input: unknown): number {
  if (!Array.isArray(input) || typeof input[0] === "number") return 1;
  return input.every((item) => typeof item === "string" || Array.isArray(item)) ? input.length : 1;
}

/** One vector, or several of one text: Jina's late interaction says them as `embeddings`. */
function isVector(item: unknown): boolean {
  const { embedding, embeddings = embedding } = asObject(item) ?? {};
  if (Array.isArray(embeddings) || typeof embeddings === "string") return embeddings.length > 0;
  return asObject(embeddings) !== undefined;
}

/** What is embedded together has its one vector at Volcengine without a list around it. */
export function hasVectors(json: unknown, body: Json): boolean {
  const data = asObject(json)?.["data"];
  const vectors = (Array.isArray(data) ? data : [data]).filter(isVector);
  return vectors.length >= Math.max(1, inputsIn(body["input"]));
}

/** None are an answer to who wants none. */
export function hasRanks(json: unknown, body: Json): boolean {
  const answer = asObject(json);
  const list = Array.isArray(answer?.["results"]) ? answer["results"] : answer?.["data"];
  if (!Array.isArray(list)) return false;
  return list.length === 0 ? body["top_n"] === 0 : list.every((item) => asObject(item) !== undefined);
}

export const hasVerdicts = (json: unknown): boolean =>
  asList(asObject(json)?.["results"]).some((item) => asObject(item) !== undefined);

/** An empty text is an answer to silence. */
export function hasTranscript(json: unknown): boolean {
  const answer = asObject(json);
  return typeof answer?.["text"] === "string" || Array.isArray(answer?.["segments"]);
}

export const hasOutput = (json: unknown): boolean => asList(asObject(json)?.["output"]).length > 0;
