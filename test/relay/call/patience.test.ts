// Which statuses go on and switch off is the operator's choice; what an upstream asks to be left alone for is honoured, waited for
// where it is short, and told to the client where it is not.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { ChannelStatus } from "../../../src/shared/enums.ts";
import { testClock } from "../../support/clock.ts";
import { answer, gate, refuse, refuseUntil } from "../../support/fake-upstream.ts";
import type { Script } from "../../support/fake-upstream.ts";
import { errorOf, startGateway, until } from "../support.ts";
import type { Gateway } from "../support.ts";

const clock = testClock();
let g: Gateway;
let serial = 0;

beforeAll(async () => {
  g = await startGateway({ clock });
  await g.setOption("SelfUseModeEnabled", "true");
});
afterAll(() => g.close());
beforeEach(async () => {
  g.upstream.reset();
  await g.setOption("RetryTimes", "3");
});

/** A model of its own, a channel for each of the texts of keys, by falling priority. */
async function pool(...keys: string[]): Promise<{ model: string; ids: number[] }> {
  const model = `patient-${++serial}`;
  const ids: number[] = [];
  for (const [at, key] of keys.entries())
    ids.push(
      await g.app.createChannel({ baseUrl: g.upstream.url, models: model, key, priority: keys.length - at }),
    );
  return { model, ids };
}

const asked = (): string[] =>
  g.upstream.requests.map(({ headers }) => String(headers["authorization"]).slice("Bearer ".length));

/** By key; who is not named answers. */
function upstream(scripts: Readonly<Record<string, Script>>): void {
  g.upstream.always(
    ({ headers }) => scripts[String(headers["authorization"]).slice("Bearer ".length)] ?? answer("ok"),
  );
}

async function call(model: string): Promise<[status: number, retryAfter: string | null]> {
  const response = await g.chat({ model });
  await response.text();
  return [response.status, response.headers.get("retry-after")];
}

describe("statuses are the operator's", () => {
  const withOptions = async (values: Record<string, string>, act: () => Promise<void>): Promise<void> => {
    const before = Object.keys(values).map(
      (key) => [key, g.app.deps.options.text(key as "RetryTimes")] as const,
    );
    for (const [key, value] of Object.entries(values)) await g.setOption(key, value);
    await act().finally(async () => {
      for (const [key, value] of before) await g.setOption(key, value);
    });
  };

  test.each<[string, number, boolean]>([
    ["500-503", 500, true],
    ["500-503", 429, false],
    ["500-503，429", 429, true],
    ["", 503, false],
    // No list makes these go on.
    ["100-599", 400, false],
    ["100-599", 408, false],
    ["100-599", 504, false],
    ["100-599", 524, false],
  ])(
    "AutomaticRetryStatusCodes %p and an upstream's %i: the next channel is asked: %p",
    async (list, status, goesOn) => {
      await withOptions({ AutomaticRetryStatusCodes: list }, async () => {
        const { model } = await pool(`s${serial}-first`, `s${serial}-second`);
        g.upstream.script(refuse(status));
        expect((await call(model))[0]).toBe(goesOn ? 200 : status);
        expect(g.upstream.requests).toHaveLength(goesOn ? 2 : 1);
      });
    },
  );

  test("AutomaticDisableStatusCodes: what is on the list takes a key out, what is not does not", async () => {
    const options = { AutomaticDisableStatusCodes: "402-403", AutomaticDisableChannelEnabled: "true" };
    await withOptions(options, async () => {
      const { model, ids } = await pool(`d${serial}-first`, `d${serial}-second`, `d${serial}-third`);
      upstream({ [`d${serial - 1}-first`]: refuse(401), [`d${serial - 1}-second`]: refuse(403) });
      expect((await call(model))[0]).toBe(200);
      const status = (at: number) => g.app.deps.routing.channel(ids[at] ?? 0)?.status;
      await until(() => Promise.resolve(status(1) === ChannelStatus.autoDisabled || undefined));
      expect([status(0), status(2)]).toEqual([ChannelStatus.enabled, ChannelStatus.enabled]);
    });
  });
});

describe("an upstream that wants to be left alone", () => {
  test("nobody else is left and the time is short: the call waits for it, and spends a retry", async () => {
    const { model } = await pool("brief");
    g.upstream.script(refuseUntil(1), answer("ok"));
    const startedMs = performance.now();
    const waiting = call(model);
    await g.upstream.request(0);
    await until(() => Promise.resolve(g.app.deps.caps.useOf(0).inFlight === 0 || undefined));
    setTimeout(() => clock.advance(1000), 900);
    expect((await waiting)[0]).toBe(200);
    expect(performance.now() - startedMs).toBeGreaterThan(900);
    expect(asked()).toEqual(["brief", "brief"]);
  });

  test("another channel serves at once, whatever its priority: nobody waits", async () => {
    const { model } = await pool("asks-two", "free");
    upstream({ "asks-two": refuseUntil(2) });
    expect(await call(model)).toEqual([200, null]);
    expect(asked()).toEqual(["asks-two", "free"]);
  });

  test("too long to wait: 429 with the shortest of the times; nobody is asked before, then that one alone", async () => {
    const { model } = await pool("forty", "twenty", "sixty");
    upstream({ forty: refuseUntil(40), twenty: refuseUntil(20), sixty: refuseUntil(60) });
    expect(await call(model)).toEqual([429, "20"]);
    expect(asked()).toEqual(["forty", "twenty", "sixty"]);
    const rows = (await g.logs()).length;
    const again = await g.chat({ model });
    expect([again.status, again.headers.get("retry-after")]).toEqual([429, "20"]);
    expect((await errorOf(again)).code).toBe("upstream_saturated");
    expect(await g.logs()).toHaveLength(rows + 1);
    expect(asked()).toHaveLength(3);
    clock.advance(20_000);
    upstream({});
    expect(await call(model)).toEqual([200, null]);
    expect(asked().slice(3)).toEqual(["twenty"]);
  });

  test("the keys of one channel each have their own time, and the shortest is told", async () => {
    const { model } = await pool("k-thirty\nk-ten\nk-ninety");
    upstream({ "k-thirty": refuseUntil(30), "k-ten": refuseUntil(10), "k-ninety": refuseUntil(90) });
    expect(await call(model)).toEqual([429, "10"]);
    expect(asked()).toEqual(["k-thirty", "k-ten", "k-ninety"]);
    clock.advance(10_000);
    upstream({});
    expect(await call(model)).toEqual([200, null]);
    expect(asked().slice(3)).toEqual(["k-ten"]);
    // Another model was never too much for any of them.
    expect(g.app.deps.keyring.isCalm(g.app.deps.clock.monotonicMs())).toBe(false);
  });

  test.each<[string, Record<string, string>, number]>([
    [
      "a date",
      { date: "Fri, 02 Jan 2026 03:04:05 GMT", "retry-after": "Fri, 02 Jan 2026 03:04:47 GMT" },
      42_000,
    ],
    ["1e9 seconds: ten minutes, no more", { "retry-after": "1e9" }, 600_000],
    ["-1: as if nothing was said", { "retry-after": "-1" }, 5000],
    ["nothing", {}, 5000],
  ])("%s", async (what, headers, restMs) => {
    const { model, ids } = await pool(`says ${what}`, `spare ${what}`);
    g.upstream.script(refuse(429, undefined, headers));
    expect(await call(model)).toEqual([200, null]);
    const nowMs = clock.monotonicMs();
    expect(g.app.services.gateway.relay.parts.picker.rests(ids[0] ?? 0, nowMs)).toEqual([
      { model, reason: "limited", untilMs: nowMs + restMs },
    ]);
  });

  test("two channels of one account: one rest, and the second is not asked in its time", async () => {
    const { model } = await pool("same account", "same account", "another");
    upstream({ "same account": refuseUntil(60) });
    expect(await call(model)).toEqual([200, null]);
    expect(asked()).toEqual(["same account", "another"]);
  });
});

test("a tier that shrinks while a call goes through it is not left before its end", async () => {
  const { model, ids } = await pool("top", "middle one", "bottom");
  const beside = await g.app.createChannel({
    baseUrl: g.upstream.url,
    models: model,
    key: "middle two",
    priority: 2,
  });
  const admin = await g.app.createUser({ role: 10 });
  const door = gate();
  upstream({ top: { ...refuse(500), before: door }, "middle one": refuse(500), "middle two": refuse(500) });
  const calling = call(model);
  await g.upstream.request(0);
  for (const id of [ids[0], beside]) await g.app.call("DELETE", `/api/channel/${id}`, undefined, admin);
  door.open();
  expect((await calling)[0]).toBe(200);
  expect(asked()).toEqual(["top", "middle one", "bottom"]);
});
