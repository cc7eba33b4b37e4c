// Outgoing proxies of channels: one that is not reached for several channels in a row rests for all that go through it, and is
// tried by one call. Refuses to blame a proxy for what a single channel meets: that may be its upstream.
import { abandoned, createBreaker, failed, isForgotten, isNewer, isReady, take } from "./breaker.ts";
import type { Breaker } from "./breaker.ts";
import type { Channel } from "./rows.ts";
import { atMostEachMinute } from "./tidying.ts";

/** Methods do nothing for channels without a proxy. */
export interface ProxyHealth {
  isCalm(nowMs: number): boolean;
  isUsable(channel: Channel, nowMs: number): boolean;
  take(channel: Channel, nowMs: number): void;
  /** On the steady clock; 0 = it does not rest. */
  restsUntil(channel: Channel): number;
  /** A call that began then (steady clock) was answered through it. */
  answered(channel: Channel, beganMs: number): void;
  /** Nobody was reached through it by a call that began then; steady clock. */
  unreached(channel: Channel, how: { nowMs: number; beganMs: number; detail: string | undefined }): void;
  abandoned(channel: Channel, beganMs: number): void;
  /** An administrator lets calls through it again. */
  close(channel: Channel): void;
  /** What is known of the channel's proxy; undefined: no trouble. */
  breakerOf(channel: Channel): Breaker | undefined;
}

interface Proxy {
  readonly breaker: Breaker;
  /** Those that were not reached through it since something answered. */
  readonly channels: Set<number>;
}

/** One alone says nothing of the proxy. */
const LEAST_CHANNELS = 2;
/** A failure short of the last one that opens a breaker. */
const MOST_OF_ONE = 2;

function proxyOf({ setting: { proxy } }: Channel): string {
  return typeof proxy === "string" ? proxy : "";
}

export function createProxyHealth(): ProxyHealth {
  const proxies = new Map<string, Proxy>();
  const known = (channel: Channel): Proxy | undefined =>
    proxies.size === 0 ? undefined : proxies.get(proxyOf(channel));
  function sweep(nowMs: number): void {
    for (const [each, { breaker }] of proxies) if (isForgotten(breaker, nowMs)) proxies.delete(each);
  }
  const tidy = atMostEachMinute(sweep);
  return {
    isCalm(nowMs) {
      if (proxies.size > 0) tidy(nowMs);
      return proxies.size === 0;
    },
    isUsable(channel, nowMs) {
      const proxy = known(channel);
      return !proxy || isReady(proxy.breaker, nowMs);
    },
    take(channel, nowMs) {
      const proxy = known(channel);
      if (proxy) take(proxy.breaker, nowMs);
    },
    restsUntil: (channel) => known(channel)?.breaker.openUntilMs ?? 0,
    answered(channel, beganMs) {
      const proxy = known(channel);
      if (proxy && !isNewer(proxy.breaker, beganMs)) proxies.delete(proxyOf(channel));
    },
    unreached(channel, { nowMs, beganMs, detail }) {
      const address = proxyOf(channel);
      if (address === "") return;
      sweep(nowMs);
      let proxy = proxies.get(address);
      if (!proxy) proxies.set(address, (proxy = { breaker: createBreaker(), channels: new Set() }));
      const { breaker, channels } = proxy;
      channels.add(channel.id);
      if (channels.size >= LEAST_CHANNELS) failed(breaker, "down", nowMs, { detail, beganMs });
      else {
        breaker.failures = Math.min(breaker.failures + 1, MOST_OF_ONE);
        breaker.failedAtMs = nowMs;
      }
    },
    abandoned(channel, beganMs) {
      const proxy = known(channel);
      if (proxy) abandoned(proxy.breaker, beganMs);
    },
    close: (channel) => void proxies.delete(proxyOf(channel)),
    breakerOf: (channel) => known(channel)?.breaker,
  };
}
