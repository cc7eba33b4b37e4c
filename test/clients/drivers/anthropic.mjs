// Anthropic's SDK, the 0.x line and 1.x: messages, with thinking that goes back in the second turn.
import Anthropic from "@anthropic-ai/sdk";
import { main, QUESTION, TOOL, WEATHER } from "./main.mjs";

function messages(url, key) {
  const client = new Anthropic({ baseURL: url, authToken: key, apiKey: null, maxRetries: 0 });
  const base = { max_tokens: 4096, thinking: { type: "enabled", budget_tokens: 1024 } };
  const asked = [{ role: "user", content: QUESTION }];
  const tools = [{ name: TOOL.name, description: TOOL.description, input_schema: TOOL.schema }];
  const textOf = ({ content }) => content.map((block) => (block.type === "text" ? block.text : "")).join("");
  const stream = (body) => client.messages.stream(body).finalMessage();
  return {
    text: async (model) => textOf(await client.messages.create({ ...base, model, messages: asked })),
    stream: async (model) => textOf(await stream({ ...base, model, messages: asked })),
    async loop(model) {
      const first = await stream({ ...base, model, messages: asked, tools });
      const results = first.content
        .filter(({ type }) => type === "tool_use")
        .map(({ id }) => ({ type: "tool_result", tool_use_id: id, content: WEATHER }));
      const next = [
        ...asked,
        { role: "assistant", content: first.content },
        { role: "user", content: results },
      ];
      return textOf(await stream({ ...base, model, messages: next, tools }));
    },
  };
}

await main({ messages });
