// In which language the product speaks: to people in the console, in letters, and to programs that name none.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { lowQuotaNotice } from "../../src/core/users/notice-texts.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp } from "../support/app.ts";
import { MODEL, HI, startGateway } from "../relay/support.ts";
import type { Gateway } from "../relay/support.ts";

const OFF = "switched-off";

let g: Gateway;
beforeAll(async () => {
  g = await startGateway();
  // Known, and off: the refusal is one of the gateway's own sentences.
  await g.app.createChannel({ baseUrl: g.upstream.url, models: OFF, status: 2 });
});
afterAll(() => g.close());

const CHINESE = /\p{Script=Han}/u;

/** The gateway's own sentence of a refused call in each dialect. */
async function refusals(headers: Record<string, string> = {}): Promise<string[]> {
  const model = OFF;
  const contents = [{ parts: [{ text: "hi" }] }];
  const calls = [
    g.post("/v1/chat/completions", { model, messages: HI }, headers),
    g.post("/v1/responses", { model, input: "hi" }, headers),
    g.post("/v1/messages", { model, max_tokens: 9, messages: HI }, headers),
    g.post(`/v1beta/models/${model}:generateContent`, { contents }, headers),
    fetch(`${g.app.url}/v1/models`, { headers: { ...headers, authorization: "Bearer sk-wrong" } }),
    fetch(`${g.app.url}/dashboard/billing/usage`, {
      headers: { ...headers, authorization: "Bearer sk-wrong" },
    }),
  ];
  const answers = await Promise.all(calls);
  return Promise.all(
    answers.map(async (answer) => {
      expect(answer.ok).toBe(false);
      return ((await answer.json()) as { error: { message: string } }).error.message;
    }),
  );
}

const isChinese = (texts: string[]): boolean[] => [...new Set(texts.map((text) => CHINESE.test(text)))];

test("programs read what they ask for, else the site's language, else what the operator fixed", async () => {
  expect(isChinese(await refusals())).toEqual([true]);
  await g.setOption("site.language", "en");
  expect(isChinese(await refusals())).toEqual([false]);
  expect(isChinese(await refusals({ "accept-language": "zh-CN" }))).toEqual([true]);
  expect(isChinese(await refusals({ "accept-language": "fr" }))).toEqual([false]);
  await g.setOption("relay.language", "zh");
  expect(isChinese(await refusals({ "accept-language": "en" }))).toEqual([true]);
  await g.setOption("relay.language", "en");
  await g.setOption("site.language", "zh");
  expect(isChinese(await refusals({ "accept-language": "zh" }))).toEqual([false]);
  await g.setOption("relay.language", "auto");
  for (const [key, value] of [
    ["relay.language", "fr"],
    ["site.language", "auto"],
  ] as const) {
    const refused: unknown = await g.setOption(key, value).catch((error: unknown) => error);
    expect(refused).toMatchObject({ code: "option_not_one_of" });
  }
});

test("a stream that breaks says why in the same language", async () => {
  g.upstream.always({
    status: 200,
    headers: { "content-type": "text/event-stream" },
    steps: [
      `data: ${JSON.stringify({ id: "x", choices: [{ index: 0, delta: { content: "a" } }], model: MODEL })}\n\n`,
    ],
  });
  const broken = async (): Promise<string> => {
    const answer = await g.post("/v1/messages", { model: MODEL, max_tokens: 9, messages: HI, stream: true });
    return /event: error\ndata: (.*)/.exec(await answer.text())?.[1] ?? "";
  };
  expect(await broken()).toMatch(CHINESE);
  await g.setOption("site.language", "en");
  expect(await broken()).toMatch(/^\{"type":"error"[^\p{Script=Han}]*$/u);
  await g.setOption("site.language", "zh");
  g.upstream.always(undefined);
});

test("the console speaks the visitor's language first, then the site's, on pages and in answers", async () => {
  const page = async (headers: Record<string, string>): Promise<string> => {
    const html = await (await fetch(`${g.app.url}/about`, { headers })).text();
    return /<html[^>]* lang="(\w+)/.exec(html)?.[1] ?? "";
  };
  await g.app.call("POST", "/api/setup", {
    username: "root",
    password: "longenough",
    confirmPassword: "longenough",
  });
  expect(g.app.deps.options.get("site.language")).toBe("zh");
  await g.setOption("site.language", "en");
  expect(await page({ "accept-language": "fr" })).toBe("en");
  expect(await page({ "accept-language": "zh" })).toBe("zh");
  expect(await page({ "accept-language": "en", cookie: "i18nextLng=zh" })).toBe("zh");
  const refused = await g.app.call<{ message: string }>("GET", "/api/user/self");
  expect(refused.body.message).not.toMatch(CHINESE);
  await g.setOption("site.language", "zh");
  expect((await g.app.call<{ message: string }>("GET", "/api/user/self")).body.message).toMatch(CHINESE);
});

test("a fresh site takes the language in which it is set up", async () => {
  const fresh: TestApp = await startTestApp();
  try {
    const answer = await fetch(`${fresh.url}/api/setup`, {
      method: "POST",
      headers: { "content-type": "application/json", "accept-language": "de, en-GB;q=0.8" },
      body: JSON.stringify({ username: "root", password: "longenough", confirmPassword: "longenough" }),
    });
    expect(answer.status).toBe(200);
    expect(fresh.deps.options.get("site.language")).toBe("en");
    const call = await fetch(`${fresh.url}/v1/models`, { headers: { authorization: "Bearer sk-none" } });
    expect(((await call.json()) as { error: { message: string } }).error.message).not.toMatch(CHINESE);
  } finally {
    await fresh.close();
  }
});

test("notices to the operator go out in the operator's language, else the site's; the log keeps one", async () => {
  const { notifyRoot } = await import("../../src/core/users/notify.ts");
  const { channelDisabledNotice } = await import("../../src/core/users/notice-texts.ts");
  const received: { title: string; content: string }[] = [];
  const hook = createServer((request, response) => {
    let body = "";
    request.on("data", (part: Buffer) => (body += part.toString()));
    request.on("end", () => {
      received.push(JSON.parse(body) as { title: string; content: string });
      response.end("ok");
    });
  });
  await new Promise<void>((resolve) => hook.listen(0, "127.0.0.1", resolve));
  const { port } = hook.address() as AddressInfo;
  const { deps } = g.app;
  const { guard } = deps;
  deps.guard = async (url, init) => {
    const answer = await fetch(url, { method: "POST", body: String(init?.body) });
    return { status: answer.status, headers: answer.headers, bytes: new Uint8Array() } as never;
  };
  try {
    const { users } = deps.db.t;
    const setting = {
      notify_type: "webhook",
      webhook_url: `http://127.0.0.1:${port}/`,
      quota_warning_threshold: 1,
    };
    await deps.db.orm.update(users).set({ setting: JSON.stringify(setting) });
    const rows = await deps.db.orm.select({ id: users.id }).from(users);
    for (const { id } of rows) await deps.accounts.userChanged(id);
    const reason = { zh: "余额不足", en: "its balance is used up" };
    for (const language of ["en", "zh"] as const) {
      await g.setOption("site.language", language);
      await notifyRoot(deps, channelDisabledNotice({ id: 7, name: "main" }, `test_${language}`, reason));
    }
  } finally {
    deps.guard = guard;
    hook.close();
  }
  expect(received.map(({ content }) => content)).toEqual([
    'Channel "main" (#7) was disabled: its balance is used up',
    "通道「main」（#7）已被禁用，原因：余额不足",
  ]);
  const kept = (await g.logs()).filter(({ type }) => type === 4).map(({ content }) => content);
  expect(kept.slice(-2)).toEqual([
    "通道「main」（#7）已被禁用，原因：余额不足",
    "通道「main」（#7）已被禁用，原因：余额不足",
  ]);
  expect(lowQuotaNotice("en", "$1", "").content).not.toMatch(CHINESE);
});
