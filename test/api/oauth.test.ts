// Signing in by GitHub, Linux DO and Discord over the wire: who comes in, who is registered, bound or turned away, and that
// no state, browser, session or address can be put in another's place. The providers are servers of ours. On both databases.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { createHash, createHmac } from "node:crypto";
import { and, eq } from "drizzle-orm";
import { audit } from "../../src/core/ledger/audit.ts";
import type { OptionKey } from "../../src/core/options/definitions.ts";
import { checkDomain } from "../../src/core/users/providers/built-in.ts";
import { ownPath } from "../../src/core/users/providers/flow.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { testClock } from "../support/clock.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";
import { startProviderFakes } from "../support/provider-fakes.ts";
import type { FakePerson, ProviderFakes } from "../support/provider-fakes.ts";

interface Told {
  success: boolean;
  message: string;
  code?: string;
  data: Record<string, unknown>;
}

/** A browser: its cookies, and who is signed in. */
interface Browser {
  flow: string;
  user: TestUser | undefined;
  from: string;
}

const MADE = "2020-01-02T03:04:05Z";
const MADE_SECONDS = Date.parse(MADE) / 1000;

test.each([
  ["/token?p=2#a", "/token?p=2#a"],
  ["//evil.example", ""],
  ["/\\evil.example", ""],
  ["/a\\b", ""],
  ["https://evil.example", ""],
  ["javascript:alert(1)", ""],
  ["/\t/evil.example", ""],
  ["/.//evil.example", ""],
  ["token", ""],
  ["", ""],
])("the way on is a path of this site: %p", (typed, path) => {
  expect(ownPath(typed)).toBe(path);
});

test("a company's rule asks the claim of the account", () => {
  expect(() => checkDomain({ hd: "a.example" }, "a.example")).not.toThrow();
  expect(() => checkDomain({}, "")).not.toThrow();
  expect(() => checkDomain({ email: "x@a.example" }, "a.example")).toThrow();
});

describe.each(DATABASE_KINDS)("on %s", (database) => {
  const clock = testClock();
  let app: TestApp;
  let fakes: ProviderFakes;
  let serial = 0;

  const set = (key: OptionKey, value: string) => app.deps.options.set(key, value);
  beforeAll(async () => {
    fakes = startProviderFakes();
    app = await startTestApp({ database, clock, env: { TRUSTED_PROXIES: "127.0.0.1" } });
    await set("ServerAddress", "https://gate.example");
    for (const [prefix, base] of [
      ["GitHub", "GitHubBaseUrl"],
      ["LinuxDO", "LinuxDOBaseUrl"],
    ] as const) {
      await set(base, fakes.url);
      await set(`${prefix}ClientId`, "the-id");
      await set(`${prefix}ClientSecret`, "the-secret");
      await set(`${prefix}OAuthEnabled`, "true");
    }
    await set("DiscordBaseUrl", fakes.url);
    await set("discord.client_id", "the-id");
    await set("discord.client_secret", "the-secret");
    await set("discord.enabled", "true");
  });
  afterAll(async () => {
    await app.deps.ledger.flush();
    expect((await audit(app.deps.db)).differences).toEqual([]);
    await app.close();
    await fakes.close();
  });
  beforeEach(() => {
    serial += 1;
    fakes.wrong.token = undefined;
    fakes.wrong.profile = undefined;
  });

  const browser = (user?: TestUser): Browser => ({
    flow: "",
    user,
    from: `198.51.100.${(serial % 200) + 1}`,
  });
  const call = async (
    at: Browser,
    method: string,
    path: string,
    body?: unknown,
    more: Record<string, string> = {},
  ) => {
    const cookies = [at.user?.headers["cookie"], at.flow].filter((each) => each !== undefined && each !== "");
    const headers = {
      ...at.user?.headers,
      "x-forwarded-for": at.from,
      ...(cookies.length > 0 ? { cookie: cookies.join("; ") } : {}),
      ...more,
    };
    const answer = await app.call<Told>(method, path, body, { id: 0, username: "", headers });
    const line = answer.headers.getSetCookie().find((each) => each.startsWith("flow="));
    if (line) {
      expect(line).toMatch(/HttpOnly/);
      expect(line).toMatch(/SameSite=Lax/);
      expect(line).toMatch(/Path=\/api\/oauth/);
      at.flow = line.split(";", 1)[0] ?? "";
    }
    return answer;
  };
  const start = async (at: Browser, provider = "github", more: Record<string, unknown> = {}) => {
    const { body } = await call(at, "POST", "/api/oauth/start", { provider, ...more });
    expect(body).toMatchObject({ success: true });
    return String(body.data["url"]);
  };
  const back = (
    at: Browser,
    query: URLSearchParams,
    provider = "github",
    more: Record<string, string> = {},
  ) => call(at, "GET", `/api/oauth/${provider}?${query}`, undefined, more);
  /** The whole way as this person. */
  const go = async (
    at: Browser,
    person: FakePerson,
    provider = "github",
    more: Record<string, unknown> = {},
  ) => back(at, fakes.signIn(await start(at, provider, more), person), provider);
  const person = (fields: Partial<FakePerson> = {}): FakePerson => ({
    id: 1000 + serial,
    login: `ghp${serial}${database[0]}`,
    name: "Ada L.",
    created_at: MADE,
    ...fields,
  });
  const rowsOf = (provider: string, subject: string) => {
    const { identities } = app.deps.db.t;
    return app.deps.db.orm
      .select()
      .from(identities)
      .where(and(eq(identities.provider, provider), eq(identities.subject, subject)));
  };
  const userOf = async (id: unknown) => {
    const { users } = app.deps.db.t;
    const [row] = await app.deps.db.orm
      .select()
      .from(users)
      .where(eq(users.id, Number(id)));
    return row;
  };
  const change = async (id: number, fields: Record<string, unknown>) => {
    const { users } = app.deps.db.t;
    await app.deps.db.orm.update(users).set(fields).where(eq(users.id, id));
    await app.deps.accounts.userChanged(id);
  };
  const bound = async (userId: number, provider: string, subject: string, legacy = false) => {
    const { identities } = app.deps.db.t;
    await app.deps.db.orm.insert(identities).values({ userId, provider, subject, legacy });
  };

  test("a new face becomes an account of its own, with a verified address, an inviter, and a session", async () => {
    await set("QuotaForNewUser", "1000");
    const inviter = await app.createUser();
    await change(inviter.id, { affCode: `c${serial}` });
    const who = person();
    fakes.mails.set(who.id, [
      { email: "other@mail.example", primary: false, verified: true },
      { email: `gh${serial}@mail.example`, primary: true, verified: true },
    ]);
    const answer = await go(browser(), who, "github", { next: "/token?p=1", aff: `c${serial}` });
    await set("QuotaForNewUser", "0");
    expect(answer.body).toMatchObject({
      success: true,
      data: { username: who.login, display_name: "Ada L.", role: 1, next: "/token?p=1", is_new: true },
    });
    const row = await userOf(answer.body.data["id"]);
    expect(row).toMatchObject({
      email: `gh${serial}@mail.example`,
      inviterId: inviter.id,
      passwordHash: "",
      quota: 1000,
    });
    expect(await rowsOf("github", String(who.id))).toMatchObject([
      { userId: row?.id, label: who.login, legacy: false },
    ]);
    const cookies = answer.headers.getSetCookie();
    expect(cookies.some((line) => line.startsWith("session=") && line.length > 50)).toBe(true);
    const { sessions, logs } = app.deps.db.t;
    const [session] = await app.deps.db.orm
      .select()
      .from(sessions)
      .where(eq(sessions.userId, row?.id ?? 0));
    expect(session).toMatchObject({ method: "provider", provider: "github" });
    await app.deps.ledger.flush();
    const told = await app.deps.db.orm
      .select()
      .from(logs)
      .where(eq(logs.userId, row?.id ?? 0));
    expect(told.map(({ content }) => content)).toContain(`通过 GitHub 账户 ${who.login} 注册`);
    // The second time it is the same account.
    const again = await go(browser(), { ...who, login: "renamed" });
    expect(again.body).toMatchObject({ success: true, data: { id: row?.id, is_new: false } });
  });

  test("Linux DO and Discord people come in by their own ids; an address only where it is verified", async () => {
    const dc = await go(
      browser(),
      {
        id: "80351110224678912",
        username: `dc${serial}`,
        login: "",
        global_name: "D",
        email: "d@mail.example",
        verified: false,
      },
      "discord",
    );
    expect(dc.body).toMatchObject({ success: true, data: { username: `dc${serial}`, display_name: "D" } });
    expect(await userOf(dc.body.data["id"])).toMatchObject({ email: "" });
    expect(await rowsOf("discord", "80351110224678912")).toHaveLength(1);
    await set("LinuxDOMinimumTrustLevel", "2");
    const ld: FakePerson = {
      id: 77,
      login: "",
      username: `ld${serial}`,
      trust_level: 1,
      active: true,
      api_key: "theirs",
    };
    expect((await go(browser(), ld, "linuxdo")).body).toMatchObject({
      success: false,
      code: "oauth_access_denied",
    });
    const fit = { ...ld, trust_level: 2 };
    expect((await go(browser(), { ...fit, silenced: true }, "linuxdo")).body.code).toBe(
      "oauth_access_denied",
    );
    expect((await go(browser(), { ...fit, active: false }, "linuxdo")).body.code).toBe("oauth_access_denied");
    expect((await go(browser(), fit, "linuxdo")).body).toMatchObject({
      success: true,
      data: { is_new: true },
    });
    await set("LinuxDOMinimumTrustLevel", "0");
  });

  test("names that are taken, reserved or nothing become made-up ones", async () => {
    const taken = await app.createUser({ username: `taken${serial}` });
    for (const login of [taken.username, "Admin", "", "用户"]) {
      const { body } = await go(browser(), person({ id: 5_000_000 + serial * 10 + login.length, login }));
      expect(body.data["username"]).toMatch(/^github_\d{7}$/);
    }
  });

  describe("the state (cases 21 to 23)", () => {
    test("absent, wrong, used, expired, of another browser or provider: one sentence, and no code is exchanged", async () => {
      const at = browser();
      const refused = async (answer: ReturnType<typeof back>) => {
        const { status, body } = await answer;
        expect([status, body.message, body.code]).toEqual([403, "state is empty or not same", "oauth_state"]);
      };
      const query = fakes.signIn(await start(at), person());
      const before = fakes.asked.length;
      await refused(back(at, new URLSearchParams({ code: "x" })));
      await refused(back(at, new URLSearchParams({ code: "x", state: "nobody's" })));
      // The attacker's state in the victim's browser, which has a flow of its own or none.
      await refused(back(browser(), query));
      const other = browser();
      await start(other);
      await refused(back(other, query));
      await refused(back(at, query, "discord"));
      expect(fakes.asked.length).toBe(before);
      // None of that used it up.
      expect((await back(at, query)).body.success).toBe(true);
      await refused(back(at, query));
      const late = fakes.signIn(await start(at), person());
      clock.advance(601_000);
      await refused(back(at, late));
    });

    test("a state is good once, however many come with it at once", async () => {
      const at = browser();
      const query = fakes.signIn(await start(at), person());
      const answers = await Promise.all(Array.from({ length: 8 }, () => back(at, query)));
      expect(answers.filter(({ body }) => body.success)).toHaveLength(1);
    });

    test("a refusal of the provider uses the state up and is told as plain text", async () => {
      const at = browser();
      const state = new URL(await start(at)).searchParams.get("state") ?? "";
      const error = new URLSearchParams({
        state,
        error: "access_denied",
        error_description: `<b>no</b>${"x".repeat(300)}`,
      });
      const { body } = await back(at, error);
      expect(body.code).toBe("oauth_denied");
      expect(body.message).not.toContain("<");
      expect(body.message.length).toBeLessThan(260);
      expect((await back(at, error)).status).toBe(403);
    });

    test("older consoles get a state for the providers that they know", async () => {
      const at = browser();
      const { body } = await call(at, "GET", "/api/oauth/state");
      const state = body.data as unknown as string;
      const url = `https://x.example/?client_id=the-id&redirect_uri=https://gate.example/oauth/github&state=${state}`;
      const answer = await back(at, fakes.signIn(url, person()));
      expect(answer.body).toMatchObject({ success: true, data: { is_new: true } });
    });
  });

  describe("binding", () => {
    test("to whoever is signed in, from a page of this site, by a cookie and the header (case 24)", async () => {
      const user = await app.createUser();
      const who = person();
      const body = { provider: "github", intent: "bind" };
      const at = browser(user);
      expect((await call(browser(), "POST", "/api/oauth/start", body)).status).toBe(401);
      const cookieOnly = browser({ ...user, headers: { cookie: user.headers["cookie"] ?? "" } });
      expect((await call(cookieOnly, "POST", "/api/oauth/start", body)).status).toBe(401);
      const foreign = await call(at, "POST", "/api/oauth/start", body, { "sec-fetch-site": "cross-site" });
      expect(foreign.body.code).toBe("foreign_site");
      const token = browser({
        ...user,
        headers: { authorization: "Bearer x", "new-api-user": String(user.id) },
      });
      expect((await call(token, "POST", "/api/oauth/start", body)).status).toBe(401);

      const query = fakes.signIn(await start(at, "github", { intent: "bind" }), who);
      // In another account's session it is nobody's flow.
      const thief = { ...browser(await app.createUser()), flow: at.flow };
      expect((await back(thief, query)).status).toBe(403);
      expect((await back(at, query, "github", { "sec-fetch-site": "cross-site" })).body.code).toBe(
        "foreign_site",
      );
      const done = await go(at, who, "github", { intent: "bind", next: "/personal" });
      expect(done.body).toMatchObject({ success: true, message: "bind", data: { next: "/personal" } });
      expect((await go(at, who, "github", { intent: "bind" })).body.code).toBe("oauth_bound");
      expect((await go(at, person({ id: 9_000_000 + serial }), "github", { intent: "bind" })).body.code).toBe(
        "oauth_bound_other",
      );
      const second = browser(await app.createUser());
      const taken = await go(second, who, "github", { intent: "bind" });
      expect(taken.body).toMatchObject({ code: "oauth_bound", message: "该 GitHub 账户已被绑定" });
      // Whoever is signed in does not bind by signing in.
      const visit = await go(second, who);
      expect(visit.body.data["id"]).toBe(user.id);
    });

    test("a proof is one of the same foreign account, and renews the session's", async () => {
      const user = await app.createUser();
      const at = browser(user);
      const who = person();
      await bound(user.id, "github", String(who.id));
      const { sessions } = app.deps.db.t;
      const sudo = async () =>
        (await app.deps.db.orm.select().from(sessions).where(eq(sessions.userId, user.id)))[0]?.sudoUntil ??
        0;
      const before = await sudo();
      clock.advance(60_000);
      expect(
        (await go(at, person({ id: 8_000_000 + serial }), "github", { intent: "verify" })).body.code,
      ).toBe("oauth_other_account");
      expect(await sudo()).toBe(before);
      expect((await go(at, who, "github", { intent: "verify" })).body).toMatchObject({
        success: true,
        message: "verify",
      });
      expect(await sudo()).toBe(before + 60);

      // Of an account with a second factor a provider is no proof: neither begun, nor come back from where it was begun before.
      clock.advance(60_000);
      const query = fakes.signIn(await start(at, "github", { intent: "verify" }), who);
      const { totps } = app.deps.db.t;
      const now = Math.floor(clock.nowMs() / 1000);
      await app.deps.db.orm.insert(totps).values({ userId: user.id, secretSealed: "x", createdAt: now });
      const asked = { status: 403, body: { code: "verification_required", data: { methods: ["2fa"] } } };
      expect(await back(at, query)).toMatchObject(asked);
      const begun = await call(at, "POST", "/api/oauth/start", { provider: "github", intent: "verify" });
      expect(begun).toMatchObject(asked);
      expect(await sudo()).toBe(before + 60);
    });

    test("lists, gives up, and keeps the last way in (case 33)", async () => {
      const user = await app.createUser();
      await bound(user.id, "github", `u${user.id}`);
      const at = browser(user);
      const list = await call(at, "GET", "/api/user/oauth/bindings");
      expect(list.body.data).toMatchObject([
        { provider: "github", account: { label: `u${user.id}` }, enabled: true },
        { provider: "discord", account: null },
        { provider: "linuxdo", account: null },
      ]);
      const unbind = () => call(at, "DELETE", "/api/user/oauth/bindings/github");
      expect((await unbind()).body.code).toBe("last_method");
      expect((await call(at, "DELETE", "/api/user/oauth/bindings/discord")).body.code).toBe("oauth_unbound");
      await change(user.id, { passwordHash: "x" });
      await set("PasswordLoginEnabled", "false");
      expect((await unbind()).body.code).toBe("last_method");
      await set("PasswordLoginEnabled", "true");
      expect((await unbind()).body.success).toBe(true);
      expect(await rowsOf("github", `u${user.id}`)).toEqual([]);
    });

    test("two last ways cannot go at once", async () => {
      const user = await app.createUser();
      await bound(user.id, "github", `u${user.id}`);
      await bound(user.id, "discord", `u${user.id}`);
      const at = browser(user);
      const answers = await Promise.all(
        ["github", "discord"].map((id) => call(at, "DELETE", `/api/user/oauth/bindings/${id}`)),
      );
      expect(answers.filter(({ body }) => body.success)).toHaveLength(1);
    });

    test("administrators see and undo those of lower ranks", async () => {
      const [admin, peer, user] = [
        await app.createUser({ role: 10 }),
        await app.createUser({ role: 10 }),
        await app.createUser(),
      ];
      for (const each of [peer, user]) await bound(each.id, "discord", `u${each.id}`);
      const at = browser(admin);
      const path = (id: number) => `/api/user/${id}/oauth/bindings`;
      expect((await call(at, "GET", path(peer.id))).body.success).toBe(false);
      expect((await call(at, "DELETE", `${path(peer.id)}/discord`)).body.success).toBe(false);
      expect((await call(at, "GET", path(user.id))).body.success).toBe(true);
      expect((await call(browser(user), "GET", path(user.id))).status).toBe(403);
      expect((await call(at, "DELETE", `${path(user.id)}/discord`)).body.success).toBe(true);
      expect(await rowsOf("discord", `u${user.id}`)).toEqual([]);
      // One's own go by the call that asks for a session and for proof.
      await bound(admin.id, "discord", `u${admin.id}`);
      const own = await call(at, "DELETE", `${path(admin.id)}/discord`);
      expect(own.body).toMatchObject({ success: false, code: "user_rank_update" });
      expect(await rowsOf("discord", `u${admin.id}`)).toHaveLength(1);
    });
  });

  test("an address neither opens the account that has it nor makes a second one (case 27)", async () => {
    const root = await app.createUser({ role: 100 });
    const mail = `root${serial}@mail.example`;
    await change(root.id, { email: mail, emailKey: mail });
    const who = person();
    for (const rows of [[{ email: mail.toUpperCase(), primary: true, verified: true }]]) {
      fakes.mails.set(who.id, rows);
      expect((await go(browser(), who)).body.code).toBe("oauth_email_exists");
      expect(await rowsOf("github", String(who.id))).toEqual([]);
    }
    fakes.mails.set(who.id, [{ email: mail, primary: true, verified: false }]);
    const { body } = await go(browser(), who);
    expect(body).toMatchObject({ success: true, data: { is_new: true } });
    expect(body.data["id"]).not.toBe(root.id);
    expect(await userOf(body.data["id"])).toMatchObject({ email: "", role: 1 });
  });

  test("an imported login counts once, for who had it before the account here was made (case 28)", async () => {
    const [old, young] = [await app.createUser(), await app.createUser()];
    await change(old.id, { createdAt: MADE_SECONDS + 10 });
    await change(young.id, { createdAt: MADE_SECONDS - 10 });
    await bound(old.id, "github", `old${serial}`, true);
    await bound(young.id, "github", `young${serial}`, true);
    // The name was free and somebody else took it.
    const thief = await go(browser(), person({ id: 40_000 + serial, login: `Young${serial}` }));
    expect(thief.body.data["id"]).not.toBe(young.id);
    await set("GitHubLegacyNames", "false");
    const off = await go(browser(), person({ id: 41_000 + serial, login: `old${serial}` }));
    expect(off.body.data["id"]).not.toBe(old.id);
    await set("GitHubLegacyNames", "true");
    const right = await go(browser(), person({ id: 42_000 + serial, login: `Old${serial}` }));
    expect(right.body.data).toMatchObject({ id: old.id, is_new: false });
    expect(await rowsOf("github", String(42_000 + serial))).toMatchObject([
      { userId: old.id, legacy: false },
    ]);
    const again = await go(browser(), person({ id: 43_000 + serial, login: `old${serial}` }));
    expect(again.body.data["id"]).not.toBe(old.id);
    // A login may be all digits: it is no number.
    const digits = await app.createUser();
    await bound(digits.id, "github", `9${serial}00`, true);
    const clash = await go(
      browser(),
      person({ id: Number(`9${serial}00`), login: "somebody", created_at: MADE }),
    );
    expect(clash.body.data?.["id"]).not.toBe(digits.id);
  });

  test("many returns of one new subject make one account, with one gift (case 29)", async () => {
    await set("QuotaForNewUser", "500");
    const who = person();
    const queries: [Browser, URLSearchParams][] = [];
    for (let n = 0; n < 6; n++) {
      const at = browser();
      queries.push([at, fakes.signIn(await start(at), who)]);
    }
    const answers = await Promise.all(queries.map(([at, query]) => back(at, query)));
    await set("QuotaForNewUser", "0");
    expect(answers.map(({ body }) => body.success)).toEqual(answers.map(() => true));
    expect(new Set(answers.map(({ body }) => body.data["id"])).size).toBe(1);
    expect(await userOf(answers[0]?.body.data["id"])).toMatchObject({ quota: 500 });
  });

  test("closed registration, terms, banned and deleted accounts have their sentences", async () => {
    await set("RegisterEnabled", "false");
    expect((await go(browser(), person())).body.message).toBe("管理员关闭了新用户注册");
    await set("RegisterEnabled", "true");
    await set("legal.terms", "# Terms");
    expect((await go(browser(), person())).body.code).toBe("terms_unaccepted");
    const made = await go(browser(), person(), "github", { accept_terms: true });
    await set("legal.terms", "");
    expect(await userOf(made.body.data["id"])).toMatchObject({
      termsVersion: expect.stringMatching(/^\w{16}$/),
    });
    const id = Number(made.body.data["id"]);
    await change(id, { status: 2 });
    expect((await go(browser(), person())).body.message).toBe("用户已被封禁");
    await change(id, { status: 1, deletedAt: 5 });
    expect((await go(browser(), person())).body.message).toBe("用户已注销");
  });

  test("who has one-time codes gets no session before one is shown", async () => {
    const user = await app.createUser();
    const who = person();
    await bound(user.id, "github", String(who.id));
    const { totps } = app.deps.db.t;
    await app.deps.db.orm.insert(totps).values({ userId: user.id, secretSealed: "x", createdAt: 1 });
    const answer = await go(browser(), who, "github", { next: "/log" });
    expect(answer.body.data).toMatchObject({
      require_2fa: true,
      flow_token: expect.any(String),
      next: "/log",
    });
    expect(answer.headers.getSetCookie().filter((line) => line.startsWith("session="))).toEqual([]);
  });

  test("WeChat and Telegram come in by routes of their own, and count as ways in while they are on", async () => {
    expect((await call(browser(), "GET", "/api/oauth/wechat?code=1")).body.code).toBe("oauth_off");
    await set("WeChatServerAddress", fakes.url);
    await set("WeChatServerToken", "the-token");
    await set("WeChatAccountQRCodeImageURL", "https://wechat.example/qr.png");
    await set("WeChatAuthEnabled", "true");
    await set("TelegramBotToken", "1:token");
    await set("TelegramBotName", "weir_bot");
    await set("TelegramOAuthEnabled", "true");
    const made = await call(browser(), "GET", `/api/oauth/wechat?code=open-${serial}`);
    expect(made.body).toMatchObject({ success: true, data: { is_new: true } });
    expect(made.body.data["username"]).toMatch(/^wechat_\d{7}$/);
    const again = await call(browser(), "GET", `/api/oauth/wechat?code=open-${serial}`);
    expect(again.body.data).toMatchObject({ id: made.body.data["id"], is_new: false });
    const signed = () => {
      const fields = {
        auth_date: String(Math.floor(clock.nowMs() / 1000)),
        first_name: "T",
        id: `70${serial}`,
      };
      const text = Object.entries(fields)
        .map(([key, value]) => `${key}=${value}`)
        .join("\n");
      const key = createHash("sha256").update("1:token").digest();
      const hash = createHmac("sha256", key).update(text).digest("hex");
      return new URLSearchParams({ ...fields, hash });
    };
    // A link, or a page of another site, signs nobody in to the account of whoever made it.
    const elsewhere: Record<string, string>[] = [
      { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" },
      { "sec-fetch-site": "cross-site", "sec-fetch-mode": "cors" },
      { "sec-fetch-site": "none", "sec-fetch-mode": "navigate" },
      { referer: "https://evil.example/" },
    ];
    for (const headers of elsewhere)
      for (const path of [`/api/oauth/wechat?code=open-${serial}`, `/api/oauth/telegram/login?${signed()}`]) {
        const answer = await call(browser(), "GET", path, undefined, headers);
        expect([path, headers, answer.body.code]).toEqual([path, headers, "foreign_site"]);
        expect(answer.headers.getSetCookie().join()).not.toContain("session=");
      }
    /** As the console's page brings the result; by Telegram only where this browser began it, and once. */
    const comeByTelegram = async (at: Browser) => {
      await call(at, "POST", "/api/oauth/start", { provider: "telegram", intent: "signin" });
      return call(at, "GET", `/api/oauth/telegram/login?${signed()}`);
    };
    const stranger = browser();
    expect((await call(stranger, "GET", `/api/oauth/telegram/login?${signed()}`)).body.code).toBe(
      "oauth_state",
    );
    // What another browser began is not this one's.
    await call(browser(), "POST", "/api/oauth/start", { provider: "telegram", intent: "signin" });
    expect((await call(stranger, "GET", `/api/oauth/telegram/login?${signed()}`)).body.code).toBe(
      "oauth_state",
    );
    const unknown = await comeByTelegram(stranger);
    expect(unknown.body).toMatchObject({ code: "oauth_unbound", message: "该 Telegram 账户未绑定" });
    clock.advance(1000);
    expect((await call(stranger, "GET", `/api/oauth/telegram/login?${signed()}`)).body.code).toBe(
      "oauth_state",
    );
    const user = await app.createUser();
    // A link of somebody else's would bind their account to whoever follows it: only what this session began counts, once.
    const own = browser(user);
    const toBind = () => call(own, "GET", `/api/oauth/telegram/bind?${signed()}`);
    const begin = (who: typeof own, intent: string) =>
      call(who, "POST", "/api/oauth/start", { provider: "telegram", intent });
    expect((await toBind()).body.code).toBe("oauth_state");
    await begin(browser(user), "bind");
    await begin(browser(), "signin");
    expect((await toBind()).body.code).toBe("oauth_state");
    expect((await begin(own, "verify")).body.success).toBe(false);
    const page = new URL(String((await begin(own, "bind")).body.data["url"]));
    expect(page.origin + page.pathname).toBe("https://oauth.telegram.org/auth");
    expect(Object.fromEntries(page.searchParams)).toEqual({
      bot_id: "1",
      origin: "https://gate.example",
      return_to: "https://gate.example/oauth/telegram",
    });
    expect((await toBind()).body).toMatchObject({ success: true, message: "bind" });
    clock.advance(1000);
    expect((await toBind()).body.code).toBe("oauth_state");
    clock.advance(1000);
    const known = await comeByTelegram(browser());
    expect(known.body.data).toMatchObject({ id: user.id });
    const { body } = await app.call<Told>("GET", "/api/status");
    expect(body.data["sign_in_providers"]).toMatchObject([
      { id: "github" },
      { id: "discord" },
      { id: "linuxdo" },
      { id: "wechat", kind: "wechat" },
      { id: "telegram", kind: "telegram" },
    ]);
    expect((await call(browser(), "POST", "/api/oauth/start", { provider: "wechat" })).body.success).toBe(
      false,
    );
    const at = browser(user);
    expect((await call(at, "DELETE", "/api/user/oauth/bindings/telegram")).body.code).toBe("last_method");
    await set("WeChatAuthEnabled", "false");
    await set("TelegramOAuthEnabled", "false");
  });

  test("redirects, errors, nonsense, floods and closed networks of a provider are failures, not faults (case 31)", async () => {
    const wrongs: [string, () => Response][] = [
      ["302", () => new Response(null, { status: 302, headers: { location: "http://169.254.169.254/" } })],
      ["500", () => new Response("down", { status: 500 })],
      ["html", () => new Response("<html>access_token=1</html>")],
      ["5 MB", () => new Response("x".repeat(5_000_000))],
      ["error with 200", () => Response.json({ error: "bad_verification_code", access_token: "x" })],
      ["list", () => Response.json([1])],
      ["empty", () => new Response("")],
    ];
    for (const [name, answer] of wrongs) {
      fakes.wrong.token = answer;
      const { status, body } = await go(browser(), person());
      expect([name, status, body.success]).toEqual([name, 200, false]);
      expect(body.code).toMatch(/^oauth_(exchange_failed|unreachable)$/);
      fakes.wrong.token = undefined;
      fakes.wrong.profile = answer;
      const profile = await go(browser(), person());
      expect([name, profile.status, profile.body.success]).toEqual([name, 200, false]);
      expect(profile.body.code).toMatch(/^oauth_(profile_failed|profile_empty|unreachable)$/);
      fakes.wrong.profile = undefined;
    }
    await set("GitHubBaseUrl", "http://169.254.169.254");
    const at = browser();
    const state = new URL(await start(at)).searchParams.get("state") ?? "";
    expect((await back(at, new URLSearchParams({ code: "x", state }))).body.code).toBe("oauth_unreachable");
    await set("GitHubBaseUrl", fakes.url);
  });

  test("a wrong secret answers the exchange's sentence and shows no secret", async () => {
    await set("GitHubClientSecret", "another");
    const { body, text } = await go(browser(), person());
    await set("GitHubClientSecret", "the-secret");
    expect(body).toMatchObject({
      code: "oauth_exchange_failed",
      message: "GitHub 获取 Token 失败，请检查设置！",
    });
    expect(text).not.toContain("another");
  });

  test("switches keep a way in for root, and tell whom they leave without one (case 33)", async () => {
    const { users } = app.deps.db.t;
    await app.deps.db.orm.update(users).set({ role: 1 }).where(eq(users.role, 100));
    const root = await app.createUser({ role: 100 });
    const at = browser(root);
    const put = (key: string, value: string) => call(at, "PUT", "/api/option/", { key, value });
    expect((await put("PasswordLoginEnabled", "false")).body.code).toBe("last_method");
    await bound(root.id, "github", `u${root.id}`);
    expect((await put("GitHubOAuthEnabled", "false")).body.code).toBe("last_method");
    await change(root.id, { passwordHash: "x" });
    expect((await put("PasswordLoginEnabled", "false")).body.success).toBe(true);
    expect((await put("GitHubOAuthEnabled", "false")).body.code).toBe("last_method");
    expect((await put("PasswordLoginEnabled", "true")).body.success).toBe(true);
    // A settings file may switch both off at once: each alone would leave the other.
    const file = { format: 1, options: { PasswordLoginEnabled: false, GitHubOAuthEnabled: false } };
    const applied = await call(at, "POST", "/api/config/apply", { document: file });
    expect(applied.body.code).toBe("last_method");
    expect(app.deps.options.get("PasswordLoginEnabled")).toBe(true);
    const off = await put("GitHubOAuthEnabled", "false");
    expect(off.body).toMatchObject({ success: true, accounts_without_sign_in: expect.any(Number) });
    const status = await app.call<Told>("GET", "/api/status");
    expect(status.body.data).toMatchObject({
      github_oauth: false,
      discord_oauth: true,
      sign_in_providers: [{ id: "discord" }, { id: "linuxdo" }],
    });
    expect((await call(browser(), "POST", "/api/oauth/start", { provider: "github" })).body).toMatchObject({
      code: "oauth_off",
      message: "管理员未开启通过 GitHub 登录以及注册",
    });
    expect((await put("GitHubOAuthEnabled", "true")).body.success).toBe(true);
    expect((await put("ServerAddress", "")).body.code).toBe("option_in_use");
  });

  test("sixty failures of one address are enough", async () => {
    const at = { ...browser(), from: "192.0.2.77" };
    const codes = new Set<string | undefined>();
    for (let n = 0; n < 62; n++) codes.add((await back(at, new URLSearchParams({ state: "x" }))).body.code);
    expect([...codes]).toEqual(["oauth_state", "too_many_attempts"]);
  });
});
