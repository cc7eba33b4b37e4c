// Channels: the table with its views, tag mode, quick edits, tests and balances; editors and dialogs come when opened.
// Refuses to delete without naming what and how many.
import { useSignals } from "@preact/signals-react/runtime";
import { useEffect, useState } from "react";
import { useCommand } from "../lib/commands.ts";
import { t as translate, useT } from "../lib/i18n.ts";
import type { Translate } from "../lib/i18n.ts";
import { useShortcut } from "../lib/keys.ts";
import { lazyPart } from "../lib/lazy-part.tsx";
import { KEYS, writeCookie, writeItem } from "../lib/storage.ts";
import { toast } from "../lib/toasts.ts";
import { setQuery } from "../lib/url-state.ts";
import type { ChannelRow, ChannelSummary } from "../lib/wire.ts";
import type { FilterField } from "../ui/filter-bar.tsx";
import { ListScreen, NewButton } from "../ui/list-screen.tsx";
import { ListViews } from "../ui/list-views.tsx";
import type { SortState } from "../ui/table.tsx";
import { channelColumns } from "./channel/columns.tsx";
import { BulkActions, DisplayMenu, UntaggedNotice, useBatchMode } from "./channel/list-parts.tsx";
import { loadActions, withActions } from "./channel/load-actions.ts";
import { pageMenu, rowMenu } from "./channel/menus.ts";
import { ChannelPanels } from "./channel/panels.tsx";
import type { ChannelPanelsProps } from "./channel/panels.tsx";
import { isKeyLike, isTagRow, STATUS_ENABLED, VIEW_FIELDS } from "./channel/row.ts";
import { isRunStarted, plainRows, useChannels } from "./channel/use-channels.ts";
import type { Channels } from "./channel/use-channels.ts";

const RunBar = lazyPart(() => import("./channel/run-bar.tsx"));

/** Written for this browser and for the server's first paint. */
function remember(key: string, isOn: boolean): void {
  writeItem(key, String(isOn));
  writeCookie(key, String(isOn));
}

function builtInViews(summary: ChannelSummary) {
  const view = (id: string, query: Record<string, string>, count: number) => ({
    id,
    label: translate(`channel.view.${id}`),
    query,
    count,
  });
  return [
    view("all", {}, summary.total),
    view("enabled", { status: "1" }, summary.enabled),
    view("autoDisabled", { status: "3" }, summary.auto_disabled),
    view("disabled", { status: "2" }, summary.disabled),
    view("untested", { untested: "true" }, summary.untested),
    view("byTag", { tag_mode: "true" }, summary.tags.length),
  ];
}

const filterFields = ({ data, summary }: Channels): FilterField[] => [
  {
    name: "group",
    label: translate("channel.groups"),
    choices: data.groups.map((name) => ({ value: name, label: name })),
  },
  { name: "model", label: translate("channel.modelsTitle") },
  {
    name: "tag",
    label: translate("channel.tag"),
    choices: summary.tags.map(({ tag, count }) => ({ value: tag, label: `${tag} (${count})` })),
  },
];

/** What the keyboard and the command menu do on this screen. */
function useChannelCommands(channels: Channels, startTag: (rows: readonly ChannelRow[]) => void): void {
  const t = useT();
  const selected = () => plainRows(channels.shown.selected.current);
  const openNew = () => setQuery({ new: 1 });
  useShortcut({ keys: "c", label: "channel.new", run: openNew });
  useCommand({ id: "do channel new", kind: "do", title: t("channel.new"), run: openNew });
  useCommand({
    id: "do channel test all",
    kind: "do",
    title: t("channel.testAll"),
    run: () => withActions((actions) => actions.testAll(channels)),
  });
  useCommand({
    id: "do channel tag",
    kind: "do",
    title: t("channel.setTag"),
    run: () => startTag(selected()),
  });
  useCommand({
    id: "do channel delete",
    kind: "do",
    title: t("channel.deleteSelected"),
    run: () => withActions((actions) => actions.remove(channels, selected())),
  });
}

const columnsOf = (t: Translate, channels: Channels) =>
  channelColumns({
    t,
    types: channels.data.types,
    tests: channels.tests,
    save: async (row, name, text) => (await loadActions()).saveQuick(channels, row, name, text),
    onStatus: async (row, status) => (await loadActions()).setStatus(channels, plainRows([row]), status),
    onToggleTag: channels.toggleTag,
    onBalance: (row) => withActions((actions) => actions.updateBalance(channels, row)),
  });

/** Order and views; tag mode and order by id are remembered. */
function useArrangement({ table }: Channels) {
  return {
    setView: (patch: Record<string, string | undefined>) => {
      if ("tag_mode" in patch) remember(KEYS.tagMode, patch.tag_mode === "true");
      table.setFilters(patch);
    },
    setSort: (sort: SortState | undefined) => {
      remember(KEYS.idSort, sort?.id === "id");
      table.setSort(sort);
    },
  };
}

export default function ChannelScreen() {
  const t = useT();
  useSignals();
  const channels = useChannels();
  const { table, shown, summary, isTagMode, run } = channels;
  const [tagging, setTagging] = useState<ChannelPanelsProps["tagging"]>();
  const [editingMany, setEditingMany] = useState<readonly ChannelRow[]>();
  const [isBatch, toggleBatch] = useBatchMode();
  useEffect(() => {
    // A run over all channels that this tab began goes on after a reload.
    if (isRunStarted()) withActions((actions) => actions.followRun(channels));
  }, []);
  const { setView, setSort } = useArrangement(channels);
  const startTag = (rows: readonly ChannelRow[], clear?: () => void) => {
    if (rows.length === 0) toast({ tone: "warning", text: t("channel.chooseToTag") });
    else setTagging({ rows, clear });
  };
  useChannelCommands(channels, startTag);
  const add = <NewButton label={t("channel.new")} />;
  const untagged = summary.total - summary.tags.reduce((sum, each) => sum + each.count, 0);

  return (
    <ListScreen
      screen={shown}
      columnsKey={KEYS.channelColumns}
      header={{
        title: t("channel.title"),
        note: t("channel.purpose"),
        action: add,
        overflow: pageMenu({ t, channels }),
      }}
      views={
        <ListViews
          list={shown}
          label={t("channel.views")}
          screen="channel"
          builtIn={builtInViews(summary)}
          fields={VIEW_FIELDS}
          onOpen={setView}
          columnsKey={KEYS.channelColumns}
        />
      }
      filters={{
        searchName: "keyword",
        searchLabel: t("channel.search"),
        fields: filterFields(channels),
        onChange: (patch) => {
          const { keyword = "" } = patch;
          if (isKeyLike(keyword)) withActions((actions) => actions.findByKey(channels, keyword.trim()));
          else table.setFilters(patch);
        },
        children: (
          <DisplayMenu
            isIdSort={table.query.sort === "-id"}
            onIdSort={(isOn) => setSort(isOn ? { id: "id", isDescending: true } : undefined)}
            isTagMode={isTagMode}
            onTagMode={(isOn) => setView({ tag_mode: isOn ? "true" : undefined })}
            isBatch={isBatch}
            onToggleBatch={toggleBatch}
          />
        ),
      }}
      notices={
        <>
          {run ? <RunBar run={run} onClose={() => channels.setRun(undefined)} /> : null}
          {isTagMode && untagged > 0 ? (
            <UntaggedNotice count={untagged} onShowAll={() => setView({ tag_mode: undefined })} />
          ) : null}
        </>
      }
      wrapTable={(rows) => (
        <div className="channel-table" data-batch={isBatch ? "" : undefined}>
          {rows}
        </div>
      )}
      table={{
        columns: columnsOf(t, channels),
        rowKey: (row) => (isTagRow(row) ? `tag ${row.tag}` : row.id),
        rowName: (row) => (isTagRow(row) ? row.tag : row.name),
        rowHref: (row) => (isTagRow(row) ? undefined : `/channel?edit=${row.id}`),
        onOpen: (row) => (isTagRow(row) ? channels.toggleTag(row.tag) : setQuery({ edit: row.id })),
        isMuted: (row) => !isTagRow(row) && row.status !== STATUS_ENABLED,
        isSelectable: (row) => !isTagRow(row),
        rowMenu: (row) => rowMenu({ t, channels }, row),
        ...(isTagMode ? { paged: shown.list.rows.filter(isTagRow).length } : {}),
        bulk: (rows, clear) => {
          const chosen = plainRows(rows);
          return (
            <BulkActions
              channels={channels}
              rows={chosen}
              clear={clear}
              onTag={() => startTag(chosen, clear)}
              onEdit={() => setEditingMany(chosen)}
            />
          );
        },
        sort: table.sort,
        onSort: setSort,
        empty: isTagMode
          ? { title: t("channel.noTags"), text: t("channel.noTagsText") }
          : { title: t("channel.empty"), text: t("channel.emptyText"), action: add },
      }}
    >
      <ChannelPanels
        channels={channels}
        tagging={tagging}
        onTagged={() => setTagging(undefined)}
        editingMany={editingMany}
        onEditedMany={() => setEditingMany(undefined)}
      />
    </ListScreen>
  );
}
