// The machine's clock is set by forty days, back and forward: limits, rests and holds go by the time that really passes.
// Refuses real time: both faces of the clock are the test's.
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { refuse } from "../../support/fake-upstream.ts";
import { FORTY_DAYS_MS, testClock } from "../../support/clock.ts";
import { startGateway } from "../support.ts";
import type { Gateway } from "../support.ts";

const clock = testClock();
const JUMPS = [-FORTY_DAYS_MS, 2 * FORTY_DAYS_MS, -FORTY_DAYS_MS];

let g: Gateway;
let serial = 0;

beforeAll(async () => {
  g = await startGateway({ clock });
  await g.setOption("SelfUseModeEnabled", "true");
  await g.setOption("RetryTimes", "1");
});
afterAll(() => g.close());
beforeEach(() => g.upstream.reset());

const sentKeys = () =>
  g.upstream.requests.map((request) => String(request.headers["authorization"]).replace("Bearer ", ""));

test("the model request limit", async () => {
  await g.setOption("ModelRequestRateLimitDurationMinutes", "1");
  await g.setOption("ModelRequestRateLimitCount", "2");
  await g.setOption("ModelRequestRateLimitEnabled", "true");
  expect([(await g.chat()).status, (await g.chat()).status]).toEqual([200, 200]);
  for (const jumpMs of JUMPS) {
    clock.jump(jumpMs);
    const refused = await g.chat();
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get("retry-after"))).toBeLessThanOrEqual(60);
  }
  clock.advance(60_000);
  expect((await g.chat()).status).toBe(200);
  await g.setOption("ModelRequestRateLimitEnabled", "false");
});

test("the rest of a key, whose end is shown as a time of day", async () => {
  const model = `keys-${++serial}`;
  const id = await g.app.createChannel({ baseUrl: g.upstream.url, models: model, key: "bad\ngood" });
  g.upstream.script(refuse(401));
  expect((await g.chat({ model })).status).toBe(200);
  for (const jumpMs of JUMPS) {
    clock.jump(jumpMs);
    g.upstream.reset();
    for (let i = 0; i < 3; i++) expect((await g.chat({ model })).status).toBe(200);
    expect(new Set(sentKeys())).toEqual(new Set(["good"]));
    // Sessions last thirty days by the time of day: a new one for each.
    const admin = await g.app.createUser({ role: 10 });
    const { body } = await g.app.call<{ data: { rests_until: number }[] }>(
      "GET",
      `/api/channel/keys/${id}`,
      undefined,
      admin,
    );
    expect(body.data[0]?.rests_until).toBe(Math.ceil((clock.nowMs() + 600_000) / 1000));
  }
  clock.advance(600_000);
  g.upstream.reset();
  for (let i = 0; i < 2; i++) expect((await g.chat({ model })).status).toBe(200);
  expect(new Set(sentKeys())).toEqual(new Set(["bad", "good"]));
});

test("the rest of a channel", async () => {
  const model = `rest-${++serial}`;
  await g.app.createChannel({ baseUrl: g.upstream.url, models: model, key: "first", priority: 5 });
  await g.app.createChannel({ baseUrl: g.upstream.url, models: model, key: "second" });
  g.upstream.script(refuse(401));
  expect((await g.chat({ model })).status).toBe(200);
  for (const jumpMs of JUMPS) {
    clock.jump(jumpMs);
    g.upstream.reset();
    expect((await g.chat({ model })).status).toBe(200);
    expect(sentKeys()).toEqual(["second"]);
  }
  clock.advance(30_000);
  g.upstream.reset();
  expect((await g.chat({ model })).status).toBe(200);
  expect(sentKeys()).toEqual(["first"]);
});

test("a key that was not there a moment ago", async () => {
  const unknown = "sk-" + "a".repeat(48);
  const tokenOf = async () => g.app.deps.accounts.tokenByKey(unknown.slice(3));
  expect(await tokenOf()).toBeUndefined();
  clock.jump(-FORTY_DAYS_MS);
  const { tokens } = g.app.deps.db.t;
  const { sha256Hex } = await import("../../../src/core/kit/seal.ts");
  // Written behind the program's back: only the end of its memory brings it.
  await g.app.deps.db.orm.insert(tokens).values({
    userId: g.user.id,
    keyHash: sha256Hex(unknown.slice(3)),
    keySealed: "",
  });
  expect(await tokenOf()).toBeUndefined();
  clock.advance(1000);
  expect((await tokenOf())?.userId).toBe(g.user.id);
  clock.jump(FORTY_DAYS_MS);
});

test("an amount held back for a running call", async () => {
  const user = await g.app.deps.accounts.user(g.user.id);
  if (!user) throw new Error("no user");
  const held = await g.app.deps.ledger.reserve({ requestId: "held", user, token: undefined, amount: 1000 });
  const { maintain } = g.app.deps.ledger as unknown as { maintain(): Promise<void> };
  for (const jumpMs of JUMPS) {
    clock.jump(jumpMs);
    await maintain();
    expect(user.reserved).toBe(1000);
  }
  clock.advance(3 * 3600 * 1000);
  await maintain();
  expect(user.reserved).toBe(0);
  await held.release();
});
