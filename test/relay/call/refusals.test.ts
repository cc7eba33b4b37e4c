// Every refusal of the first checks: documented status and sentence, no upstream call, no charge.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { errorOf, HI, MODEL, startGateway } from "../support.ts";
import type { Gateway } from "../support.ts";

let g: Gateway;
let nowMs = 1_760_000_000_000;

beforeAll(async () => {
  g = await startGateway({ clock: { nowMs: () => nowMs } });
});
afterAll(() => g.close());
beforeEach(() => g.upstream.reset());
afterEach(async () => {
  expect(g.upstream.requests).toHaveLength(0);
  const { used } = await g.balance();
  expect(used).toBe(0);
  expect((await g.logs()).filter((row) => row.type === 2)).toEqual([]);
});

async function refusalOf(response: Response) {
  const error = await errorOf(response);
  const id = response.headers.get("x-oneapi-request-id") ?? "none";
  expect(error.message).toEndWith(` (request id: ${id})`);
  return { status: response.status, message: error.message.replace(` (request id: ${id})`, ""), error };
}

const withKey = (key: string, fields: Record<string, unknown> = {}) =>
  g.post(
    "/v1/chat/completions",
    { model: MODEL, messages: HI, ...fields },
    { authorization: `Bearer ${key}` },
  );

describe("the key", () => {
  async function tokenRefusal(fields: Record<string, unknown>) {
    const token = await g.app.createToken(g.user.id, fields);
    const bare = token.key.slice(3);
    const refusal = await refusalOf(await withKey(token.key));
    expect(refusal.error).toEqual({ message: refusal.error.message, type: "new_api_error" });
    return { ...refusal, masked: `sk-${bare.slice(0, 3)}***${bare.slice(-3)}`, token };
  }

  test("none: 401", async () => {
    expect(await refusalOf(await withKey(""))).toMatchObject({ status: 401, message: "未提供令牌" });
  });
  test("unknown: 401", async () => {
    expect(await refusalOf(await withKey("sk-unknown"))).toMatchObject({
      status: 401,
      message: "无效的令牌",
    });
  });
  test("deleted looks like unknown", async () => {
    expect(await tokenRefusal({ deletedAt: 1 })).toMatchObject({ status: 401, message: "无效的令牌" });
  });
  test("disabled: 401", async () => {
    expect(await tokenRefusal({ status: 2 })).toMatchObject({ status: 401, message: "该令牌状态不可用" });
  });
  test("expired by status: 401", async () => {
    expect(await tokenRefusal({ status: 3 })).toMatchObject({ status: 401, message: "该令牌已过期" });
  });
  test("expired by time: 401, and its status says so afterwards", async () => {
    const { status, message, token } = await tokenRefusal({ expiredTime: Math.floor(nowMs / 1000) - 1 });
    expect([status, message]).toEqual([401, "该令牌已过期"]);
    await g.app.deps.ledger.flush();
    const { tokens } = g.app.deps.db.t;
    const [row] = await g.app.deps.db.orm.select().from(tokens).where(eq(tokens.id, token.id));
    expect(row?.status).toBe(3);
  });
  test("exhausted by status: 401 with the masked key", async () => {
    const { status, message, masked } = await tokenRefusal({ status: 4 });
    expect([status, message]).toEqual([401, `该令牌额度已用尽 TokenStatusExhausted[${masked}]`]);
  });
  test("exhausted by amount: 401 with the masked key and the amount", async () => {
    const { status, message, masked } = await tokenRefusal({ remainQuota: 0 });
    expect([status, message]).toEqual([
      401,
      `[${masked}] 该令牌额度已用尽 !token.UnlimitedQuota && token.RemainQuota = 0`,
    ]);
  });
  test("of a banned user: 403", async () => {
    const banned = await g.app.createUser({ status: 2, quota: 100 });
    const token = await g.app.createToken(banned.id);
    expect(await refusalOf(await withKey(token.key))).toMatchObject({ status: 403, message: "用户已被封禁" });
  });
  test("with a channel of an ordinary user: 403", async () => {
    expect(await refusalOf(await withKey(`${g.key}-${g.channelId}`))).toMatchObject({
      status: 403,
      message: "普通用户不支持指定渠道",
    });
  });
  test("with a channel that does not exist, is no number or is disabled", async () => {
    const admin = await g.app.createUser({ role: 10, quota: 1000 });
    const { key } = await g.app.createToken(admin.id);
    const off = await g.app.createChannel({ baseUrl: g.upstream.url, status: 2 });
    expect(await refusalOf(await withKey(`${key}-999`))).toMatchObject({
      status: 400,
      message: "无效的渠道 Id",
    });
    expect(await refusalOf(await withKey(`${key}-abc`))).toMatchObject({
      status: 400,
      message: "无效的渠道 Id",
    });
    expect(await refusalOf(await withKey(`${key}-${off}`))).toMatchObject({
      status: 403,
      message: "该渠道已被禁用",
    });
  });
  test("from an address that is not on its list: 403, though it may read the model list", async () => {
    const token = await g.app.createToken(g.user.id, { allowIps: "10.1.2.3\n192.168.0.0/16" });
    expect(await refusalOf(await withKey(token.key))).toMatchObject({
      status: 403,
      message: "您的 IP 不在令牌允许访问的列表中",
    });
    const list = await fetch(`${g.app.url}/v1/models`, { headers: { authorization: `Bearer ${token.key}` } });
    expect(list.status).toBe(200);
  });
  test("of a group that its owner may not use, or that no longer exists: 403", async () => {
    const foreign = await g.app.createToken(g.user.id, { group: "secret" });
    expect(await refusalOf(await withKey(foreign.key))).toMatchObject({
      status: 403,
      message: "令牌分组 secret 已被禁用",
    });
    await g.setOption("UserUsableGroups", '{"default":"","ghost":""}');
    const retired = await g.app.createToken(g.user.id, { group: "ghost" });
    expect(await refusalOf(await withKey(retired.key))).toMatchObject({
      status: 403,
      message: "分组 ghost 已被弃用",
    });
  });
  test("that may not use the model: 403", async () => {
    const token = await g.app.createToken(g.user.id, { modelLimitsEnabled: true, modelLimits: "gpt-4,o1" });
    expect(await refusalOf(await withKey(token.key))).toMatchObject({
      status: 403,
      message: `该令牌无权访问模型 ${MODEL}`,
    });
  });
});

describe("the request", () => {
  test("for a model that no channel of the group has: 404; one whose channels are all off: 503", async () => {
    const unknown = await refusalOf(await g.chat({ model: "nobody" }));
    expect(unknown.status).toBe(404);
    expect(unknown.error).toMatchObject({
      type: "invalid_request_error",
      code: "model_not_found",
      param: "model",
    });
    await g.app.createChannel({ baseUrl: g.upstream.url, models: "elsewhere", group: "vip" });
    expect((await g.chat({ model: "elsewhere" })).status).toBe(404);
    const off = await g.app.createChannel({ baseUrl: g.upstream.url, models: "sleeping", status: 2 });
    expect(await refusalOf(await g.chat({ model: "sleeping" }))).toMatchObject({
      status: 503,
      message: "当前分组 default 下对于模型 sleeping 无可用渠道",
    });
    const { routing, db } = g.app.deps;
    await db.orm.update(db.t.channels).set({ models: "awake" }).where(eq(db.t.channels.id, off));
    await routing.refresh([off]);
    expect((await g.chat({ model: "sleeping" })).status).toBe(404);
  });
  test("in English for a caller who reads English", async () => {
    await g.app.createChannel({ baseUrl: g.upstream.url, models: "resting", status: 2 });
    const response = await g.chat({ model: "resting" }, { "accept-language": "en-US" });
    expect((await errorOf(response)).message).toStartWith(
      "No channel is available for model resting in group default",
    );
  });
  test("that is no JSON: 400", async () => {
    const { status, message } = await refusalOf(await g.post("/v1/chat/completions", "{oops"));
    expect(status).toBe(400);
    expect(message).toStartWith("Invalid request, 无效的请求, ");
  });
  test("above the size cap: 413", async () => {
    await g.setOption("relay.max_body_mb", "1");
    const response = await g.chat({ messages: [{ role: "user", content: "x".repeat(1024 * 1024 + 1) }] });
    expect(response.status).toBe(413);
    await g.setOption("relay.max_body_mb", "64");
  });
  test.each<[string, Record<string, unknown> | string, string]>([
    ["no messages", { messages: undefined }, "field messages is required"],
    ["empty messages", { messages: [] }, "field messages is required"],
    ["messages that are no list", { messages: "hi" }, ""],
    ["a message that is no object", { messages: [1] }, ""],
    ["no model", { model: undefined }, "field model is required"],
    ["max_tokens above 2^30", { max_tokens: 1_073_741_824 }, "max_tokens is invalid"],
    ["negative max_tokens", { max_tokens: -1 }, "max_tokens is invalid"],
    ["max_tokens as text", { max_tokens: "NaN" }, "max_tokens is invalid"],
    [
      "max_tokens beyond doubles",
      `{"model":"${MODEL}","messages":[{}],"max_tokens":1e309}`,
      "max_tokens is invalid",
    ],
    ["max_tokens of 2^63", { max_completion_tokens: 2 ** 63 }, "max_tokens is invalid"],
    ["half a token", { max_tokens: 0.5 }, "max_tokens is invalid"],
    ["n of -1", { n: -1 }, ""],
    ["n of a million", { n: 1_000_000 }, ""],
    ["temperature beyond doubles", `{"model":"${MODEL}","messages":[{}],"temperature":1e309}`, ""],
    ["stream as text", { stream: "true" }, ""],
    ["stream_options as a list", { stream_options: [] }, ""],
    [
      "an unknown context size",
      { web_search_options: { search_context_size: "huge" } },
      "invalid search_context_size, must be one of: high, medium, low",
    ],
  ])("with %s: 400 invalid_text_request", async (_, fields, sentence) => {
    const response =
      typeof fields === "string" ? await g.post("/v1/chat/completions", fields) : await g.chat(fields);
    const { status, message, error } = await refusalOf(response);
    expect([status, error.code, error.type]).toEqual([400, "invalid_text_request", "new_api_error"]);
    if (sentence !== "") expect(message).toBe(sentence);
    else expect(message.length).toBeGreaterThan(5);
  });
  test("for completions without prompt, and embeddings without input", async () => {
    const completion = await refusalOf(await g.post("/v1/completions", { model: MODEL }));
    expect([completion.status, completion.message]).toEqual([400, "field prompt is required"]);
    const embedding = await refusalOf(await g.post("/v1/embeddings", { model: MODEL, input: "" }));
    expect([embedding.status, embedding.message, embedding.error.code]).toEqual([
      400,
      "input is empty",
      "invalid_embedding_request",
    ]);
  });
  test("with a forbidden word, in whatever case: 400; not when the check is off", async () => {
    const bad = { messages: [{ role: "user", content: [{ type: "text", text: "a TEST_Sensitive b" }] }] };
    const { status, message, error } = await refusalOf(await g.chat(bad));
    expect([status, message, error.code]).toEqual([
      400,
      "sensitive words detected",
      "sensitive_words_detected",
    ]);
  });
  test("for a model without a price: 400, and its sentence names the model", async () => {
    await g.app.createChannel({ baseUrl: g.upstream.url, models: "unpriced" });
    const { status, message, error } = await refusalOf(await g.chat({ model: "unpriced" }));
    expect([status, error.code]).toEqual([400, "model_not_priced"]);
    expect(message).toStartWith("模型 unpriced 倍率或价格未配置，请联系管理员设置或开始自用模式；");
  });
  test("that only an unsupported provider could serve: 503", async () => {
    await g.app.createChannel({ baseUrl: g.upstream.url, models: "mj", type: 2 });
    await g.setOption("ModelRatio", JSON.stringify({ ...g.app.deps.options.get("ModelRatio"), mj: 1 }));
    expect((await g.chat({ model: "mj" })).status).toBe(503);
  });
});

describe("the balance", () => {
  test("empty: 403 insufficient_user_quota", async () => {
    const poor = await g.app.createUser();
    const { key } = await g.app.createToken(poor.id);
    const { status, message, error } = await refusalOf(await withKey(key));
    expect([status, error.code]).toEqual([403, "insufficient_user_quota"]);
    expect(message).toBe("user quota is not enough");
  });
  test("too small for sixteen tokens of an answer: 403 with both amounts", async () => {
    const poor = await g.app.createUser({ quota: 3 });
    const { key } = await g.app.createToken(poor.id);
    const { status, message, error } = await refusalOf(await withKey(key, { max_tokens: 100_000 }));
    expect([status, error.code]).toEqual([403, "insufficient_user_quota"]);
    expect(message).toStartWith(
      "chat pre-consumed quota failed, user quota: ＄0.000006, need quota: ＄0.0000",
    );
  });
  test("of the key too small: 403 pre_consume_token_quota_failed", async () => {
    const token = await g.app.createToken(g.user.id, { remainQuota: 3 });
    const { status, error } = await refusalOf(await withKey(token.key, { max_tokens: 100_000 }));
    expect([status, error.code]).toEqual([403, "pre_consume_token_quota_failed"]);
  });
});

describe("addresses that are not served", () => {
  test("known ones say so with 501, to holders of a key only", async () => {
    const known = await g.post("/v1/images/variations", {});
    expect(known.status).toBe(501);
    expect(await known.json()).toEqual({
      error: {
        message: "API not implemented",
        type: "new_api_error",
        param: "",
        code: "api_not_implemented",
      },
    });
    const stranger = await fetch(`${g.app.url}/v1/files`);
    expect(stranger.status).toBe(401);
  });
  test.each([
    ["/upload/v1beta/files", {}],
    ["/v1beta/files", {}],
    ["/v1beta/cachedContents", {}],
    ["/v1/unknown", { "x-goog-api-key": "k" }],
  ] as const)("Google's clients read their own envelope at %s", async (path, headers) => {
    const response = await g.post(path, {}, { "accept-language": "en", ...headers });
    const body = (await response.json()) as { error: Record<string, unknown> };
    expect(response.status).toBe(404);
    expect(Object.keys(body)).toEqual(["error"]);
    expect(body.error).toMatchObject({ code: 404, status: expect.any(String) as unknown });
    expect(body.error["message"]).toContain(`Invalid URL (POST ${path})`);
    expect(Object.keys(body.error)).toEqual(["code", "message", "status"]);
  });
  test.each(["GET", "PUT", "DELETE"])("whatever they want there (%s)", async (method) => {
    const response = await fetch(`${g.app.url}/v1beta/files/abc`, { method });
    const { error } = (await response.json()) as { error: Record<string, unknown> };
    expect([response.status, error["code"], typeof error["status"]]).toEqual([404, 404, "string"]);
  });
  test.each([
    ["/v1/messages/batches", {}],
    ["/v1/unknown", { "anthropic-version": "2023-06-01" }],
  ] as const)("Anthropic's clients read their own envelope at %s", async (path, headers) => {
    const response = await g.post(path, {}, headers);
    expect(response.status).toBe(404);
    expect(await response.json()).toMatchObject({
      type: "error",
      error: { message: expect.stringContaining(path) as unknown },
    });
  });
  test("unknown ones answer 404 in the same shape", async () => {
    const response = await g.post("/v1/unknown", {});
    expect([response.status, (await errorOf(response)).message]).toEqual([
      404,
      "Invalid URL (POST /v1/unknown)",
    ]);
  });
});

test("the request rate: the refused one is told when to come back", async () => {
  await g.setOption("ModelRequestRateLimitCount", "2");
  await g.setOption("ModelRequestRateLimitEnabled", "true");
  const statuses = [];
  for (let i = 0; i < 2; i++) statuses.push((await g.chat({ model: "nobody" })).status);
  const response = await g.chat({ model: "nobody" });
  const { message } = await refusalOf(response);
  expect([...statuses, response.status]).toEqual([404, 404, 429]);
  expect(message).toBe("您已达到总请求数限制：1分钟内最多请求2次，包括失败次数，请检查您的请求是否正确");
  expect(Number(response.headers.get("retry-after"))).toBeGreaterThan(0);
  await g.setOption("ModelRequestRateLimitGroup", '{"default":[1000,1]}');
  expect((await g.chat({ model: "nobody" })).status).toBe(404);
  nowMs += 3_600_000;
  await g.setOption("ModelRequestRateLimitEnabled", "false");
});
