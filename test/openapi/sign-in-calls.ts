// The calls by which people sign in at other sites, asked of servers of ours and held against the document.
import { createHash, createHmac } from "node:crypto";
import { expect } from "bun:test";
import type { TestApp, TestUser } from "../support/app.ts";
import { startProviderFakes } from "../support/provider-fakes.ts";
import type { Measure } from "./support.ts";

/** There and back by GitHub, in both forms, by WeChat's code, by Telegram's signature; then the bindings go again. */
export async function signInCalls(app: TestApp, measure: Measure, root: TestUser): Promise<void> {
  const fakes = startProviderFakes();
  const { options } = app.deps;
  const ask = async (
    method: string,
    name: string,
    more: { path?: string; body?: unknown; as?: TestUser } = {},
  ) => {
    const answer = await app.call<{ data: { url: string } }>(method, more.path ?? name, more.body, more.as);
    expect([name, answer.status, answer.body]).toMatchObject([name, 200, { success: true }]);
    measure.expectAnswer(`${method} ${name}`, answer.status, answer.body);
    return answer;
  };
  try {
    for (const [key, value] of [
      ["ServerAddress", "https://gate.example"],
      ["GitHubBaseUrl", fakes.url],
      ["GitHubClientId", "the-id"],
      ["GitHubClientSecret", "the-secret"],
      ["GitHubOAuthEnabled", "true"],
      ["WeChatServerAddress", fakes.url],
      ["WeChatServerToken", "the-token"],
      ["WeChatAccountQRCodeImageURL", "https://wechat.example/qr.png"],
      ["WeChatAuthEnabled", "true"],
      ["TelegramBotToken", "1:token"],
      ["TelegramBotName", "weir_bot"],
      ["TelegramOAuthEnabled", "true"],
    ] as const)
      await options.set(key, value);
    await ask("GET", "/api/oauth/state");
    const person = { id: 1, login: "octo", created_at: "2020-01-01T00:00:00Z" };
    for (const method of ["GET", "POST"]) {
      const body = { provider: "github" };
      const begun = await ask("POST", "/api/oauth/start", { body });
      const cookie = begun.headers.getSetCookie()[0]?.split(";", 1)[0] ?? "";
      const query = fakes.signIn(begun.body.data.url, person);
      const as = { id: 0, username: "", headers: { cookie } };
      const path = "/api/oauth/github";
      await ask(
        method,
        "/api/oauth/{id}",
        method === "GET" ? { path: `${path}?${query}`, as } : { path, body: Object.fromEntries(query), as },
      );
    }
    const user = await app.createUser();
    await ask("GET", "/api/oauth/wechat", { path: "/api/oauth/wechat?code=1" });
    await ask("GET", "/api/oauth/wechat/bind", { path: "/api/oauth/wechat/bind?code=2", as: user });
    // One moment for both: a result counts once, and the next second's would be the same.
    const now = Math.floor(app.deps.clock.nowMs() / 1000);
    for (const name of ["/api/oauth/telegram/bind", "/api/oauth/telegram/login"]) {
      const date = now - (name.endsWith("bind") ? 0 : 1);
      const fields = { auth_date: String(date), id: "7" };
      const text = `auth_date=${date}\nid=7`;
      const key = createHash("sha256").update("1:token").digest();
      const hash = createHmac("sha256", key).update(text).digest("hex");
      const begun = await ask("POST", "/api/oauth/start", {
        body: { provider: "telegram", intent: name.endsWith("bind") ? "bind" : "signin" },
        as: user,
      });
      const [flow = ""] = begun.headers.getSetCookie().map((line) => line.split(";", 1)[0] ?? "");
      const as = { ...user, headers: { ...user.headers, cookie: `${user.headers["cookie"]}; ${flow}` } };
      await ask("GET", name, { path: `${name}?${new URLSearchParams({ ...fields, hash })}`, as });
    }
    await ask("GET", "/api/user/oauth/bindings", { as: user });
    const own = "/api/user/oauth/bindings/{provider}";
    await ask("DELETE", own, { path: "/api/user/oauth/bindings/wechat", as: user });
    await ask("GET", "/api/user/{id}/oauth/bindings", {
      path: `/api/user/${user.id}/oauth/bindings`,
      as: root,
    });
    const theirs = `/api/user/${user.id}/oauth/bindings/telegram`;
    await ask("DELETE", "/api/user/{id}/oauth/bindings/{provider}", { path: theirs, as: root });
  } finally {
    for (const key of ["GitHubOAuthEnabled", "WeChatAuthEnabled", "TelegramOAuthEnabled"])
      await options.set(key, "false");
    await fakes.close();
  }
}
