// The playground: a session in place of a key, the user's balance in place of the key's.
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { gate, splitCharacterStream } from "../support/fake-upstream.ts";
import { errorOf, HI, MODEL, startGateway } from "./support.ts";
import type { Gateway } from "./support.ts";

let g: Gateway;
beforeAll(async () => {
  g = await startGateway();
});
afterAll(() => g.close());
beforeEach(() => g.upstream.reset());

const play = (fields: Record<string, unknown> = {}, headers: Record<string, string> = g.user.headers) =>
  fetch(`${g.app.url}/pg/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ model: MODEL, messages: HI, group: "default", ...fields }),
  });

test("a session streams, pays from its balance, and the log names the playground", async () => {
  const before = await g.balance();
  const response = await play({ stream: true });
  expect(await response.text()).toEndWith("data: [DONE]\n\n");
  expect(g.upstream.requests[0]?.json()).not.toHaveProperty("group");
  expect(await g.lastCharge()).toMatchObject({ tokenName: "playground-default", quota: 2, group: "default" });
  expect(before.quota - (await g.balance()).quota).toBe(2);
});

test("what an older console keeps for itself never reaches the upstream; the rest of the request does", async () => {
  const said = [
    { role: "system", content: "short" },
    { role: "user", content: [{ type: "text", text: "hi", id: "part" }], name: "eve" },
    {
      role: "assistant",
      content: null,
      tool_calls: [{ id: "call_1", type: "function", function: { name: "f", arguments: "{}" } }],
    },
    { role: "tool", tool_call_id: "call_1", content: "done" },
  ];
  const messages = said.map((message, index) => ({
    ...message,
    id: `${index}`,
    createAt: 1_760_000_000_000,
  }));
  for (const stream of [true, false]) {
    g.upstream.reset();
    const response = await play({ messages, stream, max_tokens: 0, temperature: 0, presence_penalty: 0 });
    expect([response.status, await response.text()]).toEqual([200, expect.any(String)]);
    const sent = g.upstream.requests[0]?.json();
    expect(sent?.["messages"]).toEqual(said);
    expect(sent).toMatchObject({ model: MODEL, temperature: 0, presence_penalty: 0 });
    for (const member of ["max_tokens", "group"]) expect(sent).not.toHaveProperty(member);
  }
  // With a key the messages are the client's own affair.
  await g.chat({ messages: messages.slice(0, 2) });
  expect(g.upstream.requests.at(-1)?.json()["messages"]).toEqual(messages.slice(0, 2));
});

test("messages that are no objects, or none at all, are refused as everywhere", async () => {
  for (const messages of [
    [],
    ["hi"],
    "hi",
    null,
    { id: "1" },
    [{ id: "1", role: "user", content: "hi" }, 7],
  ]) {
    const response = await play({ messages });
    expect([messages, response.status]).toEqual([messages, 400]);
    await response.text();
  }
  expect(g.upstream.requests).toHaveLength(0);
});

test("a character cut in two by the network arrives whole here too", async () => {
  const between = gate();
  g.upstream.script(splitCharacterStream("你好，世界", between));
  const response = await play({ stream: true });
  between.open();
  expect(await response.text()).toContain("你好，世界");
});

test("a group that the user may not use, a missing model, a model nobody serves", async () => {
  const foreign = await play({ group: "secret" });
  expect([foreign.status, await errorOf(foreign)]).toEqual([
    403,
    { message: "无权访问该分组", type: "new_api_error", param: "", code: "group_not_allowed" },
  ]);
  const missing = await play({ model: "" });
  expect([missing.status, (await errorOf(missing)).code]).toEqual([400, "model_required"]);
  const nobody = await play({ model: "nobody" });
  expect([nobody.status, (await errorOf(nobody)).code]).toEqual([404, "model_not_found"]);
  await g.app.createChannel({ baseUrl: g.upstream.url, models: "sleeping", status: 2 });
  const sleeping = await play({ model: "sleeping" });
  expect([sleeping.status, await errorOf(sleeping)]).toMatchObject([
    503,
    { message: "当前分组 default 下对于模型 sleeping 无可用渠道", code: "get_playground_channel_failed" },
  ]);
  expect(g.upstream.requests).toHaveLength(0);
});

test("strangers and access tokens are refused in the shape of the API", async () => {
  const stranger = await play({}, {});
  expect(stranger.status).toBe(401);
  expect((await errorOf(stranger)).type).toBe("new_api_error");
  const scripted = await play({}, { authorization: "some-access-token", "new-api-user": String(g.user.id) });
  expect([scripted.status, await errorOf(scripted)]).toMatchObject([
    400,
    { code: "access_token_not_supported", message: "暂不支持使用 access token" },
  ]);
});
