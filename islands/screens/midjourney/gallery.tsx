// Drawing tasks as pictures: what is done shows itself, what runs shows how far it is.
// Refuses pictures without words: the prompt stands below each, and is the text in its place.
import { useT } from "../../lib/i18n.ts";
import type { TableQuery } from "../../lib/table-query.ts";
import { StatusDot, When } from "../../ui/badges.tsx";
import { Pagination } from "../../ui/pagination.tsx";
import { ProgressBar } from "../../ui/task-cells.tsx";
import { actionKey, statusLabel } from "./row.ts";
import type { DrawingRow } from "../../lib/wire.ts";

export interface GalleryProps {
  rows: readonly DrawingRow[];
  isAdmin: boolean;
  table: TableQuery;
  total: number;
  onImage: (row: DrawingRow) => void;
  onOpen: (row: DrawingRow) => void;
}

export function Gallery({ rows, isAdmin, table, total, onImage, onOpen }: GalleryProps) {
  const t = useT();
  return (
    <>
      <ul className="grid grid-cols-[repeat(auto-fill,minmax(200px,1fr))] gap-3">
        {rows.map((row) => {
          const [tone, key] = statusLabel(row.status);
          const prompt = row.prompt || row.prompt_en;
          return (
            <li
              key={row.id}
              className="flex min-w-0 flex-col overflow-hidden rounded-box border border-base-300"
            >
              <button
                type="button"
                className="grid aspect-square cursor-pointer place-items-center bg-base-200 focus-visible:-outline-offset-2"
                aria-label={
                  row.image_url === ""
                    ? t("midjourney.details", { id: row.mj_id || row.id })
                    : t("midjourney.openImage", { id: row.mj_id || row.id })
                }
                onClick={() => (row.image_url === "" ? onOpen(row) : onImage(row))}
              >
                {row.image_url === "" ? (
                  <ProgressBar progress={row.progress} isFailed={row.status === "FAILURE"} />
                ) : (
                  <img src={row.image_url} alt={prompt} loading="lazy" className="size-full object-cover" />
                )}
              </button>
              <div className="flex flex-col gap-1 px-2.5 pt-2 pb-2.5 text-dense">
                <span className="flex items-center justify-between gap-2">
                  <span className="badge badge-ghost badge-sm">{t(actionKey(row.action))}</span>
                  {isAdmin || row.status === "FAILURE" ? <StatusDot tone={tone}>{t(key)}</StatusDot> : null}
                </span>
                <button
                  type="button"
                  className="line-clamp-2 cursor-pointer text-left"
                  title={prompt}
                  onClick={() => onOpen(row)}
                >
                  {prompt || row.mj_id || `#${row.id}`}
                </button>
                {row.fail_reason ? (
                  <span className="cell-sub text-error truncate" title={row.fail_reason}>
                    {row.fail_reason}
                  </span>
                ) : (
                  <span className="cell-sub">
                    <When at={Math.floor(row.submit_time / 1000)} />
                  </span>
                )}
              </div>
            </li>
          );
        })}
      </ul>
      <Pagination
        page={table.page}
        pageSize={table.pageSize}
        total={total}
        shown={rows.length}
        onPage={table.setPage}
        onPageSize={table.setPageSize}
      />
    </>
  );
}
