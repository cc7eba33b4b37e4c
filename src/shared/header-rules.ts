// The language of header rules: what `header_override` may hold, and which headers no rule may ever touch.
// Refuses names and values that no header can have, and patterns that may never end.
import { isSafePattern } from "./safe-pattern.ts";

/** Of the connection, of who calls, and of the console: no rule writes them, whoever wrote it. */
const FORBIDDEN: ReadonlySet<string> = new Set([
  "accept-encoding",
  "connection",
  "content-encoding",
  "content-length",
  "cookie",
  "expect",
  "forwarded",
  "host",
  "http2-settings",
  "keep-alive",
  "new-api-user",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "set-cookie",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "via",
]);
const FORBIDDEN_BEGINNINGS = ["x-forwarded-", "sec-websocket-", "sec-fetch-"];

/** Where callers put their keys for this gateway: nothing of a client's is taken from there. */
const CREDENTIALS: ReadonlySet<string> = new Set([
  "authorization",
  "x-api-key",
  "api-key",
  "x-goog-api-key",
  "mj-api-secret",
  "x-real-ip",
  "cf-connecting-ip",
  "true-client-ip",
]);

/** Written by the gateway for the body that it sends: passing the client's on would describe another one. */
const OWN: ReadonlySet<string> = new Set(["accept", "content-type"]);

const NAME = /^[!#$%&'*+.^_`|~0-9a-z-]{1,128}$/;
/** Visible characters of Latin-1, spaces and tabs: what else a value may not hold ends it, or no header has it. */
const VALUE = /^[\t\x20-\x7e\xa0-\xff]{0,4096}$/;

function isForbidden(name: string): boolean {
  return FORBIDDEN.has(name) || FORBIDDEN_BEGINNINGS.some((beginning) => name.startsWith(beginning));
}

/** Why a rule may not write a header of that (lower-case) name. */
export function headerTargetProblem(name: string): "invalid" | "forbidden" | undefined {
  if (!NAME.test(name)) return "invalid";
  return isForbidden(name) ? "forbidden" : undefined;
}

/** Whether a rule may take what the client sent under that (lower-case) name. */
export function isClientHeaderOpen(name: string): boolean {
  return !isForbidden(name) && !CREDENTIALS.has(name);
}

/** Whether "*" and patterns pass it: what the gateway writes itself is named by itself or not at all. */
export function isPassable(name: string): boolean {
  return isClientHeaderOpen(name) && !OWN.has(name);
}

/** Whether the text can stand in a header. */
export function isHeaderValue(text: string): boolean {
  return VALUE.test(text);
}

/** A channel's `header_override`. */
export interface HeaderRules {
  /** Texts by lower-case name; "" takes the header out. */
  readonly values: Readonly<Record<string, string>>;
  /** Every header of the client passes that may. */
  readonly passesAll: boolean;
  /** Patterns, without their "re:". */
  readonly patterns: readonly string[];
}

export interface HeaderProblem {
  code: "rule_header_invalid" | "rule_header_forbidden" | "rule_pattern_unsafe";
  params: Record<string, string | number>;
}

const PATTERN = /^(?:re|regex):/;
const MAX_HEADER_RULES = 64;
const PLACE = "header_override";

/** Reads a channel's `header_override`, or says what is wrong with it. */
export function readHeaderRules(
  stored: Readonly<Record<string, unknown>>,
): { rules: HeaderRules; problem?: undefined } | { rules?: undefined; problem: HeaderProblem } {
  const values: [name: string, value: string][] = [];
  const patterns: string[] = [];
  let passesAll = false;
  const wrong = (code: HeaderProblem["code"], name: string) => ({
    problem: { code, params: { place: PLACE, name: name.slice(0, 64), pattern: name.slice(0, 64) } },
  });
  const entries = Object.entries(stored);
  if (entries.length > MAX_HEADER_RULES) return wrong("rule_header_invalid", `${entries.length}`);
  for (const [key, value] of entries) {
    const name = key.trim();
    if (name === "*") passesAll = true;
    else if (PATTERN.test(name)) {
      const pattern = name.replace(PATTERN, "").trim();
      if (!isSafePattern(pattern)) return wrong("rule_pattern_unsafe", pattern);
      patterns.push(pattern);
    } else {
      const problem = headerTargetProblem(name.toLowerCase());
      if (problem === "forbidden") return wrong("rule_header_forbidden", name);
      if (problem === "invalid" || typeof value !== "string" || !isHeaderValue(value))
        return wrong("rule_header_invalid", name);
      values.push([name.toLowerCase(), value]);
    }
  }
  return { rules: { values: Object.fromEntries(values), passesAll, patterns } };
}
