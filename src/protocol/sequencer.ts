// Turns deltas that arrive in any order into blocks with a life cycle: one open at a time, `at` without gaps.
// Refuses to interleave: deltas for a block that is not open are held until the open one closes.
import type { BlockKind, BlockPayload, CanonicalEvent } from "./events.ts";

export interface BlockSpec {
  /** Identity within the answer; text-like blocks may come back under the same key as a new block. */
  key: string;
  kind: BlockKind;
  callId?: string;
  name?: string;
  custom?: boolean;
  namespace?: string;
  choice?: number;
}

interface LiveBlock {
  spec: BlockSpec;
  at: number;
  held: BlockPayload[];
  /** Follows the arguments of a call; other blocks, and calls with free text, have none to follow. */
  json: JsonProgress | undefined;
  done: boolean;
}

export interface BlockSequencer {
  /** Opens the block where needed and writes (or holds) one delta. */
  write: (out: CanonicalEvent[], spec: BlockSpec, payload?: BlockPayload) => void;
  /** The wire said that this block is whole. */
  complete: (out: CanonicalEvent[], key: string) => void;
  /** Closes everything, held blocks included. */
  closeAll: (out: CanonicalEvent[]) => void;
  /** Number of blocks opened so far. */
  count: () => number;
  openKey: () => string | null;
}

/** Text-like blocks may be closed whenever something else begins; calls and media only when they are whole. */
const INTERRUPTIBLE: ReadonlySet<BlockKind> = new Set(["text", "thinking", "refusal"]);

/**
 * `isUnsaid`: the wire never says that a call is whole. Models write one call after the other, so that one of which nothing
 * came while a later one of its choice became whole has no arguments. That is known when another thing begins: servers that
 * name all calls at once may tell their arguments in any order.
 */
export function createSequencer({ isUnsaid = false } = {}): BlockSequencer {
  let nextAt = 0;
  let open: LiveBlock | null = null;
  let waiting: LiveBlock[] = [];
  const closedKeys = new Set<string>();

  const emit = (out: CanonicalEvent[], block: LiveBlock, payload: BlockPayload): void => {
    const { at } = block;
    switch (payload.type) {
      // The two that every stream is made of, without a copy by keys.
      case "text":
        out.push({ type: "text", at, delta: payload.delta });
        return;
      case "json":
        out.push({ type: "json", at, delta: payload.delta });
        return;
      default:
        out.push({ ...payload, at });
    }
  };
  const begin = (out: CanonicalEvent[], block: LiveBlock): void => {
    const { kind, callId, name, custom, namespace, choice } = block.spec;
    block.at = nextAt++;
    open = block;
    const event: CanonicalEvent = { type: "open", at: block.at, kind };
    if (callId !== undefined) event.callId = callId;
    if (name !== undefined) event.name = name;
    if (custom) event.custom = true;
    if (namespace !== undefined) event.namespace = namespace;
    if (choice) event.choice = choice;
    out.push(event);
    for (const payload of block.held) emit(out, block, payload);
    block.held = [];
  };
  const close = (out: CanonicalEvent[]): void => {
    if (!open) return;
    out.push({ type: "close", at: open.at });
    if (!INTERRUPTIBLE.has(open.spec.kind)) closedKeys.add(open.spec.key);
    open = null;
  };
  const mayClose = (block: LiveBlock): boolean => {
    if (block.done || INTERRUPTIBLE.has(block.spec.kind)) return true;
    return block.json?.whole() === true;
  };
  /** Gives held blocks their turn for as long as the open one may close. */
  const advance = (out: CanonicalEvent[]): void => {
    while (waiting.length > 0 && (!open || mayClose(open))) {
      close(out);
      const next = waiting.shift();
      if (next) begin(out, next);
    }
  };

  return {
    write(out, spec, payload) {
      if (open?.spec.key === spec.key) {
        if (payload?.type === "json") open.json?.read(payload.delta);
        if (payload) emit(out, open, payload);
        if (waiting.length > 0 && payload?.type === "json") advance(out);
        return;
      }
      const held = waiting.length === 0 ? undefined : waiting.find((block) => block.spec.key === spec.key);
      if (held) {
        if (payload) hold(held, payload);
        if (payload?.type === "json") advance(out);
        return;
      }
      // A call that was whole and closed can only be followed by white space: nothing to say.
      if (closedKeys.has(spec.key)) return;
      const json = spec.kind === "tool-call" && !spec.custom ? jsonProgress() : undefined;
      const block: LiveBlock = { spec, at: -1, held: [], json, done: false };
      if (payload) hold(block, payload);
      if (isUnsaid && waiting.length > 0) endPassed(open ? [open, ...waiting] : waiting);
      waiting.push(block);
      advance(out);
    },
    complete(out, key) {
      if (open?.spec.key === key) {
        close(out);
        advance(out);
        return;
      }
      const held = waiting.find((block) => block.spec.key === key);
      if (!held) return;
      held.done = true;
      advance(out);
    },
    closeAll(out) {
      close(out);
      for (const block of waiting) {
        begin(out, block);
        close(out);
      }
      waiting = [];
    },
    count: () => nextAt,
    openKey: () => open?.spec.key ?? null,
  };
}

/** Keeps what cannot be written yet. */
function hold(block: LiveBlock, payload: BlockPayload): void {
  if (payload.type === "json") block.json?.read(payload.delta);
  block.held.push(payload);
}

/** Ends the calls of which nothing came before a later one of the same choice became whole. */
function endPassed(blocks: readonly LiveBlock[]): void {
  for (const [at, block] of blocks.entries()) {
    const isLater = (other: LiveBlock): boolean =>
      other.spec.choice === block.spec.choice && other.json?.whole() === true;
    if (block.json?.isEmpty() === true && blocks.slice(at + 1).some(isLater)) block.done = true;
  }
}

/** How far the arguments of a call are. */
export interface JsonProgress {
  read: (delta: string) => void;
  whole: () => boolean;
  /** Nothing but white space came. */
  isEmpty: () => boolean;
}

/** Follows brackets and strings of streamed JSON: whole when the outermost object or list has closed. */
export function jsonProgress(): JsonProgress {
  let isEmpty = true;
  let depth = 0;
  let inString = false;
  let escaped = false;
  let whole = false;
  return {
    read(delta) {
      if (isEmpty) isEmpty = delta.trim() === "";
      for (let i = 0; i < delta.length; i++) {
        const c = delta.charCodeAt(i);
        if (inString) {
          if (escaped) escaped = false;
          else if (c === 0x5c) escaped = true;
          else if (c === 0x22) inString = false;
        } else if (c === 0x22) inString = true;
        else if (c === 0x7b || c === 0x5b) depth += 1;
        else if (c === 0x7d || c === 0x5d) {
          depth -= 1;
          if (depth === 0) whole = true;
        }
      }
    },
    whole: () => whole && !inString,
    isEmpty: () => isEmpty,
  };
}
