// The human check on its routes: only a clear yes of the service lets anybody through, and what was passed once holds for
// ten minutes at one address. The service is a server of ours that answers as its document says. On both databases.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { Serve } from "bun";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { testClock } from "../support/clock.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";
import { freePort } from "../support/ports.ts";

interface Told {
  success: boolean;
  code?: string;
}

describe.each(DATABASE_KINDS)("on %s", (database) => {
  const clock = testClock();
  let app: TestApp;
  let service: ReturnType<typeof Bun.serve>;
  let asked: Record<string, string>[] = [];
  let answers: (() => Response | Promise<Response>)[] = [];
  const yes = (more: object = {}) =>
    Response.json({ success: true, hostname: "gate.example", action: "login", ...more });

  beforeAll(async () => {
    const options: Serve.Options<undefined> = {
      port: 0,
      hostname: "127.0.0.1",
      async fetch(request) {
        asked.push(Object.fromEntries(new URLSearchParams(await request.text())));
        const [answer = yes] = answers.splice(0, 1);
        return answer();
      },
    };
    service = Bun.serve(options);
    app = await startTestApp({ database, clock, env: { TRUSTED_PROXIES: "127.0.0.1" } });
    await app.deps.options.set("TurnstileSiteKey", "site");
    await app.deps.options.set("TurnstileSecretKey", "the secret");
    await app.deps.options.set("TurnstileVerifyUrl", `http://127.0.0.1:${service.port}/siteverify`);
    await app.deps.options.set("TurnstileCheckEnabled", "true");
    await app.deps.options.set("ServerAddress", "https://gate.example");
  });
  afterAll(async () => {
    await app.close();
    await service.stop(true);
  });
  beforeEach(() => {
    asked = [];
    answers = [];
  });

  const visitor = (from: string, cookie = ""): TestUser => ({
    id: 0,
    username: "",
    headers: { "x-forwarded-for": from, ...(cookie === "" ? {} : { cookie }) },
  });
  const login = (token: string | undefined, from = "203.0.113.1", cookie = "") =>
    app.call<Told>(
      "POST",
      `/api/user/login${token === undefined ? "" : `?turnstile=${encodeURIComponent(token)}`}`,
      { username: "nobody", password: "whatever it is" },
      visitor(from, cookie),
    );
  const codeOf = async (answer: ReturnType<typeof login>) => (await answer).body.code;

  test("the service is asked with secret, token, address and a key that makes a second question safe", async () => {
    answers = [() => new Response("busy", { status: 503 }), yes];
    expect(await codeOf(login("a token"))).toBe("login_failed");
    expect(asked).toHaveLength(2);
    expect(asked[0]).toMatchObject({ secret: "the secret", response: "a token", remoteip: "203.0.113.1" });
    expect(asked[0]?.["idempotency_key"]).toMatch(/^[0-9a-f-]{36}$/);
    expect(asked[1]).toEqual(asked[0] ?? {});
  });

  test.each([
    ["nothing sent", undefined, yes, "human_check_empty"],
    ["an empty token", "", yes, "human_check_empty"],
    ["a token beyond all measure", "x".repeat(2049), yes, "human_check_failed"],
    [
      "a no",
      "t",
      () => Response.json({ success: false, "error-codes": ["timeout-or-duplicate"] }),
      "human_check_failed",
    ],
    ["a yes in words", "t", () => Response.json({ success: "true" }), "human_check_failed"],
    ["another site's token", "t", () => yes({ hostname: "evil.example" }), "human_check_failed"],
    ["another route's token", "t", () => yes({ action: "register" }), "human_check_failed"],
    ["no host named", "t", () => yes({ hostname: undefined }), "human_check_failed"],
    [
      "a test key on a real site",
      "t",
      () => yes({ metadata: { result_with_testing_key: true } }),
      "human_check_failed",
    ],
    ["a page in place of an answer", "t", () => new Response("<html>"), "human_check_failed"],
    ["a redirect", "t", () => Response.redirect("https://gate.example/", 302), "human_check_failed"],
    ["too long an answer", "t", () => new Response("x".repeat(20_000)), "human_check_failed"],
  ] as const)("%s is refused", async (_, token, answer, code) => {
    answers = [answer, answer];
    const refused = await login(token);
    expect(refused.body.code).toBe(code);
    expect(refused.headers.getSetCookie()).toEqual([]);
  });

  test("a service that is away closes its routes, and no others", async () => {
    const down = freePort();
    await app.deps.options.set("TurnstileVerifyUrl", `http://127.0.0.1:${down}/siteverify`);
    const paths = ["/api/verification?email=a@b.example", "/api/user/register", "/api/user/login"];
    for (const [key, text] of [
      ["SMTPServer", "127.0.0.1"],
      ["SMTPFrom", "site@mail.example"],
      ["WeChatServerAddress", "http://127.0.0.1:9"],
      ["WeChatServerToken", "the-token"],
      ["WeChatAccountQRCodeImageURL", "https://wechat.example/qr.png"],
      ["WeChatAuthEnabled", "true"],
    ] as const)
      await app.deps.options.set(key, text);
    for (const path of [...paths, "/api/reset_password?email=a@b.example", "/api/oauth/wechat?code=1"]) {
      const method = path.includes("?") ? "GET" : "POST";
      const to = `${path}${path.includes("?") ? "&" : "?"}turnstile=t`;
      const body = method === "GET" ? undefined : { username: "new", password: "a good password" };
      expect((await app.call<Told>(method, to, body, visitor("203.0.113.2"))).body.code).toBe(
        "human_check_failed",
      );
    }
    const reset = { email: "a@b.example", token: "0" };
    expect((await app.call<Told>("POST", "/api/user/reset", reset, visitor("203.0.113.2"))).body.code).toBe(
      "reset_link_wrong",
    );
    expect((await app.call("GET", "/api/status", undefined, visitor("203.0.113.2"))).status).toBe(200);
    await app.deps.options.set("TurnstileVerifyUrl", `http://127.0.0.1:${service.port}/siteverify`);
  });

  test("what was passed holds for ten minutes at its own address, also after a wrong password", async () => {
    const passed = await login("t", "203.0.113.3");
    const line = passed.headers.getSetCookie().find((each) => each.startsWith("human=")) ?? "";
    expect(line).toMatch(/^human=\d+\.[\w-]{43}; Max-Age=600; Path=\/; HttpOnly; SameSite=Lax$/);
    const cookie = line.split(";")[0] ?? "";
    expect(await codeOf(login(undefined, "203.0.113.3", cookie))).toBe("login_failed");
    expect(asked).toHaveLength(1);
    expect(await codeOf(login(undefined, "203.0.113.4", cookie))).toBe("human_check_empty");
    const later = cookie.replace(/=\d+/, (at) => `=${Number(at.slice(1)) + 600}`);
    // Not the last letter: some of its bits are nobody's.
    const other = cookie.replace(/.(?=.{9}$)/, (letter) => (letter === "A" ? "B" : "A"));
    for (const forged of [later, "human=9999999999.", other])
      expect(await codeOf(login(undefined, "203.0.113.3", forged))).toBe("human_check_empty");
    clock.advance(600_000);
    expect(await codeOf(login(undefined, "203.0.113.3", cookie))).toBe("human_check_empty");
  });

  test("test keys pass where only the operator comes", async () => {
    const testing = () => yes({ hostname: "example.com", metadata: { result_with_testing_key: true } });
    for (const address of ["", "http://localhost:3000", "http://127.0.0.1:3000"]) {
      await app.deps.options.set("ServerAddress", address);
      answers = [testing];
      expect(await codeOf(login("t", "203.0.113.5"))).toBe("login_failed");
    }
    await app.deps.options.set("ServerAddress", "https://gate.example");
  });
});
