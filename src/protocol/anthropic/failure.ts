// Anthropic's error envelope, read from upstreams and written for clients.
// Refuses to show upstream text that classify.ts did not clear.
import type { Failure, FailureKind } from "../../shared/failures.ts";
import { readErrorBody, upstreamFailure } from "../classify.ts";
import type { EncodedFailure } from "../dialect.ts";

const TYPE_OF: Readonly<Record<FailureKind, string>> = {
  client: "invalid_request_error",
  auth: "authentication_error",
  forbidden: "permission_error",
  quota: "billing_error",
  limit: "rate_limit_error",
  "no-channel": "overloaded_error",
  "upstream-auth": "api_error",
  "upstream-quota": "api_error",
  "upstream-limit": "rate_limit_error",
  "upstream-request": "invalid_request_error",
  "upstream-refusal": "invalid_request_error",
  "context-length": "invalid_request_error",
  "upstream-down": "overloaded_error",
  "upstream-timeout": "timeout_error",
  "broken-stream": "api_error",
  internal: "api_error",
};

export function decodeFailure(status: number, body: unknown, retryAfter?: string | null): Failure {
  const read = readErrorBody(body);
  const plain = typeof body === "string";
  return upstreamFailure({ status, ...read, message: plain ? "" : read.message, retryAfter });
}

/** Types that a status of the request's own decides (https://docs.claude.com/en/api/errors). */
function typeOf({ kind, status }: Failure): string {
  if (status === 413) return "request_too_large";
  const isRequests = kind === "client" || kind === "upstream-request";
  return isRequests && status === 404 ? "not_found_error" : TYPE_OF[kind];
}

/** The envelope, which is also the data of an `error` event. */
export function errorEnvelope(failure: Failure, text: string): Record<string, unknown> {
  const type = typeOf(failure);
  return { type: "error", error: { type, message: text } };
}

export function encodeFailure(failure: Failure, text: string): EncodedFailure {
  return { status: failure.status, body: errorEnvelope(failure, text) };
}
