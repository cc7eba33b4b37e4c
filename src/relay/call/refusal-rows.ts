// What an error row says, of attempts at channels that failed and of calls that were refused before anybody was asked; and
// which failures have left theirs. Refuses rows to strangers: without a known key nobody could read them.
import type { Deps, LogEntry } from "../../core/deps.ts";
import type { DialectName } from "../../protocol/canonical.ts";
import { LogType } from "../../shared/enums.ts";
import type { Language } from "../../shared/enums.ts";
import type { Failure } from "../../shared/failures.ts";
import { publicText } from "../wire/render-failure.ts";
import { refusedCaller } from "./admission.ts";
import type { Caller } from "./admission.ts";
import type { ErrorRows } from "./error-rows.ts";

/** What a row says of the request, as far as it is known when it fails. */
export interface RefusedRequest {
  readonly requestId: string;
  /** Undefined until the key is known. */
  readonly caller: Caller | undefined;
  /** Undefined until the body is read. */
  readonly model: string | undefined;
  /** performance.now() of the start. */
  readonly startedMs: number;
  readonly wantsStream?: boolean;
  readonly dialect: DialectName;
}

export interface RefusalServices {
  deps: Pick<Deps, "options">;
  errorRows: ErrorRows;
}

/** Nobody's refusal: the client has left, the operator has closed the site, or the server is ill or stops and says so in its own log. */
const UNTOLD: ReadonlySet<string> = new Set([
  "client_gone",
  "maintenance",
  "server_draining",
  "database_busy",
  "database_down",
  "ledger_down",
]);
/** Texts may quote what the client sent. */
const MAX_CONTENT_CHARACTERS = 2000;

/** Failures whose row is written or counted, and those that stand for them on the wire. */
const told = new WeakSet<object>();

/** A failure that needs no row: it has left one, or stands for one that has. */
export function isTold(failure: object): boolean {
  return told.has(failure);
}

export function markTold(failure: object): void {
  told.add(failure);
}

/** The row of a failure, in the site's language: its owner reads the public text, administrators the upstream's own words where there are any. */
export function errorEntry(
  request: RefusedRequest & { readonly caller: Caller },
  failure: Failure,
  language: Language,
): LogEntry {
  const { requestId, caller, model, startedMs, wantsStream, dialect } = request;
  const { token, user } = caller;
  const { upstreamText = "", internal = "" } = failure;
  return {
    type: LogType.error,
    userId: user.id,
    username: user.username,
    content: publicText(failure, { dialect, language, requestId }).slice(0, MAX_CONTENT_CHARACTERS),
    tokenId: token?.id ?? 0,
    tokenName: caller.tokenName ?? token?.name ?? "",
    modelName: model ?? "",
    group: caller.group,
    requestId,
    useTimeMs: Math.round(performance.now() - startedMs),
    isStream: wantsStream === true,
    other: {
      error_type: failure.type ?? (failure.kind.startsWith("upstream-") ? "upstream_error" : "new_api_error"),
      error_code: failure.code,
      status_code: failure.status,
      ...(upstreamText === "" && internal === ""
        ? {}
        : { admin_info: { ...(upstreamText === "" ? {} : { upstream_text: upstreamText }), internal } }),
    },
  };
}

/** Leaves the row of a refused call: once, where its key is known, and no more than `ErrorRows` lets through. */
export function logRefusal(services: RefusalServices, request: RefusedRequest, failure: Failure): void {
  if (told.has(failure) || UNTOLD.has(failure.code)) return;
  const caller = request.caller ?? refusedCaller(failure);
  const { options } = services.deps;
  if (!caller || !options.get("ErrorLogEnabled")) return;
  told.add(failure);
  services.errorRows.add(
    { userId: caller.user.id, tokenId: caller.token?.id ?? 0, reason: failure.code },
    () => errorEntry({ ...request, caller }, failure, options.get("site.language")),
  );
}
