// Groups of realtime sessions, on both databases: a session stays in the group whose channel opened it, every turn is charged
// at that group's ratio for its user, and ends where the group is closed.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
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

  async function session(): Promise<{ client: SocketClient; peer: RealtimeConnection }> {
    const client = await g.open({ key });
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

  test("a session that is idle ends when its group is closed", async () => {
    const { client, peer } = await session();
    await set({ UserUsableGroups: { default: "" } });
    expect((await client.closed).code).toBe(1008);
    await peer.closed;
  });

  test("no group with a channel: the handshake is refused as for any key", async () => {
    await set({ AutoGroups: ["default"] });
    expect((await g.refused({ key })).status).toBe(404);
    await set({ AutoGroups: [] });
    expect((await g.refused({ key })).status).toBe(403);
  });
});
