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
  /** Follows the arguments of a call; other blocks have none to follow. */
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

export function createSequencer(): BlockSequencer {
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
        block.json?.read(payload.delta);
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
  const mayClose = (block: LiveBlock): boolean =>
    block.done || INTERRUPTIBLE.has(block.spec.kind) || (block.json !== undefined && block.json.whole());
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
        if (payload) emit(out, open, payload);
        return;
      }
      const held = waiting.length === 0 ? undefined : waiting.find((block) => block.spec.key === spec.key);
      if (held) {
        if (payload) held.held.push(payload);
        return;
      }
      // A call that was whole and closed can only be followed by white space: nothing to say.
      if (closedKeys.has(spec.key)) return;
      const json = spec.kind === "tool-call" ? jsonProgress() : undefined;
      waiting.push({ spec, at: -1, held: payload ? [payload] : [], json, done: false });
      advance(out);
    },
    complete(out, key) {
      if (open?.spec.key === key) {
        close(out);
        advance(out);
        return;
      }
      const held = waiting.find((block) => block.spec.key === key);
      if (held) held.done = true;
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

interface JsonProgress {
  read: (delta: string) => void;
  whole: () => boolean;
}

/** Follows brackets and strings of streamed JSON: whole when the outermost object or list has closed. */
function jsonProgress(): JsonProgress {
  let depth = 0;
  let inString = false;
  let escaped = false;
  let whole = false;
  return {
    read(delta) {
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
  };
}
