// Ollama's native embeddings, which every release of the server has.
// Refuses token lists: this server only takes texts.
import { cannotCarry } from "../../protocol/carry.ts";
import { asList, asNumber } from "../../protocol/json.ts";
import type { AdapterCall } from "../adapter.ts";
import { jsonResponse, post, readJson } from "../adapter-kit.ts";

/** The texts of an embeddings body; throws for token lists, which only OpenAI's own tokenizer can read. */
export function embeddedTexts(input: unknown): string[] {
  const list = Array.isArray(input) ? (input as unknown[]) : [input];
  return list.map((item) => {
    if (typeof item !== "string") throw cannotCarry("input");
    return item;
  });
}

/** An OpenAI-shaped embeddings answer. `promptTokens` undefined = the provider did not say. */
export function embeddingsAnswer(
  model: string,
  vectors: readonly unknown[],
  promptTokens: number | undefined,
): Response {
  const usage =
    promptTokens === undefined ? {} : { usage: { prompt_tokens: promptTokens, total_tokens: promptTokens } };
  const data = vectors.map((embedding, index) => ({ object: "embedding", index, embedding }));
  return jsonResponse({ object: "list", model, data, ...usage });
}

export async function ollama(call: AdapterCall): Promise<Response> {
  const { temperature, top_p: topP, seed } = call.body;
  const response = await post(call, call.url, {
    model: call.model,
    input: embeddedTexts(call.body["input"]),
    options: { temperature, top_p: topP, seed },
  });
  if (response.status !== 200) return response;
  const body = await readJson(response);
  return embeddingsAnswer(call.model, asList(body["embeddings"]), asNumber(body["prompt_eval_count"]));
}
