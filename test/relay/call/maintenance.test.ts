// Maintenance mode: calls and console are refused to everybody but root, in the operator's words, in the form that the
// clients of each surface read; nothing is asked upstream, charged or logged; on every node within a second.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { startTestApp } from "../../support/app.ts";
import type { TestUser } from "../../support/app.ts";
import { createTestDatabase } from "../../support/postgres.ts";
import { HI, MODEL, startGateway } from "../support.ts";
import type { Gateway } from "../support.ts";
import { startRealtimeGateway } from "../realtime/support.ts";
import { untilSo } from "../../support/turns.ts";
import { startStretch } from "../../support/stretch.ts";

const WORDS = "Back at 18:00 <b>UTC</b>";
const CODE = "x-weir-error-code";

let g: Gateway;
let root: TestUser;
let rootKey = "";
let admin: TestUser;

beforeAll(async () => {
  g = await startGateway();
  await g.app.deps.db.orm.insert(g.app.deps.db.t.setups).values({ version: "test", initializedAt: 1 });
  root = await g.app.createUser({ role: 100, quota: 1_000_000 });
  admin = await g.app.createUser({ role: 10 });
  ({ key: rootKey } = await g.app.createToken(root.id));
  await g.setOption("site.maintenance_message", WORDS);
});
afterAll(() => g.close());
beforeEach(async () => {
  g.upstream.reset();
  await g.setOption("site.maintenance_enabled", "true");
});

/** Where the words stand in the answer, and what clients of the dialect branch on. */
const SURFACES: readonly [name: string, method: string, path: string, body: unknown, shape: object][] = [
  [
    "chat",
    "POST",
    "/v1/chat/completions",
    { model: MODEL, messages: HI },
    { error: { type: "new_api_error", code: "maintenance" } },
  ],
  [
    "a stream",
    "POST",
    "/v1/chat/completions",
    { model: MODEL, messages: HI, stream: true },
    { error: { code: "maintenance" } },
  ],
  ["responses", "POST", "/v1/responses", { model: MODEL, input: "hi" }, { error: { code: "maintenance" } }],
  ["embeddings", "POST", "/v1/embeddings", { model: MODEL, input: "hi" }, { error: { code: "maintenance" } }],
  [
    "pictures",
    "POST",
    "/v1/images/generations",
    { model: MODEL, prompt: "hi" },
    { error: { code: "maintenance" } },
  ],
  [
    "rerank",
    "POST",
    "/v1/rerank",
    { model: MODEL, query: "a", documents: ["b"] },
    { error: { code: "maintenance" } },
  ],
  [
    "messages",
    "POST",
    "/v1/messages",
    { model: MODEL, max_tokens: 5, messages: HI },
    { type: "error", error: { type: "overloaded_error" } },
  ],
  [
    "counting",
    "POST",
    "/v1/messages/count_tokens",
    { model: MODEL, messages: HI },
    { type: "error", error: { type: "overloaded_error" } },
  ],
  [
    "gemini",
    "POST",
    `/v1beta/models/${MODEL}:generateContent`,
    { contents: [{ parts: [{ text: "hi" }] }] },
    { error: { status: "UNAVAILABLE", code: 503 } },
  ],
  ["models", "GET", "/v1/models", undefined, { error: { code: "maintenance" } }],
  ["gemini's models", "GET", "/v1beta/models", undefined, { error: { status: "UNAVAILABLE" } }],
  ["a call that is not there", "GET", "/v1/files", undefined, { error: { code: "maintenance" } }],
  ["drawings", "POST", "/mj/submit/imagine", { prompt: "hi" }, {}],
  ["songs", "POST", "/suno/submit/music", { prompt: "hi" }, {}],
  ["billing", "GET", "/v1/dashboard/billing/usage", undefined, { error: {} }],
];

async function send(method: string, path: string, body: unknown, key: string): Promise<Response> {
  return fetch(g.app.url + path, {
    method,
    headers: {
      ...(path.startsWith("/v1beta") ? { "x-goog-api-key": key } : { authorization: `Bearer ${key}` }),
      "content-type": "application/json",
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

describe("calls with a key", () => {
  test.each(SURFACES)(
    "%s: 503 in its own form, with the code and the operator's words",
    async (_, method, path, body, shape) => {
      const before = await g.balance();
      const answer = await send(method, path, body, g.key);
      const text = await answer.text();
      expect([answer.status, answer.headers.get(CODE)]).toEqual([503, "maintenance"]);
      expect(JSON.parse(text)).toMatchObject(shape);
      expect(JSON.parse(JSON.stringify(text))).toContain("Back at 18:00");
      expect(g.upstream.requests.length).toBe(0);
      expect(await g.balance()).toEqual(before);
      // It is nobody's error: no row fills the log.
      expect(await g.logs()).toEqual([]);
    },
  );

  test("an unknown key is told that it is unknown, and root's passes", async () => {
    expect(
      (await send("POST", "/v1/chat/completions", { model: MODEL, messages: HI }, "sk-nobody")).status,
    ).toBe(401);
    const answer = await send("POST", "/v1/chat/completions", { model: MODEL, messages: HI }, rootKey);
    expect(answer.status).toBe(200);
    await answer.text();
  });

  test("without words the built-in sentence stands, in the caller's language", async () => {
    await g.setOption("site.maintenance_message", "  ");
    const text = await (await g.post("/v1/chat/completions", {}, { "accept-language": "en" })).text();
    const zh = await (await g.post("/v1/chat/completions", {}, { "accept-language": "zh" })).text();
    await g.setOption("site.maintenance_message", WORDS);
    expect(text).toContain("The site is under maintenance; please try again later.");
    expect(zh).toContain("站点正在维护，请稍后再试");
  });

  test("switched off, the same key is served at once", async () => {
    expect((await g.chat()).status).toBe(503);
    await g.setOption("site.maintenance_enabled", "false");
    const answer = await g.chat();
    expect(answer.status).toBe(200);
    await answer.text();
  });
});

describe("the console", () => {
  const call = (method: string, path: string, as?: TestUser) => g.app.call(method, path, undefined, as);

  test("users and administrators are refused in the operator's words, root is not", async () => {
    for (const [method, path] of [
      ["GET", "/api/user/self"],
      ["GET", "/api/token/"],
      ["GET", "/api/log/self"],
      ["POST", "/api/token/"],
    ] as const) {
      for (const who of [admin, g.user]) {
        const answer = await call(method, path, who);
        expect([path, answer.status, answer.headers.get(CODE)]).toEqual([path, 503, "maintenance"]);
        expect(answer.body).toMatchObject({ success: false, code: "maintenance", message: WORDS });
      }
    }
    expect((await call("GET", "/api/user/self", root)).status).toBe(200);
    expect((await call("GET", "/api/option/", root)).status).toBe(200);
  });

  test("what everybody may read stays, and tells; a key's own log and the playground do not", async () => {
    const status = await call("GET", "/api/status");
    expect([status.status, status.body["data"] as object]).toMatchObject([
      200,
      { maintenance_enabled: true, maintenance_message: WORDS },
    ]);
    for (const path of ["/api/notice", "/api/pricing", "/api/about", "/api/setup"])
      expect([path, (await call("GET", path)).status]).toEqual([path, 200]);
    expect((await call("GET", `/api/log/token?key=${g.key}`)).status).toBe(503);
    const playground = await fetch(`${g.app.url}/pg/chat/completions`, {
      method: "POST",
      headers: { ...g.user.headers, "content-type": "application/json" },
      body: JSON.stringify({ model: MODEL, messages: HI }),
    });
    expect([playground.status, playground.headers.get(CODE)]).toEqual([503, "maintenance"]);
    expect(await playground.json()).toMatchObject({ error: { message: WORDS } });
    await g.setOption("site.maintenance_enabled", "false");
    const off = await call("GET", "/api/status");
    expect(off.body["data"]).toMatchObject({ maintenance_enabled: false, maintenance_message: "" });
  });

  test("its pages are one page that says so, without markup of the words; public pages carry them in a bar", async () => {
    const page = async (path: string, as?: TestUser) => {
      const answer = await fetch(g.app.url + path, {
        redirect: "manual",
        headers: { ...as?.headers, "accept-language": "en" },
      });
      return { status: answer.status, html: await answer.text(), to: answer.headers.get("location") };
    };
    const said = "Back at 18:00 &lt;b&gt;UTC&lt;/b&gt;";
    for (const path of ["/token", "/log", "/channel", "/playground", "/user/edit"]) {
      const { status, html } = await page(path, g.user);
      expect([path, status, html.split(said).length - 1]).toEqual([path, 503, 1]);
    }
    expect((await page("/token")).to).toBe("/login?next=%2Ftoken");
    expect((await page("/login")).status).toBe(200);
    const home = await page("/");
    expect([home.status, home.html.includes(said)]).toEqual([200, true]);
    const own = await page("/token", root);
    expect([own.status, own.html.includes("Maintenance mode is on")]).toEqual([200, true]);
    await g.setOption("site.maintenance_enabled", "false");
    expect((await page("/")).html).not.toContain("Back at 18:00");
    expect((await page("/token", g.user)).status).toBe(200);
  });
});

test("a realtime handshake is refused over HTTP", async () => {
  const realtime = await startRealtimeGateway();
  await realtime.setOption("site.maintenance_message", WORDS);
  await realtime.setOption("site.maintenance_enabled", "true");
  const refused = await realtime.refused({});
  expect(refused).toMatchObject({ status: 503, headers: { [CODE]: "maintenance" } });
  expect(refused.error.message).toStartWith(WORDS);
  await realtime.setOption("site.maintenance_enabled", "false");
  await realtime.close();
});

test("what one node closes the other closes within a second, and opens again", async () => {
  const database = await createTestDatabase("postgres");
  const env = { DATABASE_URL: database.databaseUrl ?? "", ENCRYPTION_KEY: "one key for both nodes" };
  const here = await startTestApp({ env });
  const there = await startTestApp({ env });
  try {
    for (const value of ["true", "false"]) {
      await here.deps.options.set("site.maintenance_enabled", value);
      const startedMs = performance.now();
      const stretch = startStretch();
      await untilSo(() => there.deps.maintenance.isOn === (value === "true"));
      expect(performance.now() - startedMs).toBeLessThan(1000 * stretch());
    }
  } finally {
    await here.close();
    await there.close();
    await database.drop();
  }
});
