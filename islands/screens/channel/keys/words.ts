// What is said of one key: its name, its state, why and until when it rests.
// Refuses to show more of a key than its last four characters: the server sends no more.
import { timeZone } from "../../../lib/boot.ts";
import { formatDateTime, formatNumber } from "../../../lib/format.ts";
import type { Translate } from "../../../lib/i18n.ts";
import type { ChannelKeyState } from "../../../lib/wire.ts";
import type { StatusTone } from "../../../ui/badges.tsx";

export const KEY_ON = 1;
const KEY_OFF = 2;

/** By its last characters; a short key has none to show, and goes by its place. */
export function markOf(t: Translate, { tail, index }: Pick<ChannelKeyState, "tail" | "index">): string {
  return tail === "" ? t("channel.keys.nth", { place: index + 1 }) : `••••${tail}`;
}

/** How buttons and questions call it. */
export function nameOf(t: Translate, key: Pick<ChannelKeyState, "tail" | "index" | "label">): string {
  return key.label === "" ? markOf(t, key) : `${key.label} (${markOf(t, key)})`;
}

/** "11-20 13:00" */
export function timeOf(seconds: number): string {
  return formatDateTime(seconds * 1000, timeZone.value).slice(5, 16);
}

type Rest = Pick<ChannelKeyState, "reason" | "detail">;

export function restReason(t: Translate, rest: Rest): string {
  return [t(`channel.rest.${rest.reason}`), upstreamMessage(rest.detail)].filter(Boolean).join(": ");
}

interface Said {
  tone: StatusTone;
  text: string;
  reason: string | undefined;
}

/** On, resting, off by itself or by hand: four different things. */
export function stateOf(t: Translate, key: ChannelKeyState): Said {
  if (key.status === KEY_ON) {
    return key.rests_until > 0
      ? {
          tone: "attention",
          text: t("channel.restsUntil", { time: timeOf(key.rests_until) }),
          reason: restReason(t, key),
        }
      : { tone: "ok", text: t("channel.keyActive"), reason: undefined };
  }
  const isByHand = key.status === KEY_OFF;
  const since = key.disabled_time > 0;
  return {
    tone: isByHand ? "off" : "broken",
    text: since
      ? t(isByHand ? "channel.keys.offSince" : "channel.keys.autoOffSince", {
          time: timeOf(key.disabled_time),
        })
      : t(isByHand ? "channel.keys.isOff" : "channel.keys.isAutoOff"),
    reason: key.disabled_reason === "" ? undefined : upstreamMessage(key.disabled_reason),
  };
}

/** Its caps in words, those that it has. */
export function capWords(
  t: Translate,
  caps: Pick<ChannelKeyState, "max_concurrency" | "rpm_limit" | "tpm_limit">,
): string[] {
  const words: [number, string][] = [
    [caps.max_concurrency, "channel.keys.capAtOnce"],
    [caps.rpm_limit, "channel.keys.capRpm"],
    [caps.tpm_limit, "channel.keys.capTpm"],
  ];
  return words.flatMap(([cap, text]) => (cap > 0 ? [t(text, { cap: formatNumber(cap) })] : []));
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
