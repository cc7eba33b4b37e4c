// Where a call's session stays: by which rule it is known, whether it was served where it was bound, and why not.
// Refuses what names the session: the row has a fingerprint of it.
import { hasText, useT } from "../../lib/i18n.ts";
import { Line } from "./changes.tsx";
import type { LogOther } from "./row.ts";

export function AffinityPart({ other }: { other: LogOther }) {
  const t = useT();
  const info = other.admin_info;
  const affinity = info?.channel_affinity;
  if (!affinity?.state) return null;
  const {
    rule_name: rule,
    key_source: source,
    key_fp: fingerprint,
    state,
    reason,
    from_channel: from,
  } = affinity;
  const why = `log.affinity.why.${reason ?? ""}`;
  return (
    <section className="detail-section" aria-label={t("log.affinity.title")}>
      <h3>{t("log.affinity.title")}</h3>
      <dl className="facts">
        <Line label={t("log.affinity.outcome")}>
          {t(`log.affinity.state.${state}`, { channel: from ?? 0 })}
          {reason !== undefined && hasText(why) ? <span className="cell-sub">{t(why)}</span> : null}
        </Line>
        <Line label={t("log.affinity.rule")}>
          <span className="mono">
            {rule}
            {source && source !== rule ? <span className="text-muted"> {source}</span> : null}
          </span>
        </Line>
        {fingerprint ? (
          <Line label={t("log.affinity.fingerprint")}>
            <code>{fingerprint}</code>
          </Line>
        ) : null}
        {info?.multi_key_index === undefined ? null : (
          <Line label={t("log.affinity.key")}>{info.multi_key_index + 1}</Line>
        )}
      </dl>
    </section>
  );
}
