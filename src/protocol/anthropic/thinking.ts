// What Anthropic takes beside thinking, for those who ask it to think: clients of other dialects, and names with a suffix.
// Refuses to send a wish that is a certain error: it is left out instead, by name.
import type { JsonObject } from "../canonical.ts";
import { drop } from "../carry.ts";
import { asObject } from "../json.ts";
import type { ModelTraits } from "./models.ts";

/** Thoughts that are left out by default since 4.7: whoever asks to think wants to read them. */
export const SHOWN_ADAPTIVE = { type: "adaptive", display: "summarized" } as const;

/** Whether the request may think: no tool is forced, and with a budget the tool turn under way has its thoughts. */
export function mayThink(body: Readonly<JsonObject>, style: ModelTraits["style"]): boolean {
  const choice = asObject(body["tool_choice"])?.["type"];
  if (choice === "any" || choice === "tool") return false;
  return style === "effort" || !openTurnLacksThinking(body["messages"]);
}

/** Anthropic refuses a budget of thinking when a tool turn under way does not begin with signed thinking. */
export function openTurnLacksThinking(messages: unknown): boolean {
  const list = Array.isArray(messages) ? messages.map(asObject) : [];
  for (let i = list.length - 1; i >= 0; i--) {
    const content = list[i]?.["content"];
    const types = Array.isArray(content) ? content.map((block) => asObject(block)?.["type"]) : [];
    if (list[i]?.["role"] === "user" && !types.includes("tool_result")) return false;
    if (list[i]?.["role"] === "assistant") {
      return types.includes("tool_use") && !String(types[0]).endsWith("thinking");
    }
  }
  return false;
}

/** With thinking on, sampling must be left at its defaults; top_p has a little room with a budget. */
export function dropSampling(body: JsonObject, dropped: string[], lowestTopP: number): void {
  const least: Record<string, number> = {
    temperature: 1,
    top_k: Infinity,
    top_p: lowestTopP,
  };
  for (const key in least) {
    const value = body[key];
    if (typeof value !== "number" || value >= (least[key] ?? 0)) continue;
    delete body[key];
    drop(dropped, key);
  }
}
