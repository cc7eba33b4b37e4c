// What Dify apps answer, whole and as events, in canonical form.
// Refuses to call a stream whole before message_end (of workflows: workflow_finished).
import type { JsonObject } from "../../protocol/canonical.ts";
import type { CanonicalEvent } from "../../protocol/events.ts";
import { asNumber, asObject, asString, asText, parseJson } from "../../protocol/json.ts";
import { Failure } from "../../shared/failures.ts";
import { emptyUsage } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";
import { eventsOf, eventWriter, streamFailure, usageOf } from "../adapter-kit.ts";
import type { EventWriter } from "../adapter-kit.ts";
import type { DifyMode } from "./dify.ts";

const THINK = "<think>\n";

/** Dify folds thoughts into HTML; clients know them between think tags. */
function withThinkTags(text: string): string {
  return text
    .replace(/<details[^>]*>\s*<summary>\s*Thinking\.\.\.\s*<\/summary>\n?/g, THINK)
    .replaceAll("</details>", "</think>");
}

const TAG_STARTS = ["<details", "</details>"];
/** `<details …><summary>Thinking...</summary>` that has begun and may go on. */
const UNFINISHED = /^<details[^>]*(?:>\s*(?:<[^>]*(?:>\s*[A-Za-z.]*\s*(?:<[^>]*)?)?)?)?$/;
const MAX_TAG_CHARS = 200;

/** Where a tag begins that the text does not end; the text's length where none does. */
function unfinishedTag(text: string): number {
  const begun = text.lastIndexOf("<details");
  if (begun !== -1 && text.length - begun <= MAX_TAG_CHARS && UNFINISHED.test(text.slice(begun)))
    return begun;
  for (const tag of TAG_STARTS)
    for (let length = Math.min(tag.length - 1, text.length); length > 0; length--)
      if (text.endsWith(tag.slice(0, length))) return text.length - length;
  return text.length;
}

/** The same over pieces: a tag may be cut anywhere, and is held back until it is whole, or is none. */
function thinkTags(): { push: (piece: string) => string; end: () => string } {
  let held = "";
  // The line end behind a tag goes with it, also where it comes later.
  let isBehindTag = false;
  return {
    push(piece) {
      if (piece === "") return "";
      const read = isBehindTag && piece.startsWith("\n") ? piece.slice(1) : piece;
      const text = withThinkTags(held + read);
      isBehindTag = text.endsWith(THINK) && !read.endsWith("\n");
      const at = unfinishedTag(text);
      held = text.slice(at);
      return text.slice(0, at);
    },
    end() {
      const rest = held;
      held = "";
      return rest;
    },
  };
}

function usageIn(metadata: unknown): Usage {
  const wire = asObject(asObject(metadata)?.["usage"]);
  return usageOf(wire?.["prompt_tokens"], wire?.["completion_tokens"], wire);
}

/** The text among a workflow's outputs: under a usual name, the only one there is, or all of them as JSON. */
function outputText(outputs: unknown): string {
  const wire = asObject(outputs);
  if (!wire) return outputs === undefined || outputs === null ? "" : asText(outputs);
  for (const name of ["text", "answer", "output", "result"]) {
    const value = asString(wire[name]);
    if (value !== undefined) return value;
  }
  const values = Object.values(wire);
  return values.length === 1 ? asText(values[0]) : JSON.stringify(wire);
}

/** The end of a workflow; of chats it only matters when it failed. */
function workflowEnd(
  writer: EventWriter,
  mode: DifyMode,
  data: JsonObject | undefined,
  hasText: boolean,
): CanonicalEvent[] {
  const status = asString(data?.["status"]);
  if (status === "failed")
    return writer.fail(streamFailure(502, "workflow_failed", asString(data?.["error"]) ?? status));
  if (mode !== "workflow") return [];
  // Workflows without a streaming node say their text only here.
  const rest = hasText ? [] : writer.text(withThinkTags(outputText(data?.["outputs"])));
  const reason = status === "stopped" ? "other" : "stop";
  return [...rest, ...writer.finish(reason, status ?? null, emptyUsage())];
}

/** Trouble of the operator's own account at the model's provider, which Dify answers as if the request were wrong. */
const ACCOUNT_TROUBLE: Readonly<Record<string, number>> = {
  provider_quota_exceeded: 402,
  provider_not_initialize: 403,
};

/** The status that an error means. */
export function difyStatus(status: number, code: string): number {
  return ACCOUNT_TROUBLE[code] ?? status;
}

export async function* streamedAnswer(response: Response, mode: DifyMode): AsyncGenerator<CanonicalEvent> {
  const writer = eventWriter();
  const tags = thinkTags();
  let hasText = false;
  for await (const { data: text } of eventsOf(response)) {
    const wire = asObject(parseJson(text));
    const data = asObject(wire?.["data"]);
    switch (wire?.["event"]) {
      case "message":
      case "agent_message":
        yield* writer.text(tags.push(asString(wire["answer"]) ?? ""));
        break;
      case "text_chunk":
        // Chatflows say the same text as messages.
        if (mode !== "workflow") break;
        hasText = true;
        yield* writer.text(tags.push(asString(data?.["text"]) ?? ""));
        break;
      case "reasoning_chunk":
        yield* writer.text(tags.end());
        yield* writer.text(asString(data?.["reasoning"]) ?? "", "thinking");
        break;
      case "message_end":
        yield* writer.text(tags.end());
        yield* writer.finish("stop", "message_end", usageIn(wire["metadata"]));
        break;
      case "workflow_finished":
        yield* writer.text(tags.end());
        yield* workflowEnd(writer, mode, data, hasText);
        break;
      case "error": {
        yield* writer.text(tags.end());
        const code = asString(wire["code"]) ?? "error";
        const status = difyStatus(asNumber(wire["status"]) ?? 500, code);
        yield* writer.fail(streamFailure(status, code, asString(wire["message"]) ?? code));
        break;
      }
      default:
    }
  }
  writer.end();
}

/** A blocking answer. Throws the failure of a workflow that failed. */
export function completeAnswer(body: JsonObject, mode: DifyMode): CanonicalEvent[] {
  const writer = eventWriter();
  if (mode !== "workflow") {
    return [
      ...writer.start(asString(body["message_id"])),
      ...writer.text(withThinkTags(asString(body["answer"]) ?? "")),
      ...writer.finish("stop", "message_end", usageIn(body["metadata"])),
    ];
  }
  const data = asObject(body["data"]);
  if (data?.["status"] === "failed")
    throw new Failure("upstream-down", "upstream_down", {
      retryable: true,
      internal: asString(data["error"]) ?? "workflow failed",
    });
  return [...writer.start(asString(body["workflow_run_id"])), ...workflowEnd(writer, mode, data, false)];
}
