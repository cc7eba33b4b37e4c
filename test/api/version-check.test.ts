// The look for newer releases against a code host of our own: slow, wrong, huge and strict ones hold nothing up.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { createVersionCheck, isLater } from "../../src/core/site/version-check.ts";
import type { VersionState } from "../../src/core/site/version-check.ts";
import { createGuard } from "../../src/net/guard.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";

describe("which release is later", () => {
  test.each([
    ["0.2.0", "0.1.9", true],
    ["v1.0.0", "0.99.99", true],
    ["0.1.10", "0.1.9", true],
    ["0.1.0", "0.1.0", false],
    ["0.1.0", "0.2.0", false],
    ["0.2.0", "0.2.0-rc.1", true],
    ["0.2.0-rc.1", "0.2.0", false],
    ["0.2.0+build.5", "0.1.0", true],
    ["newest", "0.1.0", false],
  ])("%s against %s: %p", (one, other, expected) => expect(isLater(one, other)).toBe(expected));
});

/** A code host whose next answer the test decides. */
function startHost() {
  let reply: () => Response | Promise<Response> = () => new Response("{}");
  const seen: { path: string; headers: Record<string, string> }[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      seen.push({ path: new URL(request.url).pathname, headers: Object.fromEntries(request.headers) });
      return reply();
    },
  });
  const origin = `http://127.0.0.1:${server.port}`;
  return {
    origin,
    address: `${origin}/repos/o/n/releases/latest`,
    seen,
    answer: (next: typeof reply) => (reply = next),
    stop: () => server.stop(true),
  };
}

describe.each(DATABASE_KINDS)("version check on %s", (database) => {
  let app: TestApp;
  let root: TestUser;
  let admin: TestUser;
  let nowMs = 1_760_000_000_000;
  let path = 0;
  const host = startHost();
  const guard = createGuard();
  type Told = { success: boolean; data: VersionState };
  const ask = async () => (await app.call<Told>("GET", "/api/option/version", undefined, root)).body.data;
  const look = async () => (await app.call<Told>("POST", "/api/option/version", {}, root)).body.data;
  const release = (fields: object) => () =>
    Response.json({ tag_name: "v9.8.7", html_url: `${host.origin}/o/n/releases/tag/v9.8.7`, ...fields });

  beforeAll(async () => {
    app = await startTestApp({
      database,
      clock: { nowMs: () => nowMs, monotonicMs: () => nowMs },
    });
    // The real guard, with this machine opened: the code host of the test lives here.
    app.deps.guard = (address, options) => guard(address, { ...options, allow: ["127.0.0.1"] });
    root = await app.createUser({ role: 100 });
    admin = await app.createUser({ role: 10 });
  });
  // Each test asks another address, so that nothing is known of the one before.
  beforeEach(async () => {
    host.seen.length = 0;
    await app.deps.options.set("site.version_check_enabled", "true");
    await app.deps.options.set("site.version_check_url", `${host.address}/${++path}`);
  });
  afterAll(async () => {
    await app.close();
    await host.stop();
  });

  test("a newer release is told with its page; nothing of the site is sent, and the answer is kept for hours", async () => {
    host.answer(release({}));
    expect(await look()).toEqual({
      current: app.deps.version,
      newest: "9.8.7",
      isNewer: true,
      url: `${host.origin}/o/n/releases/tag/v9.8.7`,
      checkedAt: Math.floor(nowMs / 1000),
    });
    nowMs += 11 * 3_600_000;
    expect(await ask()).toMatchObject({ newest: "9.8.7" });
    expect(host.seen).toHaveLength(1);
    expect(JSON.stringify(host.seen[0])).not.toContain(app.deps.version);
    expect(host.seen[0]?.headers).toMatchObject({ "user-agent": "weir" });
    expect(host.seen[0]?.headers["cookie"]).toBeUndefined();
  });

  test("what is old is asked for anew, and whoever asked does not wait for it", async () => {
    host.answer(release({ tag_name: "v0.0.1" }));
    expect(await look()).toMatchObject({ newest: "0.0.1", isNewer: false });
    nowMs += 13 * 3_600_000;
    let release2 = () => {};
    const arrived = new Promise<void>((resolve) => {
      host.answer(async () => {
        resolve();
        await new Promise<void>((go) => (release2 = go));
        return release({ tag_name: "v0.0.2" })();
      });
    });
    // Told at once, while the code host is silent.
    expect(await ask()).toMatchObject({ newest: "0.0.1" });
    await arrived;
    expect(await ask()).toMatchObject({ newest: "0.0.1" });
    // Many askers are one question.
    const waiting = look();
    release2();
    expect(await waiting).toMatchObject({ newest: "0.0.2" });
    expect(host.seen).toHaveLength(2);
  });

  test.each<[string, () => Response, string]>([
    [
      "a page of HTML",
      () => new Response("<html>hello", { headers: { "content-type": "text/html" } }),
      "unreadable",
    ],
    ["a huge answer", () => new Response("x".repeat(600 * 1024)), "unreadable"],
    ["a list", () => Response.json([{ tag_name: "v9.9.9" }]), "unreadable"],
    ["a release without a number", () => Response.json({ tag_name: "nightly" }), "unreadable"],
    ["no release", () => new Response("{}", { status: 404 }), "none"],
    ["too many questions", () => new Response("{}", { status: 403 }), "limited"],
    ["too many requests", () => new Response("{}", { status: 429 }), "limited"],
    ["an error", () => new Response("oops", { status: 500 }), "unreadable"],
    ["an inner network", () => Response.redirect("http://169.254.169.254/latest", 302), "unreachable"],
  ])("%s is no newer release, and is not asked again for an hour", async (_, reply, problem) => {
    host.answer(reply);
    expect(await look()).toMatchObject({ newest: "", isNewer: false, url: "", problem });
    nowMs += 50 * 60_000;
    expect(await ask()).toMatchObject({ problem });
    expect(host.seen).toHaveLength(1);
  });

  test("a code host that never answers is given up by the guard's own clock", async () => {
    const asked: { timeoutMs: number; maxBytes: number }[] = [];
    const check = createVersionCheck({
      ...app.deps,
      guard: async (_, { timeoutMs, maxBytes }) => {
        asked.push({ timeoutMs, maxBytes });
        throw new Error("silent");
      },
    });
    expect(await check.look()).toMatchObject({ problem: "unreachable" });
    expect(asked).toEqual([{ timeoutMs: 5_000, maxBytes: 512 * 1024 }]);
  });

  test("a page elsewhere is not linked", async () => {
    host.answer(release({ html_url: "https://elsewhere.example/v9.8.7" }));
    expect(await look()).toMatchObject({ newest: "9.8.7", url: "" });
    await app.deps.options.set("site.version_check_url", `${host.address}/${++path}`);
    host.answer(release({ html_url: "javascript:alert(1)" }));
    expect(await look()).toMatchObject({ newest: "9.8.7", url: "" });
  });

  test("switched off or without an address nothing is asked, and what was known is not shown", async () => {
    host.answer(release({}));
    await look();
    await app.deps.options.set("site.version_check_enabled", "false");
    expect(await look()).toMatchObject({ newest: "", problem: "off" });
    await app.deps.options.set("site.version_check_enabled", "true");
    await app.deps.options.set("site.version_check_url", "");
    expect(await look()).toMatchObject({ newest: "", problem: "no_address" });
    expect(host.seen).toHaveLength(1);
  });

  test("it is root's alone", async () => {
    for (const method of ["GET", "POST"]) {
      const body = method === "POST" ? {} : undefined;
      expect((await app.call(method, "/api/option/version", body, admin)).status).toBe(403);
      expect((await app.call(method, "/api/option/version", body)).status).toBe(401);
    }
    expect(host.seen).toEqual([]);
  });
});
