// Redemption codes: made in batches, sold elsewhere, seen here as unused, disabled or used.
// Refuses to edit or enable a used code; the server holds the same rule.
import { Ban, CircleCheck, Copy, Pencil, Plus, Trash2 } from "lucide-react";
import { useState } from "react";
import { api, call } from "../lib/api.ts";
import { bootData } from "../lib/boot.ts";
import { maskSecret } from "../lib/format.ts";
import { useT } from "../lib/i18n.ts";
import { useShortcut } from "../lib/keys.ts";
import { lazyPart } from "../lib/lazy-part.tsx";
import { useList } from "../lib/list.ts";
import { useTableQuery } from "../lib/table-query.ts";
import { setQuery } from "../lib/url-state.ts";
import { Money, StatusDot, When } from "../ui/badges.tsx";
import type { StatusTone } from "../ui/badges.tsx";
import { confirm } from "../ui/confirm.tsx";
import { copyText, CopyButton } from "../ui/copy-button.tsx";
import { toast, toastFailure } from "../ui/feedback.tsx";
import { FilterBar } from "../ui/filter-bar.tsx";
import { PageHeader, TabLinks } from "../ui/page-header.tsx";
import type { Column } from "../ui/table-columns.ts";
import { DataTable } from "../ui/table.tsx";
import { CreatedCodes } from "./redemption/created.tsx";
import type { CodeRow, RedemptionPageData } from "./redemption/row.ts";

const CodeDrawer = lazyPart(() => import("./redemption/drawer.tsx"));

const UNUSED = 1;
const DISABLED = 2;
const USED = 3;
const STATUS: Record<number, [StatusTone, string]> = {
  [UNUSED]: ["ok", "redemption.status.unused"],
  [DISABLED]: ["off", "redemption.status.disabled"],
  [USED]: ["running", "redemption.status.used"],
};
const VIEWS = ["", "1", "2", "3"] as const;
const VIEW_TEXTS: Record<string, string> = {
  "": "common.all",
  "1": "redemption.status.unused",
  "2": "redemption.status.disabled",
  "3": "redemption.status.used",
};

export default function RedemptionScreen() {
  const t = useT();
  const data = bootData<RedemptionPageData>();
  const table = useTableQuery(data.pageSize);
  const { query, page, pageSize } = table;
  const [created, setCreated] = useState<{ keys: readonly string[]; name: string }>();
  const view = query.status ?? "";
  const list = useList<CodeRow>({
    initial: data,
    question: JSON.stringify([query.keyword, view, page, pageSize]),
    async load() {
      const found = await call(
        api.redemption.search.get({
          query: {
            keyword: query.keyword ?? "",
            p: String(page),
            page_size: String(pageSize),
            ...(view === "" ? {} : { status: view }),
          },
        }),
      );
      return { rows: found.items as CodeRow[], total: found.total };
    },
  });
  const editing = list.rows.find((row) => String(row.id) === query.edit && row.status === UNUSED);
  const isOpen = query.new === "1" || editing !== undefined;
  const close = () => setQuery({ new: undefined, edit: undefined });
  useShortcut({ keys: "c", label: "redemption.new", run: () => setQuery({ new: 1 }) });

  const setStatus = async (rows: readonly CodeRow[], next: number) => {
    const changing = rows.filter((row) => row.status !== USED && row.status !== next);
    if (changing.length === 0) return;
    const ids = new Set(changing.map((row) => row.id));
    const undo = list.patch((all) => all.map((row) => (ids.has(row.id) ? { ...row, status: next } : row)));
    try {
      for (const row of changing)
        await call(api.redemption.put({ id: row.id, status: next }, { query: { status_only: "true" } }));
      toast({
        key: "redemption status",
        text: t(next === UNUSED ? "redemption.nowEnabled" : "redemption.nowDisabled", {
          count: changing.length,
        }),
        undo: () =>
          setStatus(
            changing.map((row) => ({ ...row, status: next })),
            next === UNUSED ? DISABLED : UNUSED,
          ),
      });
    } catch (error) {
      undo();
      toastFailure(error);
      await list.refresh();
    }
  };

  const remove = async (rows: readonly CodeRow[], clear?: () => void) => {
    const [first] = rows;
    if (!first) return;
    const yes = await confirm({
      title:
        rows.length === 1
          ? t("redemption.deleteOne", { name: first.name })
          : t("redemption.deleteMany", { count: rows.length }),
      text: t("redemption.deleteText"),
      action: t("common.delete"),
      isDanger: true,
      ...(rows.length > 20 ? { typed: String(rows.length) } : {}),
    });
    if (!yes) return;
    try {
      for (const row of rows) await call(api.redemption({ id: row.id }).delete());
      toast({ text: t("common.deleted") });
      clear?.();
    } catch (error) {
      toastFailure(error);
    }
    await list.refresh();
  };

  const columns: Column<CodeRow>[] = [
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
            <a className="link" href={`/user?keyword=${row.used_user_id}`}>
              {row.used_username || `#${row.used_user_id}`}
            </a>
            <When at={row.redeemed_time} />
          </span>
        ) : (
          <span className="text-muted">{t("common.none")}</span>
        ),
    },
  ];

  return (
    <>
      <PageHeader
        title={t("shell.nav.redemptions")}
        note={t("redemption.purpose")}
        action={
          <button type="button" className="btn btn-primary" onClick={() => setQuery({ new: 1 })}>
            <Plus aria-hidden size={16} />
            {t("redemption.new")}
          </button>
        }
      />
      {created ? (
        <CreatedCodes keys={created.keys} name={created.name} onClose={() => setCreated(undefined)} />
      ) : null}
      <TabLinks
        label={t("redemption.views")}
        current={view}
        tabs={VIEWS.map((id) => ({
          id,
          label: t(VIEW_TEXTS[id] ?? ""),
          href: id === "" ? "/redemption" : `/redemption?status=${id}`,
        }))}
        onOpen={(id) => table.setFilters({ status: id || undefined })}
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
        columns={columns}
        list={list}
        rowKey={(row) => row.id}
        rowName={(row) => row.name}
        rowHref={(row) => `/redemption?edit=${row.id}`}
        onOpen={(row) => (row.status === UNUSED ? setQuery({ edit: row.id }) : undefined)}
        isMuted={(row) => row.status !== UNUSED}
        columnsKey="redemptions-table-columns"
        rowMenu={(row) => [
          [
            {
              id: "copy",
              label: t("redemption.copyOne"),
              icon: Copy,
              onSelect: () => void copyText(row.key),
            },
            ...(row.status === UNUSED
              ? [
                  {
                    id: "edit",
                    label: t("common.edit"),
                    icon: Pencil,
                    onSelect: () => setQuery({ edit: row.id }),
                  },
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
        ]}
        bulk={(rows, clear) => (
          <>
            <button
              type="button"
              className="btn btn-sm btn-default"
              onClick={() => void copyText(rows.map((row) => `${row.name}    ${row.key}`).join("\n"))}
            >
              {t("redemption.copySelected")}
            </button>
            <button
              type="button"
              className="btn btn-sm btn-default"
              onClick={() => void setStatus(rows, DISABLED)}
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
        isFiltered={(query.keyword ?? "") !== "" || view !== ""}
        onClearFilters={() => table.setFilters({ keyword: undefined, status: undefined })}
        empty={{
          title: t("redemption.empty"),
          text: t("redemption.emptyText"),
          action: (
            <button type="button" className="btn btn-sm btn-primary" onClick={() => setQuery({ new: 1 })}>
              {t("redemption.new")}
            </button>
          ),
        }}
      />
      {isOpen ? (
        <CodeDrawer
          key={editing?.id ?? "new"}
          row={editing}
          onClose={close}
          onSaved={(keys, name) => {
            if (keys.length > 0) setCreated({ keys, name });
            toast({ text: t("common.saved") });
            void list.refresh();
          }}
        />
      ) : null}
    </>
  );
}
