// Every console route at once: who may call it, what strangers are told, and what every answer carries.
// Refuses routes that nobody has thought about: a new one must be written into a list here or is expected to be closed.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Elysia } from "elysia";
import { createApp } from "../../src/app.ts";
import { assertEveryRouteDeclaresAccess, checkedBy, policy } from "../../src/http/session.ts";
import { startTestApp } from "../support/app.ts";
import type { Answer, TestApp, TestUser } from "../support/app.ts";

/** Anybody may call these. */
const PUBLIC = [
  "GET /api/setup",
  "POST /api/setup",
  // Refused once there is an account.
  "POST /api/setup/import",
  "GET /api/setup/import",
  "GET /api/status",
  "GET /api/notice",
  "GET /api/about",
  "GET /api/home_page_content",
  "GET /api/pricing",
  // Closed by its option, not by who asks.
  "GET /api/ratio_config",
  "GET /api/user/groups",
  "POST /api/user/login",
  "GET /api/user/logout",
  // By a flow that the first step of a sign-in began, or a passkey.
  "POST /api/user/login/2fa",
  "POST /api/user/passkey/login/begin",
  "POST /api/user/passkey/login/finish",
  // They know people by what was sent to them.
  "GET /api/verification",
  "GET /api/reset_password",
  "POST /api/user/register",
  "POST /api/user/reset",
  // By the signature of the gateway.
  "GET /api/user/epay/notify",
  "POST /api/user/epay/notify",
  "POST /api/stripe/webhook",
  "GET /api/payment/:rail",
  "POST /api/payment/:rail",
  "POST /api/user/rescue",
  // By a state of this browser, a code or a signature; what binds checks the session itself.
  "POST /api/oauth/start",
  "GET /api/oauth/state",
  "GET /api/oauth/:id",
  "POST /api/oauth/:id",
  "GET /api/oauth/wechat",
  "GET /api/oauth/telegram/login",
  // By key, not by session.
  "GET /api/log/token",
  "GET /api/usage/token",
  // They do nothing.
  "OPTIONS /api/log/token",
  "OPTIONS /api/usage/token",
  "OPTIONS /api/",
  "OPTIONS /api/*",
];
/** Everybody who is signed in may call these; they answer about the caller only. */
const USER = [
  "GET /api/plan/self",
  "POST /api/plan/self/:id/cancel",
  "POST /api/plan/:id/buy",
  "GET /api/user/sessions",
  "DELETE /api/user/sessions/:id",
  "POST /api/user/sessions/revoke-others",
  "GET /api/oauth/email/bind",
  "POST /api/oauth/email/bind",
  "GET /api/oauth/wechat/bind",
  "GET /api/oauth/telegram/bind",
  "GET /api/user/oauth/bindings",
  "DELETE /api/user/oauth/bindings/:provider",
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
  "POST /api/verify",
  "GET /api/user/self",
  "PUT /api/user/self",
  "DELETE /api/user/self",
  "GET /api/user/self/export",
  "GET /api/user/self/limits",
  "GET /api/user/token",
  "GET /api/user/aff",
  "GET /api/mj/self",
  "GET /api/task/self",
  "GET /api/log/self/histogram",
  "POST /api/user/aff_transfer",
  "POST /api/user/topup",
  "POST /api/user/topup/batch",
  "GET /api/user/topup/self",
  "GET /api/user/topup/info",
  "POST /api/user/topup/amount",
  "POST /api/user/topup/pay",
  "GET /api/user/topup/:trade_no",
  "GET /api/user/statement",
  "POST /api/user/amount",
  "POST /api/user/pay",
  "POST /api/user/stripe/amount",
  "POST /api/user/stripe/pay",
  "PUT /api/user/setting",
  "POST /api/user/setting/test",
  "GET /api/user/models",
  "GET /api/user/models/priced",
  "GET /api/user/models/unpriced",
  "GET /api/user/models/notices",
  "GET /api/user/self/groups",
  "GET /api/models",
  "GET /api/token/",
  "GET /api/token/search",
  "GET /api/token/:id",
  "POST /api/token/",
  "PUT /api/token/",
  "DELETE /api/token/:id",
  "POST /api/token/:id/rotate",
  "GET /api/log/self",
  "GET /api/log/self/stat",
  "GET /api/log/self/search",
  "GET /api/log/self/export",
  "GET /api/data/self",
  "GET /api/data/self/summary",
  "GET /api/data/self/first_steps",
];
const IMPURE = [
  "/api/user/token",
  "/api/log/token",
  "/api/log/export",
  "/api/usage/token",
  "/api/oauth/state",
];
/** Root's alone. */
const ROOT = [
  "POST /api/user/topup/complete",
  "GET /api/user/topup/:trade_no/events",
  "POST /api/user/topup/refund",
  "GET /api/option/",
  "PUT /api/option/",
  "POST /api/option/rest_model_ratio",
];

interface Route {
  method: string;
  path: string;
  name: string;
}

/** One moment for all calls: answers that tell the time are compared. */
const NOW_MS = Date.now();

let app: TestApp;
let routes: Route[];
let user: TestUser;
let other: TestUser;
let admin: TestUser;
let root: TestUser;

beforeAll(async () => {
  app = await startTestApp({ clock: { nowMs: () => NOW_MS } });
  routes = (await createApp(app.services)).routes
    .filter((route) => route.path.startsWith("/api"))
    .map(({ method, path }) => ({ method, path, name: `${method} ${path}` }));
  user = await app.createUser();
  other = await app.createUser();
  admin = await app.createUser({ role: 10 });
  root = await app.createUser({ role: 100 });
});
afterAll(() => app.close());

const MISSING_ID = 987_654;

/** A call with nothing in it: `{}` where the method takes a body. */
function empty(route: Route, as?: TestUser, slash = ""): Promise<Answer> {
  const path = route.path.replace(":id", String(MISSING_ID)).replace(/\/$/, "") + slash;
  const takesBody = route.method === "POST" || route.method === "PUT";
  return app.call(route.method, path, takesBody ? {} : undefined, as);
}

function expectCommonHeaders(answer: Answer): void {
  expect(answer.headers.get("cache-control")).toBe("no-store");
  expect(answer.headers.get("X-Oneapi-Request-Id")).toMatch(/^\d\w{30,}$/);
}

describe("permissions", () => {
  test("an application with a route that declares none does not start, and its name is told", async () => {
    const naked = new Elysia()
      .use(policy(app.services.session))
      .get("/good", () => "", { access: "user" })
      .get("/open", () => "", { open: "public" })
      .get("/own", () => "", checkedBy("relay key"))
      .post("/naked", () => "");
    expect(() => assertEveryRouteDeclaresAccess(naked.routes)).toThrow(
      "these routes declare no permission (access or open): POST /naked",
    );
    const sound = naked.routes.filter((route) => route.path !== "/naked");
    expect(sound).toHaveLength(3);
    assertEveryRouteDeclaresAccess(sound);
  });

  test("the lists of this test name routes that exist", () => {
    const names = new Set(routes.map((route) => route.name));
    expect([...PUBLIC, ...USER, ...ROOT].filter((name) => !names.has(name))).toEqual([]);
    expect(routes.length).toBeGreaterThan(50);
  });

  test("without a session every route but the public ones answers 401, before it looks at the body", async () => {
    for (const route of routes) {
      const answer = await empty(route);
      expectCommonHeaders(answer);
      if (PUBLIC.includes(route.name)) {
        if (!route.name.endsWith("/token") || route.name.includes("/user/"))
          expect([route.name, answer.status]).not.toContain(401);
        continue;
      }
      expect([route.name, answer.status, answer.body["code"]]).toEqual([
        route.name,
        401,
        "auth_not_signed_in",
      ]);
    }
  });

  test("broken JSON from a stranger is answered with 401 as well", async () => {
    for (const route of routes) {
      if (route.method === "GET" || PUBLIC.includes(route.name)) continue;
      const path = route.path.replace(":id", "1");
      expect([route.name, (await app.call(route.method, path, "{broken")).status]).toEqual([route.name, 401]);
    }
  });

  test("an ordinary user gets 403 from every route of administrators, an administrator from every route of root", async () => {
    for (const route of routes) {
      if (PUBLIC.includes(route.name) || USER.includes(route.name)) continue;
      for (const actor of ROOT.includes(route.name) ? [user, admin] : [user]) {
        const answer = await empty(route, actor);
        expectCommonHeaders(answer);
        expect([route.name, answer.status, answer.body["code"]]).toEqual([
          route.name,
          403,
          "auth_role_too_low",
        ]);
      }
    }
  });

  test("a session with another user's New-Api-User header gets 401 from every route", async () => {
    const forged = { ...user, headers: { ...user.headers, "new-api-user": String(root.id) } };
    for (const route of routes) {
      if (PUBLIC.includes(route.name)) continue;
      const answer = await empty(route, forged);
      expect([route.name, answer.status]).toEqual([route.name, 401]);
    }
  });
});

describe("foreign objects", () => {
  test("another user's key answers like one that does not exist, also to root, and is left as it was", async () => {
    const { id } = await app.createToken(user.id, { name: "mine" });
    const before = await app.call("GET", `/api/token/${id}`, undefined, user);
    expect(before.body).toMatchObject({ success: true, data: { id, name: "mine" } });
    for (const actor of [other, admin, root]) {
      const calls = (target: number) => [
        app.call("GET", `/api/token/${target}`, undefined, actor),
        app.call("PUT", "/api/token/", { id: target, name: "stolen" }, actor),
        app.call("PUT", "/api/token/?status_only=true", { id: target, status: 2 }, actor),
        app.call("DELETE", `/api/token/${target}`, undefined, actor),
      ];
      const seen = (answers: Answer[]) => answers.map(({ status, text }) => ({ status, text }));
      const foreign = seen(await Promise.all(calls(id)));
      expect(foreign).toEqual(seen(await Promise.all(calls(MISSING_ID))));
      expect(foreign.every(({ text }) => text.includes("record_missing"))).toBe(true);
    }
    const after = await app.call("GET", `/api/token/${id}`, undefined, user);
    expect(after.body).toEqual(before.body);
  });

  test("keys, rows and figures of another user are in no list of the own account", async () => {
    const { id, key } = await app.createToken(user.id, { name: "unseen" });
    for (const path of [
      "/api/token/",
      "/api/token/search?keyword=unseen",
      "/api/token/search?token=" + key,
    ]) {
      expect((await app.call("GET", path, undefined, other)).body).toMatchObject({ success: true, data: [] });
    }
    const logs = await app.call(
      "GET",
      `/api/log/self?token_name=unseen&username=${user.username}`,
      undefined,
      other,
    );
    expect(logs.body).toMatchObject({ success: true, data: { items: [], total: 0 } });
    expect(id).toBeGreaterThan(0);
  });

  test.each(["0", "-1", "1.5", "abc", "9".repeat(30), "1e3", "%00", "%F0%9F%98%80", "1;drop"])(
    "the id %s is answered like a missing one",
    async (id) => {
      for (const [kind, actor] of [
        ["token", user],
        ["channel", admin],
        ["user", root],
      ] as const) {
        const missing = await app.call("GET", `/api/${kind}/${MISSING_ID}`, undefined, actor);
        const answer = await app.call("GET", `/api/${kind}/${id}`, undefined, actor);
        expect([answer.status, answer.body["code"]]).toEqual([missing.status, missing.body["code"]]);
      }
    },
  );
});

describe("answers", () => {
  test("a wrong field is refused in our envelope, by its name, in both languages", async () => {
    const say = (headers: Record<string, string>) =>
      app.call("POST", "/api/token/", { name: 5 }, { ...user, headers: { ...user.headers, ...headers } });
    const zh = await say({ "accept-language": "zh-CN,zh;q=0.9" });
    const en = await say({ "accept-language": "en-US,en;q=0.9" });
    const byCookie = await say({ "accept-language": "zh", cookie: `${user.headers.cookie}; i18nextLng=en` });
    for (const answer of [zh, en, byCookie]) {
      expect(answer.status).toBe(200);
      expectCommonHeaders(answer);
      expect(answer.body).toMatchObject({ success: false, code: "invalid_field", field: "name" });
    }
    expect(zh.body["message"]).toStartWith("无效的参数：name");
    expect(en.body["message"]).toStartWith("Invalid value for name");
    expect(byCookie.body["message"]).toBe(en.body["message"]);
  });

  test.each([
    [
      "POST",
      "/api/token/",
      { name: 5 },
      "应为 最长 255 个字符且不含空字符的文本",
      "a text of at most 255 characters",
    ],
    ["POST", "/api/token/", { remain_quota: -1 }, "之间的整数", "a whole number from 0 to"],
    [
      "POST",
      "/api/token/",
      { unlimited_quota: "maybe" },
      "应为 布尔值 true 或 false",
      "expected true or false",
    ],
    ["PUT", "/api/token/", {}, "未提供，应为", "missing, expected a whole number from 1"],
    ["POST", "/api/user/topup/batch", { keys: "k" }, "列表", "a list of at most 100 entries"],
  ])("%s %s with %j says in both languages what is expected", async (method, path, body, zh, en) => {
    const say = async (language: string) => {
      const as = { ...user, headers: { ...user.headers, "accept-language": language } };
      return String((await app.call(method, path, body, as)).body["message"]);
    };
    expect(await say("zh")).toContain(zh);
    expect(await say("en")).toContain(en);
  });

  test("a body that is no JSON object is refused without a field", async () => {
    const headers = { "content-type": "text/plain" };
    const answer = await fetch(`${app.url}/api/user/login`, { method: "POST", headers, body: "x" });
    const body = (await answer.json()) as Record<string, unknown>;
    expect(body).toMatchObject({ success: false, code: "invalid_params" });
    expect(body).not.toHaveProperty("field");
  });

  test("the id in an answer's header is unique", async () => {
    const answers = await Promise.all(Array.from({ length: 50 }, () => app.call("GET", "/api/notice")));
    expect(new Set(answers.map((each) => each.headers.get("X-Oneapi-Request-Id"))).size).toBe(50);
  });

  test.each([
    ["GET", "/api/x"],
    ["GET", "/api"],
    ["GET", "/api/"],
    ["POST", "/api/x"],
    ["DELETE", "/api/user/a/b/c"],
    ["PATCH", "/api/token"],
    ["GET", "/v1/x"],
    ["POST", "/v1/x/y"],
    ["GET", "/v1"],
    ["GET", "/assets/x.js"],
  ])("%s %s is unknown: 404 in the shape that API clients read", async (method, path) => {
    for (const as of [undefined, root]) {
      const answer = await app.call(method, path, undefined, as);
      expect(answer.status).toBe(404);
      expect(answer.body).toEqual({
        error: {
          message: `Invalid URL (${method} ${path})`,
          type: "invalid_request_error",
          param: "",
          code: "",
        },
      });
      expectCommonHeaders(answer);
    }
  });

  test("a trailing slash makes no difference on any route", async () => {
    for (const route of routes) {
      // Limited, answering the current time or a new token, or leaving a row of its own: compared by their status.
      const isPure = route.method === "GET" && !IMPURE.includes(route.path);
      const actor = isPure && !PUBLIC.includes(route.name) ? root : undefined;
      const [bare, slashed] = [await empty(route, actor), await empty(route, actor, "/")];
      expect([route.name, slashed.status]).toEqual([route.name, bare.status]);
      if (isPure) expect([route.name, slashed.text]).toEqual([route.name, bare.text]);
    }
  });
});
