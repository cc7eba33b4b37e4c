// What the question that is being written would cost, by the server's quote: expected, and at most.
// Refuses to be in the way: while nobody knows, nothing is said, and a refusal is left to the answer itself.
import { useEffect, useState } from "react";
import { fetchChecked } from "../../lib/api.ts";
import { formatQuota } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import type { Conversation, Settings } from "./conversation.ts";
import { contextOf } from "./conversation.ts";
import { keepQuote } from "./quotes.ts";
import { bodyOf } from "./request.ts";
import type { Draft } from "./use-playground.ts";

interface Quote {
  quote_id: string;
  expires_at: number;
  expected: number;
  worst: number;
  affordable: boolean;
}

/** Of all models that are asked. */
type Sum = Pick<Quote, "expected" | "worst" | "affordable">;

/** After the last letter. */
const PAUSE_MS = 400;

export default function QuoteLine({
  settings,
  conversation,
  draft,
}: {
  settings: Settings;
  conversation: Conversation;
  draft: Draft;
}) {
  const t = useT();
  const [quote, setQuote] = useState<Sum>();
  useEffect(() => {
    const controller = new AbortController();
    const timer = setTimeout(() => {
      ask({ settings, conversation, draft }, controller.signal).then(setQuote, () => setQuote(undefined));
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [settings, conversation, draft]);
  if (!quote) return null;
  return (
    <span
      className={`min-w-0 tabular-nums max-sm:order-last max-sm:basis-full sm:truncate ${quote.affordable ? "" : "text-error"}`}
      title={t("playground.quoteHint")}
    >
      {t(quote.affordable ? "playground.quote" : "playground.quoteShort", {
        expected: formatQuota(quote.expected),
        worst: formatQuota(quote.worst),
      })}
    </span>
  );
}

/** Of two models that are compared, both. */
async function ask(
  { settings, conversation, draft }: { settings: Settings; conversation: Conversation; draft: Draft },
  signal: AbortSignal,
): Promise<Sum> {
  const pictures = draft.images.length > 0 ? { images: draft.images } : {};
  const question = { role: "user" as const, content: draft.text.trim(), ...pictures };
  const models = [settings.model, settings.other].filter((model) => model !== "");
  const quotes = await Promise.all(
    models.map(async (model, side) => {
      const said = [...contextOf(conversation, side === 1 ? 1 : 0), question];
      const response = await fetchChecked("/pg/quote", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ path: "/v1/chat/completions", body: bodyOf({ ...settings, model }, said) }),
        signal,
      });
      const quote = (await response.json()) as Quote;
      keepQuote(model, settings.group, { id: quote.quote_id, expiresAt: quote.expires_at });
      return quote;
    }),
  );
  const sum = (of: (quote: Quote) => number): number => quotes.reduce((all, quote) => all + of(quote), 0);
  return {
    expected: sum(({ expected }) => expected),
    worst: sum(({ worst }) => worst),
    affordable: quotes.every(({ affordable }) => affordable),
  };
}
