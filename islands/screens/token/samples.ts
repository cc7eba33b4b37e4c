// Ready code for a key: calls that work as they stand, and what clients ask for when they are set up.
// Refuses placeholders where the real address is known.

export const SAMPLE_NAMES = ["curl", "Python", "Node", "Anthropic", "Gemini", "Claude Code"] as const;
export type SampleName = (typeof SAMPLE_NAMES)[number];

const ANTHROPIC = (base: string, key: string, model: string) => `from anthropic import Anthropic

client = Anthropic(base_url="${base}", api_key="${key}")
answer = client.messages.create(
    model="${model}",
    max_tokens=1024,
    messages=[{"role": "user", "content": "Hello"}],
)
print(answer.content[0].text)`;

const GEMINI = (base: string, key: string, model: string) => `from google import genai
from google.genai import types

client = genai.Client(
    api_key="${key}",
    http_options=types.HttpOptions(base_url="${base}"),
)
answer = client.models.generate_content(model="${model}", contents="Hello")
print(answer.text)`;

const SAMPLES: Record<SampleName, (base: string, key: string, model: string) => string> = {
  curl: (base, key, model) => `curl ${base}/v1/chat/completions \\
  -H "Authorization: Bearer ${key}" \\
  -H "Content-Type: application/json" \\
  -d '${JSON.stringify({ model, messages: [{ role: "user", content: "Hello" }] })}'`,
  Python: (base, key, model) => `from openai import OpenAI

client = OpenAI(base_url="${base}/v1", api_key="${key}")
answer = client.chat.completions.create(
    model="${model}",
    messages=[{"role": "user", "content": "Hello"}],
)
print(answer.choices[0].message.content)`,
  Node: (base, key, model) => `import OpenAI from "openai";

const client = new OpenAI({ baseURL: "${base}/v1", apiKey: "${key}" });
const answer = await client.chat.completions.create({
  model: "${model}",
  messages: [{ role: "user", content: "Hello" }],
});
console.log(answer.choices[0].message.content);`,
  Anthropic: ANTHROPIC,
  Gemini: GEMINI,
  "Claude Code": (base, key, model) => `export ANTHROPIC_BASE_URL="${base}"
export ANTHROPIC_AUTH_TOKEN="${key}"
export ANTHROPIC_MODEL="${model}"
claude`,
};

/** `base`: the server's address without /v1. Model names and keys that hold quotes are nothing that could be called. */
export function sampleCode(name: SampleName, base: string, key: string, model: string): string {
  return SAMPLES[name](base, key, model.replaceAll(/["'\\\n]/g, ""));
}
