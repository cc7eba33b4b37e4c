// Items of converted answers that a client may name by their ids later (`item_reference`, the AI SDK's way): whatever such
// a reference needs is sealed into an id that was given out, and put back from it. Nothing is stored anywhere.
// A whole answer seals each item into its own id. A stream has to name its items before they are there: behind them it
// gives one more reasoning item, empty but for its id, in which all of them lie.
import type { JsonObject } from "../canonical.ts";
import { cannotCarry, drop } from "../carry.ts";
import { asList, asObject, asString } from "../json.ts";
import { openProof } from "../signatures.ts";

const DIALECT = "openai-responses";

/** Items by their ids; the empty id is that of the item itself whose id was sealed. */
export type SealedItems = Readonly<Record<string, JsonObject>>;

/** Seals items for their user; undefined where they are too large for an id. */
export type SealItems = (items: SealedItems) => string | undefined;
/** Opens what was sealed for this user; undefined for anything else. */
export type OpenItems = (sealed: string) => SealedItems | undefined;

/** Stands in an id between its kind and what is sealed: letters, digits, _ and - only, as ids have them. */
const MARK = "_sealed1_";

/** Whether a body may hold ids of ours with something sealed in them. */
export function mayHoldSealed(body: string): boolean {
  return body.includes(MARK);
}

function idOf(kind: string, sealed: string): string {
  return kind + MARK + sealed;
}

/** Kinds that clients refer to; calls of functions they repeat, and pictures are too large. */
const REFERRED: Readonly<Record<string, string>> = {
  reasoning: "rs",
  message: "msg",
  custom_tool_call: "ctc",
  local_shell_call: "lsh",
  shell_call: "sh",
  apply_patch_call: "apc",
  tool_search_call: "ts",
};

/** Reasoning that its own provider stores, under an id without which it is worth nothing. */
function isNative(item: JsonObject): boolean {
  const encrypted = asString(item["encrypted_content"]);
  return encrypted !== undefined && openProof(encrypted, DIALECT).signature.dialect === DIALECT;
}

/** The beginning of its ids; undefined for an item that nobody refers to, or that is its provider's. */
function kindOf(item: JsonObject): string | undefined {
  const kind = REFERRED[asString(item["type"]) ?? ""];
  return kind === undefined || isNative(item) ? undefined : kind;
}

function contentOf({ id: _id, status: _status, ...item }: JsonObject): JsonObject {
  return item;
}

/** A whole answer's items under ids that bring them back. */
export function withSealedIds(output: readonly JsonObject[], seal: SealItems): JsonObject[] {
  return output.map((item) => {
    const kind = kindOf(item);
    const sealed = kind === undefined ? undefined : seal({ "": contentOf(item) });
    return kind === undefined || sealed === undefined ? item : { ...item, id: idOf(kind, sealed) };
  });
}

/** The last item of a stream, with all that were given before it; undefined where nobody could refer to one. */
export function carrierOf(output: readonly JsonObject[], seal: SealItems): JsonObject | undefined {
  const items: Record<string, JsonObject> = {};
  for (const item of output) {
    const id = asString(item["id"]);
    if (id === undefined || id.includes(MARK) || kindOf(item) === undefined) continue;
    items[id] = contentOf(item);
  }
  const sealed = Object.keys(items).length === 0 ? undefined : seal(items);
  return sealed === undefined ? undefined : { id: idOf("rs", sealed), type: "reasoning", summary: [] };
}

/** Whether an answer has something that cannot be told again without its item: thinking, or the proof of a call. */
export function hasReasoning(output: readonly JsonObject[]): boolean {
  return output.some((item) => item["type"] === "reasoning");
}

function sealedIn(id: string | undefined): string | undefined {
  const at = id?.indexOf(MARK) ?? -1;
  return at === -1 ? undefined : id?.slice(at + MARK.length);
}

/** The id of a reference; its type may be left out. */
function referenceOf(item: JsonObject): string | undefined {
  const { type } = item;
  const isReference = type === "item_reference" || (isAbsent(type) && isAbsent(item["role"]));
  return isReference ? asString(item["id"]) : undefined;
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null;
}

/** An empty reasoning item that only its id says something with. */
function isCarrier(item: JsonObject): boolean {
  const isEmpty = asList(item["summary"]).length === 0 && asList(item["content"]).length === 0;
  return item["type"] === "reasoning" && isEmpty && !item["encrypted_content"];
}

const DROPPED = "input.item_reference";

/**
 * The input with the items that its references mean, each once. Reasoning that was sealed for somebody else is left out and
 * listed in `dropped`, and so is what is named twice; throws the refusal of other items that were. Unknown references stay,
 * for their own provider or for a refusal.
 */
export function putBack(input: readonly unknown[], open: OpenItems, dropped: string[]): unknown[] {
  const opened = new Map<string, SealedItems | undefined>();
  const known = new Map<string, JsonObject>();
  for (const value of input) {
    const id = asString(asObject(value)?.["id"]);
    const sealed = sealedIn(id);
    if (id === undefined || sealed === undefined || opened.has(id)) continue;
    const items = open(sealed);
    opened.set(id, items);
    for (const key in items) if (items[key]) known.set(key === "" ? id : key, items[key]);
  }
  if (opened.size === 0) return [...input];
  const used = new Set<string>();
  return input.flatMap((value): unknown[] => {
    const item = asObject(value);
    const id = asString(item?.["id"]);
    if (!item || id === undefined) return [value];
    if (referenceOf(item) === undefined) {
      if (!opened.has(id)) return [value];
      // No provider would take the id; and what only carries others was given in full.
      return isCarrier(item) ? [] : [withoutId(item)];
    }
    const found = known.get(id);
    if (found && !used.has(id)) {
      used.add(id);
      return [found];
    }
    if (!found && !opened.has(id)) return [value];
    // What carries others has said what it had to say.
    if (!found && opened.get(id)) return [];
    if (!found && !id.startsWith("rs_")) throw cannotCarry(DROPPED);
    drop(dropped, DROPPED);
    return [];
  });
}

function withoutId({ id: _id, ...item }: JsonObject): JsonObject {
  return item;
}
