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
    <section
      className="rounded-box border border-base-300 bg-base-100 px-5 py-4"
      aria-labelledby="first-title"
    >
      <h2 id="first-title" className="mb-2">
        {t("detail.first.title")}
      </h2>
      <ol>
        {list.map(({ id, isDone, href, action }) => (
          <li
            key={id}
            className="flex flex-wrap items-start gap-x-3 gap-y-1 border-base-300 py-3 leading-5.5 not-first:border-t"
            data-done={isDone || undefined}
          >
            <span
              className="mt-px inline-flex size-5 items-center justify-center rounded-full border border-field in-data-done:border-success in-data-done:text-success"
              aria-hidden
            >
              {isDone ? <Check size={14} /> : null}
            </span>
            <div className="min-w-[min(240px,70%)] flex-1">
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
        <li className="flex flex-wrap items-start gap-x-3 gap-y-1 border-base-300 py-3 leading-5.5 not-first:border-t">
          <span
            className="mt-px inline-flex size-5 items-center justify-center rounded-full border border-field in-data-done:border-success in-data-done:text-success"
            aria-hidden
          />
          <div className="min-w-[min(240px,70%)] flex-1">
            <p>
              <b>{t("detail.first.call")}</b>
            </p>
            <p className="text-muted">{t("detail.first.callText")}</p>
            <div className="mt-2 flex items-start gap-2">
              <pre className="min-w-0 grow overflow-auto rounded-field bg-base-200 px-3 py-2 text-xs/4.5">
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
