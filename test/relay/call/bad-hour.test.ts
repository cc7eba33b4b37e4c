// A bad hour, minute by minute, against scripted upstreams: keys that run dry, 429 with and without Retry-After, a model that dies
// with one key only, empty answers, silence, and recovery. What clients saw, which keys were asked how often, what was charged.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { audit } from "../../../src/core/ledger/audit.ts";
import { ChannelStatus, KeyStatus } from "../../../src/shared/enums.ts";
import { testClock } from "../../support/clock.ts";
import { answer, hangBeforeHeaders, refuse, refuseUntil } from "../../support/fake-upstream.ts";
import type { RecordedRequest, Script } from "../../support/fake-upstream.ts";
import { startGateway } from "../support.ts";
import type { Gateway } from "../support.ts";

const MINUTE_MS = 60_000;
const PRICE = 10;
const MODEL_A = "bad-hour";
const MODEL_B = "good-hour";
const EMPTY: Script = { headers: { "content-type": "application/json" }, steps: ["{}"] };
const DRY = refuse(429, {
  error: { message: "You exceeded your current quota", type: "insufficient_quota" },
});

const keyOf = ({ headers }: RecordedRequest): string =>
  String(headers["authorization"]).slice("Bearer ".length);

describe.each(["sqlite", "postgres"] as const)("on %s", (database) => {
  const clock = testClock();
  let g: Gateway;
  let first = 0;
  let served = 0;
  /** What a key answers, where it does not simply serve; "key model" before "key". */
  let scripts: Readonly<Record<string, Script>> = {};

  beforeAll(async () => {
    g = await startGateway({ database, clock });
    // Probes of keys are made in root's name.
    await g.app.createUser({ role: 100 });
    for (const [key, value] of Object.entries({
      RetryTimes: "3",
      AutomaticDisableChannelEnabled: "true",
      AutomaticEnableChannelEnabled: "true",
      "relay.first_byte_timeout_seconds": "1",
      ModelPrice: JSON.stringify({ [MODEL_A]: PRICE / 500_000, [MODEL_B]: PRICE / 500_000 }),
    }))
      await g.setOption(key, value);
    const shared = { baseUrl: g.upstream.url, models: `${MODEL_A},${MODEL_B}` };
    first = await g.app.createChannel({ ...shared, key: "a1\na2\na3\na4", priority: 9 });
    await g.app.createChannel({ ...shared, key: "b1\nb2", priority: 1 });
    g.upstream.always((request) => {
      const key = keyOf(request);
      return scripts[`${key} ${String(request.json()["model"])}`] ?? scripts[key] ?? answer("ok");
    });
  });
  afterAll(() => g.close());

  /** Calls of one minute, one after another; then it is over, and with it what jobs do every minute. */
  async function minute(count = 4, model = MODEL_A): Promise<number[]> {
    const statuses: number[] = [];
    for (let i = 0; i < count; i++) {
      const response = await g.chat({ model });
      await response.text();
      statuses.push(response.status);
    }
    served += statuses.filter((status) => status === 200).length;
    clock.advance(MINUTE_MS);
    await g.app.services.gateway.watch.probeOffKeys();
    return statuses;
  }

  /** Minutes in which the upstreams are like this: every client is served. How often each key was asked meanwhile. */
  async function goodFor(
    minutes: number,
    trouble: Readonly<Record<string, Script>>,
  ): Promise<Record<string, number>> {
    scripts = trouble;
    g.upstream.requests.length = 0;
    for (let i = 0; i < minutes; i++) expect(await minute()).toEqual([200, 200, 200, 200]);
    return askedBy();
  }
  const askedBy = (): Record<string, number> =>
    Object.fromEntries([...Map.groupBy(g.upstream.requests, keyOf)].map(([key, all]) => [key, all.length]));
  const keysOf = (id: number) => g.app.deps.routing.channel(id)?.keyRows ?? [];

  test("five good minutes: the first channel's keys take turns", async () => {
    expect(await goodFor(5, {})).toEqual({ a1: 5, a2: 5, a3: 5, a4: 5 });
  });

  test("a key that runs dry is asked once, goes off, and is tried singly and ever more rarely", async () => {
    // Once by a client, whom another key serves; then after five minutes, and after ten more.
    expect(await goodFor(16, { a1: DRY })).toEqual({ a1: 3, a2: 22, a3: 21, a4: 21 });
    expect(keysOf(first)[0]?.status).toBe(KeyStatus.autoOff);
    expect(g.app.deps.routing.channel(first)?.status).toBe(ChannelStatus.enabled);
  });

  test("429 with Retry-After: the key is asked again when the time that it named is over, and not before", async () => {
    expect(await goodFor(6, { a1: DRY, a2: refuseUntil(180) })).toEqual({ a2: 2, a3: 12, a4: 12 });
  });

  test("429 without: the key rests half a minute, then twice as long each time", async () => {
    expect(await goodFor(8, { a1: DRY, a3: refuse(429) })).toEqual({ a2: 16, a3: 4, a4: 16 });
  });

  test("a model that dies with one key only rests with that key; its other models and the other keys go on", async () => {
    const asked = await goodFor(8, { a1: DRY, [`a4 ${MODEL_A}`]: refuse(503) });
    // Three failures in two minutes, then one try a minute, and each of those clients was served by the spare channel.
    expect(asked).toEqual({ a1: 1, a2: 13, a3: 12, a4: 7, b1: 4, b2: 3 });
    expect(g.app.deps.picker.rests(first, clock.monotonicMs())).toEqual([]);
    g.upstream.requests.length = 0;
    expect(await minute(3, MODEL_B)).toEqual([200, 200, 200]);
    expect(askedBy()).toEqual({ a2: 1, a3: 1, a4: 1 });
  });

  test("empty answers of all keys: the model rests, is tried by one call a time, and the spare channel serves", async () => {
    const asked = await goodFor(6, { a1: DRY, a2: EMPTY, a3: EMPTY, a4: EMPTY });
    // Twenty-four calls: three take the model out, then one try a minute, for five minutes.
    expect(asked).toEqual({ a2: 3, a3: 3, a4: 2, b1: 12, b2: 12 });
  });

  test("a silent upstream: nobody waits longer than for the first byte, and then nobody waits at all", async () => {
    await goodFor(3, { a1: DRY });
    const silent = hangBeforeHeaders();
    scripts = { a1: DRY, a2: silent, a3: silent, a4: silent };
    g.upstream.requests.length = 0;
    const calls = await Promise.all(Array.from({ length: 6 }, () => g.chat({ model: MODEL_A })));
    expect(calls.map(({ status }) => status)).toEqual(Array(6).fill(200));
    for (const call of calls) await call.text();
    served += calls.length;
    expect(askedBy()).toEqual({ a2: 2, a3: 2, a4: 2, b1: 3, b2: 3 });
    expect(await minute()).toEqual([200, 200, 200, 200]);
    expect(askedBy()).toEqual({ a2: 2, a3: 2, a4: 2, b1: 5, b2: 5 });
  });

  test("everybody asks for ten minutes: clients read that, and nobody is asked in vain", async () => {
    await goodFor(4, {});
    scripts = Object.fromEntries(["a1", "a2", "a3", "a4", "b1", "b2"].map((key) => [key, refuseUntil(600)]));
    g.upstream.requests.length = 0;
    for (let i = 0; i < 6; i++) {
      const response = await g.chat({ model: MODEL_A });
      await response.text();
      expect([response.status, response.headers.get("retry-after")]).toEqual([429, "600"]);
    }
    expect(askedBy()).toEqual({ a2: 1, a3: 1, a4: 1, b1: 1, b2: 1 });
    clock.advance(4 * MINUTE_MS);
    expect((await g.chat({ model: MODEL_A })).headers.get("retry-after")).toBe("360");
    expect(g.upstream.requests).toHaveLength(5);
  });

  test("recovery: every key is back unaided, and every answer was paid for once", async () => {
    scripts = {};
    clock.advance(6 * 60 * MINUTE_MS);
    await g.app.services.gateway.watch.probeOffKeys();
    expect(await goodFor(5, {})).toEqual({ a1: 5, a2: 5, a3: 5, a4: 5 });
    expect(keysOf(first).map(({ status }) => status)).toEqual(Array(4).fill(KeyStatus.on));
    await g.app.deps.ledger.flush();
    const { used, requests } = await g.balance();
    expect([used, requests]).toEqual([served * PRICE, served]);
    expect((await audit(g.app.deps.db)).differences).toEqual([]);
  });
});
