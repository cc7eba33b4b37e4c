// Carries out the table of model rules on a body that is about to be sent: what it changed, and what the log tells of it.
// Refuses, naming tool_choice, a search that the request demands and the model cannot do; never writes to its input.
import { createHash } from "node:crypto";
import type { DialectName, JsonObject } from "../protocol/canonical.ts";
import { cannotCarry, drop } from "../protocol/carry.ts";
import { asList, asObject } from "../protocol/json.ts";
import { effortOf } from "../protocol/reasoning.ts";
import { CONVERSATIONS } from "./define.ts";
import type { Operation, ProviderRow } from "./define.ts";
import { MODEL_RULES } from "./model-rules.ts";
import type { ModelRule, RuleAction } from "./model-rules.ts";
import type { JsonBody } from "./quirks.ts";
import { demandsSearch, isSearchTool, withoutHosted, withoutSearch } from "./search-tools.ts";

/** Whose request it is that the rules apply to. */
export interface Ruled {
  /** Dialect of the client, whose words the log uses. */
  client: DialectName;
  /** The body was written by the gateway, from a request of another dialect. */
  isConverted: boolean;
}

export interface Ruling {
  body: JsonBody;
  /** Top-level keys whose value differs from the input's. */
  changed: string[];
  /** What the log row tells: names of what was left out, and how others were changed. */
  dropped: string[];
}

const ALL = Object.values(MODEL_RULES).flat();
const NO_RULES: readonly ModelRule[] = [];
/** Clients name models, so their number has to end somewhere. */
const MAX_KNOWN = 2000;
let knownCount = 0;
/** By provider, operation and model: three looks cost less than one name put together. */
const known = new Map<ProviderRow, Map<Operation, Map<string, readonly ModelRule[]>>>();

/** The rules for a model at a provider, worked out once per name. `model` is the upstream's name. */
function rulesFor(row: ProviderRow, operation: Operation, model: string): readonly ModelRule[] {
  const found = known.get(row)?.get(operation)?.get(model);
  if (found) return found;
  const dialect = row.operations[operation]?.dialect;
  const rules = dialect
    ? ALL.filter((rule) => concerns(rule, { type: row.id, operation, dialect, model }))
    : NO_RULES;
  if (knownCount >= MAX_KNOWN) {
    known.clear();
    knownCount = 0;
  }
  knownCount++;
  let ofRow = known.get(row);
  if (!ofRow) known.set(row, (ofRow = new Map()));
  let ofOperation = ofRow.get(operation);
  if (!ofOperation) ofRow.set(operation, (ofOperation = new Map()));
  ofOperation.set(model, rules);
  return rules;
}

interface Target {
  type: number;
  operation: Operation;
  dialect: DialectName;
  model: string;
}

function concerns(rule: ModelRule, { type, operation, dialect, model }: Target): boolean {
  const bare = model.slice(model.lastIndexOf("/") + 1);
  if (!CONVERSATIONS.includes(operation) && rule.also?.includes(operation) !== true) return false;
  if (!rule.speaks.includes(dialect)) return false;
  if (!rule.models.test(bare) || rule.except?.test(bare) === true) return false;
  return rule.types?.includes(type) !== false && rule.notTypes?.includes(type) !== true;
}

/** A body while rules change it: the input as long as nothing did. */
interface Draft {
  readonly input: JsonBody;
  readonly dialect: DialectName;
  readonly ruled: Ruled;
  body: JsonObject | undefined;
  readonly dropped: string[];
}

/**
 * Undefined where nothing changes, as with most requests. Throws `unsupported_field` where the request demands what a rule
 * takes out: another channel may serve it.
 */
export function applyModelRules(
  row: ProviderRow,
  operation: Operation,
  model: string,
  input: JsonBody,
  ruled: Ruled,
): Ruling | undefined {
  const rules = rulesFor(row, operation, model);
  const dialect = row.operations[operation]?.dialect;
  if (rules.length === 0 || !dialect) return undefined;
  const draft: Draft = { input, dialect, ruled, body: undefined, dropped: [] };
  for (const rule of rules) if (rule.onlyConverted !== true || ruled.isConverted) apply(draft, rule);
  const { body, dropped } = draft;
  if (!body) return undefined;
  const changed = Object.keys(body).filter((key) => body[key] !== input[key]);
  for (const key in input) if (!Object.hasOwn(body, key)) changed.push(key);
  return { body, changed, dropped };
}

/** What a request declares that a search may depend on, whatever its dialect. */
export interface SearchWish {
  hasFunctions: boolean;
  effort: unknown;
}

/** Whether a declared search never reaches the model: such a one is neither held for nor charged. */
export function losesSearch(
  row: ProviderRow,
  operation: Operation,
  model: string,
  { hasFunctions, effort }: SearchWish,
  isConverted: boolean,
): boolean {
  return rulesFor(row, operation, model).some((rule) => {
    if (rule.onlyConverted === true && !isConverted) return false;
    if (rule.do === "functions-alone") return hasFunctions;
    return rule.do === "no-search" && (rule.when === undefined || effort === "minimal");
  });
}

const view = ({ body, input }: Draft): JsonBody => body ?? input;

function get(draft: Draft, path: string): unknown {
  const dot = path.indexOf(".");
  if (dot === -1) return view(draft)[path];
  return asObject(view(draft)[path.slice(0, dot)])?.[path.slice(dot + 1)];
}

/** Undefined removes the field, and the object around it where nothing else is in it. */
function set(draft: Draft, path: string, value: unknown): void {
  const body = (draft.body ??= { ...draft.input });
  const dot = path.indexOf(".");
  if (dot === -1) return put(body, path, value);
  const outer = path.slice(0, dot);
  const inner = { ...asObject(body[outer]) };
  put(inner, path.slice(dot + 1), value);
  put(body, outer, Object.keys(inner).length === 0 ? undefined : inner);
}

function put(object: JsonObject, key: string, value: unknown): void {
  if (value === undefined) delete object[key];
  else object[key] = value;
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null;
}

/** The last word of a path as the other dialects spell it. */
function toldName(path: string): string {
  const word = /^generation_?[cC]onfig\./.test(path) ? path.slice(path.indexOf(".") + 1) : path;
  return word.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function apply(draft: Draft, rule: RuleAction): void {
  switch (rule.do) {
    case "omit":
      return omit(draft, rule);
    case "unlist": {
      const list = asList(get(draft, rule.field));
      if (!list.includes(rule.entry)) return;
      const left = list.filter((entry) => entry !== rule.entry);
      set(draft, rule.field, left.length === 0 ? undefined : left);
      return drop(draft.dropped, rule.told);
    }
    case "one-of": {
      const [first, second] = rule.fields;
      const value = get(draft, first);
      if (!isSet(value) || !isSet(get(draft, second))) return;
      const gone = value === rule.silent[first] ? first : second;
      set(draft, gone, undefined);
      return drop(draft.dropped, gone);
    }
    case "move":
      return move(draft, rule);
    case "reword": {
      const word = get(draft, rule.field);
      const better =
        typeof word === "string" && Object.hasOwn(rule.words, word) ? rule.words[word] : undefined;
      if (better === undefined) return;
      set(draft, rule.field, better);
      return drop(draft.dropped, `${rule.field} (${better})`);
    }
    case "hash":
      for (const field of rule.fields) hash(draft, field, rule);
      return;
    case "no-search":
      if (rule.when === undefined || effortIn(draft) === "minimal") takeSearch(draft);
      return;
    case "functions-alone":
      return takeHosted(draft);
    case "no-empty-tools":
      return takeEmptyTools(draft, rule);
    case "adaptive":
      return thinkAdaptively(draft);
    case "no-thinking-of":
      if (asObject(get(draft, "thinking"))?.["type"] !== rule.type) return;
      set(draft, "thinking", undefined);
      return drop(draft.dropped, "thinking");
  }
}

function omit(draft: Draft, { fields, silent, unless }: Extract<RuleAction, { do: "omit" }>): void {
  if (unless === "effort-none" && ["none", undefined, null].includes(effortIn(draft) as null)) return;
  for (const field of fields) {
    const value = get(draft, field);
    if (!isSet(value)) continue;
    set(draft, field, undefined);
    if (value !== silent?.[field.slice(field.indexOf(".") + 1)]) drop(draft.dropped, toldName(field));
  }
}

/** With both given the newer name has the say; the upstream refuses the pair. */
function move(draft: Draft, { from, to }: Extract<RuleAction, { do: "move" }>): void {
  const value = get(draft, from);
  if (!isSet(value)) return;
  set(draft, from, undefined);
  if (isSet(get(draft, to))) return drop(draft.dropped, from);
  set(draft, to, value);
  // A client of another dialect never said either name.
  if (!draft.ruled.isConverted) drop(draft.dropped, `${from} (${to})`);
}

/** As Anthropic looks for one: something like an address anywhere in the text. */
const MAIL = /[^\s@"',;<>]+@[^\s@"',;<>]+\.[a-z]{2,}/i;

function hash(draft: Draft, field: string, { max, noMail }: Extract<RuleAction, { do: "hash" }>): void {
  const value = get(draft, field);
  if (typeof value !== "string") return;
  // Characters as the provider counts them.
  const isLong = value.length > max && Array.from(value).length > max;
  if (!isLong && !(noMail === true && MAIL.test(value))) return;
  set(draft, field, createHash("sha256").update(value).digest("hex"));
  drop(draft.dropped, `${field} (sha256)`);
}

/** The effort that the body asks for, in the words of either dialect of OpenAI's. */
function effortIn(draft: Draft): unknown {
  return draft.dialect === "openai-chat" ? get(draft, "reasoning_effort") : get(draft, "reasoning.effort");
}

/** How the client calls its search. */
function searchName({ ruled, dialect }: Draft, field: string): string {
  const spoken = ruled.isConverted ? ruled.client : dialect;
  if (spoken === "gemini") return "tools.google_search";
  return spoken === "openai-chat" && (ruled.isConverted || field === "web_search_options")
    ? "web_search_options"
    : "tools.web_search";
}

function takeSearch(draft: Draft): void {
  const tools = asList(get(draft, "tools"));
  const left = withoutSearch(draft.dialect, tools);
  const options = draft.dialect === "openai-chat" && isSet(get(draft, "web_search_options"));
  if (left === tools && !options) return;
  if (demandsSearch(draft.dialect, view(draft), left)) throw cannotCarry("tool_choice");
  if (options) {
    set(draft, "web_search_options", undefined);
    drop(draft.dropped, searchName(draft, "web_search_options"));
  }
  if (left === tools) return;
  set(draft, "tools", left);
  drop(draft.dropped, searchName(draft, "tools"));
}

function takeHosted(draft: Draft): void {
  const tools = asList(get(draft, "tools"));
  const { left, names } = withoutHosted(tools);
  if (names.length === 0) return;
  if (names.some(isSearchTool) && demandsSearch(draft.dialect, view(draft), left))
    throw cannotCarry("tool_choice");
  set(draft, "tools", left);
  for (const name of names)
    drop(draft.dropped, isSearchTool(name) ? searchName(draft, "tools") : `tools.${toldName(name)}`);
}

function holdsAny(draft: Draft, fields: readonly string[]): boolean {
  for (const field of fields) if (isSet(get(draft, field))) return true;
  return false;
}

/** Fields that bring tools of their own. */
const BRING_TOOLS = ["functions", "mcp_servers", "prompt", "cachedContent", "cached_content"] as const;

function takeEmptyTools(draft: Draft, rule: Extract<RuleAction, { do: "no-empty-tools" }>): void {
  const tools = get(draft, "tools");
  const isNone = tools === undefined || tools === null;
  if (isNone && !holdsAny(draft, rule.fields)) return;
  if (!isNone && !(Array.isArray(tools) && !tools.some((tool) => isTool(draft.dialect, tool)))) return;
  if (holdsAny(draft, BRING_TOOLS)) return;
  if (rule.list && !isNone) {
    set(draft, "tools", undefined);
    drop(draft.dropped, "tools");
  }
  for (const field of rule.fields) {
    const value = get(draft, field);
    if (!isSet(value) || rule.keeps?.includes(value) === true) continue;
    set(draft, field, undefined);
    drop(draft.dropped, toldName(field));
  }
}

/** Whether something in a list of tools is one; Gemini's settings concern functions only. */
function isTool(dialect: DialectName, tool: unknown): boolean {
  if (dialect !== "gemini") return true;
  const declared = asObject(tool);
  return asList(declared?.["functionDeclarations"] ?? declared?.["function_declarations"]).length > 0;
}

function thinkAdaptively(draft: Draft): void {
  const thinking = asObject(get(draft, "thinking"));
  if (thinking?.["type"] !== "enabled") return;
  const { budget_tokens: budget, ...rest } = thinking;
  set(draft, "thinking", { ...rest, type: "adaptive" });
  const effort = typeof budget === "number" ? effortOf({ budgetTokens: budget }) : undefined;
  if (effort !== undefined && !isSet(get(draft, "output_config.effort")))
    set(draft, "output_config.effort", effort);
  drop(draft.dropped, "thinking.budget_tokens (adaptive)");
}
