// Secrets within a channel's own fields (headers, parameters, addresses): how a settings file shows them, and what it means by that.
// Refuses to know them by their form: a name that promises one is enough.
import { isRecord, wrong } from "./judge.ts";
import type { Judge, Path } from "./judge.ts";

/** Stands for what is known already. */
export const MASK = "***";
const WORDS =
  "authorization|api[-_]?key|access[-_]?key|key|token|secret|password|passwd|cookie|credentials?|signature|sig";
/** In any spelling: `access_token`, `apiKey`, `XAPIKEY`; a name too many is only masked. */
const SECRET_NAME = new RegExp(`(?:^|[-_.a-z])(?:${WORDS})$`, "i");
/** Fields of requests that end like secrets and are none: their values go from site to site. */
const PLAIN_NAME = /^(?:prompt_cache_key|idempotency-key|(?:[beu]os|pad|stop)_token)$/i;
const SECRET_QUERY = new RegExp(`([?&](?:[^=&#]*[-_.])?(?:${WORDS})=)([^&#]+)`, "gi");
/** What is filled in for each call is no secret, nor is how a key is announced. */
const HARMLESS = /\{[^{}]*\}|^(?:bearer|basic|token)\s/gi;
export const EACH_VARIABLE = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g;

export const maskedQuery = (address: string): string => address.replace(SECRET_QUERY, `$1${MASK}`);

function holdsSecret(name: string, value: unknown): value is string {
  if (typeof value !== "string" || !SECRET_NAME.test(name) || PLAIN_NAME.test(name)) return false;
  return value.replace(HARMLESS, "").trim() !== "";
}

/** The value as a file may show it: texts under names of secrets are masked, however deep they stand. */
export function maskedDeep(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(maskedDeep);
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [name, holdsSecret(name, each) ? MASK : maskedDeep(each)]),
  );
}

/** The variables that `meantDeep` asks for. */
export function variablesDeep(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(variablesDeep);
  if (!isRecord(value)) return [];
  return Object.entries(value).flatMap(([name, each]) =>
    holdsSecret(name, each)
      ? [...each.matchAll(EACH_VARIABLE)].map(([, variable = ""]) => variable)
      : variablesDeep(each),
  );
}

/**
 * What a file means: `***` is what stands there already, `${NAME}` within such a text one of the environment. Undefined, and a
 * problem, where a mask stands for nothing or a variable is missing.
 */
export function meantDeep(judge: Judge, path: Path, sent: unknown, before: unknown): unknown {
  if (Array.isArray(sent)) {
    const was: unknown[] = Array.isArray(before) ? before : [];
    const each = sent.map((value, at) => meantDeep(judge, [...path, String(at)], value, was[at]));
    return each.includes(undefined) ? undefined : each;
  }
  if (!isRecord(sent)) return sent;
  const was = isRecord(before) ? before : {};
  const meant: Record<string, unknown> = {};
  let isWhole = true;
  for (const [name, value] of Object.entries(sent)) {
    const here = [...path, name];
    const found = holdsSecret(name, value)
      ? meantText(judge, here, value, was[name])
      : meantDeep(judge, here, value, was[name]);
    if (found === undefined) isWhole = false;
    else meant[name] = found;
  }
  return isWhole ? meant : undefined;
}

function meantText(judge: Judge, path: Path, sent: string, before: unknown): string | undefined {
  if (sent === MASK) {
    if (typeof before === "string") return before;
    wrong(judge, path, "config_masked_password");
    return undefined;
  }
  return filledIn(judge, path, sent);
}

/** With the variables in their places; undefined, and a problem, where one is missing. */
export function filledIn(
  judge: Judge,
  path: Path,
  text: string,
  write = (value: string) => value,
): string | undefined {
  const missing = [...text.matchAll(EACH_VARIABLE)]
    .map(([, name = ""]) => name)
    .filter((name) => (judge.variables.get(name) ?? "").trim() === "");
  for (const name of missing) wrong(judge, path, "config_variable_missing", { name });
  if (missing.length > 0) return undefined;
  return text.replace(EACH_VARIABLE, (_, name: string) => write(judge.variables.get(name) ?? ""));
}
