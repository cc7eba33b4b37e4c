// Section "sync" of the price desk: a source, what it says beside the prices here, and ticks that make changes of the desk.
// Refuses to apply anything: what is taken is planned and applied like every other change.
import { useSignals } from "@preact/signals-react/runtime";
import { useEffect } from "react";
import { api, call } from "../../lib/api.ts";
import { formatNumber } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import { setQuery } from "../../lib/url-state.ts";
import type { PriceComparison } from "../../lib/wire.ts";
import { Empty, Notice } from "../../ui/feedback.tsx";
import type { SectionProps } from "../../ui/price-sheet/section-props.ts";
import { KeepForm } from "./sync-kept.tsx";
import { SyncSheet } from "./sync-sheet.tsx";
import { SyncSourceForm } from "./sync-source.tsx";
import { syncStateOf } from "./sync-state.ts";

/** Of a site with more channels the address can be typed. */
const MOST_CHANNELS = 1000;

export default function SyncSection({ desk, canApply }: SectionProps) {
  useSignals();
  const t = useT();
  const state = syncStateOf(desk, canApply);
  const result = state.result.value;
  useEffect(() => {
    // Only root may ask them: others are not shown what they cannot use.
    if (!canApply) return;
    const load = async () => {
      state.kept.value = await call(api.price.sync.get());
      const items = await call(api.channel.get({ query: { page_size: String(MOST_CHANNELS) } }));
      state.channels.value = items.flatMap(({ id, name, base_url: address }) =>
        address === "" || address === null ? [] : [{ id, name }],
      );
    };
    // Without them a source is chosen as ever.
    load().catch(() => undefined);
  }, [state, canApply]);
  const mayKeep =
    canApply &&
    state.keptName.value === "" &&
    (state.way.value === "address" || state.source.value === "shipped");
  return (
    <div className="pt-4">
      <SyncSourceForm state={state} canFetch={canApply} />
      {state.takenCount.value > 0 ? (
        <div className="mt-4">
          <Notice
            tone="success"
            action={
              <button
                type="button"
                className="btn btn-sm btn-default"
                onClick={() => setQuery({ section: "plan" })}
              >
                {t("sync.toPlan")}
              </button>
            }
          >
            <p>{t("sync.taken", { count: state.takenCount.value })}</p>
            {state.leftCount.value > 0 ? <p>{t("sync.left", { count: state.leftCount.value })}</p> : null}
          </Notice>
        </div>
      ) : null}
      {result ? (
        <section className="mt-5" aria-label={t("sync.result")} aria-busy={state.isBusy.value}>
          <Summary result={result} />
          {mayKeep ? <KeepForm state={state} /> : null}
          {result.rows.length === 0 ? (
            <Empty title={t("sync.equal")} text={t("sync.equalText")} />
          ) : (
            <SyncSheet desk={desk} state={state} />
          )}
        </section>
      ) : null}
    </div>
  );
}

/** What was read in one line, and what of it could not be. */
function Summary({ result }: { result: PriceComparison }) {
  const t = useT();
  const { source, total, same, rows, dropped, dropped_count: droppedCount } = result;
  return (
    <div className="mb-3 text-dense">
      <p>
        <span className="mono">{source}</span>
        <span className="text-muted">
          {" "}
          {t("sync.summary", {
            total: formatNumber(total),
            same: formatNumber(same),
            count: rows.length,
            differ: formatNumber(rows.length),
          })}
        </span>
      </p>
      {droppedCount === 0 ? null : (
        <details className="mt-1">
          <summary className="cursor-pointer text-muted">
            {t("sync.dropped", { count: droppedCount })}
          </summary>
          <ul className="mt-1 max-h-60 overflow-auto rounded-field border border-base-300 p-3">
            {dropped.slice(0, MOST_SHOWN).map(({ name, reason, detail }, at) => (
              <li key={at} className="wrap-anywhere">
                <span className="mono">{name === "" ? "–" : name}</span>
                <span className="text-muted">
                  {" "}
                  {t(`sync.reason.${reason}`)}
                  {detail === "" ? null : ` (${detail})`}
                </span>
              </li>
            ))}
            {droppedCount > MOST_SHOWN ? (
              <li className="text-muted">{t("sync.droppedMore", { count: droppedCount - MOST_SHOWN })}</li>
            ) : null}
          </ul>
        </details>
      )}
    </div>
  );
}

const MOST_SHOWN = 200;
