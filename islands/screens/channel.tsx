// Channels: the table with quick edits, adding and changing, enabling and disabling with undo, deleting.
// Refuses to delete without naming what and how many.
import { Ban, CircleCheck, Pencil, Plus, Trash2 } from "lucide-react";
import { providerForm } from "../../src/shared/provider-forms.ts";
import { api, call, callWhole } from "../lib/api.ts";
import { bootData } from "../lib/boot.ts";
import { language, useT } from "../lib/i18n.ts";
import { useShortcut } from "../lib/keys.ts";
import { lazyPart } from "../lib/lazy-part.tsx";
import { useList } from "../lib/list.ts";
import { useTableQuery } from "../lib/table-query.ts";
import { setQuery } from "../lib/url-state.ts";
import { Chip, Latency, Money, StatusDot, When } from "../ui/badges.tsx";
import type { StatusTone } from "../ui/badges.tsx";
import { confirm } from "../ui/confirm.tsx";
import { toast, toastFailure } from "../ui/feedback.tsx";
import { FilterBar } from "../ui/filter-bar.tsx";
import { PageHeader } from "../ui/page-header.tsx";
import type { Column } from "../ui/table-columns.ts";
import { DataTable } from "../ui/table.tsx";
import type { ChannelPageData, ChannelRow } from "./channel/row.ts";
import { namesOf, reasonOf, RESPONSE_MS } from "./channel/row.ts";

const ChannelDrawer = lazyPart(() => import("./channel/drawer.tsx"));

const STATUS: Record<number, [StatusTone, string]> = {
  1: ["ok", "common.enabled"],
  2: ["off", "common.disabled"],
  3: ["attention", "channel.autoDisabled"],
};

type Numbers = Pick<ChannelRow, "priority" | "weight">;

export default function ChannelScreen() {
  const t = useT();
  const data = bootData<ChannelPageData>();
  const table = useTableQuery(data.pageSize);
  const { query, page, pageSize } = table;
  const filters = { keyword: query.keyword ?? "", group: query.group ?? "", model: query.model ?? "" };
  const isFiltered = Object.values(filters).some((value) => value !== "");
  const idSort = query.sort === "-id" ? "true" : "false";
  const list = useList<ChannelRow>({
    initial: data,
    question: JSON.stringify([filters, idSort, page, pageSize]),
    async load() {
      const answer = isFiltered
        ? await callWhole(api.channel.search.get({ query: { ...filters, id_sort: idSort } }))
        : await callWhole(
            api.channel.get({ query: { p: String(page - 1), page_size: String(pageSize), id_sort: idSort } }),
          );
      const whole = answer as { data: ChannelRow[]; total?: number };
      return { rows: whole.data, total: whole.total ?? (isFiltered ? whole.data.length : -1) };
    },
  });
  const editing = list.rows.find((row) => String(row.id) === query.edit);
  const close = () => setQuery({ new: undefined, edit: undefined });
  useShortcut({ keys: "c", label: "channel.new", run: () => setQuery({ new: 1 }) });

  const setStatus = async (rows: readonly ChannelRow[], next: number) => {
    const ids = new Set(rows.map(({ id }) => id));
    const undo = list.patch((all) =>
      all.map((each) => (ids.has(each.id) ? { ...each, status: next } : each)),
    );
    try {
      for (const { id } of rows) await call(api.channel.put({ id, status: next }));
      const before = new Map(rows.map((row) => [row.id, row.status]));
      toast({
        key: "channel status",
        text: t(next === 1 ? "channel.nowEnabled" : "channel.nowDisabled", { count: rows.length }),
        undo: async () => {
          for (const [id, was] of before) await call(api.channel.put({ id, status: was === 1 ? 1 : 2 }));
          await list.refresh();
        },
      });
    } catch (error) {
      undo();
      toastFailure(error);
    }
  };

  const remove = async (rows: readonly ChannelRow[], clear?: () => void) => {
    const [first] = rows;
    if (!first) return;
    const yes = await confirm({
      title:
        rows.length === 1
          ? t("channel.deleteOne", { name: first.name })
          : t("channel.deleteMany", { count: rows.length }),
      text: t("channel.deleteText"),
      action: rows.length === 1 ? t("common.delete") : t("channel.deleteManyAction", { count: rows.length }),
      isDanger: true,
      ...(rows.length > 20 ? { typed: String(rows.length) } : {}),
    });
    if (!yes) return;
    try {
      await call(api.channel.batch.post({ ids: rows.map(({ id }) => id) }));
      toast({ text: t("common.deleted") });
      clear?.();
    } catch (error) {
      toastFailure(error);
    }
    await list.refresh();
  };

  const saveNumber = (name: keyof Numbers) => async (row: ChannelRow, text: string) => {
    if (text.trim() === "") return;
    const value = Number.parseInt(text, 10);
    await call(api.channel.put({ id: row.id, [name]: value }));
    list.patch((rows) => rows.map((each) => (each.id === row.id ? { ...each, [name]: value } : each)));
  };

  const columns: Column<ChannelRow>[] = [
    {
      id: "name",
      title: t("channel.name"),
      isIdentity: true,
      card: "title",
      cell: (row) => (
        <span>
          {row.name} <span className="text-muted tabular-nums">#{row.id}</span>
        </span>
      ),
    },
    {
      id: "status",
      title: t("channel.status"),
      card: "badge",
      cell: (row) => {
        const [tone, key] = STATUS[row.status] ?? ["off", "common.unknown"];
        const reason = row.status === 3 ? reasonOf(row) : undefined;
        return (
          <StatusDot tone={tone} reason={reason?.reason}>
            {t(key)}
          </StatusDot>
        );
      },
    },
    {
      id: "type",
      title: t("channel.type"),
      cell: (row) => <Chip>{providerForm(row.type)?.label[language.value] ?? String(row.type)}</Chip>,
    },
    { id: "groups", title: t("channel.groups"), cell: (row) => <Names text={row.group} /> },
    { id: "models", title: t("channel.modelsTitle"), cell: (row) => <Names text={row.models} /> },
    {
      id: "response",
      title: t("channel.responseTime"),
      align: "end",
      cell: (row) =>
        row.response_time === 0 ? (
          <span className="text-muted">{t("channel.notTested")}</span>
        ) : (
          <Latency ms={row.response_time} thresholdsMs={RESPONSE_MS} />
        ),
    },
    { id: "used", title: t("channel.used"), align: "end", cell: (row) => <Money quota={row.used_quota} /> },
    {
      id: "priority",
      title: t("channel.priority"),
      align: "end",
      cell: (row) => row.priority,
      edit: { kind: "number", min: -999, value: (row) => row.priority, save: saveNumber("priority") },
    },
    {
      id: "weight",
      title: t("channel.weight"),
      align: "end",
      cell: (row) => row.weight,
      edit: { kind: "number", min: 0, value: (row) => row.weight, save: saveNumber("weight") },
    },
    {
      id: "tag",
      title: t("channel.tag"),
      isHiddenByDefault: true,
      cell: (row) => (row.tag ? <Chip>{row.tag}</Chip> : "–"),
    },
    {
      id: "created",
      title: t("channel.created"),
      isHiddenByDefault: true,
      cell: (row) => <When at={row.created_time} />,
    },
  ];

  const add = (
    <button type="button" className="btn btn-primary" onClick={() => setQuery({ new: 1 })}>
      <Plus aria-hidden size={16} />
      {t("channel.new")}
    </button>
  );
  return (
    <>
      <PageHeader title={t("channel.title")} note={t("channel.purpose")} action={add} />
      <FilterBar
        searchName="keyword"
        searchLabel={t("channel.search")}
        fields={[
          {
            name: "group",
            label: t("channel.groups"),
            choices: data.groups.map((name) => ({ value: name, label: name })),
          },
          { name: "model", label: t("channel.modelsTitle") },
        ]}
        query={query}
        onChange={table.setFilters}
      />
      <DataTable
        label={t("channel.title")}
        columns={columns}
        list={list}
        rowKey={(row) => row.id}
        rowName={(row) => row.name}
        rowHref={(row) => `/channel?edit=${row.id}`}
        onOpen={(row) => setQuery({ edit: row.id })}
        isMuted={(row) => row.status !== 1}
        columnsKey="channels-table-columns"
        rowMenu={(row) => [
          [
            { id: "edit", label: t("common.edit"), icon: Pencil, onSelect: () => setQuery({ edit: row.id }) },
            row.status === 1
              ? {
                  id: "disable",
                  label: t("common.disable"),
                  icon: Ban,
                  onSelect: () => void setStatus([row], 2),
                }
              : {
                  id: "enable",
                  label: t("common.enable"),
                  icon: CircleCheck,
                  onSelect: () => void setStatus([row], 1),
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
            <button type="button" className="btn btn-sm btn-default" onClick={() => void setStatus(rows, 1)}>
              {t("common.enable")}
            </button>
            <button type="button" className="btn btn-sm btn-default" onClick={() => void setStatus(rows, 2)}>
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
        onClearFilters={() => table.setFilters({ keyword: undefined, group: undefined, model: undefined })}
        empty={{ title: t("channel.empty"), text: t("channel.emptyText"), action: add }}
      />
      {query.new === "1" || editing !== undefined ? (
        <ChannelDrawer
          key={editing?.id ?? "new"}
          row={editing}
          isOpen
          data={data}
          onClose={close}
          onSaved={() => {
            toast({ text: t("common.saved") });
            void list.refresh();
          }}
        />
      ) : null}
    </>
  );
}

/** The first two names and how many more. */
function Names({ text }: { text: string }) {
  const names = namesOf(text);
  return (
    <span className="inline-flex flex-wrap gap-1" title={names.join(", ")}>
      {names.slice(0, 2).map((name) => (
        <Chip key={name}>{name}</Chip>
      ))}
      {names.length > 2 ? <span className="text-muted tabular-nums">+{names.length - 2}</span> : null}
    </span>
  );
}
