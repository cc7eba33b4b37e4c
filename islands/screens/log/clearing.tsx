// Clears old rows of the usage log: counted before anybody confirms, watched while it runs, and ended when somebody wants.
// Refuses to delete what was not counted: the button waits for the number that it names.
import { useSignals } from "@preact/signals-react/runtime";
import { useEffect, useId, useRef, useState } from "react";
import { api, call, failureMessage } from "../../lib/api.ts";
import { nowMs, siteZone } from "../../lib/boot.ts";
import { formatDate, formatNumber } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import { parseLocal } from "../../lib/time-range.ts";
import { toast } from "../../lib/toasts.ts";
import { confirm } from "../../ui/confirm.tsx";
import { Drawer } from "../../ui/drawer.tsx";
import { FailureNotice } from "../../ui/feedback.tsx";

const DAY_MS = 86_400_000;
/** What the field begins with: older rows are rarely looked for. */
const KEPT_DAYS = 90;
const LOOK_MS = 1_000;

export interface LogClearingProps {
  onClose: () => void;
  /** Rows are gone: the list is read anew. */
  onCleared: () => void;
}

/** Rows before the day, in the site's zone; undefined while they are counted or the day is none. */
function useCount(day: string) {
  const [counted, setCounted] = useState<{ day: string; rows: number }>();
  const [failure, setFailure] = useState<string>();
  const zone = siteZone.value;
  const before = day === "" ? undefined : parseLocal(`${day}T00:00`, zone);
  const wanted = useRef(day);
  const refresh = async () => {
    wanted.current = day;
    if (before === undefined) return;
    try {
      const query = { target_timestamp: String(before) };
      const rows = await call(api.log.clear_count.get({ query }));
      if (wanted.current !== day) return;
      setCounted({ day, rows });
      setFailure(undefined);
    } catch (error) {
      if (wanted.current === day) setFailure(failureMessage(error));
    }
  };
  useEffect(() => void refresh(), [day, before]);
  return { before, rows: counted?.day === day ? counted.rows : undefined, failure, refresh };
}

export default function LogClearing({ onClose, onCleared }: LogClearingProps) {
  const t = useT();
  useSignals();
  const id = useId();
  const zone = siteZone.value;
  const [day, setDay] = useState(() => formatDate(nowMs.peek() - KEPT_DAYS * DAY_MS, zone));
  const { before, rows, failure, refresh } = useCount(day);
  const [isRunning, setRunning] = useState(false);
  const [problem, setProblem] = useState<string>();
  const clear = async () => {
    if (before === undefined || rows === undefined) return;
    const isSure = await confirm({
      title: t("log.clear.title", { count: rows }),
      text: t("log.clear.text", { day, rows: formatNumber(rows) }),
      action: t("log.clear.action", { count: rows }),
      isDanger: true,
      typed: String(rows),
    });
    if (!isSure) return;
    setRunning(true);
    setProblem(undefined);
    try {
      const query = { target_timestamp: String(before) };
      const deleted = await call(api.log.delete(undefined, { query }));
      toast({ key: "log clear", text: t("log.clear.done", { count: deleted }) });
      onCleared();
      if (deleted >= rows) onClose();
      else await refresh();
    } catch (error) {
      setProblem(failureMessage(error));
    }
    setRunning(false);
  };
  return (
    <Drawer
      isOpen
      width="peek"
      title={t("log.clearTitle")}
      onClose={onClose}
      footer={
        <>
          <button type="button" className="btn btn-default" onClick={onClose}>
            {t("common.close")}
          </button>
          <button
            type="button"
            className="btn btn-error"
            disabled={isRunning || !rows}
            aria-busy={isRunning}
            onClick={() => void clear()}
          >
            {rows === undefined ? t("log.clearTitle") : t("log.clear.action", { count: rows })}
          </button>
        </>
      }
    >
      <label className="block" htmlFor={id}>
        <span className="text-dense font-semibold">{t("log.clear.before")}</span>
      </label>
      <input
        id={id}
        type="date"
        className="input mt-1"
        max={formatDate(nowMs.value, zone)}
        disabled={isRunning}
        aria-describedby={`${id}-count`}
        value={day}
        onChange={(event) => setDay(event.target.value)}
      />
      <p id={`${id}-count`} className="mt-2" role="status">
        {failure !== undefined
          ? null
          : before === undefined
            ? t("log.clear.noDay")
            : rows === undefined
              ? t("log.clear.counting")
              : rows === 0
                ? t("log.clear.none", { day })
                : t("log.clear.count", { count: rows, rows: formatNumber(rows), day })}
      </p>
      {failure === undefined ? null : <FailureNotice text={failure} onRetry={refresh} />}
      <p className="mt-3 text-dense text-muted">{t("log.clear.stays")}</p>
      {isRunning ? <Progress /> : null}
      {problem === undefined ? null : (
        <p className="mt-3 text-error" role="alert">
          {problem}
        </p>
      )}
    </Drawer>
  );
}

type ProgressState = { done: number; total: number };

/** How far the clearing is, looked at while it runs. */
function Progress() {
  const t = useT();
  const [state, setState] = useState<ProgressState>({ done: 0, total: 0 });
  const [isStopping, setStopping] = useState(false);
  useEffect(() => {
    const look = () =>
      void call(api.log.clear_progress.get())
        .then(({ done, total }) => setState({ done, total }))
        // The clearing itself says how it ended.
        .catch(() => undefined);
    const timer = setInterval(look, LOOK_MS);
    return () => clearInterval(timer);
  }, []);
  const stop = () => {
    setStopping(true);
    void call(api.log.clear_cancel.post()).catch(() => setStopping(false));
  };
  return (
    <div className="mt-4">
      <progress
        className="progress w-full"
        aria-label={t("log.clearTitle")}
        max={Math.max(1, state.total)}
        value={state.total === 0 ? undefined : state.done}
      />
      <div className="mt-1 flex items-center justify-between gap-2">
        <span className="text-dense text-muted tabular-nums">
          {t("log.clear.progress", { done: formatNumber(state.done), total: formatNumber(state.total) })}
        </span>
        <button type="button" className="btn btn-default btn-sm" disabled={isStopping} onClick={stop}>
          {t("log.clear.stop")}
        </button>
      </div>
    </div>
  );
}
