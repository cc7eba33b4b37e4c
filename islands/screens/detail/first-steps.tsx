// What to do before there are figures: connect a provider, make a key, call a model once.
// Refuses steps that the visitor may not take: users connect no providers.
import { Check } from "lucide-react";
import { useT } from "../../lib/i18n.ts";
import { useSite } from "../../lib/site.ts";
import { CopyButton } from "../../ui/copy-button.tsx";
import type { FirstSteps as Steps } from "./data.ts";

export function FirstSteps({ steps }: { steps: Steps }) {
  const t = useT();
  const site = useSite();
  const command = [
    `curl ${site}/v1/chat/completions \\`,
    `  -H "Authorization: Bearer sk-…" \\`,
    `  -H "Content-Type: application/json" \\`,
    `  -d '{"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "Hello"}]}'`,
  ].join("\n");
  const list = [
    ...(steps.channel === undefined
      ? []
      : [
          {
            id: "channel",
            isDone: steps.channel,
            href: "/channel?new=1",
            action: t("detail.first.addChannel"),
          },
        ]),
    { id: "key", isDone: steps.key, href: "/token?new=1", action: t("detail.first.createKey") },
  ];
  const next = list.find(({ isDone }) => !isDone)?.id;
  return (
    <section className="panel first-steps" aria-labelledby="first-title">
      <h2 id="first-title">{t("detail.first.title")}</h2>
      <ol>
        {list.map(({ id, isDone, href, action }) => (
          <li key={id} data-done={isDone || undefined}>
            <span className="first-mark" aria-hidden>
              {isDone ? <Check size={14} /> : null}
            </span>
            <div>
              <p>
                <b>{t(`detail.first.${id}`)}</b>
                {isDone ? <span className="text-muted"> {t("detail.first.done")}</span> : null}
              </p>
              <p className="text-muted">{t(`detail.first.${id}Text`)}</p>
            </div>
            {isDone ? null : (
              <a className={`btn btn-sm ${id === next ? "btn-primary" : "btn-default"}`} href={href}>
                {action}
              </a>
            )}
          </li>
        ))}
        <li>
          <span className="first-mark" aria-hidden />
          <div>
            <p>
              <b>{t("detail.first.call")}</b>
            </p>
            <p className="text-muted">{t("detail.first.callText")}</p>
            <div className="first-code">
              <pre>
                <code>{command}</code>
              </pre>
              <CopyButton text={command} label={t("detail.first.copy")} />
            </div>
          </div>
        </li>
      </ol>
    </section>
  );
}
