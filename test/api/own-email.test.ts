// The address of one's own account: proven by the code that went to it, told to the old one, asked afresh for where it changes.
// A real SMTP server; on both databases.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { testClock } from "../support/clock.ts";
import { startMailServer } from "../support/mail-server.ts";
import type { MailServerStand } from "../support/mail-server.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";
import { until } from "../relay/support.ts";

interface Told {
  success: boolean;
  code?: string;
}

describe.each(DATABASE_KINDS)("on %s", (database) => {
  const clock = testClock();
  let app: TestApp;
  let mail: MailServerStand;
  let user: TestUser;
  let serial = 0;

  beforeAll(async () => {
    mail = await startMailServer();
    app = await startTestApp({ database, clock });
    for (const [key, text] of [
      ["SMTPServer", "127.0.0.1"],
      ["SMTPPort", String(mail.port)],
      ["SMTPFrom", "site@mail.example"],
      ["SystemName", "Weir"],
      ["ServerAddress", "https://gate.example"],
    ] as const)
      await app.deps.options.set(key, text);
  });
  afterAll(async () => {
    await app.close();
    await mail.close();
  });
  beforeEach(async () => {
    serial += 1;
    mail.letters.length = 0;
    clock.advance(48 * 3_600_000);
    user = await app.createUser();
    await prove(user);
  });

  /** The account's sessions have just proven themselves. */
  async function prove(of: TestUser) {
    const { sessions } = app.deps.db.t;
    const rows = await app.deps.db.orm.select().from(sessions).where(eq(sessions.userId, of.id));
    for (const { id } of rows) await app.deps.sessions.prove(id, Math.floor(clock.nowMs() / 1000) + 600);
  }
  const address = (name = "own") => `${name}${serial}${database[0]}@mail.example`;
  const codeFor = async (email: string, as?: TestUser) => {
    const path = `/api/verification?email=${encodeURIComponent(email)}`;
    expect((await app.call<Told>("GET", path, undefined, as)).body.success).toBe(true);
    return /\b\d{6}\b/.exec(mail.letters.at(-1)?.text ?? "")?.[0] ?? "";
  };
  const bind = async (email: string, code: string, as: TestUser | undefined = user) =>
    app.call<Told>("POST", "/api/oauth/email/bind", { email, code }, as);
  const rowOf = async ({ id }: TestUser) => {
    const { users } = app.deps.db.t;
    const [row] = await app.deps.db.orm.select().from(users).where(eq(users.id, id));
    return row;
  };

  test("the first one takes its code, once, and stands in the log masked", async () => {
    const email = address("Own");
    const code = await codeFor(email, user);
    expect((await bind(email, "000000")).body.code).toBe("code_wrong");
    expect((await bind(address("other"), code)).body.code).toBe("code_wrong");
    expect((await bind(email.toUpperCase(), code)).body).toEqual({ success: true, message: "" } as Told);
    expect(await rowOf(user)).toMatchObject({ email, emailKey: email.toLowerCase() });
    expect((await bind(email, code, await app.createUser())).body.code).toBe("code_wrong");
    const { logs } = app.deps.db.t;
    const rows = await app.deps.db.orm.select().from(logs).where(eq(logs.userId, user.id));
    expect(rows.map(({ type, content }) => [type, content])).toContainEqual([
      4,
      "将邮箱改为 O***@mail.example",
    ]);
    expect(mail.letters).toHaveLength(1);
  });

  test("by the older call, too", async () => {
    const email = address();
    const code = await codeFor(email);
    const path = `/api/oauth/email/bind?${new URLSearchParams({ email, code })}`;
    expect((await app.call<Told>("GET", path, undefined, user)).body.success).toBe(true);
    expect(await rowOf(user)).toMatchObject({ email });
  });

  test("a change asks for a fresh proof, ends no session, and the old address hears of it", async () => {
    const [old, fresh] = [address("old"), address("fresh")];
    await bind(old, await codeFor(old));
    clock.advance(11 * 60_000);
    const code = await codeFor(fresh);
    const refused = await bind(fresh, code);
    expect([refused.status, refused.body.code]).toEqual([403, "verification_required"]);
    await prove(user);
    const english = { ...user, headers: { ...user.headers, "accept-language": "en" } };
    expect((await bind(fresh, code, english)).body.success).toBe(true);
    await until(() => Promise.resolve(mail.letters.length === 3 || undefined));
    expect(mail.letters[2]).toMatchObject({
      to: [old],
      subject: "The email address of your account at Weir changed",
    });
    expect(mail.letters[2]?.text).toContain("f***@mail.example");
    expect(mail.letters[2]?.text).not.toContain(fresh);
    expect((await app.call("GET", "/api/user/self", undefined, user)).status).toBe(200);
  });

  test("a changed password is told to it; whoever has none is told nothing", async () => {
    const change = async (of: TestUser) => {
      const changed = await app.call<Told>("PUT", "/api/user/self", { password: "battery staple" }, of);
      expect(changed.body.success).toBe(true);
    };
    const bare = await app.createUser();
    await prove(bare);
    await change(bare);
    const email = address();
    await bind(email, await codeFor(email));
    await change(user);
    await until(() => Promise.resolve(mail.letters.length === 2 || undefined));
    expect(mail.letters[1]).toMatchObject({ to: [email], subject: "Weir 的密码已修改" });
    expect(mail.letters[1]?.text).toContain("https://gate.example/reset");
    expect(mail.letters[1]?.text).not.toContain("battery");
  });

  test("is not set for strangers, by access tokens, or from a page of another site", async () => {
    const email = address();
    const code = await codeFor(email);
    expect((await bind(email, code, { id: 0, username: "", headers: {} })).status).toBe(401);
    const token = (await app.call<{ data: string }>("GET", "/api/user/token", undefined, user)).body.data;
    const program = { ...user, headers: { authorization: token, "new-api-user": String(user.id) } };
    expect((await bind(email, code, program)).body.code).toBe("access_token_not_supported");
    const foreign = { ...user, headers: { ...user.headers, "sec-fetch-site": "cross-site" } };
    expect((await bind(email, code, foreign)).status).toBe(403);
    expect(await rowOf(user)).toMatchObject({ email: "" });
  });

  test("an address that has an account stays with it, also when it gets one between letter and code", async () => {
    const email = address();
    await bind(email, await codeFor(email));
    const other = await app.createUser();
    clock.advance(60_000);
    await codeFor(email.toUpperCase());
    // The owner was told; nobody has a code.
    expect(mail.letters.at(-1)).toMatchObject({ to: [email] });
    expect(mail.letters.at(-1)?.text).not.toMatch(/\b\d{6}\b/);
    const late = address("late");
    const code = await codeFor(late);
    const { users } = app.deps.db.t;
    await app.deps.db.orm.update(users).set({ email: late, emailKey: late }).where(eq(users.id, other.id));
    expect((await bind(late, code)).body.code).toBe("mail_taken");
    expect(await rowOf(user)).toMatchObject({ email });
  });

  test("twenty wrong codes in ten minutes are enough for an address, registrations included", async () => {
    const email = address();
    await codeFor(email);
    const statuses: number[] = [];
    for (let n = 0; n < 21; n++) statuses.push((await bind(email, "000000")).status);
    expect(statuses).toEqual([...Array.from({ length: 20 }, () => 200), 429]);
    const reset = await app.call("POST", "/api/user/reset", { email, token: "0" });
    expect(reset.status).toBe(429);
  });

  test("the human check asks no one who is signed in", async () => {
    await app.deps.options.set("TurnstileSiteKey", "site");
    await app.deps.options.set("TurnstileSecretKey", "secret");
    await app.deps.options.set("TurnstileVerifyUrl", "http://127.0.0.1:9/siteverify");
    await app.deps.options.set("TurnstileCheckEnabled", "true");
    try {
      const path = `/api/verification?email=${address()}`;
      expect((await app.call<Told>("GET", path)).body.code).toBe("human_check_empty");
      expect((await app.call<Told>("GET", path, undefined, user)).body.success).toBe(true);
    } finally {
      await app.deps.options.set("TurnstileCheckEnabled", "false");
    }
  });
});
