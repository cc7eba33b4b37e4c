// Tests and balance reads over channels: one by an administrator's click, all of them as a run with progress, and what
// the results do to a channel. Refuses a second run of a kind while one is under way.
import { asc, desc } from "drizzle-orm";
import { ChannelStatus } from "../../shared/enums.ts";
import { Failure, refuse } from "../../shared/failures.ts";
import type { Channel } from "./rows.ts";
import { disableChannel, recordBalance, recordTest, reviveChannel } from "./state.ts";
import type { StateDeps } from "./state.ts";
import { notifyRoot } from "../users/notify.ts";
import { CHANNEL_WITHOUT_BALANCE, CHANNELS_TESTED, channelTooSlow } from "../logs/sentences.ts";

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

export interface RunProgress {
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

  async function allChannels(): Promise<Channel[]> {
    const { channels } = deps.db.t;
    const rows = await deps.db.orm
      .select({ id: channels.id })
      .from(channels)
      .orderBy(desc(channels.priority), asc(channels.id));
    return rows.flatMap(({ id }) => deps.routing.channel(id) ?? []);
  }

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

  async function judged(channel: Channel): Promise<void> {
    const result = await test(channel);
    const { options } = deps;
    progress.done++;
    if (result.failure) progress.failed++;
    if (channel.status === ChannelStatus.enabled && channel.autoBan) {
      const limit = options.get("ChannelDisableThreshold");
      const seconds = result.ms / 1000;
      if (result.failure && result.isFatal && options.get("AutomaticDisableChannelEnabled"))
        await disableChannel(deps, channel, result.failure.internal ?? result.failure.code);
      else if (limit > 0 && seconds > limit && options.get("AutomaticDisableChannelEnabled"))
        await disableChannel(deps, channel, channelTooSlow(seconds, limit));
    } else if (
      channel.status === ChannelStatus.autoDisabled &&
      !result.failure &&
      options.get("AutomaticEnableChannelEnabled")
    ) {
      await reviveChannel(deps, channel);
    }
  }

  async function balance(channel: Channel): Promise<number> {
    const left = await probe.balance(channel);
    await recordBalance(deps, channel.id, left);
    return left;
  }

  async function updateAll(): Promise<void> {
    const enabled = (await allChannels()).filter((channel) => channel.status === ChannelStatus.enabled);
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
      const run = async (): Promise<void> => {
        try {
          const channels = await allChannels();
          progress.total = channels.length;
          await overAll(channels, judged);
        } finally {
          progress = { ...progress, isRunning: false };
        }
        if (isAnnounced && !isStopped)
          await notifyRoot(deps, {
            type: "channel_test",
            ...CHANNELS_TESTED,
          });
      };
      running = run();
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
