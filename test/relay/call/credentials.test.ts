// Trouble of the gateway with its own account at an upstream: keys, retries and channels are judged by the upstream's true
// status; the client reads 502, unless the operator's mapping says otherwise.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { ChannelStatus } from "../../../src/shared/enums.ts";
import { refuse, sse } from "../../support/fake-upstream.ts";
import type { Script } from "../../support/fake-upstream.ts";
import { errorOf, HI, startGateway, until } from "../support.ts";
import type { Gateway } from "../support.ts";

let g: Gateway;
let serial = 0;
beforeAll(async () => {
  g = await startGateway();
  await g.setOption("SelfUseModeEnabled", "true");
  await g.setOption("AutomaticDisableChannelEnabled", "true");
  await g.setOption("AutomaticDisableKeywords", "");
});
afterAll(() => g.close());
beforeEach(() => g.upstream.reset());

const googleBody = {
  error: {
    code: 400,
    message: "API key not valid. Please pass a valid API key.",
    status: "INVALID_ARGUMENT",
    details: [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: "API_KEY_INVALID" }],
  },
};
const openaiBody = (code: string) => ({ error: { message: "no", type: "invalid_request_error", code } });

/** A model with a channel that refuses and, where it is wanted, one below it that serves. */
async function pair(
  fields: Record<string, unknown>,
  hasSpare: boolean,
): Promise<{ model: string; id: number }> {
  const model = `account-${++serial}`;
  const shared = { baseUrl: g.upstream.url, models: model };
  const id = await g.app.createChannel({ ...shared, priority: 2, ...fields });
  if (hasSpare) await g.app.createChannel({ ...shared, priority: 1 });
  await g.setOption("RetryTimes", hasSpare ? "1" : "0");
  return { model, id };
}

const statusOf = (id: number): number | undefined => g.app.deps.routing.channel(id)?.status;

describe.each<[string, Script, Record<string, unknown>]>([
  ["401", refuse(401), {}],
  ["Google's 400 for a bad key", refuse(400, googleBody), { type: 24 }],
  ["the same on Google's OpenAI-compatible address", refuse(400, [googleBody]), {}],
  ["a 400 with the code of a bad key", refuse(400, openaiBody("invalid_api_key")), {}],
])("%s", (_, script, fields) => {
  test("is made good by the next channel, and takes this one out of service", async () => {
    const { model, id } = await pair(fields, true);
    g.upstream.script(script);
    expect((await g.chat({ model })).status).toBe(200);
    expect(g.upstream.requests).toHaveLength(2);
    await until(async () => statusOf(id) === ChannelStatus.autoDisabled || undefined);
  });

  test("is 502 upstream_auth for the client where nobody else serves, without the upstream's words", async () => {
    const { model } = await pair({ ...fields, autoBan: 0 }, false);
    g.upstream.script(script);
    const response = await g.chat({ model });
    expect(response.status).toBe(502);
    const error = await errorOf(response);
    expect(error).toMatchObject({ type: "upstream_error", code: "upstream_auth", param: "" });
    expect(error.message).toStartWith("上游拒绝了网关的凭证");
  });
});

test("403 is retried and is 502 as well", async () => {
  const { model } = await pair({}, true);
  g.upstream.script(refuse(403));
  expect((await g.chat({ model })).status).toBe(200);
  const alone = await pair({}, false);
  g.upstream.script(refuse(403));
  expect((await g.chat({ model: alone.model })).status).toBe(502);
});

test("an account without credit is no matter of the client's balance: 502 upstream_quota, retried", async () => {
  for (const script of [
    refuse(402),
    refuse(403, openaiBody("insufficient_quota")),
    refuse(400, openaiBody("Arrearage")),
  ]) {
    const { model } = await pair({ autoBan: 0 }, true);
    g.upstream.script(script);
    expect((await g.chat({ model })).status).toBe(200);
    const alone = await pair({ autoBan: 0 }, false);
    g.upstream.script(script);
    const response = await g.chat({ model: alone.model });
    expect([response.status, (await errorOf(response)).code]).toEqual([502, "upstream_quota"]);
  }
});

test("an account without credit that says 429 is a saturated upstream, and not the client's quota", async () => {
  const { model } = await pair({ autoBan: 0 }, false);
  g.upstream.script(refuse(429, openaiBody("insufficient_quota")));
  const response = await g.chat({ model });
  expect([response.status, (await errorOf(response)).code]).toEqual([429, "upstream_saturated"]);
});

test("a key that is refused inside a stream is told the same way", async () => {
  const { model } = await pair({ autoBan: 0 }, false);
  g.upstream.script({
    headers: { "content-type": "text/event-stream" },
    steps: [sse({ error: { message: "Incorrect key", type: "authentication_error", code: 401 } })],
  });
  const response = await g.chat({ model, stream: true });
  expect([response.status, (await errorOf(response)).code]).toEqual([502, "upstream_auth"]);
});

test("keywords of a dead key are the upstream's words: what the client wrote itself takes nothing out of service", async () => {
  await g.setOption("AutomaticDisableKeywords", "Permission denied");
  const { model, id } = await pair({}, false);
  g.upstream.always(
    refuse(400, { error: { message: "Invalid value: 'PERMISSION denied'", code: "invalid" } }),
  );
  const json = (fields: object, headers = {}, query = "") =>
    g.post(`/v1/chat/completions${query}`, { model, messages: HI, ...fields }, headers);
  const raw = (body: string) => g.post("/v1/chat/completions", body);
  const form = (name: string, file: string, text: string) => {
    const body = new FormData();
    body.set("model", model);
    body.set(name, text);
    body.set("file", new File([text], file));
    const init = { method: "POST", headers: { authorization: `Bearer ${g.key}` }, body };
    return fetch(`${g.app.url}/v1/audio/transcriptions`, init);
  };
  const said = "permission\u200bDenied";
  for (const call of [
    () => json({ response_format: { type: "permission denied" } }),
    () => json({ messages: [{ role: "permission denied", content: "" }] }),
    () => json({ messages: [{ role: "user", content: [{ type: said }] }] }),
    () => json({ "permission denied": 1 }),
    () => json({ user: JSON.stringify({ a: said }).replace("per", String.raw`\u0070er`) }),
    // An upstream may read the first of two, which no parser here has kept.
    () =>
      raw(
        `{"model":"${model}","messages":${JSON.stringify(HI)},"user":"permission\\u0020denied","user":"x"}`,
      ),
    () => json({}, { "openai-beta": "permission denied" }),
    () => json({}, {}, "?api-version=permission%20denied"),
    () => form("permission denied", "a.mp3", ""),
    () => form("prompt", "permission denied.mp3", ""),
    () => form("prompt", "a.mp3", "permission denied"),
  ]) {
    g.upstream.requests.length = 0;
    expect((await call()).status).toBe(400);
    expect(g.upstream.requests).toHaveLength(1);
  }
  g.upstream.always(refuse(400, { error: { message: "Permission denied for key 7" } }));
  expect((await json({ user: "permission" })).status).toBe(400);
  await until(async () => statusOf(id) === ChannelStatus.autoDisabled || undefined);
  // By the last call, and by none before.
  expect(g.app.deps.routing.channel(id)?.keyRows[0]?.reason).toBe("Permission denied for key 7");
  g.upstream.always(undefined);
  await g.setOption("AutomaticDisableKeywords", "");
});

describe("the operator's status mapping has the last word", () => {
  test.each<[string, string, Script, number]>([
    ["401 as itself", '{"401":"401"}', refuse(401), 401],
    ["401 as 503", '{"401":"503"}', refuse(401), 503],
    ["403 as 400", '{"403":"400"}', refuse(403), 400],
    ["400 of a bad key as 500", '{"400":"500"}', refuse(400, openaiBody("invalid_api_key")), 500],
    [
      "a conversation that is too long as 413",
      '{"400":"413"}',
      refuse(400, openaiBody("context_length_exceeded")),
      413,
    ],
  ])("%s", async (_, statusCodeMapping, script, status) => {
    const { model } = await pair({ statusCodeMapping, autoBan: 0 }, false);
    g.upstream.script(script);
    expect((await g.chat({ model })).status).toBe(status);
  });

  test("on whether another channel is asked, too: 401 as 400 ends the call", async () => {
    const { model } = await pair({ statusCodeMapping: '{"401":"400"}' }, true);
    g.upstream.script(refuse(401));
    expect((await g.chat({ model })).status).toBe(400);
    expect(g.upstream.requests).toHaveLength(1);
  });
});

describe("tasks", () => {
  const submit = async (path: string, body: object) => {
    const response = await g.post(path, body);
    const answer = (await response.json()) as Record<string, unknown>;
    return { status: response.status, code: response.headers.get("x-weir-error-code"), answer };
  };

  test.each<[string, number, string, object, string, Record<string, unknown>]>([
    [
      "a drawing",
      2,
      "mj_imagine",
      { prompt: "x" },
      "/mj/submit/imagine",
      { code: 5, description: "upstream_auth" },
    ],
    [
      "a song",
      36,
      "suno_music",
      { prompt: "x" },
      "/suno/submit/music",
      { code: "upstream_auth", data: null },
    ],
  ])(
    "%s: 502 in the family's own form, 401 where the mapping says so",
    async (_, type, models, body, path, form) => {
      const channel = { baseUrl: g.upstream.url, type, models, autoBan: 0 };
      const id = await g.app.createChannel(channel);
      await g.setOption("RetryTimes", "0");
      g.upstream.always(refuse(401, { message: "Incorrect key", description: "Incorrect key" }));
      const refused = await submit(path, body);
      expect(refused).toMatchObject({ status: 502, code: "upstream_auth", answer: form });
      expect(JSON.stringify(refused.answer)).not.toContain("Incorrect");
      const { db, routing } = g.app.deps;
      await db.orm.delete(db.t.channels);
      await routing.refresh([id]);
      await g.app.createChannel({ ...channel, statusCodeMapping: '{"401":"401"}' });
      expect(await submit(path, body)).toMatchObject({ status: 401, code: "upstream_auth" });
      await db.orm.delete(db.t.channels);
      await routing.reload();
      await g.app.createChannel({ ...channel, statusCodeMapping: '{"418":"503"}' });
      g.upstream.always(refuse(418, { message: "teapot", description: "teapot" }));
      expect(await submit(path, body)).toMatchObject({ status: 503 });
      g.upstream.always(undefined);
    },
  );
});
