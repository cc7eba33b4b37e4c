// Names of the Anthropic Messages wire format, with the mappings of its words.
// Unknown words map to "other".
import type { HostedKind } from "../canonical.ts";
import type { FinishReason } from "../events.ts";

/** Request fields with a canonical place; all others are extras. */
export const REQUEST_FIELDS: ReadonlySet<string> = new Set([
  "model",
  "messages",
  "system",
  "max_tokens",
  "stream",
  "stop_sequences",
  "temperature",
  "top_p",
  "top_k",
  "metadata",
  "service_tier",
  "thinking",
  "output_config",
  "tools",
  "tool_choice",
]);

/** Extras that change what is asked for: refused by name towards another dialect. */
export const MUST_CARRY: readonly string[] = ["container", "mcp_servers"];

const FINISH: Readonly<Record<string, FinishReason>> = {
  end_turn: "stop",
  max_tokens: "length",
  model_context_window_exceeded: "length",
  stop_sequence: "stop-sequence",
  tool_use: "tool-calls",
  pause_turn: "pause",
  refusal: "refusal",
};

export function finishFromWire(raw: string | null | undefined): FinishReason {
  return (raw && FINISH[raw]) || "other";
}

/** The stop_reason for a canonical reason; those without a word of their own end the turn. */
export function finishToWire(reason: FinishReason): string {
  switch (reason) {
    case "length":
      return "max_tokens";
    case "stop-sequence":
      return "stop_sequence";
    case "tool-calls":
      return "tool_use";
    case "pause":
      return "pause_turn";
    case "refusal":
    case "content-filter":
      return "refusal";
    default:
      return "end_turn";
  }
}

/** Which hosted tool a typed tool is; its type carries a date suffix. */
export function hostedKind(type: string): HostedKind {
  if (type.startsWith("web_search_")) return "web-search";
  if (type.startsWith("web_fetch_")) return "url-context";
  return type.startsWith("code_execution_") ? "code-execution" : "other";
}

/** Wire forms for hosted tools that other dialects ask for. */
export const HOSTED_TOOLS: Partial<Record<HostedKind, { type: string; name: string }>> = {
  "web-search": { type: "web_search_20250305", name: "web_search" },
  "url-context": { type: "web_fetch_20250910", name: "web_fetch" },
  "code-execution": { type: "code_execution_20250825", name: "code_execution" },
};
