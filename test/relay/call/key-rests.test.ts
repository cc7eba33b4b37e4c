// How long a key rests after what its provider said, whose rest it is, and which keys move when one drops out. Without a clock.
import { expect, test } from "bun:test";
import { createCaps } from "../../../src/core/channels/caps.ts";
import { createKeyring } from "../../../src/core/channels/keyring.ts";
import type { Keyring } from "../../../src/core/channels/keyring.ts";
import type { Channel } from "../../../src/core/channels/rows.ts";
import { AttemptFailure } from "../../../src/relay/call/attempt.ts";
import { restKey } from "../../../src/relay/call/findings.ts";
import { Failure } from "../../../src/shared/failures.ts";
import type { FailureKind } from "../../../src/shared/failures.ts";

const HOUR_MS = 3_600_000;

function channelOf(id: number, keys: readonly string[], fields: Partial<Channel> = {}): Channel {
  const origin = fields.baseUrl ?? "https://one.example";
  return {
    id,
    keys,
    keyRows: keys.map((key, at) => ({ id: 10 * id + at, hash: key, account: `${key} ${origin}`, status: 1 })),
    areAllOn: true,
    isCapped: false,
    keyMode: "polling",
    modelMapping: new Map(),
    ...fields,
  } as unknown as Channel;
}

function world() {
  let nowMs = 0;
  const clock = { monotonicMs: () => nowMs, nowMs: () => nowMs };
  const caps = createCaps({ place: () => ({ nodes: 1, rank: 0 }) }, clock);
  const keyring: Keyring = createKeyring(caps);
  /** The first key of the channel is refused; how long it rests, in seconds. */
  const rested = (channel: Channel, verdict: "limited" | "rejected", kind: FailureKind, seconds?: number) => {
    const details = seconds === undefined ? {} : { retryAfterSeconds: seconds };
    const failure = new Failure(kind, "upstream_down", details);
    restKey(
      { keyring, caps, clock },
      { channel, keyIndex: 0 },
      "m",
      new AttemptFailure(failure, verdict, undefined),
    );
    const rest = keyring.restOf(channel, 0, "m", nowMs);
    return ((rest?.restsUntilMs ?? nowMs) - nowMs) / 1000;
  };
  const pass = (ms: number) => (nowMs += ms);
  return { keyring, caps, rested, pass, now: () => nowMs };
}

test("429 without a word: half a minute, doubled to ten as long as nothing succeeds", () => {
  const { keyring, caps, rested, pass, now } = world();
  const channel = channelOf(1, ["a", "b"]);
  const rests: number[] = [];
  for (let i = 0; i < 7; i++) {
    const seconds = rested(channel, "limited", "upstream-limit");
    rests.push(seconds);
    pass(1000 * seconds);
  }
  expect(rests).toEqual([30, 60, 120, 240, 480, 600, 600]);
  expect(caps.useOf(channel.keyRows[0]?.id ?? 0).limited).toBe(7);
  keyring.wake(channel, 0, "m", now());
  expect(rested(channel, "limited", "upstream-limit")).toBe(30);
});

test.each<[string, "limited" | "rejected", FailureKind, number, number]>([
  ["patience that is asked for is given", "limited", "upstream-limit", 7, 7],
  ["ten minutes of it at most", "limited", "upstream-limit", 7200, 600],
  ["an account that is used up rests until it is not", "limited", "upstream-quota", 5 * 3600, 5 * 3600],
  ["for a day at most", "limited", "upstream-quota", 30 * 3600, 24 * 3600],
  ["a rejected key rests ten minutes at least", "rejected", "upstream-auth", 5, 600],
])("%s", (_, verdict, kind, asked, seconds) => {
  const { rested } = world();
  expect(rested(channelOf(1, ["a", "b"]), verdict, kind, asked)).toBe(seconds);
});

test("one key in two channels for one provider is one account: it rests in both; elsewhere it is another", () => {
  const { keyring, rested, now } = world();
  const first = channelOf(1, ["shared", "own"]);
  const second = channelOf(2, ["other", "shared"]);
  const lone = channelOf(3, ["shared"]);
  const elsewhere = channelOf(4, ["shared", "own"], { baseUrl: "https://two.example" });
  rested(first, "rejected", "upstream-auth");
  expect(keyring.restOf(second, 1, "m", now())?.reason).toBe("rejected");
  expect(keyring.fitness(lone, "m", now())).not.toBe("fit");
  expect(keyring.restOf(elsewhere, 0, "m", now())).toBeUndefined();
  // Whoever finds out that it works again wakes it for all.
  keyring.wake(second, 1, "m", now());
  expect([first, lone].map((channel) => keyring.fitness(channel, "m", now()))).toEqual(["fit", "fit"]);
});

test("by user: each stays with one key, all keys are used, and one that drops out moves only those that were its own", () => {
  const { keyring, rested, pass, now } = world();
  const channel = channelOf(1, ["a", "b", "c", "d"], { keyMode: "affinity" });
  const users = Array.from({ length: 200 }, (_, at) => `${at} m`);
  const keysOf = () => users.map((sticky) => keyring.next(channel, "m", now(), { sticky })?.key);
  const before = keysOf();
  expect(keysOf()).toEqual(before);
  expect(new Set(before)).toEqual(new Set(channel.keys));
  rested(channel, "rejected", "upstream-auth");
  const meanwhile = keysOf();
  expect(meanwhile).not.toContain("a");
  expect(meanwhile.filter((key, at) => before[at] !== "a" && key !== before[at])).toEqual([]);
  pass(HOUR_MS);
  expect(keysOf()).toEqual(before);
});
