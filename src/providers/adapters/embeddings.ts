// Embeddings of providers with a form of their own: the texts of a request, and the answer in OpenAI's form.
// Refuses token lists, which only OpenAI's own models can read, and answers with fewer vectors than texts.
import type { JsonObject } from "../../protocol/canonical.ts";
import { cannotCarry } from "../../protocol/carry.ts";
import { OWN_ANSWER } from "../../protocol/gemini/embed.ts";
import { Failure } from "../../shared/failures.ts";
import type { AdapterCall } from "../adapter.ts";
import { jsonResponse } from "../adapter-kit.ts";

/** The texts to embed, in order. Throws `unsupported_field` for token lists. */
export function embeddingTexts(call: AdapterCall): string[] {
  const { input } = call.body;
  const list: unknown[] = Array.isArray(input) ? input : [input];
  if (!list.every((item) => typeof item === "string")) throw cannotCarry("input (token list)");
  return list;
}

/** What Google's answer, and each of its vectors, says besides what OpenAI's form has a place for. */
export interface OwnAnswer {
  answer?: JsonObject | undefined;
  vectors: readonly (JsonObject | undefined)[];
}

/** An OpenAI list of vectors; the gateway counts where `tokens` is undefined. `own`: for clients of the provider's own API. */
export function embeddingsAnswer(
  call: AdapterCall,
  vectors: readonly unknown[],
  tokens: number | undefined,
  own?: OwnAnswer,
): Response {
  const wanted = embeddingTexts(call).length;
  if (vectors.length !== wanted || !vectors.every(Array.isArray))
    throw new Failure("upstream-down", "upstream_bad_answer", { retryable: true });
  const besides = (said: JsonObject | undefined): JsonObject => (said ? { [OWN_ANSWER]: said } : {});
  return jsonResponse({
    object: "list",
    data: vectors.map((embedding, index) => ({
      object: "embedding",
      index,
      embedding,
      ...besides(own?.vectors[index]),
    })),
    model: call.model,
    ...(tokens === undefined ? {} : { usage: { prompt_tokens: tokens, total_tokens: tokens } }),
    ...besides(own?.answer),
  });
}
