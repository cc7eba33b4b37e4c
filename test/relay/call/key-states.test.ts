// Keys as rows: off by themselves and back unaided, deleted under a call, capped, shared by equal accounts; on both databases.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { and, eq, sql } from "drizzle-orm";
import { audit } from "../../../src/core/ledger/audit.ts";
import { ChannelStatus, KeyStatus, LogType } from "../../../src/shared/enums.ts";
import { answer, gate, refuse } from "../../support/fake-upstream.ts";
import { startGateway, until } from "../support.ts";
import type { Gateway } from "../support.ts";

describe.each(["sqlite", "postgres"] as const)("keys of a channel on %s", (database) => {
  let g: Gateway;
  let serial = 0;
  let nowMs = Date.UTC(2026, 10, 20);

  beforeAll(async () => {
    g = await startGateway({ database, clock: { nowMs: () => nowMs } });
    await g.setOption("SelfUseModeEnabled", "true");
    await g.setOption("AutomaticDisableChannelEnabled", "true");
    await g.setOption("AutomaticEnableChannelEnabled", "true");
    await g.setOption("RetryTimes", "3");
    await g.setOption("ErrorLogEnabled", "true");
    // Tests of channels are made in root's name.
    await g.app.createUser({ role: 100 });
  });
  afterAll(() => g.close());
  beforeEach(() => g.upstream.reset());

  async function channel(keys: string[], fields: Record<string, unknown> = {}) {
    const model = `keyed-${++serial}`;
    const id = await g.app.createChannel({
      baseUrl: g.upstream.url,
      models: model,
      key: keys.join("\n"),
      ...fields,
    });
    return { id, model };
  }
  const parsed = (id: number) => {
    const found = g.app.deps.routing.channel(id);
    if (!found) throw new Error("no channel");
    return found;
  };
  const states = (id: number) => parsed(id).keyRows.map(({ status }) => status);
  const keysAsked = () =>
    g.upstream.requests.map(({ headers }) => String(headers["authorization"]).slice("Bearer ".length));
  async function call(model: string): Promise<Response> {
    const response = await g.chat({ model });
    await response.text();
    return response;
  }
  const manage = async (id: number, action: string, rest: object = {}) => {
    const admin = await g.app.createUser({ role: 10 });
    const body = { channel_id: id, action, ...rest };
    return g.app.call<{ success: boolean; code?: string; data: { changed: number; keys: object[] } }>(
      "POST",
      "/api/channel/multi_key/manage",
      body,
      admin,
    );
  };

  test("all keys 401: the channel goes off, is not called, and comes back unaided with the first that works", async () => {
    const { id, model } = await channel(["bad-key-one", "bad-key-two"]);
    g.upstream.always(refuse(401, { error: { message: "Incorrect key bad-key-one" } }));
    expect((await call(model)).status).toBe(502);
    await until(() => Promise.resolve(parsed(id).status === ChannelStatus.autoDisabled || undefined));
    expect(states(id)).toEqual([KeyStatus.autoOff, KeyStatus.autoOff]);
    expect(
      parsed(id)
        .keyRows.map(({ reason }) => reason)
        .join(),
    ).not.toContain("bad-key");
    const asked = g.upstream.requests.length;
    expect((await call(model)).status).toBe(503);
    const { watch } = g.app.services.gateway;
    await watch.probeOffKeys();
    expect(g.upstream.requests.length).toBe(asked);
    // Five minutes later both are tried, and again ten minutes after that.
    nowMs += 301_000;
    await watch.probeOffKeys();
    expect(g.upstream.requests.length).toBe(asked + 2);
    nowMs += 301_000;
    await watch.probeOffKeys();
    expect(g.upstream.requests.length).toBe(asked + 2);
    g.upstream.reset();
    nowMs += 300_000;
    await watch.probeOffKeys();
    expect(states(id)).toEqual([KeyStatus.on, KeyStatus.on]);
    expect(parsed(id).status).toBe(ChannelStatus.enabled);
    expect((await call(model)).status).toBe(200);
  });

  test("a key that stays refused is tried ever more rarely: after five minutes, and six hours at most", async () => {
    const { id, model } = await channel(["tried-in-vain", "works"]);
    g.upstream.always(({ headers }) =>
      String(headers["authorization"]).endsWith("works") ? answer("hi") : refuse(401),
    );
    await call(model);
    await until(() => Promise.resolve(states(id)[0] === KeyStatus.autoOff || undefined));
    const { watch } = g.app.services.gateway;
    g.upstream.reset();
    g.upstream.always(refuse(401));
    for (const minutes of [5, 10, 20, 40, 80, 160, 320, 360, 360]) {
      nowMs += minutes * 60_000 - 1000;
      await watch.probeOffKeys();
      expect(keysAsked()).toEqual([]);
      nowMs += 1000;
      await watch.probeOffKeys();
      expect(keysAsked()).toEqual(["tried-in-vain"]);
      g.upstream.requests.length = 0;
    }
    expect(states(id)).toEqual([KeyStatus.autoOff, KeyStatus.on]);
    // Only where the operator wants it.
    await g.setOption("AutomaticEnableChannelEnabled", "false");
    nowMs += 24 * 3_600_000;
    await watch.probeOffKeys();
    expect(keysAsked()).toEqual([]);
    await g.setOption("AutomaticEnableChannelEnabled", "true");
    await manage(id, "delete_key", { key_index: 0 });
  });

  test("a key whose list of models is answered and whose calls are refused comes back ever more rarely, until one is served", async () => {
    const { id, model } = await channel(["lists-alone"]);
    const { watch } = g.app.services.gateway;
    const isOff = () => until(() => Promise.resolve(states(id)[0] === KeyStatus.autoOff || undefined));
    const refused = refuse(403, { error: { message: "no", type: "permission_error" } });
    const list = { steps: [JSON.stringify({ data: [{ id: model }] })] };
    const listAlone = () => g.upstream.always(({ method }) => (method === "GET" ? list : refused));
    listAlone();
    for (const minutes of [5, 10, 20]) {
      await call(model);
      await isOff();
      nowMs += minutes * 60_000 - 1000;
      await watch.probeOffKeys();
      expect(states(id)).toEqual([KeyStatus.autoOff]);
      nowMs += 1000;
      await watch.probeOffKeys();
      expect(states(id)).toEqual([KeyStatus.on]);
      nowMs += 60_000;
    }
    g.upstream.reset();
    expect((await call(model)).status).toBe(200);
    await g.app.deps.ledger.flush();
    listAlone();
    nowMs += 60_000;
    await call(model);
    await isOff();
    nowMs += 300_000;
    await watch.probeOffKeys();
    expect(states(id)).toEqual([KeyStatus.on]);
    await manage(id, "disable_all_keys");
  });

  test("a key that is off by hand is never called, and its channel goes off with the last one", async () => {
    const { id, model } = await channel(["stays", "leaves"]);
    expect((await manage(id, "disable_key", { key_index: 1 })).body.data.changed).toBe(1);
    for (let i = 0; i < 4; i++) expect((await call(model)).status).toBe(200);
    expect(new Set(keysAsked())).toEqual(new Set(["stays"]));
    await manage(id, "disable_all_keys");
    expect(parsed(id).status).toBe(ChannelStatus.autoDisabled);
    nowMs += 3_600_000;
    await g.app.services.gateway.watch.probeOffKeys();
    expect(states(id)).toEqual([KeyStatus.off, KeyStatus.off]);
    await manage(id, "enable_key", { key_index: 1 });
    expect(parsed(id).status).toBe(ChannelStatus.enabled);
    expect((await call(model)).status).toBe(200);
    expect(keysAsked().at(-1)).toBe("leaves");
  });

  test("a key deleted while it serves is paid for by its channel: the audit finds no difference", async () => {
    const { id, model } = await channel(["k1", "k2", "k3", "k4", "k5"]);
    const door = gate();
    for (let i = 0; i < 2; i++) await call(model);
    g.upstream.script({ ...answer("hi"), before: door });
    const pending = call(model);
    await until(() => Promise.resolve(keysAsked().at(-1) === "k3" || undefined));
    expect((await manage(id, "delete_key", { key_index: 2 })).body.data.keys).toHaveLength(4);
    door.open();
    expect((await pending).status).toBe(200);
    await g.app.deps.ledger.flush();
    expect(parsed(id).keys).toEqual(["k1", "k2", "k4", "k5"]);
    expect((await audit(g.app.deps.db)).differences).toEqual([]);
    const { channelKeys } = g.app.deps.db.t;
    const rows = await g.app.deps.db.orm.select().from(channelKeys).where(eq(channelKeys.channelId, id));
    expect(rows.filter(({ lastUsed }) => lastUsed > 0)).toHaveLength(2);
    // One unit too many at a key, and the audit names the channel.
    const used = rows.reduce((sum, { usedQuota }) => sum + usedQuota, 0);
    const add = (units: number) =>
      g.app.deps.db.orm
        .update(channelKeys)
        .set({ usedQuota: sql`${channelKeys.usedQuota} + ${units}` })
        .where(and(eq(channelKeys.channelId, id), eq(channelKeys.pos, 0)));
    await add(1);
    expect(used).toBeGreaterThan(0);
    expect((await audit(g.app.deps.db)).differences).toMatchObject([
      { what: "channel_keys.used_quota", id: String(id) },
    ]);
    await add(-1);
  });

  test("the row of a failed attempt names the key that failed, and why; the key itself never", async () => {
    const { id, model } = await channel(["row-key-one", "row-key-two"], { autoBan: 0 });
    g.upstream.script(refuse(401, { error: { message: "Incorrect key row-key-one" } }));
    expect((await call(model)).status).toBe(200);
    const rows = (await g.logs()).filter(({ modelName }) => modelName === model);
    const infoOf = (type: number) => rows.find((row) => row.type === type)?.other["admin_info"];
    const [one, two] = parsed(id).keyRows;
    expect(infoOf(LogType.error)).toMatchObject({
      is_multi_key: true,
      multi_key_index: 0,
      key_id: one?.id,
      upstream_text: expect.stringContaining("Incorrect key"),
    });
    expect(infoOf(LogType.consume)).toMatchObject({
      is_multi_key: true,
      multi_key_index: 1,
      key_id: two?.id,
    });
    expect(JSON.stringify(rows)).not.toContain("row-key");
  });

  test("cap 2 and twenty calls at once: never three in flight, and nobody fails who may wait", async () => {
    await g.setOption("relay.queue_ms", "60000");
    const { id, model } = await channel(["one"], { maxConcurrency: 2 });
    const doors = Array.from({ length: 20 }, () => gate());
    let asked = 0;
    g.upstream.always(() => ({ ...answer("hi"), before: doors[asked++] ?? gate() }));
    const calls = doors.map(() => call(model));
    for (const [index, door] of doors.entries()) {
      await until(() => Promise.resolve(asked > index || undefined));
      // Whoever came in is held at the door: no more than two have been let through beyond those that left.
      expect(asked).toBeLessThanOrEqual(index + 2);
      expect(g.app.deps.caps.useOf(parsed(id).keyRows[0]?.id ?? 0).inFlight).toBeLessThanOrEqual(2);
      door.open();
    }
    const answers = await Promise.all(calls);
    expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(200));
    await g.setOption("relay.queue_ms", "0");
  });

  test("full and no time to wait: 429 with Retry-After, no failure of the channel, no retry spent", async () => {
    const { id, model } = await channel(["one"], { rpmLimit: 1 });
    expect((await call(model)).status).toBe(200);
    const refused = await g.chat({ model });
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(await refused.text()).toContain("channel_capacity_exhausted");
    expect(keysAsked()).toEqual(["one"]);
    expect(parsed(id).status).toBe(ChannelStatus.enabled);
  });
});
