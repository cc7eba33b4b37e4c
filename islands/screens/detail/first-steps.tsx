// What to do before there are figures: connect a provider, price its models, make a key, call a model once.
// Refuses steps that the visitor may not take: users connect no providers and set no prices.
import { useSignals } from "@preact/signals-react/runtime";
import { Check } from "lucide-react";
import type { ReactNode } from "react";
import { user } from "../../lib/boot.ts";
import { useT } from "../../lib/i18n.ts";
import { namesText } from "../../lib/model-names.ts";
import { useSite } from "../../lib/site.ts";
import { CopyButton } from "../../ui/copy-button.tsx";
import { mayPrice, PriceAction } from "../../ui/price-action.tsx";
import type { FirstSteps as Steps } from "./data.ts";
import { useFirstSteps } from "./use-first-steps.ts";

const SAMPLE_MODEL = "gpt-4o-mini";

export interface FirstStepsProps {
  steps: Steps;
  /** Shows the figures in place of the list. */
  onDone: () => void;
}

export default function FirstSteps({ steps: given, onDone }: FirstStepsProps) {
  const t = useT();
  useSignals();
  const { steps, refresh } = useFirstSteps(given);
  const { channel, unpriced, key, call } = steps;
  const arePriced = channel === true && unpriced?.length === 0;
  const done = {
    ...(channel === undefined ? {} : { channel }),
    ...(unpriced === undefined ? {} : { prices: arePriced }),
    key,
    call,
  };
  const next = Object.entries(done).find(([, isDone]) => !isDone)?.[0];
  const button = (id: string) => `btn btn-sm ${id === next ? "btn-primary" : "btn-default"}`;
  return (
    <section
      className="rounded-box border border-base-300 bg-base-100 px-5 py-4"
      aria-labelledby="first-title"
    >
      <h2 id="first-title" className="mb-2">
        {t("detail.first.title")}
      </h2>
      <ol aria-live="polite">
        {channel === undefined ? null : (
          <Step id="channel" isDone={channel} text={t("detail.first.channelText")}>
            <a className={button("channel")} href="/channel?new=1">
              {t("detail.first.addChannel")}
            </a>
          </Step>
        )}
        {unpriced === undefined ? null : (
          <Step id="prices" isDone={arePriced} text={pricesText()}>
            {unpriced.length > 0 ? (
              <PriceAction models={unpriced} onPriced={refresh} isPrimary={next === "prices"} />
            ) : null}
          </Step>
        )}
        <Step id="key" isDone={key} text={t("detail.first.keyText")}>
          <a className={button("key")} href="/token?new=1">
            {t("detail.first.createKey")}
          </a>
        </Step>
        <Step
          id="call"
          isDone={call}
          text={t("detail.first.callText")}
          detail={<Command model={steps.model ?? SAMPLE_MODEL} />}
        >
          <a className={button("call")} href="/playground">
            {t("detail.first.openPlayground")}
          </a>
        </Step>
      </ol>
      {call ? (
        <p className="flex flex-wrap items-center gap-3 border-t border-base-300 pt-3">
          <b className="grow">{t("detail.first.over")}</b>
          <button type="button" className="btn btn-sm btn-primary" onClick={onDone}>
            {t("detail.first.show")}
          </button>
        </p>
      ) : null}
    </section>
  );

  function pricesText(): string {
    if (!unpriced || unpriced.length === 0) return t("detail.first.pricesText");
    const told = t("price.unpriced", { count: unpriced.length, names: namesText(t, unpriced) });
    return mayPrice(user.value) ? told : `${told} ${t("price.askAdmin")}`;
  }
}

interface StepProps {
  id: "channel" | "prices" | "key" | "call";
  isDone: boolean;
  text: string;
  /** What does it; gone once it is done. */
  children: ReactNode;
  detail?: ReactNode;
}

function Step({ id, isDone, text, children, detail }: StepProps) {
  const t = useT();
  return (
    <li
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
        <p className="text-muted wrap-anywhere">{text}</p>
        {isDone ? null : detail}
      </div>
      {isDone ? null : children}
    </li>
  );
}

function Command({ model }: { model: string }) {
  const t = useT();
  const site = useSite();
  const body = JSON.stringify({ model, messages: [{ role: "user", content: "Hello" }] });
  const command = [
    `curl ${site}/v1/chat/completions \\`,
    `  -H "Authorization: Bearer sk-…" \\`,
    `  -H "Content-Type: application/json" \\`,
    `  -d '${body.replaceAll("'", String.raw`'\''`)}'`,
  ].join("\n");
  return (
    <div className="mt-2 flex items-start gap-2">
      <pre
        className="min-w-0 grow overflow-auto rounded-field bg-base-200 px-3 py-2 text-xs/4.5"
        tabIndex={0}
        role="region"
        aria-label="curl"
      >
        <code>{command}</code>
      </pre>
      <CopyButton text={command} label={t("detail.first.copy")} />
    </div>
  );
}
