// Below every list: range and total, first, previous, next, last, page size.
// Refuses to guess a total: where the call does not tell one, only the neighbours are offered.
import { ChevronFirst, ChevronLast, ChevronLeft, ChevronRight } from "lucide-react";
import { formatNumber } from "../lib/format.ts";
import { useT } from "../lib/i18n.ts";
import { PAGE_SIZES } from "../lib/table-query.ts";

export interface PaginationProps {
  /** From 1. */
  page: number;
  pageSize: number;
  /** -1: unknown. */
  total: number;
  /** There are more than `total`. */
  isMore?: boolean | undefined;
  /** Rows on this page. */
  shown: number;
  onPage: (page: number) => void;
  onPageSize: (size: number) => void;
}

/** Number of the last page; undefined where the total is unknown. */
export function lastPage(total: number, pageSize: number): number | undefined {
  return total < 0 ? undefined : Math.max(1, Math.ceil(total / pageSize));
}

export function Pagination({ page, pageSize, total, isMore, shown, onPage, onPageSize }: PaginationProps) {
  const t = useT();
  const last = lastPage(total, pageSize);
  const from = (page - 1) * pageSize + 1;
  const to = (page - 1) * pageSize + shown;
  const hasNext = last === undefined || isMore ? shown === pageSize : page < last;
  const range = {
    from: formatNumber(from),
    to: formatNumber(to),
    total: formatNumber(total) + (isMore ? "+" : ""),
  };
  const buttons = [
    ["first", ChevronFirst, 1, page > 1],
    ["previous", ChevronLeft, page - 1, page > 1],
    ["next", ChevronRight, page + 1, hasNext],
    ["last", ChevronLast, last ?? page, last !== undefined && page < last],
  ] as const;
  return (
    <nav className="flex min-h-11 items-center gap-4 pt-2 text-dense" aria-label={t("table.pages")}>
      <span className="mr-auto text-muted tabular-nums" role="status">
        {shown === 0 ? null : total < 0 ? t("table.rangeOpen", range) : t("table.rangeShown", range)}
      </span>
      <label className="flex items-center gap-2 whitespace-nowrap max-sm:hidden">
        <span className="text-muted">{t("table.pageSize")}</span>
        <select
          className="select select-sm w-18"
          value={pageSize}
          onChange={(event) => onPageSize(Number(event.target.value))}
        >
          {PAGE_SIZES.map((size) => (
            <option key={size} value={size}>
              {size}
            </option>
          ))}
        </select>
      </label>
      <span className="flex gap-0.5">
        {buttons.map(([id, Icon, target, isOn]) => (
          <button
            key={id}
            type="button"
            className="btn btn-ghost btn-square btn-sm"
            aria-label={t(`table.page.${id}`)}
            title={t(`table.page.${id}`)}
            disabled={!isOn}
            onClick={() => onPage(target)}
          >
            <Icon aria-hidden />
          </button>
        ))}
      </span>
    </nav>
  );
}
