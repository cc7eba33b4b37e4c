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
      <ul className="gallery">
        {rows.map((row) => {
          const [tone, key] = statusLabel(row.status);
          const prompt = row.prompt || row.prompt_en;
          return (
            <li key={row.id} className="gallery-card">
              <button
                type="button"
                className="gallery-picture"
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
                  <img src={row.image_url} alt={prompt} loading="lazy" />
                )}
              </button>
              <div className="gallery-text">
                <span className="flex items-center justify-between gap-2">
                  <span className="chip">{t(actionKey(row.action))}</span>
                  {isAdmin || row.status === "FAILURE" ? <StatusDot tone={tone}>{t(key)}</StatusDot> : null}
                </span>
                <button type="button" className="gallery-prompt" title={prompt} onClick={() => onOpen(row)}>
                  {prompt || row.mj_id || `#${row.id}`}
                </button>
                {row.fail_reason ? (
                  <span className="cell-sub text-error gallery-line" title={row.fail_reason}>
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
