// Every console route × role × state of the session: what each combination is told, from what the route declares.
// Refuses a route that tells a guest, a half-signed-in or a signed-out browser more than it tells a stranger.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { eq } from "drizzle-orm";
import { createApp } from "../../src/app.ts";
import { sha256Hex } from "../../src/core/kit/seal.ts";
import { hashPassword } from "../../src/core/users/credentials.ts";
import { accessOf } from "../../src/http/session.ts";
import { Role } from "../../src/shared/enums.ts";
import { startTestApp } from "../support/app.ts";
import type { Answer, TestApp, TestUser } from "../support/app.ts";

interface Route {
  method: string;
  path: string;
  name: string;
  access: string;
}

/** Public, and refuses by what else it knows callers: a key. */
const BY_KEY = ["GET /api/log/token", "GET /api/usage/token"];
const MISSING_ID = 987_654;
const PASSWORD = "correct horse battery";
const ROLES = [Role.user, Role.admin, Role.root] as const;
const LEAST: Record<string, number> = {
  user: Role.user,
  session: Role.user,
  admin: Role.admin,
  root: Role.root,
};

let app: TestApp;
let routes: Route[];

beforeAll(async () => {
  app = await startTestApp({ env: { CRITICAL_RATE_LIMIT_ENABLE: "false" } });
  routes = (await createApp(app.services)).routes
    .filter((route) => route.path.startsWith("/api/") && route.method !== "OPTIONS")
    .map((route) => ({
      method: route.method,
      path: route.path,
      name: `${route.method} ${route.path}`,
      access: accessOf(route),
    }));
});
afterAll(() => app.close());

const closed = () =>
  routes.filter(({ access, name }) => Object.hasOwn(LEAST, access) && !BY_KEY.includes(name));

/** What is judged before the form of a body is known to be right needs one; all others get an empty one. */
const BODIES: Readonly<Record<string, object>> = {
  "POST /api/user/2fa/enable": { code: "", flow_token: "" },
  "POST /api/user/passkey/register/finish": { flow_token: "", response: {} },
  "POST /api/user/topup/complete": { trade_no: "x", reason: "x" },
  "POST /api/user/topup/refund": { trade_no: "x", reason: "x" },
  "PUT /api/option/": { key: "EpayKey", value: "" },
  "PUT /api/user/": { id: MISSING_ID, password: "correct horse battery" },
  "POST /api/user/manage": { id: MISSING_ID, action: "promote" },
};

async function empty(route: Route, as?: TestUser): Promise<Answer> {
  const path = route.path.replaceAll(/:\w+/g, String(MISSING_ID)).replace(/(.)\/$/, "$1/");
  const takesBody = route.method === "POST" || route.method === "PUT";
  const answer = await app.call(route.method, path, takesBody ? (BODIES[route.name] ?? {}) : undefined, as);
  // A file has no code.
  return answer.text.startsWith("{") ? answer : { ...answer, body: {} };
}

const verdict = ({ status, body }: Answer) => [status, body["code"]];

/** Tells every route that answers this caller otherwise than as expected. */
async function walk(make: () => Promise<TestUser | undefined>, expected: (route: Route) => unknown[]) {
  const wrong: unknown[] = [];
  for (const route of closed()) {
    const seen = verdict(await empty(route, await make()));
    if (JSON.stringify(seen) !== JSON.stringify(expected(route))) wrong.push([route.name, ...seen]);
  }
  return wrong;
}

const stranger = () => [401, "auth_not_signed_in"];

async function ended(role: number, end: (user: TestUser) => Promise<unknown>): Promise<TestUser> {
  const user = await app.createUser({ role });
  await end(user);
  return user;
}

describe("states without a live session are strangers to every route", () => {
  test("the table is of all closed routes", () => {
    expect(closed().length).toBeGreaterThan(100);
    const levels = new Set(closed().map(({ access }) => access));
    for (const level of ["user", "admin", "root"]) expect(levels).toContain(level);
  });

  test("nobody", async () => {
    expect(await walk(() => Promise.resolve(undefined), stranger)).toEqual([]);
  });

  test("a guest in the middle of a flow: its cookies open nothing", async () => {
    const text = () => randomBytes(16).toString("hex");
    const guest = async () => ({
      id: 0,
      username: "",
      headers: { cookie: `flow=${text()}; human=${text()}; device=${text()}.${text()}`, "new-api-user": "1" },
    });
    expect(await walk(guest, stranger)).toEqual([]);
  });

  test("a guest whom a provider's flow has really begun for", async () => {
    const { options } = app.deps;
    for (const [key, text] of [
      ["ServerAddress", "https://gate.example"],
      ["GitHubClientId", "id"],
      ["GitHubClientSecret", "secret"],
      ["GitHubOAuthEnabled", "true"],
    ] as const)
      await options.set(key, text);
    const owner = await app.createUser({ role: Role.root });
    const begun = await app.call("POST", "/api/oauth/start", { provider: "github" });
    const [cookie = ""] = begun.headers.getSetCookie().map((line) => line.split(";", 1)[0] ?? "");
    expect(cookie).toStartWith("flow=");
    const guest = { ...owner, headers: { cookie, "new-api-user": String(owner.id) } };
    expect(await walk(() => Promise.resolve(guest), stranger)).toEqual([]);
  });

  test.each(ROLES)("role %d half signed in: after the password, before the second factor", async (role) => {
    const { totps, users } = app.deps.db.t;
    const owner = await app.createUser({ role });
    const passwordHash = await hashPassword(PASSWORD);
    await app.deps.db.orm.update(users).set({ passwordHash }).where(eq(users.id, owner.id));
    await app.deps.db.orm.insert(totps).values({ userId: owner.id, secretSealed: "x", createdAt: 1 });
    const login = { username: owner.username, password: PASSWORD };
    const half = await app.call<{ data: { flow_token: string } }>("POST", "/api/user/login", login);
    const { flow_token: token } = half.body.data;
    const named = { "new-api-user": String(owner.id) };
    const set = half.headers.getSetCookie().map((line) => line.split(";", 1)[0] ?? "");
    expect(set.filter((line) => line.startsWith("session="))).toEqual([]);
    // Whatever was handed out, in the place of a session.
    const cookie = [...set, `session=${token}`, `flow=${token}`].join("; ");
    const guest = () => Promise.resolve({ ...owner, headers: { ...named, cookie } });
    expect(await walk(guest, stranger)).toEqual([]);
    const bearer = () =>
      Promise.resolve({ ...owner, headers: { ...named, authorization: `Bearer ${token}` } });
    const refused = ({ access }: Route) =>
      access === "session" ? [401, "access_token_not_supported"] : [401, "auth_access_token_invalid"];
    expect(await walk(bearer, refused)).toEqual([]);
  });

  test.each(ROLES)("role %d after signing out", async (role) => {
    const left = await ended(role, (user) => app.call("GET", "/api/user/logout", undefined, user));
    expect(await walk(() => Promise.resolve(left), stranger)).toEqual([]);
  });

  test.each(ROLES)("role %d whose sessions were all ended", async (role) => {
    const left = await ended(role, (user) => app.deps.sessions.endAll(user.id, "revoked"));
    expect(await walk(() => Promise.resolve(left), stranger)).toEqual([]);
  });

  test.each(ROLES)("role %d whose password changed meanwhile", async (role) => {
    const { users } = app.deps.db.t;
    const left = await ended(role, async (user) => {
      await app.deps.db.orm.update(users).set({ sessionVersion: 9 }).where(eq(users.id, user.id));
      await app.deps.accounts.userChanged(user.id);
    });
    expect(await walk(() => Promise.resolve(left), stranger)).toEqual([]);
  });
});

/** What asks for a fresh proof: of everybody, and of whoever has a second factor. */
const ASKED_OF_EVERYBODY = [
  "POST /api/user/2fa/setup",
  "POST /api/user/2fa/enable",
  "POST /api/user/2fa/disable",
  "POST /api/user/2fa/backup_codes",
  "POST /api/user/passkey/register/begin",
  "POST /api/user/passkey/register/finish",
  "DELETE /api/user/passkey/:id",
  // An account without a password.
  "DELETE /api/user/self",
  "GET /api/user/self/export",
  "POST /api/user/topup/complete",
  "POST /api/user/topup/refund",
];
const ASKED_WITH_FACTOR = [
  "GET /api/user/token",
  "GET /api/oauth/email/bind",
  "POST /api/oauth/email/bind",
  "GET /api/oauth/wechat/bind",
  "GET /api/oauth/telegram/bind",
  "DELETE /api/user/oauth/bindings/:provider",
  "POST /api/user/sessions/revoke-others",
  "DELETE /api/user/:id/2fa",
  "DELETE /api/user/:id/reset_passkey",
  "POST /api/custom-oauth-provider/",
  "PUT /api/option/",
  "PUT /api/user/",
  "POST /api/user/manage",
  "PUT /api/custom-oauth-provider/:id",
  "DELETE /api/custom-oauth-provider/:id",
  "PUT /api/plan/:id",
  "DELETE /api/plan/:id",
];

describe("a session that has not proven itself lately is asked to, and none other", () => {
  /** Routes that ask this session, among those that its role reaches. */
  async function asking(hasFactor: boolean, isFresh: boolean): Promise<string[]> {
    const { sessions, users } = app.deps.db.t;
    const names: string[] = [];
    for (const route of closed()) {
      const user = await app.createUser({ role: Role.root });
      if (hasFactor) {
        await app.deps.db.orm.update(users).set({ secondFactor: true }).where(eq(users.id, user.id));
        await app.deps.accounts.userChanged(user.id);
      }
      const until = Math.floor(app.deps.clock.nowMs() / 1000) + (isFresh ? 600 : -1);
      for (const { id } of await app.deps.db.orm.select().from(sessions).where(eq(sessions.userId, user.id)))
        await app.deps.sessions.prove(id, until);
      const { status, body } = await empty(route, user);
      if (body["code"] !== "verification_required") continue;
      expect([route.name, status]).toEqual([route.name, 403]);
      names.push(route.name);
    }
    return names.toSorted();
  }

  test("without a factor", async () => {
    expect(await asking(false, false)).toEqual(ASKED_OF_EVERYBODY.toSorted());
  });

  test("with one, whose list is longer", async () => {
    expect(await asking(true, false)).toEqual([...ASKED_OF_EVERYBODY, ...ASKED_WITH_FACTOR].toSorted());
  });

  test("stepped up: nobody is asked", async () => {
    expect(await asking(true, true)).toEqual([]);
  });
});

describe("an administrator who still has to set a second factor up", () => {
  /** Who they are, and what it takes. */
  const REACHED = [
    "GET /api/user/self",
    "POST /api/verify",
    "GET /api/user/2fa/status",
    "POST /api/user/2fa/setup",
    "POST /api/user/2fa/enable",
    "POST /api/user/2fa/disable",
    "POST /api/user/2fa/backup_codes",
    "GET /api/user/passkey/",
    "POST /api/user/passkey/register/begin",
    "POST /api/user/passkey/register/finish",
    "POST /api/user/passkey/verify/begin",
    "PUT /api/user/passkey/:id",
    "DELETE /api/user/passkey/:id",
  ];

  test.each([Role.admin, Role.root])("role %d reaches that, and nothing else", async (role) => {
    const reached: string[] = [];
    const byToken: string[] = [];
    const { users } = app.deps.db.t;
    await app.deps.options.set("AdminSecondFactorRequired", "true");
    try {
      for (const route of closed()) {
        const user = await app.createUser({ role });
        const isAllowed = role >= (LEAST[route.access] ?? Role.root);
        const code = isAllowed ? "second_factor_required" : "auth_role_too_low";
        if ((await empty(route, user)).body["code"] !== code) reached.push(route.name);
        const token = randomBytes(24).toString("base64");
        const accessTokenHash = sha256Hex(token);
        await app.deps.db.orm.update(users).set({ accessTokenHash }).where(eq(users.id, user.id));
        await app.deps.accounts.userChanged(user.id);
        const headers = { authorization: token, "new-api-user": String(user.id) };
        const answer = await empty(route, { ...user, headers });
        if (answer.body["code"] !== (route.access === "session" ? "access_token_not_supported" : code))
          byToken.push(route.name);
      }
      // Open routes that know who is signed in: a proof may be what the setting up waits for.
      const user = await app.createUser({ role });
      const start = (intent: string) =>
        app.call("POST", "/api/oauth/start", { provider: "github", intent }, user);
      expect((await start("bind")).body["code"]).toBe("second_factor_required");
      // By a provider that the account is not bound to nobody proves anything.
      expect((await start("verify")).body["code"]).toBe("verification_required");
      const { identities } = app.deps.db.t;
      const bound = { userId: user.id, provider: "github", subject: String(user.id), createdAt: 1 };
      await app.deps.db.orm.insert(identities).values(bound);
      expect((await start("verify")).body["success"]).toBe(true);
      expect((await app.call("GET", "/api/oauth/state", undefined, user)).body["code"]).toBe(
        "second_factor_required",
      );
      const chat = await app.call("POST", "/pg/chat/completions", { model: "m", messages: [] }, user);
      expect(chat.headers.get("x-weir-error-code")).toBe("second_factor_required");
    } finally {
      await app.deps.options.set("AdminSecondFactorRequired", "false");
    }
    expect(reached.toSorted()).toEqual(REACHED.toSorted());
    expect(byToken).toEqual([]);
  });
});

describe("live sessions reach what their role may, and nothing else", () => {
  test.each(ROLES)("role %d by cookie", async (role) => {
    const wrong: unknown[] = [];
    for (const route of closed()) {
      // What a route does to its caller, deletion for one, is of no consequence to the next.
      const answer = await empty(route, await app.createUser({ role }));
      const isAllowed = role >= (LEAST[route.access] ?? Role.root);
      const isRefused = answer.status === 403 && answer.body["code"] === "auth_role_too_low";
      if (isAllowed === isRefused || answer.status === 401 || answer.status >= 500)
        wrong.push([route.name, ...verdict(answer)]);
    }
    expect(wrong).toEqual([]);
  });

  test.each(ROLES)("role %d by access token: the same, but what asks for a session", async (role) => {
    const { users } = app.deps.db.t;
    const wrong: unknown[] = [];
    for (const route of closed()) {
      const user = await app.createUser({ role });
      const token = randomBytes(24).toString("base64");
      await app.deps.db.orm
        .update(users)
        .set({ accessTokenHash: sha256Hex(token) })
        .where(eq(users.id, user.id));
      await app.deps.accounts.userChanged(user.id);
      const headers = { authorization: token, "new-api-user": String(user.id) };
      const answer = await empty(route, { ...user, headers });
      if (route.access === "session") {
        if (answer.body["code"] !== "access_token_not_supported")
          wrong.push([route.name, ...verdict(answer)]);
        continue;
      }
      const isAllowed = role >= (LEAST[route.access] ?? Role.root);
      const isRefused = answer.status === 403 && answer.body["code"] === "auth_role_too_low";
      if (isAllowed === isRefused || answer.status === 401) wrong.push([route.name, ...verdict(answer)]);
    }
    expect(wrong).toEqual([]);
  });
});
