// A run over many channels: counts, time left and its end by hand; then what came of it, until somebody closes it.
import { Square, X } from "lucide-react";
import { useT } from "../../lib/i18n.ts";
import { timeLeftText } from "../../lib/time-left.ts";
import type { RunProgress } from "./use-channels.ts";

export default function RunBar({ run, onClose }: { run: RunProgress; onClose: () => void }) {
  const t = useT();
  const { kind, isRunning, isCancelled, done, total, failed, skipped, elapsedMs, reasons = [] } = run;
  const isTest = kind === "tests";
  const counts = { done, total, failed, passed: done - failed };
  const text = isRunning
    ? t(isTest ? "channel.test.progress" : "channel.run.balances", counts)
    : isTest || failed > 0 || isCancelled
      ? t(isTest ? "channel.test.summary" : "channel.run.balancesDone", counts)
      : t("channel.balanceAll");
  return (
    <div
      className="alert alert-soft mt-2"
      data-tone={isRunning ? "info" : failed > 0 || isCancelled ? "warning" : "success"}
    >
      <span role="status">{text}</span>
      {isRunning ? (
        <>
          <progress
            className="progress progress-primary w-auto flex-[1_1_160px]"
            max={Math.max(1, total)}
            value={done}
            aria-label={t(isTest ? "channel.testAll" : "channel.balanceRunning")}
          />
          <span className="text-muted tabular-nums">{timeLeftText(done, total, elapsedMs)}</span>
          <button
            type="button"
            className="btn btn-sm btn-default"
            disabled={isCancelled}
            onClick={run.cancel}
          >
            <Square aria-hidden size={12} />
            {t("channel.testStop")}
          </button>
        </>
      ) : (
        <>
          {skipped > 0 ? (
            <span className="text-muted">{t("channel.test.skipped", { count: skipped })}</span>
          ) : null}
          {isCancelled ? (
            <span className="text-muted">{t("channel.run.cancelled", { count: total - done })}</span>
          ) : null}
          <button
            type="button"
            className="btn btn-ghost btn-square btn-xs ml-auto"
            aria-label={t("common.close")}
            onClick={onClose}
          >
            <X aria-hidden />
          </button>
          {reasons.length > 0 ? (
            <ul className="w-full wrap-anywhere">
              {reasons.map((reason) => (
                <li key={reason}>{reason}</li>
              ))}
            </ul>
          ) : null}
        </>
      )}
    </div>
  );
}
