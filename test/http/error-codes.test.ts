// The table of codes is what programs read: each code has a text in both languages, and the source uses it as the table says.
import { describe, expect, test } from "bun:test";
import { Glob } from "bun";
import en from "../../locales/en/failure.json";
import zh from "../../locales/zh/failure.json";
import { errorCodes, errorCodesMarkdown } from "../../src/http/error-codes.ts";
import type { ErrorCode } from "../../src/http/error-codes.ts";

const ALL = new Map<string, ErrorCode>(
  [...errorCodes("relay"), ...errorCodes("console")].map((each) => [each.code, each]),
);
/** Sentences of answers and log rows: texts that no failure has. */
const SENTENCES =
  /^(?:expected(?:_|$)|note_|aff_transferred$|model_ratio_reset$|setting_saved$|setup_succeeded$)/;

/** Uses that differ from the table on purpose: the same refusal in another place. */
const ELSEWHERE: ReadonlySet<string> = new Set([
  "auth access_token_not_supported -", // the console's own 401
  "client websocket_required 400", // a handshake that broke off
  "client host_invalid 400",
  "client internal_error -", // a user that is gone when its settings are written
  "forbidden foreign_site 403",
  "internal setup_failed 500",
  "upstream-down do_request_failed -", // shown in a task family's own words
  "upstream-down upstream_down 400", // likewise
]);

const ROOT = `${import.meta.dir}/../../src/`;

/** `kind code status` of every failure that the source makes by name, "-" where it names no status. */
async function usedInSource(): Promise<Set<string>> {
  const used = new Set<string>();
  for await (const path of new Glob("**/*.{ts,tsx}").scan(ROOT)) {
    const source = await Bun.file(ROOT + path).text();
    for (const { 1: kind, 2: code, index } of source.matchAll(/new Failure\(\s*"([a-z-]+)",\s*"(\w+)"/g)) {
      const end = source.indexOf(";", index);
      const status = /\bstatus: (\d+)/.exec(source.slice(index, end))?.[1] ?? "-";
      used.add(`${kind} ${code} ${status}`);
    }
    for (const { 1: code } of source.matchAll(/\brefuse\(\s*"(\w+)"/g)) used.add(`client ${code} -`);
  }
  return used;
}

describe("the table of codes", () => {
  test("has a text for every code in both languages, and no text is nobody's", () => {
    for (const dictionary of [en, zh]) {
      const keys = Object.keys(dictionary);
      expect([...ALL.keys()].filter((code) => !keys.includes(code))).toEqual([]);
      // A variant of a text stands behind its code: budget_exceeded.held.
      const codeOf = (key: string) => key.split(".")[0] ?? "";
      expect(keys.filter((key) => !ALL.has(codeOf(key)) && !SENTENCES.test(key))).toEqual([]);
    }
  });

  test("names each code once", () => {
    expect(ALL.size).toBe(errorCodes("relay").length + errorCodes("console").length);
  });

  test("says of each code the kind and the status that the source gives it", async () => {
    const used = await usedInSource();
    expect(used.size).toBeGreaterThan(150);
    const wrong = [...used].filter((use) => {
      const [kind = "", code = "", status = ""] = use.split(" ");
      const row = ALL.get(code);
      const isSame = row?.kind === kind && (row.hasOwnStatus ? String(row.status) : "-") === status;
      return !isSame && !ELSEWHERE.has(use);
    });
    expect(wrong).toEqual([]);
  });

  test("is told in the OpenAPI document and has the documented status", () => {
    const table = errorCodesMarkdown();
    for (const [code, status] of [
      ["model_not_found", 404],
      ["model_not_priced", 400],
      ["upstream_auth", 502],
      ["context_length", 400],
      ["no_channel", 503],
    ] as const)
      expect(table).toContain(`| \`${code}\` | ${status} | `);
    expect(table).toContain("| `model_not_found` | 404 | The model '{model}' does not exist |");
  });
});
