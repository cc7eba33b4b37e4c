// Probes between calls: what rests, and what is idle while its model is in use, gets a short streamed call that the house pays for.
// Live calls know better than a probe; the day's budget ends them; keys are asked for by the free list of models. On both databases.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { eq, gt } from "drizzle-orm";
import { audit } from "../../../src/core/ledger/audit.ts";
import { KeyStatus, LogType } from "../../../src/shared/enums.ts";
import { testClock } from "../../support/clock.ts";
import { answer, gate, HANG, refuse, refuseUntil, stream } from "../../support/fake-upstream.ts";
import type { RecordedRequest, Script } from "../../support/fake-upstream.ts";
import { startGateway, until } from "../support.ts";
import type { Gateway } from "../support.ts";

const MINUTE_MS = 60_000;
const keyOf = ({ headers }: RecordedRequest): string =>
  String(headers["authorization"]).slice("Bearer ".length);

describe.each(["sqlite", "postgres"] as const)("probes on %s", (database) => {
  const clock = testClock();
  let g: Gateway;
  let rootId = 0;
  let serial = 0;

  beforeAll(async () => {
    g = await startGateway({ database, clock, quota: 100_000_000 });
    await g.setOption("SelfUseModeEnabled", "true");
    await g.setOption("AutomaticDisableChannelEnabled", "true");
    await g.setOption("AutomaticEnableChannelEnabled", "true");
    rootId = (await g.app.createUser({ role: 100 })).id;
  });
  afterAll(() => g.close());
  beforeEach(async () => {
    g.upstream.reset();
    await g.setOption("relay.probe_max_quota_per_day", "1000000");
  });
  // What one test called is no traffic of the next.
  afterEach(() => clock.advance(25 * 60 * MINUTE_MS));

  async function channel(key: string, fields: Record<string, unknown> = {}) {
    const model = `probed-${++serial}`;
    const id = await g.app.createChannel({ baseUrl: g.upstream.url, models: model, key, ...fields });
    return { id, model };
  }
  const watch = () => g.app.services.gateway.watch;
  const states = (id: number) => {
    const found = g.app.deps.routing.channel(id);
    return found ? g.app.deps.picker.cells(found, clock.monotonicMs()).map(({ state }) => state) : [];
  };
  async function call(model: string): Promise<number> {
    const response = await g.chat({ model });
    await response.text();
    return response.status;
  }
  /** A cell that three failures opened; nothing of them is left at the upstream. */
  async function opened(fields: Record<string, unknown> = {}) {
    const cell = await channel("resting", fields);
    g.upstream.always(refuse(500));
    for (let i = 0; i < 3; i++) await call(cell.model);
    expect(states(cell.id)).toEqual(["open"]);
    g.upstream.reset();
    return cell;
  }
  async function probes(
    script?: Script | ((request: RecordedRequest) => Script),
  ): Promise<RecordedRequest[]> {
    g.upstream.requests.length = 0;
    if (script) g.upstream.always(script);
    await watch().warm();
    return [...g.upstream.requests];
  }

  test("what rests is asked for a short stream, hung up on at its first content, and serves before its rest is over", async () => {
    const { id, model } = await opened();
    const before = await g.balance();
    const rootBefore = await g.balance(rootId);
    const { deps } = g.app;
    const createdAt = Math.floor(clock.nowMs() / 1000);
    const price = JSON.stringify({ in: 1, out: 4 });
    const row = { channelId: id, model: "*", price, validFrom: createdAt, createdAt };
    await deps.db.orm.insert(deps.db.t.channelCosts).values(row);
    await deps.costs.refresh([id]);
    const [probe, ...others] = await probes(stream(["one", HANG]));
    expect(others).toEqual([]);
    expect(probe?.json()).toMatchObject({ model, stream: true, max_tokens: 16 });
    await probe?.closed;
    expect(probe?.aborted).toBe(true);
    // Closed, and remembered for a minute.
    expect(states(id)).toEqual(["closed"]);
    expect(await g.balance()).toEqual(before);
    expect(await g.balance(rootId)).toEqual(rootBefore);
    const rows = (await g.logs()).filter(({ content }) => content === "渠道探测");
    expect(rows).toMatchObject([
      { type: LogType.system, userId: rootId, channelId: id, modelName: model, quota: 0 },
    ]);
    // The most that it may come to, 16 tokens there and back, is the house's cost: of no call, and lost on none.
    const { rollups } = deps.db.t;
    const [sum] = await deps.db.orm.select().from(rollups).where(gt(rollups.costNanos, 0));
    expect(sum).toMatchObject({
      userId: rootId,
      channelId: id,
      count: 0,
      quota: 0,
      costCount: 0,
      lostNanos: 0,
    });
    expect((await audit(deps.db)).differences).toEqual([]);
  });

  test("what fails again stays open, and is asked once a minute; what asked to be left alone is not asked before", async () => {
    const { id } = await opened();
    expect(await probes(refuse(500))).toHaveLength(1);
    expect(states(id)).toEqual(["open"]);
    clock.advance(MINUTE_MS - 1);
    expect(states(id)).toEqual(["half_open"]);
    expect(await probes()).toHaveLength(0);
    clock.advance(1);
    expect(await probes(refuse(500))).toHaveLength(1);
    expect(states(id)).toEqual(["open"]);
    clock.advance(MINUTE_MS);
    expect(await probes(refuseUntil(300))).toHaveLength(1);
    for (let minutes = 1; minutes < 5; minutes++) {
      clock.advance(MINUTE_MS);
      expect(await probes(stream(["back"]))).toHaveLength(0);
    }
    clock.advance(MINUTE_MS);
    expect(await probes(stream(["back"]))).toHaveLength(1);
    expect(states(id)).not.toContain("open");
    expect(states(id)).not.toContain("half_open");
  });

  test("what nobody called for ten minutes is asked where its model has traffic, and only there", async () => {
    const first = await channel("busy", { priority: 9 });
    const { model } = first;
    await g.app.createChannel({ baseUrl: g.upstream.url, models: `${model},never-asked`, key: "idle" });
    for (let minutes = 0; minutes <= 10; minutes += 5) {
      expect(await call(model)).toBe(200);
      expect(await probes()).toEqual([]);
      clock.advance(5 * MINUTE_MS);
    }
    const asked = await probes();
    expect(asked.map((request) => [keyOf(request), request.json()["model"]])).toEqual([["idle", model]]);
    // A probe warms as a call does.
    clock.advance(MINUTE_MS);
    expect(await call(model)).toBe(200);
    expect(await probes()).toEqual([]);
    clock.advance(9 * MINUTE_MS);
    expect((await probes()).map(keyOf)).toEqual(["idle"]);
    // One that is dead is found out within minutes, before a user meets it.
    const dead = g.app.deps.routing.tiers("default", model).at(-1)?.entries[0]?.channel.id ?? 0;
    clock.advance(9 * MINUTE_MS);
    expect(await call(model)).toBe(200);
    for (const state of ["closed", "closed", "open"] as const) {
      clock.advance(MINUTE_MS);
      expect((await probes(refuse(503))).map(keyOf)).toEqual(["idle"]);
      expect(states(dead)).toEqual([state]);
    }
    clock.advance(MINUTE_MS);
    expect((await probes(stream(["back"]))).map(keyOf)).toEqual(["idle"]);
    expect(states(dead)).toEqual([]);
    // The model itself is forgotten.
    clock.advance(11 * MINUTE_MS);
    expect(await probes()).toEqual([]);
  });

  test("the budget of the day ends them, the next day opens them again; 0 is none at all", async () => {
    const { id } = await opened();
    await g.setOption("relay.probe_max_quota_per_day", "0");
    expect(await probes(refuse(500))).toEqual([]);
    await g.setOption("relay.probe_max_quota_per_day", "1");
    expect(await probes(refuse(500))).toEqual([]);
    await g.setOption("relay.probe_max_quota_per_day", "1000000");
    expect(await probes(refuse(500))).toHaveLength(1);
    const { marks } = g.app.deps.db.t;
    const used = async () =>
      (await g.app.deps.db.orm.select().from(marks)).filter(({ key }) => key.startsWith("probe_quota:"));
    const [spent, ...older] = await used();
    expect(older).toEqual([]);
    const one = spent?.value ?? 0;
    expect(one).toBeGreaterThan(1);
    await g.setOption("relay.probe_max_quota_per_day", String(2 * one));
    clock.advance(MINUTE_MS);
    expect(await probes(refuse(500))).toHaveLength(1);
    clock.advance(MINUTE_MS);
    expect(await probes(refuse(500))).toEqual([]);
    expect(states(id)).toEqual(["half_open"]);
    clock.advance(24 * 60 * MINUTE_MS);
    const later = await opened();
    const [probe] = await probes(stream(["back"]));
    expect(probe?.json()["model"]).toBe(later.model);
    expect(states(later.id)).not.toContain("open");
    // What nobody asked for meanwhile is forgotten.
    expect(states(id)).toEqual([]);
    expect(await used()).toMatchObject([{ value: one }]);
  });

  test("live calls outrank probes: what failed meanwhile stays open, what served meanwhile is not opened", async () => {
    const { id, model } = await opened();
    const door = gate();
    g.upstream.always((request) =>
      request.json()["stream"] === true ? { ...stream(["late"]), before: door } : refuse(500),
    );
    const probing = watch().warm();
    await g.upstream.request(0);
    // Where everybody rests the call goes there all the same.
    expect(await call(model)).toBe(500);
    door.open();
    await probing;
    expect(states(id)).toEqual(["open"]);

    clock.advance(3 * MINUTE_MS);
    const late = gate();
    g.upstream.reset();
    g.upstream.always((request) =>
      request.json()["stream"] === true ? { ...refuse(500), before: late } : answer("live"),
    );
    const failing = watch().warm();
    await g.upstream.request(0);
    expect(await call(model)).toBe(200);
    late.open();
    await failing;
    expect(states(id)).not.toContain("open");
    const found = g.app.deps.routing.channel(id);
    const [cell] = found ? g.app.deps.picker.cells(found, clock.monotonicMs()) : [];
    expect(cell?.failures ?? 0).toBe(0);
  });

  test("a key with which alone a model fails is tried by itself, whatever its channel's other keys do meanwhile", async () => {
    const { id, model } = await channel("bad\ngood");
    const isBad = (request: RecordedRequest): Script =>
      keyOf(request) === "bad" ? refuse(500) : answer("ok");
    g.upstream.always(isBad);
    const restsOf = (index: number) => {
      const found = g.app.deps.routing.channel(id);
      return found && g.app.deps.keyring.restOf(found, index, model, clock.monotonicMs())?.reason;
    };
    await until(async () => {
      await call(model);
      return restsOf(0) === "down" || undefined;
    });
    expect(restsOf(1)).toBeUndefined();
    expect((await probes(isBad)).map(keyOf)).toEqual(["bad"]);
    // Once a minute; and it is still the key's own matter.
    clock.advance(MINUTE_MS - 1);
    expect(await probes(isBad)).toEqual([]);
    clock.advance(1);
    expect((await probes(isBad)).map(keyOf)).toEqual(["bad"]);
    expect([restsOf(0), restsOf(1)]).toEqual(["down", undefined]);
    expect(states(id)).not.toContain("open");
    // What the other key serves meanwhile says nothing of this one.
    clock.advance(MINUTE_MS);
    const door = gate();
    const mended = (request: RecordedRequest): Script =>
      keyOf(request) === "bad" ? { ...stream(["back"]), before: door } : answer("ok");
    g.upstream.requests.length = 0;
    g.upstream.always(mended);
    const probing = watch().warm();
    await g.upstream.request(0);
    expect(await call(model)).toBe(200);
    door.open();
    await probing;
    expect(g.upstream.requests.map(keyOf)).toEqual(["bad", "good"]);
    expect(restsOf(0)).toBeUndefined();
    g.upstream.always(answer("ok"));
    for (let calls = 0; calls < 2; calls++) await call(model);
    expect(g.upstream.requests.slice(2).map(keyOf).toSorted()).toEqual(["bad", "good"]);
  });

  test("a key that went off is asked for by the list of models; by a call where its account was used up", async () => {
    const { id, model } = await channel("refused\nworks");
    const keyStates = () => g.app.deps.routing.channel(id)?.keyRows.map(({ status }) => status);
    const goesOff = async (message: string) => {
      g.upstream.always((request) =>
        keyOf(request) === "works" ? answer("ok") : refuse(401, { error: { message } }),
      );
      await until(async () => {
        await call(model);
        return keyStates()?.[0] === KeyStatus.autoOff || undefined;
      });
      g.upstream.reset();
      // It has served no call since its list brought it back: the second time it is left alone for longer.
      clock.advance(11 * MINUTE_MS);
      await watch().probeOffKeys();
      return g.upstream.requests.map(({ method, url }) => `${method} ${url}`);
    };
    expect(await goesOff("Incorrect key")).toEqual(["GET /v1/models"]);
    expect(keyStates()).toEqual([KeyStatus.on, KeyStatus.on]);
    expect(await goesOff("You exceeded your current quota")).toEqual(["POST /v1/chat/completions"]);
    expect(keyStates()).toEqual([KeyStatus.on, KeyStatus.on]);
    const { channelKeys } = g.app.deps.db.t;
    const rows = await g.app.deps.db.orm.select().from(channelKeys).where(eq(channelKeys.channelId, id));
    expect(rows.map(({ probes: count }) => count)).toEqual([0, 0]);
  });
});
