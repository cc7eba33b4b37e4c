// Names of the OpenAI Responses wire format, with the mappings of its words.
// Unknown words map to "other".
import type { HostedKind } from "../canonical.ts";

/** Request fields with a canonical place; all others are extras. */
export const REQUEST_FIELDS: ReadonlySet<string> = new Set([
  "model",
  "input",
  "instructions",
  "max_output_tokens",
  "temperature",
  "top_p",
  "top_logprobs",
  "parallel_tool_calls",
  "metadata",
  "user",
  "service_tier",
  "stream",
  "reasoning",
  "text",
  "tools",
  "tool_choice",
]);

/** State and background work live at the provider: refused by name towards another dialect. */
export const MUST_CARRY: readonly string[] = ["previous_response_id", "conversation", "prompt", "background"];

/** Fields of the response object that repeat the request. */
export const ECHOED_FIELDS: readonly string[] = [
  "instructions",
  "max_output_tokens",
  "parallel_tool_calls",
  "previous_response_id",
  "reasoning",
  "store",
  "temperature",
  "text",
  "tool_choice",
  "tools",
  "top_p",
  "truncation",
  "metadata",
  "user",
  "service_tier",
];

export function hostedKind(type: string): HostedKind {
  if (type.startsWith("web_search")) return "web-search";
  if (type === "code_interpreter") return "code-execution";
  return type === "file_search" ? "file-search" : "other";
}

/** Wire forms for hosted tools that other dialects ask for. */
export const HOSTED_TOOLS: Partial<Record<HostedKind, Record<string, unknown>>> = {
  "web-search": { type: "web_search" },
  "code-execution": { type: "code_interpreter", container: { type: "auto" } },
};

/** Output items that record what a hosted tool did. */
export const HOSTED_ITEM = /_call$|_call_output$|^mcp_|^compaction$|^tool_search/;

/** Encrypted reasoning needs its item's id beside it: both travel in one signature. */
export function packReasoning(id: string, encrypted: string): string {
  return `${id}~${encrypted}`;
}

export function unpackReasoning(value: string): { id: string; encrypted: string } {
  const cut = value.indexOf("~");
  return cut === -1
    ? { id: "", encrypted: value }
    : { id: value.slice(0, cut), encrypted: value.slice(cut + 1) };
}

/** The smallest limit on an answer that the API takes: observed, "Expected a value >= 16". */
export const LEAST_OUTPUT_TOKENS = 16;
