// Bills of the channel's provider: what was read in, and the next one, by address, file or paste; of a CSV, column by column.
import { useState } from "react";
import { BILL_SOURCES } from "../../../../src/shared/bill-sources.ts";
import type { BillSource } from "../../../../src/shared/bill-sources.ts";
import { api, call, failureMessage } from "../../../lib/api.ts";
import { formatDate, formatDollars, formatNumber, formatWhen } from "../../../lib/format.ts";
import { nowMs, siteZone } from "../../../lib/boot.ts";
import { useT } from "../../../lib/i18n.ts";
import type { BillResult } from "../../../lib/wire.ts";
import { BusyButton } from "../../../ui/busy-button.tsx";
import { FailureNotice } from "../../../ui/feedback.tsx";
import { CsvWizard } from "./csv-wizard.tsx";
import type { Columns } from "./csv-wizard.tsx";
import type { CostPartProps } from "./props.ts";
import { TextSource } from "./text-source.tsx";
import type { GivenText } from "./text-source.tsx";
import { useRead } from "./use-read.ts";

const ADDRESSES: Partial<Record<BillSource, string>> = {
  "openai-costs":
    "https://api.openai.com/v1/organization/costs?bucket_width=1d&limit=30&group_by=line_item&start_time=",
  "openai-usage":
    "https://api.openai.com/v1/organization/usage/completions?bucket_width=1d&limit=30&group_by=model&start_time=",
  "anthropic-cost":
    "https://api.anthropic.com/v1/organizations/cost_report?limit=31&group_by[]=description&starting_at=",
  "anthropic-usage":
    "https://api.anthropic.com/v1/organizations/usage_report/messages?bucket_width=1d&limit=31&group_by[]=model&starting_at=",
  openrouter: "https://openrouter.ai/api/v1/activity",
};
const DAY_MS = 86_400_000;

/** The last 30 days, as the provider wants its beginning. */
function addressOf(source: BillSource, now: number): string {
  const start = Math.floor(now / DAY_MS - 30) * DAY_MS;
  const base = ADDRESSES[source] ?? "";
  if (base.endsWith("start_time=")) return base + String(start / 1000);
  return base.endsWith("starting_at=") ? base + new Date(start).toISOString().slice(0, 19) + "Z" : base;
}

export function CostBills({ channelId, canWrite, version, onChanged }: CostPartProps) {
  const t = useT();
  const { found, failure, again } = useRead(
    () => call(api.cost.import.get({ query: { channel_id: String(channelId) } })),
    `${channelId} ${version}`,
  );
  const [isOpen, setOpen] = useState(false);
  return (
    <section className="mb-8" aria-labelledby="cost-bills">
      <div className="mb-2 flex flex-wrap items-center gap-2">
        <h2 id="cost-bills" className="mr-auto">
          {t("cost.bills")}
        </h2>
        {canWrite ? (
          <button
            type="button"
            className="btn btn-sm btn-default"
            aria-expanded={isOpen}
            onClick={() => setOpen(!isOpen)}
          >
            {t("cost.import")}
          </button>
        ) : null}
      </div>
      {isOpen ? <ImportForm channelId={channelId} onDone={onChanged} /> : null}
      {failure === undefined ? null : <FailureNotice text={failure} onRetry={again} />}
      {found?.length === 0 ? <p className="text-muted">{t("cost.noBills")}</p> : null}
      {found && found.length > 0 ? (
        <ul className="border-t border-base-300 text-dense">
          {found.slice(0, 10).map((each) => (
            <li key={each.id} className="flex flex-wrap gap-x-4 border-b border-base-300 py-1.5">
              <span className="font-semibold">{t(`cost.bill.${each.source}`)}</span>
              <span>
                {each.last_day === 0
                  ? "–"
                  : `${formatDate(each.first_day * 1000, "UTC")} – ${formatDate(each.last_day * 1000, "UTC")}`}
              </span>
              <span className="text-muted">
                {t("cost.counts", {
                  added: formatNumber(each.added),
                  known: formatNumber(each.known),
                  replaced: formatNumber(each.replaced),
                  refused: formatNumber(each.refused),
                })}
              </span>
              <span className="ml-auto text-muted">
                {each.username}, {formatWhen(each.created_at * 1000, nowMs.value, siteZone.value)}
              </span>
            </li>
          ))}
        </ul>
      ) : null}
    </section>
  );
}

function ImportForm({ channelId, onDone }: { channelId: number; onDone: () => void }) {
  const t = useT();
  const [source, setSource] = useState<BillSource>("openai-costs");
  const [given, setGiven] = useState<GivenText>({
    way: "address",
    text: "",
    url: addressOf("openai-costs", nowMs.peek()),
    key: "",
  });
  const [columns, setColumns] = useState<Columns>();
  const [perUnit, setPerUnit] = useState("500000");
  const [result, setResult] = useState<BillResult>();
  const [failure, setFailure] = useState("");
  const [isBusy, setBusy] = useState(false);
  const isFile = source === "csv" || source === "instance";
  const shown: GivenText = source === "csv" ? { ...given, way: "text" } : given;
  const choose = (next: BillSource) => {
    setSource(next);
    setResult(undefined);
    setGiven({ ...given, url: addressOf(next, nowMs.peek()), way: next in ADDRESSES ? given.way : "text" });
  };
  const run = async () => {
    if (isBusy) return;
    setBusy(true);
    setFailure("");
    try {
      const from = shown.way === "address" ? { url: shown.url, key: shown.key } : { text: shown.text };
      const body = {
        channel_id: channelId,
        source,
        ...from,
        ...(isFile ? { quota_per_unit: Number(perUnit) || 500_000 } : {}),
        ...(source === "csv" && columns ? { columns } : {}),
      };
      setResult(await call(api.cost.import.post(body)));
      onDone();
    } catch (error) {
      setFailure(failureMessage(error));
    }
    setBusy(false);
  };
  return (
    <div className="mb-4 rounded-box border border-base-300 p-4">
      <div className="flex flex-wrap items-end gap-x-4 gap-y-3">
        <label className="max-sm:w-full">
          <span className="mb-0.5 block text-dense font-semibold">{t("cost.billSource")}</span>
          <select
            className="select w-72 max-sm:w-full"
            value={source}
            onChange={(event) => choose(event.target.value as BillSource)}
          >
            {BILL_SOURCES.map((each) => (
              <option key={each} value={each}>
                {t(`cost.bill.${each}`)}
              </option>
            ))}
          </select>
        </label>
        {isFile ? (
          <label>
            <span className="mb-0.5 block text-dense font-semibold">{t("cost.perUnit")}</span>
            <input
              className="input mono w-36"
              inputMode="decimal"
              value={perUnit}
              onChange={(event) => setPerUnit(event.target.value)}
            />
          </label>
        ) : null}
      </div>
      <p className="mt-1 text-xs text-muted">{t(`cost.billAbout.${source}`)}</p>
      <TextSource given={shown} onGiven={setGiven} hasKey />
      {source === "csv" ? <CsvWizard text={given.text} columns={columns} onColumns={setColumns} /> : null}
      <BusyButton isBusy={isBusy} className="btn-primary mt-3" onPress={() => void run()}>
        {t("cost.import")}
      </BusyButton>
      {failure === "" ? null : (
        <p role="alert" className="mt-2 text-dense text-error">
          {failure}
        </p>
      )}
      {result ? <Read result={result} /> : null}
    </div>
  );
}

function Read({ result }: { result: BillResult }) {
  const t = useT();
  return (
    <div role="status" className="mt-3 text-dense">
      <p>
        {t("cost.counts", {
          added: formatNumber(result.added),
          known: formatNumber(result.known),
          replaced: formatNumber(result.replaced),
          refused: formatNumber(result.refused_count),
        })}{" "}
        {t("cost.amount", { amount: formatDollars(result.amount_nanos / 1e9) })}
      </p>
      {result.refused.length === 0 ? null : (
        <ul className="mt-1 list-disc pl-5 text-error">
          {result.refused.slice(0, 10).map(({ line, problem }) => (
            <li key={`${line} ${problem}`}>{t(`cost.refused.${problem}`, { line })}</li>
          ))}
        </ul>
      )}
    </div>
  );
}
