// Ollama's native embeddings; its conversations are OpenAI-shaped and need no adapter.
// Refuses token lists as input.
import { asList, asNumber } from "../../protocol/json.ts";
import type { Adapter } from "../adapter.ts";
import { answerOf, post } from "../adapter-kit.ts";
import { embeddingsAnswer, embeddingTexts } from "./embeddings.ts";

const OPTIONS = ["seed", "temperature", "top_p", "frequency_penalty", "presence_penalty"] as const;

export const ollama: Adapter = async (call) => {
  const options: Record<string, unknown> = {};
  for (const name of OPTIONS) if (call.body[name] !== undefined) options[name] = call.body[name];
  const dimensions = asNumber(call.body["dimensions"]);
  const response = await post(call, call.url, {
    model: call.model,
    input: embeddingTexts(call),
    ...(dimensions === undefined ? {} : { dimensions }),
    ...(Object.keys(options).length > 0 ? { options } : {}),
  });
  if (response.status !== 200) return response;
  const body = await answerOf(response);
  return embeddingsAnswer(call, asList(body["embeddings"]), asNumber(body["prompt_eval_count"]));
};
