// The row of the page table for the site's own state: what was found, as the words and tones that the view lays out.
// Refuses nothing: a figure that nobody has is left out, never shown as zero.
import { formatDateTime, formatDuration, formatNumber } from "../../islands/lib/format.ts";
import { NodeView } from "../../views/node.tsx";
import type { NodeCard, StatusFact, StatusTone, TroubledChannel } from "../../views/node.tsx";
import type { Translate } from "../../views/document.tsx";
import { backupAge } from "../core/backup/state.ts";
import { siteCondition } from "../core/site/condition.ts";
import type { NodeCondition, SiteCondition } from "../core/site/condition.ts";
import type { NodeFigures } from "../core/site/node-figures.ts";
import type { ChannelReading } from "../core/site/node-reading.ts";
import { ChannelStatus } from "../shared/enums.ts";
import { shortText } from "../shared/short-text.ts";
import type { Page } from "./page.ts";

const NODE_CHARACTERS = 8;
const MOST_TROUBLED = 20;
const SHORT = 60;
/** From here on a figure is amber, and red. */
const LATE_MS = [50, 100] as const;
const OLD_SECONDS = [5, 30] as const;
const SLOW_MS = [100, 500] as const;
const SKEW_SECONDS = [2, 30] as const;
const FREE_SHARE = [0.2, 0.1] as const;
/** Backups are made once a day. */
const BACKUP_SECONDS = [26 * 3600, 50 * 3600] as const;

interface NodeData {
  found: SiteCondition;
  nowMs: number;
}

function toneAbove(value: number, [amber, red]: readonly [number, number]): StatusTone {
  return value > red ? "error" : value > amber ? "warning" : "success";
}

function bytesText(bytes: number): string {
  const [size, unit] =
    bytes >= 1024 ** 3
      ? [bytes / 1024 ** 3, "GiB"]
      : bytes >= 1024 ** 2
        ? [bytes / 1024 ** 2, "MiB"]
        : [bytes / 1024, "KiB"];
  return `${size.toFixed(size < 10 ? 1 : 0)} ${unit}`;
}

const percentText = (share: number): string => `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`;

function nodeFacts(t: Translate, figures: NodeFigures, nowMs: number): StatusFact[] {
  const { requests, failed, waiting, oldestSeconds } = figures;
  const calls = t("status.callsText", { requests: formatNumber(requests), failed: formatNumber(failed) });
  const books =
    waiting === 0
      ? t("status.nothingWaits")
      : t("status.waitingText", { count: waiting, age: formatDuration(oldestSeconds * 1000) });
  const free = FREE_SHARE.filter((least) => figures.diskFreeShare < least).length;
  return [
    { label: t("status.version"), value: figures.version },
    { label: t("status.up"), value: formatDuration(nowMs - figures.startedAt * 1000) },
    { label: t("status.calls"), value: calls },
    { label: t("status.inFlight"), value: formatNumber(figures.inFlight) },
    {
      label: t("status.loop"),
      value: t("status.atMost", { value: formatDuration(figures.loopMs) }),
      tone: toneAbove(figures.loopMs, LATE_MS),
    },
    { label: t("status.processor"), value: percentText(figures.processorShare) },
    { label: t("status.memory"), value: bytesText(figures.residentBytes) },
    { label: t("status.settlements"), value: books, tone: toneAbove(oldestSeconds, OLD_SECONDS) },
    { label: t("status.journal"), value: bytesText(figures.journalBytes) },
    ...(figures.durability === ""
      ? []
      : [{ label: t("status.durability"), value: t(`status.durability_${figures.durability}`) }]),
    ...(figures.valkey === ""
      ? []
      : [
          {
            label: t("status.valkey"),
            value: t(`status.valkey_${figures.valkey}`),
            tone: figures.valkey === "up" ? ("success" as const) : ("warning" as const),
          },
        ]),
    {
      label: t("status.disk"),
      value: t("status.freeText", {
        size: bytesText(figures.diskFreeBytes),
        share: percentText(figures.diskFreeShare),
      }),
      tone: (["success", "warning", "error"] as const)[free] ?? "error",
    },
  ];
}

/** What a node that is gone told last is nothing to judge. */
const toneless = ({ label, value }: StatusFact): StatusFact => ({ label, value });

function nodeCard(t: Translate, node: NodeCondition, nowMs: number, zone: string): NodeCard {
  const { id, isHere, isLive, isLost, seenAt, figures } = node;
  const seen = formatDateTime(seenAt * 1000, zone);
  return {
    name: id.slice(0, NODE_CHARACTERS),
    state: isHere
      ? t("status.here")
      : isLive
        ? t("status.live")
        : t(isLost ? "status.lost" : "status.silent", { at: seen }),
    tone: isLive ? "success" : isLost ? "error" : "off",
    facts: figures ? nodeFacts(t, figures, nowMs).map((fact) => (isLive ? fact : toneless(fact))) : [],
    silent: figures ? "" : t("status.tellsNothing"),
  };
}

function databaseFacts(t: Translate, { database }: SiteCondition): StatusFact[] {
  const { kind, answers, ms, skewSeconds } = database;
  const name = kind === "postgres" ? "PostgreSQL" : "SQLite";
  return [
    {
      label: t("status.database"),
      value: answers
        ? t("status.answersIn", { name, time: formatDuration(ms) })
        : t("status.databaseAway", { name }),
      tone: answers ? toneAbove(ms, SLOW_MS) : "error",
    },
    ...(skewSeconds === undefined
      ? []
      : [
          {
            label: t("status.clock"),
            // Adding zero makes a negative zero a plain one.
            value: t("status.clockText", { seconds: (Math.round(skewSeconds * 10) / 10 + 0).toFixed(1) }),
            tone: toneAbove(Math.abs(skewSeconds), SKEW_SECONDS),
          },
        ]),
  ];
}

function backupFact(t: Translate, { backup }: SiteCondition, nowMs: number, zone: string): StatusFact {
  const label = t("status.backup");
  if (!backup) return { label, value: t("status.unknown"), tone: "off" };
  const age = backupAge(backup, Math.floor(nowMs / 1000));
  if (backup.failedAt > 0)
    return {
      label,
      value: t("status.backupFailed", { at: formatDateTime(backup.failedAt * 1000, zone) }),
      tone: "error",
    };
  if (age === undefined) return { label, value: t("status.never"), tone: "warning" };
  return {
    label,
    value: t("status.backupText", {
      at: formatDateTime(backup.lastAt * 1000, zone),
      size: bytesText(backup.bytes),
    }),
    tone: toneAbove(age, BACKUP_SECONDS),
  };
}

function siteFacts(t: Translate, found: SiteCondition, nowMs: number, zone: string): StatusFact[] {
  const { differences, letters } = found;
  return [
    ...databaseFacts(t, found),
    {
      label: t("status.audit"),
      value: differences === 0 ? t("status.balances") : t("status.differences", { count: differences }),
      tone: differences === 0 ? "success" : "error",
    },
    backupFact(t, found, nowMs, zone),
    {
      label: t("status.letters"),
      value:
        letters === undefined
          ? t("status.unknown")
          : letters === 0
            ? t("status.noLetters")
            : t("status.lettersWait", { count: letters }),
      ...(letters === undefined ? { tone: "off" as const } : {}),
    },
  ];
}

const isTroubled = ({ isUp, keyRests, openCells }: ChannelReading): boolean =>
  !isUp || keyRests > 0 || openCells > 0;

function troubledChannel(
  t: Translate,
  { channel, isUp, keyRests, openCells }: ChannelReading,
): TroubledChannel {
  const isOff = channel.status === ChannelStatus.autoDisabled;
  const details = [
    ...(openCells > 0 ? [t("status.openCells", { count: openCells })] : []),
    ...(keyRests > 0 ? [t("status.keyRests", { count: keyRests })] : []),
  ];
  return {
    href: `/channel?edit=${channel.id}`,
    name: shortText(channel.name, SHORT),
    state: t(isOff ? "status.channelOff" : isUp ? "status.channelPartly" : "status.channelRests"),
    tone: isOff ? "error" : isUp ? "warning" : "error",
    detail: details.join(", "),
  };
}

function channelPart(t: Translate, channels: readonly ChannelReading[]) {
  const troubled = channels.filter(isTroubled).toSorted((a, b) => Number(a.isUp) - Number(b.isUp));
  const up = channels.filter(({ isUp }) => isUp).length;
  const left = troubled.length - MOST_TROUBLED;
  const tone: StatusTone =
    channels.length === 0 ? "off" : up === 0 ? "error" : troubled.length > 0 ? "warning" : "success";
  return {
    summary: t("status.channelsUp", { up: formatNumber(up), all: formatNumber(channels.length) }),
    tone,
    troubled: troubled.slice(0, MOST_TROUBLED).map((each) => troubledChannel(t, each)),
    more: left > 0 ? t("status.moreChannels", { count: left }) : "",
  };
}

export const nodePage: Page = {
  path: "/node",
  shell: "console",
  access: "root",
  title: "status.title",
  current: "nodes",
  loader: async ({ deps }): Promise<NodeData> => ({
    found: await siteCondition(deps),
    nowMs: deps.clock.nowMs(),
  }),
  view({ t, data, title, context: { timeZone } }) {
    const { found, nowMs } = data as NodeData;
    return NodeView({
      t,
      title,
      at: t("status.at", { at: formatDateTime(nowMs, timeZone) }),
      nodes: found.nodes.map((node) => nodeCard(t, node, nowMs, timeZone)),
      site: siteFacts(t, found, nowMs, timeZone),
      channels: channelPart(t, found.channels),
    });
  },
};
