// What processes share through a Valkey: an answer in time or none, messages once each, a word in the log per outage.
import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";
import type { RedisClient } from "bun";
import { openValkey, valkeyScript } from "../../src/db/valkey.ts";
import type { Valkey, ValkeySettings } from "../../src/db/valkey.ts";
import { probeValkey } from "../../src/db/valkey-probe.ts";
import { createValkeyChannels } from "../../src/db/valkey-channels.ts";
import { parseValkeyUrl } from "../../src/db/valkey-url.ts";
import type { ValkeyAddress } from "../../src/db/valkey-url.ts";
import { startRedis } from "../support/redis.ts";
import type { TestRedis } from "../support/redis.ts";
import { startStretch } from "../support/stretch.ts";

const COUNT = valkeyScript('return redis.call("INCRBY", KEYS[1], ARGV[1])');
const OUTAGE_LIMIT_MS = 15_000;

let redis: TestRedis;
const opened: Valkey[] = [];

beforeAll(async () => {
  redis = await startRedis();
});
afterEach(async () => {
  for (const each of opened.splice(0)) each.close();
  redis.resume();
  await redis.start();
});
afterAll(() => redis.remove());

function addressOf(url: string): ValkeyAddress {
  const address = parseValkeyUrl(url);
  if (typeof address !== "object") throw new Error(address);
  return address;
}

async function open(
  url = redis.url,
  more: Partial<ValkeySettings> = {},
): Promise<{ valkey: Valkey; told: string[] }> {
  const told: string[] = [];
  const valkey = await openValkey({
    address: addressOf(url),
    prefix: "test:",
    monotonicMs: () => performance.now(),
    // What an answer says is waited for on any machine; how long is looked at under "paused".
    deadlineTicks: 500,
    logger: { info: (text) => told.push(text), warn: (text) => told.push(text) },
    ...more,
  });
  opened.push(valkey);
  return { valkey, told };
}

async function until(isSo: () => unknown): Promise<void> {
  const endMs = performance.now() + OUTAGE_LIMIT_MS;
  while (!(await isSo())) {
    if (performance.now() > endMs) throw new Error("it did not come to pass");
    await Bun.sleep(5);
  }
}

/** So many timers of a millisecond, one after another: on a busy machine they are late together with those of a question. */
async function ticks(count: number): Promise<void> {
  for (let tick = 0; tick < count; tick++) await new Promise((resolve) => setTimeout(resolve, 1));
}

test("a script answers, is loaded again where the server forgot it, and two sites do not meet", async () => {
  const { valkey } = await open();
  const other = await open(redis.url, { prefix: "other:" });
  expect(await valkey.run<number>(COUNT, ["n"], [2])).toBe(2);
  expect(await valkey.run<number>(COUNT, ["n"], [3])).toBe(5);
  expect(await other.valkey.run<number>(COUNT, ["n"], [1])).toBe(1);
  await redis.command("SCRIPT", "FLUSH");
  expect(await valkey.run<number>(COUNT, ["n"], [1])).toBe(6);
  await redis.flush();
  expect(await valkey.run<number>(COUNT, ["n"], [1])).toBe(1);
  const asked = Array.from({ length: 50 }, async () => valkey.run<number>(COUNT, ["n"], [1]));
  const answers = await Promise.all(asked);
  expect(answers).toEqual(Array.from({ length: 50 }, (_, at) => at + 2));
});

test("paused: no answer within 5 ms, then none is waited for; told once, and once when it is back", async () => {
  const { valkey, told } = await open(redis.url, { deadlineTicks: undefined });
  await valkey.run(COUNT, ["paused"], [1]);
  redis.pause();
  const late: unknown[] = [];
  // Five milliseconds, by the machine's own measure of one.
  const inTime = async (asked: Promise<unknown> | undefined) =>
    Promise.race([asked ?? Promise.resolve(undefined), ticks(5).then(() => "too late")]);
  expect(await inTime(valkey.run(COUNT, ["late"], [7], (answer) => late.push(answer)))).toBeUndefined();
  for (let turn = 0; turn < 2; turn++)
    expect(await inTime(valkey.run(COUNT, ["paused"], [1]))).toBeUndefined();
  expect(valkey.state()).toMatchObject({ isUp: false });
  expect(valkey.run(COUNT, ["paused"], [1])).toBeUndefined();
  expect(told).toEqual(["Valkey is away: each process limits by what it knows"]);
  redis.resume();
  await until(() => valkey.state().isUp);
  expect(late).toEqual([7]);
  expect(told).toHaveLength(2);
  expect(told[1]).toStartWith("Valkey is back");
  await until(async () => ((await valkey.run<number>(COUNT, ["late"], [1])) ?? 0) >= 8);
});

test("a process that was busy itself takes no answer for a missing one", async () => {
  // Longer than the ticks would be, were they time; and long enough for a server that has to wait for its turn.
  const { valkey } = await open(redis.url, { deadlineTicks: 50 });
  for (let turn = 1; turn <= 5; turn++) {
    const asked = valkey.run<number>(COUNT, ["busy"], [1]);
    const endMs = performance.now() + 120;
    while (performance.now() < endMs);
    expect(await asked).toBe(turn);
  }
  expect(valkey.state()).toEqual({ isUp: true, reason: "", missed: 0 });
});

test("killed and back: shared again within two seconds, by itself, also a silence that no call noticed", async () => {
  let skippedMs = 0;
  const { valkey, told } = await open(redis.url, { monotonicMs: () => performance.now() + skippedMs });
  await redis.stop();
  await until(() => !valkey.state().isUp);
  expect(valkey.run(COUNT, ["n"], [1])).toBeUndefined();
  await redis.start();
  const beganMs = performance.now();
  const stretch = startStretch();
  await until(() => valkey.state().isUp);
  // Its answers come beside other lanes of tests, and one that is late is asked for anew.
  expect(performance.now() - beganMs).toBeLessThan(2000 * (1 + stretch()));
  // What is asked first must not be overtaken while its script is loaded.
  expect(await redis.command("SCRIPT", "EXISTS", COUNT.sha)).toEqual([1]);
  // One that falls again within a second is the same outage.
  skippedMs += 1500;
  redis.pause();
  await until(() => !valkey.state().isUp);
  redis.resume();
  await until(() => valkey.state().isUp);
  expect(told.map((text) => text.slice(0, 14))).toEqual([
    "Valkey is away",
    "Valkey is back",
    "Valkey is away",
    "Valkey is back",
  ]);
});

test("messages come once each, to everybody, and whoever listens hears of a gap after each new connection", async () => {
  const one = await open();
  const two = await open();
  const heard: string[] = [];
  let gaps = 0;
  two.valkey.subscribe(
    "news",
    (text) => heard.push(text),
    () => gaps++,
  );
  await until(() => gaps === 1);
  one.valkey.publish("news", "first");
  two.valkey.publish("news", "own");
  await until(() => heard.length === 2);
  await redis.stop();
  await redis.start();
  await until(() => gaps === 2 && one.valkey.state().isUp);
  one.valkey.publish("news", "second");
  await until(() => heard.length >= 3);
  two.valkey.subscribe(
    "more",
    (text) => heard.push(`more ${text}`),
    () => gaps++,
  );
  await until(() => gaps === 3);
  one.valkey.publish("more", "third");
  await until(() => heard.length >= 4);
  expect(heard.toSorted()).toEqual(["first", "more third", "own", "second"]);
  // Its connection alone is cut: the commands' goes on.
  await redis.command("CLIENT", "KILL", "TYPE", "pubsub");
  await until(() => gaps === 5);
});

test("a start without the server goes on, and finds it later", async () => {
  await redis.stop();
  const { valkey, told } = await open();
  expect([valkey.state().isUp, told.length]).toEqual([false, 1]);
  await redis.start();
  await until(() => valkey.state().isUp);
  expect(await valkey.run<number>(COUNT, ["n"], [1])).toBe(1);
});

test("password, user and number are used; a wrong one is refused by a sentence without it", async () => {
  const closed = await startRedis({ password: "p@ss word/%" });
  try {
    const secret = encodeURIComponent("p@ss word/%");
    const at = `127.0.0.1:${closed.port}`;
    const { valkey } = await open(`valkey://default:${secret}@${at}/3`);
    expect(await valkey.run<number>(COUNT, ["n"], [1])).toBe(1);
    const refused = async (url: string) => String(await open(url).catch((error: unknown) => error));
    expect(await refused(`redis://:nonsense@${at}`)).toContain(
      `REDIS_URL names ${at}, which refuses: WRONGPASS`,
    );
    expect(await refused(`redis://who:nonsense@${at}`)).not.toContain("nonsense");
    expect(await refused(`redis://${at}`)).toContain("NOAUTH");
    expect(await refused(`redis://:${secret}@${at}/99`)).toContain("DB index is out of range");
    using web = Bun.serve({ port: 0, fetch: () => new Response("hello") });
    expect(await refused(`redis://127.0.0.1:${web.port}`)).toContain("does not speak the protocol");
  } finally {
    await closed.remove();
  }
});

test("a server that is away is told of once, also where it is silent first and closes then", async () => {
  let skippedMs = 0;
  const { valkey, told } = await open(redis.url, {
    deadlineTicks: 4,
    monotonicMs: () => performance.now() + skippedMs,
  });
  await until(() => valkey.state().isUp);
  skippedMs += 1500;
  redis.pause();
  for (let turn = 0; turn < 3; turn++) await valkey.run(COUNT, ["paused"], [1]);
  await until(() => !valkey.state().isUp);
  await redis.stop();
  await until(() => valkey.state().reason === "the connection closed");
  expect(told).toEqual(["Valkey is away: each process limits by what it knows"]);
});

test("a user without a password signs in with an empty one, as the client does", async () => {
  const own = await startRedis({ lines: ["user default off", "user who on nopass ~* &* +@all"] });
  try {
    const url = `redis://who@127.0.0.1:${own.port}`;
    expect(await probeValkey(addressOf(url))).toMatchObject({ kind: "answers" });
    const { valkey } = await open(url);
    expect(await valkey.run<number>(COUNT, ["n"], [1])).toBe(1);
  } finally {
    await own.remove();
  }
});

test("a server that is silent before the first channel is heard is given up, and connected to anew", async () => {
  let opened = 0;
  let closed = 0;
  const silent = { subscribe: () => new Promise(() => undefined), close: () => closed++ };
  const channels = createValkeyChannels({
    open: () => Promise.resolve((opened++, silent as unknown as RedisClient)),
    prefix: "test:",
    monotonicMs: () => performance.now(),
    limitMs: 1,
  });
  channels.subscribe(
    "news",
    () => undefined,
    () => undefined,
  );
  await until(() => closed === 1);
  await until(() => (channels.look(), opened === 2));
  channels.close();
});

test("a probe tells what the server does when it is full, and does not wait for one that is paused", async () => {
  expect(await probeValkey(addressOf(redis.url))).toMatchObject({
    kind: "answers",
    evictionPolicy: "noeviction",
    version: expect.stringMatching(/^\d+\.\d+/),
  });
  redis.pause();
  expect(await probeValkey(addressOf(redis.url), 100)).toEqual({
    kind: "silent",
    reason: "it does not answer",
  });
});

test.each([
  ["redis://h", { host: "h", port: 6379, isTls: false, user: "", password: "", database: 0 }],
  ["rediss://u:p%40@h:7/2", { host: "h", port: 7, isTls: true, user: "u", password: "p@", database: 2 }],
  ["valkeys://[::1]:7/", { host: "::1", port: 7, isTls: true, database: 0 }],
])("%s is read", (url, parts) => {
  expect(parseValkeyUrl(url)).toMatchObject(parts);
});

test.each([
  "redis:h",
  "http://h",
  "redis://",
  "redis://h/x",
  "redis://h/1/2",
  "redis://h/70000",
  "redis://:%@h",
])("%s is refused by a sentence", (url) => {
  expect(parseValkeyUrl(url)).toBeString();
});
