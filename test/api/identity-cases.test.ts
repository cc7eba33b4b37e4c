// Cases of identity.md 11 that no other file tells as its own: each name begins with the number of its case.
// `test/identity-cases.test.ts` lists all forty and where each is tested. On both databases.
import { afterAll, beforeAll, beforeEach, describe, expect, spyOn, test } from "bun:test";
import { eq } from "drizzle-orm";
import { Secret, TOTP } from "otpauth";
import { hashPassword } from "../../src/core/users/credentials.ts";
import { askProvider } from "../../src/core/users/providers/ask.ts";
import { Role, UserStatus } from "../../src/shared/enums.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { testClock } from "../support/clock.ts";
import { startMailServer } from "../support/mail-server.ts";
import type { MailServerStand } from "../support/mail-server.ts";
import { createTestDatabase, DATABASE_KINDS } from "../support/postgres.ts";
import { startProviderFakes } from "../support/provider-fakes.ts";
import { until } from "../relay/support.ts";

const PASSWORD = "correct horse battery";

interface Told<T = Record<string, unknown>> {
  success: boolean;
  code?: string;
  data: T;
}

describe.each(DATABASE_KINDS)("on %s", (database) => {
  const clock = testClock();
  let app: TestApp;
  let mail: MailServerStand;
  let passwordHash = "";
  let serial = 0;

  beforeAll(async () => {
    mail = await startMailServer();
    app = await startTestApp({ database, clock, env: { CRITICAL_RATE_LIMIT_ENABLE: "false" } });
    for (const [key, text] of [
      ["SMTPServer", "127.0.0.1"],
      ["SMTPPort", String(mail.port)],
      ["SMTPFrom", "site@mail.example"],
      ["ServerAddress", "https://gate.example"],
      ["EmailVerificationEnabled", "true"],
      ["passkey.enabled", "true"],
    ] as const)
      await app.deps.options.set(key, text);
    passwordHash = await hashPassword(PASSWORD);
  });
  afterAll(async () => {
    await app.close();
    await mail.close();
  });
  beforeEach(() => {
    serial += 1;
    mail.letters.length = 0;
    clock.advance(48 * 3_600_000);
  });

  const post = <T = Record<string, unknown>>(path: string, body: unknown, as?: TestUser) =>
    app.call<Told<T>>("POST", path, body, as);
  const address = (name = "own") => `${name}${serial}${database[0]}@mail.example`;
  async function account(fields: Record<string, unknown> = {}, role: number = Role.user): Promise<TestUser> {
    const user = await app.createUser({ role });
    const { users } = app.deps.db.t;
    await app.deps.db.orm
      .update(users)
      .set({ passwordHash, ...fields })
      .where(eq(users.id, user.id));
    await app.deps.accounts.userChanged(user.id);
    return user;
  }
  const withMail = (email: string) => account({ email, emailKey: email });
  const signIn = (username: string, password = PASSWORD, cookie = "") =>
    post("/api/user/login", { username, password }, { id: 0, username, headers: { cookie } });
  const sessionOf = (answer: Awaited<ReturnType<typeof signIn>>) =>
    answer.headers
      .getSetCookie()
      .find((line) => line.startsWith("session="))
      ?.split(";", 1)[0] ?? "";
  const as = (user: TestUser, cookie: string): TestUser => ({
    ...user,
    headers: { cookie, "new-api-user": String(user.id) },
  });
  /** Letters about other things come in between. */
  const resetToken = async (email: string) => {
    mail.letters.length = 0;
    await app.call("GET", `/api/reset_password?email=${email}`);
    const link = /token=([0-9a-f]{32})/;
    return until(() =>
      Promise.resolve(mail.letters.map(({ text }) => link.exec(text)?.[1]).find((each) => each)),
    );
  };
  async function enrol(user: TestUser): Promise<{ code: () => string; flowToken: string }> {
    await prove(user);
    const setup = await post<{ secret: string; flow_token: string }>("/api/user/2fa/setup", {}, user);
    const { secret, flow_token: flowToken } = setup.body.data;
    const totp = new TOTP({ secret: Secret.fromBase32(secret) });
    const code = () => totp.generate({ timestamp: clock.nowMs() });
    const body = { code: code(), flow_token: flowToken };
    expect((await post("/api/user/2fa/enable", body, user)).body.success).toBe(true);
    clock.advance(60_000);
    return { code, flowToken };
  }
  async function prove(user: TestUser) {
    const { sessions } = app.deps.db.t;
    const rows = await app.deps.db.orm.select().from(sessions).where(eq(sessions.userId, user.id));
    for (const { id } of rows) await app.deps.sessions.prove(id, Math.floor(clock.nowMs() / 1000) + 600);
  }

  test("3: unknown, wrong, banned, deleted and provider-only accounts are one answer after one hash each", async () => {
    const known = await account();
    const banned = await account({ status: UserStatus.disabled });
    const deleted = await account({ deletedAt: 1 });
    const provided = await account({ passwordHash: "" });
    const verify = spyOn(Bun.password, "verify");
    try {
      const answers: unknown[] = [];
      for (const [name, password] of [
        ["nobody-at-all", PASSWORD],
        [known.username, "wrong horse battery"],
        [banned.username, PASSWORD],
        [deleted.username, PASSWORD],
        [provided.username, PASSWORD],
        [provided.username, ""],
      ] as const) {
        verify.mockClear();
        const { status, text, headers } = await signIn(name, password);
        const cookies = headers.getSetCookie();
        if (password !== "") answers.push([status, text, cookies, verify.mock.calls.length]);
        else expect([JSON.parse(text), cookies]).toMatchObject([{ code: "login_empty" }, []]);
      }
      expect(answers[0]).toMatchObject([200, expect.stringContaining("login_failed"), [], 1]);
      expect(answers).toEqual(answers.map(() => answers[0]));
    } finally {
      verify.mockRestore();
    }
    expect((await signIn(known.username)).body.success).toBe(true);
  });

  test("4: a name in the question changes nothing in the options of a passkey sign-in", async () => {
    const user = await account();
    const seen: unknown[] = [];
    for (const body of [{}, { username: user.username }, { username: "nobody-at-all" }]) {
      const answer = await post<{ options: Record<string, unknown>; flow_token: string }>(
        "/api/user/passkey/login/begin",
        body,
      );
      const { options, flow_token: token } = answer.body.data;
      seen.push([answer.status, { ...options, challenge: "" }, token.length]);
    }
    expect(seen).toEqual([seen[0], seen[0], seen[0]]);
    expect(seen[0]).toMatchObject([200, { allowCredentials: [] }, expect.any(Number)]);
  });

  test("8: a code, a link and a flow are good for what they were made for alone", async () => {
    const email = address();
    const owner = await withMail(email);
    await app.call("GET", `/api/verification?email=${address("free")}`);
    const code = /\b\d{6}\b/.exec(mail.letters.at(-1)?.text ?? "")?.[0] ?? "";
    const link = await resetToken(email);
    const { flowToken: setupToken } = await enrol(owner);
    const second = (await signIn(owner.username)).body.data["flow_token"];
    const codeOf = async (path: string, body: unknown, user?: TestUser) =>
      (await post(path, body, user)).body.code;
    // Purposes.
    expect(await codeOf("/api/user/reset", { email: address("free"), token: code })).toBe("reset_link_wrong");
    expect(await codeOf("/api/user/reset", { email, token: second })).toBe("reset_link_wrong");
    const register = { username: `n${serial}${database[0]}`, password: PASSWORD, email: address("free") };
    for (const verification_code of [link, second, setupToken])
      expect(await codeOf("/api/user/register", { ...register, verification_code })).toBe("code_wrong");
    for (const flow_token of [link, setupToken, code])
      expect(await codeOf("/api/user/login/2fa", { flow_token, code: "000000" })).toBe("flow_over");
    for (const flow_token of [second, link])
      expect(await codeOf("/api/user/passkey/login/finish", { flow_token, response: {} })).toBe("flow_over");
    await prove(owner);
    const verify = await post<{ flow_token: string }>("/api/user/passkey/verify/begin", {}, owner);
    const { flow_token } = verify.body.data;
    expect(await codeOf("/api/user/passkey/login/finish", { flow_token, response: {} })).toBe("flow_over");
    // Addresses.
    expect(
      await codeOf("/api/user/register", { ...register, email: address("b"), verification_code: code }),
    ).toBe("code_wrong");
    expect(await codeOf("/api/user/reset", { email: address("b"), token: link })).toBe("reset_link_wrong");
    // None of that used the right ones up.
    expect((await post("/api/user/register", { ...register, verification_code: code })).body.success).toBe(
      true,
    );
    expect((await post("/api/user/reset", { email, token: link })).body.success).toBe(true);
  });

  test("12: a reset ends sessions, access token and what was begun; the one-time codes stay", async () => {
    const email = address();
    const user = await withMail(email);
    const { code } = await enrol(user);
    await prove(user);
    const access = (await app.call<Told<string>>("GET", "/api/user/token", undefined, user)).body.data;
    const begun = (await signIn(user.username)).body.data["flow_token"];
    const token = await resetToken(email);
    const password = "another good one";
    expect((await post("/api/user/reset", { email, token, password })).body.success).toBe(true);
    const program = { ...user, headers: { authorization: access, "new-api-user": String(user.id) } };
    for (const old of [user, program])
      expect((await app.call<Told>("GET", "/api/user/self", undefined, old)).body.success).toBe(false);
    expect((await post("/api/user/login/2fa", { flow_token: begun, code: code() })).body.code).toBe(
      "flow_over",
    );
    const again = await signIn(user.username, password);
    expect(again.body.data).toMatchObject({ require_2fa: true, methods: ["totp", "backup"] });
    expect(sessionOf(again)).toBe("");
    const body = { flow_token: again.body.data["flow_token"], code: code() };
    expect((await post("/api/user/login/2fa", body)).body).toMatchObject({ success: true });
  });

  test("33: whoever has nothing but a passkey keeps it", async () => {
    const user = await account({ passwordHash: "" });
    const { passkeys } = app.deps.db.t;
    const add = async (name: string) => {
      const row = { userId: user.id, credentialId: `${name}${user.id}`, publicKey: "x", name, createdAt: 1 };
      const [made] = await app.deps.db.orm.insert(passkeys).values(row).returning({ id: passkeys.id });
      return made?.id;
    };
    const [one, two] = [await add("one"), await add("two")];
    await prove(user);
    const remove = async (id: number | undefined) =>
      (await app.call<Told>("DELETE", `/api/user/passkey/${id}`, undefined, user)).body.code ?? "ok";
    expect([await remove(one), await remove(two)]).toEqual(["ok", "last_method"]);
    const left = await app.deps.db.orm.select().from(passkeys).where(eq(passkeys.userId, user.id));
    expect(left.map(({ name }) => name)).toEqual(["two"]);
  });

  test("33: an operator's own provider is neither switched off nor deleted under root, and says whom it leaves outside", async () => {
    const { users, identities } = app.deps.db.t;
    await app.deps.db.orm.update(users).set({ role: Role.user }).where(eq(users.role, Role.root));
    const root = await app.createUser({ role: Role.root });
    await prove(root);
    const provider = {
      name: "Work",
      slug: `work-${database}`,
      kind: "oauth2",
      enabled: true,
      client_id: "id",
      client_secret: "secret",
      authorization_endpoint: "https://work.example/a",
      token_endpoint: "https://work.example/t",
      user_info_endpoint: "https://work.example/u",
    };
    expect((await post("/api/custom-oauth-provider/", provider, root)).body.success).toBe(true);
    const path = `/api/custom-oauth-provider/${provider.slug}`;
    const bind = async (user: TestUser) =>
      app.deps.db.orm
        .insert(identities)
        .values({ userId: user.id, provider: provider.slug, subject: `${user.id}` });
    await bind(root);
    const off = () =>
      app.call<Told & { accounts_without_sign_in?: number }>("PUT", path, { enabled: false }, root);
    expect((await off()).body.code).toBe("last_method");
    expect((await app.call<Told>("DELETE", path, undefined, root)).body.code).toBe("last_method");
    await app.deps.db.orm.update(users).set({ passwordHash }).where(eq(users.id, root.id));
    await bind(await account({ passwordHash: "" }));
    await bind(await account());
    const before = await app.call<Told>("GET", `${path}/ways_in`, undefined, root);
    expect(before.body).toMatchObject({ data: { accounts_without_sign_in: 1, passkeys_orphaned: 0 } });
    expect((await off()).body).toMatchObject({ success: true, accounts_without_sign_in: 1 });
    const gone = await app.call<Told>("DELETE", path, undefined, root);
    expect(gone.body).toMatchObject({ success: true, data: { identities: 3 } });
  });

  test("33: two roots who switch off two providers at once leave one of them", async () => {
    const { users, identities } = app.deps.db.t;
    await app.deps.db.orm.update(users).set({ role: Role.user }).where(eq(users.role, Role.root));
    const roots = [await app.createUser({ role: Role.root }), await app.createUser({ role: Role.root })];
    const slugs = [`left-${database}`, `right-${database}`];
    for (const [at, root] of roots.entries()) {
      await prove(root);
      const provider = {
        name: "Work",
        slug: slugs[at],
        kind: "oauth2",
        enabled: true,
        client_id: "id",
        client_secret: "secret",
        authorization_endpoint: "https://work.example/a",
        token_endpoint: "https://work.example/t",
        user_info_endpoint: "https://work.example/u",
      };
      expect((await post("/api/custom-oauth-provider/", provider, root)).body.success).toBe(true);
      for (const slug of slugs)
        await app.deps.db.orm
          .insert(identities)
          .values({ userId: root.id, provider: slug, subject: `${root.id}` });
    }
    const put = async (enabled: boolean, at: number) =>
      (await app.call<Told>("PUT", `/api/custom-oauth-provider/${slugs[at]}`, { enabled }, roots[at])).body;
    for (let round = 0; round < 3; round++) {
      const told = await Promise.all([put(false, 0), put(false, 1)]);
      expect(told.map(({ code = "done" }) => code).toSorted()).toEqual(["done", "last_method"]);
      await put(true, told[0].success ? 0 : 1);
    }
    // One of them by an option, one of them by the row: they wait for the same thing.
    await app.deps.options.set("GitHubClientId", "id");
    await app.deps.options.set("GitHubClientSecret", "secret");
    await app.deps.options.set("GitHubOAuthEnabled", "true");
    await app.deps.db.orm
      .update(identities)
      .set({ provider: "github" })
      .where(eq(identities.provider, slugs[0] ?? ""));
    const option = { key: "GitHubOAuthEnabled", value: "false" };
    const preview = `/api/option/ways_in?key=${option.key}&value=false`;
    const told = await Promise.all([
      app.call<Told>("PUT", "/api/option/", option, roots[0]).then(({ body }) => body),
      put(false, 1),
    ]);
    expect(told.map(({ code = "done" }) => code).toSorted()).toEqual(["done", "last_method"]);
    // Before it is tried it is told, and nothing is written by asking.
    const asked = await app.call<Told>("GET", preview, undefined, roots[0]);
    if (told[1].success) expect(asked.body.code).toBe("last_method");
    else expect(asked.body).toMatchObject({ data: { accounts_without_sign_in: 0, passkeys_orphaned: 0 } });
    await app.deps.options.set("GitHubOAuthEnabled", "false");
  });

  test("33: another host ends all passkeys: refused where root has nothing else, else told how many they were", async () => {
    const { users, passkeys } = app.deps.db.t;
    await app.deps.db.orm.update(users).set({ role: Role.user }).where(eq(users.role, Role.root));
    await app.deps.db.orm.delete(passkeys);
    const root = await app.createUser({ role: Role.root });
    await prove(root);
    const add = (user: TestUser) =>
      app.deps.db.orm
        .insert(passkeys)
        .values({ userId: user.id, credentialId: `c${user.id}`, publicKey: "x", name: "x", createdAt: 1 });
    await add(root);
    const move = (value: string) =>
      app.call<Told>("PUT", "/api/option/", { key: "ServerAddress", value }, root);
    const document = { format: 1, options: { ServerAddress: "https://other.example" } };
    expect((await move("https://other.example")).body.code).toBe("last_method");
    expect((await post("/api/config/apply", { document }, root)).body.code).toBe("last_method");
    expect((await move("https://gate.example/")).body).toEqual({ success: true, message: "" } as never);
    await app.deps.db.orm.update(users).set({ passwordHash }).where(eq(users.id, root.id));
    await add(await account({ passwordHash: "" }));
    await add(await account());
    const look = `/api/option/ways_in?key=ServerAddress&value=${encodeURIComponent("https://other.example")}`;
    expect((await app.call<Told>("GET", look, undefined, root)).body).toMatchObject({
      data: { accounts_without_sign_in: 1, passkeys_orphaned: 3 },
    });
    expect((await move("https://other.example")).body).toMatchObject({
      success: true,
      accounts_without_sign_in: 1,
      passkeys_orphaned: 3,
    });
    await app.deps.options.set("ServerAddress", "https://gate.example");
  });

  test("37: a cookie from before the sign-in is not the one after it, and stays its owner's", async () => {
    const [victim, attacker] = [await account(), await account()];
    const planted = sessionOf(await signIn(attacker.username));
    for (const cookie of [planted, "session=made-up", "session="]) {
      const own = sessionOf(await signIn(victim.username, PASSWORD, cookie));
      expect(own).not.toBe("");
      expect(own).not.toBe(cookie);
      expect((await app.call("GET", "/api/user/self", undefined, as(victim, own))).status).toBe(200);
    }
    // What was planted opens the attacker's own account at most.
    expect((await app.call("GET", "/api/user/self", undefined, as(victim, planted))).status).toBe(401);
    expect((await app.call("GET", "/api/user/self", undefined, as(attacker, planted))).status).toBe(200);
    const { sessions } = app.deps.db.t;
    const rows = await app.deps.db.orm.select().from(sessions).where(eq(sessions.userId, victim.id));
    expect(new Set(rows.map(({ id }) => id)).size).toBe(4);
  });

  test("38: a proof is the session's that gave it, and no other one's", async () => {
    const user = await account();
    const [one, two] = [
      as(user, sessionOf(await signIn(user.username))),
      as(user, sessionOf(await signIn(user.username))),
    ];
    clock.advance(11 * 60_000);
    const setUp = async (by: TestUser) => (await post("/api/user/2fa/setup", {}, by)).body.code ?? "ok";
    expect([await setUp(one), await setUp(two)]).toEqual(["verification_required", "verification_required"]);
    expect((await post("/api/verify", { method: "password", password: PASSWORD }, one)).body.success).toBe(
      true,
    );
    expect([await setUp(one), await setUp(two)]).toEqual(["ok", "verification_required"]);
  });

  test("whoever deletes their own account may come anew by the same provider; whom an administrator deleted, not", async () => {
    const { identities } = app.deps.db.t;
    const root = await app.createUser({ role: Role.root });
    const left: number[] = [];
    for (const isOwn of [true, false]) {
      const user = await account();
      const subject = `s${user.id}`;
      await app.deps.db.orm.insert(identities).values({ userId: user.id, provider: "github", subject });
      await (isOwn
        ? app.call("DELETE", "/api/user/self", undefined, user)
        : post("/api/user/manage", { id: user.id, action: "delete" }, root));
      const rows = await app.deps.db.orm.select().from(identities).where(eq(identities.userId, user.id));
      left.push(rows.length);
    }
    expect(left).toEqual([0, 1]);
  });
});

test("29, two nodes: many returns of one new subject to both make one account, with one gift", async () => {
  const stand = await createTestDatabase("postgres");
  const fakes = startProviderFakes();
  const env = { DATABASE_URL: stand.databaseUrl ?? "", ENCRYPTION_KEY: "one key for both nodes" };
  const nodes = [await startTestApp({ env }), await startTestApp({ env })];
  try {
    for (const { deps } of nodes)
      for (const [key, text] of [
        ["ServerAddress", "https://gate.example"],
        ["GitHubBaseUrl", fakes.url],
        ["GitHubClientId", "the-id"],
        ["GitHubClientSecret", "the-secret"],
        ["GitHubOAuthEnabled", "true"],
        ["QuotaForNewUser", "500"],
      ] as const)
        await deps.options.set(key, text);
    const person = { id: 29, login: "twice", created_at: "2020-01-02T03:04:05Z" };
    const returns = await Promise.all(
      [...nodes, ...nodes, ...nodes].map(async (node) => {
        const begun = await node.call<Told>("POST", "/api/oauth/start", { provider: "github" });
        const cookie = begun.headers.getSetCookie()[0]?.split(";", 1)[0] ?? "";
        return { node, cookie, query: fakes.signIn(String(begun.body.data["url"]), person) };
      }),
    );
    const answers = await Promise.all(
      returns.map(({ node, cookie, query }) =>
        node.call<Told>("GET", `/api/oauth/github?${query}`, undefined, {
          id: 0,
          username: "",
          headers: { cookie },
        }),
      ),
    );
    expect(answers.map(({ body }) => body.success)).toEqual(answers.map(() => true));
    expect(new Set(answers.map(({ body }) => body.data["id"])).size).toBe(1);
    const [here] = nodes;
    const { db } = here?.deps ?? {};
    const rows = await db?.orm.select().from(db.t.users).where(eq(db.t.users.username, "twice"));
    expect(rows).toMatchObject([{ quota: 500 }]);
  } finally {
    for (const node of nodes) await node.close();
    await fakes.close();
    await stand.drop();
  }
}, 30_000);

test("31: a provider is asked in bounded time and size, without redirects, and by http only where the operator opened it", async () => {
  const asked: unknown[] = [];
  const deps = {
    guard: (_url: string, options: object) => {
      asked.push(options);
      return Promise.reject(new Error("too slow"));
    },
    reach: { opens: () => Promise.resolve(false), networks: () => [] },
  } as unknown as Parameters<typeof askProvider>[0];
  const failed = async (url: string) => askProvider(deps, url).then(String, String);
  expect(await failed("https://slow.example/token")).toContain("too slow");
  expect(asked).toMatchObject([{ timeoutMs: 10_000, maxBytes: 256 * 1024, maxRedirects: 0 }]);
  expect(await failed("http://slow.example/token")).toContain("address_refused");
  expect(asked).toHaveLength(1);
});
