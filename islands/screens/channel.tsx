// Channels: the table with its views, tag mode, quick edits, tests and balances; editors and dialogs come when opened.
// Refuses to delete without naming what and how many.
import { Plus, SlidersHorizontal } from "lucide-react";
import { useSignals } from "@preact/signals-react/runtime";
import { useEffect, useRef, useState } from "react";
import { loadAllTexts } from "../lib/all-texts.ts";
import { api, call } from "../lib/api.ts";
import { useCommand } from "../lib/commands.ts";
import { useT } from "../lib/i18n.ts";
import { useShortcut } from "../lib/keys.ts";
import { lazyPart } from "../lib/lazy-part.tsx";
import { KEYS, readItem, writeCookie, writeItem } from "../lib/storage.ts";
import { setQuery } from "../lib/url-state.ts";
import { Notice } from "../ui/feedback.tsx";
import { toast, toastFailure } from "../lib/toasts.ts";
import { FilterBar } from "../ui/filter-bar.tsx";
import { Menu } from "../ui/menu.tsx";
import { PageHeader } from "../ui/page-header.tsx";
import { DataTable } from "../ui/table.tsx";
import { ViewTabs } from "../ui/view-tabs.tsx";
import { channelColumns } from "./channel/columns.tsx";
import { pageMenu, rowMenu } from "./channel/menus.ts";
import type { ChannelRow, ListRow } from "./channel/row.ts";
import { isKeyLike, isTagRow, STATUS_DISABLED, STATUS_ENABLED, VIEW_FIELDS } from "./channel/row.ts";
import { isRunStarted, useChannels } from "./channel/use-channels.ts";
import type { Channels } from "./channel/use-channels.ts";

const ChannelDrawer = lazyPart(() => import("./channel/drawer.tsx"));
const TestDrawer = lazyPart(() => import("./channel/test-drawer.tsx"));
const TagDrawer = lazyPart(() => import("./channel/tag-drawer.tsx"));
const TagDialog = lazyPart(() => import("./channel/tag-dialog.tsx"));
/** With the texts that only parts say: the page itself brings no more than it shows. */
const actions = async () => (await Promise.all([import("./channel/actions.ts"), loadAllTexts()]))[0];

type Actions = Awaited<ReturnType<typeof actions>>;

/** Written for this browser and for the server's first paint. */
function remember(key: string, isOn: boolean): void {
  writeItem(key, String(isOn));
  writeCookie(key, String(isOn));
}

/** The channel that the address names: one of the rows, else asked for; a missing one is said. */
function useAddressed(channels: Channels, id: string | undefined): ChannelRow | undefined {
  const t = useT();
  const [fetched, setFetched] = useState<ChannelRow>();
  const listed = channels.list.rows.find((row) => String(row.id) === id);
  const isKnown = listed !== undefined || id === undefined;
  const isReady = channels.list.phase === "ready";
  useEffect(() => {
    if (isKnown || !isReady) return undefined;
    let isOver = false;
    call(api.channel({ id: id ?? "" }).get()).then(
      (row) => {
        if (!isOver) setFetched(row);
      },
      () => {
        if (isOver) return;
        toast({ key: "channel missing", tone: "error", text: t("channel.notFound") });
        setQuery({ edit: undefined, test: undefined }, { replace: true });
      },
    );
    return () => {
      isOver = true;
    };
  }, [id, isKnown, isReady]);
  return listed ?? (String(fetched?.id) === id ? fetched : undefined);
}

export default function ChannelScreen() {
  const t = useT();
  useSignals();
  const channels = useChannels();
  const { data, table, query, shown, summary, isTagMode, run } = channels;
  const selected = useRef<readonly ChannelRow[]>([]);
  const [tagging, setTagging] = useState<{ rows: readonly ChannelRow[]; clear?: () => void }>();
  const [editingMany, setEditingMany] = useState<readonly ChannelRow[]>();
  const [isBatch, setBatch] = useState(false);
  // The server cannot know what was stored here.
  useEffect(() => setBatch(readItem(KEYS.batchDelete) === "true"), []);
  useEffect(() => {
    // A run over all channels that this tab began goes on after a reload.
    if (isRunStarted()) act((loaded) => loaded.followRun(channels));
  }, []);

  const edited = useAddressed(channels, query.edit);
  const tested = useAddressed(channels, query.test);
  const act = (work: (loaded: Actions) => Promise<void>) => void actions().then(work).catch(toastFailure);
  const plain = (rows: readonly ListRow[]) => rows.filter((row): row is ChannelRow => !isTagRow(row));

  const setView = (patch: Record<string, string | undefined>) => {
    if ("tag_mode" in patch) remember(KEYS.tagMode, patch.tag_mode === "true");
    table.setFilters(patch);
  };
  const setSort = (sort: { id: string; isDescending: boolean } | undefined) => {
    remember(KEYS.idSort, sort?.id === "id");
    table.setSort(sort);
  };
  const isIdSort = query.sort === "-id";
  const toggleBatch = () => {
    writeItem(KEYS.batchDelete, String(!isBatch));
    setBatch(!isBatch);
  };
  const startTag = (rows: readonly ChannelRow[], clear?: () => void) => {
    if (rows.length === 0) toast({ tone: "warning", text: t("channel.chooseToTag") });
    else setTagging({ rows, ...(clear ? { clear } : {}) });
  };

  useShortcut({ keys: "c", label: "channel.new", run: () => setQuery({ new: 1 }) });
  useCommand({
    id: "do channel new",
    kind: "do",
    title: t("channel.new"),
    run: () => setQuery({ new: 1 }),
  });
  useCommand({
    id: "do channel test all",
    kind: "do",
    title: t("channel.testAll"),
    run: () => act((loaded) => loaded.testAll(channels)),
  });
  useCommand({
    id: "do channel tag",
    kind: "do",
    title: t("channel.setTag"),
    run: () => startTag(selected.current),
  });
  useCommand({
    id: "do channel delete",
    kind: "do",
    title: t("channel.deleteSelected"),
    run: () => act((loaded) => loaded.remove(channels, selected.current)),
  });

  const menuContext = { t, channels, act };
  const columns = channelColumns({
    t,
    types: data.types,
    tests: channels.tests,
    save: async (row, name, text) => (await actions()).saveQuick(channels, row, name, text),
    onStatus: async (row, status) => (await actions()).setStatus(channels, plain([row]), status),
    onToggleTag: channels.toggleTag,
    onBalance: (row) => act((loaded) => loaded.updateBalance(channels, row)),
  });
  const add = (
    <button type="button" className="btn btn-primary" onClick={() => setQuery({ new: 1 })}>
      <Plus aria-hidden size={16} />
      {t("channel.new")}
    </button>
  );
  const view = (id: string, patch: Record<string, string>, count?: number) => ({
    id,
    label: t(`channel.view.${id}`),
    query: patch,
    ...(count === undefined ? {} : { count }),
  });
  const tag = query.tag_edit;
  const untagged = summary.total - summary.tags.reduce((sum, each) => sum + each.count, 0);

  return (
    <>
      <PageHeader
        title={t("channel.title")}
        note={t("channel.purpose")}
        action={add}
        overflow={pageMenu(menuContext)}
      />
      <ViewTabs
        label={t("channel.views")}
        screen="channel"
        builtIn={[
          view("all", {}, summary.total),
          view("enabled", { status: "1" }, summary.enabled),
          view("autoDisabled", { status: "3" }, summary.auto_disabled),
          view("disabled", { status: "2" }, summary.disabled),
          view("untested", { untested: "true" }, summary.untested),
          view("byTag", { tag_mode: "true" }, summary.tags.length),
        ]}
        fields={VIEW_FIELDS}
        query={query}
        onOpen={setView}
        columnsKey={KEYS.channelColumns}
      />
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
          {
            name: "tag",
            label: t("channel.tag"),
            choices: summary.tags.map((each) => ({ value: each.tag, label: `${each.tag} (${each.count})` })),
          },
        ]}
        query={query}
        onChange={(patch) => {
          const { keyword = "" } = patch;
          if (isKeyLike(keyword)) act((loaded) => loaded.findByKey(channels, keyword.trim()));
          else table.setFilters(patch);
        }}
      >
        <Menu
          label={t("channel.display")}
          className="btn btn-sm btn-ghost text-muted"
          groups={[
            [
              {
                id: "id-sort",
                label: t("channel.idSort"),
                isChecked: isIdSort,
                onSelect: () => setSort(isIdSort ? undefined : { id: "id", isDescending: true }),
              },
              {
                id: "tag-mode",
                label: t("channel.tagMode"),
                isChecked: isTagMode,
                onSelect: () => setView({ tag_mode: isTagMode ? undefined : "true" }),
              },
              {
                id: "batch",
                label: t("channel.batchMode"),
                isChecked: isBatch,
                onSelect: toggleBatch,
              },
            ],
          ]}
        >
          <SlidersHorizontal aria-hidden size={14} />
          {t("channel.display")}
        </Menu>
      </FilterBar>
      {run ? (
        <div className="mt-2 mb-3 flex flex-wrap items-center gap-x-4 gap-y-1">
          <span role="status">
            {t("channel.test.progress", { done: run.done, total: run.total, failed: run.failed })}
          </span>
          <progress
            className="progress progress-primary w-auto flex-[1_1_160px]"
            max={Math.max(1, run.total)}
            value={run.done}
            aria-label={t("channel.testAll")}
          />
        </div>
      ) : null}
      {isTagMode && untagged > 0 ? (
        <Notice
          tone="info"
          action={
            <button
              type="button"
              className="btn btn-sm btn-default"
              onClick={() => setView({ tag_mode: undefined })}
            >
              {t("channel.showAll")}
            </button>
          }
        >
          {t("channel.untagged", { count: untagged })}
        </Notice>
      ) : null}
      <div className="channel-table" data-batch={isBatch ? "" : undefined}>
        <DataTable
          label={t("channel.title")}
          columns={columns}
          list={shown}
          rowKey={(row) => (isTagRow(row) ? `tag ${row.tag}` : row.id)}
          rowName={(row) => (isTagRow(row) ? row.tag : row.name)}
          rowHref={(row) => (isTagRow(row) ? undefined : `/channel?edit=${row.id}`)}
          onOpen={(row) => (isTagRow(row) ? channels.toggleTag(row.tag) : setQuery({ edit: row.id }))}
          isMuted={(row) => !isTagRow(row) && row.status !== STATUS_ENABLED}
          isSelectable={(row) => !isTagRow(row)}
          columnsKey={KEYS.channelColumns}
          rowMenu={(row) => rowMenu(menuContext, row)}
          onSelection={(rows) => {
            selected.current = plain(rows);
          }}
          {...(isTagMode ? { paged: shown.rows.filter(isTagRow).length } : { loadAll: channels.loadAll })}
          bulk={(rows, clear) => {
            const chosen = plain(rows);
            const button = (label: string, run: () => void, look = "btn-default") => (
              <button type="button" className={`btn btn-sm ${look}`} onClick={run}>
                {label}
              </button>
            );
            return (
              <>
                {button(t("common.enable"), () =>
                  act((loaded) => loaded.setStatus(channels, chosen, STATUS_ENABLED)),
                )}
                {button(t("common.disable"), () =>
                  act((loaded) => loaded.setStatus(channels, chosen, STATUS_DISABLED)),
                )}
                {button(t("channel.test"), () => act((loaded) => loaded.testChannels(channels, chosen)))}
                {button(t("channel.setTag"), () => startTag(chosen, clear))}
                {button(t("channel.editMany"), () => setEditingMany(chosen))}
                {button(
                  t("common.delete"),
                  () => act((loaded) => loaded.remove(channels, chosen, clear)),
                  "btn-error btn-soft",
                )}
              </>
            );
          }}
          sort={table.sort}
          onSort={setSort}
          page={table.page}
          pageSize={table.pageSize}
          onPage={table.setPage}
          onPageSize={table.setPageSize}
          isFiltered={channels.isFiltered}
          onClearFilters={() =>
            table.setFilters(
              Object.fromEntries(
                VIEW_FIELDS.filter((name) => name !== "tag_mode" && name !== "sort").map((name) => [
                  name,
                  undefined,
                ]),
              ),
            )
          }
          empty={
            isTagMode
              ? { title: t("channel.noTags"), text: t("channel.noTagsText") }
              : { title: t("channel.empty"), text: t("channel.emptyText"), action: add }
          }
        />
      </div>
      {query.new === "1" || edited !== undefined ? (
        <ChannelDrawer
          key={edited?.id ?? "new"}
          row={edited}
          data={data}
          tags={summary.tags}
          onClose={() => setQuery({ new: undefined, edit: undefined })}
          onSaved={(ids, shouldTest) => {
            toast({
              key: "channel saved",
              text: ids.length > 1 ? t("channel.savedMany", { count: ids.length }) : t("channel.saved"),
            });
            void channels.refresh();
            if (shouldTest && ids.length > 0) act(async (loaded) => loaded.testIds(channels, ids));
          }}
        />
      ) : null}
      {tested !== undefined ? (
        <TestDrawer
          key={tested.id}
          row={tested}
          onClose={() => {
            setQuery({ test: undefined });
            void channels.refresh();
          }}
        />
      ) : null}
      {tag !== undefined || editingMany !== undefined ? (
        <TagDrawer
          key={tag ?? "many"}
          tag={tag}
          rows={editingMany}
          groups={data.groups}
          onClose={() => {
            setEditingMany(undefined);
            if (tag !== undefined) setQuery({ tag_edit: undefined });
          }}
          onSaved={() => void channels.refresh()}
        />
      ) : null}
      {tagging ? (
        <TagDialog
          count={tagging.rows.length}
          tags={summary.tags.map((each) => each.tag)}
          onClose={() => setTagging(undefined)}
          onSave={async (name) => {
            const loaded = await actions();
            await loaded.tagRows(channels, tagging.rows, name);
            tagging.clear?.();
          }}
        />
      ) : null}
    </>
  );
}
