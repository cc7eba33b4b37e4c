// The health of a channel's models: which of them rest, why and until when, how their last calls ended; and letting calls through
// again. Refuses to ask by itself: what it shows is of the moment when it was opened or refreshed.
import { useEffect, useState } from "react";
import { api, call, failureMessage } from "../../lib/api.ts";
import { timeZone } from "../../lib/boot.ts";
import { formatDateTime } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import type { Translate } from "../../lib/i18n.ts";
import type { ChannelCell } from "../../lib/wire.ts";
import { StatusDot } from "../../ui/badges.tsx";
import type { StatusTone } from "../../ui/badges.tsx";
import { Section } from "../../ui/form.tsx";

const TONES: Readonly<Record<ChannelCell["state"], StatusTone>> = {
  open: "broken",
  half_open: "attention",
  closed: "ok",
};
/** One sign a call; colour alone says nothing. */
const SIGNS: Readonly<Record<string, string>> = { ok: "✓", down: "×", limited: "…", rejected: "–" };

export default function HealthPart({ id }: { id: number }) {
  const t = useT();
  const [cells, setCells] = useState<readonly ChannelCell[]>();
  const [failure, setFailure] = useState<string>();
  const take = (asked: Promise<readonly ChannelCell[]>): void => {
    setFailure(undefined);
    asked.then(setCells, (error: unknown) => setFailure(failureMessage(error)));
  };
  const load = () => take(call(api.channel.cells({ id }).get()));
  useEffect(load, [id]);
  const close = (cell: ChannelCell) => {
    const body = cell.scope === "key" ? { key_index: cell.key_index } : { model: cell.model };
    take(call(api.channel.cells({ id }).close.post(body)));
  };
  return (
    <Section title={t("channel.health.title")}>
      <p className="mb-2 flex min-h-6 items-center gap-2 text-xs text-muted">
        <span>{cells?.length === 0 ? t("channel.health.none") : t("channel.health.hint")}</span>
        <button type="button" className="btn btn-sm btn-ghost text-primary ml-auto" onClick={load}>
          {t("common.refresh")}
        </button>
      </p>
      {failure ? (
        <p role="alert" className="mb-2 text-xs text-error">
          {failure}
        </p>
      ) : null}
      {cells && cells.length > 0 ? (
        <ul
          className="mb-4 rounded-box border border-base-300 bg-base-200 p-3"
          aria-label={t("channel.health.title")}
        >
          {cells.map((cell) => (
            <Cell key={`${cell.scope} ${cell.key_index} ${cell.model}`} cell={cell} t={t} onClose={close} />
          ))}
        </ul>
      ) : null}
    </Section>
  );
}

function nameOf(t: Translate, { scope, model, key_index }: ChannelCell): string {
  if (scope === "proxy" || scope === "channel") return t(`channel.health.scope.${scope}`);
  return scope === "key" ? t("channel.health.scope.key", { model, number: key_index + 1 }) : model;
}

function Cell({
  cell,
  t,
  onClose,
}: {
  cell: ChannelCell;
  t: Translate;
  onClose: (cell: ChannelCell) => void;
}) {
  const name = nameOf(t, cell);
  const time = formatDateTime(cell.until * 1000, timeZone.value).slice(5, 19);
  const reason = [t(`channel.rest.${cell.reason}`), cell.detail].filter(Boolean).join(": ");
  const good = cell.outcomes.filter(({ verdict }) => verdict === "ok").length;
  return (
    <li className="flex min-h-7 flex-wrap items-baseline gap-x-4 gap-y-1 py-1">
      <code className="min-w-0 wrap-anywhere">{name}</code>
      <StatusDot tone={TONES[cell.state]} reason={cell.state === "closed" ? undefined : reason}>
        {t(`channel.health.${cell.state}`, { time })}
      </StatusDot>
      {cell.outcomes.length > 0 ? (
        <span
          className="mono text-xs text-muted"
          title={t("channel.health.outcomes", { good, total: cell.outcomes.length })}
        >
          <span aria-hidden>{cell.outcomes.map(({ verdict }) => SIGNS[verdict] ?? "?").join("")}</span>
          <span className="sr-only">
            {t("channel.health.outcomes", { good, total: cell.outcomes.length })}
          </span>
        </span>
      ) : null}
      {cell.state === "closed" ? null : (
        <button
          type="button"
          className="btn btn-sm btn-ghost text-primary ml-auto"
          aria-label={t("channel.health.closeNamed", { name })}
          onClick={() => onClose(cell)}
        >
          {t("channel.health.close")}
        </button>
      )}
    </li>
  );
}
