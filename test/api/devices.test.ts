// Devices: what an account sees of its sessions, signing them out on this node and on another.
// Refuses fixed waits: the other node is asked again and again until it obeys or its second is over.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { createTestDatabase, DATABASE_KINDS } from "../support/postgres.ts";

interface Device {
  id: string;
  current: boolean;
  device: string;
}
interface Envelope {
  success: boolean;
  code?: string;
  data?: Device[];
}
const CHROME =
  "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36";

describe.each(DATABASE_KINDS)("on %s", (database) => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp({ database });
  });
  afterAll(() => app.close());

  const ask = (method: string, path: string, as: TestUser) => app.call<Envelope>(method, path, undefined, as);
  const list = async (as: TestUser) => (await ask("GET", "/api/user/sessions", as)).body.data ?? [];
  const elsewhere = (user: TestUser, userAgent: string) =>
    app.deps.sessions.open({
      userId: user.id,
      sessionVersion: 1,
      method: "password",
      ip: "203.0.113.9",
      userAgent,
    });
  const isLive = async (id: string) => (await app.deps.sessions.find(id)) !== undefined;

  test("this one stands first, by browser and system, and no answer holds an id of a session", async () => {
    const user = await app.createUser();
    const ids = [await elsewhere(user, CHROME), await elsewhere(user, "")];
    const answer = await ask("GET", "/api/user/sessions", user);
    const [here, ...others] = answer.body.data ?? [];
    expect(here?.current).toBe(true);
    expect(others.map(({ current, device }) => [current, device]).sort()).toEqual([
      [false, ""],
      [false, "Chrome 131 · Windows"],
    ]);
    for (const id of ids) expect(answer.text).not.toContain(id);
  });

  test("one is signed out; a foreign device, an ended one and a session's own id answer alike", async () => {
    const user = await app.createUser();
    const stranger = await app.createUser();
    const id = await elsewhere(user, CHROME);
    const shown = (await list(user)).find(({ current }) => !current)?.id ?? "";
    for (const [as, path] of [
      [stranger, shown],
      [user, id],
      [user, "0".repeat(32)],
    ] as const)
      expect((await ask("DELETE", `/api/user/sessions/${path}`, as)).body.code).toBe("session_missing");
    expect(await isLive(id)).toBe(true);
    expect((await ask("DELETE", `/api/user/sessions/${shown}`, user)).body.success).toBe(true);
    expect(await isLive(id)).toBe(false);
    expect((await ask("DELETE", `/api/user/sessions/${shown}`, user)).body.code).toBe("session_missing");
    expect(await list(user)).toHaveLength(1);
  });

  test("all others are signed out and forgotten, this one goes on", async () => {
    const user = await app.createUser();
    const ids = [await elsewhere(user, CHROME), await elsewhere(user, "curl/8.5")];
    const { userDevices } = app.deps.db.t;
    await app.deps.db.orm.insert(userDevices).values({ userId: user.id, hash: "h", lastSeenAt: 1 });
    expect((await ask("POST", "/api/user/sessions/revoke-others", user)).body.success).toBe(true);
    for (const id of ids) expect(await isLive(id)).toBe(false);
    expect((await list(user)).map(({ current }) => current)).toEqual([true]);
    const known = await app.deps.db.orm.select().from(userDevices).where(eq(userDevices.userId, user.id));
    expect(known).toEqual([]);
  });

  test("an administrator signs out lower ranks everywhere, and nobody else", async () => {
    const admin = await app.createUser({ role: 10 });
    const peer = await app.createUser({ role: 10 });
    const user = await app.createUser();
    const revoke = (id: number, as: TestUser) => ask("POST", `/api/user/${id}/sessions/revoke`, as);
    expect((await revoke(peer.id, admin)).body.code).toBe("user_rank_update");
    expect((await revoke(peer.id, user)).body.success).toBe(false);
    expect((await revoke(999_999, admin)).body.code).toBe("user_missing");
    expect((await revoke(user.id, admin)).body.success).toBe(true);
    expect((await ask("GET", "/api/user/sessions", user)).status).toBe(401);
    expect((await ask("GET", "/api/user/sessions", peer)).status).toBe(200);
  });
});

test("a device that is signed out on one node is out on the other within a second", async () => {
  const database = await createTestDatabase("postgres");
  const env = { DATABASE_URL: database.databaseUrl ?? "", ENCRYPTION_KEY: "one key for both nodes" };
  const one = await startTestApp({ env });
  const two = await startTestApp({ env });
  try {
    const user = await one.createUser();
    const opened = {
      userId: user.id,
      sessionVersion: 1,
      method: "password",
      ip: "",
      userAgent: CHROME,
    } as const;
    const id = await one.deps.sessions.open(opened);
    expect(await two.deps.sessions.find(id)).toBeDefined();
    const answer = await one.call<Envelope>("POST", "/api/user/sessions/revoke-others", undefined, user);
    expect(answer.body.success).toBe(true);
    const start = performance.now();
    while ((await two.deps.sessions.find(id)) !== undefined && performance.now() - start < 1000)
      await new Promise((resolve) => setImmediate(resolve));
    expect(await two.deps.sessions.find(id)).toBeUndefined();
    // This one goes on there too.
    expect((await two.call("GET", "/api/user/sessions", undefined, user)).status).toBe(200);
  } finally {
    await one.close();
    await two.close();
    await database.drop();
  }
}, 30_000);
