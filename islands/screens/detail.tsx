// The dashboard: figures, use over time split by model, user, channel or key, who used most, failures and speed.
// Refuses to sum on the page what the server has summed: every number is one of the call's, for the range in the address.
import { useSignals } from "@preact/signals-react/runtime";
import { loadAllTexts } from "../lib/all-texts.ts";
import { bootData, nowMs, siteZone, status, timeZone } from "../lib/boot.ts";
import { sumOf } from "../lib/chart.ts";
import { useCommand } from "../lib/commands.ts";
import { useT } from "../lib/i18n.ts";
import { useShortcut } from "../lib/keys.ts";
import { lazyPart } from "../lib/lazy-part.tsx";
import { toastFailure } from "../lib/toasts.ts";
import { setQuery, useQuery } from "../lib/url-state.ts";
import type { Query } from "../lib/url-state.ts";
import type { UsageSummary } from "../lib/wire.ts";
import { FailureNotice } from "../ui/feedback.tsx";
import { curlItem, exportItem, refreshItem } from "../ui/list-menu.ts";
import { PageHeader } from "../ui/page-header.tsx";
import type { DetailPageData } from "./detail/data.ts";
import { Figures } from "./detail/figures.tsx";
import { QueryBar } from "./detail/query-bar.tsx";
import { UsageCharts } from "./detail/usage-charts.tsx";
import { fits, usageQueryOf } from "./detail/usage-query.ts";
import { parametersOf, pathOf, useDetail } from "./detail/use-detail.ts";

/** Only fresh sites see it: everybody else's page comes without it. */
const FirstSteps = lazyPart(
  () => import("./detail/first-steps.tsx"),
  () => <div className="min-h-[400px]" />,
);
const RefusedModels = lazyPart(() => import("./detail/refused-models.tsx"));

const MarginPanel = lazyPart(() => import("./detail/margin.tsx"));

const CachePanel = lazyPart(() => import("./detail/cache.tsx"));

/** What is exported before there is an answer. */
const NOTHING: UsageSummary = {
  from: 0,
  to: 0,
  step: "hour",
  by: "model",
  figure: "quota",
  at: [],
  lines: { quota: [], count: [], tokens: [] },
  series: [],
  otherSize: 0,
  errors: [],
  ms: [],
  previous: { quota: 0, count: 0, tokens: 0 },
  elapsed: 0,
  unpriced: [],
};

const isEmpty = ({ lines, errors }: UsageSummary) => sumOf(lines.count) === 0 && sumOf(errors) === 0;

export default function DetailScreen() {
  const t = useT();
  useSignals();
  const data = bootData<DetailPageData>();
  const { isAdmin } = data;
  const query = useQuery();
  const zone = siteZone.value;
  const site = status.value;
  const usage = usageQueryOf(query, nowMs.value, zone, site, isAdmin);
  const { use, phase, failure, refresh } = useDetail(data, query, usage);
  useShortcut({ keys: "r", label: "common.refresh", run: () => void refresh() });

  const changeRange = (patch: Record<string, string | number | undefined>) => {
    const next = usageQueryOf(merged(query, patch), Date.now(), zone, site, isAdmin);
    // A step that would make too many bars goes back to automatic.
    const isBad = next.granularity !== undefined && !fits(next.granularity, next.range);
    setQuery(isBad ? { ...patch, granularity: undefined } : patch);
  };
  const exportCsv = async () => {
    const [{ downloadText }, { tableOf }] = await Promise.all([
      import("../lib/csv.ts"),
      import("./detail/export.ts"),
      loadAllTexts(),
    ]);
    const { name, text } = tableOf(t, use ?? NOTHING, site.quota_per_unit || 500_000, zone);
    downloadText(name, text);
  };
  const startExport = () => void exportCsv().catch((error: unknown) => toastFailure(error));
  useCommand({ id: "do detail export", kind: "do", title: t("table.exportCsv"), run: startExport });
  const request = () => ({ path: pathOf(usage), query: parametersOf(usage) });
  const firstSteps = use && isEmpty(use) ? data.first : undefined;

  return (
    <>
      <PageHeader
        title={t("shell.nav.dashboard")}
        overflow={[[refreshItem(t, refresh), exportItem(t, startExport), curlItem(t, request)]]}
      />
      <QueryBar usage={usage} isAdmin={isAdmin} onRange={changeRange} />
      {phase === "refreshing" || phase === "loading" ? (
        <progress className="progress progress-primary refresh-bar" aria-hidden />
      ) : null}
      {failure ? <FailureNotice text={failure} onRetry={refresh} /> : null}
      {use ? <Figures use={use} isOwn={usage.scope === "me"} used={data.used} /> : null}
      {use?.unpriced[0] ? (
        <div className="min-h-15">
          <RefusedModels models={use.unpriced} onPriced={refresh} />
        </div>
      ) : null}
      {firstSteps ? <FirstSteps steps={firstSteps} onDone={() => void refresh()} /> : null}
      {use && !firstSteps ? (
        <>
          <UsageCharts use={use} usage={usage} isAdmin={isAdmin} onRange={changeRange} />
          {isAdmin && usage.scope === undefined ? (
            <CachePanel from={usage.range.from} to={usage.range.to} />
          ) : null}
          {isAdmin && usage.scope === undefined ? (
            <MarginPanel
              from={usage.range.from}
              to={usage.range.to}
              step={usage.step}
              canWrite={data.isRoot}
              onRange={changeRange}
            />
          ) : null}
          {timeZone.value === zone ? null : (
            <p className="mt-4 text-xs text-muted">{t("detail.zone", { zone })}</p>
          )}
        </>
      ) : null}
    </>
  );
}

function merged(query: Query, patch: Record<string, string | number | undefined>): Query {
  const both: Record<string, string | number | undefined> = { ...query, ...patch };
  return Object.fromEntries(
    Object.entries(both).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])),
  );
}
