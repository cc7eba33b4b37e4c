// Bedrock against a fake that checks signatures by its own reckoning: Claude in its dialect, others through Converse.
// The binary stream is cut at every byte, and damaged ones are held to be broken.
import { afterAll, expect, test } from "bun:test";
import { createAwsEventReader } from "../../../src/providers/aws-event-stream.ts";
import { bedrockModelId } from "../../../src/providers/adapters/bedrock-models.ts";
import { parseBedrockKey } from "../../../src/providers/adapters/bedrock.ts";
import { routeFor } from "../../../src/providers/address.ts";
import { providerOf } from "../../../src/providers/catalog.ts";
import { Failure } from "../../../src/shared/failures.ts";
import { API_KEY, awsEvent, awsMessage, handler, KEY } from "./fakes/bedrock.ts";
import {
  adapterCall,
  codeOf,
  failureOf,
  HI,
  perform,
  PNG,
  serve,
  streamed,
  text,
  TOOL_TURNS,
  WEATHER_TOOL,
  whole,
  requestOf,
} from "./support.ts";
import type { CallOptions } from "./support.ts";

const upstream = serve(handler);
afterAll(() => upstream.stop());

const NOVA = "amazon.nova-lite-v1:0";
const CLAUDE = "claude-3-haiku-20240307";

function nova(body: Record<string, unknown> = {}, more: Partial<CallOptions> = {}): CallOptions {
  return { type: 33, key: KEY, model: NOVA, baseUrl: upstream.url, body: { messages: HI, ...body }, ...more };
}

function claude(body: Record<string, unknown> = {}, more: Partial<CallOptions> = {}): CallOptions {
  const full = { max_tokens: 100, messages: HI, ...body };
  return { ...nova(), model: CLAUDE, operation: "messages", body: full, ...more };
}

const last = () => requestOf(upstream);

test("Claude is asked in its own dialect, under its Bedrock name, and answers unchanged", async () => {
  const answer = await whole(claude());
  expect(text(answer)).toBe("Hello world");
  expect(last().path).toBe("/model/us.anthropic.claude-3-haiku-20240307-v1%3A0/invoke");
  expect(last().json()).toEqual({ anthropic_version: "bedrock-2023-05-31", max_tokens: 100, messages: HI });
  expect(answer.usage.input).toMatchObject({ fresh: 11, cacheRead: 5 });
  expect(answer.usage.output.text).toBe(7);
});

test("the channel's own headers go along, AWS's among them signed", async () => {
  const call = claude(
    {},
    { more: { headers: { "x-amzn-trace-id": "t-1", "x-own": "rule", "anthropic-version": "1" } } },
  );
  expect(text(await whole(call))).toBe("Hello world");
  const { headers } = last();
  expect([headers.get("x-own"), headers.get("x-amzn-trace-id"), headers.get("anthropic-version")]).toEqual([
    "rule",
    "t-1",
    null,
  ]);
  const signed = /SignedHeaders=([^,]+)/.exec(headers.get("authorization") ?? "")?.[1];
  expect(signed).toBe("accept;content-type;host;x-amz-date;x-amzn-trace-id");
});

test("Claude's stream comes out of its binary wrapping event by event, without the service's own figures", async () => {
  const response = await perform(claude({}, { isStream: true }));
  const wire = await response.text();
  expect(wire).toContain('event: content_block_delta\ndata: {"type":"content_block_delta"');
  expect(wire).not.toContain("amazon-bedrock");
  const answer = await streamed(claude());
  expect([text(answer), answer.reason, answer.usage.output.text]).toEqual(["Hello world", "stop", 7]);
  expect(last().path).toEndWith("/invoke-with-response-stream");
});

test("Claude's tools and beta features travel", async () => {
  const tools = [{ name: "get_weather", input_schema: { type: "object" } }];
  const options = claude({ tools });
  const call = adapterCall(options);
  const headers = { ...call.headers, "anthropic-beta": "context-1m-2025-08-07,other" };
  const answer = await streamed({ ...options, more: { headers } });
  expect(answer.blocks).toMatchObject([
    { kind: "tool-call", callId: "toolu_1", name: "get_weather", text: '{"city":"Paris"}' },
  ]);
  expect(last().json()["anthropic_beta"]).toEqual(["context-1m-2025-08-07", "other"]);
});

test("every other model is asked through Converse, whole and streamed alike, with usage by kind", async () => {
  for (const answer of [await whole(nova()), await streamed(nova())]) {
    expect([text(answer), answer.reason]).toEqual(["Hello world", "stop"]);
    expect(answer.usage.input).toMatchObject({ fresh: 11, cacheRead: 5, cacheWrite5m: 3 });
    expect(answer.usage.output.text).toBe(7);
  }
  expect(last().path).toBe("/model/amazon.nova-lite-v1%3A0/converse-stream");
});

test("system, pictures, documents, limits and stops arrive in Converse's words", async () => {
  await whole(
    nova({
      messages: [
        { role: "system", content: "Be brief." },
        {
          role: "user",
          content: [
            { type: "text", text: "Look", cache_control: { type: "ephemeral" } },
            { type: "image_url", image_url: { url: `data:image/png;base64,${PNG}` } },
            { type: "file", file: { filename: "a_b.pdf", file_data: "data:application/pdf;base64,AAAA" } },
          ],
        },
      ],
      max_tokens: 50,
      temperature: 0.5,
      top_p: 0.9,
      stop: ["END"],
    }),
  );
  expect(last().json()).toEqual({
    system: [{ text: "Be brief." }],
    messages: [
      {
        role: "user",
        content: [
          { text: "Look" },
          { cachePoint: { type: "default" } },
          { image: { format: "png", source: { bytes: PNG } } },
          { document: { format: "pdf", name: "a b", source: { bytes: "AAAA" } } },
        ],
      },
    ],
    inferenceConfig: { maxTokens: 50, temperature: 0.5, topP: 0.9, stopSequences: ["END"] },
  });
});

test("tools are offered, called and answered; a history of calls keeps its tools described", async () => {
  for (const answer of [
    await whole(nova({ tools: [WEATHER_TOOL], tool_choice: "required" })),
    await streamed(nova({ tools: [WEATHER_TOOL] })),
  ]) {
    expect(answer.reason).toBe("tool-calls");
    expect(answer.blocks).toMatchObject([
      { kind: "tool-call", callId: "tooluse_1", name: "get_weather", text: '{"city":"Paris"}' },
    ]);
  }
  expect(requestOf(upstream, 1).json()["toolConfig"]).toEqual({
    tools: [
      {
        toolSpec: {
          name: "get_weather",
          description: "Tells the weather",
          inputSchema: { json: WEATHER_TOOL.function.parameters },
        },
      },
    ],
    toolChoice: { any: {} },
  });
  const answer = await whole(nova({ messages: TOOL_TURNS }));
  expect(text(answer)).toBe("Hello world");
  expect(last().json()["messages"]).toEqual([
    { role: "user", content: [{ text: "Weather in Paris?" }] },
    {
      role: "assistant",
      content: [{ toolUse: { toolUseId: "call_1", name: "get_weather", input: { city: "Paris" } } }],
    },
    { role: "user", content: [{ toolResult: { toolUseId: "call_1", content: [{ text: "18 degrees" }] } }] },
  ]);
});

test("reasoning comes with its proof, and the proof goes back where it came from", async () => {
  const messages = [{ role: "user", content: "think" }];
  for (const response of [
    await perform(nova({ messages })),
    await perform(nova({ messages }, { isStream: true })),
  ])
    expect(await response.text()).toContain('"signature":"anthropic.c2ln"');
  const answer = await streamed(nova({ messages }));
  expect(text(answer, "thinking")).toBe("Let me see.");
  await whole(
    nova({
      messages: [
        ...messages,
        {
          role: "assistant",
          content: "Done",
          reasoning_content: "Let me see.",
          reasoning_details: [{ type: "reasoning.text", signature: "anthropic.c2ln", text: "Let me see." }],
        },
        { role: "user", content: "go on" },
      ],
    }),
  );
  expect((last().json()["messages"] as unknown[])[1]).toEqual({
    role: "assistant",
    content: [
      { reasoningContent: { reasoningText: { text: "Let me see.", signature: "c2ln" } } },
      { text: "Done" },
    ],
  });
});

test("what Converse has no words for is refused by name, and nothing is sent", async () => {
  const before = upstream.requests.length;
  const cases: [Record<string, unknown>, string][] = [
    [{ n: 2 }, "n"],
    [{ logprobs: true }, "logprobs"],
    [{ response_format: { type: "json_object" } }, "response_format"],
    [{ functions: [{ name: "f" }] }, "functions"],
    [{ tools: [{ type: "web_search" }] }, "tools.web_search"],
    [
      {
        messages: [
          { role: "user", content: [{ type: "input_audio", input_audio: { data: "AA", format: "wav" } }] },
        ],
      },
      "input_audio",
    ],
    [
      {
        messages: [
          { role: "user", content: [{ type: "image_url", image_url: { url: "https://x.example/a.png" } }] },
        ],
      },
      "image_url",
    ],
  ];
  for (const [body, field] of cases) {
    try {
      await perform(nova(body));
      throw new Error(`${field} was not refused`);
    } catch (error) {
      expect(error).toBeInstanceOf(Failure);
      expect([(error as Failure).code, (error as Failure).param]).toEqual(["unsupported_field", field]);
    }
  }
  expect(upstream.requests.length).toBe(before);
});

test("errors keep their kind and lose account numbers", async () => {
  const bad = await perform(nova({ messages: [{ role: "user", content: "refuse" }] }));
  const failure = await failureOf(bad);
  expect([failure.kind, failure.text]).toEqual(["upstream-request", "[arn] is not fit"]);
  const busy = await failureOf(await perform(nova({ messages: [{ role: "user", content: "throttle" }] })));
  expect([busy.kind, busy.retryAfterSeconds]).toEqual(["upstream-limit", 7]);
  const stranger = await failureOf(await perform(nova({}, { key: "AKIDOTHER|secret|us-east-1" })));
  expect(stranger.kind).toBe("upstream-auth");
  const wrong = await perform(nova({}, { key: KEY.replace("wJal", "WJAL") }));
  expect(wrong.status).toBe(403);
});

test("an exception inside a stream is an error of its own kind, for both ways of asking", async () => {
  const messages = [{ role: "user", content: "exception" }];
  for (const options of [nova({ messages }), claude({ messages })]) {
    const failed = await streamed(options).catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(Failure);
    expect((failed as Failure).kind).toBe("upstream-limit");
  }
});

test("a stream without its last event breaks off", async () => {
  const messages = [{ role: "user", content: "cut" }];
  for (const options of [nova({ messages }), claude({ messages })]) {
    const response = await perform({ ...options, isStream: true });
    expect(await codeOf(() => response.text())).toBe("broken_stream");
  }
});

test("a call that is given up hangs up on Bedrock", async () => {
  const controller = new AbortController();
  const messages = [{ role: "user", content: "hang" }];
  const response = await perform(nova({ messages }, { isStream: true, signal: controller.signal }));
  const reader = response.body?.getReader();
  expect((await reader?.read())?.done).toBe(false);
  controller.abort();
  const rest = (async () => {
    while (!(await reader?.read())?.done);
  })();
  expect(
    await rest.then(
      () => "ended",
      () => "broke",
    ),
  ).toBe("broke");
});

test("Bedrock's own API keys are sent as they are; keys of any other form are refused", async () => {
  const answer = await whole(nova({}, { key: `${API_KEY}|us-east-1` }));
  expect(text(answer)).toBe("Hello world");
  expect(parseBedrockKey(" a | b | eu-west-1 ")).toEqual({
    accessKey: "a",
    secretKey: "b",
    region: "eu-west-1",
  });
  for (const key of ["", "abc", "a|b|c|d", "|secret|us-east-1", "a||us-east-1", "a|b|../x", "ä|b|us-east-1"])
    expect([key, await codeOf(() => perform(nova({}, { key })))]).toEqual([key, "channel_key_format"]);
});

test("addresses are made from the region; China has its own", async () => {
  const urls: string[] = [];
  const fetch = (url: string): Promise<Response> => {
    urls.push(url);
    return Promise.resolve(Response.json({ message: "no" }, { status: 400 }));
  };
  for (const region of ["eu-central-1", "cn-north-1"])
    await perform(nova({}, { baseUrl: "", key: `a|b|${region}`, more: { fetch } }));
  expect(urls.map((url) => new URL(url).host)).toEqual([
    "bedrock-runtime.eu-central-1.amazonaws.com",
    "bedrock-runtime.cn-north-1.amazonaws.com.cn",
  ]);
});

test("model names lead to ids, through a profile where the region has one", () => {
  expect(bedrockModelId("claude-3-opus-20240229", "us-west-2")).toBe(
    "us.anthropic.claude-3-opus-20240229-v1:0",
  );
  expect(bedrockModelId("claude-3-opus-20240229", "eu-west-1")).toBe("anthropic.claude-3-opus-20240229-v1:0");
  expect(bedrockModelId("claude-3-haiku-20240307", "ap-south-1")).toBe(
    "apac.anthropic.claude-3-haiku-20240307-v1:0",
  );
  expect(bedrockModelId("claude-2.1", "us-east-1")).toBe("anthropic.claude-v2:1");
  expect(bedrockModelId("claude-sonnet-4-5-20250929", "sa-east-1")).toBe(
    "global.anthropic.claude-sonnet-4-5-20250929-v1:0",
  );
  expect(bedrockModelId("amazon.nova-pro-v1:0", "us-east-1")).toBe("amazon.nova-pro-v1:0");
  const arn = "arn:aws:bedrock:us-east-1:1:application-inference-profile/x";
  expect(bedrockModelId(arn, "us-east-1")).toBe(arn);
});

test("Claude is routed to its dialect and all others to Converse, whatever the client speaks", () => {
  const row = providerOf(33);
  if (!row) throw new Error("no row");
  for (const model of [CLAUDE, "us.anthropic.claude-opus-4-20250514-v1:0"])
    expect(routeFor(row, "chat", model)?.operation).toBe("messages");
  for (const operation of ["chat", "messages", "gemini", "responses"] as const)
    expect(routeFor(row, operation, NOVA)?.operation).toBe("chat");
});

const HEX = {
  empty: "000000100000000005c248eb7d98c8ff",
  plain: "0000001d00000000fd528c5a7b27666f6f273a27626172277dc3653936",
};

test("the published vectors of the event stream are read", () => {
  const reader = createAwsEventReader();
  const [empty, plain] = reader.push(Buffer.from(HEX.empty + HEX.plain, "hex"));
  expect([empty?.headers, empty?.payload.length]).toEqual([{}, 0]);
  expect(Buffer.from(plain?.payload ?? []).toString()).toBe("{'foo':'bar'}");
  // A message with one text header, byte for byte as the vector has it.
  const message = awsMessage({ "content-type": "application/json" }, "{'foo':'bar'}");
  expect(message.readUInt32BE(8)).toBe(0x07fd8396);
  expect(message.readUInt32BE(message.length - 4)).toBe(0x8d9c08b1);
  expect(reader.push(message)[0]?.headers).toEqual({ "content-type": "application/json" });
});

test("messages cut at every byte, and byte by byte, come out the same", () => {
  const bytes = Buffer.concat([
    awsEvent("messageStart", { role: "assistant" }),
    awsEvent("contentBlockDelta", { delta: { text: "日本語" } }),
    awsEvent("messageStop", { stopReason: "end_turn" }),
  ]);
  const read = (chunks: Buffer[]): string[] => {
    const reader = createAwsEventReader();
    const out = chunks.flatMap((chunk) => reader.push(chunk));
    expect(reader.isEmpty()).toBe(true);
    return out.map(({ headers, payload }) => `${headers[":event-type"]} ${Buffer.from(payload).toString()}`);
  };
  const expected = read([bytes]);
  expect(expected).toHaveLength(3);
  for (let at = 1; at < bytes.length; at++)
    expect(read([bytes.subarray(0, at), bytes.subarray(at)])).toEqual(expected);
  expect(read([...bytes].map((byte) => Buffer.from([byte])))).toEqual(expected);
});

test("a flipped bit anywhere, a cut message and an absurd length break the stream", () => {
  const bytes = awsEvent("messageStop", { stopReason: "end_turn" });
  const failing = (input: Buffer): string => {
    const reader = createAwsEventReader();
    try {
      reader.push(input);
      if (!reader.isEmpty()) return "broken_stream";
    } catch (error) {
      return (error as Failure).code;
    }
    return "read";
  };
  expect(failing(bytes)).toBe("read");
  for (let at = 0; at < bytes.length; at++) {
    const damaged = Buffer.from(bytes);
    damaged.writeUInt8(damaged.readUInt8(at) ^ 4, at);
    expect([at, failing(damaged)]).toEqual([at, "broken_stream"]);
  }
  expect(failing(bytes.subarray(0, -1))).toBe("broken_stream");
});
