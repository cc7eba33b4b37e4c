// The keys of a channel that has several: which of them work, which rest, for all models or for one, until when and why.
// Refuses to show more of a key than its last four characters: the server sends no more.
import { useEffect, useState } from "react";
import { api, call, failureMessage } from "../../lib/api.ts";
import { timeZone } from "../../lib/boot.ts";
import { formatDateTime } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import { StatusDot } from "../../ui/badges.tsx";
import type { ChannelKeyState } from "../../lib/wire.ts";

export function KeysList({ id, count }: { id: number; count: number }) {
  const t = useT();
  const [keys, setKeys] = useState<readonly ChannelKeyState[]>();
  const [failure, setFailure] = useState<string>();
  const load = () => {
    setFailure(undefined);
    call(api.channel.keys({ id }).get()).then(setKeys, (error: unknown) => setFailure(failureMessage(error)));
  };
  useEffect(load, [id]);
  return (
    <section
      className="mb-4 rounded-box border border-base-300 bg-base-200 p-3"
      aria-label={t("channel.keysTitle")}
    >
      <p className="mb-0.5 flex min-h-6 items-center gap-1">
        <span className="text-dense font-semibold">{t("channel.keysOf", { count })}</span>
        <button type="button" className="btn btn-sm btn-ghost text-primary ml-auto" onClick={load}>
          {t("common.refresh")}
        </button>
      </p>
      {failure ? (
        <p role="alert" className="mt-1 text-xs text-error">
          {failure}
        </p>
      ) : null}
      <ul style={{ minHeight: `${Math.min(count, 6) * 28}px` }}>
        {(keys ?? []).map((key) => (
          <li key={key.index} className="flex min-h-7 flex-wrap items-baseline gap-x-4">
            <code>••••{key.tail}</code>
            {key.rests_until > 0 ? (
              <StatusDot tone="attention" reason={reasonOf(t, key)}>
                {t("channel.restsUntil", { time: timeOf(key) })}
              </StatusDot>
            ) : (
              <StatusDot tone="ok">{t("channel.keyActive")}</StatusDot>
            )}
            {key.models.map((rest) => (
              <StatusDot key={rest.model} tone="attention" reason={reasonOf(t, rest)}>
                {t("channel.restsForModel", { model: rest.model, time: timeOf(rest) })}
              </StatusDot>
            ))}
          </li>
        ))}
      </ul>
    </section>
  );
}

type Rest = Pick<ChannelKeyState, "rests_until" | "reason" | "detail">;

function timeOf(rest: Rest): string {
  return formatDateTime(rest.rests_until * 1000, timeZone.value).slice(5, 16);
}

function reasonOf(t: ReturnType<typeof useT>, rest: Rest): string {
  return [t(`channel.rest.${rest.reason}`), upstreamMessage(rest.detail)].filter(Boolean).join(": ");
}

/** The message inside an upstream's JSON error, or the text as it came. */
function upstreamMessage(detail: string): string {
  try {
    const { error } = JSON.parse(detail) as { error?: { message?: unknown } | string };
    const message = typeof error === "object" ? error.message : error;
    return typeof message === "string" && message !== "" ? message : detail;
  } catch {
    return detail;
  }
}
