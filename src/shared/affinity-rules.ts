// Rules by which an operator says what of a request names its session: which requests they are for, and where the value stands.
// Refuses what could never be met, by the place where it stands; the server's engine has the last word on patterns.

/** Where a value may stand. `gjson` is a path into the body ("metadata.user_id"). */
const AFFINITY_SOURCES = ["gjson", "request_header", "context_int", "context_string"] as const;
type AffinitySourceType = (typeof AFFINITY_SOURCES)[number];

/** What a `context_…` source may name: facts of who calls. */
const AFFINITY_CONTEXT = [
  "id",
  "token_id",
  "username",
  "token_name",
  "group",
  "user_group",
  "token_group",
  "using_group",
] as const;

export interface AffinitySource {
  type: AffinitySourceType;
  /** Of a header or of a fact; "" for a path. */
  key: string;
  /** Into the body; "" for the others. */
  path: string;
}

/** As it is stored; the names are those of the family, so that its rules carry over. */
export interface AffinityRule {
  name: string;
  /** One of them has to match; none given: all models, all paths. */
  model_regex: readonly string[];
  path_regex: readonly string[];
  /** One of them has to stand in the client's User-Agent, whatever its case; none given: all clients. */
  user_agent_include: readonly string[];
  /** The first that has a value gives it. */
  key_sources: readonly AffinitySource[];
  /** The value has to match; "": any. */
  value_regex: string;
  /** How long after its last use a binding is kept; 0: the site's. */
  ttl_seconds: number;
  /** Kept for other programs: sessions are never shared by groups. */
  include_using_group: boolean;
  /** False: a session has one binding for all its models. */
  include_model_name: boolean;
  include_rule_name: boolean;
  /** Request rules that run before the channel's own for requests that this rule is met by. */
  param_override_template: Readonly<Record<string, unknown>>;
  /** What fails at the channel that a session is bound to is not asked elsewhere. */
  skip_retry_on_failure: boolean;
}

export const MAX_AFFINITY_RULES = 50;
const MAX_LIST = 20;
const MAX_CHARS = 512;
const MAX_TTL_SECONDS = 30 * 24 * 3600;

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isWord(value: unknown): value is string {
  return typeof value === "string" && value.trim() !== "" && value.length <= MAX_CHARS;
}

function wordsOf(value: unknown): readonly string[] | undefined {
  if (value === undefined || value === null) return [];
  if (typeof value === "string") return value.trim() === "" ? [] : wordsOf([value]);
  return Array.isArray(value) && value.length <= MAX_LIST && value.every(isWord) ? value : undefined;
}

function sourceOf(value: unknown): AffinitySource | undefined {
  if (!isRecord(value)) return undefined;
  const { type, key = "", path = "" } = value;
  const known = AFFINITY_SOURCES.find((each) => each === type);
  if (!known || typeof key !== "string" || typeof path !== "string") return undefined;
  if (key.length > MAX_CHARS || path.length > MAX_CHARS) return undefined;
  const named = known === "gjson" ? path : key;
  if (named.trim() === "") return undefined;
  const isContext = known === "context_int" || known === "context_string";
  return isContext && !AFFINITY_CONTEXT.some((each) => each === key) ? undefined : { type: known, key, path };
}

function sourcesOf(value: unknown): readonly AffinitySource[] | undefined {
  if (!Array.isArray(value) || value.length === 0 || value.length > MAX_LIST) return undefined;
  const sources = value.map(sourceOf);
  return sources.every((each) => each !== undefined) ? sources : undefined;
}

const flag = (value: unknown, fallback: boolean): boolean | undefined =>
  value === undefined ? fallback : typeof value === "boolean" ? value : undefined;

/** One rule, or the name of the member that is not as it has to be. */
export function readAffinityRule(stored: unknown): { rule?: AffinityRule; problem: string } {
  if (!isRecord(stored)) return { problem: "name" };
  const { name, value_regex: valueRegex = "", ttl_seconds: ttl = 0 } = stored;
  const template = stored["param_override_template"] ?? {};
  const rule = {
    name: isWord(name) && name.length <= 64 ? name : undefined,
    model_regex: wordsOf(stored["model_regex"]),
    path_regex: wordsOf(stored["path_regex"]),
    user_agent_include: wordsOf(stored["user_agent_include"]),
    key_sources: sourcesOf(stored["key_sources"]),
    value_regex: typeof valueRegex === "string" && valueRegex.length <= MAX_CHARS ? valueRegex : undefined,
    ttl_seconds:
      typeof ttl === "number" && Number.isSafeInteger(ttl) && ttl >= 0 && ttl <= MAX_TTL_SECONDS
        ? ttl
        : undefined,
    include_using_group: flag(stored["include_using_group"], true),
    include_model_name: flag(stored["include_model_name"], true),
    include_rule_name: flag(stored["include_rule_name"], true),
    param_override_template: isRecord(template) ? template : undefined,
    skip_retry_on_failure: flag(stored["skip_retry_on_failure"], false),
  };
  const missing = Object.entries(rule).find(([, value]) => value === undefined);
  return missing ? { problem: missing[0] } : { rule: rule as AffinityRule, problem: "" };
}
