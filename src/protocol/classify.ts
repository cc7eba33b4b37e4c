// Sorts upstream errors into failures, once, and cleans the text that may be shown.
// Refuses to pass on hosts, addresses, keys or account names: public text goes through `scrub`.
import type { FailureCode } from "../shared/failure-codes.ts";
import { Failure } from "../shared/failures.ts";
import type { FailureDetails, FailureKind } from "../shared/failures.ts";
import { contextLengthOf } from "./context-length.ts";
import type { ContextLength } from "./context-length.ts";
import { asList, asObject, asString, asText } from "./json.ts";

export interface UpstreamError {
  status: number;
  message: string;
  type?: string;
  code?: string | number | null;
  param?: string;
  retryAfter?: string | null;
  /** The whole body, for the administrators' log. */
  raw?: unknown;
}

const REFUSAL_CODES = /content_filter|content_policy|safety|moderation_blocked|prohibited_content/i;
const QUOTA_CODES =
  /insufficient_(?:user_)?quota|exceeded_current_quota|billing_not_active|billing_error|insufficient_balance|arrearage|overdue/i;
const AUTH_CODES =
  /invalid_api_key|authentication_error|permission_error|account_deactivated|unauthenticated|permission_denied|api_key_invalid/i;
const LIMIT_CODES = /rate_limit|resource_exhausted|too_many_requests|tokens_per|requests_per/i;
const BUSY_CODES = /overloaded|unavailable|server_error|internal_error|api_error|^internal$/i;
/** Reason in the details of Google's errors. */
const BAD_GOOGLE_KEY = "API_KEY_INVALID";
const TIMEOUT_CODES = /timeout|deadline_exceeded/i;

/** Kinds whose upstream message helps the caller; the others get the dictionary's sentence. */
const PUBLIC_KINDS: ReadonlySet<FailureKind> = new Set([
  "upstream-request",
  "upstream-refusal",
  "context-length",
]);
/** Some servers (older llama.cpp) call a prompt that is too long an error of their own. */
const MAY_BE_LENGTH: ReadonlySet<FailureKind> = new Set(["upstream-request", "upstream-down"]);

const CODE_OF: Partial<Record<FailureKind, FailureCode>> = {
  "upstream-auth": "upstream_auth",
  "upstream-quota": "upstream_quota",
  "upstream-limit": "upstream_limit",
  "upstream-request": "upstream_request",
  "upstream-refusal": "upstream_refusal",
  "context-length": "context_length",
  "upstream-down": "upstream_down",
  "upstream-timeout": "upstream_timeout",
};

/** Which kind an upstream error is by status, type and code; `status` is 200 for errors inside a stream. */
export function classify(error: UpstreamError): FailureKind {
  const words = `${error.type ?? ""} ${error.code ?? ""}`;
  // Inside a stream some providers give the status they could no longer send as the code.
  const code = Number(error.code);
  const status = error.status === 200 && code >= 400 && code < 600 ? code : error.status;
  if (REFUSAL_CODES.test(words)) return "upstream-refusal";
  if (QUOTA_CODES.test(words) || status === 402) return "upstream-quota";
  if (AUTH_CODES.test(words) || status === 401 || status === 403) return "upstream-auth";
  if (LIMIT_CODES.test(words) || status === 429) return "upstream-limit";
  if (TIMEOUT_CODES.test(words) || status === 408 || status === 504) return "upstream-timeout";
  if (status >= 400 && status < 500) return "upstream-request";
  if (status >= 500 || BUSY_CODES.test(words)) return "upstream-down";
  return status === 200 && /invalid_request|invalid_argument|not_found/i.test(words)
    ? "upstream-request"
    : "upstream-down";
}

/** The numbers of an error that is about the context's length; undefined = it is about something else. */
function lengthOf(error: UpstreamError, kind: FailureKind): ContextLength | undefined {
  if (!MAY_BE_LENGTH.has(kind)) return undefined;
  const { raw } = error;
  return contextLengthOf({
    words: `${error.type ?? ""} ${error.code ?? ""}`,
    message: error.message || (typeof raw === "string" ? raw : ""),
    raw,
  });
}

/** The failure for an upstream error. Refusals are never retried elsewhere; bad requests neither. */
export function upstreamFailure(error: UpstreamError): Failure {
  const read = classify(error);
  const length = lengthOf(error, read);
  const kind = length ? "context-length" : read;
  const details: FailureDetails = {
    retryable: !PUBLIC_KINDS.has(kind),
    internal: scrub(typeof error.raw === "string" ? error.raw : asText(error.raw ?? error.message), 4000),
    upstreamStatus: error.status,
    upstreamText: scrub(error.message),
  };
  if (PUBLIC_KINDS.has(kind)) {
    if (error.message) details.text = scrub(error.message);
    if (error.type) details.type = error.type;
    if (error.code !== undefined) details.wireCode = error.code;
    if (error.status >= 400 && error.status < 500) details.status = error.status;
  }
  if (length) Object.assign(details, lengthDetails(length));
  if (error.param) details.param = error.param;
  const wait = retrySeconds(error.retryAfter);
  if (wait !== undefined) details.retryAfterSeconds = wait;
  return new Failure(kind, CODE_OF[kind] ?? "upstream_down", details);
}

/** One status, type and code whatever the upstream's are: agents shorten their conversation when they read them. */
export function lengthDetails(length: ContextLength): FailureDetails {
  return {
    status: 400,
    params: { ...length },
    type: "invalid_request_error",
    wireCode: "context_length_exceeded",
  };
}

/** Retry-After in seconds; undefined for anything else (the caller has made seconds of a date). */
export function retrySeconds(value: string | null | undefined): number | undefined {
  if (!value) return undefined;
  const seconds = Number(value);
  return Number.isFinite(seconds) && seconds >= 0 ? Math.min(Math.ceil(seconds), 86_400) : undefined;
}

/** Removes addresses, hosts, keys (and tokens in their place) and account ids from an upstream's text and cuts it to a sane length. */
export function scrub(text: string, maxChars = 1000): string {
  return text
    .slice(0, maxChars * 2)
    .replace(/\b(?:https?|wss?):\/\/[^\s"'<>)\]]+/gi, "[url]")
    .replace(/\bBearer\s+[\w.~+/=-]+/gi, "Bearer [key]")
    .replace(/\b(?:sk|pk|rk|gsk|xai|AIza|ya29|AKIA|ghp|key)[-_.]?[A-Za-z0-9*_-]{12,}/g, "[key]")
    .replace(/\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?/g, "[key]")
    .replace(/\b(?:org|proj|user|acct)[-_][A-Za-z0-9]{8,}\b/g, "[account]")
    .replace(/\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b/g, "[mail]")
    .replace(/\b\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?\b/g, "[address]")
    .replace(
      /\b(?:[a-z0-9-]+\.)+(?:com|net|org|io|ai|cn|dev|app|cloud|co|xyz|top|me|internal|local)(?::\d{1,5})?\b(?:\/[^\s"']*)?/gi,
      "[host]",
    )
    .slice(0, maxChars);
}

/** Reads the many shapes of error bodies: `error` object or text, `message`, `msg`, `detail`, plain text. */
export function readErrorBody(body: unknown): Omit<UpstreamError, "status"> {
  if (typeof body === "string") {
    return { message: /^\s*</.test(body) ? "" : body.trim(), raw: body };
  }
  const outer = Array.isArray(body) ? asObject(body[0]) : asObject(body);
  if (!outer) return { message: "", raw: body };
  const inner = asObject(outer["error"]) ?? asObject(asObject(outer["response"])?.["error"]) ?? outer;
  const found: Omit<UpstreamError, "status"> = { message: "", raw: body };
  for (const source of [inner, outer, asObject(outer["header"])]) {
    for (const key of ["message", "error", "msg", "err", "error_msg", "detail"]) {
      const value = source?.[key];
      if (!found.message && typeof value === "string") found.message = value;
    }
  }
  const type = inner["type"] ?? inner["status"];
  if (typeof type === "string" && type !== "error") found.type = type;
  const code = isBadGoogleKey(inner) ? BAD_GOOGLE_KEY : inner["code"];
  if (typeof code === "string" || typeof code === "number") found.code = code;
  if (typeof inner["param"] === "string") found.param = inner["param"];
  return found;
}

/** Whether it says anything of an error: some providers send an empty error object beside a good answer. */
export function isError(error: unknown): boolean {
  if (typeof error === "string") return error !== "";
  return error === true || Object.values(asObject(error) ?? {}).some(saysSomething);
}

function saysSomething(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return Boolean(value);
  return Object.keys(value).length > 0;
}

/** The same of a wire object whose answer stands in this member: in place of an answer an empty error is one. */
export function hasError(wire: Readonly<Record<string, unknown>>, answer: string): boolean {
  const { error } = wire;
  return isError(error) || (Boolean(error) && wire[answer] === undefined);
}

/** Google answers 400 to a bad key, on its OpenAI-compatible address too; only the details say what it is. */
function isBadGoogleKey(error: Readonly<Record<string, unknown>>): boolean {
  return asList(error["details"]).some((item) => asString(asObject(item)?.["reason"]) === BAD_GOOGLE_KEY);
}
