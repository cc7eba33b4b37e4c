// Canonical events of upstreams that stream plain text: blocks open and close by themselves.
// Refuses to say anything after the end.
import { brokenStream } from "../../protocol/assemble.ts";
import type { BlockPayload, CanonicalEvent, FinishReason } from "../../protocol/events.ts";
import { createSequencer } from "../../protocol/sequencer.ts";
import type { BlockSpec } from "../../protocol/sequencer.ts";
import { emptyUsage } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";
import { streamFailure } from "./answers.ts";

export interface TextEvents {
  text: (delta: string) => CanonicalEvent[];
  thinking: (delta: string) => CanonicalEvent[];
  /** Opens a tool call, or adds to its arguments. */
  call: (spec: BlockSpec, payload?: BlockPayload) => CanonicalEvent[];
  /** The call under this key is whole. */
  complete: (key: string) => CanonicalEvent[];
  /** `usage` null: the upstream said nothing, the gateway counts. */
  finish: (reason: FinishReason, raw: string | null, usage: Usage | null) => CanonicalEvent[];
  fail: (status: number, type: string, message: string) => CanonicalEvent[];
  /** The body has ended: a broken stream unless it was finished. */
  end: () => CanonicalEvent[];
  isOver: () => boolean;
}

export function createTextEvents(id?: string): TextEvents {
  const blocks = createSequencer();
  let isStarted = false;
  let isOver = false;

  const begin = (): CanonicalEvent[] => {
    if (isStarted) return [];
    isStarted = true;
    return [id === undefined ? { type: "start" } : { type: "start", id }];
  };
  const write = (spec: BlockSpec, payload?: BlockPayload): CanonicalEvent[] => {
    if (isOver) return [];
    const out = begin();
    blocks.write(out, spec, payload);
    return out;
  };
  const textual =
    (kind: "text" | "thinking") =>
    (delta: string): CanonicalEvent[] =>
      delta === "" ? [] : write({ key: kind, kind }, { type: "text", delta });

  return {
    text: textual("text"),
    thinking: textual("thinking"),
    call: write,
    complete(key) {
      const out: CanonicalEvent[] = [];
      if (!isOver) blocks.complete(out, key);
      return out;
    },
    finish(reason, raw, usage) {
      if (isOver) return [];
      const out = begin();
      isOver = true;
      blocks.closeAll(out);
      out.push({ type: "usage", usage: usage ?? emptyUsage() }, { type: "finish", reason, raw });
      return out;
    },
    fail(status, type, message) {
      if (isOver) return [];
      isOver = true;
      return [{ type: "fail", failure: streamFailure(status, type, message) }];
    },
    end() {
      if (isOver) return [];
      isOver = true;
      return [{ type: "fail", failure: brokenStream("the upstream closed before its last event") }];
    },
    isOver: () => isOver,
  };
}
