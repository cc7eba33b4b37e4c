// Reads and changes JSON by paths of request rules ("messages.-1.content", "tools.*.strict") without touching what it was given.
// Refuses to leave the document: a path that leads nowhere finds nothing and changes nothing.
import { segmentsOf } from "../../shared/request-rules.ts";

type Json = Record<string, unknown>;
type Container = Json | unknown[];

/** A document while rules change it: containers are copied before their first change. */
export interface JsonDraft {
  root: Json;
  /** Containers that are copies of this draft's own. */
  readonly own: WeakSet<object>;
}

export function draftOf(body: Readonly<Json>): JsonDraft {
  const root = { ...body };
  return { root, own: new WeakSet([root]) };
}

function isContainer(value: unknown): value is Container {
  return typeof value === "object" && value !== null;
}

/** Index of a list by a segment, from its end where it is negative; undefined where it is none. */
function indexOf(list: readonly unknown[], segment: string): number | undefined {
  if (!/^-?\d{1,9}$/.test(segment)) return undefined;
  const index = Number(segment);
  return index < 0 ? list.length + index : index;
}

function childOf(container: Container, segment: string): unknown {
  if (Array.isArray(container)) {
    const index = indexOf(container, segment);
    return index === undefined ? undefined : (container as unknown[])[index];
  }
  return Object.hasOwn(container, segment) ? container[segment] : undefined;
}

function hasChild(container: Container, segment: string): boolean {
  if (!Array.isArray(container)) return Object.hasOwn(container, segment);
  const index = indexOf(container, segment);
  return index !== undefined && index >= 0 && index < container.length;
}

/** Segments that exist in the container for one that may stand for all. */
function childrenOf(container: Container, segment: string): string[] {
  if (segment !== "*") return [segment];
  return Array.isArray(container) ? container.map((_, index) => String(index)) : Object.keys(container);
}

/** The concrete paths that a path with stars stands for; one without stars stands for itself. */
export function expanded(root: Readonly<Json>, path: string): string[][] {
  const segments = segmentsOf(path);
  if (!segments.includes("*")) return [segments];
  let found: { at: unknown; path: string[] }[] = [{ at: root, path: [] }];
  for (const segment of segments) {
    found = found.flatMap(({ at, path: before }) =>
      isContainer(at)
        ? childrenOf(at, segment).map((child) => ({ at: childOf(at, child), path: [...before, child] }))
        : segment === "*"
          ? []
          : [{ at: undefined, path: [...before, segment] }],
    );
  }
  return found.map((each) => each.path);
}

/** What stands at the path; `exists` tells null and nothing apart. */
export function valueAt(
  root: Readonly<Json>,
  segments: readonly string[],
): { exists: boolean; value: unknown } {
  let at: unknown = root;
  for (const segment of segments) {
    if (!isContainer(at) || !hasChild(at, segment)) return { exists: false, value: undefined };
    at = childOf(at, segment);
  }
  return { exists: true, value: at };
}

function ownCopy(draft: JsonDraft, container: Container): Container {
  if (draft.own.has(container)) return container;
  const copy: Container = Array.isArray(container) ? [...(container as unknown[])] : { ...container };
  draft.own.add(copy);
  return copy;
}

function putChild(container: Container, segment: string, value: unknown): boolean {
  if (Array.isArray(container)) {
    const index = indexOf(container, segment);
    // The place behind the last one is the only new one that a list has.
    if (index === undefined || index < 0 || index > container.length) return false;
    container[index] = value;
    return true;
  }
  container[segment] = value;
  return true;
}

/** The container that holds the path's last segment, a copy of the draft's own; objects are made on the way when asked. */
function holderOf(draft: JsonDraft, segments: readonly string[], makes: boolean): Container | undefined {
  let at: Container = draft.root;
  for (const segment of segments.slice(0, -1)) {
    let child = childOf(at, segment);
    if (!isContainer(child)) {
      if (!makes || (child !== undefined && child !== null)) return undefined;
      child = {};
      draft.own.add(child as object);
    }
    const copy = ownCopy(draft, child as Container);
    if (!putChild(at, segment, copy)) return undefined;
    at = copy;
  }
  return at;
}

/** True where the document is another one afterwards. */
export function setAt(draft: JsonDraft, segments: readonly string[], value: unknown): boolean {
  const last = segments.at(-1);
  const before = valueAt(draft.root, segments);
  if (last === undefined || (before.exists && Bun.deepEquals(before.value, value, true))) return false;
  // A list is written beyond its end nowhere, and no half of the way stays behind.
  if (!mayReach(draft.root, segments)) return false;
  const holder = holderOf(draft, segments, true);
  return holder !== undefined && putChild(holder, last, value);
}

function mayReach(root: Readonly<Json>, segments: readonly string[]): boolean {
  let at: unknown = root;
  for (const segment of segments) {
    if (at === undefined || at === null) return true;
    if (!isContainer(at)) return false;
    if (Array.isArray(at)) {
      const index = indexOf(at, segment);
      if (index === undefined || index < 0 || index > at.length) return false;
    }
    at = childOf(at, segment);
  }
  return true;
}

/** Takes the member or element out; true where there was one. */
export function deleteAt(draft: JsonDraft, segments: readonly string[]): boolean {
  const last = segments.at(-1);
  if (last === undefined || !valueAt(draft.root, segments).exists) return false;
  const holder = holderOf(draft, segments, false);
  if (!holder) return false;
  if (Array.isArray(holder)) holder.splice(indexOf(holder, last) ?? holder.length, 1);
  else delete holder[last];
  return true;
}
