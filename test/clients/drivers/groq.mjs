// Groq's SDK, whose calls lie below /openai/v1.
import Groq from "groq-sdk";
import { main, QUESTION } from "./main.mjs";

function chat(url, key) {
  const client = new Groq({ baseURL: url, apiKey: key, maxRetries: 0 });
  const messages = [{ role: "user", content: QUESTION }];
  return {
    text: async (model) =>
      (await client.chat.completions.create({ model, messages })).choices[0].message.content,
    async stream(model) {
      let text = "";
      for await (const chunk of await client.chat.completions.create({ model, messages, stream: true }))
        text += chunk.choices[0]?.delta.content ?? "";
      return text;
    },
  };
}

await main({ chat });
