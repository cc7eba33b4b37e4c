// Tests and balance reads over channels: one by an administrator's click, all of them as a run with progress, and what
// the results do to a channel. Refuses a second run of a kind while one is under way.
import { asc, desc } from "drizzle-orm";
import { ChannelStatus } from "../../shared/enums.ts";
import { Failure, refuse } from "../../shared/failures.ts";
import type { Channel } from "./rows.ts";
import { disableChannel, recordBalance, recordTest, reviveChannel } from "./state.ts";
import type { StateDeps } from "./state.ts";
import { notifyRoot } from "../users/notify.ts";
import { CHANNELS_TESTED_NOTICE } from "../users/notice-texts.ts";
import { CHANNEL_WITHOUT_BALANCE, channelTooSlow } from "../logs/sentences.ts";

export interface ProbeResult {
  ms: number;
  /** Undefined: the channel answered. */
  failure?: Failure;
  /** The failure means that key or account no longer work. */
  isFatal: boolean;
}

/** What the relay can ask of one channel; implemented by relay/probe.ts. */
export interface ChannelProbe {
  /** Calls the model (the channel's test model, else its first) once; charges nobody, never throws. */
  test(channel: Channel, model?: string): Promise<ProbeResult>;
  /** Throws a Failure where the type has no balance or the provider does not answer. */
  balance(channel: Channel): Promise<number>;
  models(channel: Channel): Promise<string[]>;
  /** The models behind typed credentials; `isTrusted` opens private networks. */
  typedModels(typed: { baseUrl: string; type: number; key: string }, isTrusted: boolean): Promise<string[]>;
}

interface RunProgress {
  isRunning: boolean;
  done: number;
  total: number;
  failed: number;
  /** Unix seconds; 0 = never. */
  startedAt: number;
}

export interface ChannelWatch {
  test(channel: Channel, model?: string): Promise<ProbeResult>;
  balance(channel: Channel): Promise<number>;
  /** Starts testing all; throws `channel_test_running`. Resolves `finished` when the last one is through. */
  testAll(isAnnounced: boolean): Promise<{ finished: Promise<void> }>;
  /** Reads the balance of every enabled channel whose type has one; waits for all. */
  updateBalances(): Promise<void>;
  progress(): RunProgress;
  /** No further channel is begun; resolves when those under way are through. */
  stop(): Promise<void>;
}

const AT_ONCE = 4;

export function createChannelWatch(deps: StateDeps, probe: ChannelProbe): ChannelWatch {
  let isStopped = false;
  let progress: RunProgress = { isRunning: false, done: 0, total: 0, failed: 0, startedAt: 0 };
  let running: Promise<void> = Promise.resolve();
  let updating: Promise<void> | undefined;

  /** Runs over all with bounded concurrency; a throwing channel does not stop the others. */
  async function overAll(
    channels: readonly Channel[],
    work: (channel: Channel) => Promise<void>,
  ): Promise<void> {
    const queue = [...channels];
    const worker = async (): Promise<void> => {
      for (let channel = queue.shift(); channel && !isStopped; channel = queue.shift()) {
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
    try {
      const channels = await allChannels(deps);
      progress.total = channels.length;
      await overAll(channels, async (channel) => {
        const result = await test(channel);
        progress.done++;
        if (result.failure) progress.failed++;
        await judgeTest(deps, channel, result);
      });
    } finally {
      progress = { ...progress, isRunning: false };
    }
    if (isAnnounced && !isStopped) {
      await notifyRoot(deps, CHANNELS_TESTED_NOTICE);
    }
  }

  async function updateAll(): Promise<void> {
    const enabled = (await allChannels(deps)).filter(({ status }) => status === ChannelStatus.enabled);
    await overAll(enabled, async (channel) => {
      let left: number;
      try {
        left = await balance(channel);
      } catch (error) {
        if (error instanceof Failure && error.code === "balance_unsupported") return;
        throw error;
      }
      if (left <= 0 && channel.autoBan) await disableChannel(deps, channel, CHANNEL_WITHOUT_BALANCE);
    });
  }

  return {
    test,
    balance,
    async testAll(isAnnounced) {
      if (progress.isRunning) throw refuse("channel_test_running");
      const startedAt = Math.floor(deps.clock.nowMs() / 1000);
      progress = { isRunning: true, done: 0, total: 0, failed: 0, startedAt };
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
    progress: () => ({ ...progress }),
    async stop() {
      isStopped = true;
      await Promise.allSettled([running, updating]);
    },
  };
}

async function allChannels(deps: StateDeps): Promise<Channel[]> {
  const { channels } = deps.db.t;
  const rows = await deps.db.orm
    .select({ id: channels.id })
    .from(channels)
    .orderBy(desc(channels.priority), asc(channels.id));
  return rows.flatMap(({ id }) => deps.routing.channel(id) ?? []);
}

/** What the result of a test does to a channel: disabled when it is broken or slow, revived when it works again. */
async function judgeTest(deps: StateDeps, channel: Channel, result: ProbeResult): Promise<void> {
  const { options } = deps;
  const { failure, isFatal, ms } = result;
  if (channel.status === ChannelStatus.autoDisabled) {
    if (!failure && options.get("AutomaticEnableChannelEnabled")) await reviveChannel(deps, channel);
    return;
  }
  const mayDisable = channel.status === ChannelStatus.enabled && channel.autoBan;
  if (!mayDisable || !options.get("AutomaticDisableChannelEnabled")) return;
  if (failure && isFatal) {
    await disableChannel(deps, channel, failure.upstreamText || (failure.internal ?? failure.code));
    return;
  }
  const limit = options.get("ChannelDisableThreshold");
  const seconds = ms / 1000;
  if (limit > 0 && seconds > limit) await disableChannel(deps, channel, channelTooSlow(seconds, limit));
}
