// Writes a failure in the dialect of the client, in the caller's language, with the request id behind the text.
// Shows nothing but the public face: unexpected errors become one sentence.
import type { DialectName } from "../../protocol/canonical.ts";
import type { EncodedFailure } from "../../protocol/dialect.ts";
import { contextLengthText } from "../../protocol/context-length.ts";
import { DIALECTS } from "../../protocol/dialects.ts";
import type { Language } from "../../shared/enums.ts";
import { databaseFailure } from "../../core/kit/database-failure.ts";
import { Failure, waitSecondsOf } from "../../shared/failures.ts";
import { failureText } from "../../http/messages.ts";
import { ERROR_CODE_HEADER, REQUEST_ID_HEADER } from "../../http/request-id.ts";

/** Refusals of the first checks carry neither param nor code on the wire; clients of this API know them so. */
const BARE_CODES: ReadonlySet<string> = new Set([
  "token_missing",
  "token_invalid",
  "token_exhausted",
  "token_exhausted_status",
  "token_expired",
  "token_unusable",
  "user_banned",
  "account_flagged",
  "channel_pin_forbidden",
  "channel_pin_invalid",
  "channel_disabled",
  "ip_not_allowed",
  "token_group_disabled",
  "group_retired",
  "token_model_forbidden",
  "no_channel",
  "rate_limit_success",
  "rate_limit_total",
  "invalid_json",
]);

/** Codes of the ledger and of our own dictionary, as the wire names them. */
const WIRE_CODES: Readonly<Record<string, string>> = {
  context_length: "context_length_exceeded",
  user_quota_empty: "insufficient_user_quota",
  user_quota_short: "insufficient_user_quota",
  token_quota_short: "pre_consume_token_quota_failed",
  model_mapped_cycle: "model_mapped_error",
  model_mapped_json: "model_mapped_error",
  playground_model_required: "model_required",
  playground_group_forbidden: "group_not_allowed",
  playground_no_channel: "get_playground_channel_failed",
};

export interface FailureView {
  dialect: DialectName;
  language: Language;
  requestId: string;
  /** The playground's own refusals stand without the id. */
  omitId?: boolean;
}

/** Anything thrown, as a failure; the cause of an unexpected error stays inside. */
export function asFailure(error: unknown): Failure {
  if (error instanceof Failure) return error;
  return (
    databaseFailure(error) ??
    new Failure("internal", "relay_internal", { cause: error, type: "new_api_error" })
  );
}

/** What the client reads: without anything that only administrators may know. */
export function publicText(failure: Failure, view: FailureView): string {
  const text =
    failure.kind === "context-length"
      ? contextLengthText(view.dialect, failure)
      : failureText(failure, view.language);
  return view.omitId === true ? text : `${text} (request id: ${view.requestId})`;
}

/** Body and status in the client's dialect. */
export function encodeFailure(failure: Failure, view: FailureView): EncodedFailure {
  const text = publicText(failure, view);
  const isOpenai = view.dialect === "openai-chat" || view.dialect === "openai-responses";
  if (isOpenai && BARE_CODES.has(failure.code))
    return { status: failure.status, body: { error: { message: text, type: "new_api_error" } } };
  const encoded = DIALECTS[view.dialect].encodeFailure(failure, text);
  const wireCode = failure.wireCode === undefined ? WIRE_CODES[failure.code] : undefined;
  if (isOpenai && wireCode !== undefined)
    (encoded.body as { error: { code: unknown } }).error.code = wireCode;
  return encoded;
}

/** One error event for a stream that has already begun. */
export function failureFrame(failure: Failure, view: FailureView): string {
  if (view.dialect === "openai-chat") return `data: ${JSON.stringify(encodeFailure(failure, view).body)}\n\n`;
  const encoder = DIALECTS[view.dialect].encodeStream({
    newId: (prefix) => prefix + view.requestId,
    nowSeconds: 0,
    failureText: () => publicText(failure, view),
  });
  return encoder.push({ type: "fail", failure });
}

export function renderFailure(
  failure: Failure,
  view: FailureView,
  headers: Record<string, string>,
): Response {
  const { status, body } = encodeFailure(failure, view);
  headers["content-type"] = "application/json";
  headers["cache-control"] = "no-store";
  headers[REQUEST_ID_HEADER] = view.requestId;
  headers[ERROR_CODE_HEADER] = failure.code;
  const waitSeconds = waitSecondsOf(failure);
  if (waitSeconds !== undefined) headers["retry-after"] = String(waitSeconds);
  return new Response(JSON.stringify(body), { status, headers });
}
