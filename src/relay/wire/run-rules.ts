// Carries out a channel's request rules on a body and headers that are about to be sent: what changed, and which rules did it.
// Never writes to its input; a rule that finds nothing to act on does nothing; only `return_error` ends a request.
import { RE2JS } from "re2js";
import { Failure } from "../../shared/failures.ts";
import { headerNames, pruneWish, syncSide } from "../../shared/request-rules.ts";
import type { PruneWish, RequestRules, RuleOperation, RuleRefusal } from "../../shared/request-rules.ts";
import { conditionsHold } from "./rule-conditions.ts";
import type { RuleFacts } from "./rule-conditions.ts";
import { clientHeader, dropHeader, filledIn, passClientHeaders, putHeader } from "./rule-headers.ts";
import type { HeaderPath } from "./rule-headers.ts";
import { deleteAt, draftOf, expanded, setAt, valueAt } from "./rule-paths.ts";
import type { JsonDraft } from "./rule-paths.ts";

/** A rule that changed something, as the log tells it: never what it wrote. */
export interface RuleAct {
  mode: string;
  path: string;
}

export interface RuleRun {
  body: Record<string, unknown>;
  acts: RuleAct[];
}

/** Longer texts are left as they are by patterns. */
const MAX_PATTERN_INPUT = 64 * 1024;

interface Run {
  draft: JsonDraft;
  path: HeaderPath;
  acts: RuleAct[];
}

/** Throws `rule_refused` where an operation says so. `about`: what conditions may ask of the call (rule-conditions.ts). */
export function runRules(
  { fields, operations }: RequestRules,
  body: Readonly<Record<string, unknown>>,
  path: HeaderPath,
  about: { facts: RuleFacts; isModelInAddress?: boolean },
): RuleRun {
  const run: Run = { draft: draftOf(body), path, acts: [] };
  const { draft, acts } = run;
  for (const key in fields) if (setAt(draft, [key], fields[key])) acts.push({ mode: "set", path: key });
  for (const operation of operations) {
    const scene = { ...about, body: draft.root, client: path.client };
    if (!conditionsHold(scene, operation)) continue;
    if (operation.refusal) throw refusedBy(operation.refusal);
    act(run, operation);
  }
  return { body: draft.root, acts };
}

function refusedBy({ message, status, code, type, skipRetry }: RuleRefusal): Failure {
  return new Failure("client", "rule_refused", {
    status,
    text: message,
    retryable: !skipRetry,
    ...(code === "" ? {} : { wireCode: code }),
    ...(type === "" ? {} : { type }),
  });
}

/** Tells of the operation once, by the path that its operator wrote. */
function tell({ acts }: Run, { mode }: RuleOperation, path: string, isDone: boolean): void {
  if (isDone) acts.push({ mode, path });
}

function act(run: Run, operation: RuleOperation): void {
  const { mode, path, from, to } = operation;
  switch (mode) {
    case "copy":
    case "move":
      return tell(run, operation, `${from} → ${to}`, transfer(run.draft, operation));
    case "prune_objects":
      return tell(run, operation, path === "" ? "*" : path, prune(run.draft, operation));
    case "sync_fields":
      return tell(run, operation, `${from} ↔ ${to}`, sync(run, operation));
    case "set_header":
      return tell(run, operation, path, writeHeader(run.path, operation));
    case "delete_header":
      return tell(run, operation, path, dropHeader(run.path, path));
    case "copy_header":
    case "move_header":
      return tell(run, operation, `${from} → ${to}`, transferHeader(run.path, operation));
    case "pass_headers":
      for (const name of passClientHeaders(
        run.path,
        headerNames(operation.value) ?? [],
        operation.keepOrigin,
      ))
        tell(run, operation, name, true);
      return;
    case "return_error":
      return;
    default:
      return tell(run, operation, path, change(run.draft, operation));
  }
}

/** From the last place to the first where elements are taken out: the others keep their numbers until it is their turn. */
function change(draft: JsonDraft, operation: RuleOperation): boolean {
  const places = expanded(draft.root, operation.path);
  if (operation.mode === "delete") places.reverse();
  let isChanged = false;
  for (const segments of places) if (changeAt(draft, segments, operation)) isChanged = true;
  return isChanged;
}

function changeAt(draft: JsonDraft, segments: readonly string[], operation: RuleOperation): boolean {
  const { mode, value, keepOrigin } = operation;
  if (mode === "delete") return deleteAt(draft, segments);
  const before = valueAt(draft.root, segments);
  if (mode === "set") return !(keepOrigin && before.exists) && setAt(draft, segments, value);
  if (mode === "append" || mode === "prepend") {
    const joined = joinedWith(before.value, operation);
    return joined !== undefined && setAt(draft, segments, joined);
  }
  if (typeof before.value !== "string") return false;
  const text = rewritten(before.value, operation);
  return text !== before.value && setAt(draft, segments, text);
}

/** Lists and texts get longer, objects get members; where nothing is yet, the value begins it. */
function joinedWith(before: unknown, { mode, value, keepOrigin }: RuleOperation): unknown {
  if (before === undefined || before === null) return value;
  const isFirst = mode === "prepend";
  if (Array.isArray(before)) {
    const added: unknown[] = Array.isArray(value) ? value : [value];
    return isFirst ? [...added, ...(before as unknown[])] : [...(before as unknown[]), ...added];
  }
  if (typeof before === "string") {
    const text = typeof value === "string" ? value : JSON.stringify(value);
    return isFirst ? text + before : before + text;
  }
  if (typeof before !== "object" || typeof value !== "object" || value === null || Array.isArray(value))
    return undefined;
  return keepOrigin ? { ...value, ...before } : { ...before, ...value };
}

function rewritten(text: string, { mode, value, from, to }: RuleOperation): string {
  const word = typeof value === "string" ? value : "";
  switch (mode) {
    case "trim_prefix":
      return text.startsWith(word) ? text.slice(word.length) : text;
    case "trim_suffix":
      return text.endsWith(word) ? text.slice(0, text.length - word.length) : text;
    case "ensure_prefix":
      return text.startsWith(word) ? text : word + text;
    case "ensure_suffix":
      return text.endsWith(word) ? text : text + word;
    case "trim_space":
      return text.trim();
    case "to_lower":
      return text.toLowerCase();
    case "to_upper":
      return text.toUpperCase();
    case "replace":
      return text.replaceAll(from, () => to);
    case "regex_replace":
      return text.length > MAX_PATTERN_INPUT ? text : patternOf(from).matcher(text).replaceAll(to, true);
    default:
      return text;
  }
}

/** Operators' patterns are few; what was typed while trying rules must not pile up. */
const MAX_PATTERNS = 500;
const patterns = new Map<string, RE2JS>();

function patternOf(text: string): RE2JS {
  let pattern = patterns.get(text);
  if (!pattern) {
    if (patterns.size >= MAX_PATTERNS) patterns.clear();
    patterns.set(text, (pattern = RE2JS.compile(text)));
  }
  return pattern;
}

function transfer(draft: JsonDraft, { mode, from, to, keepOrigin }: RuleOperation): boolean {
  const [source] = expanded(draft.root, from);
  const [target] = expanded(draft.root, to);
  if (!source || !target || from === to) return false;
  const { exists, value } = valueAt(draft.root, source);
  if (!exists) return false;
  const isKept = keepOrigin && valueAt(draft.root, target).exists;
  const isSet = !isKept && setAt(draft, target, value);
  if (mode === "copy") return isSet;
  // Nothing is lost: what cannot stand at its new place stays at the old one.
  const stands = isKept || isSet || Bun.deepEquals(valueAt(draft.root, target).value, value, true);
  return stands && deleteAt(draft, source);
}

function prune(draft: JsonDraft, { path, value }: RuleOperation): boolean {
  const wish = pruneWish(value);
  const places = path === "" ? [[]] : expanded(draft.root, path);
  let isChanged = false;
  for (const segments of places) {
    const { exists, value: before } = valueAt(draft.root, segments);
    if (!exists) continue;
    const after = pruned(before, wish, 0);
    if (after === before) continue;
    if (segments.length > 0) isChanged = setAt(draft, segments, after) || isChanged;
    else {
      draft.root = after as Record<string, unknown>;
      isChanged = true;
    }
  }
  return isChanged;
}

/** An object by itself is judged by its own members alone. */
function matches(value: unknown, { conditions, logic }: PruneWish): boolean {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const body = value as Record<string, unknown>;
  return conditionsHold({ body, client: NO_HEADERS }, { conditions, logic });
}

const NO_HEADERS = new Headers();

/** The value without the objects of lists and members that match; the same value where there are none. */
function pruned(value: unknown, wish: PruneWish, depth: number): unknown {
  if (typeof value !== "object" || value === null) return value;
  const goesOn = wish.recursive || depth === 0;
  if (Array.isArray(value)) {
    const kept = (value as unknown[]).filter((each) => !matches(each, wish));
    const after = goesOn ? kept.map((each) => pruned(each, wish, depth + 1)) : kept;
    const isSame = after.length === value.length && after.every((each, index) => each === value[index]);
    return isSame ? value : after;
  }
  if (!goesOn) return value;
  const entries = Object.entries(value).flatMap(([key, each]): [string, unknown][] =>
    matches(each, wish) ? [] : [[key, pruned(each, wish, depth + 1)]],
  );
  const isSame =
    entries.length === Object.keys(value).length &&
    entries.every(([key, each]) => each === (value as Record<string, unknown>)[key]);
  return isSame ? value : Object.fromEntries(entries);
}

/** Fills the side that is missing from the one that is there. */
function sync({ draft, path }: Run, operation: RuleOperation): boolean {
  const one = syncSide(operation.from);
  const other = syncSide(operation.to);
  if (!one || !other) return false;
  type Side = typeof one;
  const read = ({ kind, name }: Side): unknown =>
    kind === "header"
      ? (path.headers[name] ?? clientHeader(path.client, name))
      : valueAt(draft.root, expanded(draft.root, name)[0] ?? []).value;
  const write = (side: Side, value: unknown): boolean => {
    if (side.kind === "json") return setAt(draft, expanded(draft.root, side.name)[0] ?? [], value);
    const text = typeof value === "string" || typeof value === "number" ? `${value}` : undefined;
    // As a template it would mean what it only says.
    return text !== undefined && /^[\x20-\x7e]{0,4096}$/.test(text) && putHeader(path, side.name, text);
  };
  const [first, second] = [read(one), read(other)];
  const isMissing = (value: unknown): boolean => value === undefined || value === null || value === "";
  if (isMissing(first) === isMissing(second)) return false;
  return isMissing(second) ? write(other, first) : write(one, second);
}

function transferHeader(path: HeaderPath, { mode, from, to, keepOrigin }: RuleOperation): boolean {
  const value = path.headers[from] ?? clientHeader(path.client, from);
  if (value === undefined || from === to) return false;
  const isKept = keepOrigin && path.headers[to] !== undefined;
  const isSet = !isKept && putHeader(path, to, value);
  return mode === "move_header" ? dropHeader(path, from) || isSet : isSet;
}

/** A text with templates; or an object that says what becomes of each entry of a list such as anthropic-beta. */
function writeHeader(path: HeaderPath, { path: name, value, keepOrigin }: RuleOperation): boolean {
  if (keepOrigin && path.headers[name] !== undefined) return false;
  if (typeof value === "object" && value !== null && !Array.isArray(value))
    return writeTokens(path, name, value as Record<string, unknown>);
  const template = typeof value === "string" ? value : JSON.stringify(value);
  if (template === "") return dropHeader(path, name);
  const text = filledIn(path, template);
  return text !== undefined && putHeader(path, name, text);
}

const tokensOf = (value: unknown): string[] =>
  (Array.isArray(value) ? value : [value])
    .filter((each) => typeof each === "string")
    .flatMap((each) => each.split(","))
    .map((each) => each.trim())
    .filter((each) => each !== "");

function writeTokens(path: HeaderPath, name: string, tokens: Record<string, unknown>): boolean {
  const keepsDeclared = tokens["$keep_only_declared"] === true;
  const before = tokensOf(path.headers[name] ?? clientHeader(path.client, name));
  const after = before.flatMap((token) => {
    if (Object.hasOwn(tokens, token)) return tokensOf(tokens[token]);
    return keepsDeclared ? [] : [token];
  });
  const text = [...new Set([...after, ...tokensOf(tokens["$append"])])].join(",");
  if (text === "") return dropHeader(path, name);
  return /^[\x20-\x7e]{1,4096}$/.test(text) && putHeader(path, name, text);
}
