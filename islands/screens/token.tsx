// API keys: the table, making and changing keys, ready code and chat links for each.
// Refuses to print a whole key in the list: it is copied from its row or shown once after creation.
import {
  Ban,
  CircleCheck,
  Copy,
  FileTerminal,
  MessageSquare,
  Pencil,
  Plus,
  ScrollText,
  Terminal,
  Trash2,
} from "lucide-react";
import { useSignals } from "@preact/signals-react/runtime";
import { useRef, useState } from "react";
import { api, call, callForBody } from "../lib/api.ts";
import { address, bootData, nowMs } from "../lib/boot.ts";
import { chatLinks } from "../lib/chat-links.ts";
import { curlOf } from "../lib/curl.ts";
import { useT } from "../lib/i18n.ts";
import { useShortcut } from "../lib/keys.ts";
import { lazyPart } from "../lib/lazy-part.tsx";
import { useList } from "../lib/list.ts";
import { useTableQuery } from "../lib/table-query.ts";
import { patchUrl, setQuery } from "../lib/url-state.ts";
import { confirm } from "../ui/confirm.tsx";
import { copyText } from "../ui/copy-button.tsx";
import { Notice } from "../ui/feedback.tsx";
import { toast, toastFailure } from "../lib/toasts.ts";
import { FilterBar } from "../ui/filter-bar.tsx";
import type { MenuGroups } from "../ui/menu.tsx";
import { PageHeader } from "../ui/page-header.tsx";
import { DataTable } from "../ui/table.tsx";
import { ViewTabs } from "../ui/view-tabs.tsx";
import { STATUS, tokenColumns } from "./token/cells.tsx";
import { openChat } from "./token/open-chat.ts";
import type { TokenPageData } from "./token/row.ts";
import { stateOf } from "./token/row.ts";
import type { TokenRow } from "../lib/wire.ts";

const UsePanel = lazyPart(() => import("./token/use-panel.tsx"));
const TokenDrawer = lazyPart(() => import("./token/drawer.tsx"));

const COLUMNS_KEY = "tokens-table-columns";
const VIEW_FIELDS = ["keyword", "token", "status"] as const;

export default function TokenScreen() {
  const t = useT();
  useSignals();
  const data = bootData<TokenPageData>();
  const table = useTableQuery(data.pageSize);
  const { query, page, pageSize } = table;
  const [shown, setShown] = useState<{ keys: readonly TokenRow[]; isNew: boolean }>({
    keys: [],
    isNew: false,
  });
  const [isWarned, setWarned] = useState(false);
  const selected = useRef<readonly TokenRow[]>([]);
  const filters = { keyword: query.keyword ?? "", token: query.token ?? "", status: query.status ?? "" };
  const isFiltered = Object.values(filters).some((value) => value !== "");

  const ask = async (at: number, size: number) => {
    const paging = { p: String(at - 1), size: String(size) };
    const answer =
      filters.keyword === "" && filters.token === ""
        ? await callForBody(api.token.get({ query: { ...paging, status: filters.status } }))
        : await callForBody(api.token.search.get({ query: { ...paging, ...filters } }));
    const whole = answer as { data: TokenRow[]; total?: number };
    return { rows: whole.data, total: whole.total ?? -1 };
  };
  const list = useList<TokenRow>({
    initial: data,
    queryKey: JSON.stringify([filters, page, pageSize]),
    load: () => ask(page, pageSize),
  });
  const loadAll = async () => {
    const rows: TokenRow[] = [];
    for (let at = 1; ; at++) {
      const next = await ask(at, 100);
      rows.push(...next.rows);
      if (next.rows.length < 100) return rows;
    }
  };
  const editing = list.rows.find((row) => String(row.id) === query.edit);
  const isOpen = query.new === "1" || editing !== undefined;
  const close = () => setQuery({ new: undefined, edit: undefined });
  useShortcut({ keys: "c", label: "token.new", run: () => setQuery({ new: 1 }) });

  /** Keys with the status that each shall have; undo gives every one its old status back. */
  const setStatus = async (changes: readonly { row: TokenRow; status: number }[], isUndo = false) => {
    const next = new Map(changes.map(({ row, status }) => [row.id, status]));
    const rollBack = list.patch((rows) =>
      rows.map((each) => ({ ...each, status: next.get(each.id) ?? each.status })),
    );
    const done: { row: TokenRow; status: number }[] = [];
    try {
      for (const { row, status } of changes) {
        await call(api.token.put({ id: row.id, status }, { query: { status_only: "true" } }));
        done.push({ row, status: row.status === 1 ? 1 : 2 });
      }
    } catch (error) {
      rollBack();
      toastFailure(error);
      if (done.length > 0) await list.refresh();
    }
    const [first] = changes;
    if (done.length === 0 || !first || isUndo) return;
    const isOn = first.status === 1;
    toast({
      key: `token ${first.row.id}`,
      text:
        done.length === 1
          ? t(isOn ? "token.nowEnabled" : "token.nowDisabled", { name: first.row.name })
          : t(isOn ? "token.nowEnabledMany" : "token.nowDisabledMany", { count: done.length }),
      undo: () => setStatus(done, true),
    });
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

  /** Actions of the header work on the selection, and say so when there is none. */
  const withSelection = (run: (rows: readonly TokenRow[]) => void) => () => {
    if (selected.current.length === 0) toast({ tone: "error", text: t("token.selectOne") });
    else run(selected.current);
  };
  const copyKeys = (rows: readonly TokenRow[]) =>
    void copyText(rows.map((row) => `${row.name} sk-${row.key}`).join("\n"));

  const rowMenu = (row: TokenRow): MenuGroups => {
    const links = chatLinks();
    return [
      [
        {
          id: "copy",
          label: t("token.copyKeyShort"),
          icon: Copy,
          onSelect: () => void copyText(`sk-${row.key}`),
        },
        {
          id: "use",
          label: t("token.use"),
          icon: Terminal,
          onSelect: () => setShown({ keys: [row], isNew: false }),
        },
        {
          id: "log",
          label: t("token.log"),
          icon: ScrollText,
          href: patchUrl("/log", { token_name: row.name, range: "30d" }),
        },
        { id: "edit", label: t("common.edit"), icon: Pencil, onSelect: () => setQuery({ edit: row.id }) },
        row.status === 1
          ? {
              id: "disable",
              label: t("common.disable"),
              icon: Ban,
              onSelect: () => void setStatus([{ row, status: 2 }]),
            }
          : {
              id: "enable",
              label: t("common.enable"),
              icon: CircleCheck,
              onSelect: () => void setStatus([{ row, status: 1 }]),
            },
      ],
      links.length === 0
        ? [
            {
              id: "chat",
              label: t("shell.nav.chat"),
              icon: MessageSquare,
              onSelect: () => toast({ tone: "error", text: t("token.chatNone") }),
            },
          ]
        : links.map((link, index) => ({
            id: `chat ${index}`,
            label: t("token.chatWith", { name: link.title }),
            icon: MessageSquare,
            onSelect: () => openChat(link.template, row.key, t("token.chatBroken")),
          })),
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
  };

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
        overflow={[
          [
            { id: "copy", label: t("token.copySelected"), icon: Copy, onSelect: withSelection(copyKeys) },
            {
              id: "curl",
              label: t("table.copyCurl"),
              icon: FileTerminal,
              onSelect: () =>
                void copyText(
                  curlOf({
                    path: filters.keyword || filters.token ? "/api/token/search" : "/api/token/",
                    query: { ...filters, p: page - 1, size: pageSize },
                  }),
                ),
            },
          ],
          [
            {
              id: "delete",
              label: t("token.deleteSelected"),
              icon: Trash2,
              isDanger: true,
              onSelect: withSelection((rows) => void remove(rows)),
            },
          ],
        ]}
      />
      {isWarned ? null : (
        <Notice tone="info" onClose={() => setWarned(true)}>
          {t("token.personalUse")}
        </Notice>
      )}
      {shown.keys.length > 0 ? (
        <UsePanel
          key={shown.keys[0]?.id}
          {...shown}
          models={data.models}
          onClose={() => setShown({ keys: [], isNew: false })}
        />
      ) : null}
      <ViewTabs
        label={t("table.views")}
        screen="token"
        builtIn={[
          { id: "all", label: t("common.all"), query: {} },
          ...[1, 2, 3, 4].map((status) => ({
            id: String(status),
            label: t(STATUS[status]?.[1] ?? ""),
            query: { status: String(status) },
          })),
        ]}
        fields={VIEW_FIELDS}
        query={query}
        onOpen={table.setFilters}
        columnsKey={COLUMNS_KEY}
      />
      <FilterBar
        searchName="keyword"
        searchLabel={t("token.searchName")}
        fields={[{ name: "token", label: t("token.key"), placeholder: "sk-…" }]}
        query={query}
        onChange={table.setFilters}
      />
      <DataTable
        label={t("token.title")}
        columns={tokenColumns(t, nowMs.value)}
        list={list}
        rowKey={(row) => row.id}
        rowName={(row) => row.name || `#${row.id}`}
        rowHref={(row) => patchUrl(address.peek(), { edit: row.id })}
        onOpen={(row) => setQuery({ edit: row.id })}
        isMuted={(row) => stateOf(row, nowMs.peek()) !== 1}
        columnsKey={COLUMNS_KEY}
        rowMenu={rowMenu}
        loadAll={loadAll}
        onSelection={(rows) => {
          selected.current = rows;
        }}
        bulk={(rows, clear) => (
          <>
            <button type="button" className="btn btn-sm btn-default" onClick={() => copyKeys(rows)}>
              {t("token.copySelected")}
            </button>
            <button
              type="button"
              className="btn btn-sm btn-default"
              onClick={() => void setStatus(rows.map((row) => ({ row, status: 1 })))}
            >
              {t("common.enable")}
            </button>
            <button
              type="button"
              className="btn btn-sm btn-default"
              onClick={() => void setStatus(rows.map((row) => ({ row, status: 2 })))}
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
        onClearFilters={() => table.setFilters({ keyword: undefined, token: undefined, status: undefined })}
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
            if (keys.length > 0) setShown({ keys, isNew: true });
            toast({ text: t("common.saved") });
            void list.refresh();
          }}
        />
      ) : null}
    </>
  );
}
