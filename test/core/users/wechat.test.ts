// The WeChat server, asked over the wire: what it says counts, not its status; guessing ends soon, a server that is down is no guess.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { createSiteLimits } from "../../../src/core/kit/site-limits.ts";
import { createWeChat } from "../../../src/core/users/providers/wechat.ts";
import type { WeChat } from "../../../src/core/users/providers/wechat.ts";
import { startTestApp } from "../../support/app.ts";
import type { TestApp } from "../../support/app.ts";

const TOKEN = "secret-of-the-server";

/** What the server was asked, and what it answers by code. */
const asked: { path: string; token: string | null }[] = [];
const ANSWERS: Readonly<Record<string, () => Response>> = {
  "424242": () => Response.json({ success: true, message: "", data: "openid-ada" }),
  "denied but 200": () => Response.json({ success: false, message: "wrong" }),
  "yes but 500": () => Response.json({ success: true, message: "", data: "openid-eve" }, { status: 500 }),
  "no data": () => Response.json({ success: true, message: "", data: "" }),
  "data of an object": () => Response.json({ success: true, data: { id: 1 } }),
  "yes as text": () => Response.json({ success: "true", data: "openid-eve" }),
  html: () => new Response("<h1>down</h1>", { status: 502 }),
  large: () => new Response(`{"success":true,"data":"${"x".repeat(300_000)}"}`),
  away: () => new Response(null, { status: 302, headers: { location: "/api/wechat/user?code=424242" } }),
};

describe("codes of WeChat", () => {
  let app: TestApp;
  let server: Bun.Server<undefined>;
  let wechat: WeChat;
  let nowMs = 0;

  beforeAll(async () => {
    server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch(request) {
        const url = new URL(request.url);
        asked.push({ path: url.pathname + url.search, token: request.headers.get("authorization") });
        return (
          ANSWERS[url.searchParams.get("code") ?? ""]?.() ?? Response.json({ success: false, message: "" })
        );
      },
    });
    app = await startTestApp({ env: { UPSTREAM_NETWORKS: "127.0.0.0/8" } });
    await app.deps.options.set("WeChatServerAddress", `http://127.0.0.1:${server.port}/`);
    await app.deps.options.set("WeChatServerToken", TOKEN);
    await app.deps.options.set("WeChatAccountQRCodeImageURL", "https://wechat.example/qr.png");
    await app.deps.options.set("WeChatAuthEnabled", "true");
  });
  afterAll(async () => {
    await app.close();
    await server.stop(true);
  });
  beforeEach(() => {
    asked.length = 0;
    const clock = { nowMs: () => Date.now(), monotonicMs: () => nowMs };
    const limits = createSiteLimits(
      { strangers: undefined, accounts: undefined, perAddress: undefined },
      clock,
      () => false,
    );
    wechat = createWeChat({ ...app.deps, clock: { ...app.deps.clock, ...clock } }, limits);
  });
  const outcome = (code: string, address = "203.0.113.5"): Promise<unknown> =>
    wechat.identify(code, address).then(
      ({ subject }) => subject,
      (error: unknown) => (error as { code?: string }).code,
    );

  test("a right one says who; the token goes along, the code is encoded", async () => {
    expect(await wechat.identify(" 424242 ", "203.0.113.5")).toEqual({
      subject: "openid-ada",
      emailVerified: false,
      claims: {},
    });
    expect(asked).toEqual([{ path: "/api/wechat/user?code=424242", token: TOKEN }]);
    await outcome("1&admin=true#x");
    expect(asked[1]?.path).toBe("/api/wechat/user?code=1%26admin%3Dtrue%23x");
  });

  test.each([
    ["denied but 200", "wechat_code_wrong"],
    ["yes but 500", "openid-eve"],
    ["no data", "wechat_code_wrong"],
    ["data of an object", "wechat_code_wrong"],
    ["yes as text", "wechat_down"],
    ["html", "wechat_down"],
    ["large", "wechat_down"],
    ["away", "wechat_down"],
    ["", "wechat_code_wrong"],
    ["1".repeat(65), "wechat_code_wrong"],
  ])("%s: %s", async (code, expected) => {
    expect(await outcome(code)).toBe(expected);
  });

  test("five wrong ones from an address end its guessing for ten minutes, all at once or one by one", async () => {
    const many = await Promise.all(Array.from({ length: 8 }, (_, at) => outcome(`wrong${at}`)));
    expect(many.filter((code) => code === "wechat_code_wrong")).toHaveLength(5);
    expect(many.filter((code) => code === "too_many_attempts")).toHaveLength(3);
    expect(await outcome("424242")).toBe("too_many_attempts");
    expect(await outcome("424242", "203.0.113.6")).toBe("openid-ada");
    nowMs += 600_001;
    expect(await outcome("424242")).toBe("openid-ada");
  });

  test("sixty wrong ones from many addresses end it for the whole site", async () => {
    for (let at = 0; at < 60; at++)
      expect(await outcome("wrong", `198.51.100.${at}`)).toBe("wechat_code_wrong");
    expect(await outcome("424242", "192.0.2.1")).toBe("too_many_attempts");
    nowMs += 600_001;
    expect(await outcome("424242", "192.0.2.1")).toBe("openid-ada");
  });

  test("a server that is down counts for nobody, and right codes never count", async () => {
    for (let at = 0; at < 70; at++) expect(await outcome("html")).toBe("wechat_down");
    for (let at = 0; at < 10; at++) expect(await outcome("424242")).toBe("openid-ada");
  });

  test("nobody is asked while it is off", async () => {
    await app.deps.options.set("WeChatAuthEnabled", "false");
    expect(await outcome("424242")).toBe("wechat_off");
    expect(asked).toEqual([]);
    await app.deps.options.set("WeChatAccountQRCodeImageURL", "https://wechat.example/qr.png");
    await app.deps.options.set("WeChatAuthEnabled", "true");
  });
});
