// Redemption codes: made in batches, sold elsewhere, seen here as unused, disabled or used.
// Refuses to edit or enable a used code; the server holds the same rule.
import { Ban, CircleCheck, Copy, Download, FileTerminal, Pencil, Plus, Trash2 } from "lucide-react";
import { useRef, useState } from "react";
import { api, call } from "../lib/api.ts";
import { address, bootData } from "../lib/boot.ts";
import { curlOf } from "../lib/curl.ts";
import { formatDateTime, maskSecret } from "../lib/format.ts";
import { useT } from "../lib/i18n.ts";
import { useShortcut } from "../lib/keys.ts";
import { lazyPart } from "../lib/lazy-part.tsx";
import { useList } from "../lib/list.ts";
import { useRowById } from "../lib/row-by-id.ts";
import { useTableQuery } from "../lib/table-query.ts";
import { patchUrl, setQuery } from "../lib/url-state.ts";
import { Money, StatusDot, When } from "../ui/badges.tsx";
import { confirm } from "../ui/confirm.tsx";
import { copyText, CopyButton } from "../ui/copy-button.tsx";
import { ExportProgress, useCsvExport } from "../ui/csv-export.tsx";
import { toast, toastFailure } from "../lib/toasts.ts";
import { FilterBar } from "../ui/filter-bar.tsx";
import type { MenuGroups } from "../ui/menu.tsx";
import { dollarsText } from "../ui/money-field.tsx";
import { PageHeader } from "../ui/page-header.tsx";
import type { Column } from "../ui/table-columns.ts";
import { DataTable } from "../ui/table.tsx";
import { ViewTabs } from "../ui/view-tabs.tsx";
import { DISABLED, MAX_IDS, STATUS, UNUSED, USED } from "./redemption/row.ts";
import type { CodeBatch, RedemptionPageData } from "./redemption/row.ts";
import type { CodeRow } from "../lib/wire.ts";

const CodeDrawer = lazyPart(() => import("./redemption/drawer.tsx"));
const CreatedCodes = lazyPart(() => import("./redemption/created.tsx"));

const COLUMNS_KEY = "redemptions-table-columns";
const PAGE_OF_ALL = 100;

type Translate = ReturnType<typeof useT>;

async function changeAll(rows: readonly CodeRow[], action: "enable" | "disable" | "delete"): Promise<number> {
  let count = 0;
  for (let at = 0; at < rows.length; at += MAX_IDS) {
    const ids = rows.slice(at, at + MAX_IDS).map((row) => row.id);
    count += await call(api.redemption.batch.post({ ids, action }));
  }
  return count;
}

function codeColumns(t: Translate): Column<CodeRow>[] {
  return [
    { id: "name", title: t("redemption.name"), isIdentity: true, card: "title", cell: (row) => row.name },
    {
      id: "key",
      title: t("redemption.code"),
      cell: (row) => (
        <span className="inline-flex items-center gap-1 mono">
          {maskSecret(row.key)}
          <CopyButton text={row.key} label={t("redemption.copyNamed", { name: row.name })} />
        </span>
      ),
    },
    {
      id: "status",
      title: t("redemption.statusTitle"),
      card: "badge",
      cell: (row) => {
        const [tone, key] = STATUS[row.status] ?? ["off", "common.unknown"];
        return <StatusDot tone={tone}>{t(key)}</StatusDot>;
      },
    },
    { id: "quota", title: t("redemption.value"), align: "end", cell: (row) => <Money quota={row.quota} /> },
    { id: "created", title: t("redemption.createdAt"), cell: (row) => <When at={row.created_time} /> },
    {
      id: "used",
      title: t("redemption.usedBy"),
      cell: (row) =>
        row.used_user_id > 0 ? (
          <span className="inline-flex flex-wrap gap-x-2">
            <a
              className="link"
              href={patchUrl("/user", { keyword: row.used_user_id, edit: row.used_user_id })}
            >
              {row.used_username || `#${row.used_user_id}`}
            </a>
            <span className="text-muted">
              <When at={row.redeemed_time} />
            </span>
          </span>
        ) : (
          <span className="text-muted">{t("common.none")}</span>
        ),
    },
  ];
}

export default function RedemptionScreen() {
  const t = useT();
  const data = bootData<RedemptionPageData>();
  const table = useTableQuery(data.pageSize);
  const { query, page, pageSize } = table;
  const [created, setCreated] = useState<CodeBatch>();
  const selected = useRef<readonly CodeRow[]>([]);
  const filters = { keyword: query.keyword ?? "", status: query.status ?? "" };
  const isFiltered = filters.keyword !== "" || filters.status !== "";
  const ask = async (at: number, size: number) => {
    const found = await call(
      api.redemption.search.get({ query: { ...filters, p: String(at), page_size: String(size) } }),
    );
    return { rows: found.items, total: found.total };
  };
  const list = useList<CodeRow>({
    initial: data,
    queryKey: JSON.stringify([filters, page, pageSize]),
    load: () => ask(page, pageSize),
  });
  const loadAll = async () => {
    const rows: CodeRow[] = [];
    for (let at = 1; ; at++) {
      const next = await ask(at, PAGE_OF_ALL);
      rows.push(...next.rows);
      if (next.rows.length < PAGE_OF_ALL) return rows;
    }
  };
  const close = () => setQuery({ new: undefined, edit: undefined });
  const open = useRowById<CodeRow>(
    query.edit,
    list.rows,
    (id) => call(api.redemption({ id }).get()),
    close,
  );
  useShortcut({ keys: "c", label: "redemption.new", run: () => setQuery({ new: 1 }) });
  const csv = useCsvExport<CodeRow>(() => ({
    name: "codes",
    heads: [
      t("redemption.code"),
      t("redemption.name"),
      t("redemption.statusTitle"),
      t("redemption.csvDollars"),
      t("redemption.csvQuota"),
      t("redemption.createdAt"),
      t("redemption.usedBy"),
      t("redemption.usedAt"),
    ],
    load: (at) => ask(at, PAGE_OF_ALL),
    rowKey: (row) => row.id,
    cells: (row) => [
      row.key,
      row.name,
      t(STATUS[row.status]?.[1] ?? "common.unknown"),
      dollarsText(row.quota),
      row.quota,
      formatDateTime(row.created_time * 1000),
      row.used_username,
      row.redeemed_time > 0 ? formatDateTime(row.redeemed_time * 1000) : "",
    ],
  }));

  const setStatus = async (rows: readonly CodeRow[], next: number, clear?: () => void, isUndo = false) => {
    const changing = rows.filter((row) => row.status !== USED && row.status !== next);
    if (changing.length === 0) {
      toast({ key: "redemption status", tone: "info", text: t("redemption.nothingToSwitch") });
      return;
    }
    const ids = new Set(changing.map((row) => row.id));
    const rollBack = list.patch((all) =>
      all.map((row) => (ids.has(row.id) ? { ...row, status: next } : row)),
    );
    try {
      const count = await changeAll(changing, next === UNUSED ? "enable" : "disable");
      clear?.();
      if (!isUndo)
        toast({
          key: "redemption status",
          text: t(next === UNUSED ? "redemption.nowEnabled" : "redemption.nowDisabled", { count }),
          undo: () =>
            setStatus(
              changing.map((row) => ({ ...row, status: next })),
              next === UNUSED ? DISABLED : UNUSED,
              undefined,
              true,
            ),
        });
      // Somebody redeemed one in the meantime: the list knows better.
      if (count !== changing.length) await list.refresh();
    } catch (error) {
      rollBack();
      toastFailure(error);
      await list.refresh();
    }
  };

  const remove = async (rows: readonly CodeRow[], clear?: () => void) => {
    const [first] = rows;
    if (!first) return;
    const count = rows.length;
    const unused = rows.filter((row) => row.status === UNUSED).length;
    const yes = await confirm({
      title:
        count === 1 ? t("redemption.deleteOne", { name: first.name }) : t("redemption.deleteMany", { count }),
      text: unused > 0 ? t("redemption.deleteUnused", { count: unused }) : t("redemption.deleteText"),
      action: count === 1 ? t("common.delete") : t("redemption.deleteAction", { count }),
      isDanger: true,
      ...(count > 20 ? { typed: String(count) } : {}),
    });
    if (!yes) return;
    try {
      await changeAll(rows, "delete");
      toast({ text: t("common.deleted") });
      clear?.();
    } catch (error) {
      toastFailure(error);
    }
    await list.refresh();
  };

  /** Actions of the header work on the selection, and say so when there is none. */
  const withSelection = (run: (rows: readonly CodeRow[]) => void) => () => {
    if (selected.current.length === 0) toast({ tone: "error", text: t("redemption.selectOne") });
    else run(selected.current);
  };
  const copyCodes = (rows: readonly CodeRow[]) =>
    void copyText(rows.map((row) => `${row.name}    ${row.key}`).join("\n"));

  const rowMenu = (row: CodeRow): MenuGroups => [
    [
      { id: "copy", label: t("redemption.copyOne"), icon: Copy, onSelect: () => void copyText(row.key) },
      ...(row.status === UNUSED
        ? [
            { id: "edit", label: t("common.edit"), icon: Pencil, onSelect: () => setQuery({ edit: row.id }) },
            {
              id: "disable",
              label: t("common.disable"),
              icon: Ban,
              onSelect: () => void setStatus([row], DISABLED),
            },
          ]
        : []),
      ...(row.status === DISABLED
        ? [
            {
              id: "enable",
              label: t("common.enable"),
              icon: CircleCheck,
              onSelect: () => void setStatus([row], UNUSED),
            },
          ]
        : []),
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
  ];

  const newButton = (className: string) => (
    <button type="button" className={className} onClick={() => setQuery({ new: 1 })}>
      <Plus aria-hidden size={16} />
      {t("redemption.new")}
    </button>
  );
  return (
    <>
      <PageHeader
        title={t("shell.nav.redemptions")}
        note={t("redemption.purpose")}
        action={newButton("btn btn-primary")}
        overflow={[
          [
            { id: "csv", label: t("table.export"), icon: Download, onSelect: csv.start },
            {
              id: "copy",
              label: t("redemption.copySelected"),
              icon: Copy,
              onSelect: withSelection(copyCodes),
            },
            {
              id: "curl",
              label: t("table.copyCurl"),
              icon: FileTerminal,
              onSelect: () =>
                void copyText(
                  curlOf({
                    path: "/api/redemption/search",
                    query: { ...filters, p: page, page_size: pageSize },
                  }),
                ),
            },
          ],
          [
            {
              id: "delete",
              label: t("redemption.deleteSelected"),
              icon: Trash2,
              isDanger: true,
              onSelect: withSelection((rows) => void remove(rows)),
            },
          ],
        ]}
      />
      {created ? <CreatedCodes batch={created} onClose={() => setCreated(undefined)} /> : null}
      <ExportProgress {...csv} />
      <ViewTabs
        label={t("table.views")}
        screen="redemption"
        builtIn={[
          { id: "all", label: t("common.all"), query: {} },
          ...[UNUSED, USED, DISABLED].map((status) => ({
            id: String(status),
            label: t(STATUS[status]?.[1] ?? ""),
            query: { status: String(status) },
          })),
        ]}
        fields={["keyword", "status"]}
        query={query}
        onOpen={table.setFilters}
        columnsKey={COLUMNS_KEY}
      />
      <FilterBar
        searchName="keyword"
        searchLabel={t("redemption.search")}
        fields={[]}
        query={query}
        onChange={table.setFilters}
      />
      <DataTable
        label={t("shell.nav.redemptions")}
        columns={codeColumns(t)}
        list={list}
        rowKey={(row) => row.id}
        rowName={(row) => row.name}
        rowHref={(row) => patchUrl(address.peek(), { edit: row.id })}
        onOpen={(row) => setQuery({ edit: row.id })}
        isMuted={(row) => row.status !== UNUSED}
        columnsKey={COLUMNS_KEY}
        rowMenu={rowMenu}
        loadAll={loadAll}
        onSelection={(rows) => {
          selected.current = rows;
        }}
        bulk={(rows, clear) => (
          <>
            <button type="button" className="btn btn-sm btn-default" onClick={() => copyCodes(rows)}>
              {t("redemption.copySelected")}
            </button>
            <button
              type="button"
              className="btn btn-sm btn-default"
              onClick={() => void setStatus(rows, UNUSED, clear)}
            >
              {t("common.enable")}
            </button>
            <button
              type="button"
              className="btn btn-sm btn-default"
              onClick={() => void setStatus(rows, DISABLED, clear)}
            >
              {t("common.disable")}
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
        onClearFilters={() => table.setFilters({ keyword: undefined, status: undefined })}
        empty={{
          title: t("redemption.empty"),
          text: t("redemption.emptyText"),
          action: newButton("btn btn-sm btn-primary"),
        }}
      />
      {query.new === "1" || open ? (
        <CodeDrawer
          key={open?.id ?? "new"}
          row={query.new === "1" ? undefined : open}
          onClose={close}
          onSaved={(batch) => {
            // The panel with the new codes says more than a toast would.
            if (batch) setCreated(batch);
            else toast({ text: t("common.saved") });
            void list.refresh();
          }}
        />
      ) : null}
    </>
  );
}
