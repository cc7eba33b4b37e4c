// Mistral's SDK, which checks every answer against its schema.
import { Mistral } from "@mistralai/mistralai";
import { main, QUESTION } from "./main.mjs";

function chat(url, key) {
  const client = new Mistral({ serverURL: url, apiKey: key, retryConfig: { strategy: "none" } });
  const messages = [{ role: "user", content: QUESTION }];
  const textOf = (content) =>
    typeof content === "string" ? content : (content ?? []).map(({ text }) => text ?? "").join("");
  return {
    text: async (model) =>
      textOf((await client.chat.complete({ model, messages })).choices[0].message.content),
    async stream(model) {
      let text = "";
      for await (const { data } of await client.chat.stream({ model, messages }))
        text += textOf(data.choices[0]?.delta.content);
      return text;
    },
  };
}

await main({ chat });
