// Every console route × role × state of the session: what each combination is told, from what the route declares.
// Refuses a route that tells a guest, a half-signed-in or a signed-out browser more than it tells a stranger.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { eq } from "drizzle-orm";
import { createApp } from "../../src/app.ts";
import { sha256Hex } from "../../src/core/kit/seal.ts";
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
  app = await startTestApp();
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

function empty(route: Route, as?: TestUser): Promise<Answer> {
  const path = route.path.replaceAll(/:\w+/g, String(MISSING_ID)).replace(/(.)\/$/, "$1/");
  const takesBody = route.method === "POST" || route.method === "PUT";
  return app.call(route.method, path, takesBody ? {} : undefined, as);
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
