// The waterfall of one call: a bar per step on a shared axis, failed attempts red with code and status.
// Refuses bars without numbers: every step says its start and length in words too.
import { formatDuration } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import type { LogOther } from "./row.ts";
import { stepsOf } from "./steps.ts";
import type { Step } from "./steps.ts";
import type { LogRow } from "../../lib/wire.ts";

const TONE: Partial<Record<Step["kind"], string>> = {
  checks: "off",
  answer: "running",
  firstToken: "running",
};

export function Waterfall({ row, other }: { row: LogRow; other: LogOther }) {
  const t = useT();
  const steps = stepsOf(row, other);
  const total = Math.max(1, ...steps.map((step) => step.startMs + step.ms));
  const nameOf = (step: Step) =>
    step.number === undefined
      ? t(`log.step.${step.kind}`)
      : t("log.attempt", { number: step.number, channel: step.channel ?? 0 });
  return (
    <section className="detail-section" aria-label={t("log.attempts")}>
      <h3>{t("log.attempts")}</h3>
      <ol className="waterfall grid gap-1.5 text-dense">
        {steps.map((step) => (
          <li key={`${step.kind}-${step.startMs}-${step.number ?? 0}`}>
            <span>
              {nameOf(step)}
              {step.kind === "answer" ? <span className="cell-sub">{t("log.step.answer")}</span> : null}
              {step.isFailed ? (
                <span className="cell-sub text-error">
                  {[step.status, step.code].filter((each) => each !== undefined).join(" ")}
                </span>
              ) : null}
            </span>
            <span className="waterfall-track" aria-hidden>
              <span
                data-tone={step.isFailed ? "broken" : (TONE[step.kind] ?? "ok")}
                style={{
                  left: `${(step.startMs / total) * 100}%`,
                  width: `${Math.max(1, (step.ms / total) * 100)}%`,
                }}
              />
            </span>
            <span
              className="tabular-nums whitespace-nowrap"
              title={t("log.step.start", { time: formatDuration(step.startMs) })}
            >
              {formatDuration(step.ms)}
            </span>
          </li>
        ))}
      </ol>
    </section>
  );
}
