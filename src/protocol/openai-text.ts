// Legacy completions, embeddings, moderations, images and other OpenAI-shaped answers that are only metered:
// they go through as bytes, and only `usage`, `error` and (for estimates) the text length are read.
import { isError, upstreamFailure, readErrorBody } from "./classify.ts";
import type { Failure } from "../shared/failures.ts";
import type { Usage } from "../shared/usage.ts";
import { asList, asObject } from "./json.ts";
import { decodeUsage } from "./openai-chat/usage.ts";

export interface AnswerMeter {
  /** Null when the upstream reported nothing. */
  usage: Usage | null;
  /** Set for a 200 answer that is an error object. */
  failure: Failure | null;
  /** UTF-16 length of the model's output: for estimates only. */
  textChars: number;
}

/** Reads a whole OpenAI-shaped answer: chat, completions, embeddings, images, rerank, moderations. */
export function meterAnswer(body: unknown): AnswerMeter {
  const wire = asObject(body);
  const error = wire?.["error"];
  const failure = isError(error) ? upstreamFailure({ status: 200, ...readErrorBody(body) }) : null;
  const usage = decodeUsage(wire?.["usage"]);
  return { usage, failure, textChars: usage ? 0 : outputLength(wire) };
}

function outputLength(wire: Record<string, unknown> | undefined): number {
  let length = 0;
  const add = (value: unknown): void => {
    if (typeof value === "string") length += value.length;
  };
  for (const value of asList(wire?.["choices"])) {
    const choice = asObject(value);
    add(choice?.["text"]);
    const message = asObject(choice?.["message"]);
    for (const key of ["content", "reasoning_content", "reasoning", "refusal"]) add(message?.[key]);
    for (const call of asList(message?.["tool_calls"])) {
      const inner = asObject(asObject(call)?.["function"]);
      add(inner?.["name"]);
      add(inner?.["arguments"]);
    }
  }
  return length;
}

/**
 * An embeddings answer in base64 where an upstream ignored `encoding_format`: SDKs that asked for it decode whatever
 * comes. Vectors are little-endian 32-bit floats; vectors that are text already stay as they are.
 */
export function embeddingsToBase64(body: unknown): unknown {
  const wire = asObject(body);
  if (!wire || !Array.isArray(wire["data"])) return body;
  const data = wire["data"].map((value: unknown) => {
    const item = asObject(value);
    const vector = item?.["embedding"];
    if (!item || !Array.isArray(vector)) return value;
    const bytes = new DataView(new ArrayBuffer(vector.length * 4));
    vector.forEach((number, at) => bytes.setFloat32(at * 4, Number(number), true));
    return { ...item, embedding: Buffer.from(bytes.buffer).toString("base64") };
  });
  return { ...wire, data };
}
