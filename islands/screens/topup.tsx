// The wallet: balance, codes redeemed here, the way to buy some, invitations, and what was credited so far.
// Refuses to send an empty code; each of several codes gets an answer of its own.
import { useSignals } from "@preact/signals-react/runtime";
import { ExternalLink } from "lucide-react";
import { useId, useState } from "react";
import { api, call } from "../lib/api.ts";
import { bootData, status, user } from "../lib/boot.ts";
import { formatNumber, formatQuota, maskSecret } from "../lib/format.ts";
import { useT } from "../lib/i18n.ts";
import { useList } from "../lib/list.ts";
import { useTableQuery } from "../lib/table-query.ts";
import { Money, StatusDot, When } from "../ui/badges.tsx";
import { announce, toast, toastFailure } from "../ui/feedback.tsx";
import { PageHeader } from "../ui/page-header.tsx";
import type { Column } from "../ui/table-columns.ts";
import { DataTable } from "../ui/table.tsx";
import { InvitationCard } from "../ui/invitation-card.tsx";
import type { Invitation } from "../ui/invitation-card.tsx";

interface HistoryRow {
  id: number;
  created_at: number;
  content: string;
  quota: number;
}

interface WalletData {
  rows: HistoryRow[];
  total: number;
  pageSize: number;
  used: number;
  requests: number;
  invitation: Invitation;
}

interface CodeResult {
  key: string;
  quota: number;
  success: boolean;
  message: string;
}

const TOP_UP = "1";

export default function Wallet() {
  useSignals();
  const t = useT();
  const data = bootData<WalletData>();
  const table = useTableQuery(data.pageSize);
  const { page, pageSize } = table;
  const list = useList<HistoryRow>({
    initial: data,
    question: JSON.stringify([page, pageSize]),
    async load() {
      const found = await call(
        api.log.self.get({ query: { p: String(page), page_size: String(pageSize), type: TOP_UP } }),
      );
      return { rows: found.items as HistoryRow[], total: found.total };
    },
  });
  const balance = user.value?.quota ?? 0;

  const credited = (quota: number) => {
    if (user.value) user.value = { ...user.value, quota: user.value.quota + quota };
    void list.refresh();
  };

  const columns: Column<HistoryRow>[] = [
    {
      id: "time",
      title: t("topup.time"),
      isIdentity: true,
      card: "title",
      cell: (row) => <When at={row.created_at} isAbsolute />,
    },
    { id: "content", title: t("topup.what"), cell: (row) => row.content },
    {
      id: "quota",
      title: t("topup.amount"),
      align: "end",
      card: "badge",
      cell: (row) =>
        row.quota > 0 ? <Money quota={row.quota} /> : <span className="text-muted">{t("common.none")}</span>,
    },
  ];

  return (
    <>
      <PageHeader title={t("shell.nav.wallet")} note={t("topup.purpose")} />
      <div className="grid gap-4 lg:grid-cols-2 mb-6">
        <section className="panel" aria-labelledby="balance-title">
          <h2 id="balance-title" className="font-semibold">
            {t("topup.balance")}
          </h2>
          <p className="text-2xl font-semibold tabular-nums mt-1" data-testid="balance">
            {formatQuota(balance)}
          </p>
          <dl className="facts mt-3">
            <div>
              <dt>{t("topup.used")}</dt>
              <dd>{formatQuota(data.used)}</dd>
            </div>
            <div>
              <dt>{t("topup.requests")}</dt>
              <dd>{formatNumber(data.requests)}</dd>
            </div>
          </dl>
        </section>
        <RedeemPanel onCredited={credited} />
        <InvitationCard invitation={data.invitation} onMoved={credited} />
      </div>
      <h2 className="font-semibold mb-2">{t("topup.history")}</h2>
      <DataTable
        label={t("topup.history")}
        columns={columns}
        list={list}
        rowKey={(row) => row.id}
        rowName={(row) => row.content}
        columnsKey="topups-table-columns"
        page={page}
        pageSize={pageSize}
        onPage={table.setPage}
        onPageSize={table.setPageSize}
        isFiltered={false}
        empty={{ title: t("topup.empty"), text: t("topup.emptyText") }}
      />
    </>
  );
}

function RedeemPanel({ onCredited }: { onCredited: (quota: number) => void }) {
  const t = useT();
  const id = useId();
  const [text, setText] = useState("");
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [results, setResults] = useState<readonly CodeResult[]>([]);
  const link = status.peek().top_up_link as string | undefined;

  const redeem = async () => {
    const keys = [...new Set(text.split(/[\s,;]+/).filter((key) => key !== ""))];
    if (keys.length === 0) return setProblem(t("topup.codeMissing"));
    setProblem("");
    setBusy(true);
    try {
      const found = (await call(api.user.topup.batch.post({ keys }))) as CodeResult[];
      const sum = found.reduce((total, result) => total + result.quota, 0);
      setResults(found);
      if (sum > 0) {
        onCredited(sum);
        toast({ text: t("topup.redeemed", { amount: formatQuota(sum) }) });
      }
      // What failed stays in the field, to be looked at.
      setText(
        found
          .filter((result) => !result.success)
          .map((result) => result.key)
          .join("\n"),
      );
      if (sum === 0) announce("topup.noneRedeemed");
    } catch (error) {
      toastFailure(error);
    } finally {
      setBusy(false);
    }
  };

  const buy = () => {
    if (!link) return toast({ tone: "error", text: t("topup.noLink") });
    window.open(link, "_blank", "noopener");
  };

  return (
    <section className="panel" aria-labelledby={`${id}-title`}>
      <h2 id={`${id}-title`} className="font-semibold">
        {t("topup.redeem")}
      </h2>
      <form
        className="mt-2"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void redeem();
        }}
      >
        <label className="field-label" htmlFor={id}>
          {t("topup.codes")}
        </label>
        <textarea
          id={id}
          className="textarea mono w-full"
          rows={3}
          value={text}
          autoComplete="off"
          spellCheck={false}
          aria-invalid={problem !== ""}
          aria-describedby={`${id}-hint`}
          placeholder={t("topup.codesPlaceholder")}
          onChange={(event) => setText(event.target.value)}
        />
        <p
          id={`${id}-hint`}
          className={problem === "" ? "text-muted text-sm" : "text-error text-sm"}
          role={problem === "" ? undefined : "alert"}
        >
          {problem === "" ? t("topup.codesHint") : problem}
        </p>
        <div className="flex flex-wrap gap-2 mt-3">
          <button type="submit" className="btn btn-primary" disabled={isBusy}>
            {isBusy ? t("topup.redeeming") : t("topup.redeem")}
          </button>
          <button type="button" className="btn btn-default" onClick={buy}>
            {t("topup.buy")}
            <ExternalLink aria-hidden size={14} />
          </button>
        </div>
      </form>
      {results.length > 0 ? (
        <ul className="mt-3 flex flex-col gap-1" aria-label={t("topup.results")}>
          {results.map((result) => (
            <li key={result.key} className="flex flex-wrap items-center gap-2">
              <code className="mono">{maskSecret(result.key)}</code>
              <StatusDot tone={result.success ? "ok" : "broken"}>
                {result.success ? t("topup.plus", { amount: formatQuota(result.quota) }) : result.message}
              </StatusDot>
            </li>
          ))}
        </ul>
      ) : null}
    </section>
  );
}
