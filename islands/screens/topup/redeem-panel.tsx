// Redeeming codes: one or many pasted at once, each answered on a line of its own; and the way to buy some.
// Refuses to send nothing and more than a hundred; what failed stays in the field.
import { ExternalLink } from "lucide-react";
import { useId, useRef, useState } from "react";
import { ApiFailure, api, call } from "../../lib/api.ts";
import { status } from "../../lib/boot.ts";
import { formatQuota, maskSecret } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import { openBeside } from "../../lib/leave.ts";
import { StatusDot } from "../../ui/badges.tsx";
import { PhoneFold } from "../../ui/phone-fold.tsx";
import { toast, toastFailure } from "../../lib/toasts.ts";
import type { CodeResult } from "../../lib/wire.ts";

const MAX_CODES = 100;

/** Codes of a text, each once; blanks, commas and semicolons of both languages part them. */
export function codesOf(text: string): string[] {
  return [...new Set(text.split(/[\s,;，；、]+/).filter((key) => key !== ""))];
}

interface Redemption {
  text: string;
  setText: (text: string) => void;
  /** Why nothing was sent; "" where nothing is wrong. */
  problem: string;
  isBusy: boolean;
  results: readonly CodeResult[];
  redeem: () => Promise<void>;
}

/** What is typed, what is wrong with it, and what came of the codes; `onRefused` takes the reader back to the field. */
function useRedemption(onCredited: (quota: number) => void, onRefused: () => void): Redemption {
  const t = useT();
  const [text, setText] = useState("");
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [results, setResults] = useState<readonly CodeResult[]>([]);

  const refuse = (reason: string) => {
    setProblem(reason);
    onRefused();
  };
  const send = async (keys: string[]) => {
    const found = await call(api.user.topup.batch.post({ keys }));
    const sum = found.reduce((total, result) => total + result.quota, 0);
    setResults(found);
    if (sum > 0) {
      onCredited(sum);
      toast({ key: "redeemed", text: t("topup.redeemed", { amount: formatQuota(sum) }) });
    }
    // What failed stays in the field, to be looked at; so does what was typed meanwhile.
    const failed = found.filter((result) => !result.success).map(({ key }) => key);
    setText((now) => [...failed, ...codesOf(now).filter((key) => !keys.includes(key))].join("\n"));
    if (sum === 0) onRefused();
  };
  return {
    text,
    setText(next) {
      setText(next);
      setProblem("");
    },
    problem,
    isBusy,
    results,
    async redeem() {
      const keys = codesOf(text);
      if (keys.length === 0) return refuse(t("topup.codeMissing"));
      if (keys.length > MAX_CODES) return refuse(t("topup.tooMany", { count: keys.length, max: MAX_CODES }));
      setProblem("");
      setBusy(true);
      try {
        await send(keys);
      } catch (error) {
        if (error instanceof ApiFailure) toastFailure(error, "redeem");
        else toast({ key: "redeem", tone: "error", text: t("topup.failed") });
      } finally {
        setBusy(false);
      }
    },
  };
}

export function RedeemPanel({ onCredited }: { onCredited: (quota: number) => void }) {
  const t = useT();
  const id = useId();
  const field = useRef<HTMLTextAreaElement>(null);
  const redemption = useRedemption(onCredited, () => field.current?.focus());
  const { problem, isBusy } = redemption;
  const link = status.peek().top_up_link;
  const buy = () => {
    if (!link) return toast({ key: "no link", tone: "error", text: t("topup.noLink") });
    openBeside(link);
  };

  return (
    <section
      className="rounded-box border border-base-300 bg-base-100 px-5 py-4 max-sm:py-0 lg:row-span-2"
      aria-labelledby={`${id}-title`}
    >
      <PhoneFold id={`${id}-title`} title={t("topup.redeem")} foldTitle={t("topup.codes")}>
        <form
          className="mt-2"
          noValidate
          onSubmit={(event) => {
            event.preventDefault();
            if (!isBusy) void redemption.redeem();
          }}
        >
          <label className="text-dense font-semibold" htmlFor={id}>
            {t("topup.codes")}
          </label>
          <textarea
            ref={field}
            id={id}
            className="textarea mono mt-1 w-full"
            rows={4}
            value={redemption.text}
            autoComplete="off"
            autoCapitalize="off"
            spellCheck={false}
            aria-invalid={problem !== "" || undefined}
            aria-describedby={`${id}-hint`}
            placeholder={t("topup.codesPlaceholder")}
            onChange={(event) => redemption.setText(event.target.value)}
            onKeyDown={(event) => {
              if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
              event.preventDefault();
              event.currentTarget.form?.requestSubmit();
            }}
          />
          <p
            id={`${id}-hint`}
            className={problem === "" ? "mt-1 text-xs text-muted" : "mt-1 text-xs text-error"}
            role={problem === "" ? undefined : "alert"}
          >
            {problem === "" ? t("topup.codesHint") : problem}
          </p>
          <div className="mt-3 flex flex-wrap gap-2">
            <button type="submit" className="btn btn-primary" aria-busy={isBusy} aria-disabled={isBusy}>
              {isBusy ? <span className="loading loading-spinner loading-xs" aria-hidden /> : null}
              {isBusy ? t("topup.redeeming") : t("topup.redeem")}
            </button>
            <button type="button" className="btn btn-default" onClick={buy}>
              {t("topup.buy")}
              <ExternalLink aria-hidden size={14} />
            </button>
          </div>
        </form>
        <div role="status">
          {redemption.results.length > 0 ? <ResultList results={redemption.results} /> : null}
        </div>
      </PhoneFold>
    </section>
  );
}

function ResultList({ results }: { results: readonly CodeResult[] }) {
  const t = useT();
  const done = results.filter((result) => result.success).length;
  return (
    <>
      <p className="mt-4 text-[13px] font-semibold">
        {t("topup.resultsSum", { done, count: results.length })}
      </p>
      <ul className="mt-1 flex max-h-64 flex-col gap-1 overflow-auto" aria-label={t("topup.results")}>
        {results.map((result) => (
          <li key={result.key} className="flex flex-wrap items-baseline gap-x-3">
            <code className="mono flex-none">{maskSecret(result.key)}</code>
            <StatusDot tone={result.success ? "ok" : "broken"}>
              {result.success ? t("topup.plus", { amount: formatQuota(result.quota) }) : result.message}
            </StatusDot>
          </li>
        ))}
      </ul>
    </>
  );
}
