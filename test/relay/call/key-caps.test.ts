// Caps of channels and keys on both databases: what is full is passed over, which is no failure and no retry; where all are full
// a call waits as long as the option says. A place is given back however an attempt ends.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { LogType } from "../../../src/shared/enums.ts";
import { answer, CUT, gate, json, refuse, stream } from "../../support/fake-upstream.ts";
import { DATABASE_KINDS } from "../../support/postgres.ts";
import { HI, startGateway, until } from "../support.ts";
import type { Gateway } from "../support.ts";

describe.each(DATABASE_KINDS)("caps of channels and keys on %s", (database) => {
  let g: Gateway;
  let serial = 0;

  beforeAll(async () => {
    g = await startGateway({ database });
    await g.setOption("SelfUseModeEnabled", "true");
    await g.setOption("ErrorLogEnabled", "true");
    // A skip is no retry: there are none to spend.
    await g.setOption("RetryTimes", "0");
  });
  afterAll(() => g.close());
  beforeEach(() => g.upstream.reset());

  const nextModel = (): string => `capped-${++serial}`;
  const channel = (model: string, fields: Record<string, unknown> = {}): Promise<number> =>
    g.app.createChannel({ baseUrl: g.upstream.url, models: model, ...fields });
  const keysAsked = () =>
    g.upstream.requests.map(({ headers }) => String(headers["authorization"]).slice("Bearer ".length));
  async function call(model: string, fields: object = {}): Promise<number> {
    const response = await g.chat({ model, ...fields });
    await response.text();
    return response.status;
  }
  async function capKey(id: number, pos: number, caps: object): Promise<void> {
    const { channelKeys: t } = g.app.deps.db.t;
    const key = g.app.deps.routing.channel(id)?.keyRows[pos]?.id ?? 0;
    await g.app.deps.db.orm.update(t).set(caps).where(eq(t.id, key));
    await g.app.deps.routing.refresh([id]);
  }

  test("a full channel is passed over for the next, a full key for its neighbour: no failure, no retry, no row", async () => {
    const model = nextModel();
    const first = await channel(model, { priority: 10, maxConcurrency: 2, key: "one\ntwo" });
    const second = await channel(model, { key: "other" });
    await capKey(first, 0, { maxConcurrency: 1 });
    const doors = [gate(), gate(), gate()];
    for (const door of doors) g.upstream.script({ ...answer("hi"), before: door });
    const calls = doors.map(() => call(model));
    for (const at of doors.keys()) await g.upstream.request(at);
    expect(keysAsked().toSorted()).toEqual(["one", "other", "two"]);
    for (const door of doors) door.open();
    expect(await Promise.all(calls)).toEqual([200, 200, 200]);
    const rows = (await g.logs()).filter(({ modelName }) => modelName === model);
    expect(rows.map(({ type }) => type)).toEqual([LogType.consume, LogType.consume, LogType.consume]);
    // Whoever was passed over is in nobody's list of attempts.
    const used = rows.map(({ other }) => (other["admin_info"] as { use_channel: string[] }).use_channel);
    expect(used.map((each) => each.length)).toEqual([1, 1, 1]);
    const { picker } = g.app.services.gateway.relay.parts;
    expect([first, second].map((id) => picker.rests(id, 0))).toEqual([[], []]);
  });

  test("requests and tokens a minute, of the channel and of its key", async () => {
    const requests = nextModel();
    await channel(requests, { rpmLimit: 2 });
    expect([await call(requests), await call(requests), await call(requests)]).toEqual([200, 200, 429]);
    const ofKey = nextModel();
    const id = await channel(ofKey, { key: "one\ntwo" });
    await capKey(id, 0, { rpmLimit: 1 });
    g.upstream.reset();
    for (let i = 0; i < 4; i++) expect(await call(ofKey)).toBe(200);
    expect(keysAsked().filter((key) => key === "one")).toHaveLength(1);
    // What was used counts, not what was expected: twelve tokens each.
    const tokens = nextModel();
    await channel(tokens, { tpmLimit: 20 });
    expect([await call(tokens), await call(tokens), await call(tokens)]).toEqual([200, 200, 429]);
  });

  test("all full: a call waits as long as the option says, then reads 429 with the time to come again", async () => {
    const model = nextModel();
    await channel(model, { maxConcurrency: 1 });
    const door = gate();
    g.upstream.script({ ...answer("hi"), before: door });
    const held = call(model);
    await g.upstream.request(0);
    for (const waitMs of [0, 300]) {
      await g.setOption("relay.queue_ms", String(waitMs));
      const startedMs = performance.now();
      const refused = await g.chat({ model });
      const tookMs = performance.now() - startedMs;
      expect(refused.status).toBe(429);
      expect(Number(refused.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
      expect(await refused.json()).toMatchObject({ error: { code: "channel_capacity_exhausted" } });
      expect(tookMs).toBeGreaterThanOrEqual(waitMs);
      expect(g.upstream.requests).toHaveLength(1);
    }
    // Whoever waits is served by the place that comes free.
    await g.setOption("relay.queue_ms", "60000");
    const waiting = call(model);
    door.open();
    expect([await held, await waiting]).toEqual([200, 200]);
    await g.setOption("relay.queue_ms", "0");
  });

  test("the one key that stores a response is full: waited for like any room, though other keys are free", async () => {
    const model = nextModel();
    const id = await channel(model, { key: "stores\nidle" });
    await capKey(id, 0, { maxConcurrency: 1 });
    const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };
    const response = {
      id: `resp_${model}`,
      object: "response",
      status: "completed",
      model,
      output: [],
      usage,
    };
    g.upstream.always(json(response));
    const goOn = (more: object = {}) => g.post("/v1/responses", { model, input: "hi", ...more });
    expect((await goOn()).status).toBe(200);
    const next = { previous_response_id: response.id };
    const door = gate();
    g.upstream.script({ ...json({ ...response, id: `${response.id}b` }), before: door });
    const held = goOn(next);
    await g.upstream.request(1);
    const refused = await goOn(next);
    expect([refused.status, Number(refused.headers.get("retry-after"))]).toEqual([429, 1]);
    expect(await refused.json()).toMatchObject({ error: { code: "channel_capacity_exhausted" } });
    await g.setOption("relay.queue_ms", "60000");
    const waiting = goOn(next);
    // It waits: somebody else meanwhile does not.
    expect((await goOn()).status).toBe(200);
    door.open();
    expect([(await held).status, (await waiting).status]).toEqual([200, 200]);
    expect(keysAsked()).toEqual(["stores", "stores", "idle", "stores"]);
    await g.setOption("relay.queue_ms", "0");
  });

  test("a place is held until the end of a stream, and given back however it ends", async () => {
    const model = nextModel();
    const id = await channel(model, { maxConcurrency: 1 });
    const inFlight = () =>
      g.app.deps.caps.useOf(g.app.deps.routing.channel(id)?.keyRows[0]?.id ?? 0).inFlight;
    const free = () => until(() => Promise.resolve(inFlight() === 0 || undefined));
    const door = gate();
    g.upstream.script(stream(["a", door, "b"]));
    const open = await g.chat({ model, stream: true });
    expect(open.status).toBe(200);
    expect(await call(model)).toBe(429);
    door.open();
    expect(await open.text()).toContain("[DONE]");
    await free();
    // Refused, cut off, and left by its client.
    g.upstream.script(refuse(400));
    expect(await call(model)).toBe(400);
    await free();
    g.upstream.script(stream(["a", CUT]));
    await g.chat({ model, stream: true }).then((response) => response.text().catch(() => ""));
    await free();
    const never = gate();
    g.upstream.script(stream(["a", never, "b"]));
    const leaving = new AbortController();
    const left = await fetch(`${g.app.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${g.key}`, "content-type": "application/json" },
      body: JSON.stringify({ model, messages: HI, stream: true }),
      signal: leaving.signal,
    });
    expect(left.status).toBe(200);
    leaving.abort();
    never.open();
    await free();
    expect(await call(model)).toBe(200);
  });
});
