// The codes of failures as programs and people read them: rows for docs/error-codes.md, and a table for the OpenAPI document.
import { CONSOLE_CODES, RELAY_CODES } from "../shared/failure-codes.ts";
import type { FailureCode } from "../shared/failure-codes.ts";
import type { Language } from "../shared/enums.ts";
import { KIND_STATUS } from "../shared/failures.ts";
import type { FailureKind } from "../shared/failures.ts";
import { messageText } from "./messages.ts";

export interface ErrorCode {
  code: FailureCode;
  kind: FailureKind;
  /** The HTTP status that it usually comes with at the relay. */
  status: number;
  /** Whether the status is the code's own. */
  hasOwnStatus: boolean;
}

/** By name: those of the relay, or those that only the console answers. */
export function errorCodes(area: "relay" | "console"): ErrorCode[] {
  const rows: Readonly<Partial<Record<FailureCode, readonly [FailureKind, number?]>>> =
    area === "relay" ? RELAY_CODES : CONSOLE_CODES;
  return Object.entries(rows).map(([code, [kind, status]]) => ({
    code: code as FailureCode,
    kind,
    status: status ?? KIND_STATUS[kind],
    hasOwnStatus: status !== undefined,
  }));
}

/** The public text of a code as one cell of a Markdown table, with the names of its placeholders. */
export function errorMeaning(code: FailureCode, language: Language): string {
  return messageText(code, language, new Proxy({}, { get: (_, name) => `{${String(name)}}` })).replaceAll(
    "|",
    "\\|",
  );
}

/** What the header x-weir-error-code may say, as a Markdown table in English: for descriptions in the OpenAPI document. */
export function errorCodesMarkdown(): string {
  const lines = errorCodes("relay").map(
    ({ code, status }) => `| \`${code}\` | ${status} | ${errorMeaning(code, "en")} |`,
  );
  return ["| x-weir-error-code | HTTP | meaning |", "|---|---|---|", ...lines].join("\n");
}
