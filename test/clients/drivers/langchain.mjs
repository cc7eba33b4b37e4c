// LangChain for Node: the three providers' chat models behind one interface.
import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { ChatAnthropic } from "@langchain/anthropic";
import { ChatGoogleGenerativeAI } from "@langchain/google-genai";
import { ChatOpenAI } from "@langchain/openai";
import { main, QUESTION, TOOL, WEATHER } from "./main.mjs";

function surface(chatOf) {
  const definition = {
    type: "function",
    function: { name: TOOL.name, description: TOOL.description, parameters: TOOL.schema },
  };
  return {
    text: async (model) => (await chatOf(model).invoke(QUESTION)).text,
    async stream(model) {
      let text = "";
      for await (const chunk of await chatOf(model).stream(QUESTION)) text += chunk.text;
      return text;
    },
    async loop(model) {
      const chat = chatOf(model).bindTools([definition]);
      const asked = [new HumanMessage(QUESTION)];
      let said;
      for await (const chunk of await chat.stream(asked)) said = said ? said.concat(chunk) : chunk;
      const results = said.tool_calls.map(
        ({ id, name }) => new ToolMessage({ tool_call_id: id ?? "", name, content: WEATHER }),
      );
      return (await chat.invoke([...asked, said, ...results])).text;
    },
  };
}

const openai = (url, key, more) => (model) =>
  new ChatOpenAI({ model, apiKey: key, maxRetries: 0, configuration: { baseURL: `${url}/v1` }, ...more });

await main({
  chat: (url, key) => surface(openai(url, key, { useResponsesApi: false })),
  responses: (url, key) => surface(openai(url, key, { useResponsesApi: true })),
  messages: (url, key) =>
    surface((model) => new ChatAnthropic({ model, apiKey: key, anthropicApiUrl: url, maxRetries: 0 })),
  generate: (url, key) =>
    surface((model) => new ChatGoogleGenerativeAI({ model, apiKey: key, baseUrl: url, maxRetries: 0 })),
});
