// Prompt caches, below what is used: how much of the prompts came from one and what that saved, by channel, model, user or rule.
// Refuses to guess: upstreams that tell nothing of their caches are in no rate.
import { useEffect, useRef, useState } from "react";
import { api, call, failureMessage } from "../../lib/api.ts";
import { formatNumber, formatQuota, quotaText } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import type { Translate } from "../../lib/i18n.ts";
import { useSeen } from "../../lib/use-seen.ts";
import type { CacheRates } from "../../lib/wire.ts";
import { FailureNotice } from "../../ui/feedback.tsx";

const MOST_ROWS = 10;
const DIMENSIONS = ["channel", "model", "user", "rule"] as const;
type Dimension = (typeof DIMENSIONS)[number];

interface CachePanelProps {
  /** Unix seconds, the end not included. */
  from: number;
  to: number;
}

/** Asked for once the panel comes near the window. */
function useRates({ from, to }: CachePanelProps, by: Dimension, isSeen: boolean) {
  const [found, setFound] = useState<CacheRates>();
  const [failure, setFailure] = useState<string>();
  const [round, setRound] = useState(0);
  useEffect(() => {
    if (!isSeen) return undefined;
    let isGone = false;
    const query = { start_timestamp: String(from), end_timestamp: String(to - 1), by };
    call(api.data.cache.get({ query })).then(
      (rates) => {
        if (isGone) return;
        setFound(rates);
        setFailure(undefined);
      },
      (error: unknown) => isGone || setFailure(failureMessage(error)),
    );
    return () => {
      isGone = true;
    };
  }, [from, to, by, round, isSeen]);
  return { found, failure, again: async () => setRound((value) => value + 1) };
}

export default function CachePanel(props: CachePanelProps) {
  const t = useT();
  const [by, setBy] = useState<Dimension>("channel");
  const box = useRef<HTMLDivElement>(null);
  const { found, failure, again } = useRates(props, by, useSeen(box));
  if (failure !== undefined) return <FailureNotice text={failure} onRetry={again} />;
  if (!found) return <div ref={box} className="skeleton mt-8 h-64 rounded-box" aria-hidden />;
  return (
    <section className="mt-6 border-t border-base-300 pt-5" aria-labelledby="cache-title">
      <div className="mb-2 flex flex-wrap items-center gap-2">
        <h2 id="cache-title" className="mr-auto">
          {t("detail.cache.title")}
        </h2>
        <div className="join" role="group" aria-label={t("detail.cache.by")}>
          {DIMENSIONS.map((each) => (
            <button
              key={each}
              type="button"
              className="btn btn-sm btn-default join-item"
              aria-pressed={each === by}
              onClick={() => setBy(each)}
            >
              {t(`detail.cache.by.${each}`)}
            </button>
          ))}
        </div>
      </div>
      {found.rows.length === 0 ? (
        <p className="text-muted">{t(found.by === "rule" ? "detail.cache.noRules" : "detail.cache.none")}</p>
      ) : (
        <>
          <p className="mb-2">{sentenceOf(t, found)}</p>
          <RateTable rates={found} />
        </>
      )}
    </section>
  );
}

const rateOf = ({ read, input }: { read: number; input: number }): string =>
  input > 0 ? `${formatNumber(Math.round((read / input) * 1000) / 10)}%` : "–";

function sentenceOf(t: Translate, { total }: CacheRates): string {
  const key = total.saved < 0 ? "detail.cache.sentenceLoss" : "detail.cache.sentence";
  return t(key, { rate: rateOf(total), saved: formatQuota(Math.abs(total.saved)) });
}

function RateTable({ rates }: { rates: CacheRates }) {
  const t = useT();
  const { by, rows, others } = rates;
  const isRule = by === "rule";
  const shown = rows.slice(0, MOST_ROWS);
  const left = rows.length - shown.length + others;
  const nameOf = ({ id, name }: CacheRates["rows"][number]) => {
    if (name !== "") return name;
    return by === "model"
      ? t("detail.noModel")
      : t(`detail.gone.${by === "user" ? "user" : "channel"}`, { id });
  };
  return (
    <div className="min-w-0">
      <div className="overflow-x-auto" tabIndex={0} role="region" aria-label={t(`detail.cache.by.${by}`)}>
        <table className="table sum-table [&_thead]:whitespace-nowrap">
          <thead>
            <tr>
              <th scope="col">{t(`detail.cache.by.${by}`)}</th>
              {isRule ? (
                <>
                  <th scope="col">{t("detail.cache.kept")}</th>
                  <th scope="col">{t("detail.cache.switched")}</th>
                </>
              ) : null}
              <th scope="col">{t("detail.cache.input")}</th>
              <th scope="col">{t("detail.cache.hit")}</th>
              <th scope="col">{t("detail.cache.saved")}</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((row) => (
              <tr key={row.id}>
                <th scope="row" className="font-normal wrap-anywhere">
                  <span className="inline-block min-w-24">{nameOf(row)}</span>
                </th>
                {isRule ? (
                  <>
                    <td>{formatNumber(row.kept ?? 0)}</td>
                    <td>{formatNumber(row.switched ?? 0)}</td>
                  </>
                ) : null}
                <td>{formatNumber(row.input)}</td>
                <td>{rateOf(row)}</td>
                <td className="whitespace-nowrap" title={quotaText(row.saved).exact}>
                  {row.saved < 0 ? `−${formatQuota(-row.saved)}` : formatQuota(row.saved)}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {left > 0 ? (
        <p className="mt-1 text-xs text-muted">{t("detail.cache.others", { count: left })}</p>
      ) : null}
    </div>
  );
}
