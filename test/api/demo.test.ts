// A demonstration: every write below root is refused by its route, whatever its body, and looking around, signing in and the
// playground go on. Walks the route table, so that a new route is covered by being there.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createApp } from "../../src/app.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";

/** Reads by their method that leave something behind. */
const WRITING_READS = [
  "GET /api/user/token",
  "GET /api/user/aff",
  "GET /api/channel/test",
  "GET /api/channel/test/:id",
  "GET /api/channel/update_balance",
  "GET /api/channel/update_balance/:id",
  "GET /api/channel/fetch_models/:id",
];
/** Writes by their method that stay open. */
const OPEN = [
  "POST /api/user/login",
  "POST /api/user/login/2fa",
  "POST /api/user/passkey/login/begin",
  "POST /api/user/passkey/login/finish",
  "POST /api/user/rescue",
  "POST /api/setup",
  // Providers tell of money that has left the buyer already.
  "POST /api/payment/:rail",
  "POST /api/user/epay/notify",
  "POST /api/stripe/webhook",
];

describe.each(DATABASE_KINDS)("on %s", (database) => {
  let app: TestApp;
  let root: TestUser;
  let visitors: TestUser[];
  let routes: { method: string; path: string; name: string }[];
  const isWrite = ({ method, name }: { method: string; name: string }): boolean =>
    !OPEN.includes(name) && (!["GET", "HEAD", "OPTIONS"].includes(method) || WRITING_READS.includes(name));
  const ask = (route: { method: string; path: string }, as?: TestUser, slash = "") => {
    const path = route.path.replace(":id", "1").replace(/\/$/, "") + slash;
    const body = ["POST", "PUT", "PATCH"].includes(route.method) ? {} : undefined;
    return app.call<{ success?: boolean; code?: string; message?: string }>(route.method, path, body, as);
  };

  beforeAll(async () => {
    app = await startTestApp({ database });
    routes = (await createApp(app.services)).routes
      .filter(({ path }) => path.startsWith("/api"))
      .map(({ method, path }) => ({ method, path, name: `${method} ${path}` }));
    root = await app.createUser({ role: 100 });
    visitors = [await app.createUser({ quota: 500_000 }), await app.createUser({ role: 10 })];
    await app.deps.options.set("DemoSiteEnabled", "true");
  });
  afterAll(() => app.close());

  /** Everything that a console write can change. */
  const everything = async () => {
    await app.deps.ledger.flush();
    const { users, tokens, channels, options, redemptions, credits } = app.deps.db.t;
    const { orm } = app.deps.db;
    const tables = [users, tokens, channels, options, redemptions, credits];
    return JSON.stringify(await Promise.all(tables.map((table) => orm.select().from(table))));
  };

  test("every write below root is refused in the caller's language and changes nothing", async () => {
    const writes = routes.filter(isWrite);
    expect(writes.length).toBeGreaterThan(35);
    expect(WRITING_READS.filter((name) => !routes.some((route) => route.name === name))).toEqual([]);
    const before = await everything();
    for (const visitor of visitors)
      for (const route of writes)
        for (const slash of ["", "/"]) {
          const { status, body, headers } = await ask(route, visitor, slash);
          // Not every address is known with a slash behind it.
          if (slash === "/" && status === 404) continue;
          expect([route.name, slash, status, body.success, body.code]).toEqual([
            route.name,
            slash,
            200,
            false,
            "demo_read_only",
          ]);
          expect(headers.get("cache-control")).toBe("no-store");
        }
    expect(await everything()).toBe(before);
    const headers = { ...visitors[0]?.headers, "accept-language": "en" };
    const english = await ask({ method: "DELETE", path: "/api/user/self" }, { ...root, headers } as TestUser);
    expect(english.body.message).toBe("This site is a demonstration: nothing can be changed here");
  });

  test("every read and every way in stays open", async () => {
    for (const route of routes.filter((each) => !isWrite(each) && each.name !== "GET /api/user/logout"))
      for (const visitor of [undefined, ...visitors])
        expect([route.name, (await ask(route, visitor)).body?.code]).not.toEqual([
          route.name,
          "demo_read_only",
        ]);
    const guest = await app.createUser();
    expect((await ask({ method: "GET", path: "/api/user/logout" }, guest)).body).toMatchObject({
      success: true,
    });
    expect((await ask({ method: "GET", path: "/api/user/self" }, guest)).status).toBe(401);
  });

  test("the playground is open: it is what a demonstration is for", async () => {
    const answer = await app.call<{ error: { code: string } }>(
      "POST",
      "/pg/chat/completions",
      { model: "nobody-serves-this", messages: [{ role: "user", content: "hi" }] },
      visitors[0],
    );
    // Refused for its model alone.
    expect(answer.text).not.toContain("demo_read_only");
    expect(answer.headers.get("x-weir-error-code")).toBe("model_not_found");
  });

  test("root goes on working, and maintenance comes first", async () => {
    const put = (key: string, value: string, as: TestUser) =>
      app.call<{ success: boolean; code?: string }>("PUT", "/api/option/", { key, value }, as);
    expect((await put("About", "changed", root)).body.success).toBe(true);
    expect((await put("site.maintenance_enabled", "true", root)).body.success).toBe(true);
    for (const visitor of visitors)
      expect((await ask({ method: "DELETE", path: "/api/user/self" }, visitor)).body.code).toBe(
        "maintenance",
      );
    await put("site.maintenance_enabled", "false", root);
    // Off again, the role decides as ever.
    await put("DemoSiteEnabled", "false", root);
    expect((await put("About", "x", visitors[1] as TestUser)).body.code).toBe("auth_role_too_low");
  });
});
