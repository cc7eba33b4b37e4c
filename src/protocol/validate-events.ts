// Checks a list of canonical events against the invariants of the form; tests wrap every decoder in it.
// It returns sentences about what is wrong, an empty list when all is well.
import type { BlockKind, CanonicalEvent } from "./events.ts";

const TEXT_KINDS: ReadonlySet<BlockKind> = new Set(["text", "thinking", "refusal"]);
const JSON_KINDS: ReadonlySet<BlockKind> = new Set(["tool-call", "hosted-tool"]);
const BYTES_KINDS: ReadonlySet<BlockKind> = new Set(["image", "audio"]);

/**
 * The invariants: one start, first (pings may precede it); `at` grows by one per open; one block open at a time, its
 * deltas fit its kind; all closed before finish; usage exactly once before finish; exactly one of finish and fail;
 * nothing after the end. `complete` false checks a stream that is still running.
 */
export function validateEvents(events: readonly CanonicalEvent[], complete = true): string[] {
  const wrong: string[] = [];
  let started = false;
  let ended = "";
  let usageSeen = 0;
  let nextAt = 0;
  let open: { at: number; kind: BlockKind } | null = null;

  events.forEach((event, index) => {
    const say = (text: string): void => void wrong.push(`event ${index} (${event.type}): ${text}`);
    if (ended) say(`comes after ${ended}`);
    if (event.type === "ping") return;
    if (event.type === "start") {
      if (started) say("second start");
      started = true;
      return;
    }
    if (!started && event.type !== "fail") say("before start");
    switch (event.type) {
      case "open":
        if (open) say(`block ${open.at} is still open`);
        if (event.at !== nextAt) say(`at is ${event.at}, expected ${nextAt}`);
        if (event.kind === "tool-call" && (!event.callId || event.name === undefined)) {
          say("tool call without id or name");
        }
        nextAt += 1;
        open = { at: event.at, kind: event.kind };
        break;
      case "text":
      case "json":
      case "bytes":
      case "note":
        if (!open || open.at !== event.at) say(`block ${event.at} is not open`);
        else if (!fits(event.type, open.kind)) say(`does not fit a ${open.kind} block`);
        break;
      case "opaque":
        if (event.at !== undefined && open?.at !== event.at) say(`block ${event.at} is not open`);
        break;
      case "close":
        if (!open || open.at !== event.at) say(`block ${event.at} is not open`);
        open = null;
        break;
      case "usage":
        usageSeen += 1;
        if (usageSeen > 1) say("second usage");
        break;
      case "finish":
        if (open) say(`block ${open.at} is still open`);
        if (usageSeen === 0) say("no usage before it");
        ended = "finish";
        break;
      case "fail":
        ended = "fail";
        break;
    }
  });
  if (complete && !ended) wrong.push("neither finish nor fail");
  return wrong;
}

function fits(type: "text" | "json" | "bytes" | "note", kind: BlockKind): boolean {
  if (type === "text") return TEXT_KINDS.has(kind);
  if (type === "json") return JSON_KINDS.has(kind);
  if (type === "bytes") return BYTES_KINDS.has(kind);
  return true;
}
