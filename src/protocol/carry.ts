// The rule for what one dialect says and another cannot: refused by name when it changes the request's meaning,
// listed as dropped when it does not. Refuses with a client failure that names the field.
import { Failure } from "../shared/failures.ts";
import type { CanonicalRequest, DialectName, JsonObject, OpaquePart, Part } from "./canonical.ts";
import { rest } from "./json.ts";

/** The refusal of a field that cannot be said in the upstream's protocol. */
export function cannotCarry(field: string): Failure {
  return new Failure("client", "unsupported_field", {
    params: { field },
    param: field,
    type: "invalid_request_error",
  });
}

/** The refusal of a field whose value has the wrong shape. */
export function invalidField(field: string): Failure {
  return new Failure("client", "invalid_field", {
    params: { field },
    param: field,
    type: "invalid_request_error",
  });
}

/**
 * Puts the request's extra fields into a body of their own dialect. Towards another dialect the fields in `mustCarry`
 * are refused by name and the others listed in `dropped`.
 */
export function carryExtras(
  request: CanonicalRequest,
  target: DialectName,
  body: JsonObject,
  dropped: string[],
): void {
  for (const name of request.unread ?? []) drop(dropped, name);
  if (request.dialect !== target) listLost(request, target, dropped);
  for (const dialect in request.extras) {
    const extras = request.extras[dialect as DialectName];
    if (!extras) continue;
    if (dialect === target) {
      for (const key in extras) if (!(key in body)) body[key] = extras[key];
      continue;
    }
    for (const name of request.alsoLost ?? []) drop(dropped, name);
    for (const key in extras) {
      if (request.ownForms?.includes(key)) continue;
      // An explicit null asks for the default, which is what leaving it out does.
      if (extras[key] === null) continue;
      if (request.mustCarry.includes(key)) throw cannotCarry(key);
      dropped.push(key);
    }
  }
}

/**
 * Fields inside of messages, parts and tools that say nothing new elsewhere: the wire's own bookkeeping, and what has a
 * canonical place besides. Everything else that is left behind is listed.
 */
const BOOKKEEPING: Readonly<Record<DialectName, readonly string[]>> = {
  "openai-chat": [
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "refusal",
    "annotations",
    "audio",
    "function_call",
    "index",
    "extra_content",
  ],
  "openai-responses": ["type", "id", "status", "phase", "annotations", "logprobs"],
  anthropic: ["type", "id", "model", "stop_reason", "stop_sequence", "usage", "caller"],
  gemini: ["role", "functionCall", "functionResponse"],
};

/** Lists what messages, parts and tools hold besides their canonical fields, by place: content.…, messages.…, tools.… */
function listLost(request: CanonicalRequest, target: DialectName, dropped: string[]): void {
  const known = BOOKKEEPING[request.dialect];
  const list = (place: string, extra: JsonObject | undefined): void => {
    for (const key in extra) {
      // An explicit null asks for the default; references of an answer that is history are nobody's wish.
      const isRecord = extra[key] === null || (key === "citations" && Array.isArray(extra[key]));
      if (isRecord || known.includes(key)) continue;
      drop(dropped, key === "cache_control" ? key : `${place}.${key}`);
    }
  };
  const visit = (part: Part): void => {
    // Thinking travels by its proof, or is listed as a whole.
    if (part.type === "thinking") return;
    if (part.cache) drop(dropped, "cache_control");
    list("content", part.extra);
    if (part.type === "tool-result") part.content.forEach(visit);
  };
  for (const message of request.messages) {
    list("messages", message.extra);
    message.parts.forEach(visit);
  }
  for (const tool of request.tools ?? []) {
    if (tool.type === "hosted") {
      // The settings of a search travel (web-search.ts); other hosted tools are asked for by their name alone.
      if (tool.dialect !== target && tool.hosted !== "web-search")
        list(`tools.${tool.name}`, rest(tool.value, ["type", "name"]));
      continue;
    }
    if (tool.type === "function" && tool.cache) drop(dropped, "cache_control");
    const { function: inner, ...outer } = tool.extra ?? {};
    list("tools", outer);
    if (typeof inner === "object") list("tools", inner as JsonObject);
  }
}

/** What becomes of a part only another dialect understands: records of hosted tools are dropped, the rest is refused. */
export function leaveOpaque(part: OpaquePart, dropped: string[]): void {
  if (!part.droppable) throw cannotCarry(part.name);
  drop(dropped, part.name);
}

/** Whether a field asks for nothing: null, an empty list, or an object of nothing else. */
function isNothing(value: unknown): boolean {
  if (value === undefined || value === null) return true;
  if (Array.isArray(value)) return value.length === 0;
  return typeof value === "object" && Object.values(value).every(isNothing);
}

/** Lists a name once. */
export function drop(dropped: string[], name: string): void {
  if (!dropped.includes(name)) dropped.push(name);
}

/** Reads top-level request fields by type; fields of another type go to the extras, untouched. */
export interface FieldReader {
  number: (key: string) => number | undefined;
  string: (key: string) => string | undefined;
  boolean: (key: string) => boolean | undefined;
  object: (key: string) => JsonObject | undefined;
  list: (key: string) => unknown[] | undefined;
  /** Leaves the field to the extras after all. */
  leave: (key: string) => void;
  /** The fields nobody took. */
  extras: () => JsonObject;
  mustCarry: string[];
}

/** `known` are the fields with a canonical place, `mustCarry` extras that may not be dropped in silence. */
export function readFields(
  body: JsonObject,
  known: ReadonlySet<string>,
  mustCarry: readonly string[] = [],
): FieldReader {
  const left: JsonObject = {};
  for (const key in body) if (!known.has(key)) left[key] = body[key];
  const must = mustCarry.filter((key) => !isNothing(left[key]));
  const typed =
    <T>(fits: (value: unknown) => value is T) =>
    (key: string): T | undefined => {
      const value = body[key];
      if (value === undefined) return undefined;
      if (fits(value)) return value;
      left[key] = value;
      if (value !== null) must.push(key);
      return undefined;
    };
  return {
    number: typed((value): value is number => typeof value === "number"),
    string: typed((value): value is string => typeof value === "string"),
    boolean: typed((value): value is boolean => typeof value === "boolean"),
    object: typed(
      (value): value is JsonObject => typeof value === "object" && value !== null && !Array.isArray(value),
    ),
    list: typed((value): value is unknown[] => Array.isArray(value)),
    leave(key) {
      left[key] = body[key];
    },
    extras: () => left,
    mustCarry: must,
  };
}
