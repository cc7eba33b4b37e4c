// Limits of attempts as two processes keep them together through a Valkey: exactly so many, whichever is asked, and each by itself
// while it is away. Refuses fixed waits.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { createAttemptLimit, createWrongLimit } from "../../../src/core/kit/attempt-limit.ts";
import type { WrongLimit, WrongRule } from "../../../src/core/kit/attempt-limit.ts";
import { createSealer } from "../../../src/core/kit/seal.ts";
import { createSharedAttempts } from "../../../src/core/kit/shared-attempts.ts";
import type { AskedLimit, SharedAttempts } from "../../../src/core/kit/shared-attempts.ts";
import { openValkey } from "../../../src/db/valkey.ts";
import type { Valkey } from "../../../src/db/valkey.ts";
import { parseValkeyUrl } from "../../../src/db/valkey-url.ts";
import { startRedis } from "../../support/redis.ts";
import type { TestRedis } from "../../support/redis.ts";

setDefaultTimeout(60_000);

const HOUR_MS = 3_600_000;
const monotonicMs = (): number => performance.now();

let redis: TestRedis;
let valkeys: Valkey[];
let processes: SharedAttempts[];
let serial = 0;

beforeAll(async () => {
  redis = await startRedis();
  const address = parseValkeyUrl(redis.url);
  if (typeof address !== "object") throw new Error("no address");
  const logger = { info: () => undefined, warn: () => undefined };
  valkeys = await Promise.all(
    [0, 1].map(() => openValkey({ address, prefix: "test:", monotonicMs, logger })),
  );
  processes = valkeys.map((valkey) => createSharedAttempts(valkey, createSealer("one key for all"), () => 2));
});
afterAll(async () => {
  for (const valkey of valkeys) valkey.close();
  await redis.remove();
});

const limitsOf = (name: string, limit: number, windowMs = HOUR_MS): AskedLimit[] =>
  processes.map((each) => {
    const local = createAttemptLimit(() => each.limitHere(limit), windowMs, monotonicMs);
    return each.limit(name, { limit, windowMs }, local);
  });
const wrongsOf = (name: string, rule: WrongRule): WrongLimit[] =>
  processes.map((each) => {
    const limit = (): number => each.limitHere(rule.limit);
    return each.wrong(name, rule, createWrongLimit({ ...rule, limit }, monotonicMs));
  });

async function until(isSo: () => unknown): Promise<void> {
  const endMs = performance.now() + 15_000;
  while (!(await isSo())) {
    if (performance.now() > endMs) throw new Error("it did not come to pass");
    await Bun.sleep(5);
  }
}
const isUp = (): boolean => valkeys.every((valkey) => valkey.state().isUp);

/** What holds while Valkey is asked; where a busy machine let it fall meanwhile it is shown with another name. */
async function answered(holds: (name: string) => Promise<void>): Promise<void> {
  for (let at = 1; ; at++) {
    await until(isUp);
    const missed = (): number => valkeys.reduce((sum, valkey) => sum + valkey.state().missed, 0);
    const before = missed();
    try {
      return await holds(`n${++serial}`);
    } catch (error) {
      if (missed() === before || at === 20) throw error;
    }
  }
}

const isTaken = (seconds: number | undefined): boolean => seconds === undefined;

test("sixty attempts at once over two processes, of which twenty are allowed: exactly twenty", () =>
  answered(async (name) => {
    const limits = limitsOf(name, 20);
    const taken = await Promise.all(
      Array.from({ length: 60 }, (_, at) => (limits[at % 2] as AskedLimit).take("a@mail.example")),
    );
    expect(taken.filter(isTaken)).toHaveLength(20);
    for (const seconds of taken.filter((each) => each !== undefined)) {
      expect(seconds).toBeGreaterThan(3500);
      expect(seconds).toBeLessThanOrEqual(3600);
    }
    // Others are others; and what is given back on one process may be taken on the other.
    for (let at = 0; at < 20; at++)
      expect(await (limits[at % 2] as AskedLimit).take("b@mail.example")).toBeUndefined();
    // Refused ones count nowhere.
    for (let at = 0; at < 15; at++) expect(await limits[1]?.take("b@mail.example")).toBeGreaterThan(3500);
    limits[0]?.giveBack("b@mail.example");
    await until(async () => isTaken(await limits[1]?.take("b@mail.example")));
    expect(await limits[0]?.take("b@mail.example")).toBeGreaterThan(3500);
  }));

test("sixty wrong ones at once: exactly ten were tried, and right ones never count", () =>
  answered(async (name) => {
    const limits = wrongsOf(name, { limit: 10, windowMs: HOUR_MS });
    const attempt = async (at: number, isWrong: boolean): Promise<boolean> => {
      const limit = limits[at % 2] as WrongLimit;
      if ((await limit.enter("ada")) !== undefined) return false;
      await new Promise(setImmediate);
      limit.leave("ada", isWrong);
      return true;
    };
    for (let at = 0; at < 30; at++) expect(await attempt(at, false)).toBe(true);
    const tried = await Promise.all(Array.from({ length: 60 }, (_, at) => attempt(at, true)));
    expect(tried.filter(Boolean)).toHaveLength(10);
    for (const limit of limits) expect(await limit.enter("ada")).toBeGreaterThan(3500);
    expect(await limits[0]?.enter("grace")).toBeUndefined();
  }));

test("attempts whose outcome is open elsewhere take their places, and give them back", () =>
  answered(async (name) => {
    const [here, there] = wrongsOf(name, { limit: 2, windowMs: HOUR_MS }) as [WrongLimit, WrongLimit];
    for (let at = 0; at < 2; at++) expect(await here.enter("ada")).toBeUndefined();
    let isIn = false;
    const waiting = there.enter("ada").then((seconds) => {
      isIn = true;
      return seconds;
    });
    // Its question has been answered, so that it could have been let in.
    const calls = async (): Promise<number> => {
      const stats = String(await redis.command("INFO", "commandstats"));
      return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0);
    };
    const before = await calls();
    await until(async () => (await calls()) >= before + 2);
    expect(isIn).toBe(false);
    here.leave("ada", false);
    expect(await waiting).toBeUndefined();
    here.leave("ada", true);
    there.leave("ada", true);
    await until(async () => ((await here.enter("ada")) ?? 0) > 3500);
  }));

test("a rest that one process began is kept by the other, and lets one in at a time afterwards", () =>
  answered(async (name) => {
    const rule = { limit: 3, windowMs: HOUR_MS, restMs: 2000 };
    const [here, there] = wrongsOf(name, rule) as [WrongLimit, WrongLimit];
    for (let at = 0; at < 3; at++) {
      expect(await here.enter("ada")).toBeUndefined();
      here.leave("ada", true);
    }
    await until(async () => ((await redis.command("KEYS", `*:${name}:*:r`)) as string[]).length > 0);
    expect(await there.enter("ada")).toBeOneOf([1, 2]);
    await until(async () => isTaken(await there.enter("ada")));
    there.leave("ada", true);
    await until(async () => ((await redis.command("KEYS", `*:${name}:*:r`)) as string[]).length > 0);
    expect(await here.enter("ada")).toBeOneOf([1, 2]);
  }));

test("away, each process keeps its part of the limit; and nobody is named in what Valkey holds", async () => {
  await until(isUp);
  const limits = limitsOf("letters", 4);
  await limits[0]?.take("a@mail.example");
  const keys = (await redis.command("KEYS", "*")) as string[];
  expect(keys.some((name) => /^test:try:letters:[0-9a-f]{32}$/.test(name))).toBe(true);
  expect(keys.join()).not.toMatch(/mail|ada|grace/);
  await redis.stop();
  await until(() => valkeys.every((valkey) => !valkey.isUp()));
  const taken = await Promise.all(
    Array.from({ length: 20 }, (_, at) => (limits[at % 2] as AskedLimit).take("a@mail.example")),
  );
  expect(taken.filter(isTaken)).toHaveLength(3);
  const wrong = wrongsOf("sign-in", { limit: 2, windowMs: HOUR_MS });
  for (const limit of wrong) {
    expect(await limit.enter("ada")).toBeUndefined();
    limit.leave("ada", true);
  }
  for (const limit of wrong) expect(await limit.enter("ada")).toBeGreaterThan(3500);
  await redis.start();
  await until(isUp);
});

test("a limit of more than 4,096 is each process's own", async () => {
  const limits = limitsOf("many", 5000);
  for (const limit of limits) expect(await limit.take("a")).toBeUndefined();
  expect(((await redis.command("KEYS", "*try:many*")) as string[]).length).toBe(0);
});
