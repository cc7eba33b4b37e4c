// How many answers one request is for: each of them may be as long as its limit allows.
import type { DialectName } from "../../protocol/canonical.ts";
import { asObject } from "../../protocol/json.ts";
import type { Json } from "./endpoint.ts";

/** Answers that a request of the dialect asks for; legacy completions answer each text of a list. */
export function choicesOf(dialect: DialectName, json: Json): number {
  if (dialect === "gemini") {
    const config = asObject(json["generationConfig"] ?? json["generation_config"]);
    return countOr1(config?.["candidateCount"] ?? config?.["candidate_count"]);
  }
  return Math.max(countOr1(json["n"]), countOr1(json["best_of"])) * promptsIn(json);
}

/** Prompts that are answered each for itself: a list of texts, or of lists of tokens; one list of tokens is one prompt. */
export function promptsIn({ prompt, messages }: Json): number {
  if (!Array.isArray(prompt) || messages !== undefined) return 1;
  return Math.max(1, (prompt as unknown[]).filter((each) => typeof each !== "number").length);
}

function countOr1(value: unknown): number {
  return typeof value === "number" && value > 1 && Number.isFinite(value) ? Math.ceil(value) : 1;
}
