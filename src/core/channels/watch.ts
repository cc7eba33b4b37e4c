// Tests and balance reads over channels: one by an administrator's click, all of them as a run with progress, and what
// the results do to a channel. Refuses a second run of a kind while one is under way, and to test what has no test.
import { asc, desc } from "drizzle-orm";
import { ChannelStatus } from "../../shared/enums.ts";
import { Failure, refuse } from "../../shared/failures.ts";
import type { Clock, Deps, UserAccount } from "../deps.ts";
import { probeOffKeys } from "./key-probes.ts";
import type { RouteQuestion, RouteReport } from "./route-report.ts";
import type { Channel } from "./rows.ts";
import { disableChannel, disableKey, recordBalance, recordTest, reviveChannel, reviveKey } from "./state.ts";
import type { StateDeps } from "./state.ts";
import { createUpstreamModels } from "./upstream-models.ts";
import type { UpstreamModelDeps, UpstreamModels } from "./upstream-models.ts";
import { createWarmProbes } from "./warm-probes.ts";
import type { WarmProber } from "./warm-probes.ts";
import { notifyRoot } from "../users/notify.ts";
import { CHANNELS_TESTED_NOTICE } from "../users/notice-texts.ts";
import { CHANNEL_WITHOUT_BALANCE, channelTooSlow } from "../logs/sentences.ts";

export interface ProbeResult {
  ms: number;
  /** Undefined: the channel answered. */
  failure?: Failure;
  /** The failure means that key or account no longer work. */
  isFatal: boolean;
  /** Of the channel's keys the one that answered, and those that were refused for good; from 0. */
  goodKey?: number;
  badKeys?: readonly number[];
}

/** A request that is tried on a channel's rules. */
export interface DryRunRequest {
  path: string;
  headers: Record<string, string>;
  /** JSON text. */
  body: string;
  /** Status of an attempt before; undefined: it is the first. */
  lastStatus: number | undefined;
}

/** What would be sent, and what made it so; the channel's key is not among it. */
export interface DryRun {
  url: string;
  headers: Record<string, string>;
  body: string;
  /** The model's name at the upstream. */
  model: string;
  dialect: string;
  is_converted: boolean;
  /** Rules that acted, by mode and path. */
  rules: string[];
  dropped: string[];
  /** Of the channel's own system prompt, estimated. */
  system_prompt_tokens: number;
  /** What is sent decides what is held and charged. */
  is_repriced: boolean;
}

/** What the free list of models says of a key; "unknown": there is no list, or it was not to be had. */
export type KeyListing = "listed" | "refused" | "unknown";

/** What the relay can ask of one channel; implemented by relay/probe.ts. */
export interface ChannelProbe extends WarmProber {
  /** Calls the model (the channel's test model, else its first) once; charges nobody, never throws. */
  test(channel: Channel, model?: string): Promise<ProbeResult>;
  /** The same with one key of the channel, whatever its state. */
  key(channel: Channel, index: number, model?: string): Promise<ProbeResult>;
  /** Asks for the list of models with one key of the channel, whatever its state: it costs nothing. Never throws. */
  listsModelsFor(channel: Channel, index: number): Promise<KeyListing>;
  /** Why the channel cannot be tested, by its type and the model that a test would call; undefined: it can. */
  untestable(channel: Channel): Failure | undefined;
  /** Throws a Failure where the type has no balance or the provider does not answer. */
  balance(channel: Channel): Promise<number>;
  models(channel: Channel): Promise<string[]>;
  /** What would leave if this request came; nobody is asked. Throws what the call would be refused with. */
  dryRun(user: UserAccount, channel: Channel, request: DryRunRequest): Promise<DryRun>;
  /** Which channel and key would serve such a call now; nobody is asked. */
  route(question: RouteQuestion): Promise<RouteReport>;
  /** The models behind typed credentials; `isTrusted` opens private networks. */
  typedModels(typed: { baseUrl: string; type: number; key: string }, isTrusted: boolean): Promise<string[]>;
}

/** A channel that a run left out. */
interface SkippedChannel {
  id: number;
  name: string;
  reason: Failure;
}

export interface RunProgress {
  isRunning: boolean;
  /** Somebody ended it: what was under way is finished, nothing more is begun. */
  isCancelled: boolean;
  done: number;
  total: number;
  failed: number;
  /** How many were left out, beside the total. */
  skipped: number;
  /** The first of them. */
  skips: readonly SkippedChannel[];
  /** Unix seconds; 0 = never. */
  startedAt: number;
  /** How long it runs, or ran. */
  elapsedMs: number;
}

/** Runs over all channels. */
type RunKind = "tests" | "balances";

/** One kind of run: what is told of it while it lasts and afterwards. */
function createRun(clock: Clock) {
  let startedMs = 0;
  const state: RunProgress = {
    isRunning: false,
    isCancelled: false,
    done: 0,
    total: 0,
    failed: 0,
    skipped: 0,
    skips: [],
    startedAt: 0,
    elapsedMs: 0,
  };
  return {
    state,
    begin() {
      startedMs = clock.monotonicMs();
      const startedAt = Math.floor(clock.nowMs() / 1000);
      const none = { done: 0, total: 0, failed: 0, skipped: 0, skips: [] };
      Object.assign(state, { isRunning: true, isCancelled: false, ...none, startedAt });
    },
    end() {
      state.elapsedMs = Math.round(clock.monotonicMs() - startedMs);
      state.isRunning = false;
    },
    cancel() {
      if (state.isRunning) state.isCancelled = true;
    },
    progress: (): RunProgress => ({
      ...state,
      elapsedMs: state.isRunning ? Math.round(clock.monotonicMs() - startedMs) : state.elapsedMs,
    }),
  };
}

export interface ChannelWatch {
  test(channel: Channel, model?: string): Promise<ProbeResult>;
  /** Tests one key; a good one that went off by itself is on again, a bad one goes off as after a call. */
  testKey(channel: Channel, index: number): Promise<ProbeResult>;
  /** Tries the keys that went off by themselves and whose time has come. */
  probeOffKeys(): Promise<void>;
  /** Tries out what rests, and what is idle while its model is asked for, within the day's budget. */
  warm(): Promise<void>;
  /** Why a test of several channels leaves this one out; undefined: it is tested. */
  untestable(channel: Channel): Failure | undefined;
  /** Upstreams' lists of models, and what they propose. */
  readonly upstreamModels: UpstreamModels;
  balance(channel: Channel): Promise<number>;
  /** Starts testing all but what cannot be tested and what is switched off by hand; throws `channel_test_running`. Resolves `finished` when the last one is through. */
  testAll(isAnnounced: boolean): Promise<{ finished: Promise<void> }>;
  /** Reads the balance of every enabled channel whose type has one; waits for all. */
  updateBalances(): Promise<void>;
  progress(kind: RunKind): RunProgress;
  /** No further channel is begun in the run of this kind; without one nothing happens. */
  cancel(kind: RunKind): void;
  /** No further channel is begun; resolves when those under way are through. */
  stop(): Promise<void>;
}

const AT_ONCE = 4;
/** So many are named; of more the number is told. */
const MOST_SKIPS_NAMED = 50;

type WatchDeps = StateDeps & UpstreamModelDeps & Pick<Deps, "picker" | "caps" | "prices">;

export function createChannelWatch(deps: WatchDeps, probe: ChannelProbe): ChannelWatch {
  let isStopped = false;
  const runs = { tests: createRun(deps.clock), balances: createRun(deps.clock) };
  let running: Promise<void> = Promise.resolve();
  let updating: Promise<void> | undefined;

  /** Runs over all with bounded concurrency; a throwing channel does not stop the others. */
  async function overAll(
    channels: readonly Channel[],
    run: RunProgress,
    work: (channel: Channel) => Promise<void>,
  ): Promise<void> {
    run.total = channels.length;
    const queue = [...channels];
    const worker = async (): Promise<void> => {
      for (let channel = queue.shift(); channel && !isStopped && !run.isCancelled; channel = queue.shift()) {
        try {
          await work(channel);
        } catch (error) {
          deps.logger.warn("channel check failed", { channel: channel.id, error: String(error) });
        }
      }
    };
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, queue.length) }, worker));
  }

  async function test(channel: Channel, model?: string): Promise<ProbeResult> {
    const result = await probe.test(channel, model);
    await recordTest(deps, channel.id, result.ms);
    return result;
  }

  async function balance(channel: Channel): Promise<number> {
    const left = await probe.balance(channel);
    await recordBalance(deps, channel.id, left);
    return left;
  }

  async function runTests(isAnnounced: boolean): Promise<void> {
    const run = runs.tests;
    const { state } = run;
    try {
      const { tested, skips } = sortOut(await allChannels(deps), probe);
      state.skipped = skips.length;
      state.skips = skips.slice(0, MOST_SKIPS_NAMED);
      await overAll(tested, state, async (channel) => {
        const result = await test(channel);
        state.done++;
        if (result.failure) state.failed++;
        await judgeTest(deps, channel, result);
      });
    } finally {
      run.end();
    }
    if (isAnnounced && !isStopped && !state.isCancelled) {
      await notifyRoot(deps, CHANNELS_TESTED_NOTICE);
    }
  }

  async function updateAll(): Promise<void> {
    const run = runs.balances;
    const { state } = run;
    run.begin();
    try {
      const enabled = (await allChannels(deps)).filter(({ status }) => status === ChannelStatus.enabled);
      await overAll(enabled, state, async (channel) => {
        const isRead = await readBalance(deps, channel, balance).catch((error: unknown) => {
          state.done++;
          state.failed++;
          throw error;
        });
        if (isRead) state.done++;
        else state.total--;
      });
    } finally {
      run.end();
    }
  }

  return {
    test,
    testKey: (channel, index) => testKey(deps, probe, channel, index),
    probeOffKeys: () => probeOffKeys(deps, probe),
    warm: createWarmProbes(deps, probe).run,
    untestable: (channel) => untestable(channel, probe),
    upstreamModels: createUpstreamModels(deps, probe),
    balance,
    async testAll(isAnnounced) {
      if (runs.tests.state.isRunning) throw refuse("channel_test_running");
      runs.tests.begin();
      running = runTests(isAnnounced);
      running.catch((error: unknown) =>
        deps.logger.error("channel test run failed", { error: String(error) }),
      );
      return Promise.resolve({ finished: running });
    },
    updateBalances() {
      updating ??= updateAll().finally(() => (updating = undefined));
      return updating;
    },
    progress: (kind) => runs[kind].progress(),
    cancel: (kind) => runs[kind].cancel(),
    async stop() {
      isStopped = true;
      await Promise.allSettled([running, updating]);
    },
  };
}

/** False where the type has no balance. */
async function readBalance(
  deps: StateDeps,
  channel: Channel,
  read: (channel: Channel) => Promise<number>,
): Promise<boolean> {
  let left: number;
  try {
    left = await read(channel);
  } catch (error) {
    if (error instanceof Failure && error.code === "balance_unsupported") return false;
    throw error;
  }
  if (left <= 0 && channel.autoBan) await disableChannel(deps, channel, CHANNEL_WITHOUT_BALANCE);
  return true;
}

async function allChannels(deps: StateDeps): Promise<Channel[]> {
  const { channels } = deps.db.t;
  const rows = await deps.db.orm
    .select({ id: channels.id })
    .from(channels)
    .orderBy(desc(channels.priority), asc(channels.id));
  return rows.flatMap(({ id }) => deps.routing.channel(id) ?? []);
}

/** By itself a test of a channel without models asks for a usual one; among many that says nothing of the channel. */
function untestable(channel: Channel, probe: ChannelProbe): Failure | undefined {
  return channel.models.length === 0 && channel.testModel === ""
    ? new Failure("client", "channel_without_models")
    : probe.untestable(channel);
}

/** Which channels a run tests, and which it leaves out. */
function sortOut(channels: readonly Channel[], probe: ChannelProbe) {
  const tested: Channel[] = [];
  const skips: SkippedChannel[] = [];
  for (const channel of channels) {
    // What somebody switched off is not called behind their back.
    const isOff = channel.status === ChannelStatus.disabled;
    const reason = isOff ? new Failure("client", "channel_switched_off") : untestable(channel, probe);
    if (reason) skips.push({ id: channel.id, name: channel.name, reason });
    else tested.push(channel);
  }
  return { tested, skips };
}

async function testKey(
  deps: StateDeps,
  probe: ChannelProbe,
  channel: Channel,
  index: number,
): Promise<ProbeResult> {
  const result = await probe.key(channel, index);
  if (!result.failure) {
    if (!(await reviveKey(deps, channel, index, { served: true }))) deps.keyring.wakeWhole(channel, index);
  } else if (
    result.isFatal &&
    channel.autoBan &&
    deps.options.get("AutomaticDisableChannelEnabled") &&
    channel.status === ChannelStatus.enabled
  )
    await disableKey(deps, channel, index, reasonOf(result.failure));
  return result;
}

function reasonOf({ upstreamText, internal, code }: Failure): string {
  return upstreamText || (internal ?? code);
}

/** What the result of a test does to a channel: disabled when it is broken or slow, revived when it works again. */
async function judgeTest(deps: StateDeps, channel: Channel, result: ProbeResult): Promise<void> {
  const { options } = deps;
  const { failure, isFatal, ms } = result;
  if (channel.status === ChannelStatus.autoDisabled) {
    if (failure || !options.get("AutomaticEnableChannelEnabled")) return;
    // Off with its last key, or for a reason of its own.
    if (result.goodKey === undefined || !(await reviveKey(deps, channel, result.goodKey, { served: true })))
      await reviveChannel(deps, channel);
    return;
  }
  const mayDisable = channel.status === ChannelStatus.enabled && channel.autoBan;
  if (!mayDisable || !options.get("AutomaticDisableChannelEnabled")) return;
  const { badKeys = [] } = result;
  if (failure && isFatal) {
    const reason = reasonOf(failure);
    for (const index of badKeys) await disableKey(deps, channel, index, reason);
    if (badKeys.length === 0) await disableChannel(deps, channel, reason);
    return;
  }
  const limit = options.get("ChannelDisableThreshold");
  const seconds = ms / 1000;
  if (limit > 0 && seconds > limit) await disableChannel(deps, channel, channelTooSlow(seconds, limit));
}
