// A channel's own system prompt, written into a request in the words of its dialect.
// Leaves a client's own prompt alone unless it is told to stand before it, and never moves a cache mark.
import type { DialectName } from "../../protocol/canonical.ts";
import { asList, asObject } from "../../protocol/json.ts";
import type { Json } from "./endpoint.ts";
import type { Changes } from "../wire/patch-json.ts";

const SYSTEM_ROLES: readonly unknown[] = ["system", "developer"];

function isSystem(message: unknown): boolean {
  return SYSTEM_ROLES.includes(asObject(message)?.["role"]);
}

/** The prompt in front of what a client wrote: texts are joined, lists get one part more. */
function before(prompt: string, content: unknown, part: unknown): unknown {
  if (Array.isArray(content)) return [part, ...(content as unknown[])];
  return typeof content === "string" && content !== "" ? `${prompt}\n${content}` : prompt;
}

function ofMessages(body: Json, prompt: string, isFirst: boolean): Changes | undefined {
  const messages = asList(body["messages"]);
  const at = messages.findIndex(isSystem);
  if (at === -1) return { messages: [{ role: "system", content: prompt }, ...messages] };
  if (!isFirst) return undefined;
  const message = asObject(messages[at]);
  const content = before(prompt, message?.["content"], { type: "text", text: prompt });
  return { messages: messages.with(at, { ...message, content }) };
}

function ofResponses(body: Json, prompt: string, isFirst: boolean): Changes | undefined {
  const { instructions } = body;
  const hasOwn =
    (typeof instructions === "string" && instructions !== "") || asList(body["input"]).some(isSystem);
  if (hasOwn && !isFirst) return undefined;
  return { instructions: before(prompt, instructions, undefined) };
}

function ofGemini(body: Json, prompt: string, isFirst: boolean): Changes | undefined {
  const key = body["system_instruction"] === undefined ? "systemInstruction" : "system_instruction";
  const own = body[key];
  const parts = typeof own === "string" ? [{ text: own }] : asList(asObject(own)?.["parts"]);
  if (parts.length === 0) return { [key]: { parts: [{ text: prompt }] } };
  if (!isFirst) return undefined;
  return { [key]: { ...asObject(own), parts: [{ text: prompt }, ...parts] } };
}

/** Top-level changes; undefined where the client's own prompt stands. `isFirst`: ours goes before it. */
export function systemPromptChanges(
  dialect: DialectName,
  body: Json,
  prompt: string,
  isFirst: boolean,
): Changes | undefined {
  switch (dialect) {
    case "openai-chat":
      return Array.isArray(body["messages"]) ? ofMessages(body, prompt, isFirst) : undefined;
    case "openai-responses":
      return ofResponses(body, prompt, isFirst);
    case "gemini":
      return ofGemini(body, prompt, isFirst);
    case "anthropic": {
      const { system } = body;
      const hasOwn = Array.isArray(system) ? system.length > 0 : typeof system === "string" && system !== "";
      if (hasOwn && !isFirst) return undefined;
      return { system: before(prompt, system, { type: "text", text: prompt }) };
    }
  }
}
