// One call of each operation, as its users make it: the official client where it has a method, else plain HTTP in the
// operation's own dialect. Each gives what the suite compares. Refuses answers that are not whole.
import OpenAI, { toFile } from "openai";
import type { Operation } from "../../src/providers/define.ts";

export interface Site {
  url: string;
  key: string;
  client: OpenAI;
}

export interface OperationCall {
  /** The answer as text. */
  whole: (site: Site, model: string) => Promise<string>;
  /** The same, streamed; absent where the operation knows no streams. */
  streamed?: (site: Site, model: string) => Promise<string>;
  /** What the answer holds; the words of the scene where absent. */
  holds?: string;
}

const HI = [{ role: "user" as const, content: "hi" }];
const sound = () => toFile(new Uint8Array(64), "a.wav", { type: "audio/wav" });
const picture = () => toFile(new Uint8Array(64), "a.png", { type: "image/png" });

async function post(
  site: Site,
  path: string,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<string> {
  const response = await fetch(site.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${site.key}`, "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${response.status}: ${text}`);
  return text;
}

const frames = (text: string): Record<string, unknown>[] =>
  text
    .split("\n")
    .filter((line) => line.startsWith("data: {"))
    .map((line) => JSON.parse(line.slice(6)) as Record<string, unknown>);

type Deep = { [field: string]: Deep } & Deep[] & string;

const messagesOf = (model: string): object => ({ model, max_tokens: 64, messages: HI });
const contentsOf = { contents: [{ role: "user", parts: [{ text: "hi" }] }] };

/** Every operation a row may declare, but for the socket of realtime, which the suite opens itself. */
export const OPERATION_CALLS: Readonly<Record<Exclude<Operation, "realtime">, OperationCall>> = {
  chat: {
    async whole({ client }, model) {
      const answer = await client.chat.completions.create({ model, messages: HI });
      return answer.choices[0]?.message.content ?? "";
    },
    async streamed({ client }, model) {
      const answer = await client.chat.completions.stream({ model, messages: HI }).finalChatCompletion();
      return answer.choices[0]?.message.content ?? "";
    },
  },
  responses: {
    whole: async ({ client }, model) => (await client.responses.create({ model, input: "hi" })).output_text,
    async streamed({ client }, model) {
      const answer = await client.responses.stream({ model, input: "hi" }).finalResponse();
      return answer.output_text;
    },
  },
  messages: {
    async whole(site, model) {
      const answer = JSON.parse(await post(site, "/v1/messages", messagesOf(model))) as Deep;
      return answer["content"]?.[0]?.["text"] ?? "";
    },
    async streamed(site, model) {
      const events = frames(await post(site, "/v1/messages", { ...messagesOf(model), stream: true }));
      if (events.at(-1)?.["type"] !== "message_stop") throw new Error("no message_stop");
      return events.map((event) => (event as Deep)["delta"]?.["text"] ?? "").join("");
    },
  },
  gemini: {
    async whole(site, model) {
      const answer = JSON.parse(
        await post(site, `/v1beta/models/${model}:generateContent`, contentsOf),
      ) as Deep;
      return answer["candidates"]?.[0]?.["content"]?.["parts"]?.[0]?.["text"] ?? "";
    },
    async streamed(site, model) {
      const path = `/v1beta/models/${model}:streamGenerateContent?alt=sse`;
      const events = frames(await post(site, path, contentsOf)) as unknown as Deep[];
      if (events.at(-1)?.["candidates"]?.[0]?.["finishReason"] !== "STOP") throw new Error("no finishReason");
      return events
        .map((event) => event["candidates"]?.[0]?.["content"]?.["parts"]?.[0]?.["text"] ?? "")
        .join("");
    },
  },
  completions: {
    async whole({ client }, model) {
      return (await client.completions.create({ model, prompt: "hi" })).choices[0]?.text ?? "";
    },
    async streamed({ client }, model) {
      let text = "";
      for await (const chunk of await client.completions.create({ model, prompt: "hi", stream: true }))
        text += chunk.choices[0]?.text ?? "";
      return text;
    },
  },
  embeddings: {
    async whole({ client }, model) {
      const answer = await client.embeddings.create({ model, input: ["hi"] });
      return JSON.stringify(answer.data[0]?.embedding);
    },
    holds: "[0.25,-0.5,1]",
  },
  moderations: {
    async whole({ client }, model) {
      return String((await client.moderations.create({ model, input: "hi" })).results[0]?.flagged);
    },
    holds: "false",
  },
  "image-generations": {
    async whole({ client }, model) {
      const answer = await client.images.generate({ model, prompt: "a square" });
      return answer.data?.[0]?.url ?? answer.data?.[0]?.b64_json ?? "";
    },
    holds: "picture",
  },
  "image-edits": {
    async whole({ client }, model) {
      const answer = await client.images.edit({ model, prompt: "a circle", image: await picture() });
      return answer.data?.[0]?.url ?? "";
    },
    holds: "picture",
  },
  speech: {
    async whole({ client }, model) {
      return (await client.audio.speech.create({ model, input: "hi", voice: "alloy" })).text();
    },
    holds: "sound",
  },
  transcriptions: {
    async whole({ client }, model) {
      return (await client.audio.transcriptions.create({ model, file: await sound() })).text;
    },
  },
  translations: {
    async whole({ client }, model) {
      return (await client.audio.translations.create({ model, file: await sound() })).text;
    },
  },
  rerank: {
    async whole(site, model) {
      const answer = await post(site, "/v1/rerank", { model, query: "hi", documents: ["a", "b"] });
      return JSON.stringify((JSON.parse(answer) as { results: unknown }).results);
    },
    holds: '[{"index":0,"relevance_score":0.9}]',
  },
};
