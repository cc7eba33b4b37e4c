// API keys: the table, making and changing keys, and ready code after a key was made.
// Refuses to print a whole key in the list: it is copied from its row or shown once after creation.
import { Ban, CircleCheck, Copy, Pencil, Plus, ScrollText, Trash2 } from "lucide-react";
import { useState } from "react";
import { api, call, callWhole } from "../lib/api.ts";
import { bootData, status } from "../lib/boot.ts";
import { formatQuota, maskSecret } from "../lib/format.ts";
import { useT } from "../lib/i18n.ts";
import { useShortcut } from "../lib/keys.ts";
import { lazyPart } from "../lib/lazy-part.tsx";
import { useList } from "../lib/list.ts";
import { useTableQuery } from "../lib/table-query.ts";
import { setQuery } from "../lib/url-state.ts";
import { Chip, Money, StatusDot, When } from "../ui/badges.tsx";
import type { StatusTone } from "../ui/badges.tsx";
import { confirm } from "../ui/confirm.tsx";
import { copyText, CopyButton } from "../ui/copy-button.tsx";
import { Notice, toast, toastFailure } from "../ui/feedback.tsx";
import { FilterBar } from "../ui/filter-bar.tsx";
import { PageHeader } from "../ui/page-header.tsx";
import type { Column } from "../ui/table-columns.ts";
import { DataTable } from "../ui/table.tsx";
import { CreatedKeys } from "./token/created.tsx";
import type { TokenPageData, TokenRow } from "./token/row.ts";

const TokenDrawer = lazyPart(() => import("./token/drawer.tsx"));

const STATUS: Record<number, [StatusTone, string]> = {
  1: ["ok", "token.status.enabled"],
  2: ["off", "token.status.disabled"],
  3: ["attention", "token.status.expired"],
  4: ["attention", "token.status.exhausted"],
};

export default function TokenScreen() {
  const t = useT();
  const data = bootData<TokenPageData>();
  const table = useTableQuery(data.pageSize);
  const { query, page, pageSize } = table;
  const [created, setCreated] = useState<readonly TokenRow[]>([]);
  const isFiltered = (query.keyword ?? "") !== "" || (query.token ?? "") !== "";
  const list = useList<TokenRow>({
    initial: data,
    question: JSON.stringify([query.keyword, query.token, page, pageSize]),
    async load() {
      const answer = isFiltered
        ? await callWhole(
            api.token.search.get({ query: { keyword: query.keyword ?? "", token: query.token ?? "" } }),
          )
        : await callWhole(api.token.get({ query: { p: String(page - 1), size: String(pageSize) } }));
      const whole = answer as { data: TokenRow[]; total?: number };
      return { rows: whole.data, total: whole.total ?? (isFiltered ? whole.data.length : -1) };
    },
  });
  const editing = list.rows.find((row) => String(row.id) === query.edit);
  const isOpen = query.new === "1" || editing !== undefined;
  const close = () => setQuery({ new: undefined, edit: undefined });
  useShortcut({ keys: "c", label: "token.new", run: () => setQuery({ new: 1 }) });

  const setStatus = async (row: TokenRow, next: number) => {
    const undo = list.patch((rows) =>
      rows.map((each) => (each.id === row.id ? { ...each, status: next } : each)),
    );
    try {
      await call(api.token.put({ id: row.id, status: next }, { query: { status_only: "true" } }));
      toast({
        key: `token ${row.id}`,
        text: t(next === 1 ? "token.nowEnabled" : "token.nowDisabled", { name: row.name }),
        undo: () => setStatus({ ...row, status: next }, row.status === 1 ? 1 : 2),
      });
    } catch (error) {
      undo();
      toastFailure(error);
    }
  };

  const remove = async (rows: readonly TokenRow[], clear?: () => void) => {
    const [first] = rows;
    if (!first) return;
    const yes = await confirm({
      title:
        rows.length === 1
          ? t("token.deleteOne", { name: first.name })
          : t("token.deleteMany", { count: rows.length }),
      text: t("token.deleteText"),
      action: rows.length === 1 ? t("common.delete") : t("token.deleteManyAction", { count: rows.length }),
      isDanger: true,
      ...(rows.length > 20 ? { typed: String(rows.length) } : {}),
    });
    if (!yes) return;
    try {
      for (const row of rows) await call(api.token({ id: row.id }).delete());
      toast({ text: t("common.deleted") });
      clear?.();
    } catch (error) {
      toastFailure(error);
    }
    await list.refresh();
  };

  const columns: Column<TokenRow>[] = [
    {
      id: "name",
      title: t("token.name"),
      isIdentity: true,
      card: "title",
      cell: (row) => row.name || `#${row.id}`,
    },
    {
      id: "status",
      title: t("token.statusTitle"),
      card: "badge",
      cell: (row) => {
        const [tone, key] = STATUS[row.status] ?? ["off", "common.unknown"];
        return <StatusDot tone={tone}>{t(key)}</StatusDot>;
      },
    },
    {
      id: "key",
      title: t("token.key"),
      cell: (row) => (
        <span className="inline-flex items-center gap-1 mono">
          {`sk-${maskSecret(row.key)}`}
          <CopyButton text={`sk-${row.key}`} label={t("token.copyKey", { name: row.name })} />
        </span>
      ),
    },
    {
      id: "quota",
      title: t("token.remaining"),
      align: "end",
      cell: (row) => <QuotaBar row={row} unlimited={t("common.unlimited")} />,
    },
    {
      id: "group",
      title: t("token.group"),
      cell: (row) =>
        row.group === "" ? (
          <span className="text-muted">{t("token.groupOwn")}</span>
        ) : (
          <Chip>{row.group}</Chip>
        ),
    },
    {
      id: "models",
      title: t("token.models"),
      cell: (row) =>
        row.model_limits_enabled ? (
          <ModelsCell text={row.model_limits} />
        ) : (
          <span className="text-muted">{t("common.all")}</span>
        ),
    },
    {
      id: "ips",
      title: t("token.ips"),
      isHiddenByDefault: true,
      cell: (row) =>
        row.allow_ips ? (
          <span className="mono">{row.allow_ips.split("\n").join(", ")}</span>
        ) : (
          <span className="text-muted">{t("common.all")}</span>
        ),
    },
    {
      id: "expires",
      title: t("token.expires"),
      cell: (row) => <When at={row.expired_time} never={t("common.never")} isAbsolute />,
    },
    {
      id: "created",
      title: t("token.created"),
      isHiddenByDefault: true,
      cell: (row) => <When at={row.created_time} />,
    },
    {
      id: "accessed",
      title: t("token.accessed"),
      cell: (row) => <When at={row.accessed_time} never={t("token.neverUsed")} />,
    },
  ];

  return (
    <>
      <PageHeader
        title={t("token.title")}
        note={t("token.purpose")}
        action={
          <button type="button" className="btn btn-primary" onClick={() => setQuery({ new: 1 })}>
            <Plus aria-hidden size={16} />
            {t("token.new")}
          </button>
        }
      />
      <Notice tone="info">{t("token.personalUse")}</Notice>
      {created.length > 0 ? (
        <CreatedKeys keys={created} address={status.peek().server_address} onClose={() => setCreated([])} />
      ) : null}
      <FilterBar
        searchName="keyword"
        searchLabel={t("token.searchName")}
        fields={[{ name: "token", label: t("token.key"), placeholder: "sk-…" }]}
        query={query}
        onChange={table.setFilters}
      />
      <DataTable
        label={t("token.title")}
        columns={columns}
        list={list}
        rowKey={(row) => row.id}
        rowName={(row) => row.name || `#${row.id}`}
        rowHref={(row) => `/token?edit=${row.id}`}
        onOpen={(row) => setQuery({ edit: row.id })}
        isMuted={(row) => row.status !== 1}
        columnsKey="tokens-table-columns"
        rowMenu={(row) => [
          [
            {
              id: "copy",
              label: t("token.copyKeyShort"),
              icon: Copy,
              onSelect: () => void copyText(`sk-${row.key}`),
            },
            { id: "use", label: t("token.use"), icon: ScrollText, onSelect: () => setCreated([row]) },
            { id: "edit", label: t("common.edit"), icon: Pencil, onSelect: () => setQuery({ edit: row.id }) },
            row.status === 1
              ? {
                  id: "disable",
                  label: t("common.disable"),
                  icon: Ban,
                  onSelect: () => void setStatus(row, 2),
                }
              : {
                  id: "enable",
                  label: t("common.enable"),
                  icon: CircleCheck,
                  onSelect: () => void setStatus(row, 1),
                },
          ],
          [
            {
              id: "delete",
              label: t("common.delete"),
              icon: Trash2,
              isDanger: true,
              onSelect: () => void remove([row]),
            },
          ],
        ]}
        bulk={(rows, clear) => (
          <>
            <button
              type="button"
              className="btn btn-sm btn-default"
              onClick={() => void copyText(rows.map((row) => `${row.name} sk-${row.key}`).join("\n"))}
            >
              {t("token.copySelected")}
            </button>
            <button
              type="button"
              className="btn btn-sm btn-error btn-soft"
              onClick={() => void remove(rows, clear)}
            >
              {t("common.delete")}
            </button>
          </>
        )}
        page={page}
        pageSize={pageSize}
        onPage={table.setPage}
        onPageSize={table.setPageSize}
        isFiltered={isFiltered}
        onClearFilters={() => table.setFilters({ keyword: undefined, token: undefined })}
        empty={{
          title: t("token.empty"),
          text: t("token.emptyText"),
          action: (
            <button type="button" className="btn btn-sm btn-primary" onClick={() => setQuery({ new: 1 })}>
              {t("token.new")}
            </button>
          ),
        }}
      />
      {isOpen ? (
        <TokenDrawer
          key={editing?.id ?? "new"}
          row={editing}
          isOpen
          data={data}
          onClose={close}
          onSaved={(keys) => {
            setCreated(keys);
            toast({ text: t("common.saved") });
            void list.refresh();
          }}
        />
      ) : null}
    </>
  );
}

function QuotaBar({ row, unlimited }: { row: TokenRow; unlimited: string }) {
  if (row.unlimited_quota) return <span className="text-muted">{unlimited}</span>;
  const total = row.remain_quota + row.used_quota;
  const share = total <= 0 ? 0 : Math.max(0, Math.min(1, row.remain_quota / total));
  const used = formatQuota(row.used_quota);
  return (
    <span
      className="latency"
      data-tone={share > 0.2 ? "ok" : share > 0 ? "attention" : "broken"}
      title={`${used} / ${formatQuota(total)}`}
    >
      <Money quota={row.remain_quota} />
      <span className="latency-bar" aria-hidden>
        <span style={{ width: `${share * 100}%` }} />
      </span>
    </span>
  );
}

function ModelsCell({ text }: { text: string }) {
  const names = text.split(",").filter((name) => name !== "");
  return (
    <span className="inline-flex flex-wrap gap-1" title={names.join(", ")}>
      {names.slice(0, 2).map((name) => (
        <Chip key={name}>{name}</Chip>
      ))}
      {names.length > 2 ? <span className="text-muted">+{names.length - 2}</span> : null}
    </span>
  );
}
