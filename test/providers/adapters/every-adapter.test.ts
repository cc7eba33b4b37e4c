// What holds for every adapter of the catalogue: the channel's own headers reach its provider, and a provider that names a time
// to wait is heard. Spark's socket has its own tests.
import { expect, test } from "bun:test";
import { listProviders } from "../../../src/providers/catalog.ts";
import type { Operation, Route } from "../../../src/providers/define.ts";
import { KEY as BAIDU } from "./fakes/baidu.ts";
import { KEY as BEDROCK } from "./fakes/bedrock.ts";
import { serviceAccount } from "./fakes/vertex.ts";
import { adapterCall, failureOf, HI } from "./support.ts";
import type { CallOptions } from "./support.ts";
import { ADAPTERS } from "../../../src/providers/adapters.ts";
import { DIALECTS } from "../../../src/protocol/dialects.ts";

const KEYS: Readonly<Record<number, string>> = {
  15: BAIDU,
  16: "id.secret",
  23: "1|id|secret",
  33: BEDROCK,
  41: serviceAccount("https://token.test"),
};
const OTHER: Readonly<Record<number, string>> = { 21: "1", 39: "account", 41: "us-central1", 49: "bot" };

const picture = { prompt: "a square" };
const BODIES: Readonly<Partial<Record<Operation, Record<string, unknown>>>> = {
  chat: { messages: HI },
  messages: { messages: HI, max_tokens: 9 },
  gemini: { contents: [{ parts: [{ text: "hi" }] }] },
  completions: { prompt: "hi" },
  embeddings: { input: ["a"] },
  rerank: { query: "q", documents: ["a"] },
  speech: { input: "hi" },
  "image-generations": picture,
  "image-edits": picture,
};
const sound = { name: "file", filename: "a.wav", type: "audio/wav", bytes: new Uint8Array(4) };

const modelOf = ({ models }: Route): string => models?.prefixes?.[0] ?? models?.contains ?? "model-1";

const CASES = listProviders().flatMap(({ id, operations }) =>
  Object.entries(operations).flatMap(([operation, route]) =>
    route.adapter === undefined ? [] : [[id, operation as Operation, route] as const],
  ),
);

test("there are such adapters", () => {
  expect(CASES.length).toBeGreaterThan(30);
});

test.each(CASES)("type %d, %s", async (type, operation, route) => {
  const asked: Headers[] = [];
  const options: CallOptions = {
    type,
    operation,
    model: modelOf(route),
    key: KEYS[type] ?? "k",
    baseUrl: "https://upstream.test",
    channel: { other: OTHER[type] ?? "" },
    body: BODIES[operation] ?? {},
    more: {
      ...(BODIES[operation] ? {} : { files: [sound] }),
      fetch: (url, init) => {
        if (new URL(url).pathname.endsWith("/token"))
          return Promise.resolve(Response.json({ access_token: "t", expires_in: 3600 }));
        asked.push(new Headers(init.headers));
        const headers = { "retry-after": "37" };
        return Promise.resolve(Response.json({ message: "slow down" }, { status: 429, headers }));
      },
    },
  };
  const call = adapterCall(options);
  const adapter = ADAPTERS[route.adapter ?? ""];
  const answer = await adapter?.({ ...call, headers: { ...call.headers, "x-own": "rule" } });
  expect(asked.map((headers) => headers.get("x-own"))).toEqual(["rule"]);
  expect([answer?.status, answer?.headers.get("retry-after")]).toEqual([429, "37"]);
});

test("Vertex: the time that Google writes into the body is heard", async () => {
  const delay = { "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "37s" };
  const error = { code: 429, status: "RESOURCE_EXHAUSTED", message: "quota", details: [delay] };
  for (const [model, operation] of [
    ["gemini-3-pro", "gemini"],
    ["claude-x", "messages"],
  ] as const) {
    const call = adapterCall({
      type: 41,
      operation,
      model,
      key: KEYS[41] ?? "",
      baseUrl: "",
      channel: { other: "us-central1" },
      body: BODIES[operation] ?? {},
      more: {
        fetch: (url) =>
          Promise.resolve(
            url.endsWith("/token")
              ? Response.json({ access_token: "t", expires_in: 3600 })
              : Response.json([{ error }], { status: 429 }),
          ),
      },
    });
    const refused = await ADAPTERS["vertex"]?.(call);
    if (!refused) throw new Error("no adapter");
    const failure = DIALECTS[call.route.dialect].decodeFailure(
      refused.status,
      await refused.clone().json(),
      refused.headers.get("retry-after"),
    );
    expect([failure.kind, failure.retryAfterSeconds]).toEqual(["upstream-limit", 37]);
  }
});

test("Dify: trouble of the operator's account is not the client's", async () => {
  for (const [code, kind] of [
    ["provider_quota_exceeded", "upstream-quota"],
    ["provider_not_initialize", "upstream-auth"],
    ["invalid_param", "upstream-request"],
  ] as const) {
    const call = adapterCall({
      type: 37,
      model: "m",
      key: "k",
      baseUrl: "https://dify.test",
      body: { messages: HI },
      more: {
        fetch: () => Promise.resolve(Response.json({ code, message: "no", status: 400 }, { status: 400 })),
      },
    });
    const refused = await ADAPTERS["dify"]?.(call);
    if (!refused) throw new Error("no adapter");
    expect([code, (await failureOf(refused)).kind as string]).toEqual([code, kind]);
  }
});
