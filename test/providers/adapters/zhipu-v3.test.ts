// Zhipu's third API version: a token that the key signs for itself, one prompt list, a stream that ends with a meta
// line, refusals under status 200. The fourth version takes the key as it is.
import { createHmac } from "node:crypto";
import { afterAll, expect, test } from "bun:test";
import { providerOf } from "../../../src/providers/catalog.ts";
import { upstreamHeaders } from "../../../src/providers/headers.ts";
import type { Failure } from "../../../src/shared/failures.ts";
import {
  codeOf,
  failureOf,
  HI,
  perform,
  requestOf,
  serve,
  streamed,
  text,
  WEATHER_TOOL,
  whole,
} from "./support.ts";
import type { CallOptions } from "./support.ts";

const KEY = "zhipu-id.zhipu-secret";
const NOW_MS = 1_700_000_000_000;
const usage = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 };

/** The token as the provider checks it: its own header field, times in milliseconds, HS256 over both parts. */
function isSigned(token: string): boolean {
  const [head = "", claims = "", signature] = token.split(".");
  const read = (part: string): unknown => JSON.parse(Buffer.from(part, "base64url").toString());
  return (
    signature === createHmac("sha256", "zhipu-secret").update(`${head}.${claims}`).digest("base64url") &&
    Bun.deepEquals(read(head), { alg: "HS256", sign_type: "SIGN" }) &&
    Bun.deepEquals(read(claims), { api_key: "zhipu-id", exp: NOW_MS + 86_400_000, timestamp: NOW_MS })
  );
}

const upstream = serve(async (request) => {
  const { pathname } = new URL(request.url);
  const refuse = (code: number): Response => Response.json({ code, msg: `says ${code}`, success: false });
  if (!isSigned(request.headers.get("authorization") ?? "")) return refuse(1002);
  const { prompt } = (await request.json()) as { prompt: { content: string }[] };
  const last = prompt.at(-1)?.content ?? "";
  const code = /^code (\d+)$/.exec(last)?.[1];
  if (code) return refuse(Number(code));
  if (pathname === "/api/paas/v3/model-api/chatglm_turbo/invoke") {
    const choices = [{ role: "assistant", content: '" Hello\\nworld"' }];
    const data = {
      task_id: "75931252186628016897601864755556524089",
      request_id: "r",
      task_status: "SUCCESS",
      choices,
      usage,
    };
    return Response.json({ code: 200, msg: "操作成功", data, success: true });
  }
  if (pathname !== "/api/paas/v3/model-api/chatglm_turbo/sse-invoke") return refuse(1211);
  const frames = ["event:add\nid:1\ndata:Hello\n\n", "event:add\nid:1\ndata:\ndata:world\n\n"];
  if (last === "interrupted") frames.push("event:interrupted\nid:1\ndata:sensitive\n\n");
  else if (last !== "cut")
    frames.push(
      `event:finish\nid:1\ndata:\nmeta:${JSON.stringify({ task_status: "SUCCESS", usage, task_id: "t" })}\n\n`,
    );
  return new Response(frames.join(""), { headers: { "content-type": "text/event-stream" } });
});
afterAll(() => upstream.stop());

function zhipu(body: Record<string, unknown> = {}, more: Partial<CallOptions> = {}): CallOptions {
  const all = { messages: HI, ...body };
  return {
    type: 16,
    key: KEY,
    model: "chatglm_turbo",
    baseUrl: upstream.url,
    nowMs: NOW_MS,
    body: all,
    ...more,
  };
}
const said = (content: string, more: Partial<CallOptions> = {}) =>
  zhipu({ messages: [{ role: "user", content }] }, more);

test("answers, whole and streamed, with usage, and line breaks where they were", async () => {
  for (const answer of [await whole(zhipu()), await streamed(zhipu())]) {
    expect([text(answer), answer.reason]).toEqual(["Hello\nworld", "stop"]);
    expect([answer.usage.input.fresh, answer.usage.output.text]).toEqual([11, 7]);
  }
  await whole(
    zhipu({ messages: [{ role: "system", content: "Be brief." }, ...HI], top_p: 1, temperature: 0.5 }),
  );
  expect(requestOf(upstream).json()).toEqual({
    prompt: [
      { role: "system", content: "Be brief." },
      { role: "user", content: "Okay" },
      { role: "user", content: "hi" },
    ],
    top_p: 0.99,
    temperature: 0.5,
    request_id: "req_1",
  });
});

test("refusals under status 200 are sorted by what they mean", async () => {
  const meanings: [number, Failure["kind"]][] = [
    [1002, "upstream-auth"],
    [1113, "upstream-quota"],
    [1302, "upstream-limit"],
    [1214, "upstream-request"],
    [1301, "upstream-refusal"],
    [500, "upstream-down"],
  ];
  for (const [code, kind] of meanings) {
    for (const isStream of [false, true]) {
      const failure = await failureOf(await perform(said(`code ${code}`, { isStream })));
      expect([code, failure.kind]).toEqual([code, kind]);
    }
  }
  const wrong = await perform(zhipu({}, { key: "zhipu-id.other" }));
  expect((await failureOf(wrong)).kind).toBe("upstream-auth");
  expect(await codeOf(() => perform(zhipu({}, { key: "no dot" })))).toBe("channel_key_unusable");
});

test("a stream that is interrupted ends as an error, one that breaks off is no answer", async () => {
  const stopped = (await streamed(said("interrupted")).catch((error: unknown) => error)) as Failure;
  expect(stopped.kind).toBe("upstream-down");
  const cut = await perform(said("cut", { isStream: true }));
  expect(await codeOf(() => cut.text())).toBe("broken_stream");
});

test("tools, formats and several answers are refused by name", async () => {
  const before = upstream.requests.length;
  for (const body of [{ tools: [WEATHER_TOOL] }, { response_format: { type: "json_object" } }, { n: 2 }])
    expect(await codeOf(() => perform(zhipu(body)))).toBe("unsupported_field");
  expect(upstream.requests.length).toBe(before);
});

test("the fourth version takes the key as a plain bearer", () => {
  const row = providerOf(26);
  if (!row) throw new Error("no row 26");
  expect(upstreamHeaders(row, { operation: "chat", key: KEY })["authorization"]).toBe(`Bearer ${KEY}`);
});
