// Drafts of price changes: whose, how many, when they come into force, and what became of them.
// Refuses to schedule what was not looked at, and to throw changes at hand away without a question.
import { useSignals } from "@preact/signals-react/runtime";
import { Ellipsis } from "lucide-react";
import { useCallback, useEffect, useState } from "react";
import { api, call, failureMessage } from "../../lib/api.ts";
import { nowMs, siteZone } from "../../lib/boot.ts";
import { formatDateTime, formatWhen, timeTitle } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import type { Translate } from "../../lib/i18n.ts";
import { toast, toastFailure } from "../../lib/toasts.ts";
import { numberOf, setQuery, useQuery } from "../../lib/url-state.ts";
import type { PriceDraft } from "../../lib/wire.ts";
import { confirm } from "../../ui/confirm.tsx";
import { Empty, FailureNotice } from "../../ui/feedback.tsx";
import { Menu } from "../../ui/menu.tsx";
import type { MenuItem } from "../../ui/menu.tsx";
import { Pagination } from "../../ui/pagination.tsx";
import { countsText } from "../../ui/price-plan/change-words.ts";
import { useKeptFocus } from "./keep-focus.ts";
import { RenameDraft, ScheduleDraft } from "./draft-drawers.tsx";
import { draftName, mayReplace, openDraftOf } from "./open-draft.ts";
import type { SectionProps } from "../../ui/price-sheet/section-props.ts";

const PAGE_SIZE = 20;

const TONES: Record<PriceDraft["state"], string> = {
  open: "info",
  scheduled: "warning",
  applied: "success",
  failed: "error",
  discarded: "off",
};

function useDrafts(page: number) {
  const [found, setFound] = useState<{ items: readonly PriceDraft[]; total: number }>();
  const [failure, setFailure] = useState<string>();
  const refresh = useCallback(async () => {
    try {
      const query = { p: String(page), page_size: String(PAGE_SIZE) };
      setFound(await call(api.price.drafts.get({ query })));
      setFailure(undefined);
    } catch (error) {
      setFailure(failureMessage(error));
    }
  }, [page]);
  useEffect(() => void refresh(), [refresh]);
  return { found, failure, refresh };
}

export default function DraftsSection(props: SectionProps) {
  useSignals();
  const t = useT();
  const { p } = useQuery();
  const page = numberOf(p, 1, 1);
  const { found, failure, refresh } = useDrafts(page);
  const around = useKeptFocus(found);
  return (
    <div ref={around} tabIndex={-1} className="mt-4 outline-0">
      <p className="mb-3 text-dense text-muted">{t("plan.draft.purpose", { zone: siteZone.value })}</p>
      {failure === undefined ? null : <FailureNotice text={failure} onRetry={refresh} />}
      {found === undefined ? (
        failure === undefined ? (
          <div className="skeleton h-40 rounded-box" aria-hidden />
        ) : null
      ) : found.items.length === 0 ? (
        <Empty title={t("plan.draft.none")} text={t("plan.draft.noneText")} />
      ) : (
        <>
          <ul className="border-t border-base-300">
            {found.items.map((draft) => (
              <DraftRow key={draft.id} draft={draft} refresh={refresh} {...props} />
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
    </div>
  );
}

interface RowProps extends SectionProps {
  draft: PriceDraft;
  refresh: () => Promise<void>;
}

function DraftRow(props: RowProps) {
  useSignals();
  const t = useT();
  const { draft, desk } = props;
  const [opened, setOpened] = useState<"rename" | "schedule">();
  const zone = siteZone.value;
  const name = draftName(draft);
  const isHere = desk.draft.value?.id === draft.id;
  const items = useActions(props, setOpened);
  return (
    <li className="flex items-start gap-3 border-b border-base-300 px-4 py-3">
      <div className="min-w-0 grow">
        <p className="flex flex-wrap items-center gap-x-3 gap-y-1">
          <span className="min-w-0 font-medium wrap-anywhere">{name}</span>
          <span className="status-word text-dense" data-tone={TONES[draft.state]}>
            <span className="status" />
            {t(`plan.draft.state.${draft.state}`)}
          </span>
          {draft.announce && draft.state !== "applied" ? (
            <span className="badge badge-sm badge-ghost">
              {t(draft.state === "scheduled" ? "plan.draft.announced" : "plan.draft.toAnnounce")}
            </span>
          ) : null}
          {isHere ? <span className="badge badge-sm badge-ghost">{t("plan.draft.here")}</span> : null}
        </p>
        <p className="mt-0.5 text-dense text-muted">
          {[
            countsText(t, draft.changes),
            t("plan.draft.by", { name: draft.username }),
            t("plan.draft.version", { version: draft.version }),
          ]
            .filter((text) => text !== "")
            .join(" · ")}
          {" · "}
          <time title={timeTitle(draft.updated_at * 1000, zone)}>
            {formatWhen(draft.updated_at * 1000, nowMs.value, zone)}
          </time>
        </p>
        {draft.state === "scheduled" ? (
          <p className="mt-1">
            {t("plan.draft.scheduledFor", {
              time: formatDateTime(draft.effective_at * 1000, zone).slice(0, 16),
              zone,
              name: draft.scheduler_name,
            })}
          </p>
        ) : null}
        {draft.state === "applied" ? (
          <p className="mt-1">
            <a
              className="link"
              href={`/prices?section=history&revision=${draft.revision_id}`}
              onClick={openRevision}
            >
              {t("plan.draft.appliedBy", { revision: draft.revision_id })}
            </a>
          </p>
        ) : null}
        {draft.failure ? (
          <p className="mt-1 text-error wrap-anywhere">{failureText(t, draft.failure)}</p>
        ) : null}
        {draft.note === "" ? null : (
          <p className="mt-1 text-dense whitespace-pre-wrap wrap-anywhere">{draft.note}</p>
        )}
      </div>
      {items.length === 0 ? null : (
        <>
          <button
            type="button"
            className="btn btn-sm btn-default max-sm:hidden"
            aria-label={t("plan.draft.openNamed", { name })}
            onClick={items[0]?.onSelect}
          >
            {t("plan.draft.open")}
          </button>
          <Menu label={t("plan.draft.menu", { name })} groups={[items]}>
            <Ellipsis aria-hidden size={16} />
          </Menu>
        </>
      )}
      {opened === "rename" ? <RenameDraft {...props} onClose={() => setOpened(undefined)} /> : null}
      {opened === "schedule" ? <ScheduleDraft {...props} onClose={() => setOpened(undefined)} /> : null}
    </li>
  );
}

function openRevision(event: React.MouseEvent<HTMLAnchorElement>): void {
  if (event.metaKey || event.ctrlKey || event.shiftKey) return;
  event.preventDefault();
  const revision = new URL(event.currentTarget.href).searchParams.get("revision");
  setQuery({ section: "history", revision });
}

function failureText(t: Translate, { code, names }: NonNullable<PriceDraft["failure"]>): string {
  return code === "price_plan_stale"
    ? t("plan.draft.failedStale", { names })
    : t("plan.draft.failed", { code });
}

/** What may be done with the draft; opening it comes first. */
function useActions(
  { draft, desk, canApply, refresh }: RowProps,
  open: (what: "rename" | "schedule") => void,
): MenuItem[] {
  const t = useT();
  const { id, version, state } = draft;
  const name = draftName(draft);
  if (state === "applied" || state === "discarded") return [];
  const isMine = state !== "scheduled" || canApply;
  const load = async () => {
    if (!(await mayReplace(desk))) return;
    desk.openDraft(openDraftOf(draft), t("plan.draft.opened", { name }));
    setQuery({ section: "plan", p: undefined });
  };
  const done = async (work: () => Promise<unknown>, text: string) => {
    try {
      await work();
      toast({ key: "draft", text });
    } catch (error) {
      toastFailure(error, "draft");
    }
    await refresh();
  };
  const lift = () =>
    done(
      () => call(api.price.drafts.put({ id, version, effective_at: 0 })),
      t("plan.draft.lifted", { name }),
    );
  const discard = async () => {
    const isSure = await confirm({
      title: t("plan.draft.discardTitle", { name }),
      text: t("plan.draft.discardText", { what: countsText(t, draft.changes) }),
      action: t("plan.draft.discard"),
      isDanger: true,
    });
    if (!isSure) return;
    await done(
      () => call(api.price.drafts({ id: String(id) }).delete()),
      t("plan.draft.discarded", { name }),
    );
    if (desk.draft.peek()?.id === id) desk.draft.value = undefined;
  };
  const items: MenuItem[] = [{ id: "open", label: t("plan.draft.open"), onSelect: () => void load() }];
  if (isMine) items.push({ id: "rename", label: t("plan.draft.rename"), onSelect: () => open("rename") });
  if (canApply)
    items.push({
      id: "schedule",
      label: t(state === "scheduled" ? "plan.draft.reschedule" : "plan.draft.schedule"),
      onSelect: () => open("schedule"),
    });
  if (canApply && state === "scheduled")
    items.push({ id: "lift", label: t("plan.draft.lift"), onSelect: () => void lift() });
  if (isMine)
    items.push({
      id: "discard",
      label: t("plan.draft.discard"),
      isDanger: true,
      onSelect: () => void discard(),
    });
  return items;
}
