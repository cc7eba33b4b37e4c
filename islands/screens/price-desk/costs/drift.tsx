// How far bills and reckoning are apart, by model and day: what tokens make of it, what prices do, and the cost row that would
// have hit the bill.
import { useState } from "react";
import { api, call } from "../../../lib/api.ts";
import { nowMs } from "../../../lib/boot.ts";
import { formatDate, formatDollars, formatNumber } from "../../../lib/format.ts";
import { useT } from "../../../lib/i18n.ts";
import { toast, toastFailure } from "../../../lib/toasts.ts";
import type { DriftReport } from "../../../lib/wire.ts";
import { FailureNotice } from "../../../ui/feedback.tsx";
import { Segments } from "../../../ui/segments.tsx";
import type { CostPartProps } from "./props.ts";
import { costText } from "./cost-text.ts";
import { useRead } from "./use-read.ts";

const DAYS = [7, 30, 90] as const;
const DAY_SECONDS = 86_400;
const MOST_ROWS = 15;

type Model = DriftReport["models"][number];

function dollars(nanos: number | null): string {
  if (nanos === null) return "?";
  const text = formatDollars(Math.abs(nanos) / 1e9);
  return nanos < 0 ? `−${text}` : text;
}

export function CostDrift({ channelId, canWrite, version, onChanged }: CostPartProps) {
  const t = useT();
  const [days, setDays] = useState<(typeof DAYS)[number]>(30);
  const to = Math.ceil(nowMs.peek() / 1000 / DAY_SECONDS) * DAY_SECONDS;
  const query = {
    channel_id: String(channelId),
    start_timestamp: String(to - days * DAY_SECONDS),
    end_timestamp: String(to),
  };
  const { found, failure, again } = useRead(
    () => call(api.cost.drift.get({ query })),
    `${channelId} ${version} ${days}`,
  );
  return (
    <section aria-labelledby="cost-drift">
      <div className="mb-2 flex flex-wrap items-center gap-2">
        <h2 id="cost-drift" className="mr-auto">
          {t("cost.drift")}
        </h2>
        <Segments
          label={t("cost.days")}
          of={DAYS}
          chosen={days}
          textOf={(count) => t("cost.day", { count })}
          onChoose={setDays}
        />
      </div>
      {failure === undefined ? null : <FailureNotice text={failure} onRetry={again} />}
      {found && found.source === null ? <p className="text-muted">{t("cost.noDrift")}</p> : null}
      {found && found.source !== null ? (
        <Report report={found} canWrite={canWrite} onChanged={onChanged} />
      ) : null}
    </section>
  );
}

interface ReportProps extends Pick<CostPartProps, "canWrite" | "onChanged"> {
  report: DriftReport;
}

function Report({ report, canWrite, onChanged }: ReportProps) {
  const t = useT();
  const [isDaily, setDaily] = useState(false);
  const { total } = report;
  const take = async ({ offer }: Model) => {
    if (!offer) return;
    try {
      await call(
        api.cost.post({
          channel_id: report.channel_id,
          source: "bill",
          rows: [{ ...offer, row: offer.row && { ...offer.row } }],
        }),
      );
      toast({ tone: "success", text: t("cost.taken", { model: offer.model }) });
      onChanged();
    } catch (error) {
      toastFailure(error);
    }
  };
  const rows = isDaily ? report.days.slice(0, MOST_ROWS * 4) : report.models.slice(0, MOST_ROWS * 4);
  return (
    <>
      <p className="mb-1">
        {t(total.is_within ? "cost.within" : "cost.apart", {
          billed: dollars(total.billed),
          reckoned: dollars(total.reckoned),
          drift: dollars(total.drift),
        })}
      </p>
      <p className="mb-2 text-xs text-muted">
        {t("cost.tolerance")}
        {report.matched_by_id + report.unmatched_ids > 0
          ? ` ${t("cost.byId", { matched: formatNumber(report.matched_by_id), unmatched: formatNumber(report.unmatched_ids) })}`
          : ""}
      </p>
      <div className="mb-2 flex items-center">
        <label className="flex cursor-pointer items-center gap-2 text-dense">
          <input
            type="checkbox"
            className="checkbox checkbox-sm"
            checked={isDaily}
            onChange={(event) => setDaily(event.target.checked)}
          />
          {t("cost.byDay")}
        </label>
      </div>
      <div className="overflow-x-auto" tabIndex={0} role="region" aria-label={t("cost.drift")}>
        <table className="table sum-table [&_thead]:whitespace-nowrap">
          <thead>
            <tr>
              <th scope="col">{t("cost.model")}</th>
              <th scope="col">{t("cost.billed")}</th>
              <th scope="col">{t("cost.reckoned")}</th>
              <th scope="col">{t("cost.driftColumn")}</th>
              <th scope="col">{t("cost.tokenDrift")}</th>
              <th scope="col">{t("cost.priceDrift")}</th>
              {isDaily ? null : <th scope="col">{t("cost.offer")}</th>}
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={"day" in row ? `${row.day} ${row.model}` : row.model}>
                <th scope="row" className="min-w-32 font-normal wrap-anywhere">
                  {"day" in row ? `${formatDate(row.day * 1000, "UTC")} ` : ""}
                  <span className="mono">{row.model === "" ? t("cost.noModel") : row.model}</span>
                </th>
                <td>{dollars(row.billed)}</td>
                <td>{dollars(row.reckoned)}</td>
                <td className={row.is_within || row.drift === null ? "" : "font-semibold text-error"}>
                  {dollars(row.drift)}
                </td>
                <td>{dollars(row.token_drift)}</td>
                <td>{dollars(row.price_drift)}</td>
                {"offer" in row ? (
                  <td>
                    {row.offer ? (
                      <span className="flex flex-wrap items-center justify-end gap-2">
                        <span className="text-xs text-muted">{costText(t, row.offer)}</span>
                        {canWrite ? (
                          <button
                            type="button"
                            className="btn btn-xs btn-default"
                            onClick={() => void take(row)}
                          >
                            {t("cost.takeOffer")}
                          </button>
                        ) : null}
                      </span>
                    ) : null}
                  </td>
                ) : null}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}
