// One call in full: the line of truth, the waterfall of its attempts, its cost as an ordered sum, changes, error, raw record.
// Refuses to show channels and attempts to ordinary users: the server does not send them either.
import { useSignals } from "@preact/signals-react/runtime";
import { ChevronDown, ChevronUp, Maximize2, Minimize2 } from "lucide-react";
import { useState } from "react";
import type { KeyboardEvent } from "react";
import { curlOf } from "../../lib/curl.ts";
import { formatDuration, formatNumber } from "../../lib/format.ts";
import { language, useT } from "../../lib/i18n.ts";
import { Chip, Money, When } from "../../ui/badges.tsx";
import { CopyButton } from "../../ui/copy-button.tsx";
import { Drawer } from "../../ui/drawer.tsx";
import { AffinityPart } from "./affinity.tsx";
import { Changes, dialectName, ErrorPart } from "./changes.tsx";
import { TypeWord } from "./cells.tsx";
import { CostSum, isExplained } from "./cost.tsx";
import type { LogOther } from "./row.ts";
import { CONSUME, ERROR, keyNameOf, otherOf, textOf, typeKey } from "./row.ts";
import { Waterfall } from "./waterfall.tsx";
import type { LogRow } from "../../lib/wire.ts";

export interface LogDetailProps {
  row: LogRow;
  isAdmin: boolean;
  onClose: () => void;
  /** Walks to the row before (-1) or after (1). */
  onStep: (by: -1 | 1) => void;
}

/** Where a client of a dialect sends such a call, and the least that it says. */
const CALLS: Record<string, (model: string) => { path: string; body: unknown }> = {
  "openai-chat": (model) => ({ path: "/v1/chat/completions", body: { model, messages: [MESSAGE] } }),
  "openai-responses": (model) => ({ path: "/v1/responses", body: { model, input: MESSAGE.content } }),
  anthropic: (model) => ({
    path: "/v1/messages",
    body: { model, max_tokens: 1024, messages: [MESSAGE] },
  }),
  gemini: (model) => ({
    path: `/v1beta/models/${encodeURIComponent(model)}:generateContent`,
    body: { contents: [{ role: "user", parts: [{ text: MESSAGE.content }] }] },
  }),
};
const MESSAGE = { role: "user", content: "Hello" };

/** The same call once more, with a placeholder for the key; prompts are not stored. */
function callAsCurl(row: LogRow, other: LogOther): string {
  const make = CALLS[other.client_dialect ?? ""] ?? CALLS["openai-chat"];
  const { path, body } = make?.(row.model_name) ?? { path: "/v1", body: undefined };
  const streamed = row.is_stream && other.client_dialect !== "gemini";
  return curlOf({ method: "POST", path, body: streamed ? { ...(body as object), stream: true } : body });
}

export default function LogDetail({ row, isAdmin, onClose, onStep }: LogDetailProps) {
  const t = useT();
  const other = otherOf(row);
  const [isWide, setWide] = useState(false);
  const isCall = row.type === CONSUME || row.type === ERROR;
  const onKey = (event: KeyboardEvent) => {
    if (event.key === "j") onStep(1);
    else if (event.key === "k") onStep(-1);
    else if (event.key === "Enter") setWide((wide) => !wide);
    else return;
    event.preventDefault();
  };
  const Resize = isWide ? Minimize2 : Maximize2;
  const resize = t(isWide ? "log.narrow" : "log.expand");
  return (
    <Drawer
      isOpen
      width={isWide ? "wide" : "peek"}
      beside={`${row.id} ${row.created_at} ${row.request_id ?? ""}`}
      title={row.model_name || t(typeKey(row.type))}
      onClose={onClose}
      onKey={onKey}
      aside={
        <span className="flex items-center gap-1">
          <HeadButton label={t("log.previous")} onClick={() => onStep(-1)} icon={ChevronUp} />
          <HeadButton label={t("log.next")} onClick={() => onStep(1)} icon={ChevronDown} />
          <span className="max-sm:hidden">
            <HeadButton label={resize} onClick={() => setWide(!isWide)} icon={Resize} />
          </span>
        </span>
      }
    >
      <dl className="facts facts-dense">
        <Fact label={t("log.time")} value={<When at={row.created_at} isAbsolute />} />
        <Fact label={t("log.typeTitle")} value={<TypeWord type={row.type} text={t(typeKey(row.type))} />} />
        {isAdmin && row.username ? <Fact label={t("log.user")} value={row.username} /> : null}
        {row.token_name ? <Fact label={t("log.key")} value={keyNameOf(t, row)} /> : null}
        {row.model_name ? <Fact label={t("log.model")} value={<Model row={row} other={other} />} /> : null}
        {isAdmin && row.channel > 0 ? (
          <Fact label={t("log.channel")} value={`${row.channel} ${row.channel_name}`} />
        ) : null}
        {row.group ? (
          <Fact
            label={t("log.group")}
            value={
              <span className="inline-flex flex-wrap items-center gap-1">
                <Chip>{row.group}</Chip>
                {other.auto === true ? <span className="text-muted">{t("log.groupAuto")}</span> : null}
              </span>
            }
          />
        ) : null}
        {isCall ? (
          <>
            <Fact label={t("log.duration")} value={formatDuration(row.use_time_ms)} />
            {typeof other.frt === "number" && other.frt >= 0 ? (
              <Fact label={t("log.firstToken")} value={formatDuration(other.frt)} />
            ) : null}
            <Fact label={t("log.stream")} value={row.is_stream ? t("common.yes") : t("common.no")} />
          </>
        ) : null}
        {row.type === CONSUME ? (
          <Fact
            label={t("log.tokens")}
            value={`${formatNumber(row.prompt_tokens)} → ${formatNumber(row.completion_tokens)}`}
          />
        ) : null}
        {isCall && other.client_dialect ? (
          <Fact
            label={t("log.dialect")}
            value={[other.client_dialect, other.upstream_dialect]
              .filter((each): each is string => each !== undefined)
              .map(dialectName)
              .join(" → ")}
          />
        ) : null}
        {row.quota !== 0 || row.type === CONSUME ? (
          <Fact label={t("log.costTitle")} value={<Money quota={row.quota} />} />
        ) : null}
        {other.op && other.admin_info?.admin_username ? (
          <Fact label={t("log.by")} value={other.admin_info.admin_username} />
        ) : null}
        {other.op && other.ip ? (
          <Fact label={t("log.address")} value={<span className="mono break-all">{other.ip}</span>} />
        ) : null}
        {other.op && other.ua ? (
          <Fact label={t("log.userAgent")} value={<span className="break-words">{other.ua}</span>} />
        ) : null}
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
      <ErrorPart row={row} other={other} />
      {isCall ? <Waterfall row={row} other={other} /> : null}
      {row.type === CONSUME ? <CostSum row={row} other={other} /> : null}
      {isCall ? <Changes row={row} other={other} /> : null}
      {isAdmin ? <AffinityPart other={other} /> : null}
      {row.content && row.type !== ERROR ? <Content row={row} other={other} /> : null}
      <details className="detail-section">
        <summary>{t("log.raw")}</summary>
        <pre className="code-block">
          <code>{JSON.stringify(other, null, 2)}</code>
        </pre>
      </details>
      {row.model_name ? (
        <p className="detail-section">
          <CopyButton text={() => callAsCurl(row, other)} label={t("table.copyCurl")} withText />
        </p>
      ) : null}
    </Drawer>
  );
}

function HeadButton({
  label,
  onClick,
  icon: Icon,
}: {
  label: string;
  onClick: () => void;
  icon: typeof ChevronUp;
}) {
  return (
    <button
      type="button"
      className="btn btn-ghost btn-square btn-sm"
      aria-label={label}
      title={label}
      onClick={onClick}
    >
      <Icon aria-hidden size={16} />
    </button>
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

/** What the log wrote about the row; what a charge was reckoned with is told by the cost's sum. */
function Content({ row, other }: { row: LogRow; other: LogOther }) {
  useSignals();
  const t = useT();
  if (language.value !== "zh" && row.type === CONSUME && isExplained(row, other)) return null;
  return (
    <section className="detail-section">
      <h3>{t("log.content")}</h3>
      <p className="break-words">{textOf(row)}</p>
    </section>
  );
}
