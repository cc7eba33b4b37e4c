// Which channels' models are tried out between calls: those that rest, and those that nobody has called for long while the model
// itself is asked for. Refuses to spend what the operator did not allow: each probe is paid from the day's budget before it leaves.
import { and, like, ne, sql } from "drizzle-orm";
import { startOfDay } from "../../shared/local-time.ts";
import { ChannelStatus, KeyStatus } from "../../shared/enums.ts";
import { emptyUsage } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";
import type { Deps } from "../deps.ts";
import { costOf } from "../prices/prices.ts";
import { upstreamModel } from "./rows.ts";
import type { Channel } from "./rows.ts";

/** One probe that is about to leave. */
export interface WarmProbe {
  channel: Channel;
  /** Place in the channel's list, from 0. */
  keyIndex: number;
  /** It is about the model with this key alone: the channel's other keys serve it. */
  isOfKey: boolean;
  /** As requested. */
  model: string;
  /** The most that it uses: its prompt, and an answer up to its limit. */
  usage: Usage;
  /** Units at ratio 1 that it took from the budget. */
  quota: number;
  /** On the steady clock. */
  beganMs: number;
}

/** Implemented by relay/probe.ts. */
export interface WarmProber {
  /** Tokens that the answer of a probe is limited to; undefined: the channel has no streamed conversation with the model. */
  warmLimit(channel: Channel, model: string): number | undefined;
  /** Asks, hangs up after the first content, and tells the health of key and channel. Never throws. */
  warm(probe: WarmProbe): Promise<void>;
}

type ProbeDeps = Pick<
  Deps,
  "db" | "clock" | "options" | "routing" | "picker" | "keyring" | "caps" | "prices" | "logger"
>;

export interface WarmProbes {
  /** One round; resolves when its probes are through. */
  run: () => Promise<void>;
}

/** Without a live call for so long a channel's model is idle; a model has traffic when it was asked for within this time. */
const IDLE_MS = 600_000;
/** Between two probes of one cell. */
const APART_MS = 60_000;
const AT_ONCE = 4;
/** In one round: the next one is a minute later. */
const MOST_PROBES = 20;
/** What a greeting comes to at most, with all that dialects put around it. */
const PROMPT_TOKENS = 16;
const MARK = "probe_quota:";

interface Cell {
  channel: Channel;
  model: string;
  /** The key that the model failed with alone; absent: it is about the channel, with any of its keys. */
  keyIndex?: number;
}

export function createWarmProbes(deps: ProbeDeps, prober: WarmProber): WarmProbes {
  /** By channel and the model's name at the upstream: when it was last probed (steady clock). */
  const probed = new Map<string, number>();

  async function probe(cell: Cell): Promise<boolean> {
    const { channel, model } = cell;
    const { picker, keyring, clock } = deps;
    const nowMs = clock.monotonicMs();
    const isOfKey = cell.keyIndex !== undefined;
    const keyIndex = keyFor(deps, cell, nowMs);
    const limit = keyIndex === -1 ? undefined : prober.warmLimit(channel, model);
    if (limit === undefined) return true;
    const usage = mostUsage(channel, limit);
    const quota = quotaOf(deps, model, usage);
    if (!(await take(deps, quota))) return false;
    probed.set(keyOf(cell), nowMs);
    // Where its rest is over no live call has to find out meanwhile.
    const beganMs = clock.monotonicMs();
    if (isOfKey) keyring.take(channel, keyIndex, model, beganMs);
    else picker.take(channel, model, beganMs);
    await prober.warm({ channel, keyIndex, isOfKey, model, usage, quota, beganMs });
    return true;
  }

  function isDue(cell: Cell, apartMs: number, nowMs: number): boolean {
    const lastMs = probed.get(keyOf(cell));
    return lastMs === undefined || nowMs - lastMs >= apartMs;
  }

  return {
    async run() {
      if (deps.options.get("relay.probe_max_quota_per_day") <= 0) return;
      const nowMs = deps.clock.monotonicMs();
      for (const [key, atMs] of probed) if (nowMs - atMs > IDLE_MS) probed.delete(key);
      const open = [...openCells(deps, nowMs), ...keyCells(deps, nowMs)].filter((cell) =>
        isDue(cell, APART_MS, nowMs),
      );
      // A probe warms what is idle as a call does; after one that failed the next ones find out soon.
      const idle = idleCells(deps, nowMs).filter((cell) =>
        isDue(cell, hasFailed(deps, cell, nowMs) ? APART_MS : IDLE_MS, nowMs),
      );
      const due = new Map([...open, ...idle].map((cell) => [keyOf(cell), cell]));
      const queue = [...due.values()].slice(0, MOST_PROBES);
      const worker = async (): Promise<void> => {
        for (let cell = queue.shift(); cell; cell = queue.shift())
          // The budget is used up.
          if (!(await probe(cell))) queue.length = 0;
      };
      await Promise.all(Array.from({ length: Math.min(AT_ONCE, queue.length) }, worker));
    },
  };
}

function keyOf({ channel, model, keyIndex }: Cell): string {
  const key = keyIndex === undefined ? "" : `#${channel.keyRows[keyIndex]?.id ?? 0}`;
  return `${channel.id}${key} ${upstreamModel(channel, model)}`;
}

/** What rests, but for what an upstream asked to be left alone with and what a call is trying out now. */
function openCells({ routing, picker }: ProbeDeps, nowMs: number): Cell[] {
  if (picker.isCalm(nowMs)) return [];
  const cells: Cell[] = [];
  for (const channel of routing.channels()) {
    if (channel.status !== ChannelStatus.enabled) continue;
    for (const { model: name, state } of picker.cells(channel, nowMs)) {
      if (name === undefined || state === "closed") continue;
      const model = channel.models.find((each) => upstreamModel(channel, each) === name);
      if (model === undefined || picker.askedUntil(channel, model, nowMs) > 0) continue;
      if (state === "open" || picker.isUsable(channel, model, nowMs)) cells.push({ channel, model });
    }
  }
  return cells;
}

/** What fails with one key of several, each for itself; but for what its account was asked to be left alone with. */
function keyCells({ routing, picker, keyring }: ProbeDeps, nowMs: number): Cell[] {
  if (keyring.isCalm(nowMs)) return [];
  const cells: Cell[] = [];
  for (const channel of routing.channels()) {
    if (channel.status !== ChannelStatus.enabled || channel.keys.length < 2) continue;
    for (let keyIndex = 0; keyIndex < channel.keys.length; keyIndex++)
      for (const name of keyring.untried(channel, keyIndex, nowMs)) {
        const model = channel.models.find((each) => upstreamModel(channel, each) === name);
        if (model !== undefined && picker.askedUntil(channel, model, nowMs) === 0)
          cells.push({ channel, model, keyIndex });
      }
  }
  return cells;
}

/** What nobody has called for long, of models that are asked for. */
function idleCells({ routing, picker }: ProbeDeps, nowMs: number): Cell[] {
  const { traffic } = picker;
  const cells: Cell[] = [];
  const groups = routing.groups();
  for (const [model, { firstMs, lastMs }] of traffic.models()) {
    if (nowMs - lastMs > IDLE_MS) continue;
    const tiers = groups.flatMap((group) => routing.tiers(group, model));
    const channels = new Set(tiers.flatMap(({ entries }) => entries.map(({ channel }) => channel)));
    for (const channel of channels) {
      const calledMs = Math.max(traffic.cell(channel, model)?.lastMs ?? 0, firstMs);
      if (nowMs - calledMs <= IDLE_MS || picker.askedUntil(channel, model, nowMs) > 0) continue;
      cells.push({ channel, model });
    }
  }
  return cells;
}

/** Whether the last that was heard of it was a failure, too few of them to rest. */
function hasFailed({ picker }: ProbeDeps, { channel, model }: Cell, nowMs: number): boolean {
  if (picker.isCalm(nowMs)) return false;
  const name = upstreamModel(channel, model);
  return picker.cells(channel, nowMs).some((cell) => cell.model === name && cell.failures > 0);
}

/** The key that it is about, else the first that does not rest; on, and with room. -1: none is, and nobody is asked. */
function keyFor({ keyring, caps }: ProbeDeps, { channel, model, keyIndex }: Cell, nowMs: number): number {
  const isFit = (index: number): boolean => {
    const reason = keyring.restOf(channel, index, model, nowMs)?.reason;
    return (
      channel.keyRows[index]?.status === KeyStatus.on &&
      (reason === undefined || (keyIndex !== undefined && reason === "down")) &&
      (!channel.isCapped || caps.hasRoom(channel, index, PROMPT_TOKENS, nowMs))
    );
  };
  if (keyIndex !== undefined) return isFit(keyIndex) ? keyIndex : -1;
  return channel.keys.findIndex((_, index) => isFit(index));
}

function mostUsage({ setting }: Channel, limit: number): Usage {
  const usage = emptyUsage();
  const prompt = setting.system_prompt;
  // A token has at least one character.
  usage.input.fresh = PROMPT_TOKENS + (typeof prompt === "string" ? prompt.length : 0);
  usage.output.text = limit;
  return usage;
}

/** Units at ratio 1; at least one, so that what is free is not asked without end either. */
function quotaOf({ prices }: ProbeDeps, model: string, usage: Usage): number {
  const price =
    prices.callPrice(model, "default", "default") ?? prices.missingCallPrice(model, "default", "default");
  return Math.max(1, costOf({ ...price, groupRatio: 1 }, usage).quota);
}

/** Takes a probe's price from the budget of the site's day, which all nodes share; false: not enough is left. */
async function take({ db, clock, options }: ProbeDeps, quota: number): Promise<boolean> {
  const most = options.get("relay.probe_max_quota_per_day");
  if (quota > most) return false;
  const { marks } = db.t;
  const key = `${MARK}${startOfDay(clock.nowMs(), options.get("site.time_zone"))}`;
  const [taken] = await db.orm
    .insert(marks)
    .values({ key, value: quota })
    .onConflictDoUpdate({
      target: marks.key,
      set: { value: sql`${marks.value} + ${quota}` },
      setWhere: sql`${marks.value} <= ${most - quota}`,
    })
    .returning({ value: marks.value });
  if (!taken) return false;
  // The first of the day takes the days before along.
  if (taken.value === quota)
    await db.orm.delete(marks).where(and(like(marks.key, `${MARK}%`), ne(marks.key, key)));
  return true;
}
