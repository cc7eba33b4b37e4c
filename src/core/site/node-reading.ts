// How this node is, looked up when somebody asks: database, clock, ledger, disk, channels. Whoever shows it adds what only the
// process knows. Refuses to wait for a database that does not answer.
import { readdir, stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import { sql } from "drizzle-orm";
import { rawQuery } from "../../db/database.ts";
import { ChannelStatus, KeyStatus } from "../../shared/enums.ts";
import { restingCells } from "../channels/cells.ts";
import { upstreamModel } from "../channels/rows.ts";
import type { Channel } from "../channels/rows.ts";
import type { Deps } from "../deps.ts";
import { within } from "../kit/deadline.ts";

const DATABASE_MS = 1500;
const JOURNAL_NAME = /^journal-\d+\.log$/;

type ChannelDeps = Pick<Deps, "routing" | "picker" | "keyring" | "clock">;

/** Of a channel that is on, or was switched off by itself. */
export interface ChannelReading {
  channel: Channel;
  /** Calls go there. */
  isUp: boolean;
  /** Keys that rest, for all models or for some. */
  keyRests: number;
  /** Models that nobody is sent to now. */
  openCells: number;
}

/** Channels that an administrator switched off are nobody's trouble. */
export function readChannels(deps: ChannelDeps): ChannelReading[] {
  return [...deps.routing.channels()]
    .filter(({ status }) => status === ChannelStatus.enabled || status === ChannelStatus.autoDisabled)
    .map((channel) => readChannel(deps, channel));
}

function readChannel(deps: ChannelDeps, channel: Channel): ChannelReading {
  const { picker, keyring, clock } = deps;
  const isOn = channel.status === ChannelStatus.enabled;
  const nowMs = clock.monotonicMs();
  if (picker.isCalm(nowMs) && keyring.isCalm(nowMs))
    return { channel, isUp: isOn, keyRests: 0, openCells: 0 };
  const keys = keyring
    .states(channel, nowMs)
    .filter(({ index }) => (channel.keyRows[index]?.status ?? KeyStatus.on) === KeyStatus.on);
  const awake = keys.filter(({ restsUntilMs }) => restsUntilMs <= nowMs);
  const restingKeys = keys.filter(
    ({ restsUntilMs, models }) =>
      restsUntilMs > nowMs || [...models.values()].some((each) => each.restsUntilMs > nowMs),
  );
  // A rest that is over ends with the first answer: until then nobody knows that it works, and an alarm must not be interrupted. What
  // was busy only is up as soon as it may be asked again: that nobody asks is no trouble.
  const resting = new Set(
    picker
      .cells(channel, nowMs)
      .filter(({ state, reason }) => state === "open" || (state === "half_open" && reason !== "limited"))
      .map(({ model }) => model),
  );
  const isServed = (model: string): boolean => {
    const name = upstreamModel(channel, model);
    return !resting.has(name) && awake.some(({ models }) => (models.get(name)?.restsUntilMs ?? 0) <= nowMs);
  };
  const servesOne = channel.models.length === 0 || channel.models.some(isServed);
  return {
    channel,
    isUp: isOn && !resting.has(undefined) && awake.length > 0 && servesOne,
    keyRests: restingKeys.length,
    openCells: restingCells(deps, channel),
  };
}

export interface DatabaseReading {
  answers: boolean;
  /** Of its answer. */
  ms: number;
  /** This machine's clock less the database's, in seconds; undefined where both are one. */
  skewSeconds: number | undefined;
}

export async function readDatabase({ db, clock }: Pick<Deps, "db" | "clock">): Promise<DatabaseReading> {
  const startedMs = clock.monotonicMs();
  try {
    const isShared = db.kind === "postgres";
    const asked = isShared
      ? Promise.resolve(rawQuery(db.orm, sql`select extract(epoch from clock_timestamp()) as now`))
      : db.ping().then(() => []);
    const [row] = await within(DATABASE_MS, asked);
    const ms = clock.monotonicMs() - startedMs;
    // It read its clock in the middle of the question.
    const skew = (clock.nowMs() - ms / 2) / 1000 - Number(row?.["now"]);
    return { answers: true, ms, skewSeconds: isShared ? Math.round(skew * 1000) / 1000 : undefined };
  } catch {
    return { answers: false, ms: clock.monotonicMs() - startedMs, skewSeconds: undefined };
  }
}

/** Bytes of the journal's files in a data directory. */
export async function journalBytes(dataDir: string): Promise<number> {
  const names = (await readdir(dataDir)).filter((name) => JOURNAL_NAME.test(name));
  const sizes = await Promise.all(
    names.map((name) =>
      stat(join(dataDir, name)).then(
        ({ size }) => size,
        // One that is no longer needed goes at any time.
        () => 0,
      ),
    ),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

export interface DiskReading {
  freeBytes: number;
  /** 0 to 1. */
  freeShare: number;
}

export async function readDisk(dataDir: string): Promise<DiskReading> {
  const { bsize, blocks, bavail } = await statfs(dataDir);
  return { freeBytes: bavail * bsize, freeShare: blocks > 0 ? bavail / blocks : 1 };
}

/** Differences that the last audit found; 0: none, or nobody has looked. The inbox knows it on every node. */
export function auditDifferences({ inbox }: Pick<Deps, "inbox">): number {
  return inbox.params("audit").reduce((most, { count }) => Math.max(most, Number(count ?? 1)), 0);
}
