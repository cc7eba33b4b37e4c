// The operator's inbox: what needs a person, put off or closed by hand, and what has closed itself.
// Refuses a second list of anything: each item leads to the screen where its cause is cured.
import { useSignals } from "@preact/signals-react/runtime";
import { INBOX_KINDS, inboxSentence } from "../../src/shared/inbox.ts";
import { api, call } from "../lib/api.ts";
import { bootData, nowMs } from "../lib/boot.ts";
import { language, useT } from "../lib/i18n.ts";
import { useListScreen } from "../lib/list-screen.ts";
import type { PageRequest } from "../lib/list-screen.ts";
import type { ListState } from "../lib/list.ts";
import { useTableQuery } from "../lib/table-query.ts";
import type { InboxRow } from "../lib/wire.ts";
import { curlItem } from "../ui/list-menu.ts";
import { ListScreen } from "../ui/list-screen.tsx";
import { ListViews } from "../ui/list-views.tsx";
import { BulkButton } from "../ui/table-selection.tsx";
import { change } from "./inbox/actions.ts";
import { inboxColumns } from "./inbox/columns.tsx";
import { rowMenu } from "./inbox/menus.ts";
import type { InboxPageData } from "./inbox/row.ts";

const COLUMNS_KEY = "inbox-table-columns";
const VIEW_FIELDS = ["state", "kind"] as const;
const DAY_HOURS = 24;

async function fetchItems(
  filters: Record<(typeof VIEW_FIELDS)[number], string>,
  { page, pageSize }: PageRequest,
) {
  const { items, total } = await call(
    api.inbox.get({ query: { ...filters, p: String(page), page_size: String(pageSize) } }),
  );
  return { rows: items, total };
}

interface BulkProps {
  list: ListState<InboxRow>;
  rows: readonly InboxRow[];
  clear: () => void;
}

function BulkActions({ list, rows, clear }: BulkProps) {
  const t = useT();
  const snooze = { state: "snoozed", hours: DAY_HOURS } as const;
  return (
    <>
      <BulkButton label={t("inbox.snooze.24")} onClick={() => void change(list, rows, snooze, clear)} />
      <BulkButton
        label={t("inbox.close")}
        onClick={() => void change(list, rows, { state: "closed" }, clear)}
      />
    </>
  );
}

export default function InboxScreen() {
  useSignals();
  const t = useT();
  const data = bootData<InboxPageData>();
  const table = useTableQuery(data.pageSize);
  const { query, page, pageSize } = table;
  const filters = { state: query.state ?? "", kind: query.kind ?? "" };
  const fetchPage = (request: PageRequest) => fetchItems(filters, request);
  const screen = useListScreen<InboxRow>({ data, table, filters, arranging: ["state"], fetchPage });
  const { list } = screen;
  const nowSeconds = Math.floor(nowMs.value / 1000);
  const request = () => ({ path: "/api/inbox/", query: { ...filters, p: page, page_size: pageSize } });
  const isClosedView = filters.state === "closed";

  return (
    <ListScreen
      screen={screen}
      columnsKey={COLUMNS_KEY}
      header={{
        title: t("inbox.title"),
        note: t("inbox.purpose"),
        overflow: [[curlItem(t, request)]],
      }}
      views={
        <ListViews
          list={screen}
          screen="inbox"
          builtIn={[
            { id: "open", label: t("inbox.state.open"), query: {} },
            { id: "snoozed", label: t("inbox.state.snoozed"), query: { state: "snoozed" } },
            { id: "closed", label: t("inbox.state.closed"), query: { state: "closed" } },
          ]}
          fields={VIEW_FIELDS}
          columnsKey={COLUMNS_KEY}
        />
      }
      filters={{
        fields: [
          {
            name: "kind",
            label: t("inbox.kindTitle"),
            choices: INBOX_KINDS.map((kind) => ({ value: kind, label: t(`inbox.kind.${kind}`) })),
          },
        ],
      }}
      table={{
        columns: inboxColumns(t, nowSeconds, filters.state === ""),
        rowKey: (row) => row.id,
        rowName: (row) => inboxSentence(t, language.value, row),
        isMuted: (row) => row.closed_at > 0,
        rowMenu: (row) => rowMenu({ t, list, row, nowSeconds }),
        ...(isClosedView
          ? {}
          : {
              bulk: (rows: readonly InboxRow[], clear: () => void) => (
                <BulkActions list={list} rows={rows} clear={clear} />
              ),
            }),
        empty: { title: t("inbox.empty"), text: t("inbox.emptyText") },
      }}
    />
  );
}
