// What becomes of a call whose candidates have all asked to be left alone (429 with Retry-After): it waits for the first of them
// where the operator's limit and the deadline allow it, else its client reads when to come again.
import type { Channel } from "../../core/channels/rows.ts";
import type { Deps } from "../../core/deps.ts";
import type { ChannelHealth } from "../../core/channels/health.ts";
import { Failure } from "../../shared/failures.ts";

/** The shortest wait: clocks may differ by a moment from timers. */
const LEAST_WAIT_MS = 5;

export interface Patience {
  /** The channel of a failed attempt asked for time: it is no candidate until that is over. */
  asked(channel: Channel): void;
  /** Those that asked during this call and were not waited for yet. */
  readonly waiting: ReadonlySet<number>;
  /**
   * Waits for the first of the candidates to be ready, and forgets who asked; false: nobody is waited for. `candidates`:
   * channels that could serve the call, those that asked during it among them.
   */
  wait(candidates: readonly Channel[], deadlineAtMs: number, signal: AbortSignal): Promise<boolean>;
  /** What the client reads when nobody was left to ask; undefined: nobody asked for time. */
  failure(candidates: readonly Channel[]): Failure | undefined;
}

/** Milliseconds until the channel may be asked for the model, as far as upstreams named times; Infinity: none did. */
function readyInMs(
  { keyring, clock }: Pick<Deps, "keyring" | "clock">,
  health: Pick<ChannelHealth, "askedUntil">,
  channel: Channel,
  model: string,
): number {
  const nowMs = clock.monotonicMs();
  const ofKeys =
    keyring.fitness(channel, model, nowMs) === "patient" ? keyring.fitAtMs(channel, model, nowMs) : 0;
  const untilMs = Math.max(health.askedUntil(channel, model, nowMs), ofKeys);
  return untilMs === 0 ? Infinity : untilMs - nowMs;
}

export function createPatience(
  deps: Pick<Deps, "keyring" | "clock" | "options" | "caps">,
  health: Pick<ChannelHealth, "askedUntil">,
  model: string,
): Patience {
  const asked = new Set<number>();
  let leftMs = deps.options.get("relay.retry_wait_seconds") * 1000;
  const soonestOf = (candidates: readonly Channel[]): number =>
    Math.min(...candidates.map((channel) => readyInMs(deps, health, channel, model)));
  return {
    asked: (channel) => void asked.add(channel.id),
    waiting: asked,
    async wait(candidates, deadlineAtMs, signal) {
      const waitMs = Math.max(LEAST_WAIT_MS, soonestOf(candidates));
      const startedMs = performance.now();
      if (waitMs > leftMs || startedMs + waitMs >= deadlineAtMs || signal.aborted) return false;
      await deps.caps.wait({ channelIds: [] }, waitMs, signal);
      leftMs -= performance.now() - startedMs;
      asked.clear();
      return !signal.aborted;
    },
    failure(candidates) {
      const soonestMs = soonestOf(candidates);
      return soonestMs === Infinity ? undefined : saturated(Math.max(1, Math.ceil(soonestMs / 1000)));
    },
  };
}

function saturated(retryAfterSeconds: number): Failure {
  return new Failure("upstream-limit", "upstream_saturated", {
    type: "upstream_error",
    wireCode: "upstream_saturated",
    retryAfterSeconds,
  });
}
