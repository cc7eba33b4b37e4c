// Health is kept per channel and upstream model: one model's trouble leaves the others of its channel alone, a key that is
// rejected rests for all of them, and a cell that rests is tried by one call.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { testClock } from "../../support/clock.ts";
import { answer, CUT, gate, okWithError, refuse, refuseUntil, stream } from "../../support/fake-upstream.ts";
import type { RecordedRequest, Script } from "../../support/fake-upstream.ts";
import { startGateway } from "../support.ts";
import type { Gateway } from "../support.ts";

const clock = testClock();
let g: Gateway;
let serial = 0;

beforeAll(async () => {
  g = await startGateway({ clock, quota: 100_000_000_000 });
  await g.setOption("SelfUseModeEnabled", "true");
  await g.setOption("RetryTimes", "1");
});
afterAll(() => g.close());
beforeEach(() => g.upstream.reset());

/** A channel that is always preferred, and one that takes what the first may not; both serve the models. */
async function pair(
  key: string,
  fields: Record<string, unknown> = {},
): Promise<{ id: number; a: string; b: string }> {
  const [a, b] = [`cell-a-${++serial}`, `cell-b-${serial}`];
  const shared = { baseUrl: g.upstream.url, models: `${a},${b}` };
  const id = await g.app.createChannel({ ...shared, key, priority: 9, ...fields });
  await g.app.createChannel({ ...shared, key: "fallback" });
  return { id, a, b };
}

const keyOf = ({ headers }: RecordedRequest): string =>
  String(headers["authorization"]).slice("Bearer ".length);
const asked = (): string[] => g.upstream.requests.map(keyOf);

async function call(model: string, fields: Record<string, unknown> = {}): Promise<number> {
  const response = await g.chat({ model, ...fields });
  await response.text();
  return response.status;
}

/** The first channel answers like this as long as the model is this one; everything else is served. */
function trouble(model: string, script: Script | (() => Script)): void {
  g.upstream.always((request) => {
    const isMet = keyOf(request) !== "fallback" && request.json()["model"] === model;
    if (!isMet) return request.json()["stream"] === true ? stream(["ok"]) : answer("ok");
    return typeof script === "function" ? script() : script;
  });
}

describe("one model's trouble leaves the others of its channel alone", () => {
  test("429, with a lone key", async () => {
    const { id, a, b } = await pair("lone");
    trouble(a, refuseUntil(60));
    expect([await call(a), await call(a), await call(b)]).toEqual([200, 200, 200]);
    expect(asked()).toEqual(["lone", "fallback", "fallback", "lone"]);
    const { picker } = g.app.services.gateway.relay.parts;
    const nowMs = clock.monotonicMs();
    expect(picker.rests(id, nowMs)).toEqual([{ model: a, reason: "limited", untilMs: nowMs + 60_000 }]);
    clock.advance(60_000);
    g.upstream.reset();
    expect(await call(a)).toBe(200);
    expect(asked()).toEqual(["lone"]);
  });

  test("429, with several keys: each rests for that model alone, and an administrator sees for which", async () => {
    const { id, a, b } = await pair("first\nsecond");
    trouble(a, refuseUntil(60));
    expect([await call(a), await call(a)]).toEqual([429, 200]);
    expect(asked()).toEqual(["first", "second", "fallback"]);
    g.upstream.reset();
    trouble(a, refuseUntil(60));
    expect([await call(b), await call(b)]).toEqual([200, 200]);
    expect(asked().toSorted()).toEqual(["first", "second"]);
    const root = await g.app.createUser({ role: 100 });
    const shown = await g.app.call<{ data: unknown }>("GET", `/api/channel/keys/${id}`, undefined, root);
    const rest = { model: a, reason: "limited", rests_until: Math.ceil((clock.nowMs() + 60_000) / 1000) };
    expect(shown.body.data).toMatchObject([
      { index: 0, rests_until: 0, models: [rest] },
      { index: 1, rests_until: 0, models: [rest] },
    ]);
  });

  test.each(["stays", "stays-1\nstays-2"])(
    "the answer to a call that began before a 429 shortens no Retry-After (%j)",
    async (key) => {
      const { a } = await pair(key);
      // One that has begun, and one that is still waited for.
      const door = gate();
      trouble(a, stream(["half", door, "whole"]));
      const half = await g.chat({ model: a, stream: true });
      trouble(a, stream([door, "whole"]));
      const none = g.chat({ model: a, stream: true });
      await g.upstream.request(1);
      clock.advance(1000);
      trouble(a, refuseUntil(60));
      await call(a);
      const before = asked().length;
      door.open();
      for (const open of [half, await none]) expect(await open.text()).toContain("whole");
      trouble(a, answer("ok"));
      expect([await call(a), await call(a)]).toEqual([200, 200]);
      expect(asked().slice(before)).toEqual(["fallback", "fallback"]);
      clock.advance(60_000);
      await call(a);
      expect(asked().at(-1)).toStartWith("stays");
    },
  );

  test("a model that is down, under every name that is mapped to it", async () => {
    const { a, b } = await pair("mapped");
    const name = `cell-name-${serial}`;
    const shared = { baseUrl: g.upstream.url, models: `${name},${a},${b}` };
    await g.app.createChannel({ ...shared, key: "mapper", priority: 99, modelMapping: `{"${name}":"${a}"}` });
    trouble(a, refuse(500));
    for (let i = 0; i < 3; i++) await call(name);
    g.upstream.reset();
    trouble(a, refuse(500));
    expect(await call(b)).toBe(200);
    expect(asked()).toEqual(["mapper"]);
    await call(a);
    expect(asked().slice(1)).not.toContain("mapper");
  });

  test("streams that begin and break off", async () => {
    const { a, b } = await pair("cutting");
    for (let i = 0; i < 3; i++) {
      const door = gate();
      trouble(a, stream(["half", door, CUT]));
      const response = await g.chat({ model: a, stream: true });
      door.open();
      expect(await response.text()).toContain("half");
    }
    expect(asked()).toEqual(["cutting", "cutting", "cutting"]);
    trouble(a, answer("ok"));
    for (const model of [a, b]) expect(await call(model, { stream: true })).toBe(200);
    expect(asked().slice(3)).toEqual(["fallback", "cutting"]);
  });
});

const JSON_TYPE = { "content-type": "application/json" };

test.each<[string, Script]>([
  ["a status 503", refuse(503)],
  ["an error with status 200", okWithError()],
  ["an answer with nothing in it", { headers: JSON_TYPE, steps: ["{}"] }],
  ["a connection that breaks off", { headers: JSON_TYPE, steps: ["{", CUT] }],
])("three times %s in a row take the model out for five seconds", async (_, script) => {
  const { id, a } = await pair("broken");
  trouble(a, script);
  for (let i = 0; i < 4; i++) expect(await call(a)).toBe(200);
  const twice = ["broken", "fallback"];
  expect(asked()).toEqual([...twice, ...twice, ...twice, "fallback"]);
  const nowMs = clock.monotonicMs();
  expect(g.app.services.gateway.relay.parts.picker.rests(id, nowMs)).toEqual([
    { model: a, reason: "down", untilMs: nowMs + 5000 },
  ]);
});

test("a key that is rejected rests for every model", async () => {
  const { a, b } = await pair("bad\ngood");
  g.upstream.always((request) => (keyOf(request) === "bad" ? refuse(401) : answer("ok")));
  for (const model of [a, b, a, b]) expect(await call(model)).toBe(200);
  expect(asked().filter((key) => key === "bad")).toHaveLength(1);
});

test("a lone key that is rejected takes its channel out for every model", async () => {
  const { a, b } = await pair("refused");
  g.upstream.always((request) => (keyOf(request) === "refused" ? refuse(403) : answer("ok")));
  for (const model of [a, b]) expect(await call(model)).toBe(200);
  expect(asked()).toEqual(["refused", "fallback", "fallback"]);
});

test("when the rest is over, one of fifty calls tries the cell and the others do not wait for it", async () => {
  const { a } = await pair("tried");
  trouble(a, refuse(500));
  for (let i = 0; i < 3; i++) expect(await call(a)).toBe(200);
  clock.advance(5000);
  g.upstream.reset();
  const door = gate();
  trouble(a, { ...answer("ok"), before: door });
  const calls = Array.from({ length: 50 }, () => call(a));
  await g.upstream.request(49);
  expect(asked().filter((key) => key === "tried")).toHaveLength(1);
  door.open();
  expect(new Set(await Promise.all(calls))).toEqual(new Set([200]));
  g.upstream.reset();
  trouble(a, answer("ok"));
  expect(await call(a)).toBe(200);
  expect(asked()).toEqual(["tried"]);
});

describe("a cell whose rest is over", () => {
  async function restOver(key: string, fields: Record<string, unknown> = {}) {
    const { id, a } = await pair(key, fields);
    const channel = g.app.deps.routing.channel(id);
    if (!channel) throw new Error("no channel");
    const { picker } = g.app.services.gateway.relay.parts;
    const beganMs = clock.monotonicMs();
    for (let i = 0; i < 3; i++) picker.failed(channel, a, { reason: "down", beganMs }, beganMs);
    clock.advance(5000);
    return { a, state: () => picker.cells(channel, clock.monotonicMs())[0]?.state };
  }

  test("is tried by the next key where the first is refused", async () => {
    const { a, state } = await restOver("tries\nserves");
    g.upstream.always((request) => (keyOf(request) === "tries" ? refuse(401) : answer("ok")));
    expect([await call(a), state()]).toEqual([200, "closed"]);
    expect(asked()).toEqual(["tries", "serves"]);
  });

  test("is not closed by a channel that nobody can be asked at", async () => {
    const { a, state } = await restOver("pat", { type: 49 });
    g.upstream.always(answer("ok"));
    expect([await call(a), state()]).toEqual([200, "half_open"]);
    expect(asked()).toEqual(["fallback"]);
  });
});

test("a caller's own faults and a client that leaves take nothing out", async () => {
  const { a } = await pair("sound");
  trouble(a, refuse(400));
  for (let i = 0; i < 5; i++) expect(await call(a)).toBe(400);
  g.upstream.reset();
  trouble(a, { before: "never", steps: [] });
  for (let i = 0; i < 4; i++) {
    const leaving = new AbortController();
    const left = fetch(`${g.app.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${g.key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: a, stream: true, messages: [{ role: "user", content: "hi" }] }),
      signal: leaving.signal,
    }).catch(() => undefined);
    await g.upstream.request(i);
    leaving.abort();
    await left;
  }
  g.upstream.always(answer("ok"));
  expect(await call(a)).toBe(200);
  expect(asked().at(-1)).toBe("sound");
});

describe("what administrators see and do", () => {
  interface Cell {
    model: string;
    scope: string;
    state: string;
    reason: string;
    until: number;
    outcomes: { verdict: string }[];
  }
  const cellsOf = async (id: number, closed?: object): Promise<Cell[]> => {
    const admin = await g.app.createUser({ role: 10 });
    const path = `/api/channel/cells/${id}${closed ? "/close" : ""}`;
    const { body } = await g.app.call<{ data: Cell[] }>(closed ? "POST" : "GET", path, closed, admin);
    return body.data;
  };
  const restingOf = async (id: number): Promise<number> => {
    const admin = await g.app.createUser({ role: 10 });
    const { body } = await g.app.call<{ data: { cells_resting: number } }>(
      "GET",
      `/api/channel/${id}`,
      undefined,
      admin,
    );
    return body.data.cells_resting;
  };

  test("a cell's state, why and until when, how its last twenty calls ended; closed by hand it is asked at once", async () => {
    const { id, a } = await pair("looked at");
    expect([await cellsOf(id), await restingOf(id)]).toEqual([[], 0]);
    trouble(a, refuse(503));
    for (let i = 0; i < 2; i++) await call(a);
    trouble(a, answer("ok"));
    for (let i = 0; i < 25; i++) await call(a);
    trouble(a, refuse(503));
    for (let i = 0; i < 3; i++) await call(a);
    const [cell] = await cellsOf(id);
    expect(cell).toMatchObject({ model: a, scope: "model", state: "open", reason: "down" });
    expect(cell?.until).toBe(Math.ceil((clock.nowMs() + 5000) / 1000));
    expect(cell?.outcomes.map(({ verdict }) => verdict)).toEqual([
      ...Array<string>(17).fill("ok"),
      ...Array<string>(3).fill("down"),
    ]);
    expect(await restingOf(id)).toBe(1);
    clock.advance(5000);
    expect((await cellsOf(id))[0]?.state).toBe("half_open");
    trouble(a, refuse(503));
    await call(a);
    expect((await cellsOf(id))[0]?.state).toBe("open");
    expect(await cellsOf(id, { model: a })).toEqual([]);
    trouble(a, answer("ok"));
    g.upstream.requests.length = 0;
    expect(await call(a)).toBe(200);
    expect(asked()).toEqual(["looked at"]);
  });

  test("others see nothing of it", async () => {
    const user = await g.app.createUser();
    const { status } = await g.app.call("GET", `/api/channel/cells/${g.channelId}`, undefined, user);
    expect(status).not.toBe(200);
  });
});

describe("a proxy that nobody is reached through", () => {
  const setting = JSON.stringify({ proxy: "http://127.0.0.1:1" });

  test("rests for every channel that goes through it, is tried by one call, and serves again by hand", async () => {
    const names = [1, 2, 3].map((each) => `proxied-${++serial}-${each}`);
    const ids: number[] = [];
    for (const name of names) {
      ids.push(
        await g.app.createChannel({ baseUrl: g.upstream.url, models: name, key: name, priority: 9, setting }),
      );
      await g.app.createChannel({ baseUrl: g.upstream.url, models: name, key: "fallback" });
    }
    const [one = "", two = "", three = ""] = names;
    for (const model of [one, two, two]) expect(await call(model)).toBe(200);
    const tries = async (model: string): Promise<number> => {
      const before = (await g.logs()).filter(({ type }) => type === 5).length;
      expect(await call(model)).toBe(200);
      return (await g.logs()).filter(({ type }) => type === 5).length - before;
    };
    expect(await tries(three)).toBe(0);
    const picker = g.app.deps.picker;
    const channel = g.app.deps.routing.channel(ids[2] ?? 0);
    if (!channel) throw new Error("no channel");
    expect(picker.cells(channel, clock.monotonicMs())).toMatchObject([{ isProxy: true, state: "open" }]);
    clock.advance(5000);
    expect([await tries(three), await tries(three)]).toEqual([1, 0]);
    picker.close(channel, undefined);
    expect(await tries(three)).toBe(1);
  });

  test("a single channel's failures are its own", async () => {
    const name = `proxied-${++serial}`;
    const own = JSON.stringify({ proxy: "http://127.0.0.1:2" });
    const id = await g.app.createChannel({
      baseUrl: g.upstream.url,
      models: name,
      key: name,
      priority: 9,
      setting: own,
    });
    await g.app.createChannel({ baseUrl: g.upstream.url, models: name, key: "fallback" });
    for (let i = 0; i < 3; i++) expect(await call(name)).toBe(200);
    const channel = g.app.deps.routing.channel(id);
    if (!channel) throw new Error("no channel");
    const states = g.app.deps.picker
      .cells(channel, clock.monotonicMs())
      .map((cell) => [cell.isProxy, cell.state]);
    expect(states).toEqual([
      [true, "closed"],
      [false, "open"],
    ]);
  });
});
