// iFlytek Spark: the published signature, the socket with its handshake, frames and codes, its end when a caller
// leaves, the way through a proxy, and the OpenAI-shaped address of single passwords.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { signSpark, sparkTarget } from "../../../src/providers/adapters/spark-socket.ts";
import { xunfei } from "../../../src/providers/adapters/xunfei.ts";
import type { Failure } from "../../../src/shared/failures.ts";
import { startTunnel } from "../../support/tunnel.ts";
import { PASSWORD, SOCKET_KEY, startSparkFake } from "./fakes/spark.ts";
import type { SparkFake } from "./fakes/spark.ts";
import {
  adapterCall,
  codeOf,
  failureOf,
  HI,
  perform,
  PNG,
  streamed,
  text,
  WEATHER_TOOL,
  whole,
} from "./support.ts";
import type { CallOptions } from "./support.ts";

let fake: SparkFake;
beforeEach(() => void (fake = startSparkFake()));
afterEach(() => fake.stop());

function spark(body: Record<string, unknown> = {}, more: Partial<CallOptions> = {}): CallOptions {
  const all = { messages: HI, ...body };
  return { type: 18, key: SOCKET_KEY, model: "SparkDesk-v3.5", baseUrl: fake.url, body: all, ...more };
}
const said = (content: string, more: Partial<CallOptions> = {}) =>
  spark({ messages: [{ role: "user", content }] }, more);

describe("signature and address", () => {
  test("are those of the provider's published example", () => {
    const url = new URL(
      signSpark(
        "wss://spark-api.xf-yun.com/v1.1/chat",
        "MjlmNzkzNmZkMDQ2OTc0ZDdmNGE2ZTZi",
        "addd2272b6d8b7c8abdd79531420ca3b",
        Date.UTC(2023, 4, 5, 10, 43, 39),
      ),
    );
    expect(url.searchParams.get("date")).toBe("Fri, 05 May 2023 10:43:39 GMT");
    expect(url.searchParams.get("host")).toBe("spark-api.xf-yun.com");
    expect(Buffer.from(url.searchParams.get("authorization") ?? "", "base64").toString()).toBe(
      'api_key="addd2272b6d8b7c8abdd79531420ca3b", algorithm="hmac-sha256", headers="host date request-line", signature="z5gHdu3pxVV4ADMyk467wOWDQ9q6BQzR3nfMTjc/DaQ="',
    );
  });

  test("the model's name decides, then the channel; nothing else does", async () => {
    expect(sparkTarget("SparkDesk-v4.0", "v2.1")).toEqual({ path: "/v4.0/chat", domain: "4.0Ultra" });
    expect(sparkTarget("generalv3.5", "v2.1").path).toBe("/v3.5/chat");
    expect(sparkTarget("max-32k", "")).toEqual({ path: "/chat/max-32k", domain: "max-32k" });
    expect(sparkTarget("x1", "v2.1")).toEqual({ path: "/v1/x1", domain: "x1" });
    expect(sparkTarget("SparkDesk", "v2.1").domain).toBe("generalv2");
    expect(sparkTarget("SparkDesk", "").domain).toBe("lite");
    expect(sparkTarget("SparkDesk-../x", "").path).toBe("/v1.1/chat");
    // A client cannot have the large model for the price of the small one.
    const url = "http://x.example/v1/chat/completions?api-version=v4.0";
    await whole(spark({}, { model: "SparkDesk-v1.1", more: { url } }));
    expect(fake.seen.map(({ path }) => path)).toEqual(["/v1.1/chat"]);
  });
});

describe("the socket", () => {
  test("is opened with the channel's own headers", async () => {
    const headers = { "x-own": "rule", "content-type": "application/json" };
    expect(text(await whole(spark({}, { more: { headers } })))).toBe("Hello world");
    expect(fake.own).toEqual(["rule"]);
  });

  test("answers, whole and streamed, with thoughts and usage", async () => {
    const settings = { temperature: 0.5, max_tokens: 9, user: "u-1" };
    for (const answer of [await whole(spark(settings)), await streamed(spark(settings))]) {
      expect([text(answer), text(answer, "thinking"), answer.reason]).toEqual(["Hello world", "Hm.", "stop"]);
      expect([answer.usage.input.fresh, answer.usage.output.text]).toEqual([11, 7]);
    }
    expect(fake.seen.at(-1)).toEqual({
      path: "/v3.5/chat",
      body: {
        header: { app_id: "app-1", uid: "u-1" },
        parameter: { chat: { domain: "generalv3.5", temperature: 0.5, max_tokens: 9 } },
        payload: { message: { text: [{ role: "user", content: "hi" }] } },
      },
    });
  });

  test("tells system turns to models that know none in a turn that they answer", async () => {
    const messages = [{ role: "system", content: "Be brief." }, ...HI];
    await whole(spark({ messages }, { model: "SparkDesk-v1.1" }));
    await whole(spark({ messages }));
    const texts = fake.seen.map(
      ({ body }) => (body["payload"] as { message: { text: unknown } }).message.text,
    );
    expect(texts).toEqual([
      [
        { role: "user", content: "Be brief." },
        { role: "assistant", content: "Okay" },
        { role: "user", content: "hi" },
      ],
      [
        { role: "system", content: "Be brief." },
        { role: "user", content: "hi" },
      ],
    ]);
  });

  test("a refused handshake blames the key, a server that is not there the provider", async () => {
    for (const isStream of [false, true]) {
      const refused = await perform(spark({}, { key: "app-1|wrong|key-1", isStream }));
      expect([refused.status, (await failureOf(refused)).kind]).toEqual([401, "upstream-auth"]);
    }
    expect(await codeOf(() => perform(spark({}, { key: "a|b" })))).toBe("channel_key_unusable");
    expect(await codeOf(() => perform(spark({}, { baseUrl: "http://127.0.0.1:1" })))).toBe(
      "do_request_failed",
    );
  });

  test("codes are sorted by what they mean, before anything is answered", async () => {
    const meanings: [number, Failure["kind"]][] = [
      [10_005, "upstream-request"],
      [10_163, "upstream-request"],
      [10_907, "upstream-request"],
      [10_013, "upstream-refusal"],
      [10_014, "upstream-refusal"],
      [10_015, "upstream-auth"],
      [11_200, "upstream-auth"],
      [11_201, "upstream-quota"],
      [10_007, "upstream-limit"],
      [11_202, "upstream-limit"],
      [10_008, "upstream-down"],
      [10_012, "upstream-down"],
    ];
    for (const [code, kind] of meanings) {
      for (const isStream of [false, true]) {
        const failure = await failureOf(await perform(said(`code ${code}`, { isStream })));
        expect([code, failure.kind]).toEqual([code, kind]);
      }
    }
  });

  test("a reader that is far behind is given up: what waits for it has an end", async () => {
    const answer = await perform(said("flood", { isStream: true }));
    // Nobody reads: the adapter itself hangs up.
    await fake.closed;
    expect(await answer.text().catch(() => "cut")).toBe("cut");
  });

  test("an error later on ends the stream as one; a socket that closes early is no answer", async () => {
    const late = (await streamed(said("late error")).catch((error: unknown) => error)) as Failure;
    expect(late.kind).toBe("upstream-down");
    const cut = await perform(said("cut", { isStream: true }));
    expect(await codeOf(() => cut.text())).toBe("broken_stream");
    expect(await codeOf(() => perform(said("cut")))).toBe("broken_stream");
  });

  test("is closed at once when the caller leaves, whole and streamed", async () => {
    const streaming = new AbortController();
    const response = await perform(said("hang", { isStream: true, signal: streaming.signal }));
    const reader = response.body?.getReader();
    await reader?.read();
    streaming.abort();
    await fake.closed;

    fake.stop();
    fake = startSparkFake();
    const waiting = new AbortController();
    const gone = perform(said("hang", { signal: waiting.signal })).catch((error: unknown) => error);
    await fake.asked;
    waiting.abort();
    await fake.closed;
    expect(((await gone) as Error).name).toBe("AbortError");
  });

  test("goes through the channel's proxy", async () => {
    const proxy = await startTunnel();
    const response = await xunfei({ ...adapterCall(spark()), proxy: proxy.url });
    expect(response.status).toBe(200);
    expect(proxy.tunnels).toEqual([new URL(fake.url).host]);
    proxy.stop();
  });

  test("tools, pictures, formats and several answers are refused by name, before a socket is opened", async () => {
    const picture = { type: "image_url", image_url: { url: `data:image/png;base64,${PNG}` } };
    for (const body of [
      { tools: [WEATHER_TOOL] },
      { messages: [{ role: "user", content: [picture] }] },
      { response_format: { type: "json_object" } },
      { n: 2 },
    ])
      expect(await codeOf(() => perform(spark(body)))).toBe("unsupported_field");
    expect(fake.seen).toEqual([]);
  });
});

describe("the OpenAI-shaped address of single passwords", () => {
  const http = (content: string, more: Partial<CallOptions> = {}) =>
    said(content, { key: PASSWORD, ...more });

  test("gets the body under the provider's name of the model, tools and all", async () => {
    for (const read of [whole, streamed]) {
      const answer = await read(http("hi"));
      expect([text(answer), answer.usage.input.fresh]).toEqual(["Hello world", 11]);
    }
    await whole(
      spark({ tools: [WEATHER_TOOL] }, { key: PASSWORD, model: "SparkDesk", channel: { other: "v4.0" } }),
    );
    await whole(http("hi", { model: "x1" }));
    expect(fake.posted.map((body) => body["model"])).toEqual([
      "generalv3.5",
      "generalv3.5",
      "4.0Ultra",
      "x1",
    ]);
    expect(fake.posted[2]?.["tools"]).toEqual([WEATHER_TOOL]);
    expect(fake.seen).toEqual([]);
  });

  test("codes count here too, with status 200 and with others, and a wrong password is 401", async () => {
    for (const isStream of [false, true]) {
      expect((await failureOf(await perform(http("code 10013", { isStream })))).kind).toBe(
        "upstream-refusal",
      );
      expect((await failureOf(await perform(http("code 11202", { isStream })))).kind).toBe("upstream-limit");
      const wrong = await perform(http("hi", { key: "other", isStream }));
      expect([wrong.status, (await failureOf(wrong)).kind]).toEqual([401, "upstream-auth"]);
    }
    const late = (await streamed(http("late error")).catch((error: unknown) => error)) as Failure;
    expect(late.kind).toBe("upstream-down");
    const cut = await perform(http("cut", { isStream: true }));
    expect(await codeOf(() => cut.text())).toBe("broken_stream");
  });
});
