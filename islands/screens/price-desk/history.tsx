// Who changed prices, ratios and groups, when and why: every write, whichever way it came; one of them opens beside the list.
// Refuses to change anything by itself: taking one back is asked for in what is opened.
import { useSignals } from "@preact/signals-react/runtime";
import { Search } from "lucide-react";
import { useCallback, useEffect, useState } from "react";
import { api, call, failureMessage } from "../../lib/api.ts";
import { nowMs, siteZone } from "../../lib/boot.ts";
import { formatWhen, timeTitle } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import { numberOf, patchUrl, setQuery, useQuery } from "../../lib/url-state.ts";
import type { PriceRevision } from "../../lib/wire.ts";
import { Empty, FailureNotice } from "../../ui/feedback.tsx";
import { Pagination } from "../../ui/pagination.tsx";
import { authorText, firstNamesText, UndoMarks, wayText } from "./history-words.tsx";
import { useKeptFocus } from "./keep-focus.ts";
import { RevisionDrawer } from "./revision.tsx";
import type { SectionProps } from "../../ui/price-sheet/section-props.ts";

const PAGE_SIZE = 20;

function useRevisions(page: number, name: string, latest: number | undefined) {
  const [found, setFound] = useState<{ items: readonly PriceRevision[]; total: number }>();
  const [failure, setFailure] = useState<string>();
  const refresh = useCallback(async () => {
    try {
      const query = { p: String(page), page_size: String(PAGE_SIZE), name };
      setFound(await call(api.price.revisions.get({ query })));
      setFailure(undefined);
    } catch (error) {
      setFailure(failureMessage(error));
    }
  }, [page, name]);
  useEffect(() => void refresh(), [refresh, latest]);
  return { found, failure, refresh };
}

export default function HistorySection(props: SectionProps) {
  useSignals();
  const t = useT();
  const query = useQuery();
  const { name = "" } = query;
  const page = numberOf(query.p, 1, 1);
  const opened = numberOf(query.revision, 0, 1);
  const { found, failure, refresh } = useRevisions(page, name, props.desk.prices.value?.revision);
  const around = useKeptFocus(`${name} ${opened} ${found?.total}`);
  return (
    <div ref={around} tabIndex={-1} className="mt-4 outline-0">
      <NameFilter key={name} name={name} />
      {failure === undefined ? null : <FailureNotice text={failure} onRetry={refresh} />}
      {found === undefined ? (
        failure === undefined ? (
          <div className="skeleton h-64 rounded-box" aria-hidden />
        ) : null
      ) : found.items.length === 0 ? (
        <Empty
          title={t(name === "" ? "plan.history.none" : "plan.history.noneNamed", { name })}
          text={t("plan.history.noneText")}
        />
      ) : (
        <>
          <ul className="border-t border-base-300">
            {found.items.map((revision) => (
              <RevisionRow key={revision.id} revision={revision} isOpen={revision.id === opened} />
            ))}
          </ul>
          {found.total > PAGE_SIZE ? (
            <Pagination
              page={page}
              pageSize={PAGE_SIZE}
              total={found.total}
              shown={found.items.length}
              onPage={(next) => setQuery({ p: next === 1 ? undefined : next })}
              onPageSize={() => undefined}
            />
          ) : null}
        </>
      )}
      {opened > 0 ? (
        <RevisionDrawer
          key={opened}
          id={opened}
          onClose={() => setQuery({ revision: undefined })}
          onUndone={async () => {
            await Promise.all([props.reload(), refresh()]);
          }}
          canUndo={props.canApply}
        />
      ) : null}
    </div>
  );
}

function NameFilter({ name }: { name: string }) {
  const t = useT();
  const [typed, setTyped] = useState(name);
  return (
    <form
      className="mb-3 flex flex-wrap items-center gap-2"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        setQuery({ name: typed.trim(), p: undefined, revision: undefined });
      }}
    >
      <label className="input w-72 max-sm:w-full">
        <Search aria-hidden size={16} className="text-muted" />
        <input
          type="search"
          className="mono grow"
          aria-label={t("plan.history.filter")}
          placeholder={t("plan.history.filter")}
          autoComplete="off"
          spellCheck={false}
          value={typed}
          onChange={(event) => setTyped(event.target.value)}
        />
      </label>
      <button type="submit" className="btn btn-default">
        {t("plan.history.find")}
      </button>
      {name === "" ? null : (
        <button
          type="button"
          className="btn btn-ghost"
          onClick={() => setQuery({ name: undefined, p: undefined, revision: undefined })}
        >
          {t("plan.history.all")}
        </button>
      )}
    </form>
  );
}

function RevisionRow({ revision, isOpen }: { revision: PriceRevision; isOpen: boolean }) {
  useSignals();
  const t = useT();
  const zone = siteZone.value;
  const { id, note, names, change_count: count, created_at: at } = revision;
  return (
    <li className="border-b border-base-300">
      <a
        href={patchUrl("/prices?section=history", { revision: id })}
        className="block px-4 py-3 hover:bg-base-200"
        aria-current={isOpen ? "true" : undefined}
        onClick={(event) => {
          if (event.metaKey || event.ctrlKey || event.shiftKey) return;
          event.preventDefault();
          setQuery({ revision: id });
        }}
      >
        <span className="flex flex-wrap items-baseline gap-x-3">
          <span className="font-medium">{authorText(t, revision)}</span>
          <span className="text-muted">{wayText(t, revision)}</span>
          <time className="ml-auto text-dense text-muted tabular-nums" title={timeTitle(at * 1000, zone)}>
            {formatWhen(at * 1000, nowMs.value, zone)}
          </time>
        </span>
        <span className="mt-0.5 block wrap-anywhere">
          <span className="mono">{firstNamesText(names)}</span>{" "}
          <span className="text-dense text-muted">{t("plan.history.entries", { count })}</span>
        </span>
        {note === "" ? null : <span className="mt-0.5 block text-dense wrap-anywhere">{note}</span>}
        <UndoMarks revision={revision} />
      </a>
    </li>
  );
}
