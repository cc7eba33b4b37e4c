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
