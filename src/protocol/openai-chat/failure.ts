// The OpenAI error envelope, read from upstreams and written for clients.
// Refuses to show upstream text that classify.ts did not clear.
import type { Failure } from "../../shared/failures.ts";
import { readErrorBody, upstreamFailure } from "../classify.ts";
import type { EncodedFailure } from "../dialect.ts";

/** Reads an upstream's error answer; bodies that are no JSON are only kept for the log. */
export function decodeFailure(status: number, body: unknown, retryAfter?: string | null): Failure {
  const read = readErrorBody(body);
  const plain = typeof body === "string";
  return upstreamFailure({ status, ...read, message: plain ? "" : read.message, retryAfter });
}

/** The error object: type and code are the upstream's where it gave them, else the gateway's. */
export function errorObject(failure: Failure, text: string): Record<string, unknown> {
  return {
    message: text,
    type: failure.type ?? (failure.kind.startsWith("upstream-") ? "upstream_error" : "new_api_error"),
    param: failure.param ?? "",
    code: failure.wireCode === undefined ? failure.code : failure.wireCode,
  };
}

export function encodeFailure(failure: Failure, text: string): EncodedFailure {
  return { status: failure.status, body: { error: errorObject(failure, text) } };
}
