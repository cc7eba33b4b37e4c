// The sheet of a comparison: filters with their counts, pages of rows, and what to do with the ticked ones.
import { useSignals } from "@preact/signals-react/runtime";
import { useId, useRef } from "react";
import type { KeyboardEvent } from "react";
import { useT } from "../../lib/i18n.ts";
import { formatNumber } from "../../lib/format.ts";
import { Pagination } from "../../ui/pagination.tsx";
import type { Desk } from "../../ui/price-sheet/desk.ts";
import { SyncRow } from "./sync-row.tsx";
import { isTakeable, SYNC_FILTERS } from "./sync-rows.ts";
import type { SyncState } from "./sync-state.ts";

interface SheetProps {
  desk: Desk;
  state: SyncState;
}

export function SyncSheet({ desk, state }: SheetProps) {
  useSignals();
  const t = useT();
  const body = useRef<HTMLTableSectionElement>(null);
  const { ticked, shown, page, pageSize } = state;
  const rows = shown.value;
  const last = Math.max(1, Math.ceil(rows.length / pageSize.value));
  const at = Math.min(page.value, last);
  const visible = rows.slice((at - 1) * pageSize.value, at * pageSize.value);
  const takeable = visible.filter(isTakeable);
  const isAll = takeable.length > 0 && takeable.every(({ name }) => ticked.value.has(name));
  const isSome = !isAll && takeable.some(({ name }) => ticked.value.has(name));
  /** Up and down from tick to tick, as in a sheet. */
  const onKeyDown = (event: KeyboardEvent) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step === 0 || !(event.target instanceof HTMLInputElement)) return;
    const boxes = [...(body.current?.querySelectorAll<HTMLInputElement>("input[type=checkbox]") ?? [])];
    const next = boxes[boxes.indexOf(event.target) + step];
    if (!next) return;
    event.preventDefault();
    next.focus();
  };
  return (
    <div>
      <Filters state={state} />
      <TakeBar state={state} count={ticked.value.size} />
      {visible.length === 0 ? (
        <p className="py-10 text-center text-dense text-muted">{t("sync.noneShown")}</p>
      ) : (
        <table className="table sync-table w-full">
          <caption className="sr-only">{t("sync.caption")}</caption>
          <thead>
            <tr>
              <th scope="col" className="w-9">
                <input
                  type="checkbox"
                  className="checkbox"
                  aria-label={t("sync.tickPage")}
                  checked={isAll}
                  disabled={takeable.length === 0}
                  ref={(box) => {
                    if (box) box.indeterminate = isSome;
                  }}
                  onChange={() =>
                    state.tick(
                      takeable.map(({ name }) => name),
                      !isAll,
                    )
                  }
                />
              </th>
              <th scope="col">{t("sync.column.model")}</th>
              <th scope="col">
                {t("sync.column.ours")}
                <span className="ml-2 font-normal">{t("sync.inOut")}</span>
              </th>
              <th scope="col">{t("sync.column.theirs")}</th>
              <th scope="col">{t("sync.column.taken")}</th>
            </tr>
          </thead>
          <tbody ref={body} onKeyDown={onKeyDown}>
            {visible.map((line) => (
              <SyncRow
                key={line.name}
                line={line}
                pending={desk.rowOf(line.name)}
                isTicked={ticked.value.has(line.name)}
                onTick={(isOn) => state.tick([line.name], isOn)}
              />
            ))}
          </tbody>
        </table>
      )}
      <Pagination
        page={at}
        pageSize={pageSize.value}
        total={rows.length}
        shown={visible.length}
        onPage={(next) => (page.value = next)}
        onPageSize={(size) => {
          pageSize.value = size;
          page.value = 1;
        }}
      />
    </div>
  );
}

function Filters({ state }: { state: SyncState }) {
  useSignals();
  const t = useT();
  const id = useId();
  const { filter, counts, search, isServedOnly, page } = state;
  const set = (change: () => void) => {
    change();
    page.value = 1;
  };
  return (
    <div className="mb-2 flex flex-wrap items-center gap-x-4 gap-y-2">
      <div className="flex flex-wrap gap-1.5" role="group" aria-label={t("sync.filters")}>
        {SYNC_FILTERS.filter((each) => each === "all" || each === filter.value || counts.value[each] > 0).map(
          (each) => (
            <button
              key={each}
              type="button"
              className="badge cursor-pointer"
              aria-pressed={filter.value === each}
              title={t(`sync.filterHint.${each}`)}
              onClick={() => set(() => (filter.value = each))}
            >
              {t(`sync.filter.${each}`)}
              <span className="tabular-nums">{formatNumber(counts.value[each])}</span>
            </button>
          ),
        )}
      </div>
      <label className="flex cursor-pointer items-center gap-2 text-dense">
        <input
          type="checkbox"
          className="checkbox"
          checked={isServedOnly.value}
          onChange={(event) => set(() => (isServedOnly.value = event.target.checked))}
        />
        {t("sync.servedOnly")}
      </label>
      <input
        id={`${id}-search`}
        type="search"
        className="input input-sm ml-auto w-72 max-sm:w-full"
        aria-label={t("sync.search")}
        placeholder={t("sync.search")}
        value={search.value}
        onChange={(event) => set(() => (search.value = event.target.value))}
      />
    </div>
  );
}

function TakeBar({ state, count }: { state: SyncState; count: number }) {
  useSignals();
  const t = useT();
  const bulk = state.bulk.value;
  return (
    <div className="mb-2 flex flex-wrap items-center gap-2 text-dense">
      <span className="tabular-nums" role="status">
        {t("sync.ticked", { count })}
      </span>
      <button type="button" className="btn btn-sm btn-default" onClick={() => state.tick(bulk, true)}>
        {t("sync.tickShown", { count: bulk.length })}
      </button>
      <button
        type="button"
        className="btn btn-sm btn-default"
        onClick={() =>
          state.tick(
            state.shown.peek().map(({ name }) => name),
            false,
          )
        }
      >
        {t("sync.untickShown")}
      </button>
      <button
        type="button"
        className={`btn btn-sm max-sm:w-full ${count === 0 ? "btn-disabled" : "btn-primary"}`}
        // Not disabled: it is pressed last, and would take the focus along.
        aria-disabled={count === 0}
        onClick={() => {
          if (count > 0) state.take();
        }}
      >
        {t("sync.take", { count })}
      </button>
    </div>
  );
}
