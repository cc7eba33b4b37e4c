// Coming in without an account: codes by letter from a real SMTP server, registration from link to reward, a forgotten
// password. What a stranger may learn, guess or take is nothing. On both databases.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { and, eq } from "drizzle-orm";
import { audit } from "../../src/core/ledger/audit.ts";
import type { OptionKey } from "../../src/core/options/definitions.ts";
import { Role, UserStatus } from "../../src/shared/enums.ts";
import { startTestApp } from "../support/app.ts";
import type { Answer, TestApp, TestUser } from "../support/app.ts";
import { testClock } from "../support/clock.ts";
import type { TestClock } from "../support/clock.ts";
import { startMailServer } from "../support/mail-server.ts";
import type { MailServerStand } from "../support/mail-server.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";
import { until } from "../relay/support.ts";

const PASSWORD = "correct horse battery";
const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

interface Told {
  success: boolean;
  message: string;
  code?: string;
  data?: unknown;
}

describe.each(DATABASE_KINDS)("on %s", (database) => {
  let app: TestApp;
  let clock: TestClock;
  let mail: MailServerStand;
  let serial = 0;
  let changed: [OptionKey, string][] = [];

  beforeAll(async () => {
    mail = await startMailServer();
    clock = testClock();
    app = await startTestApp({ database, clock, env: { TRUSTED_PROXIES: "127.0.0.1" } });
    await app.deps.options.set("SMTPServer", "127.0.0.1");
    await app.deps.options.set("SMTPPort", String(mail.port));
    await app.deps.options.set("SMTPFrom", "Weir <site@mail.example>");
    await app.deps.options.set("SystemName", "Weir & Co");
    await app.deps.options.set("ServerAddress", "https://gate.example/");
  });
  afterAll(async () => {
    await app.close();
    await mail.close();
  });
  beforeEach(() => {
    serial += 1;
    mail.letters.length = 0;
    mail.refusal = 0;
    mail.refusedReceiver = "";
    // Windows of earlier tests are over.
    clock.advance(2 * DAY_MS);
  });
  afterEach(async () => {
    for (const [key, text] of changed.toReversed()) await app.deps.options.set(key, text);
    changed = [];
    await app.deps.ledger.flush();
    expect((await audit(app.deps.db)).differences).toEqual([]);
  });

  const set = async (key: OptionKey, value: string) => {
    changed.push([key, app.deps.options.text(key)]);
    await app.deps.options.set(key, value);
  };
  const visitor = (from: string, language = "zh", headers: Record<string, string> = {}): TestUser => ({
    id: 0,
    username: "",
    headers: { "x-forwarded-for": from, "accept-language": language, ...headers },
  });
  const home = () => `203.0.113.${serial}`;
  const get = (path: string, from = home(), language = "zh") =>
    app.call<Told>("GET", path, undefined, visitor(from, language));
  const post = (path: string, body: unknown, from = home(), language = "zh"): Promise<Answer<Told>> =>
    app.call<Told>("POST", path, body, visitor(from, language));
  const askCode = (email: string, from?: string, language?: string) =>
    get(`/api/verification?email=${encodeURIComponent(email)}`, from, language);
  const askReset = (email: string, from?: string, language?: string) =>
    get(`/api/reset_password?email=${encodeURIComponent(email)}`, from, language);
  const register = (fields: Record<string, unknown>, from?: string) =>
    post("/api/user/register", { username: name(), password: PASSWORD, ...fields }, from);
  const signIn = (username: string, password = PASSWORD) => post("/api/user/login", { username, password });
  const name = (more = "") => `new${database[0]}${serial}${more}`;
  const address = (more = "") => `${name(more)}@mail.example`;
  const lastCode = () => /\b\d{6}\b/.exec(mail.letters.at(-1)?.text ?? "")?.[0] ?? "";
  const lastToken = () => /token=([0-9a-f]{32})/.exec(mail.letters.at(-1)?.text ?? "")?.[1] ?? "";
  const rowOf = async (username: string) => {
    const { users } = app.deps.db.t;
    const [row] = await app.deps.db.orm.select().from(users).where(eq(users.username, username));
    return row;
  };
  /** Letters that go behind the answer. */
  const letters = (count: number) => until(() => Promise.resolve(mail.letters.length >= count || undefined));
  const wrongOf = (code: string) => String((Number(code) + 1) % 1_000_000).padStart(6, "0");
  /** Registers with a proven address. */
  const member = async (more = "") => {
    await set("EmailVerificationEnabled", "true");
    expect((await askCode(address(more))).body).toMatchObject({ success: true });
    const made = await register({
      username: name(more),
      email: address(more),
      verification_code: lastCode(),
    });
    expect(made.body).toEqual({ success: true, message: "" });
    mail.letters.length = 0;
    clock.advance(2 * MINUTE_MS);
    return { username: name(more), email: address(more) };
  };

  describe("registering", () => {
    test("makes an ordinary account that can sign in at once, whatever else the body says", async () => {
      const made = await register({
        username: name("A"),
        email: address(),
        role: 100,
        quota: 5_000_000,
        group: "vip",
        status: 2,
        id: 1,
      });
      expect([made.status, made.body]).toEqual([200, { success: true, message: "" }]);
      const row = await rowOf(name("A"));
      expect(row).toMatchObject({ role: Role.user, status: UserStatus.enabled, quota: 0, group: "default" });
      // Nobody proved it.
      expect(row).toMatchObject({ email: "", emailKey: "", usernameKey: name("A").toLowerCase() });
      expect(row?.passkeyHandle).toMatch(/^[\w-]{43}$/);
      for (const typed of [name("A"), name("A").toUpperCase(), ` ${name("a")} `])
        expect((await signIn(typed)).body).toMatchObject({ success: true });
    });

    test("each refusal has its sentence, in their order", async () => {
      const refused = async (fields: Record<string, unknown>) => (await register(fields)).body.message;
      await set("RegisterEnabled", "false");
      expect(await refused({})).toBe("管理员关闭了新用户注册");
      await set("RegisterEnabled", "true");
      await set("PasswordRegisterEnabled", "false");
      expect(await refused({})).toBe("管理员关闭了通过密码进行注册，请使用第三方账户验证的形式进行注册");
      await set("PasswordRegisterEnabled", "true");
      await set("EmailVerificationEnabled", "true");
      expect(await refused({ username: " " })).toBe("无效的参数");
      expect(await refused({ username: "twelve-and-1-more" })).toStartWith("输入不合法");
      expect(await refused({ username: "Ad\u0430" })).toStartWith("输入不合法");
      expect(await refused({ username: "ａdmin" })).toStartWith("该用户名为保留名称");
      expect(await refused({ username: "a@b.example" })).toStartWith("输入不合法");
      expect(await refused({ password: "seven77" })).toBe("密码长度不得小于 8 位！");
      expect(await refused({ password: "x".repeat(65) })).toContain("64");
      expect(await refused({ password: "aaaaaaaaaa" })).toStartWith("密码太容易被猜到");
      expect(await refused({ username: "longenough", password: "LongEnough" })).toStartWith("密码太容易");
      expect(await refused({})).toBe("管理员开启了邮箱验证，请输入邮箱地址和验证码");
      expect(await refused({ email: "nobody", verification_code: "123456" })).toBe("无效的邮箱地址");
      expect(await refused({ email: address(), verification_code: "123456" })).toBe("验证码错误或已过期");
      expect(await rowOf(name())).toBeUndefined();
    });

    test("twenty at once under one name in different letters: one account, one gift, one key", async () => {
      await set("QuotaForNewUser", "700");
      await set("GenerateDefaultToken", "true");
      const forms = [name("q"), name("Q"), name("ｑ")];
      const answers = await Promise.all(
        Array.from({ length: 18 }, (_, i) => register({ username: forms[i % 3] }, `198.51.100.${i + 1}`)),
      );
      const codes = answers.map(({ body }) => body.code ?? "made").toSorted();
      expect(codes).toEqual(["made", ...Array.from({ length: 17 }, () => "username_taken")]);
      const { users, credits, tokens, logs } = app.deps.db.t;
      const rows = await app.deps.db.orm
        .select()
        .from(users)
        .where(eq(users.usernameKey, name("q").toLowerCase()));
      expect(rows).toHaveLength(1);
      const userId = rows[0]?.id ?? 0;
      expect(rows[0]?.quota).toBe(700);
      const given = await app.deps.db.orm.select().from(credits).where(eq(credits.userId, userId));
      expect(given).toMatchObject([{ kind: "register", amount: 700, ref: String(userId) }]);
      const keys = await app.deps.db.orm.select().from(tokens).where(eq(tokens.userId, userId));
      expect(keys).toMatchObject([
        {
          name: `${rows[0]?.username}的初始令牌`,
          unlimitedQuota: true,
          remainQuota: 500_000,
          expiredTime: -1,
        },
      ]);
      const told = await app.deps.db.orm
        .select({ content: logs.content })
        .from(logs)
        .where(and(eq(logs.userId, userId), eq(logs.type, 4)));
      // One registration and one gift.
      expect(told).toHaveLength(2);
      expect(told[1]?.content).toStartWith("新用户注册赠送 ");
    });

    test("an invitation goes from link to reward; who is gone, banned or unknown invites nobody", async () => {
      await set("QuotaForInvitee", "300");
      await set("QuotaForInviter", "500");
      const inviter = await app.createUser();
      const code = String((await app.call<Told>("GET", "/api/user/aff", undefined, inviter)).body.data);
      await register({ username: name("I"), aff_code: code });
      expect(await rowOf(name("I"))).toMatchObject({ inviterId: inviter.id, quota: 300 });
      expect(await rowOf(inviter.username)).toMatchObject({
        affCount: 1,
        affQuota: 500,
        affHistoryQuota: 500,
      });
      const { users } = app.deps.db.t;
      for (const gone of [{ status: UserStatus.disabled }, { status: UserStatus.enabled, deletedAt: 1 }]) {
        await app.deps.db.orm.update(users).set(gone).where(eq(users.id, inviter.id));
        const username = name(gone.deletedAt === undefined ? "J" : "K");
        expect((await register({ username, aff_code: code })).body.success).toBe(true);
        expect(await rowOf(username)).toMatchObject({ inviterId: 0, quota: 0 });
      }
      expect((await register({ username: name("L"), aff_code: "' or 1=1" })).body.success).toBe(true);
      expect(await rowOf(inviter.username)).toMatchObject({ affCount: 1, affQuota: 500 });
    });

    test("what the operator wrote has to be accepted; version and time are kept", async () => {
      await set("legal.terms", "# Terms");
      expect((await register({ username: name("T") })).body.code).toBe("terms_unaccepted");
      expect((await register({ username: name("T"), accept_terms: true })).body.success).toBe(true);
      const first = await rowOf(name("T"));
      expect(first?.termsVersion).toMatch(/^[0-9a-f]{16}$/);
      expect(first?.termsAcceptedAt).toBe(Math.floor(clock.nowMs() / 1000));
      await set("legal.privacy", "Nothing is kept.");
      await register({ username: name("U"), accept_terms: true });
      expect((await rowOf(name("U")))?.termsVersion).not.toBe(first?.termsVersion);
    });

    test("thirty tries in ten minutes from one address, by the network of one subscriber on IPv6", async () => {
      for (let i = 0; i < 30; i++) await register({ username: "" });
      const refused = await register({ username: name("Z") });
      expect([refused.status, refused.body.code]).toEqual([429, "too_many_attempts"]);
      expect(Number(refused.headers.get("retry-after"))).toBe(600);
      // Another subscriber; of IPv6 the network counts, not the address.
      const six = (host: number) => `2001:db8:${serial}:1::${host}`;
      for (let i = 0; i < 30; i++) await register({ username: "" }, six(i + 1));
      expect((await register({ username: name("Z") }, six(99))).status).toBe(429);
      expect((await register({ username: name("Z") }, `2001:db8:${serial}:2::1`)).body.success).toBe(true);
    });

    test("twenty accounts an hour from one address, of which those count that came to be", async () => {
      const codes: string[] = [];
      for (let i = 0; i < 21; i++) {
        if (i === 3) await register({ username: name("0") });
        codes.push((await register({ username: name(String(i)) })).body.code ?? "made");
        clock.advance(MINUTE_MS);
      }
      expect(codes).toEqual([...Array.from({ length: 20 }, () => "made"), "too_many_attempts"]);
      expect((await register({ username: name("x") }, "192.0.2.77")).body.success).toBe(true);
    }, 30_000);

    test("an account of an administrator begins like every other, with an address that counts as proven", async () => {
      await set("QuotaForNewUser", "900");
      const root = await app.createUser({ role: Role.root });
      const make = (fields: object) =>
        app.call<Told>("POST", "/api/user/", { username: name("R"), password: PASSWORD, ...fields }, root);
      expect((await make({ email: `  ${address("R").toUpperCase()} ` })).body.success).toBe(true);
      expect(await rowOf(name("R"))).toMatchObject({ quota: 900, emailKey: address("R").toLowerCase() });
      expect((await make({ username: name("S"), email: address("R") })).body.code).toBe("mail_taken");
      expect((await make({ username: name("r") })).body.code).toBe("username_taken");
      expect((await signIn(address("R"))).body.success).toBe(true);
    });
  });

  describe("codes", () => {
    beforeEach(() => set("EmailVerificationEnabled", "true"));

    test("prove the address that they went to, once, in plain text and HTML of the reader's language", async () => {
      await set("Logo", "/logo.png");
      const typed = ` ${address("C").replace("mail", "MAIL")} `;
      expect((await askCode(typed, home(), "en")).body).toEqual({ success: true, message: "" });
      const [letter] = mail.letters;
      expect(letter?.to).toEqual([address("C")]);
      expect(letter?.subject).toBe("Your code for Weir & Co");
      expect(letter?.text).toContain("Enter this code to confirm");
      expect(letter?.text).toContain("Weir &amp; Co");
      expect(letter?.text).toContain('src="https://gate.example/logo.png"');
      const code = lastCode();
      const fields = {
        username: name("C"),
        email: address("C").toUpperCase(),
        verification_code: ` ${code} `,
      };
      expect((await register(fields)).body).toEqual({ success: true, message: "" });
      expect(await rowOf(name("C"))).toMatchObject({
        email: address("C"),
        emailKey: address("C").toLowerCase(),
      });
      // A second use, and the account's own address.
      expect((await register({ ...fields, username: name("D") })).body.code).toBe("code_wrong");
      expect((await signIn(address("C").toUpperCase())).body.success).toBe(true);
    });

    test("a taken address is answered alike, and told by letter at the address that is stored", async () => {
      const { email } = await member("C");
      const banned = await member("D");
      const { users } = app.deps.db.t;
      const set2 = { status: UserStatus.disabled, deletedAt: 1 };
      await app.deps.db.orm.update(users).set(set2).where(eq(users.username, banned.username));
      const free = await askCode(address("free"));
      for (const taken of [email.toUpperCase(), banned.email]) {
        const answer = await askCode(taken);
        expect([answer.status, answer.text]).toEqual([free.status, free.text]);
      }
      expect(mail.letters.map(({ to }) => to)).toEqual([[address("free")], [email], [banned.email]]);
      expect(mail.letters[1]?.subject).toBe("您在 Weir & Co 已有账户");
      expect(mail.letters[1]?.text).toContain("https://gate.example/login");
      expect(mail.letters[1]?.text).not.toMatch(/\b\d{6}\b/);
      // They have the same limits, too.
      expect((await askCode(email)).status).toBe(429);
      expect((await askCode(address("free"))).status).toBe(429);
    });

    test("five wrong ones end it, also all at once; a newer one replaces it", async () => {
      await askCode(address("C"));
      const first = lastCode();
      const wrong = { username: name("C"), email: address("C"), verification_code: wrongOf(first) };
      const tries = await Promise.all(
        Array.from({ length: 6 }, (_, i) => register(wrong, `192.0.2.${i + 1}`)),
      );
      expect(new Set(tries.map(({ body }) => body.code))).toEqual(new Set(["code_wrong"]));
      expect((await register({ ...wrong, verification_code: first })).body.code).toBe("code_wrong");
      clock.advance(MINUTE_MS);
      await askCode(address("C"));
      const second = lastCode();
      clock.advance(MINUTE_MS);
      await askCode(address("C"));
      expect((await register({ ...wrong, verification_code: second })).body.code).toBe("code_wrong");
      expect((await register({ ...wrong, verification_code: lastCode() })).body.success).toBe(true);
    });

    test("is good for its address and its ten minutes alone, and is not burnt by a name that is taken", async () => {
      await askCode(address("A"));
      const code = lastCode();
      await register({ username: name("X"), email: address("B"), verification_code: code });
      expect(await rowOf(name("X"))).toBeUndefined();
      const { username } = await app.createUser({ username: name("taken") });
      const fields = { email: address("A"), verification_code: code };
      expect((await register({ ...fields, username })).body.code).toBe("username_taken");
      const both = await Promise.all(
        [name("Y"), name("Z")].map((each) => register({ ...fields, username: each })),
      );
      expect(both.map(({ body }) => body.code ?? "made").toSorted()).toEqual(["code_wrong", "made"]);
      await askCode(address("C"));
      clock.advance(10 * MINUTE_MS);
      const late = { username: name("W"), email: address("C"), verification_code: lastCode() };
      expect((await register(late)).body.code).toBe("code_wrong");
    });

    test("the table gives none away", async () => {
      await askCode(address("C"));
      const { authFlows } = app.deps.db.t;
      const rows = await app.deps.db.orm.select().from(authFlows);
      const code = lastCode();
      const dump = JSON.stringify(rows);
      expect(dump).not.toContain(`"${code}"`);
      const plain = (text: string) => new Bun.CryptoHasher("sha256").update(text).digest("hex");
      const guesses = [code, `email_code|${address("C")}|${code}`, `flow|email_code|${address("C")}|${code}`];
      for (const guess of guesses) expect(dump).not.toContain(plain(guess));
    });

    test("one in half a minute, five an hour and ten a day for an address; ten in ten minutes for a visitor", async () => {
      const statuses: number[] = [];
      const ask = async (advanceMs: number) => {
        statuses.push((await askCode(address("C"), `198.51.100.${statuses.length + 1}`)).status);
        clock.advance(advanceMs);
      };
      await ask(29_000);
      await ask(1000);
      for (let i = 0; i < 5; i++) await ask(30_000);
      expect(statuses).toEqual([200, 429, 200, 200, 200, 200, 429]);
      clock.advance(60 * MINUTE_MS);
      for (let i = 0; i < 5; i++) await ask(31_000);
      clock.advance(60 * MINUTE_MS);
      await ask(0);
      expect(statuses.slice(7)).toEqual([200, 200, 200, 200, 200, 429]);
      for (let i = 0; i < 10; i++) expect((await askCode(address(`v${i}`))).status).toBe(200);
      expect((await askCode(address("v10"))).status).toBe(429);
    });

    test("a letter that does not go is reported, counts for nothing and leaves no code", async () => {
      await askCode(address("C"));
      const code = lastCode();
      clock.advance(MINUTE_MS);
      mail.refusal = 451;
      const failed = await askCode(address("C"));
      expect([failed.status, failed.body.code]).toEqual([200, "mail_failed"]);
      for (let i = 0; i < 12; i++) await askCode(address("C"));
      mail.refusal = 0;
      const fields = { username: name("C"), email: address("C"), verification_code: code };
      expect((await register(fields)).body.success).toBe(true);
      await set("EmailVerificationEnabled", "false");
      await set("SMTPServer", "");
      expect((await askCode(address("C"))).body.code).toBe("smtp_missing");
    });

    test("only for domains of the list, and without aliases where the operator wants none", async () => {
      await set("EmailDomainWhitelist", "X.org,*.uni.example,bücher.example");
      await set("EmailDomainRestrictionEnabled", "true");
      const codeFor = async (email: string, from: number) =>
        (await askCode(email, `192.0.2.${100 + from}`)).body.code ?? "sent";
      const listed = [
        "a@x.org",
        "a@X.ORG",
        "a@cs.uni.example",
        "a@deep.cs.uni.example",
        "a@xn--bcher-kva.example",
      ];
      const local = (email: string, i: number) => email.replace("a@", `${name()}${i}@`);
      expect(await Promise.all(listed.map((each, i) => codeFor(local(each, i), i)))).toEqual(
        listed.map(() => "sent"),
      );
      const foreign = [
        "a@x.org.evil.com",
        "a@evilx.org",
        "a@uni.example",
        "a@sub.x.org",
        "a@eviluni.example",
      ];
      expect(await Promise.all(foreign.map((each, i) => codeFor(each, 20 + i)))).toEqual(
        foreign.map(() => "mail_domain_refused"),
      );
      expect(await codeFor("a@x.org.", 40)).toBe("mail_wrong");
      await set("EmailAliasRestrictionEnabled", "true");
      expect(await codeFor("a+b@x.org", 41)).toBe("mail_alias_refused");
      expect(await codeFor("a.b@x.org", 42)).toBe("mail_alias_refused");
      expect(await codeFor("a@x.org, b@y.org", 43)).toBe("mail_wrong");
      expect(await codeFor("a@x.org\r\nBcc: b@y.org", 44)).toBe("mail_wrong");
    });
  });

  describe("a forgotten password", () => {
    const ends = (answer: Answer<Told>) => [answer.status, answer.text];

    test("is answered alike for known, unknown, banned and deleted accounts, also while the server is down", async () => {
      const { email, username } = await member("P");
      mail.refusal = 451;
      const unknown = await askReset(address("nobody"));
      expect(unknown.body).toEqual({ success: true, message: "" });
      expect(ends(await askReset(email))).toEqual(ends(unknown));
      // Root hears of it.
      await until(() => Promise.resolve(app.deps.inbox.subjects("mail").length > 0 || undefined));
      mail.refusal = 0;
      clock.advance(2 * MINUTE_MS);
      const { users } = app.deps.db.t;
      const here = eq(users.username, username);
      await app.deps.db.orm.update(users).set({ status: UserStatus.disabled }).where(here);
      expect(ends(await askReset(email))).toEqual(ends(unknown));
      clock.advance(2 * MINUTE_MS);
      await app.deps.db.orm.update(users).set({ status: UserStatus.enabled, deletedAt: 1 }).where(here);
      expect(ends(await askReset(email))).toEqual(ends(unknown));
      expect(mail.letters).toEqual([]);
      // Limits count for all alike, too.
      expect((await askReset(address("nobody"))).status).toBe(200);
      expect((await askReset(address("nobody"))).status).toBe(429);
      expect((await askReset("not an address")).body.code).toBe("mail_wrong");
      await set("ServerAddress", "");
      for (const each of [email, address("nobody")])
        expect((await askReset(each)).body.code).toBe("reset_unavailable");
    });

    test("the link changes it once, after looking has changed nothing, and ends whatever acted for the account", async () => {
      const { email, username } = await member("P");
      const before = await signIn(username);
      const id = (await rowOf(username))?.id ?? 0;
      const session: TestUser = {
        id,
        username,
        headers: {
          cookie: before.headers
            .getSetCookie()
            .map((line) => line.split(";")[0])
            .join("; "),
          "new-api-user": String(id),
        },
      };
      const access = String((await app.call<Told>("GET", "/api/user/token", undefined, session)).body.data);
      const byToken: TestUser = {
        id,
        username,
        headers: { authorization: access, "new-api-user": String(id) },
      };
      expect((await app.call("GET", "/api/user/self", undefined, byToken)).status).toBe(200);
      const evil = visitor(home(), "en", { host: "evil.example" });
      await app.call(
        "GET",
        `/api/reset_password?email=${encodeURIComponent(email.toUpperCase())}`,
        undefined,
        evil,
      );
      await letters(1);
      expect(mail.letters[0]?.to).toEqual([email]);
      expect(mail.letters[0]?.subject).toBe("Reset your password at Weir & Co");
      expect(mail.letters[0]?.text).not.toContain("evil");
      const path = `/user/reset?email=${encodeURIComponent(email)}&token=${lastToken()}`;
      expect(mail.letters[0]?.text).toContain(`https://gate.example${path}`);
      // Scanners of letters look at every link.
      for (const method of ["GET", "HEAD"]) expect((await app.call(method, path)).status).toBeLessThan(400);
      const wrong = await post("/api/user/reset", { email, token: "0".repeat(32) });
      expect(wrong.body.message).toBe("重置链接非法或已过期");
      const other = await post("/api/user/reset", { email: address("Q"), token: lastToken() });
      expect(other.body.code).toBe("reset_link_wrong");
      const token = lastToken();
      const done = await Promise.all([1, 2].map(() => post("/api/user/reset", { email, token })));
      const passwords = done.flatMap(({ body }) => (body.success ? [String(body.data)] : []));
      expect(passwords).toHaveLength(1);
      expect(passwords[0]).toMatch(/^[A-Za-z2-9]{12}$/);
      expect((await signIn(username)).body.code).toBe("login_failed");
      expect((await signIn(email, passwords[0])).body.success).toBe(true);
      for (const old of [session, byToken])
        expect((await app.call<Told>("GET", "/api/user/self", undefined, old)).body.success).toBe(false);
      await letters(2);
      expect(mail.letters[1]?.to).toEqual([email]);
      expect(JSON.stringify(mail.letters[1])).not.toContain(passwords[0] ?? "-");
    });

    test("with a password of one's own; a newer link replaces the older, and ten minutes end both", async () => {
      const { email, username } = await member("P");
      await askReset(email);
      await letters(1);
      const first = lastToken();
      clock.advance(2 * MINUTE_MS);
      await askReset(email);
      await letters(2);
      const password = "another good one";
      const reset = (token: string, own: string) => post("/api/user/reset", { email, token, password: own });
      expect((await reset(first, password)).body.code).toBe("reset_link_wrong");
      expect((await reset(lastToken(), "short")).body.code).toBe("password_short");
      expect((await reset(lastToken(), email)).body.code).toBe("password_weak");
      const done = await reset(lastToken(), password);
      expect(done.body).toEqual({ success: true, message: "", data: "" });
      expect(done.headers.getSetCookie()[0]).toStartWith("device=");
      expect((await signIn(username, password)).body.success).toBe(true);
      clock.advance(2 * MINUTE_MS);
      await askReset(email);
      await letters(4);
      const link = mail.letters
        .map(({ text }) => /token=([0-9a-f]{32})/.exec(text)?.[1] ?? "")
        .findLast((each) => each);
      clock.advance(10 * MINUTE_MS);
      expect((await reset(link ?? "", password)).body.code).toBe("reset_link_wrong");
    });

    test("twenty wrong links in ten minutes are enough for an address", async () => {
      const tries: number[] = [];
      for (let i = 0; i < 21; i++)
        tries.push((await post("/api/user/reset", { email: address(), token: `${i}` })).status);
      expect(tries).toEqual([...Array.from({ length: 20 }, () => 200), 429]);
    });
  });

  test("the status says what a visitor may do", async () => {
    const status = async () => (await get("/api/status")).body.data as Record<string, unknown>;
    expect(await status()).toMatchObject({
      register_enabled: true,
      password_login_enabled: true,
      password_register_enabled: true,
      reset_enabled: true,
      terms_version: "",
      password_min: 8,
      password_max: 64,
      username_max: 12,
    });
    await set("SMTPFrom", "");
    await set("RegisterEnabled", "false");
    expect(await status()).toMatchObject({ register_enabled: false, reset_enabled: false });
  });
});
