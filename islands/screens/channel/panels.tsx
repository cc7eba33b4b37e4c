// What opens over the channel list: the editor, the test drawer, the editor of a tag or of several, the tag dialog.
// Refuses to be part of the first paint: each comes with its own chunk.
import { useState } from "react";
import { api, call } from "../../lib/api.ts";
import { useT } from "../../lib/i18n.ts";
import { lazyPart } from "../../lib/lazy-part.tsx";
import { useRowById } from "../../lib/row-by-id.ts";
import { toast } from "../../lib/toasts.ts";
import { setQuery } from "../../lib/url-state.ts";
import type { ChannelRow } from "../../lib/wire.ts";
import { loadActions, withActions } from "./load-actions.ts";
import { plainRows } from "./use-channels.ts";
import type { Channels } from "./use-channels.ts";

const ChannelDrawer = lazyPart(() => import("./drawer.tsx"));
const TestDrawer = lazyPart(() => import("./test-drawer.tsx"));
const TagDrawer = lazyPart(() => import("./tag-drawer.tsx"));
const NoticesDrawer = lazyPart(() => import("./notices-drawer.tsx"));
const RouteDrawer = lazyPart(() => import("./route-drawer.tsx"));
const NewPrices = lazyPart(() => import("./new-prices.tsx"));
const TagDialog = lazyPart(() => import("./tag-dialog.tsx"));

/** The channel that the address names: one of the rows, else fetched; a missing one is reported. */
function useAddressedChannel({ list }: Channels, id: string | undefined): ChannelRow | undefined {
  const t = useT();
  return useRowById<ChannelRow>({
    id,
    rows: list.rows,
    isReady: list.phase === "ready",
    load: (wanted) => call(api.channel({ id: wanted }).get()),
    onMissing: () => setQuery({ edit: undefined, test: undefined }, { replace: true }),
    onFailure: () => toast({ key: "channel missing", tone: "error", text: t("channel.notFound") }),
  });
}

export interface ChannelPanelsProps {
  channels: Channels;
  /** Channels that are to get a tag; undefined: the dialog is closed. */
  tagging: { rows: readonly ChannelRow[]; clear?: (() => void) | undefined } | undefined;
  onTagged: () => void;
  /** Channels that are edited together; undefined: none are. */
  editingMany: readonly ChannelRow[] | undefined;
  onEditedMany: () => void;
}

export function ChannelPanels({
  channels,
  tagging,
  onTagged,
  editingMany,
  onEditedMany,
}: ChannelPanelsProps) {
  const { data, summary, table } = channels;
  const { query } = table;
  const edited = useAddressedChannel(channels, query.edit);
  const tested = useAddressedChannel(channels, query.test);
  const tag = query.tag_edit;
  /** Models of a channel that has just been made. */
  const [added, setAdded] = useState<readonly string[]>();
  return (
    <>
      {query.new === "1" || edited !== undefined ? (
        <Editor channels={channels} row={edited} onAdded={setAdded} />
      ) : null}
      {added ? <NewPrices models={added} onClose={() => setAdded(undefined)} /> : null}
      {query.route === undefined ? null : <RouteDrawer />}
      {query.notices === undefined ? null : (
        <NoticesDrawer
          shown={query.notices}
          model={query.notice_model}
          channel={query.notice_channel}
          rows={plainRows(channels.shown.list.rows)}
        />
      )}
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
            onEditedMany();
            if (tag !== undefined) setQuery({ tag_edit: undefined });
          }}
          onSaved={() => void channels.refresh()}
        />
      ) : null}
      {tagging ? (
        <TagDialog
          count={tagging.rows.length}
          tags={summary.tags.map((each) => each.tag)}
          onClose={onTagged}
          onSave={async (name) => {
            const actions = await loadActions();
            await actions.tagRows(channels, tagging.rows, name);
            tagging.clear?.();
          }}
        />
      ) : null}
    </>
  );
}

interface EditorProps {
  channels: Channels;
  row: ChannelRow | undefined;
  onAdded: (models: readonly string[]) => void;
}

function Editor({ channels, row, onAdded }: EditorProps) {
  const t = useT();
  return (
    <ChannelDrawer
      key={row?.id ?? "new"}
      row={row}
      data={channels.data}
      tags={channels.summary.tags}
      onClose={() => setQuery({ new: undefined, edit: undefined })}
      onKeysChanged={() => void channels.refresh()}
      onSaved={(ids, shouldTest, models) => {
        toast({
          key: "channel saved",
          text: ids.length > 1 ? t("channel.savedMany", { count: ids.length }) : t("channel.saved"),
        });
        void channels.refresh();
        if (row === undefined) onAdded(models);
        if (shouldTest && ids.length > 0) withActions((actions) => actions.testIds(channels, ids));
      }}
    />
  );
}
