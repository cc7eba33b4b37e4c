// The drawing log: tasks as a table or as a gallery, refreshing by itself while something runs; pictures in a viewer.
// Refuses to show channels, submit codes and states to ordinary users.
import { useSignals } from "@preact/signals-react/runtime";
import { FileTerminal, Images, List, RotateCw } from "lucide-react";
import { Role } from "../../src/shared/enums.ts";
import { api, call } from "../lib/api.ts";
import { address, bootData, nowMs, status, timeZone, user } from "../lib/boot.ts";
import { curlOf } from "../lib/curl.ts";
import { t as translate, useT } from "../lib/i18n.ts";
import type { Translate } from "../lib/i18n.ts";
import { lazyPart } from "../lib/lazy-part.tsx";
import { askTasks, useTaskList } from "../lib/task-list.ts";
import { useTableQuery } from "../lib/table-query.ts";
import { rangeOf } from "../lib/time-range.ts";
import { patchUrl, setQuery } from "../lib/url-state.ts";
import { Moment, StatusDot } from "../ui/badges.tsx";
import { copyText, CopyButton } from "../ui/copy-button.tsx";
import { Notice } from "../ui/feedback.tsx";
import { toast, toastFailure } from "../lib/toasts.ts";
import { FilterBar } from "../ui/filter-bar.tsx";
import { PageHeader } from "../ui/page-header.tsx";
import type { Column } from "../ui/table-columns.ts";
import { DataTable } from "../ui/table.tsx";
import { ChannelTag, Elapsed, ProgressBar, ShortText } from "../ui/task-cells.tsx";
import { TimeRangeField } from "../ui/time-range.tsx";
import { Gallery } from "./midjourney/gallery.tsx";
import type { DrawingPageData, DrawingRow } from "./midjourney/row.ts";
import { actionKey, codeWord, statusWord } from "./midjourney/row.ts";

const ImageViewer = lazyPart(() => import("../ui/image-viewer.tsx"));
const DrawingDetail = lazyPart(() => import("./midjourney/detail.tsx"));

/** The specification's default: 30 days back to an hour ahead. */
const AHEAD_SECONDS = 3600;

export default function DrawingScreen() {
  const t = useT();
  useSignals();
  const data = bootData<DrawingPageData>();
  const { isAdmin } = data;
  const table = useTableQuery(data.pageSize);
  const { query, page, pageSize } = table;
  const range = rangeOf(query, nowMs.value, timeZone.value, "30d");
  const filters = { mj_id: query.mj_id ?? "", ...(isAdmin ? { channel_id: query.channel_id ?? "" } : {}) };
  const path = isAdmin ? "/api/mj/" : "/api/mj/self";
  const parameters = () => {
    const asked = rangeOf(query, Date.now(), timeZone.peek(), "30d");
    const to = asked.preset ? asked.to + AHEAD_SECONDS : asked.to;
    return {
      ...filters,
      // This call counts in milliseconds.
      start_timestamp: String(asked.from * 1000),
      end_timestamp: String(to * 1000),
      p: String(page),
      page_size: String(pageSize),
    };
  };
  const list = useTaskList<DrawingRow>({
    initial: data,
    question: JSON.stringify([
      filters,
      query.range,
      query.start_timestamp,
      query.end_timestamp,
      page,
      pageSize,
    ]),
    load: (signal) => askTasks<DrawingRow>(path, parameters(), signal),
  });

  const isGallery = query.view === "gallery";
  const images = list.rows
    .filter((row) => row.image_url !== "")
    .map((row) => ({ id: row.id, url: row.image_url, alt: row.prompt || row.prompt_en || row.mj_id }));
  const viewed = images.findIndex((image) => String(image.id) === query.image);
  const opened = list.rows.find((row) => String(row.id) === query.id);
  const isFiltered = Object.values(filters).some((value) => value !== "");
  const columns = drawingColumns(t, isAdmin);

  return (
    <>
      <PageHeader
        title={t("shell.nav.drawings")}
        action={
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
        }
        overflow={[
          [
            {
              id: "refresh",
              label: t("common.refresh"),
              icon: RotateCw,
              onSelect: () => void list.refresh(),
            },
            {
              id: "curl",
              label: t("table.copyCurl"),
              icon: FileTerminal,
              onSelect: () => void copyText(curlOf({ path, query: parameters() })),
            },
          ],
        ]}
      />
      {isAdmin && status.value.mj_notify_enabled !== true ? <CallbackNotice /> : null}
      <FilterBar
        searchName="mj_id"
        searchLabel={t("midjourney.searchId")}
        fields={
          isAdmin ? [{ name: "channel_id", label: t("midjourney.channelId"), inputMode: "numeric" }] : []
        }
        query={query}
        onChange={table.setFilters}
      >
        <TimeRangeField range={range} onChange={(patch) => setQuery({ ...patch, p: undefined })} />
        <button type="button" className="btn btn-sm btn-default" onClick={() => void list.refresh()}>
          {t("table.query")}
        </button>
      </FilterBar>
      {isGallery && list.rows.length > 0 ? (
        <Gallery
          rows={list.rows}
          isAdmin={isAdmin}
          table={table}
          total={list.total}
          onImage={(row) => setQuery({ image: row.id })}
          onOpen={(row) => setQuery({ id: row.id })}
        />
      ) : (
        <div className="log-table">
          <DataTable
            label={t("shell.nav.drawings")}
            columns={columns}
            list={list}
            rowKey={(row) => row.id}
            rowName={(row) => row.mj_id || `#${row.id}`}
            rowHref={(row) => patchUrl(address.peek(), { id: row.id })}
            onOpen={(row) => setQuery({ id: row.id })}
            columnsKey="mj-table-columns"
            page={page}
            pageSize={pageSize}
            onPage={table.setPage}
            onPageSize={table.setPageSize}
            isFiltered={isFiltered}
            onClearFilters={() => table.setFilters({ mj_id: undefined, channel_id: undefined })}
            empty={{ title: t("midjourney.empty"), text: t("midjourney.emptyText") }}
          />
        </div>
      )}
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

function drawingColumns(t: Translate, isAdmin: boolean): Column<DrawingRow>[] {
  const forAdmins = (column: Column<DrawingRow>) => (isAdmin ? [column] : []);
  return [
    {
      id: "submit",
      title: t("midjourney.submitted"),
      isIdentity: true,
      card: "title",
      cell: (row) => <Moment at={Math.floor(row.submit_time / 1000)} />,
    },
    {
      id: "elapsed",
      title: t("midjourney.elapsed"),
      align: "end",
      cell: (row) =>
        row.finish_time > 0 ? <Elapsed fromMs={row.submit_time} toMs={row.finish_time} /> : null,
    },
    ...forAdmins({
      id: "channel",
      title: t("midjourney.channel"),
      cell: (row) => <ChannelTag id={row.channel_id} />,
    }),
    {
      id: "action",
      title: t("midjourney.actionTitle"),
      card: "badge",
      cell: (row) => <span className="badge badge-ghost badge-sm">{t(actionKey(row.action))}</span>,
    },
    {
      id: "task",
      title: t("midjourney.taskId"),
      cell: (row) =>
        row.mj_id === "" ? null : (
          <span className="inline-flex items-center gap-1 mono">
            <ShortText text={row.mj_id} />
            <CopyButton text={row.mj_id} label={t("table.copyIdOf", { id: row.mj_id })} />
          </span>
        ),
    },
    ...forAdmins({
      id: "code",
      title: t("midjourney.submitResult"),
      cell: (row) => {
        const [tone, key] = codeWord(row.code);
        return <StatusDot tone={tone}>{t(key)}</StatusDot>;
      },
    }),
    ...forAdmins({
      id: "status",
      title: t("midjourney.statusTitle"),
      cell: (row) => {
        const [tone, key] = statusWord(row.status);
        return <StatusDot tone={tone}>{t(key)}</StatusDot>;
      },
    }),
    {
      id: "progress",
      title: t("midjourney.progress"),
      cell: (row) => <ProgressBar progress={row.progress} isFailed={row.status === "FAILURE"} />,
    },
    {
      id: "image",
      title: t("midjourney.image"),
      cell: (row) =>
        row.image_url === "" ? null : (
          <button
            type="button"
            className="block cursor-zoom-in pointer-coarse:inline-flex pointer-coarse:min-h-10 pointer-coarse:min-w-10 pointer-coarse:items-center"
            aria-label={t("midjourney.openImage", { id: row.mj_id || row.id })}
            onClick={() => setQuery({ image: row.id })}
          >
            <img
              src={row.image_url}
              alt=""
              loading="lazy"
              width={28}
              height={28}
              className="size-7 rounded-sm bg-base-300 object-cover"
            />
          </button>
        ),
    },
    { id: "prompt", title: t("midjourney.prompt"), cell: (row) => <ShortText text={row.prompt} /> },
    {
      id: "promptEn",
      title: t("midjourney.promptEn"),
      cell: (row) => <ShortText text={row.prompt_en} />,
      isHiddenByDefault: isAdmin,
    },
    {
      id: "fail",
      title: t("midjourney.failReason"),
      cell: (row) =>
        row.fail_reason === "" ? null : (
          <button
            type="button"
            className="inline-block max-w-[22ch] cursor-pointer truncate align-bottom text-error"
            title={row.fail_reason}
            onClick={() => setQuery({ id: row.id })}
          >
            {row.fail_reason}
          </button>
        ),
    },
  ];
}

/** Shown to administrators while the upstream's callbacks are not accepted; the owner may switch them on here. */
function CallbackNotice() {
  const t = useT();
  useSignals();
  const canChange = (user.value?.role ?? 0) >= Role.root;
  return (
    <Notice
      tone="info"
      action={
        canChange ? (
          <button type="button" className="btn btn-sm btn-default" onClick={() => void setCallbacks(true)}>
            {t("midjourney.callback.enable")}
          </button>
        ) : undefined
      }
    >
      {t("midjourney.callback.off")}
    </Notice>
  );
}

async function setCallbacks(isOn: boolean): Promise<void> {
  try {
    await call(api.option.put({ key: "MjNotifyEnabled", value: String(isOn) }));
    status.value = { ...status.peek(), mj_notify_enabled: isOn };
    toast({
      key: "mj callback",
      text: translate(isOn ? "midjourney.callback.on" : "midjourney.callback.offAgain"),
      undo: () => setCallbacks(!isOn),
    });
  } catch (error) {
    toastFailure(error);
  }
}
