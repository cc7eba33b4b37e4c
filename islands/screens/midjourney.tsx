// The drawing log: tasks as a table or as a gallery, refreshing by itself while something runs; pictures in a viewer.
// Refuses to show channels, submit codes and states to ordinary users.
import { useSignals } from "@preact/signals-react/runtime";
import { Images, List } from "lucide-react";
import { bootData, status } from "../lib/boot.ts";
import { useT } from "../lib/i18n.ts";
import { lazyPart } from "../lib/lazy-part.tsx";
import { useTableQuery } from "../lib/table-query.ts";
import { useTaskScreen } from "../lib/task-screen.ts";
import type { TimeRange } from "../lib/time-range.ts";
import { setQuery } from "../lib/url-state.ts";
import type { Query } from "../lib/url-state.ts";
import type { DrawingRow } from "../lib/wire.ts";
import { curlItem, refreshItem } from "../ui/list-menu.ts";
import { ListScreen } from "../ui/list-screen.tsx";
import { PeriodFilter } from "../ui/time-range.tsx";
import { CallbackNotice } from "./midjourney/callback-notice.tsx";
import { drawingColumns } from "./midjourney/columns.tsx";
import { Gallery } from "./midjourney/gallery.tsx";
import type { DrawingPageData } from "./midjourney/row.ts";

const ImageViewer = lazyPart(() => import("../ui/image-viewer.tsx"));
const DrawingDetail = lazyPart(() => import("./midjourney/detail.tsx"));

/** The specification's default: 30 days back to an hour ahead. */
const AHEAD_SECONDS = 3600;

/** This call counts in milliseconds. */
const periodOf = ({ from, to, preset }: TimeRange) => ({
  start_timestamp: String(from * 1000),
  end_timestamp: String((preset ? to + AHEAD_SECONDS : to) * 1000),
});

/** Table or gallery. */
function ViewSwitch({ isGallery }: { isGallery: boolean }) {
  const t = useT();
  return (
    <div className="join" role="group" aria-label={t("midjourney.view")}>
      {(["table", "gallery"] as const).map((view) => {
        const Icon = view === "table" ? List : Images;
        const label = t(`midjourney.view.${view}`);
        return (
          <button
            key={view}
            type="button"
            className="btn btn-default join-item"
            aria-pressed={(view === "gallery") === isGallery}
            aria-label={label}
            title={label}
            onClick={() => setQuery({ view: view === "gallery" ? view : undefined })}
          >
            <Icon aria-hidden size={16} />
          </button>
        );
      })}
    </div>
  );
}

/** A task's detail, or its picture: the address says which. */
function DrawingPanels({
  rows,
  query,
  isAdmin,
}: {
  rows: readonly DrawingRow[];
  query: Query;
  isAdmin: boolean;
}) {
  const images = rows
    .filter((row) => row.image_url !== "")
    .map((row) => ({ id: row.id, url: row.image_url, alt: row.prompt || row.prompt_en || row.mj_id }));
  const viewed = images.findIndex((image) => String(image.id) === query.image);
  const opened = rows.find((row) => String(row.id) === query.id);
  return (
    <>
      {opened ? (
        <DrawingDetail
          row={opened}
          isAdmin={isAdmin}
          onClose={() => setQuery({ id: undefined })}
          onImage={() => setQuery({ id: undefined, image: opened.id })}
        />
      ) : null}
      {viewed >= 0 ? (
        <ImageViewer
          images={images}
          at={viewed}
          onStep={(at) => setQuery({ image: images[at]?.id }, { replace: true })}
          onClose={() => setQuery({ image: undefined })}
        />
      ) : null}
    </>
  );
}

export default function DrawingScreen() {
  const t = useT();
  useSignals();
  const data = bootData<DrawingPageData>();
  const { isAdmin } = data;
  const table = useTableQuery(data.pageSize);
  const { query } = table;
  const screen = useTaskScreen<DrawingRow>({
    data,
    table,
    filters: { mj_id: query.mj_id ?? "", ...(isAdmin ? { channel_id: query.channel_id ?? "" } : {}) },
    path: isAdmin ? "/api/mj/" : "/api/mj/self",
    defaultRange: "30d",
    periodOf,
  });
  const { list } = screen;
  const isGallery = query.view === "gallery";

  return (
    <ListScreen
      screen={screen}
      columnsKey="mj-table-columns"
      header={{
        title: t("shell.nav.drawings"),
        action: <ViewSwitch isGallery={isGallery} />,
        overflow: [[refreshItem(t, list.refresh), curlItem(t, screen.request)]],
      }}
      top={isAdmin && status.value.mj_notify_enabled !== true ? <CallbackNotice /> : null}
      filters={{
        searchName: "mj_id",
        searchLabel: t("midjourney.searchId"),
        fields: isAdmin
          ? [{ name: "channel_id", label: t("midjourney.channelId"), inputMode: "numeric" }]
          : [],
        children: <PeriodFilter range={screen.range} onQuery={list.refresh} />,
      }}
      wrapTable={(rows) =>
        isGallery && list.rows.length > 0 ? (
          <Gallery
            rows={list.rows}
            isAdmin={isAdmin}
            table={table}
            total={list.total}
            onImage={(row) => setQuery({ image: row.id })}
            onOpen={(row) => setQuery({ id: row.id })}
          />
        ) : (
          <div className="log-table">{rows}</div>
        )
      }
      table={{
        columns: drawingColumns(t, isAdmin),
        rowKey: (row) => row.id,
        rowName: (row) => row.mj_id || `#${row.id}`,
        openQuery: (row) => ({ id: row.id }),
        empty: { title: t("midjourney.empty"), text: t("midjourney.emptyText") },
      }}
    >
      <DrawingPanels rows={list.rows} query={query} isAdmin={isAdmin} />
    </ListScreen>
  );
}
