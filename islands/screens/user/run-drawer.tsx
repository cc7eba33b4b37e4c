// A run over many accounts: how far it is, and what came of it. It stands in the address, so the result stays.
// Refuses to hide refusals: each is named with its reason, and they can be copied.
import { useEffect, useState } from "react";
import { api, call, failureMessage } from "../../lib/api.ts";
import { formatNumber, formatQuota } from "../../lib/format.ts";
import { hasText, useT } from "../../lib/i18n.ts";
import type { Translate } from "../../lib/i18n.ts";
import { patchUrl } from "../../lib/url-state.ts";
import type { UserBulkHead, UserBulkRun } from "../../lib/wire.ts";
import { StatusDot, When } from "../../ui/badges.tsx";
import { CopyButton } from "../../ui/copy-button.tsx";
import { Drawer } from "../../ui/drawer.tsx";
import { Empty } from "../../ui/feedback.tsx";

const ASK_AGAIN_MS = 700;

/** "Credit" with what was given: "+$5.00", "group vip". */
function titleOf(t: Translate, run: UserBulkHead): string {
  const action = run.action === "flag" && run.flagged === false ? "unflag" : run.action;
  const what = t(`user.bulk.${action}`);
  if (run.amount !== undefined)
    return `${what}: ${run.amount > 0 ? "+" : "−"}${formatQuota(Math.abs(run.amount))}`;
  return run.group === undefined ? what : `${what}: ${run.group}`;
}

function useRun(id: number, onFinished: () => void): { run?: UserBulkRun; failure?: string } {
  const [found, setFound] = useState<{ run?: UserBulkRun; failure?: string }>({});
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isGone = false;
    let wasOpen = false;
    const ask = async () => {
      try {
        const run = await call(api.user.bulk({ id }).get());
        if (isGone) return;
        setFound({ run });
        if (!run.finished) timer = setTimeout(() => void ask(), ASK_AGAIN_MS);
        else if (wasOpen || run.done > 0) onFinished();
        wasOpen = !run.finished;
      } catch (error) {
        if (!isGone) setFound({ failure: failureMessage(error) });
      }
    };
    void ask();
    return () => {
      isGone = true;
      clearTimeout(timer);
    };
  }, [id]);
  return found;
}

interface RunDrawerProps {
  id: number;
  onClose: () => void;
  /** The list has other rows now. */
  onFinished: () => void;
}

function RunDrawer({ id, onClose, onFinished }: RunDrawerProps) {
  const t = useT();
  const { run, failure } = useRun(id, onFinished);
  return (
    <Drawer
      isOpen
      width="peek"
      title={run ? titleOf(t, run) : t("user.bulk.run", { id })}
      aside={
        run ? (
          <StatusDot tone={run.finished ? (run.failed > 0 ? "attention" : "ok") : "running"}>
            {t(run.finished ? "user.bulk.finished" : "user.bulk.running")}
          </StatusDot>
        ) : null
      }
      onClose={onClose}
    >
      {failure === undefined ? null : <p className="text-error">{failure}</p>}
      {run ? (
        <Progress run={run} />
      ) : failure === undefined ? (
        <p className="text-muted">{t("common.loading")}</p>
      ) : null}
    </Drawer>
  );
}

function Progress({ run }: { run: UserBulkRun }) {
  const t = useT();
  const over = run.done + run.failed;
  const counts = {
    done: formatNumber(run.done),
    failed: formatNumber(run.failed),
    total: formatNumber(run.total),
  };
  return (
    <>
      <p role="status" className="font-semibold tabular-nums">
        {t(run.failed > 0 ? "user.bulk.countsFailed" : "user.bulk.counts", counts)}
      </p>
      <progress
        className="progress progress-primary mt-2"
        max={Math.max(1, run.total)}
        value={over}
        aria-label={t("user.bulk.progress")}
      />
      <p className="mt-2 text-sm text-muted">{t(run.finished ? "user.bulk.stays" : "user.bulk.goesOn")}</p>
      <dl className="facts mt-4">
        <div>
          <dt>{t("user.bulk.by")}</dt>
          <dd>
            {run.username} · <When at={run.created_at} />
          </dd>
        </div>
        {run.reason === "" ? null : (
          <div>
            <dt>{t("user.reason")}</dt>
            <dd className="wrap-anywhere">{run.reason}</dd>
          </div>
        )}
      </dl>
      {run.failures.length > 0 ? <Refusals run={run} /> : null}
    </>
  );
}

function Refusals({ run }: { run: UserBulkRun }) {
  const t = useT();
  const reasonOf = ({ code, params = {} }: UserBulkRun["failures"][number]) =>
    hasText(`failure.${code}`) ? t(`failure.${code}`, params) : code;
  const text = run.failures.map((each) => `${each.user_id}\t${each.username}\t${reasonOf(each)}`).join("\n");
  return (
    <section className="mt-5" aria-label={t("user.bulk.refused")}>
      <h3 className="flex items-center gap-2 font-semibold">
        {t("user.bulk.refused")}
        <CopyButton text={text} label={t("user.bulk.copyRefused")} withText />
      </h3>
      {run.failed > run.failures.length ? (
        <p className="text-sm text-muted">
          {t("user.bulk.firstRefused", { number: formatNumber(run.failures.length) })}
        </p>
      ) : null}
      <ul className="mt-2 flex flex-col gap-1.5 text-[13px]">
        {run.failures.map((each) => (
          <li key={each.line ?? each.user_id} className="flex flex-wrap gap-x-2">
            {each.line === undefined ? null : (
              <span className="tabular-nums text-muted">{t("user.import.line", { line: each.line })}</span>
            )}
            {each.user_id > 0 ? (
              <a className="link" href={patchUrl("/user", { keyword: each.user_id, edit: each.user_id })}>
                {each.username || `#${each.user_id}`}
              </a>
            ) : (
              <span className="font-medium">{each.username}</span>
            )}
            <span className="text-muted">{reasonOf(each)}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** The latest runs, for whoever comes back to see what came of one. */
function RunList({ onClose, onOpen }: { onClose: () => void; onOpen: (id: number) => void }) {
  const t = useT();
  const [runs, setRuns] = useState<readonly UserBulkHead[]>();
  const [failure, setFailure] = useState<string>();
  useEffect(() => {
    call(api.user.bulk.get()).then(setRuns, (error: unknown) => setFailure(failureMessage(error)));
  }, []);
  return (
    <Drawer isOpen width="peek" title={t("user.bulk.runs")} onClose={onClose}>
      {failure === undefined ? null : <p className="text-error">{failure}</p>}
      {runs?.length === 0 ? <Empty title={t("user.bulk.noRuns")} text={t("user.bulk.noRunsText")} /> : null}
      <ul className="flex flex-col">
        {(runs ?? []).map((run) => (
          <li key={run.id} className="border-b border-base-300 py-2">
            <button type="button" className="link font-medium" onClick={() => onOpen(run.id)}>
              {titleOf(t, run)}
            </button>
            <p className="flex flex-wrap items-center gap-x-2 text-sm text-muted">
              <span>{t("user.bulk.accounts", { count: run.total, number: formatNumber(run.total) })}</span>
              <span aria-hidden>·</span>
              <span>{run.username}</span>
              <span aria-hidden>·</span>
              <When at={run.created_at} />
              {run.finished ? null : <StatusDot tone="running">{t("user.bulk.running")}</StatusDot>}
            </p>
          </li>
        ))}
      </ul>
    </Drawer>
  );
}

export default function RunPanel({
  run,
  onOpen,
  ...rest
}: {
  /** Out of the address: a number, or "all". */
  run: string;
  onOpen: (id: number) => void;
  onClose: () => void;
  onFinished: () => void;
}) {
  const id = Number(run);
  return Number.isSafeInteger(id) && id > 0 ? (
    <RunDrawer key={id} id={id} {...rest} />
  ) : (
    <RunList onClose={rest.onClose} onOpen={onOpen} />
  );
}
