// Groups of realtime sessions, on both databases: a session stays in the group whose channel opened it, every turn is charged
// at that group's ratio for its user, and ends where the group is closed.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { audit } from "../../../src/core/ledger/audit.ts";
import { GREETING, REALTIME_USAGE, responseDone } from "../../support/fake-realtime.ts";
import type { RealtimeConnection } from "../../support/fake-realtime.ts";
import { DATABASE_KINDS } from "../../support/postgres.ts";
import { replayLog } from "../../support/replayed.ts";
import { MODEL, startRealtimeGateway } from "./support.ts";
import type { RealtimeGateway, SocketClient } from "./support.ts";

/** As in realtime.test.ts, at ratio 1. */
const TURN_UNITS = (55 + 32 + 13 * 8 + 30 * 4 + 91 * 16) * 2.5;

describe.each(DATABASE_KINDS)("groups of sessions on %s", (database) => {
  let g: RealtimeGateway;
  let key = "";
  beforeAll(async () => {
    g = await startRealtimeGateway({ database, channel: { group: "cheap", key: "cheap" } });
    await g.app.createChannel({ baseUrl: g.upstream.url, models: MODEL, group: "dear", key: "dear" });
    key = (await g.app.createToken(g.user.id, { group: "auto" })).key;
  });
  afterAll(() => g.close());
  beforeEach(async () => {
    await set({
      GroupRatio: { default: 1, cheap: 0.5, dear: 3 },
      UserUsableGroups: { default: "", cheap: "", dear: "" },
      AutoGroups: ["cheap", "dear"],
      GroupGroupRatio: { default: { dear: 2 } },
    });
    await g.setOption("RetryTimes", "2");
  });
  afterEach(async () => {
    await g.app.deps.ledger.flush();
    expect((await audit(g.app.deps.db)).differences).toEqual([]);
    expect((await replayLog(g.app.deps)).differences).toEqual([]);
  });

  async function set(options: Record<string, unknown>): Promise<void> {
    for (const [name, value] of Object.entries(options)) await g.setOption(name, JSON.stringify(value));
  }

  async function session(by = key): Promise<{ client: SocketClient; peer: RealtimeConnection }> {
    const client = await g.open({ key: by });
    const peer = await g.upstream.connections.next();
    expect(await client.next()).toEqual(GREETING);
    return { client, peer };
  }

  async function turn({ client, peer }: Awaited<ReturnType<typeof session>>, id: string) {
    peer.say({ type: "response.created", response: { id } });
    peer.say(responseDone(id, REALTIME_USAGE));
    await client.nextOf("response.done");
    return (await g.logs()).at(-1);
  }

  test("the first group serves; when it refuses the next does, at its own ratio for the user", async () => {
    const first = await session();
    expect(await turn(first, "a")).toMatchObject({
      quota: Math.round(TURN_UNITS / 2),
      group: "cheap",
      other: { auto: true, group_ratio: 0.5 },
    });
    first.client.socket.close(1000);
    await first.peer.closed;
    g.upstream.refuse(500);
    const second = await session();
    expect(second.peer.headers.get("authorization")).toBe("Bearer dear");
    expect(await turn(second, "b")).toMatchObject({
      quota: TURN_UNITS * 2,
      group: "dear",
      other: { auto: true, group_ratio: 2, user_group_ratio: 2 },
    });
    second.client.socket.close(1000);
    await second.peer.closed;
  });

  test("a session whose group is closed is refused its next turn", async () => {
    const open = await session();
    const row = await turn(open, "c");
    await set({ UserUsableGroups: { default: "" } });
    open.peer.say({ type: "response.created", response: { id: "d" } });
    open.peer.say(responseDone("d", REALTIME_USAGE));
    expect((await open.client.closed).code).toBe(1008);
    await open.peer.closed;
    expect(row?.group).toBe("cheap");
  });

  test("an idle session ends when its group is closed, its key loses group or address, or its owner is disabled, though its turn holds all the key had", async () => {
    const { accounts, db } = g.app.deps;
    const { tokens, users } = db.t;
    const member = await g.app.createUser({ group: "dear", quota: 500_000_000 });
    const owner = eq(users.id, member.id);
    const change = async (set: Partial<typeof tokens.$inferInsert>, id: number) => {
      await db.orm.update(tokens).set(set).where(eq(tokens.id, id));
      await accounts.tokenChanged(id);
    };
    const changeOwner = async (set: Partial<typeof users.$inferInsert>) => {
      await db.orm.update(users).set(set).where(owner);
      await accounts.userChanged(member.id);
    };
    const made = {
      moved: await g.app.createToken(member.id, { group: "dear" }),
      barred: await g.app.createToken(member.id),
      paid: await g.app.createToken(member.id, { remainQuota: 100_000_000 }),
      grouped: await g.app.createToken(member.id),
    };
    const opened = {
      moved: await session(made.moved.key),
      barred: await session(made.barred.key),
      paid: await session(made.paid.key),
      grouped: await session(made.grouped.key),
      closed: await session(),
    };
    const ends = async (which: keyof typeof opened) => {
      const end = await opened[which].client.closed;
      await opened[which].peer.closed;
      return end;
    };
    // Changes that leave a session all it has end none.
    await change({ allowIps: "127.0.0.0/8\n::1" }, made.barred.id);
    await change({ remainQuota: 0, quotaBase: 0 }, made.paid.id);
    await turn(opened.barred, "e");
    await change({ group: "cheap" }, made.moved.id);
    await change({ allowIps: "192.0.2.1" }, made.barred.id);
    expect(await ends("moved")).toEqual({ code: 1008, reason: "token_group_disabled" });
    expect(await ends("barred")).toEqual({ code: 1008, reason: "ip_not_allowed" });
    await change({ group: "dear" }, made.paid.id);
    await changeOwner({ group: "cheap" });
    expect(await ends("grouped")).toEqual({ code: 1008, reason: "token_group_disabled" });
    await set({ UserUsableGroups: { default: "" } });
    await changeOwner({ status: 2 });
    expect(await ends("closed")).toMatchObject({ code: 1008 });
    expect(await ends("paid")).toEqual({ code: 1008, reason: "user_banned" });
  });

  test("no group with a channel: the handshake is refused as for any key", async () => {
    await set({ AutoGroups: ["default"] });
    expect((await g.refused({ key })).status).toBe(404);
    await set({ AutoGroups: [] });
    expect((await g.refused({ key })).status).toBe(403);
  });
});
