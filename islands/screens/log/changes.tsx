// What happened to a call on its way: other dialect, other model, dropped fields, effort; and what went wrong.
// Refuses guesses: a line stands only where the row says so.
import type { ReactNode } from "react";
import { formatQuota } from "../../lib/format.ts";
import { hasText, useT } from "../../lib/i18n.ts";
import { CopyButton } from "../../ui/copy-button.tsx";
import type { LogOther } from "./row.ts";
import { ERROR, textOf } from "./row.ts";
import type { LogRow } from "../../lib/wire.ts";

const DIALECTS: Record<string, string> = {
  "openai-chat": "OpenAI Chat",
  "openai-responses": "OpenAI Responses",
  anthropic: "Anthropic Messages",
  gemini: "Gemini",
};

export function dialectName(name: string): string {
  return (Object.hasOwn(DIALECTS, name) ? DIALECTS[name] : undefined) ?? name;
}

/** Retrying helps where the upstream was busy or away, not where the request was wrong. */
function adviceKey(status: number): string {
  if (status === 429) return "log.advice.wait";
  if (status === 401 || status === 403) return "log.advice.access";
  if (status >= 500 || status === 408) return "log.advice.retry";
  return "log.advice.request";
}

export function Line({ label, children }: { label: string; children: ReactNode }) {
  return (
    <div>
      <dt>{label}</dt>
      <dd>{children}</dd>
    </div>
  );
}

export function Changes({ row, other }: { row: LogRow; other: LogOther }) {
  const t = useT();
  const { client_dialect: client, upstream_dialect: upstream, dropped = [] } = other;
  const isConverted = client !== undefined && upstream !== undefined && client !== upstream;
  const lines: ReactNode[] = [];
  if (isConverted) {
    lines.push(
      <Line key="dialect" label={t("log.converted")}>
        {`${dialectName(client)} → ${dialectName(upstream)}`}
      </Line>,
    );
  }
  if (other.is_model_mapped && other.upstream_model_name) {
    lines.push(
      <Line key="mapped" label={t("log.mapped")}>
        <span className="mono">{`${row.model_name} → ${other.upstream_model_name}`}</span>
      </Line>,
    );
  }
  if (other.reasoning_effort) {
    lines.push(
      <Line key="effort" label={t("log.effort")}>
        {other.reasoning_effort}
      </Line>,
    );
  }
  if (dropped.length > 0) {
    lines.push(
      <Line key="dropped" label={t("log.dropped")}>
        <span className="mono">{dropped.join(", ")}</span>
      </Line>,
    );
  }
  const headerRules = other.admin_info?.header_rules ?? [];
  for (const [key, list] of [
    ["requestRules", other.request_rules ?? []],
    ["headerRules", headerRules],
  ] as const) {
    if (list.length > 0)
      lines.push(
        <Line key={key} label={t(key === "requestRules" ? "log.requestRules" : "log.headerRules")}>
          <span className="mono">{list.join(", ")}</span>
        </Line>,
      );
  }
  if (other.system_prompt_tokens) {
    lines.push(
      <Line key="prompt" label={t("log.systemPromptTokens")}>
        {t("log.systemPromptAbout", { count: other.system_prompt_tokens })}
      </Line>,
    );
  }
  if (other.limited) {
    lines.push(
      <Line key="limited" label={t("log.limited")}>
        {other.limited === "max_cost" ? t("log.limitedByCap") : t("log.limitedByBalance")}
      </Line>,
    );
  }
  if (other.max_quota !== undefined) {
    lines.push(
      <Line key="cap" label={t("log.maxQuota")}>
        {formatQuota(other.max_quota)}
      </Line>,
    );
  }
  if (other.over_cap) {
    lines.push(
      <Line key="over" label={t("log.overCap")}>
        {formatQuota(other.over_cap)}
      </Line>,
    );
  }
  if (other.sensitive_output) {
    lines.push(
      <Line key="sensitive" label={t("log.sensitive")}>
        {t("common.yes")}
      </Line>,
    );
  }
  if (other.end_reason && other.end_reason !== "completed") {
    const key = `log.end.${other.end_reason}`;
    lines.push(
      <Line key="end" label={t("log.endReason")}>
        {hasText(key) ? t(key) : other.end_reason}
      </Line>,
    );
  }
  if (lines.length === 0) return null;
  return (
    <section className="detail-section" aria-label={t("log.changes")}>
      <h3>{t("log.changes")}</h3>
      <dl className="facts">{lines}</dl>
    </section>
  );
}

export function ErrorPart({ row, other }: { row: LogRow; other: LogOther }) {
  const t = useT();
  if (row.type !== ERROR) return null;
  const { error_code: code, error_type: type, status_code: status } = other;
  const internal = other.admin_info?.internal;
  return (
    <section className="detail-section" aria-label={t("log.error")}>
      <h3>{t("log.error")}</h3>
      <p className="break-words text-error">{textOf(row)}</p>
      <dl className="facts mt-2">
        {code ? (
          <Line label={t("log.errorCode")}>
            <span className="inline-flex items-center gap-1">
              <code>{code}</code>
              <CopyButton text={code} label={t("log.errorCode")} />
            </span>
          </Line>
        ) : null}
        {type ? (
          <Line label={t("log.errorType")}>
            <code>{type}</code>
          </Line>
        ) : null}
        {status ? <Line label={t("log.errorStatus")}>{status}</Line> : null}
        {internal ? (
          <Line label={t("log.errorInternal")}>
            <span className="mono">{internal}</span>
          </Line>
        ) : null}
      </dl>
      {status ? <p className="mt-1 text-xs text-muted">{t(adviceKey(status))}</p> : null}
    </section>
  );
}
