// Ready code for a key: after it was made, or asked for from its row.
// Refuses nothing; it shows what the owner may copy anyway.
import { useState } from "react";
import { useT } from "../../lib/i18n.ts";
import { CopyButton } from "../../ui/copy-button.tsx";
import { Notice } from "../../ui/feedback.tsx";
import type { TokenRow } from "./row.ts";

const LANGUAGES = ["curl", "Python", "Node"] as const;
type CodeLanguage = (typeof LANGUAGES)[number];

/** A call that works as it stands, with the server's real address. */
export function sampleCode(language: CodeLanguage, address: string, key: string): string {
  const base = `${address.replace(/\/+$/, "")}/v1`;
  if (language === "curl") {
    return `curl ${base}/chat/completions \\
  -H "Authorization: Bearer ${key}" \\
  -H "Content-Type: application/json" \\
  -d '{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Hello"}]}'`;
  }
  if (language === "Python") {
    return `from openai import OpenAI

client = OpenAI(base_url="${base}", api_key="${key}")
answer = client.chat.completions.create(
    model="gpt-4o-mini",
    messages=[{"role": "user", "content": "Hello"}],
)
print(answer.choices[0].message.content)`;
  }
  return `import OpenAI from "openai";

const client = new OpenAI({ baseURL: "${base}", apiKey: "${key}" });
const answer = await client.chat.completions.create({
  model: "gpt-4o-mini",
  messages: [{ role: "user", content: "Hello" }],
});
console.log(answer.choices[0].message.content);`;
}

export function CreatedKeys({
  keys,
  address,
  onClose,
}: {
  keys: readonly TokenRow[];
  address: string;
  onClose: () => void;
}) {
  const t = useT();
  const [language, setLanguage] = useState<CodeLanguage>("curl");
  const first = `sk-${keys[0]?.key ?? ""}`;
  const code = sampleCode(language, address, first);
  return (
    <Notice tone="success" onClose={onClose}>
      <h2 className="font-semibold">
        {keys.length === 1
          ? t("token.useTitle", { name: keys[0]?.name ?? "" })
          : t("token.createdMany", { count: keys.length })}
      </h2>
      <ul className="mt-2 flex flex-col gap-1">
        {keys.map((row) => (
          <li key={row.id} className="flex items-center gap-2 min-w-0">
            <code className="mono break-all">{`sk-${row.key}`}</code>
            <CopyButton text={`sk-${row.key}`} label={t("token.copyKey", { name: row.name })} />
          </li>
        ))}
      </ul>
      {keys.length > 1 ? (
        <CopyButton
          text={keys.map((row) => `sk-${row.key}`).join("\n")}
          label={t("token.copyAll")}
          withText
          className="mt-2"
        />
      ) : null}
      <div
        className="mt-3 flex flex-wrap items-center gap-2"
        role="group"
        aria-label={t("token.codeLanguage")}
      >
        {LANGUAGES.map((each) => (
          <button
            key={each}
            type="button"
            className="btn btn-sm btn-default"
            aria-pressed={each === language}
            onClick={() => setLanguage(each)}
          >
            {each}
          </button>
        ))}
        <CopyButton text={code} label={t("common.copy")} withText />
      </div>
      <pre className="code-block mt-2">
        <code>{code}</code>
      </pre>
    </Notice>
  );
}
