// The call of the playground as code: curl, Python, Node, with the same body and the server's address.
// Refuses to hold a key: the place of it is marked.
import type { ChatBody } from "./request.ts";

export const CODE_LANGUAGES = ["curl", "Python", "Node"] as const;
export type CodeLanguage = (typeof CODE_LANGUAGES)[number];

const KEY = "sk-...";

/** The group is the key's business there, hence left out. */
export function sampleOf(language: CodeLanguage, address: string, { group, ...body }: ChatBody): string {
  void group;
  const base = `${address.replace(/\/+$/, "")}/v1`;
  if (language === "curl") return curl(base, body);
  return language === "Python" ? python(base, body) : node(base, body);
}

function curl(base: string, body: object): string {
  // Inside single quotes a shell changes nothing; a quote itself is closed, escaped, opened again.
  const json = JSON.stringify(body, null, 2).replaceAll("'", `'\\''`);
  return [
    `curl ${base}/chat/completions \\`,
    `  -H "Authorization: Bearer ${KEY}" \\`,
    `  -H "Content-Type: application/json" \\`,
    `  -d '${json}'`,
  ].join("\n");
}

/** JSON texts and numbers are Python's too; only the three words differ. */
function pythonValue(value: unknown, indent: string): string {
  if (value === true) return "True";
  if (value === false) return "False";
  if (value === null) return "None";
  const inner = `${indent}    `;
  if (Array.isArray(value))
    return `[\n${value.map((each) => `${inner}${pythonValue(each, inner)},\n`).join("")}${indent}]`;
  if (typeof value === "object") {
    const entries = Object.entries(value as object).map(
      ([name, each]) => `${JSON.stringify(name)}: ${pythonValue(each, inner)}`,
    );
    return `{${entries.join(", ")}}`;
  }
  return JSON.stringify(value);
}

function python(base: string, body: Omit<ChatBody, "group">): string {
  const fields = Object.entries(body).map(([name, value]) => `    ${name}=${pythonValue(value, "    ")},`);
  return [
    `from openai import OpenAI`,
    ``,
    `client = OpenAI(base_url=${JSON.stringify(base)}, api_key="${KEY}")`,
    `answer = client.chat.completions.create(`,
    ...fields,
    `)`,
    ...(body.stream
      ? [
          `for chunk in answer:`,
          `    if chunk.choices:`,
          `        print(chunk.choices[0].delta.content or "", end="", flush=True)`,
        ]
      : [`print(answer.choices[0].message.content)`]),
  ].join("\n");
}

function node(base: string, body: Omit<ChatBody, "group">): string {
  return [
    `import OpenAI from "openai";`,
    ``,
    `const client = new OpenAI({ baseURL: ${JSON.stringify(base)}, apiKey: "${KEY}" });`,
    `const answer = await client.chat.completions.create(${JSON.stringify(body, null, 2)});`,
    ...(body.stream
      ? [
          `for await (const chunk of answer) {`,
          `  process.stdout.write(chunk.choices[0]?.delta?.content ?? "");`,
          `}`,
        ]
      : [`console.log(answer.choices[0].message.content);`]),
  ].join("\n");
}
