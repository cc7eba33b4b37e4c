// Tencent Hunyuan: signed bytes, tools and pictures, thoughts, cached tokens, families of error codes.
// The fake checks every signature by the documented computation.
import { afterAll, expect, test } from "bun:test";
import type { Failure } from "../../../src/shared/failures.ts";
import { KEY, tencentFake } from "./fakes/tencent.ts";
import {
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

const upstream = serve(tencentFake);
afterAll(() => upstream.stop());

function hunyuan(body: Record<string, unknown> = {}, more: Partial<CallOptions> = {}): CallOptions {
  const all = { messages: HI, ...body };
  return { type: 23, key: KEY, model: "hunyuan-pro", baseUrl: upstream.url, body: all, ...more };
}
const said = (content: string) => hunyuan({ messages: [{ role: "user", content }] });
const sent = () => requestOf(upstream).json();

test("answers, whole and streamed, with thoughts and usage in disjoint numbers", async () => {
  const settings = { temperature: 0.5, top_p: 0.9, seed: 3, stop: ["x"], reasoning_effort: "none" };
  for (const answer of [await whole(hunyuan(settings)), await streamed(hunyuan(settings))]) {
    expect([text(answer), text(answer, "thinking"), answer.reason]).toEqual(["Hello world", "Hm.", "stop"]);
    const { input, output } = answer.usage;
    expect([input.fresh, input.cacheRead, output.text, output.thinking]).toEqual([7, 4, 5, 2]);
  }
  expect(sent()).toEqual({
    Model: "hunyuan-pro",
    Messages: [{ Role: "user", Content: "hi" }],
    Stream: true,
    Temperature: 0.5,
    TopP: 0.9,
    Seed: 3,
    Stop: ["x"],
    EnableThinking: false,
  });
});

test("tools are offered with their schema as text and called, whole and in pieces", async () => {
  const asked = { messages: [{ role: "user", content: "Weather?" }], tools: [WEATHER_TOOL] };
  const older = { ...asked, messages: [{ role: "user", content: "Weather by id?" }] };
  for (const answer of [
    await whole(hunyuan(asked)),
    await streamed(hunyuan(older)),
    await streamed(hunyuan(asked)),
  ]) {
    const calls = answer.blocks.filter((block) => block.kind === "tool-call");
    expect(calls.map((call) => [call.callId, call.name, call.text])).toEqual([
      ["call_a", "get_weather", '{"city":"Paris"}'],
      ["call_b", "get_weather", '{"city":"Rome"}'],
    ]);
    expect(answer.reason).toBe("tool-calls");
  }
  expect(sent()["Tools"]).toEqual([
    {
      Type: "function",
      Function: {
        Name: "get_weather",
        Description: "Tells the weather",
        Parameters: JSON.stringify(WEATHER_TOOL.function.parameters),
      },
    },
  ]);
});

test("calls and their results travel back", async () => {
  await whole(hunyuan({ messages: TOOL_TURNS, tools: [WEATHER_TOOL] }));
  expect(sent()["Messages"]).toEqual([
    { Role: "user", Content: "Weather in Paris?" },
    {
      Role: "assistant",
      Content: "",
      ToolCalls: [
        {
          Id: "call_1",
          Type: "function",
          Index: 0,
          Function: { Name: "get_weather", Arguments: '{"city":"Paris"}' },
        },
      ],
    },
    { Role: "tool", ToolCallId: "call_1", Content: "18 degrees" },
  ]);
});

test("system text stands in front, and neighbours of one role become one message", async () => {
  const user = (content: string) => ({ role: "user", content });
  await whole(
    hunyuan({
      messages: [
        user("one"),
        { role: "developer", content: "Be brief." },
        user("two"),
        { role: "assistant", content: "yes" },
        { role: "system", content: "Be kind." },
        user("three"),
      ],
    }),
  );
  expect(sent()["Messages"]).toEqual([
    { Role: "system", Content: "Be brief.\nBe kind." },
    { Role: "user", Content: "one\ntwo" },
    { Role: "assistant", Content: "yes" },
    { Role: "user", Content: "three" },
  ]);
});

test("a tool can be forced or barred; forcing one of several is refused by name", async () => {
  const asked = { tools: [WEATHER_TOOL] };
  await whole(hunyuan({ ...asked, tool_choice: "required" }));
  expect([sent()["ToolChoice"], sent()["CustomTool"]]).toEqual(["custom", (sent()["Tools"] as unknown[])[0]]);
  await whole(hunyuan({ ...asked, tool_choice: "none" }));
  expect(sent()["ToolChoice"]).toBe("none");
  const before = upstream.requests.length;
  const two = [WEATHER_TOOL, { type: "function", function: { name: "other" } }];
  for (const body of [
    { tools: two, tool_choice: "required" },
    { n: 2 },
    { response_format: { type: "json_object" } },
  ])
    expect(await codeOf(() => perform(hunyuan(body)))).toBe("unsupported_field");
  expect(upstream.requests.length).toBe(before);
});

test("pictures go by address and inline", async () => {
  const content = [
    { type: "text", text: "Look" },
    { type: "image_url", image_url: { url: "https://x.example/a.png" } },
    { type: "image_url", image_url: { url: `data:image/png;base64,${PNG}` } },
  ];
  await whole(hunyuan({ messages: [{ role: "user", content }] }));
  expect(sent()["Messages"]).toEqual([
    {
      Role: "user",
      Contents: [
        { Type: "text", Text: "Look" },
        { Type: "image_url", ImageUrl: { Url: "https://x.example/a.png" } },
        { Type: "image_url", ImageUrl: { Url: `data:image/png;base64,${PNG}` } },
      ],
    },
  ]);
});

test("error codes under status 200 are sorted by family", async () => {
  const families: [string, Failure["kind"]][] = [
    ["AuthFailure.SecretIdNotFound", "upstream-auth"],
    ["UnauthorizedOperation", "upstream-auth"],
    ["FailedOperation.ServiceNotActivated", "upstream-auth"],
    ["FailedOperation.ResourcePackExhausted", "upstream-quota"],
    ["FailedOperation.ServiceStopArrears", "upstream-quota"],
    ["ResourceInsufficient.ChargeResourceExhaust", "upstream-quota"],
    ["RequestLimitExceeded.UinLimitExceeded", "upstream-limit"],
    ["LimitExceeded", "upstream-limit"],
    ["FailedOperation.EngineServerLimitExceeded", "upstream-limit"],
    ["FailedOperation.EngineRequestTimeout", "upstream-timeout"],
    ["FailedOperation.EngineServerError", "upstream-down"],
    ["InternalError", "upstream-down"],
    ["InvalidParameterValue.Model", "upstream-request"],
    ["UnsupportedOperation", "upstream-request"],
  ];
  for (const [code, kind] of families) {
    for (const isStream of [false, true]) {
      const failure = await failureOf(await perform({ ...said(`code ${code}`), isStream }));
      expect([code, failure.kind]).toEqual([code, kind]);
    }
  }
});

test("what is no answer is none, whatever its status", async () => {
  for (const prompt of ["nonsense", "empty"])
    expect(await codeOf(() => perform(said(prompt)))).toBe("upstream_bad_answer");
});

test("a key that signs wrongly or is none blames the key", async () => {
  const wrong = await perform(hunyuan({}, { key: "1|AKIDexample|other" }));
  expect([wrong.status, (await failureOf(wrong)).kind]).toEqual([401, "upstream-auth"]);
  expect(await codeOf(() => perform(hunyuan({}, { key: "AKIDexample|other" })))).toBe("channel_key_unusable");
});

test("an error in a stream ends it as one, and a stream that breaks off is no answer", async () => {
  const late = (await streamed(said("late error")).catch((error: unknown) => error)) as Failure;
  expect(late.kind).toBe("upstream-down");
  const cut = await perform({ ...said("cut"), isStream: true });
  expect(await codeOf(() => cut.text())).toBe("broken_stream");
});
