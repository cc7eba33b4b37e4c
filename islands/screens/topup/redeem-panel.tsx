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
import { toast, toastFailure } from "../../lib/toasts.ts";

interface CodeResult {
  key: string;
  quota: number;
  success: boolean;
  message: string;
}

const MAX_CODES = 100;

/** Codes of a text, each once; blanks, commas and semicolons of both languages part them. */
export function codesOf(text: string): string[] {
  return [...new Set(text.split(/[\s,;，；、]+/).filter((key) => key !== ""))];
}

export function RedeemPanel({ onCredited }: { onCredited: (quota: number) => void }) {
  const t = useT();
  const id = useId();
  const field = useRef<HTMLTextAreaElement>(null);
  const [text, setText] = useState("");
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [results, setResults] = useState<readonly CodeResult[]>([]);
  const link = status.peek().top_up_link as string | undefined;

  const refuse = (words: string) => {
    setProblem(words);
    field.current?.focus();
  };
  const redeem = async () => {
    const keys = codesOf(text);
    if (keys.length === 0) return refuse(t("topup.codeMissing"));
    if (keys.length > MAX_CODES) return refuse(t("topup.tooMany", { count: keys.length, max: MAX_CODES }));
    setProblem("");
    setBusy(true);
    try {
      const found = (await call(api.user.topup.batch.post({ keys }))) as CodeResult[];
      const sum = found.reduce((total, result) => total + result.quota, 0);
      setResults(found);
      if (sum > 0) {
        onCredited(sum);
        toast({ key: "redeemed", text: t("topup.redeemed", { amount: formatQuota(sum) }) });
      }
      // What failed stays in the field, to be looked at.
      setText(
        found
          .filter((result) => !result.success)
          .map((result) => result.key)
          .join("\n"),
      );
      if (sum === 0) field.current?.focus();
    } catch (error) {
      if (error instanceof ApiFailure) toastFailure(error, "redeem");
      else toast({ key: "redeem", tone: "error", text: t("topup.failed") });
    } finally {
      setBusy(false);
    }
  };

  const buy = () => {
    if (!link) return toast({ key: "no link", tone: "error", text: t("topup.noLink") });
    openBeside(link);
  };

  const done = results.filter((result) => result.success).length;
  return (
    <section
      className="rounded-box border border-base-300 bg-base-100 px-5 py-4 lg:row-span-2"
      aria-labelledby={`${id}-title`}
    >
      <h2 id={`${id}-title`} className="font-semibold">
        {t("topup.redeem")}
      </h2>
      <form
        className="mt-2"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          if (!isBusy) void redeem();
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
          value={text}
          autoComplete="off"
          autoCapitalize="off"
          spellCheck={false}
          aria-invalid={problem !== "" || undefined}
          aria-describedby={`${id}-hint`}
          placeholder={t("topup.codesPlaceholder")}
          onChange={(event) => {
            setText(event.target.value);
            setProblem("");
          }}
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
        {results.length > 0 ? (
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
        ) : null}
      </div>
    </section>
  );
}
