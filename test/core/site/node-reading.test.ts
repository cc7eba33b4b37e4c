// Whether a channel is up, as metrics and alarms read it: one that answers nobody is down, from its first rest to its first answer.
import { expect, test } from "bun:test";
import { readChannels } from "../../../src/core/site/node-reading.ts";
import { startTestApp } from "../../support/app.ts";
import { testClock } from "../../support/clock.ts";

test("a channel is down while each of its models rests, also between two tries, until one is answered", async () => {
  const clock = testClock();
  const app = await startTestApp({ clock });
  const id = await app.createChannel({
    models: "one,alias",
    modelMapping: JSON.stringify({ alias: "two" }),
  });
  const { picker, routing } = app.deps;
  const found = () => {
    const channel = routing.channel(id);
    if (!channel) throw new Error("no channel");
    return channel;
  };
  const isUp = () => readChannels(app.deps).find(({ channel }) => channel.id === id)?.isUp;
  const now = () => clock.monotonicMs();
  const fail = (model: string, isWhole = false) => {
    for (let times = 0; times < 3; times++)
      picker.failed(found(), model, { reason: "down", beganMs: now(), isWhole, detail: "gone" }, now());
  };
  expect(isUp()).toBe(true);
  fail("one");
  expect(isUp()).toBe(true);
  fail("alias");
  expect(isUp()).toBe(false);
  // Its rests are over: who would be asked next finds out, and is refused again.
  for (let tries = 0; tries < 3; tries++) {
    clock.advance(121_000);
    expect([picker.isUsable(found(), "alias", now()), isUp()]).toEqual([true, false]);
    for (const model of ["one", "alias"]) fail(model);
    expect(isUp()).toBe(false);
  }
  clock.advance(121_000);
  picker.succeeded(found(), "alias", now(), now());
  expect(isUp()).toBe(true);
  fail("one", true);
  clock.advance(121_000);
  expect(isUp()).toBe(false);
  picker.succeeded(found(), "alias", now(), now());
  expect(isUp()).toBe(true);
  // The only key that is awake rests for the one model that is left.
  fail("one");
  expect(isUp()).toBe(true);
  const rest = { reason: "limited", restMs: 5000, detail: "", model: "alias" } as const;
  app.deps.keyring.rest(found(), 0, rest, now());
  expect(isUp()).toBe(false);
  clock.advance(5000);
  expect(isUp()).toBe(true);
  // An upstream that is busy, and that nobody asks afterwards, is no trouble.
  const busy = { reason: "limited", beganMs: now(), retryAfterSeconds: 60 } as const;
  picker.failed(found(), "alias", busy, now());
  expect(isUp()).toBe(false);
  clock.advance(60_000);
  expect(isUp()).toBe(true);
  await app.close();
});
