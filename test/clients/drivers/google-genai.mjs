// Google's Gen AI SDK: generateContent, whole and streamed, with what it got back in the second turn.
import { GoogleGenAI } from "@google/genai";
import { main, QUESTION, TOOL, WEATHER } from "./main.mjs";

function generate(url, key) {
  const client = new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: url } });
  const config = { thinkingConfig: { includeThoughts: true } };
  const asked = [{ role: "user", parts: [{ text: QUESTION }] }];
  const declared = { name: TOOL.name, description: TOOL.description, parametersJsonSchema: TOOL.schema };
  const tools = [{ functionDeclarations: [declared] }];
  const textOf = (parts) => parts.map(({ text, thought }) => (thought ? "" : (text ?? ""))).join("");
  async function streamed(body) {
    const parts = [];
    for await (const chunk of await client.models.generateContentStream(body))
      parts.push(...(chunk.candidates?.[0]?.content?.parts ?? []));
    return parts;
  }
  return {
    text: async (model) => (await client.models.generateContent({ model, contents: asked, config })).text,
    stream: async (model) => textOf(await streamed({ model, contents: asked, config })),
    async loop(model) {
      const parts = await streamed({ model, contents: asked, config: { ...config, tools } });
      const results = parts
        .filter(({ functionCall }) => functionCall)
        .map(({ functionCall: { id, name } }) => ({
          functionResponse: { ...(id ? { id } : {}), name, response: { output: WEATHER } },
        }));
      const contents = [...asked, { role: "model", parts }, { role: "user", parts: results }];
      return textOf(await streamed({ model, contents, config: { ...config, tools } }));
    },
  };
}

await main({ generate });
