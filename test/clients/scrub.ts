// Takes out of a client's request what is its maker's or this machine's: prose, paths, names, ids; keys, types and shapes stay.
// What is ours (prompts, scripted answers, the files written) stays, because a replay is about it.
import { LINE, PATCH, QUESTION, SAID, THOUGHT, WEATHER } from "./words.ts";

/** Stands for every text that is somebody else's. */
const FILLER = "Filler.";
const OURS = new Set([SAID, THOUGHT, LINE, `${LINE}\n`, PATCH, WEATHER, QUESTION]);
/** Members that hold prose at any length. */
const PROSE = new Set([
  "description",
  "text",
  "content",
  "instructions",
  "system",
  "definition",
  "output",
  "title",
  "prompt",
  "summary",
  "examples",
  "$comment",
  "message",
]);
const MAX_IDENTIFIER = 64;
const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi;
const LONG_HEX = /[0-9a-f]{24,}/gi;
/** Milliseconds of this decade inside a name. */
const TIMESTAMP = /1[6-9]\d{11}/g;
const CALL_MARK = /^@\d+:/;
/** Tools beside those that are called: as many as show a new kind or a new word of their schemas. */
const MAX_TOOLS = 5;

export interface Scrubber {
  value(value: unknown): unknown;
  text(text: string): string;
}

type Json = Record<string, unknown>;

function isTool(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The words that a tool's schema is made of: its keywords and types, not its properties' names. */
function shapeOf(tool: unknown, words = new Set<string>()): Set<string> {
  if (Array.isArray(tool)) for (const each of tool) shapeOf(each, words);
  else if (isTool(tool))
    for (const [key, value] of Object.entries(tool)) {
      if (key === "properties" && isTool(value)) {
        for (const each of Object.values(value)) shapeOf(each, words);
        continue;
      }
      words.add(key);
      if (key === "type" && typeof value === "string") words.add(`type ${value}`);
      shapeOf(value, words);
    }
  return words;
}

function nameOf(tool: Json): string {
  const named = (tool["function"] ?? tool["custom"] ?? tool) as Json;
  return typeof named["name"] === "string" ? named["name"] : "";
}

/** The called tools and the first ones that show something new, in their order. */
function fewTools(tools: unknown[], called: (name: string) => boolean): unknown[] {
  const seen = new Set<string>();
  let count = 0;
  return tools.filter((tool) => {
    if (!isTool(tool)) return true;
    const words = [...shapeOf(tool)];
    const isNew = words.some((word) => !seen.has(word));
    const isKept =
      called(nameOf(tool)) || (isNew && count < MAX_TOOLS) || (tool["type"] !== "function" && isNew);
    if (!isKept) return false;
    for (const word of words) seen.add(word);
    count++;
    return true;
  });
}

/**
 * `called` says which tools the recording needs; `roots` are this run's folders, which become one path; `asked` is what the
 * user said.
 */
export function scrubber(
  called: (name: string) => boolean,
  roots: readonly string[],
  asked: string,
): Scrubber {
  const ids = new Map<string, string>();
  /** The same made-up id of this length for the same id, and another for every other. */
  const counted = (id: string): string => {
    const known = ids.get(id) ?? String(ids.size + 1).padStart(id.length, "0");
    ids.set(id, known);
    return known;
  };
  const uuid = (id: string): string => `00000000-0000-4000-8000-${counted(id).slice(-12)}`;

  function text(given: string): string {
    let told = given;
    for (const root of roots) told = told.replaceAll(root, "/work");
    return told.replaceAll(UUID, uuid).replaceAll(LONG_HEX, counted).replaceAll(TIMESTAMP, counted);
  }

  function stringIn(key: string, given: string): string {
    if (OURS.has(given) || CALL_MARK.test(given)) return given;
    if (given === asked) return asked;
    if (given.startsWith("{") || given.startsWith("[")) {
      try {
        return JSON.stringify(value(JSON.parse(given), key));
      } catch {
        // Text that only looks like it.
      }
    }
    if (PROSE.has(key)) return given === "" ? "" : FILLER;
    const told = text(given);
    // Commands that write the file carry it.
    if (told.includes(LINE)) return told;
    return told.length > MAX_IDENTIFIER || /[\n\r]|\s\S+\s/.test(told) ? FILLER : told;
  }

  function value(given: unknown, key = ""): unknown {
    if (typeof given === "string") return stringIn(key, given);
    if (typeof given === "number") return key.endsWith("_ms") || (given > 1.6e12 && given < 2e12) ? 0 : given;
    if (Array.isArray(given)) {
      const isTools = key === "tools" || /^function_?declarations$/i.test(key);
      return (isTools ? fewTools(given, called) : given).map((each) => value(each, key));
    }
    if (typeof given !== "object" || given === null) return given;
    // Names of properties may be words that hold prose elsewhere; a path may be a name.
    const isNames = key === "properties" || key === "$defs" || key === "definitions";
    return Object.fromEntries(
      Object.entries(given).map(([name, each]) => [text(name), value(each, isNames ? "" : name)]),
    );
  }
  return { value: (given) => value(given), text };
}
