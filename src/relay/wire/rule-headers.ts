// Headers as request rules change them: set, taken out, passed on from the client; and a channel's `header_override`.
// Refuses the client's credentials, headers of the connection, and templates inside of what a client wrote.
import { RE2JS } from "re2js";
import { isClientHeaderOpen, isHeaderValue, isPassable } from "../../shared/header-rules.ts";
import type { HeaderRules } from "../../shared/header-rules.ts";
import { Failure } from "../../shared/failures.ts";

/** The headers of one request on their way out. */
export interface HeaderPath {
  /** What leaves, by lower-case name; changed in place. */
  headers: Record<string, string>;
  client: Headers;
  /** The channel's key of this attempt. */
  key: string;
}

const TEMPLATE = /\{(?:api_key|client_header:\s*([^{}\s]+)\s*)\}/g;

/** The client's header; undefined where it sent none, and where rules may not read it. */
export function clientHeader(client: Headers, name: string): string | undefined {
  return isClientHeaderOpen(name) ? (client.get(name) ?? undefined) : undefined;
}

/**
 * A value with its templates filled in, once: what comes out of a client's header is text, whatever it says. Undefined
 * where it names a header that the client did not send.
 */
export function filledIn({ client, key }: HeaderPath, template: string): string | undefined {
  let isMissing = false;
  const text = template.replace(TEMPLATE, (_, name: string | undefined) => {
    if (name === undefined) return key.trim();
    const value = clientHeader(client, name.toLowerCase());
    isMissing ||= value === undefined;
    return value ?? "";
  });
  if (isMissing) return undefined;
  // Keys are whatever an operator typed.
  if (!isHeaderValue(text)) throw new Failure("upstream-auth", "channel_key_unusable", { retryable: true });
  return text;
}

/** Headers that belong to the client's connection by its own word. */
function hopByHop(client: Headers): ReadonlySet<string> {
  const named = (client.get("connection") ?? "").split(",");
  return new Set(named.map((name) => name.trim().toLowerCase()));
}

/** Sets a header; true where it says something else than before. */
export function putHeader({ headers }: Pick<HeaderPath, "headers">, name: string, value: string): boolean {
  if (headers[name] === value) return false;
  headers[name] = value;
  return true;
}

export function dropHeader({ headers }: Pick<HeaderPath, "headers">, name: string): boolean {
  if (headers[name] === undefined) return false;
  delete headers[name];
  return true;
}

/** Passes these of the client's headers on; names of those that did. */
export function passClientHeaders(path: HeaderPath, names: readonly string[], keepOrigin: boolean): string[] {
  const own = hopByHop(path.client);
  return names.filter((name) => {
    const value = own.has(name) ? undefined : clientHeader(path.client, name);
    if (value === undefined || (keepOrigin && path.headers[name] !== undefined)) return false;
    return putHeader(path, name, value);
  });
}

/** Compiled once for each channel's rules, which are made anew when the channel changes. */
const compiled = new WeakMap<HeaderRules, readonly RE2JS[]>();

function patternsOf(rules: HeaderRules): readonly RE2JS[] {
  let patterns = compiled.get(rules);
  if (!patterns) compiled.set(rules, (patterns = rules.patterns.map((pattern) => RE2JS.compile(pattern))));
  return patterns;
}

/** What of a channel's header rules acted, for the log: modes and names. */
export interface HeaderAct {
  mode: "set_header" | "delete_header" | "pass_headers";
  path: string;
}

/** Carries out `header_override`: what passes by pattern first, then what is set or taken out by name. */
export function overrideHeaders(path: HeaderPath, rules: HeaderRules): HeaderAct[] {
  const acts: HeaderAct[] = [];
  if (rules.passesAll || rules.patterns.length > 0) {
    const patterns = patternsOf(rules);
    const names = [...path.client.keys()].filter(
      (name) =>
        isPassable(name) && (rules.passesAll || patterns.some((pattern) => pattern.matcher(name).find())),
    );
    for (const name of passClientHeaders(path, names, true)) acts.push({ mode: "pass_headers", path: name });
  }
  for (const name in rules.values) {
    const template = rules.values[name] ?? "";
    const value = template === "" ? undefined : filledIn(path, template);
    if (template === "" && dropHeader(path, name)) acts.push({ mode: "delete_header", path: name });
    if (value !== undefined && putHeader(path, name, value)) acts.push({ mode: "set_header", path: name });
  }
  return acts;
}
