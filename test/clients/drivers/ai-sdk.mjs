// The AI SDK with its own tool loop over the three providers' packages; `openai(model)` speaks Responses.
import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
import { main, QUESTION, TOOL, WEATHER } from "./main.mjs";

function surface(modelOf) {
  const tools = {
    [TOOL.name]: tool({
      description: TOOL.description,
      inputSchema: jsonSchema({ ...TOOL.schema, additionalProperties: false }),
      execute: async () => WEATHER,
    }),
  };
  const base = (model) => ({ model: modelOf(model), prompt: QUESTION, maxRetries: 0 });
  async function streamed(options) {
    let text = "";
    let failure;
    const { textStream } = streamText({ ...options, onError: ({ error }) => (failure = error) });
    for await (const piece of textStream) text += piece;
    if (failure) throw failure;
    return text;
  }
  return {
    text: async (model) => (await generateText(base(model))).text,
    stream: (model) => streamed(base(model)),
    // The same loop whole and streamed: both have to end with the answer.
    async loop(model) {
      const options = { ...base(model), tools, stopWhen: stepCountIs(4) };
      const whole = (await generateText(options)).text;
      const text = await streamed(options);
      return whole === text ? text : `whole "${whole}", streamed "${text}"`;
    },
  };
}

await main({
  responses: (url, key) => surface(createOpenAI({ baseURL: `${url}/v1`, apiKey: key })),
  chat: (url, key) => surface((model) => createOpenAI({ baseURL: `${url}/v1`, apiKey: key }).chat(model)),
  messages: (url, key) => surface(createAnthropic({ baseURL: `${url}/v1`, apiKey: key })),
  generate: (url, key) => surface(createGoogleGenerativeAI({ baseURL: `${url}/v1beta`, apiKey: key })),
});
