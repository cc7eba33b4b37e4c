// One call in full: the line of truth, the waterfall of its attempts, its cost as an ordered sum, the raw record.
// Refuses to show channels and attempts to ordinary users: the server does not send them either.
import { ChevronDown, ChevronUp } from "lucide-react";
import { formatDuration, formatNumber } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import { useShortcut } from "../../lib/keys.ts";
import { Chip, Money, When } from "../../ui/badges.tsx";
import { CopyButton } from "../../ui/copy-button.tsx";
import { Drawer } from "../../ui/drawer.tsx";
import { CostSum } from "./cost.tsx";
import type { LogOther, LogRow } from "./row.ts";
import { otherOf, typeKey } from "./row.ts";

export interface LogDetailProps {
  row: LogRow;
  isAdmin: boolean;
  onClose: () => void;
  /** Walks to the row before (-1) or after (1). */
  onStep: (by: number) => void;
}

export default function LogDetail({ row, isAdmin, onClose, onStep }: LogDetailProps) {
  const t = useT();
  const other = otherOf(row);
  useShortcut({ keys: "j", label: "log.next", run: () => onStep(1) });
  useShortcut({ keys: "k", label: "log.previous", run: () => onStep(-1) });
  const isCall = row.type === 2 || row.type === 5;
  return (
    <Drawer
      isOpen
      width="normal"
      title={row.model_name || t(typeKey(row.type))}
      onClose={onClose}
      aside={
        <span className="flex items-center gap-1">
          <button
            type="button"
            className="icon-button"
            aria-label={t("log.previous")}
            title={t("log.previous")}
            onClick={() => onStep(-1)}
          >
            <ChevronUp aria-hidden size={16} />
          </button>
          <button
            type="button"
            className="icon-button"
            aria-label={t("log.next")}
            title={t("log.next")}
            onClick={() => onStep(1)}
          >
            <ChevronDown aria-hidden size={16} />
          </button>
        </span>
      }
    >
      <dl className="facts">
        <Fact label={t("log.time")} value={<When at={row.created_at} isAbsolute />} />
        <Fact label={t("log.typeTitle")} value={t(typeKey(row.type))} />
        {isAdmin && row.username ? <Fact label={t("log.user")} value={row.username} /> : null}
        {row.token_name ? <Fact label={t("log.key")} value={row.token_name} /> : null}
        {row.model_name ? <Fact label={t("log.model")} value={<Model row={row} other={other} />} /> : null}
        {isAdmin && row.channel > 0 ? (
          <Fact label={t("log.channel")} value={`${row.channel} ${row.channel_name}`} />
        ) : null}
        {row.group ? <Fact label={t("log.group")} value={<Chip>{row.group}</Chip>} /> : null}
        {isCall ? (
          <>
            <Fact label={t("log.duration")} value={formatDuration(row.use_time_ms)} />
            {typeof other.frt === "number" && other.frt >= 0 ? (
              <Fact label={t("log.firstToken")} value={formatDuration(other.frt)} />
            ) : null}
            <Fact
              label={t("log.tokens")}
              value={`${formatNumber(row.prompt_tokens)} → ${formatNumber(row.completion_tokens)}`}
            />
            <Fact label={t("log.stream")} value={row.is_stream ? t("common.yes") : t("common.no")} />
          </>
        ) : null}
        {row.quota !== 0 ? <Fact label={t("log.cost")} value={<Money quota={row.quota} />} /> : null}
        {row.request_id ? (
          <Fact
            label={t("log.requestId")}
            value={
              <span className="inline-flex items-center gap-1 mono break-all">
                {row.request_id}
                <CopyButton text={row.request_id} label={t("log.requestId")} />
              </span>
            }
          />
        ) : null}
      </dl>
      {row.type === 2 ? <CostSum row={row} other={other} /> : null}
      {other.attempts && other.attempts.length > 0 ? <Waterfall other={other} row={row} /> : null}
      {row.content ? (
        <section className="detail-section">
          <h3>{t("log.content")}</h3>
          <p className="break-words">{row.content}</p>
        </section>
      ) : null}
      {other.dropped && other.dropped.length > 0 ? (
        <section className="detail-section">
          <h3>{t("log.dropped")}</h3>
          <p className="mono">{other.dropped.join(", ")}</p>
        </section>
      ) : null}
      <details className="detail-section">
        <summary>{t("log.raw")}</summary>
        <pre className="code-block">
          <code>{JSON.stringify(other, null, 2)}</code>
        </pre>
      </details>
    </Drawer>
  );
}

function Fact({ label, value }: { label: string; value: React.ReactNode }) {
  return (
    <div>
      <dt>{label}</dt>
      <dd>{value}</dd>
    </div>
  );
}

function Model({ row, other }: { row: LogRow; other: LogOther }) {
  const mapped = other.is_model_mapped && other.upstream_model_name ? ` → ${other.upstream_model_name}` : "";
  return <span className="mono">{row.model_name + mapped}</span>;
}

/** One bar per attempt on a shared axis; failed ones carry their code. */
function Waterfall({ row, other }: { row: LogRow; other: LogOther }) {
  const t = useT();
  const attempts = other.attempts ?? [];
  const total = Math.max(
    1,
    row.use_time_ms,
    attempts.reduce((sum, each) => sum + each.ms, 0),
  );
  let start = 0;
  return (
    <section className="detail-section">
      <h3>{t("log.attempts")}</h3>
      <ol className="waterfall">
        {attempts.map((attempt, index) => {
          const left = (start / total) * 100;
          start += attempt.ms;
          const failed = attempt.code !== undefined && attempt.code !== "" && attempt.code !== "ok";
          return (
            // An attempt has no identity but its place in the order.
            // oxlint-disable-next-line react/no-array-index-key
            <li key={index}>
              <span>{t("log.attempt", { number: index + 1, channel: attempt.channel })}</span>
              <span className="waterfall-track" aria-hidden>
                <span
                  data-tone={failed ? "broken" : "ok"}
                  style={{ left: `${left}%`, width: `${Math.max(1, (attempt.ms / total) * 100)}%` }}
                />
              </span>
              <span className="tabular-nums">
                {formatDuration(attempt.ms)}
                {failed ? <span className="text-error"> {attempt.code}</span> : null}
              </span>
            </li>
          );
        })}
      </ol>
    </section>
  );
}
