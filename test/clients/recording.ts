// A client's recording: its requests with the prose taken out, and how they are made whole again for a replay.
// What a request brings back of an earlier answer stands as a mark, "@2:function_call.call_id:0": first value of that kind in
// the answer to request 2. So a replay sends what its own answers said, whatever upstream gave them.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { DialectName } from "../../src/protocol/canonical.ts";

export const RECORDINGS = join(import.meta.dir, "../fixtures/clients");

/** Stands for the model in paths and bodies. */
export const MODEL_MARK = "@model";

/** Stands for the same member of the request before. */
export const SAME_MARK = "@same";

export interface RecordedCall {
  /** The whole name of the tool, or a part of it at its end. */
  tool: string;
  args?: Record<string, unknown>;
  input?: string;
}

export interface RecordedRequest {
  method: string;
  /** Path with query. */
  path: string;
  /** Without those of the connection and of the sender. */
  headers: Record<string, string> | typeof SAME_MARK;
  body: Record<string, unknown>;
}

export interface Recording {
  client: string;
  version: string;
  dialect: DialectName;
  /** The header that carries the key. */
  auth: "authorization" | "x-api-key" | "x-goog-api-key";
  /** What the model calls, turn after turn, before it answers. */
  calls: RecordedCall[];
  /** Whether requests without those tools are answered with the final words, too. */
  isAnsweredAside: boolean;
  requests: RecordedRequest[];
}

/** Values of an answer by kind, in order, each once. */
export type Told = Map<string, string[]>;

const KEPT_KEYS = new Set(["id", "call_id", "encrypted_content", "signature", "thoughtSignature"]);

/** What an object is: its type, what kind of Google's part it is, or the member that it stands in. */
function ownerOf(value: Record<string, unknown>, parent: string): string {
  if (typeof value["type"] === "string") return value["type"];
  if (parent !== "parts") return parent;
  if ("functionCall" in value) return "call part";
  return value["thought"] === true ? "thought part" : "text part";
}

function walk(value: unknown, parent: string, told: Told): void {
  if (Array.isArray(value)) {
    for (const each of value) walk(each, parent, told);
    return;
  }
  if (typeof value !== "object" || value === null) return;
  const owner = ownerOf(value as Record<string, unknown>, parent);
  for (const [key, each] of Object.entries(value)) {
    if (typeof each === "string" && KEPT_KEYS.has(key) && each !== "") {
      const kind = `${owner}.${key}`;
      const values = told.get(kind) ?? [];
      if (!values.includes(each)) told.set(kind, [...values, each]);
    } else walk(each, key, told);
  }
}

/** The JSON values of an answer: one, or the data of each frame. */
export function answerValues(answer: string): unknown[] {
  const parse = (text: string): unknown[] => {
    try {
      return [JSON.parse(text)];
    } catch {
      return [];
    }
  };
  if (!/^(event|data|:)/m.test(answer)) return parse(answer);
  return answer.split(/\r?\n/).flatMap((line) => (line.startsWith("data: ") ? parse(line.slice(6)) : []));
}

/** The ids and proofs that an answer gives out. */
export function toldBy(answer: string): Told {
  const told: Told = new Map();
  for (const value of answerValues(answer)) walk(value, "", told);
  return told;
}

/** The mark of a value that an earlier answer gave out; the newest answer first. */
export function markOf(value: string, answers: readonly Told[]): string | undefined {
  for (let at = answers.length - 1; at >= 0; at--)
    for (const [kind, values] of answers[at] ?? []) {
      const index = values.indexOf(value);
      if (index >= 0) return `@${at}:${kind}:${index}`;
    }
  return undefined;
}

const MARK = /^@(\d+):(.+):(\d+)$/;
/** No such value was given out in this replay: the item that brings it back falls away. */
const GONE = Symbol("gone");

/** Who refers to an answer's thinking refers to every piece of it, and another upstream may have thought in more. */
function referencesOf(item: unknown, answers: readonly Told[]): unknown[] | undefined {
  const { type, id } = (item ?? {}) as { type?: unknown; id?: unknown };
  if (type !== "item_reference" || typeof id !== "string") return undefined;
  const [, at, kind, index] = MARK.exec(id) ?? [];
  if (kind !== "reasoning.id" || index !== "0") return undefined;
  return (answers[Number(at)]?.get(kind) ?? []).map((each) => ({ type, id: each }));
}

/** The value with its marks replaced; items of lists that bring back what was never given out are left out. */
function resolve(value: unknown, answers: readonly Told[]): unknown {
  if (typeof value === "string") {
    const [mark, at, kind, index] = MARK.exec(value) ?? [];
    if (mark === undefined) return value;
    return answers[Number(at)]?.get(kind ?? "")?.[Number(index)] ?? GONE;
  }
  if (Array.isArray(value))
    return value
      .flatMap((each) => referencesOf(each, answers) ?? [resolve(each, answers)])
      .filter((each) => each !== GONE);
  if (typeof value !== "object" || value === null) return value;
  const made: Record<string, unknown> = {};
  for (const [key, each] of Object.entries(value)) {
    const resolved = resolve(each, answers);
    // A part goes on without its proof; an item without its id does not.
    if (resolved === GONE && (key === "thoughtSignature" || key === "encrypted_content")) continue;
    if (resolved === GONE) return GONE;
    made[key] = resolved;
  }
  return made;
}

/** Path and body as the client would send them now. */
export function replayed(
  { path, body }: RecordedRequest,
  model: string,
  answers: readonly Told[],
): { path: string; body: string } {
  const text = JSON.stringify(resolve(body, answers));
  return { path: path.replaceAll(MODEL_MARK, model), body: text.replaceAll(MODEL_MARK, model) };
}

/** The requests with what repeats itself told in each. */
function unfolded(requests: readonly RecordedRequest[]): RecordedRequest[] {
  const whole: RecordedRequest[] = [];
  for (const request of requests) {
    const before = whole.at(-1);
    const members = Object.entries(request.body).map(([name, value]) => [
      name,
      value === SAME_MARK ? before?.body[name] : value,
    ]);
    const headers = request.headers === SAME_MARK ? (before?.headers ?? {}) : request.headers;
    whole.push({ ...request, headers, body: Object.fromEntries(members) as Record<string, unknown> });
  }
  return whole;
}

/** Every recording, by the file's name. */
export function recordings(): [string, Recording][] {
  const files = readdirSync(RECORDINGS).filter((name) => name.endsWith(".json"));
  return files.toSorted().map((name) => {
    const told = JSON.parse(readFileSync(join(RECORDINGS, name), "utf8")) as Recording;
    return [name.slice(0, -5), { ...told, requests: unfolded(told.requests) }];
  });
}
