// What Dify apps answer, whole and as events, in canonical form.
// Refuses to call a stream whole before message_end (of workflows: workflow_finished).
import type { Answer } from "../../protocol/assemble.ts";
import { collect } from "../../protocol/assemble.ts";
import type { JsonObject } from "../../protocol/canonical.ts";
import type { CanonicalEvent } from "../../protocol/events.ts";
import { asNumber, asObject, asString, asText, parseJson } from "../../protocol/json.ts";
import { Failure } from "../../shared/failures.ts";
import { boundedCount, emptyUsage } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";
import { sseDecoder } from "./answers.ts";
import type { ByteDecoder } from "./answers.ts";
import type { DifyMode } from "./dify.ts";
import { createTextEvents } from "./text-events.ts";

/** Dify folds thoughts into HTML; clients know them between think tags. */
function withThinkTags(text: string): string {
  return text
    .replace(/<details[^>]*>\s*<summary>\s*Thinking\.\.\.\s*<\/summary>\n?/g, "<think>\n")
    .replaceAll("</details>", "</think>");
}

function usageOf(metadata: unknown): Usage | null {
  const wire = asObject(asObject(metadata)?.["usage"]);
  if (!wire) return null;
  const usage = emptyUsage();
  usage.raw = wire;
  usage.input.fresh = boundedCount(wire["prompt_tokens"]);
  usage.output.text = boundedCount(wire["completion_tokens"]);
  return usage;
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

export function createDifyDecoder(mode: DifyMode): ByteDecoder<CanonicalEvent> {
  const events = createTextEvents();
  let hasText = false;
  const say = (text: string): CanonicalEvent[] => {
    hasText ||= text !== "";
    return events.text(withThinkTags(text));
  };
  const finishWorkflow = (data: JsonObject | undefined): CanonicalEvent[] => {
    const status = asString(data?.["status"]);
    if (status === "failed") return events.fail(502, "workflow_failed", asString(data?.["error"]) ?? status);
    if (mode !== "workflow") return [];
    const rest = hasText ? [] : say(outputText(data?.["outputs"]));
    return [...rest, ...events.finish(status === "stopped" ? "other" : "stop", status ?? null, null)];
  };
  return sseDecoder<CanonicalEvent>(
    (frame) => {
      const wire = asObject(parseJson(frame.data));
      const data = asObject(wire?.["data"]);
      switch (wire?.["event"]) {
        case "message":
        case "agent_message":
          return say(asString(wire["answer"]) ?? "");
        case "text_chunk":
          return mode === "workflow" ? say(asString(data?.["text"]) ?? "") : [];
        case "reasoning_chunk":
          return events.thinking(asString(data?.["reasoning"]) ?? "");
        case "message_end":
          return events.finish("stop", "message_end", usageOf(wire["metadata"]));
        case "workflow_finished":
          return finishWorkflow(data);
        case "error": {
          const status = asNumber(wire["status"]) ?? 500;
          const code = asString(wire["code"]) ?? "error";
          return events.fail(status, code, asString(wire["message"]) ?? code);
        }
        default:
          return [];
      }
    },
    () => events.end(),
  );
}

/** A blocking answer. Throws the failure of a workflow that failed. */
export function difyAnswer(body: JsonObject, mode: DifyMode): Answer {
  const events = createTextEvents(asString(body["message_id"]) ?? asString(body["workflow_run_id"]));
  if (mode !== "workflow") {
    return collect([
      ...events.text(withThinkTags(asString(body["answer"]) ?? "")),
      ...events.finish("stop", "message_end", usageOf(body["metadata"])),
    ]);
  }
  const data = asObject(body["data"]);
  if (data?.["status"] === "failed")
    throw new Failure("upstream-down", "upstream_down", {
      retryable: true,
      internal: asString(data["error"]) ?? "workflow failed",
    });
  return collect([
    ...events.text(withThinkTags(outputText(data?.["outputs"]))),
    ...events.finish("stop", "succeeded", null),
  ]);
}
