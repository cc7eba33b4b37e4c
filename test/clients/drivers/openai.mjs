// OpenAI's SDK, releases 4 to 7: chat completions and responses.
import OpenAI from "openai";
import { main, QUESTION, TOOL, WEATHER } from "./main.mjs";

const make = (url, key) => new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });

function chat(url, key) {
  const client = make(url, key);
  const messages = [{ role: "user", content: QUESTION }];
  const tools = [
    {
      type: "function",
      function: { name: TOOL.name, description: TOOL.description, parameters: TOOL.schema },
    },
  ];
  return {
    async text(model) {
      return (await client.chat.completions.create({ model, messages })).choices[0].message.content;
    },
    async stream(model) {
      let text = "";
      const options = { model, messages, stream: true, stream_options: { include_usage: true } };
      for await (const chunk of await client.chat.completions.create(options))
        text += chunk.choices[0]?.delta.content ?? "";
      return text;
    },
    async loop(model) {
      const first = await client.chat.completions.create({ model, messages, tools });
      const { message } = first.choices[0];
      const results = message.tool_calls.map(({ id }) => ({
        role: "tool",
        tool_call_id: id,
        content: WEATHER,
      }));
      const again = { model, messages: [...messages, message, ...results], tools };
      return (await client.chat.completions.create(again)).choices[0].message.content;
    },
  };
}

function responses(url, key) {
  const client = make(url, key);
  const tools = [
    {
      type: "function",
      name: TOOL.name,
      description: TOOL.description,
      parameters: { ...TOOL.schema, additionalProperties: false },
      strict: true,
    },
  ];
  const include = ["reasoning.encrypted_content"];
  async function streamed(model, input, offered) {
    let text = "";
    let done;
    const more = { store: false, include, ...(offered ? { tools: offered } : {}) };
    for await (const event of await client.responses.create({ model, input, ...more, stream: true })) {
      if (event.type === "response.output_text.delta") text += event.delta;
      if (event.type === "response.completed") done = event.response;
    }
    return { text, output: done.output };
  }
  return {
    async text(model) {
      return (await client.responses.create({ model, input: QUESTION, store: false })).output_text;
    },
    async stream(model) {
      return (await streamed(model, QUESTION)).text;
    },
    async loop(model) {
      const input = [{ role: "user", content: QUESTION }];
      const { output } = await streamed(model, input, tools);
      const results = output
        .filter(({ type }) => type === "function_call")
        .map(({ call_id }) => ({ type: "function_call_output", call_id, output: WEATHER }));
      return (await streamed(model, [...input, ...output, ...results], tools)).text;
    },
  };
}

await main({ chat, responses });
