// Baidu's first Qianfan API: the token and its life, function calls whole and streamed and answered, errors under 200.
// The fake speaks the documented form; each test has a key of its own where the token matters.
import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import type { Failure } from "../../../src/shared/failures.ts";
import { createBaiduFake, KEY } from "./fakes/baidu.ts";
import {
  adapterCall,
  codeOf,
  failureOf,
  HI,
  perform,
  PNG,
  requestOf,
  serve,
  streamed,
  text,
  TOOL_TURNS,
  WEATHER_TOOL,
  whole,
} from "./support.ts";
import type { CallOptions } from "./support.ts";
import { ADAPTERS } from "../../../src/providers/adapters.ts";

const fake = createBaiduFake();
const upstream = serve(fake.handler);
let count = 0;
afterAll(() => upstream.stop());
beforeEach(() => {
  // Another address: tokens of the tests before do not count here.
  count++;
  Object.assign(fake, { exchanges: 0, door: undefined, takesNone: false });
  fake.revoked.clear();
});

const address = (name = "a") => `${upstream.url}/proxy-${name}${count}`;

function baidu(body: Record<string, unknown> = {}, more: Partial<CallOptions> = {}): CallOptions {
  const all = { messages: HI, ...body };
  return { type: 15, key: KEY, model: "ERNIE-4.0-8K", baseUrl: address(), body: all, ...more };
}
const said = (content: string) => baidu({ messages: [{ role: "user", content }] });
const sent = () => requestOf(upstream).json();

test("answers, whole and streamed, with usage and the settings in the provider's own ranges", async () => {
  const settings = {
    temperature: 0,
    top_p: 0.3,
    frequency_penalty: 0.5,
    max_tokens: 1,
    stop: ["x"],
    user: "u",
    messages: [{ role: "system", content: "Be brief." }, ...HI, { role: "user", content: "there" }],
  };
  for (const answer of [await whole(baidu(settings)), await streamed(baidu(settings))]) {
    expect([text(answer), answer.reason]).toEqual(["Hello world", "stop"]);
    expect([answer.usage.input.fresh, answer.usage.output.text]).toEqual([11, 7]);
  }
  expect(sent()).toEqual({
    messages: [{ role: "user", content: "hi\nthere" }],
    stream: true,
    system: "Be brief.",
    temperature: 0.01,
    top_p: 0.3,
    penalty_score: 1,
    stop: ["x"],
    max_output_tokens: 2,
    user_id: "u",
  });
  expect((await whole(said("long"))).reason).toBe("length");
  const { usage } = await streamed(said("frame by frame"));
  expect([usage.input.fresh, usage.output.text]).toEqual([11, 7]);
});

test("models have addresses of their own, others go by their name in small letters", async () => {
  await whole(baidu({}, { model: "ERNIE-Speed-128K" }));
  expect(requestOf(upstream).path).toContain("/chat/ernie-speed-128k?access_token=24.token-1");
  expect((await perform(baidu({}, { model: "Foo-1" }))).status).toBe(400);
});

describe("function calls", () => {
  const asked = { messages: [{ role: "user", content: "Weather in Paris?" }], tools: [WEATHER_TOOL] };

  test("are told as tool calls, whole and streamed, with the thoughts behind them", async () => {
    for (const answer of [await whole(baidu(asked)), await streamed(baidu(asked))]) {
      const [call] = answer.blocks.filter((block) => block.kind === "tool-call");
      expect([call?.name, call?.text, answer.reason]).toEqual([
        "get_weather",
        '{"city":"Paris"}',
        "tool-calls",
      ]);
      expect(text(answer, "thinking")).toBe("I need the weather.");
    }
    expect(sent()["functions"]).toEqual([
      {
        name: "get_weather",
        description: "Tells the weather",
        parameters: WEATHER_TOOL.function.parameters,
      },
    ]);
  });

  test("are answered in the provider's turns, several of one turn one after the other", async () => {
    await whole(baidu({ messages: TOOL_TURNS, tools: [WEATHER_TOOL] }));
    expect(sent()["messages"]).toEqual([
      { role: "user", content: "Weather in Paris?" },
      {
        role: "assistant",
        content: "",
        function_call: { name: "get_weather", arguments: '{"city":"Paris"}' },
      },
      { role: "function", name: "get_weather", content: "18 degrees" },
    ]);
    const call = (id: string, city: string) => ({
      id,
      type: "function",
      function: { name: "get_weather", arguments: JSON.stringify({ city }) },
    });
    const answer = await whole(
      baidu({
        tools: [WEATHER_TOOL],
        messages: [
          { role: "user", content: "Both?" },
          { role: "assistant", content: "Looking.", tool_calls: [call("a", "Rome"), call("b", "Bern")] },
          { role: "tool", tool_call_id: "b", content: "cold" },
          { role: "tool", tool_call_id: "a", content: "warm" },
        ],
      }),
    );
    expect(text(answer)).toBe("Hello world");
    expect((sent()["messages"] as { content: string }[]).map(({ content }) => content)).toEqual([
      "Both?",
      "Looking.",
      "warm",
      "",
      "cold",
    ]);
  });

  test("one tool can be forced or barred; what cannot be said is refused by name", async () => {
    await whole(baidu({ ...asked, tool_choice: { type: "function", function: { name: "get_weather" } } }));
    const forced = { type: "function", function: { name: "get_weather" } };
    expect(sent()["tool_choice"]).toEqual(forced);
    await whole(baidu({ ...asked, tool_choice: "required" }));
    expect(sent()["tool_choice"]).toEqual(forced);
    await whole(baidu({ ...asked, tool_choice: "none" }));
    expect(sent()["functions"]).toBeUndefined();
    const before = upstream.requests.length;
    const other = { type: "function", function: { name: "other" } };
    const picture = { type: "image_url", image_url: { url: `data:image/png;base64,${PNG}` } };
    for (const body of [
      { ...asked, tools: [WEATHER_TOOL, other], tool_choice: "required" },
      { messages: [{ role: "user", content: [picture] }] },
      { n: 2 },
      { response_format: { type: "json_schema", json_schema: { name: "x", schema: {} } } },
    ])
      expect(await codeOf(() => perform(baidu(body)))).toBe("unsupported_field");
    expect(upstream.requests.length).toBe(before);
  });
});

describe("the token", () => {
  test("is exchanged once for all callers of a key at an address", async () => {
    await Promise.all([whole(baidu()), streamed(baidu()), whole(baidu())]);
    await whole(baidu());
    expect(fake.exchanges).toBe(1);
    await whole(baidu({}, { baseUrl: address("b") }));
    expect(fake.exchanges).toBe(2);
  });

  test("a caller who leaves does not end the exchange for the others", async () => {
    const door = Promise.withResolvers<void>();
    fake.door = door.promise;
    const controller = new AbortController();
    const { signal } = controller;
    const gone = ADAPTERS["baidu"]?.(adapterCall(baidu({}, { signal }))).catch((error: unknown) => error);
    const others = [whole(baidu()), whole(baidu())];
    controller.abort();
    expect((await gone) as Error).toMatchObject({ name: "AbortError" });
    door.resolve();
    for (const answer of await Promise.all(others)) expect(text(answer)).toBe("Hello world");
    expect(fake.exchanges).toBeLessThanOrEqual(2);
  });

  test("that was revoked is exchanged once more, and the next caller finds the new one", async () => {
    await whole(baidu());
    fake.revoked.add("24.token-1");
    expect(text(await streamed(baidu()))).toBe("Hello world");
    expect(text(await whole(baidu()))).toBe("Hello world");
    expect(fake.exchanges).toBe(2);
  });

  test("that is never taken blames the key, after two tries", async () => {
    fake.takesNone = true;
    const refused = await perform(baidu());
    expect([refused.status, (await failureOf(refused)).kind]).toEqual([401, "upstream-auth"]);
    expect(fake.exchanges).toBe(2);
  });

  test("a key that is none is refused with 401, and asked for again by the next caller", async () => {
    for (const key of ["who|baidu-secret", "baidu-id|wrong"]) {
      const refused = await perform(baidu({}, { key }));
      expect([refused.status, (await failureOf(refused)).kind]).toEqual([401, "upstream-auth"]);
    }
    expect(await codeOf(() => perform(baidu({}, { key: "half" })))).toBe("channel_key_unusable");
    expect(fake.exchanges).toBe(2);
  });
});

test("errors under status 200 are sorted by what they mean", async () => {
  const meanings: [number, string][] = [
    [6, "upstream-auth"],
    [14, "upstream-auth"],
    [336_004, "upstream-auth"],
    [17, "upstream-quota"],
    [19, "upstream-quota"],
    [4, "upstream-limit"],
    [18, "upstream-limit"],
    [336_501, "upstream-limit"],
    [336_003, "upstream-request"],
    [336_103, "upstream-request"],
    [336_000, "upstream-down"],
    [336_100, "upstream-down"],
    [2, "upstream-down"],
  ];
  for (const [code, kind] of meanings) {
    for (const isStream of [false, true]) {
      const failure = await failureOf(await perform({ ...said(`code ${code}`), isStream }));
      expect([code, failure.kind]).toEqual([code, kind as Failure["kind"]]);
    }
  }
});

test("an error in a stream ends it as one, and a stream that breaks off is no answer", async () => {
  const late = (await streamed(said("late error")).catch((error: unknown) => error)) as Failure;
  expect([late.kind, late.text]).toEqual(["upstream-down", undefined]);
  const cut = await perform({ ...said("cut"), isStream: true });
  expect(await codeOf(() => cut.text())).toBe("broken_stream");
});

test("what is no answer is none, whatever its status", async () => {
  for (const isStream of [false, true])
    expect(await codeOf(() => perform({ ...said("nonsense"), isStream }))).toBe("upstream_bad_answer");
});

test("embeddings come back in order; token lists are refused by name", async () => {
  const options = baidu({ input: ["a", "b"] }, { operation: "embeddings", model: "Embedding-V1" });
  const response = await perform(options);
  expect(await response.json()).toMatchObject({
    data: [
      { index: 0, embedding: [0, 0.5] },
      { index: 1, embedding: [1, 0.5] },
    ],
    usage: { prompt_tokens: 4 },
  });
  expect(await codeOf(() => perform({ ...options, body: { input: [[1, 2]] } }))).toBe("unsupported_field");
});
