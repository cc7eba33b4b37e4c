// Attempts: who is tried next, what the client is told in the end, and what is never asked twice.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import {
  answer,
  gate,
  hangBeforeHeaders,
  okWithError,
  refuse,
  refuseUntil,
  sse,
} from "../../support/fake-upstream.ts";
import type { Script } from "../../support/fake-upstream.ts";
import { retryAfterOf } from "../../../src/relay/call/attempt.ts";
import { errorOf, startGateway, until } from "../support.ts";
import type { Gateway } from "../support.ts";

let g: Gateway;
let serial = 0;

beforeAll(async () => {
  g = await startGateway();
  await g.setOption("SelfUseModeEnabled", "true");
});
afterAll(() => g.close());
beforeEach(async () => {
  g.upstream.reset();
  await g.setOption("RetryTimes", "2");
});

/** A model of its own with channels of descending priority; their keys tell them apart upstream. */
async function pool(count: number, fields: Record<string, unknown> = {}) {
  const model = `pool-${++serial}`;
  const ids: number[] = [];
  for (let i = 0; i < count; i++) {
    ids.push(
      await g.app.createChannel({
        baseUrl: g.upstream.url,
        models: model,
        // Equal keys are one account, and rest together.
        key: `key${i}.${serial}`,
        priority: count - i,
        ...fields,
      }),
    );
  }
  const keys = () =>
    g.upstream.requests.map(
      ({ headers }) => /^Bearer ([^.]*)/.exec(String(headers["authorization"]))?.[1] ?? "",
    );
  return { model, ids, keys };
}

test("a failed channel is left out, the next by priority serves, and the log tells all attempts", async () => {
  const { model, ids, keys } = await pool(3);
  g.upstream.script(refuse(500), refuse(429), answer("third"));
  const response = await g.chat({ model });
  expect(response.status).toBe(200);
  expect(keys()).toEqual(["key0", "key1", "key2"]);
  const rows = (await g.logs()).slice(-3);
  expect(rows.map((row) => row.type)).toEqual([5, 5, 2]);
  expect(rows[2]?.other).toMatchObject({ admin_info: { use_channel: ids.map(String) } });
  expect(rows[2]?.other["attempts"]).toMatchObject([
    { channel: ids[0], code: "upstream_down", status: 500 },
    { channel: ids[1], code: "upstream_saturated", status: 429 },
    { channel: ids[2], code: "ok" },
  ]);
  expect(rows[0]?.other).toMatchObject({
    status_code: 500,
    error_code: "fake_500",
    error_type: "fake_error",
    channel_id: ids[0],
  });
});

test("no channel is tried twice, however many retries are allowed; the last error is the client's", async () => {
  const { model, keys } = await pool(2);
  g.upstream.script(refuse(500), refuse(503), answer("never"));
  const before = await g.balance();
  const response = await g.chat({ model });
  expect(response.status).toBe(503);
  expect(keys()).toEqual(["key0", "key1"]);
  expect(await errorOf(response)).toMatchObject({ type: "fake_error", code: "fake_503" });
  expect(await g.balance()).toEqual(before);
});

test("what was held back for a failed call is free again for the next", async () => {
  const { model } = await pool(1);
  await g.setOption("ModelPrice", JSON.stringify({ [model]: 10 / 500_000 }));
  const poor = await g.app.createUser({ quota: 10 });
  const { key } = await g.app.createToken(poor.id);
  const headers = { authorization: `Bearer ${key}` };
  g.upstream.script(refuse(500));
  expect((await g.chat({ model }, headers)).status).toBe(500);
  expect((await g.chat({ model }, headers)).status).toBe(200);
  expect(await g.balance(poor.id)).toEqual({ quota: 0, used: 10, requests: 1 });
});

describe("which answers another channel may make good", () => {
  test.each<[string, Script, number, boolean]>([
    ["429", refuse(429), 429, true],
    ["500", refuse(500), 500, true],
    ["503", refuse(503), 503, true],
    ["401", refuse(401), 502, true],
    ["403", refuse(403), 502, true],
    ["404", refuse(404), 404, true],
    ["422", refuse(422), 422, true],
    ["307", { status: 307, headers: { location: "http://internal.example/" }, steps: ["moved"] }, 500, true],
    ["an error with status 200", okWithError(), 502, true],
    ["no JSON at all", { headers: { "content-type": "text/html" }, steps: ["<html>oops</html>"] }, 502, true],
    ["a cut connection", { steps: [{ end: "cut" }] }, 500, true],
    [
      "a stream that is over before it began",
      { headers: { "content-type": "text/event-stream" }, steps: [] },
      502,
      true,
    ],
    [
      "a stream that begins with an error",
      {
        headers: { "content-type": "text/event-stream" },
        steps: [sse({ error: { message: "overloaded", type: "server_error" } })],
      },
      502,
      true,
    ],
    ["400", refuse(400), 400, false],
    ["408", refuse(408), 408, false],
    ["504", refuse(504), 504, false],
    ["524", refuse(524), 524, false],
    [
      "a policy refusal",
      refuse(403, {
        error: { message: "no", type: "invalid_request_error", code: "content_policy_violation" },
      }),
      403,
      false,
    ],
  ])("%s", async (_, script, status, isRetried) => {
    const { model } = await pool(2);
    g.upstream.script(script);
    const response = await g.chat({ model });
    await response.text();
    expect(g.upstream.requests).toHaveLength(isRetried ? 2 : 1);
    expect(response.status).toBe(isRetried ? 200 : status);
    await g.setOption("RetryTimes", "0");
    g.upstream.reset();
    const alone = await pool(1);
    g.upstream.script(script);
    const final = await g.chat({ model: alone.model });
    await final.text();
    expect(final.status).toBe(status);
  });
});

test("a saturated group says so, without the upstream's words, and passes on when to come back", async () => {
  const { model } = await pool(1);
  g.upstream.script(refuseUntil(17));
  const response = await g.chat({ model });
  expect([response.status, response.headers.get("retry-after")]).toEqual([429, "17"]);
  expect((await errorOf(response)).message).toStartWith("当前分组上游负载已饱和，请稍后再试 (request id: ");
});

describe("how long an upstream wants to be left alone is read from", () => {
  const NOW = Date.UTC(2026, 0, 2, 3, 4, 5);
  test.each<[string, Record<string, string>, string | null]>([
    ["seconds", { "retry-after": "17" }, "17"],
    ["a date", { "retry-after": "Fri, 02 Jan 2026 03:04:47 GMT" }, "42"],
    ["a date that is over", { "retry-after": "Fri, 02 Jan 2026 03:00:00 GMT" }, "0"],
    ["milliseconds, where both are told", { "retry-after": "1", "retry-after-ms": "350" }, "0.35"],
    ["nothing that is a time", { "retry-after": "soon" }, null],
    ["no header at all", {}, null],
  ])("%s", (_, headers, seconds) => {
    expect(retryAfterOf(new Headers(headers), NOW)).toBe(seconds);
  });

  test("the body, where Google tells it", async () => {
    const { model } = await pool(1, { type: 24 });
    const details = [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "37s" }];
    g.upstream.script(
      refuse(429, { error: { code: 429, status: "RESOURCE_EXHAUSTED", message: "x", details } }),
    );
    const response = await g.chat({ model });
    expect([response.status, response.headers.get("retry-after")]).toEqual([429, "37"]);
  });
});

test("an unreachable upstream is reported without its address", async () => {
  const { model } = await pool(1, { baseUrl: "http://127.0.0.1:1" });
  const response = await g.chat({ model });
  const error = await errorOf(response);
  expect([response.status, error.code, error.type]).toEqual([500, "do_request_failed", "new_api_error"]);
  expect(error.message).toStartWith("请求上游地址失败");
  expect(JSON.stringify((await g.logs()).at(-1))).not.toContain("127.0.0.1");
});

test("an upstream that says secrets in its error is not quoted", async () => {
  const { model } = await pool(1);
  const message = "Incorrect API key provided: sk-verysecretkey123456. See https://internal.example/keys";
  g.upstream.script(
    refuse(401, { error: { message, type: "invalid_request_error", code: "invalid_api_key" } }),
  );
  const response = await g.chat({ model });
  const text = await response.text();
  expect(response.status).toBe(502);
  for (const secret of ["verysecret", "internal.example"]) {
    expect(text).not.toContain(secret);
    expect(JSON.stringify((await g.logs()).at(-1))).not.toContain(secret);
  }
});

test("a channel that a key names is the only one, and is not retried", async () => {
  const admin = await g.app.createUser({ role: 10, quota: 1_000_000 });
  const { key } = await g.app.createToken(admin.id);
  const { model, ids, keys } = await pool(2);
  g.upstream.script(refuse(500));
  const response = await g.chat({ model }, { authorization: `Bearer ${key}-${ids[1]}` });
  expect([response.status, keys()]).toEqual([500, ["key1"]]);
});

test("an upstream that hangs is given up after the first-byte limit, and the next one serves", async () => {
  const { model, keys } = await pool(2);
  await g.setOption("relay.first_byte_timeout_seconds", "1");
  g.upstream.script(hangBeforeHeaders());
  const response = await g.chat({ model });
  await g.setOption("relay.first_byte_timeout_seconds", "300");
  expect([response.status, keys()]).toEqual([200, ["key0", "key1"]]);
  const aborted = await g.upstream.request(0);
  await aborted.closed;
  expect(aborted.aborted).toBe(true);
});

test("an upstream that has begun to answer is waited for, also where its usage is put right", async () => {
  const { model } = await pool(1, { type: 48 });
  const silent = await pool(1);
  await g.setOption("relay.first_byte_timeout_seconds", "1");
  const rest = gate();
  const answered = {
    id: "a",
    choices: [],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 7 },
  };
  const headers = { "content-type": "application/json" };
  g.upstream.script({ headers, steps: [" ", rest, JSON.stringify(answered)] }, hangBeforeHeaders());
  const slow = g.chat({ model });
  await g.upstream.request(0);
  // The limit of whoever was asked later is over: so is the first one's.
  await g.chat({ model: silent.model });
  rest.open();
  const response = await slow;
  await g.setOption("relay.first_byte_timeout_seconds", "300");
  const { usage } = (await response.json()) as { usage: Record<string, unknown> };
  expect([response.status, usage["completion_tokens"]]).toEqual([200, 6]);
});

test("one deadline covers all attempts", async () => {
  const { model, keys } = await pool(3);
  await g.setOption("relay.deadline_seconds", "1");
  g.upstream.script(hangBeforeHeaders(), hangBeforeHeaders(), hangBeforeHeaders());
  const response = await g.chat({ model });
  await g.setOption("relay.deadline_seconds", "600");
  // The first attempt used the whole second up: nobody else was asked for another one.
  expect([response.status, keys()]).toEqual([504, ["key0"]]);
});

describe("what a provider has made, or is making, is not made again", () => {
  const said = (body: unknown, status = 200): Script => ({
    status,
    headers: { "content-type": "application/json" },
    steps: [JSON.stringify(body)],
  });
  const asked = () => g.upstream.requests.map(({ method, url }) => `${method} ${url}`);
  const draw = (body: Record<string, unknown>) =>
    g.post("/v1/images/generations", { prompt: "a weir", ...body });
  const charged = async () => {
    const row = await g.lastCharge();
    return row?.quota;
  };

  test("a prediction that nobody can say the state of is asked after, also behind the first-byte limit", async () => {
    const { model } = await pool(2, { type: 56 });
    await g.setOption("relay.first_byte_timeout_seconds", "1");
    const id = "p-1";
    const states = [
      said({ id, status: "starting" }, 201),
      said({ detail: "slow down" }, 429),
      said({ id, status: "succeeded", output: "https://pictures.example/1.webp" }),
    ];
    g.upstream.always(() => states.shift() ?? refuse(500));
    const response = await draw({ model });
    await g.setOption("relay.first_byte_timeout_seconds", "300");
    const state = `GET /v1/predictions/${id}`;
    expect([response.status, asked()]).toEqual([200, [`POST /v1/models/${model}/predictions`, state, state]]);
  });

  test("pictures that came are delivered and charged, those that did not come are neither", async () => {
    const { model } = await pool(2, { type: 40 });
    await g.setOption("ModelPrice", JSON.stringify({ [model]: 0.01 }));
    const url = "https://pictures.example/1.png";
    g.upstream.script(said({ images: [{ url }, { url }, { url }] }));
    const response = await draw({ model, n: 4 });
    expect([response.status, ((await response.json()) as { data: unknown[] }).data.length]).toEqual([200, 3]);
    expect([await charged(), asked().length]).toEqual([3 * 0.01 * 500_000, 1]);
  });

  test("a picture that cannot be fetched is not asked of another channel", async () => {
    const { model } = await pool(2, { type: 40 });
    g.upstream.script(said({ images: [{ url: `${g.upstream.url}/1.png` }] }));
    const response = await draw({ model, response_format: "b64_json" });
    expect([response.status, (await errorOf(response)).code]).toEqual([502, "upstream_picture_lost"]);
    expect(asked().filter((each) => each.startsWith("POST")).length).toBe(1);
  });
});

describe("taking channels out of service", () => {
  const statusOf = async (id: number) => {
    const { channels } = g.app.deps.db.t;
    const [row] = await g.app.deps.db.orm.select().from(channels).where(eq(channels.id, id));
    return { status: row?.status, info: row?.otherInfo ?? "" };
  };
  async function failing(script: Script, fields: Record<string, unknown> = {}) {
    const { model, ids } = await pool(2, fields);
    await g.setOption("AutomaticDisableChannelEnabled", "true");
    g.upstream.script(script);
    await (await g.chat({ model })).text();
    await g.setOption("AutomaticDisableChannelEnabled", "false");
    await g.app.deps.ledger.flush();
    return { id: ids[0] as number, model };
  }
  const withError = (status: number, error: Record<string, unknown>) => refuse(status, { error });

  test.each<[string, Script]>([
    ["401", refuse(401)],
    ["the code invalid_api_key", withError(400, { message: "x", code: "invalid_api_key" })],
    ["the type insufficient_quota", withError(429, { message: "x", type: "insufficient_quota" })],
    ["a keyword in any case", withError(400, { message: "Sorry, YOUR CREDIT BALANCE IS TOO LOW today" })],
  ])("%s disables the channel with reason and time, and the next call goes elsewhere", async (_, script) => {
    const { id, model } = await failing(script);
    // The client's answer does not wait for it.
    const info = await until(async () => {
      const now = await statusOf(id);
      return now.status === 3 ? now.info : undefined;
    });
    expect(JSON.parse(info)).toMatchObject({
      status_time: expect.any(Number),
      status_reason: expect.any(String),
    });
    const entries = () => g.app.deps.routing.tiers("default", model).flatMap((tier) => tier.entries);
    await until(() => Promise.resolve(entries().length === 1 || undefined));
    expect(entries()[0]?.channel.id).not.toBe(id);
  });
  test.each<[string, Script, Record<string, unknown>]>([
    ["500", refuse(500), {}],
    ["401 where the channel forbids it", refuse(401), { autoBan: 0 }],
    ["401 that is mapped to another status", refuse(401), { statusCodeMapping: '{"401":"500"}' }],
  ])("%s does not", async (_, script, fields) => {
    const { id } = await failing(script, fields);
    expect((await statusOf(id)).status).toBe(1);
  });
  test("nothing does while the switch is off", async () => {
    const { model, ids } = await pool(1);
    g.upstream.script(refuse(401));
    await (await g.chat({ model })).text();
    await g.app.deps.ledger.flush();
    expect((await statusOf(ids[0] as number)).status).toBe(1);
  });
});
