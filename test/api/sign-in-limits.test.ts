// The limits of signing in and of the console's routes: what a stranger may try, and whom that must not lock out.
// Refuses real time: the clock is the test's, and it is also set like a machine's.
import { afterEach, beforeEach, describe, expect, spyOn, test } from "bun:test";
import { eq } from "drizzle-orm";
import { startTestApp } from "../support/app.ts";
import type { Answer, TestApp, TestUser } from "../support/app.ts";
import { FORTY_DAYS_MS, testClock } from "../support/clock.ts";
import type { TestClock } from "../support/clock.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";

const PASSWORD = "correct horse";
const MINUTE_MS = 60_000;

interface Envelope {
  success: boolean;
  code?: string;
}

let app: TestApp;
let clock: TestClock;

async function start(database: "sqlite" | "postgres", env: Record<string, string> = {}): Promise<void> {
  clock = testClock();
  app = await startTestApp({ database, clock, env: { TRUSTED_PROXIES: "127.0.0.1", ...env } });
}

/** An account whose password is quickly compared, so that hundreds of tries cost no minute. */
async function account(username: string): Promise<TestUser> {
  const user = await app.createUser({ username });
  const { users } = app.deps.db.t;
  const passwordHash = await Bun.password.hash(PASSWORD, { algorithm: "bcrypt", cost: 4 });
  await app.deps.db.orm.update(users).set({ passwordHash }).where(eq(users.id, user.id));
  return user;
}

interface Try {
  from?: string;
  password?: string;
  device?: string;
}

function attempt(
  username: string,
  { from = "203.0.113.1", password = "wrong", device = "" }: Try = {},
): Promise<Answer<Envelope>> {
  const headers = { "x-forwarded-for": from, ...(device === "" ? {} : { cookie: device }) };
  return app.call<Envelope>("POST", "/api/user/login", { username, password }, {
    id: 0,
    username,
    headers,
  } as TestUser);
}

async function wrong(count: number, username: string, tried: Try = {}): Promise<number[]> {
  const statuses: number[] = [];
  for (let i = 0; i < count; i++) statuses.push((await attempt(username, tried)).status);
  return statuses;
}

const right = (username: string, tried: Try = {}) => attempt(username, { ...tried, password: PASSWORD });

async function deviceOf(username: string, from: string): Promise<string> {
  const answer = await right(username, { from });
  const line = answer.headers.getSetCookie().find((each) => each.startsWith("device=")) ?? "";
  expect(line).toMatch(/^device=[0-9a-f]{32}\.[\w-]{43}; Max-Age=31536000; Path=\/; HttpOnly; SameSite=Lax$/);
  return line.split(";")[0] ?? "";
}

describe.each(DATABASE_KINDS)("signing in on %s", (database) => {
  beforeEach(() => start(database));
  afterEach(() => app.close());

  test("ten wrong passwords of a stranger lock out the stranger, not the owner", async () => {
    await account("owner");
    const device = await deviceOf("owner", "198.51.100.7");
    expect(await wrong(11, "owner")).toEqual([...Array.from({ length: 10 }, () => 200), 429]);
    const refused = await right("owner");
    expect([refused.status, refused.body.code]).toEqual([429, "too_many_attempts"]);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(590);
    // From another address, and from a browser that the account knows even beside the stranger.
    expect((await right("owner", { from: "198.51.100.8" })).body.success).toBe(true);
    expect((await right("owner", { device })).body.success).toBe(true);
    clock.advance(10 * MINUTE_MS);
    expect((await right("owner")).body.success).toBe(true);
  });

  test("other forms of one name or address are one count, whether or not somebody has it", async () => {
    await account("carol");
    const { users } = app.deps.db.t;
    const keys = { usernameKey: "carol", email: "carol@mail.example", emailKey: "carol@mail.example" };
    await app.deps.db.orm.update(users).set(keys).where(eq(users.username, "carol"));
    const forms: [string, string][] = [
      ["carol", "\uff43arol"],
      ["nobody1", "\uff4eobody1"],
      ["carol@mail.example", "Carol@MAIL\u3002example"],
      ["nobody@mail.example", "Nobody@MAIL\u3002example"],
    ];
    for (const [at, [first, other]] of forms.entries()) {
      const from = `203.0.113.${at + 1}`;
      expect([first, ...(await wrong(10, first, { from }))]).toEqual([
        first,
        ...Array.from({ length: 10 }, () => 200),
      ]);
      expect([first, ...(await wrong(1, other, { from }))]).toEqual([first, 429]);
    }
  });

  test("two hundred wrong ones from many addresses stop unknown devices for a quarter of an hour, known ones never", async () => {
    await account("target");
    const device = await deviceOf("target", "198.51.100.7");
    for (let i = 0; i < 20; i++) {
      const from = `203.0.113.${i}`;
      expect(new Set(await wrong(10, "target", { from }))).toEqual(new Set([200]));
    }
    const stranger = { from: "203.0.113.200" };
    const refused = await right("target", stranger);
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "900"]);
    expect((await right("target", { ...stranger, device })).body.success).toBe(true);
    clock.advance(15 * MINUTE_MS);
    expect((await right("target", stranger)).body.success).toBe(true);
    // Within the same hour one more wrong one is too many again.
    expect(await wrong(2, "target", stranger)).toEqual([200, 429]);
  }, 30_000);

  test("a known device bears ten wrong ones for its account, and only a signed cookie makes one", async () => {
    await account("one");
    await account("two");
    const device = await deviceOf("one", "198.51.100.7");
    expect(await wrong(11, "one", { device })).toEqual([...Array.from({ length: 10 }, () => 200), 429]);
    expect((await right("one", { device })).status).toBe(429);
    // Without it the same browser is a stranger like others.
    expect((await right("one", { from: "198.51.100.7" })).body.success).toBe(true);
    // To another account the device means nothing until it signed in there.
    await wrong(10, "two", { from: "203.0.113.9" });
    expect((await right("two", { from: "203.0.113.9", device })).status).toBe(429);
    for (const forged of [
      "device=0123456789abcdef0123456789abcdef",
      `device=0123456789abcdef0123456789abcdef.${"A".repeat(43)}`,
      // Not the last letter: some of its bits are nobody's.
      device.replace(/.(?=.{9}$)/, (letter) => (letter === "A" ? "B" : "A")),
    ])
      expect((await right("two", { from: "203.0.113.9", device: forged })).status).toBe(429);
  });

  test("thirty wrong ones of one address stop that address for all accounts; an IPv6 address is its /64", async () => {
    for (let i = 0; i < 4; i++) await account(`user${i}`);
    for (const [net, tries] of [
      ["2001:db8:1:2", (i: number) => `2001:db8:1:2::${i.toString(16)}`],
      ["203.0.113.50", () => "203.0.113.50"],
    ] as const) {
      const statuses = [];
      for (let i = 0; i < 30; i++) statuses.push((await attempt(`user${i % 3}`, { from: tries(i) })).status);
      expect([net, new Set(statuses)]).toEqual([net, new Set([200])]);
      expect((await right("user3", { from: tries(99) })).status).toBe(429);
    }
    expect((await right("user3", { from: "2001:db8:1:3::1" })).body.success).toBe(true);
  });

  test("only wrong tries count, however many right ones come at once", async () => {
    await account("busy");
    const together = await Promise.all(Array.from({ length: 25 }, () => right("busy")));
    expect(together.map((each) => each.body.success)).toEqual(Array.from({ length: 25 }, () => true));
    const mixed = await Promise.all([
      ...Array.from({ length: 30 }, () => attempt("busy")),
      ...Array.from({ length: 5 }, () => right("busy", { from: "198.51.100.3" })),
    ]);
    expect(mixed.slice(0, 30).filter((each) => each.status === 200)).toHaveLength(10);
    expect(mixed.slice(0, 30).filter((each) => each.status === 429)).toHaveLength(20);
    expect(mixed.slice(30).every((each) => each.body.success)).toBe(true);
  }, 30_000);

  test("an account that is not there is limited like one that is, in any spelling", async () => {
    await account("real");
    const statuses = async (name: string, from: string) =>
      (await wrong(12, name, { from })).map((status, i) => [i, status]);
    expect(await statuses("real", "203.0.113.1")).toEqual(await statuses("unreal", "203.0.113.2"));
    expect((await attempt("UNREAL", { from: "203.0.113.2" })).status).toBe(429);
  });

  test("an account knows ten devices, the longest unseen is forgotten", async () => {
    const user = await account("many");
    const first = await deviceOf("many", "198.51.100.1");
    for (let i = 0; i < 10; i++) {
      clock.advance(1000);
      await deviceOf("many", "198.51.100.1");
    }
    const { userDevices } = app.deps.db.t;
    const rows = await app.deps.db.orm.select().from(userDevices).where(eq(userDevices.userId, user.id));
    expect(rows).toHaveLength(10);
    await wrong(10, "many");
    expect((await right("many", { device: first })).status).toBe(429);
  }, 30_000);

  test.each([
    ["back", -FORTY_DAYS_MS],
    ["forward", FORTY_DAYS_MS],
  ])(
    "a clock that is set %s by forty days neither blocks a sign-in nor frees a guesser",
    async (_, jumpMs) => {
      await account("timely");
      await wrong(10, "timely");
      clock.jump(jumpMs);
      const refused = await right("timely");
      expect(refused.status).toBe(429);
      expect(Number(refused.headers.get("retry-after"))).toBeLessThanOrEqual(600);
      expect((await right("timely", { from: "198.51.100.9" })).body.success).toBe(true);
      clock.advance(10 * MINUTE_MS);
      expect((await right("timely")).body.success).toBe(true);
    },
  );
});

describe("what operators may change", () => {
  afterEach(() => app.close());

  test("networks of RATE_LIMIT_TRUSTED have no limits per address, only those of accounts", async () => {
    await start("sqlite", { RATE_LIMIT_TRUSTED: "203.0.113.0/24, 2001:db8::/32" });
    for (let i = 0; i < 5; i++) await account(`user${i}`);
    for (let i = 0; i < 4; i++) expect(new Set(await wrong(10, `user${i}`))).toEqual(new Set([200]));
    expect((await right("user4")).body.success).toBe(true);
    expect((await right("user0")).status).toBe(429);
  });

  test("CRITICAL_RATE_LIMIT changes the limits per address, CRITICAL_RATE_LIMIT_ENABLE=false switches them off", async () => {
    await start("sqlite", { CRITICAL_RATE_LIMIT: "3", CRITICAL_RATE_LIMIT_DURATION: "60" });
    for (let i = 0; i < 5; i++) await account(`user${i}`);
    expect(await wrong(4, "user0")).toEqual([200, 200, 200, 429]);
    clock.advance(MINUTE_MS);
    expect((await right("user0")).body.success).toBe(true);
    await app.close();
    await start("sqlite", { CRITICAL_RATE_LIMIT_ENABLE: "false" });
    for (let i = 0; i < 5; i++) await account(`user${i}`);
    for (let i = 0; i < 4; i++) await wrong(10, `user${i}`);
    expect((await right("user4")).body.success).toBe(true);
  });

  test("an access token that nobody has counts before it is looked up; a known one counts for its account alone", async () => {
    await start("sqlite", { GLOBAL_API_RATE_LIMIT_ENABLE: "true" });
    const [user, late] = [await app.createUser({}), await app.createUser({})];
    const tokenOf = async (who: TestUser) => {
      const answer = await app.call<{ data: string }>("GET", "/api/user/token", undefined, who);
      return { authorization: answer.body.data, "new-api-user": String(who.id) };
    };
    const [own, other] = [await tokenOf(user), await tokenOf(late)];
    const get = async (headers: Record<string, string>, address = "203.0.113.1") =>
      (
        await app.call("GET", "/api/user/self", undefined, {
          ...user,
          headers: { ...headers, "x-forwarded-for": address },
        })
      ).status;
    // More than an address may ask for in all.
    for (let n = 0; n < 200; n++) expect(await get(own)).toBe(200);
    const lookedUp = spyOn(app.deps.accounts, "userByAccessToken");
    for (let n = 0; n < 180; n++) expect(await get({ ...own, authorization: `guess ${n}` })).toBe(401);
    expect(lookedUp).toHaveBeenCalledTimes(180);
    expect(await get({ ...own, authorization: "one more" })).toBe(429);
    expect(lookedUp).toHaveBeenCalledTimes(180);
    // Whoever was known goes on; whoever shows a token for the first time waits, or comes from elsewhere.
    expect(await get(own)).toBe(200);
    expect(await get(other)).toBe(429);
    expect(await get(other, "203.0.113.2")).toBe(200);
    // One that was renewed is nobody's any more.
    await tokenOf(user);
    expect([await get(own), await get(own)]).toEqual([401, 429]);
  });

  test("calls below /api: 180 per address without a session and 600 per account in three minutes, pages and the status not", async () => {
    await start("sqlite", { GLOBAL_API_RATE_LIMIT_ENABLE: "true" });
    const user = await app.createUser({});
    const from = (address: string, as?: TestUser): TestUser => ({
      id: 0,
      username: "",
      headers: { ...as?.headers, "x-forwarded-for": address },
    });
    const get = async (path: string, as: TestUser) =>
      (await app.call<Envelope>("GET", path, undefined, as)).status;
    for (let i = 0; i < 200; i++) expect(await get("/api/status", from("203.0.113.1"))).toBe(200);
    for (let i = 0; i < 180; i++)
      expect(await get(i % 2 === 0 ? "/api/notice" : "/api/user/self", from("203.0.113.1"))).not.toBe(429);
    const refused = await app.call<Envelope>("GET", "/api/notice", undefined, from("203.0.113.1"));
    expect([refused.status, refused.body.code]).toEqual([429, "too_many_attempts"]);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(await get("/api/user/self", from("203.0.113.1"))).toBe(429);
    // A body is not read before that, and pages and the status go on.
    expect((await app.call("POST", "/api/user/login", "{", from("203.0.113.1"))).status).toBe(429);
    expect(await get("/api/status", from("203.0.113.1"))).toBe(200);
    expect((await fetch(`${app.url}/setup`, { headers: from("203.0.113.1").headers })).status).toBe(200);
    // Nor are a provider's calls refused: nobody takes payments there, which is another answer.
    for (const path of ["/api/user/epay/notify", "/api/stripe/webhook", "/api/payment/epay"])
      expect((await app.call("POST", path, "{}", from("203.0.113.1"))).status).toBe(404);
    // Another address, and an account behind the same one.
    expect(await get("/api/notice", from("203.0.113.2"))).toBe(200);
    for (let i = 0; i < 600; i++) expect(await get("/api/user/self", from("203.0.113.1", user))).toBe(200);
    expect(await get("/api/user/self", from("203.0.113.1", user))).toBe(429);
    expect(await get("/api/user/self", from("198.51.100.1", user))).toBe(429);
    clock.jump(-FORTY_DAYS_MS);
    clock.advance(3 * MINUTE_MS);
    expect(await get("/api/user/self", from("203.0.113.1", user))).toBe(200);
    expect(await get("/api/notice", from("203.0.113.1"))).toBe(200);
  }, 30_000);
});
