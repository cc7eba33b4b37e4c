// Sessions: a row for each sign-in, what ends which of them, on one node and on two.
// Refuses fixed waits: another node is asked again and again until it obeys or its second is over.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { untilSo } from "../support/turns.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { testClock } from "../support/clock.ts";
import type { TestClock } from "../support/clock.ts";
import { createTestDatabase, DATABASE_KINDS } from "../support/postgres.ts";

const PASSWORD = "correct horse";
const DAY_MS = 24 * 3600 * 1000;

interface Envelope {
  success: boolean;
  code?: string;
  data?: Record<string, unknown>;
}

function cookieOf(headers: Headers, name: string): string | undefined {
  const line = headers.getSetCookie().find((each) => each.startsWith(`${name}=`));
  return line?.split(";")[0];
}

async function signIn(
  app: TestApp,
  username: string,
  password = PASSWORD,
  cookies = "",
): Promise<TestUser & { device: string | undefined }> {
  const answer = await app.call<Envelope>(
    "POST",
    "/api/user/login",
    { username, password },
    {
      id: 0,
      username,
      headers: { cookie: cookies, "user-agent": "a browser" },
    },
  );
  expect(answer.body).toMatchObject({ success: true });
  const id = Number(answer.body.data?.["id"]);
  const cookie = cookieOf(answer.headers, "session") ?? "";
  return {
    id,
    username,
    headers: { cookie, "new-api-user": String(id) },
    device: cookieOf(answer.headers, "device"),
  };
}

const statusOf = async (app: TestApp, as: TestUser): Promise<number> =>
  (await app.call("GET", "/api/user/self", undefined, as)).status;

describe.each(DATABASE_KINDS)("on %s", (database) => {
  let app: TestApp;
  let clock: TestClock;
  let root: TestUser;
  let serial = 0;

  beforeAll(async () => {
    clock = testClock();
    app = await startTestApp({ database, clock });
    root = await app.createUser({ role: 100 });
  });
  afterAll(() => app.close());

  async function account(): Promise<string> {
    const username = `person${++serial}`;
    const made = await app.call<Envelope>("POST", "/api/user/", { username, password: PASSWORD }, root);
    expect(made.body).toMatchObject({ success: true });
    return username;
  }

  const rowsOf = (userId: number) => {
    const { sessions } = app.deps.db.t;
    return app.deps.db.orm.select().from(sessions).where(eq(sessions.userId, userId));
  };

  test("a sign-out ends its own session, also for a copied cookie, and no other one", async () => {
    const name = await account();
    const one = await signIn(app, name);
    const two = await signIn(app, name);
    expect(one.headers["cookie"]).not.toBe(two.headers["cookie"]);
    expect([await statusOf(app, one), await statusOf(app, two)]).toEqual([200, 200]);
    const out = await app.call<Envelope>("GET", "/api/user/logout", undefined, one);
    expect(out.body.success).toBe(true);
    expect(out.headers.get("set-cookie")).toContain("session=; Max-Age=0");
    expect([await statusOf(app, one), await statusOf(app, two)]).toEqual([401, 200]);
    const page = await fetch(`${app.url}/token`, { headers: one.headers, redirect: "manual" });
    expect([page.status, page.headers.get("location")]).toEqual([302, "/setup"]);
    expect((await rowsOf(one.id)).map((row) => row.reason).sort()).toEqual(["", "signed_out"]);
  });

  test("a row says by what, from where and in which browser somebody signed in", async () => {
    const session = await signIn(app, await account());
    const [row] = await rowsOf(session.id);
    expect(row).toMatchObject({
      method: "password",
      ip: "127.0.0.1",
      lastIp: "127.0.0.1",
      userAgent: "a browser",
      sessionVersion: 1,
      revokedAt: null,
      expiresAt: Math.floor(clock.nowMs() / 1000) + 30 * 24 * 3600,
    });
    expect(row?.id).toMatch(/^[0-9a-f]{32}$/);
  });

  test("a sign-out that another site asks for does nothing", async () => {
    const session = await signIn(app, await account());
    const foreign: Record<string, string>[] = [
      { "sec-fetch-site": "cross-site" },
      { "sec-fetch-site": "same-site" },
      { origin: "https://evil.example" },
      { origin: "null" },
      { referer: "https://evil.example/page" },
    ];
    for (const headers of foreign) {
      const as: TestUser = { ...session, headers: { ...session.headers, ...headers } };
      const answer = await app.call<Envelope>("GET", "/api/user/logout", undefined, as);
      expect([answer.status, answer.body.code]).toEqual([403, "foreign_site"]);
      expect(answer.headers.getSetCookie()).toEqual([]);
    }
    expect(await statusOf(app, session)).toBe(200);
    const own: Record<string, string>[] = [
      { "sec-fetch-site": "same-origin" },
      { "sec-fetch-site": "none" },
      { origin: app.url },
      { referer: `${app.url}/token` },
    ];
    for (const headers of own) {
      const fresh = await signIn(app, session.username);
      const as: TestUser = { ...fresh, headers: { ...fresh.headers, ...headers } };
      expect((await app.call<Envelope>("GET", "/api/user/logout", undefined, as)).body.success).toBe(true);
      expect(await statusOf(app, fresh)).toBe(401);
    }
  });

  test("a token without the id of a row, or with one that no row has or another account owns, is ended", async () => {
    const mine = await signIn(app, await account());
    const other = await signIn(app, await account());
    const [own] = await rowsOf(mine.id);
    const [foreign] = await rowsOf(other.id);
    const { Elysia } = await import("elysia");
    const { sessionTokens } = await import("../../src/http/session.ts");
    const signer = new Elysia()
      .use(sessionTokens(app.services.session.secret))
      .post("/", ({ sessionJwt, body }) => sessionJwt.sign(body as never));
    const asked = async (claims: object): Promise<number> => {
      const request = new Request("http://localhost/", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(claims),
      });
      const token = await (await signer.handle(request)).text();
      return statusOf(app, { ...mine, headers: { ...mine.headers, cookie: `session=${token}` } });
    };
    const claims = { sub: String(mine.id), sv: 1 };
    expect(await asked({ ...claims, sid: own?.id })).toBe(200);
    expect(await asked(claims)).toBe(401);
    expect(await asked({ ...claims, sid: "0".repeat(32) })).toBe(401);
    expect(await asked({ ...claims, sid: foreign?.id })).toBe(401);
    expect(await asked({ ...claims, sid: 7 })).toBe(401);
    expect(await asked({ ...claims, sv: 2, sid: own?.id })).toBe(401);
  });

  test("a changed password ends all other sessions and forgets all other browsers; this one goes on", async () => {
    const name = await account();
    const here = await signIn(app, name);
    const elsewhere = await signIn(app, name);
    const { userDevices } = app.deps.db.t;
    const devices = () => app.deps.db.orm.select().from(userDevices).where(eq(userDevices.userId, here.id));
    expect(await devices()).toHaveLength(2);
    const cookie = `${here.headers["cookie"]}; ${here.device}`;
    const changed = await app.call<Envelope>(
      "PUT",
      "/api/user/self",
      { original_password: PASSWORD, password: "another horse" },
      { ...here, headers: { ...here.headers, cookie } },
    );
    expect(changed.body.success).toBe(true);
    const renewed = cookieOf(changed.headers, "session") ?? "";
    const now = { ...here, headers: { ...here.headers, cookie: renewed } };
    expect([await statusOf(app, now), await statusOf(app, here), await statusOf(app, elsewhere)]).toEqual([
      200, 401, 401,
    ]);
    expect((await rowsOf(here.id)).map((row) => [row.sessionVersion, row.reason]).sort()).toEqual([
      [1, "password"],
      [2, ""],
    ]);
    expect(await devices()).toHaveLength(1);
    // The renewed session is the same one: its sign-out ends it.
    await app.call("GET", "/api/user/logout", undefined, now);
    expect(await statusOf(app, now)).toBe(401);
  });

  test("what an administrator does to an account ends all its sessions, and their rows say why", async () => {
    const acts: [string, string, (id: number) => object, number][] = [
      ["banned", "/api/user/manage", (id) => ({ id, action: "disable" }), 0],
      ["role", "/api/user/manage", (id) => ({ id, action: "promote" }), 1],
      ["deleted", "/api/user/manage", (id) => ({ id, action: "delete" }), 0],
      ["password", "/api/user/", (id) => ({ id, password: "another horse" }), 0],
    ];
    const { userDevices } = app.deps.db.t;
    for (const [reason, path, body, devicesLeft] of acts) {
      const session = await signIn(app, await account());
      const made = await app.call<{ data: string }>("GET", "/api/user/token", undefined, session);
      const byToken = { authorization: made.body.data, "new-api-user": String(session.id) };
      const method = path.endsWith("manage") ? "POST" : "PUT";
      const answer = await app.call<Envelope>(method, path, body(session.id), root);
      expect(answer.body).toMatchObject({ success: true });
      expect(await statusOf(app, session)).toBe(401);
      expect((await rowsOf(session.id)).map((row) => row.reason)).toEqual([reason]);
      // Whoever had the old password may have made one: a reset and a deletion end the access token, too.
      const { status } = await app.call("GET", "/api/user/self", undefined, { ...session, headers: byToken });
      expect([reason, status]).toEqual([reason, { banned: 403, role: 200 }[reason] ?? 401]);
      const devices = await app.deps.db.orm
        .select()
        .from(userDevices)
        .where(eq(userDevices.userId, session.id));
      expect([reason, devices.length]).toEqual([reason, devicesLeft]);
    }
  });

  test("an account that is removed leaves no sessions and no devices behind", async () => {
    const session = await signIn(app, await account());
    await app.call("DELETE", `/api/user/${session.id}`, undefined, root);
    expect(await statusOf(app, session)).toBe(401);
    expect(await rowsOf(session.id)).toEqual([]);
  });

  test("at most fifty live sessions: the one that was unseen for longest goes", async () => {
    const name = await account();
    const first = await signIn(app, name);
    clock.advance(600_000);
    const second = await signIn(app, name);
    clock.advance(600_000);
    // The first is used again, so the second is the one that nobody misses.
    expect(await statusOf(app, first)).toBe(200);
    await app.deps.sessions.write();
    await Promise.all(
      Array.from({ length: 49 }, () =>
        app.deps.sessions.open({
          userId: first.id,
          sessionVersion: 1,
          method: "password",
          ip: "127.0.0.1",
          userAgent: "",
        }),
      ),
    );
    const live = (await rowsOf(first.id)).filter((row) => row.revokedAt === null);
    expect(live).toHaveLength(50);
    expect([await statusOf(app, first), await statusOf(app, second)]).toEqual([200, 401]);
  });

  test("the last use is written in steps of five minutes, many sessions in one statement", async () => {
    const name = await account();
    const list = [await signIn(app, name), await signIn(app, name)];
    clock.advance(1_000_000);
    for (const session of list) await statusOf(app, session);
    const before = await rowsOf(list[0]?.id ?? 0);
    await app.deps.sessions.write();
    const now = Math.floor(clock.nowMs() / 1000);
    for (const row of await rowsOf(list[0]?.id ?? 0)) {
      expect(row.lastSeenAt).toBe(now - (now % 300));
      expect(row.lastSeenAt).toBeGreaterThan(before[0]?.lastSeenAt ?? 0);
      expect(row.lastIp).toBe("127.0.0.1");
    }
  });

  test("a session ends after thirty days, and its row goes thirty days later", async () => {
    const session = await signIn(app, await account());
    clock.advance(30 * DAY_MS - 1000);
    expect(await statusOf(app, session)).toBe(200);
    clock.advance(1000);
    expect(await statusOf(app, session)).toBe(401);
    await app.deps.sessions.purge();
    expect(await rowsOf(session.id)).toHaveLength(1);
    clock.advance(30 * DAY_MS + 1000);
    await app.deps.sessions.purge();
    expect(await rowsOf(session.id)).toEqual([]);
  });
});

test("a session costs no query once it is known, and a bounded memory forgets without ending it", async () => {
  const { createSessions } = await import("../../src/core/users/sessions.ts");
  const app = await startTestApp();
  let reads = 0;
  const orm = new Proxy(app.deps.db.orm, {
    get(target, name, receiver) {
      if (name === "select") reads++;
      return Reflect.get(target, name, receiver) as unknown;
    },
  });
  const sessions = await createSessions({ ...app.deps, db: { ...app.deps.db, orm }, maxCached: 2 });
  const open = () =>
    sessions.open({ userId: 1, sessionVersion: 1, method: "password", ip: "", userAgent: "" });
  const ids = [await open(), await open(), await open()];
  const first = ids[0] ?? "";
  for (let i = 0; i < 100; i++) expect((await sessions.find(first))?.id).toBe(first);
  expect(reads).toBe(1);
  for (const id of ids) expect((await sessions.find(id))?.id).toBe(id);
  expect((await sessions.find(first))?.id).toBe(first);
  expect(reads).toBe(4);
  await sessions.close();
  await app.close();
});

test("two nodes: a sign-out, a sign-in, a hold and a ban are in force on the other one within a second", async () => {
  const database = await createTestDatabase("postgres");
  const env = { DATABASE_URL: database.databaseUrl ?? "", ENCRYPTION_KEY: "one key for both nodes" };
  const here = await startTestApp({ env });
  const there = await startTestApp({ env });
  try {
    const root = await here.createUser({ role: 100 });
    await here.call("POST", "/api/user/", { username: "nomad", password: PASSWORD }, root);
    const within = async (isInForce: () => Promise<boolean>) => {
      const startedMs = performance.now();
      while (!(await isInForce()))
        if (performance.now() - startedMs > 1000) throw new Error("not in force after a second");
    };
    const soon = (session: TestUser, status: number) =>
      within(async () => (await statusOf(there, session)) === status);
    const ended = await signIn(here, "nomad");
    const stays = await signIn(here, "nomad");
    expect([await statusOf(there, ended), await statusOf(there, stays)]).toEqual([200, 200]);
    await here.call("GET", "/api/user/logout", undefined, ended);
    await soon(ended, 401);
    expect(await statusOf(there, stays)).toBe(200);
    const { key } = await here.createToken(stays.id);
    const refusal = async () => {
      const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
      const body = JSON.stringify({ model: "m", messages: [{ role: "user", content: "hi" }] });
      const answer = await fetch(`${there.url}/v1/chat/completions`, { method: "POST", headers, body });
      return answer.headers.get("x-weir-error-code");
    };
    const hold = (flagged: boolean) => here.call("PUT", `/api/user/${stays.id}/notes`, { flagged }, root);
    const open = await refusal();
    expect(["account_flagged", "user_disabled"]).not.toContain(open);
    await hold(true);
    await within(async () => (await refusal()) === "account_flagged");
    await hold(false);
    await within(async () => (await refusal()) === open);
    await here.call("POST", "/api/user/manage", { id: stays.id, action: "disable" }, root);
    await soon(stays, 401);
    await within(async () => (await refusal()) !== open);
    // A sign-out whose commit stands without an answer ends the session where it was asked for, too.
    const { createSessions } = await import("../../src/core/users/sessions.ts");
    let isLost = false;
    const atomic: typeof here.deps.db.atomic = async (body, way) => {
      const answer = await here.deps.db.atomic(body, way);
      if (isLost) throw new Error("the answer was lost");
      return answer;
    };
    const sessions = await createSessions({ ...here.deps, db: { ...here.deps.db, atomic } });
    const fields = { userId: root.id, sessionVersion: 1, method: "password", ip: "", userAgent: "" } as const;
    const id = await sessions.open(fields);
    expect(await sessions.find(id)).toBeDefined();
    isLost = true;
    const [signOut] = await Promise.allSettled([sessions.end(id, "signed_out")]);
    expect(signOut.status).toBe("rejected");
    await untilSo(async () => (await sessions.find(id)) === undefined);
    isLost = false;
    await sessions.close();
  } finally {
    await here.close();
    await there.close();
    await database.drop();
  }
}, 30_000);
