// Google's error envelope, read from upstreams and written for clients.
// Refuses to show upstream text that classify.ts did not clear.
import type { Failure, FailureKind } from "../../shared/failures.ts";
import { readErrorBody, upstreamFailure } from "../classify.ts";
import type { EncodedFailure } from "../dialect.ts";
import { asList, asObject, asString } from "../json.ts";

const STATUS_OF: Readonly<Record<FailureKind, string>> = {
  client: "INVALID_ARGUMENT",
  auth: "UNAUTHENTICATED",
  forbidden: "PERMISSION_DENIED",
  quota: "RESOURCE_EXHAUSTED",
  limit: "RESOURCE_EXHAUSTED",
  "no-channel": "UNAVAILABLE",
  "upstream-auth": "UNAVAILABLE",
  "upstream-quota": "UNAVAILABLE",
  "upstream-limit": "RESOURCE_EXHAUSTED",
  "upstream-request": "INVALID_ARGUMENT",
  "upstream-refusal": "INVALID_ARGUMENT",
  "context-length": "INVALID_ARGUMENT",
  "upstream-down": "UNAVAILABLE",
  "upstream-timeout": "DEADLINE_EXCEEDED",
  "broken-stream": "UNAVAILABLE",
  internal: "INTERNAL",
};

/** Seconds that Google asks to wait, as text: they stand in the error's details. */
export function retryDelay(body: unknown): string | undefined {
  const outer = Array.isArray(body) ? asObject(body[0]) : asObject(body);
  const details = asList(asObject(outer?.["error"])?.["details"]).map(asObject);
  const delay = details.map((item) => asString(item?.["retryDelay"])).find((word) => word !== undefined);
  return delay?.replace(/s$/, "");
}

export function decodeFailure(status: number, body: unknown, retryAfter?: string | null): Failure {
  const read = readErrorBody(body);
  const plain = typeof body === "string";
  return upstreamFailure({
    status,
    ...read,
    message: plain ? "" : read.message,
    retryAfter: retryAfter ?? retryDelay(body),
  });
}

/** Codes of google.rpc.Status (https://ai.google.dev/gemini-api/docs/troubleshooting). */
function statusOf({ kind, status }: Failure): string {
  // A call that its own cap does not pay can be made with another.
  if (kind === "quota" && status === 402) return "FAILED_PRECONDITION";
  // What is over in a moment: clients come again for this status, and for no INTERNAL.
  if (kind === "internal" && status === 503) return "UNAVAILABLE";
  const isRequests = kind === "client" || kind === "upstream-request";
  return isRequests && status === 404 ? "NOT_FOUND" : STATUS_OF[kind];
}

export function errorEnvelope(failure: Failure, text: string): Record<string, unknown> {
  return { error: { code: failure.status, message: text, status: statusOf(failure) } };
}

export function encodeFailure(failure: Failure, text: string): EncodedFailure {
  return { status: failure.status, body: errorEnvelope(failure, text) };
}
