// What an upstream says with status 200 and is no answer is none: lists, numbers, nothing. It is refused as a broken
// upstream's, nobody pays, and the next channel is asked; in every dialect, whole and streamed.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { DialectName } from "../../../src/protocol/canonical.ts";
import { listProviders } from "../../../src/providers/catalog.ts";
import { DIALECTS } from "../../../src/protocol/dialects.ts";
import { LogType } from "../../../src/shared/enums.ts";
import { FIXTURES } from "../../capabilities/fixtures.ts";
import type { TestUser } from "../../support/app.ts";
import { answerOf, answerText, UPSTREAMS } from "../../support/dialect-upstream.ts";
import { startFakeUpstream } from "../../support/fake-upstream.ts";
import type { FakeUpstream, Script } from "../../support/fake-upstream.ts";
import { startGateway } from "../support.ts";
import type { Gateway } from "../support.ts";

const NOTHING = ["[]", "[{}]", "null", "{}", "{ }", "5", '"text"', "true", ""];
const CLIENTS: Readonly<Record<DialectName, (model: string, stream: boolean) => [string, unknown]>> = {
  "openai-chat": (model, stream) => [
    "/v1/chat/completions",
    { model, stream, messages: [{ role: "user", content: "hi" }] },
  ],
  "openai-responses": (model, stream) => ["/v1/responses", { model, stream, input: "hi" }],
  anthropic: (model, stream) => [
    "/v1/messages",
    {
      model,
      stream,
      max_tokens: 50,
      messages: [{ role: "user", content: "hi" }],
    },
  ],
  gemini: (model, stream) => [
    `/v1beta/models/${model}:${stream ? "streamGenerateContent?alt=sse" : "generateContent"}`,
    { contents: [{ role: "user", parts: [{ text: "hi" }] }] },
  ],
};
const NAMES = Object.keys(UPSTREAMS) as DialectName[];

const whole = (text: string): Script => ({
  headers: { "content-type": "application/json" },
  steps: [text],
});
const stream = (...lines: string[]): Script => ({
  headers: { "content-type": "text/event-stream" },
  steps: lines.map((line) => `data: ${line}\n\n`),
});

describe.each(NAMES)("a %s upstream that says nothing", (upstream) => {
  const { type, model } = UPSTREAMS[upstream];
  let g: Gateway;
  let second: FakeUpstream;

  beforeAll(async () => {
    g = await startGateway({ channel: { type, models: model, priority: 10 } });
    second = await startFakeUpstream();
    await g.setOption("SelfUseModeEnabled", "true");
  });
  afterAll(async () => {
    await g.close();
    second.stop();
  });
  beforeEach(() => {
    g.upstream.reset();
    second.reset();
  });

  /** Status and text of the answer to a client of this dialect. */
  async function ask(client: DialectName, isStream: boolean): Promise<[number, string]> {
    const [path, body] = CLIENTS[client](model, isStream);
    const response = await g.post(path, body, { "x-api-key": g.key });
    return [response.status, await response.text()];
  }

  test.each(NAMES)(
    "is no answer for %s clients, whatever it was asked for, and costs nothing",
    async (client) => {
      const before = await g.balance();
      for (const isStream of [false, true]) {
        const scripts: [string, Script][] = [
          ...NOTHING.map((text): [string, Script] => [text, whole(text)]),
          ...NOTHING.map((text): [string, Script] => [`stream of ${text}`, stream(text)]),
          ...NOTHING.map((text): [string, Script] => [`stream of ${text}, done`, stream(text, "[DONE]")]),
          ["done", stream("[DONE]")],
        ];
        for (const [name, script] of scripts) {
          g.upstream.always(script);
          const [status, text] = await ask(client, isStream);
          expect([client, isStream, name, status >= 500, text]).toEqual([client, isStream, name, true, text]);
        }
      }
      expect(await g.balance()).toEqual(before);
    },
  );

  test("is made good by the next channel", async () => {
    await g.app.createChannel({
      type,
      models: model,
      baseUrl: second.url,
      priority: 0,
    });
    await g.setOption("RetryTimes", "1");
    for (const script of [whole("[]"), stream("[]", "[DONE]")])
      for (const isStream of [false, true]) {
        g.upstream.always(script);
        second.always(answerOf(upstream));
        const [status, text] = await ask(upstream, isStream);
        expect([status, text.length > 50]).toEqual([200, true]);
      }
    expect(second.requests.length).toBe(4);
    await g.setOption("RetryTimes", "0");
  });
});

describe("other endpoints", () => {
  let g: Gateway;
  const models =
    "gpt-4o-mini,text-embedding-3-small,dall-e-3,gpt-3.5-turbo-instruct,omni-moderation-latest,rerank-1";
  beforeAll(async () => {
    g = await startGateway({ channel: { models } });
    await g.setOption("SelfUseModeEnabled", "true");
  });
  afterAll(() => g.close());

  test.each([
    ["/v1/embeddings", { model: "text-embedding-3-small", input: "hi" }],
    ["/v1/images/generations", { model: "dall-e-3", prompt: "a weir" }],
    ["/v1/completions", { model: "gpt-3.5-turbo-instruct", prompt: "hi" }],
    ["/v1/moderations", { model: "omni-moderation-latest", input: "hi" }],
  ])("%s alike", async (path, body) => {
    const before = await g.balance();
    for (const text of NOTHING) {
      g.upstream.always(whole(text));
      const response = await g.post(path, body);
      expect([path, text, response.status >= 500]).toEqual([path, text, true]);
    }
    expect(await g.balance()).toEqual(before);
  });
});

const BUSY = '{"code":50505,"message":"overloaded","data":null}';
const vectors = (count: number): string =>
  JSON.stringify({
    data: Array.from({ length: count }, (_, index) => ({
      index,
      embedding: [0.5],
    })),
  });
const choice = (more: object) => JSON.stringify({ id: "a", choices: [{ index: 0, ...more }] });
const said = (content: string, more: object = {}) =>
  choice({ message: { role: "assistant", content }, ...more });

/** What each endpoint is asked, what is no answer to it beside BUSY, and what is one, with the pieces that are paid. */
const ASKED: readonly {
  path: string;
  body: object;
  none: readonly string[];
  some: readonly string[];
}[] = [
  {
    path: "/v1/images/generations",
    body: { model: "dall-e-3", prompt: "a weir", n: 3 },
    none: [
      '{"data":[]}',
      '{"data":[{}]}',
      '{"data":[{"error":{"code":"x","message":"no"}}]}',
      '{"created":1}',
    ],
    some: [
      '{"data":[{"url":"https://a"}]}',
      '{"data":[{"b64_json":"AA"},{"error":{"message":"no"}}],"error":{}}',
    ],
  },
  {
    path: "/v1/embeddings",
    body: { model: "text-embedding-3-small", input: ["a", "b"] },
    none: [
      vectors(0),
      vectors(1),
      '{"data":{"embedding":[0.5]}}',
      '{"data":[{"embeddings":[]}]}',
      '{"data":[{"embedding":[]},{"embedding":[]}]}',
    ],
    some: [vectors(2)],
  },
  {
    path: "/v1/embeddings",
    body: { model: "text-embedding-3-small", input: [1, 2, 3] },
    none: [vectors(0)],
    some: [
      vectors(1),
      '{"data":[{"embedding":"AAAAPw=="}]}',
      '{"data":[{"object":"embeddings","index":0,"embeddings":[[0.5],[0.25]]}]}',
      '{"data":{"object":"embedding","embedding":[0.5]}}',
    ],
  },
  {
    path: "/v1beta/models/text-embedding-3-small:embedContent",
    body: { content: { parts: [{ text: "a" }] } },
    none: [vectors(0)],
    some: [vectors(1)],
  },
  {
    path: "/v1/rerank",
    body: { model: "rerank-1", query: "a", documents: ["b"] },
    none: ['{"results":[]}', '{"results":null}', '{"data":["x"]}'],
    some: ['{"results":[{"index":0,"relevance_score":1}]}', '{"data":[{"index":0,"score":1}]}'],
  },
  {
    path: "/v1/rerank",
    body: { model: "rerank-1", query: "a", documents: ["b"], top_n: 0 },
    none: ["{}"],
    some: ['{"results":[]}'],
  },
  {
    path: "/v1/moderations",
    body: { model: "omni-moderation-latest", input: "hi" },
    none: ['{"results":[]}'],
    some: ['{"results":[{"flagged":false}]}'],
  },
  {
    path: "/v1/audio/speech",
    body: { model: "tts-1", input: "a weir", voice: "alloy" },
    none: ['{"audio":"AAAA"}'],
    some: [],
  },
  {
    path: "/v1/completions",
    body: { model: "gpt-3.5-turbo-instruct", prompt: "hi" },
    none: [
      '{"choices":[]}',
      choice({ text: "", finish_reason: "stop" }),
      JSON.stringify({
        choices: [{ text: "" }],
        usage: { prompt_tokens: 5, total_tokens: 5 },
      }),
    ],
    some: [
      choice({ text: "a" }),
      choice({ text: "", finish_reason: "length" }),
      // Nothing has to stand in the gap.
      JSON.stringify({
        choices: [{ index: 0, text: "", finish_reason: "stop" }],
        usage: { prompt_tokens: 5, total_tokens: 5 },
      }),
    ],
  },
  {
    path: "/v1/chat/completions",
    body: { model: "gpt-4o-mini", messages: [{ role: "user", content: "hi" }] },
    none: ['{"choices":[]}', said(""), said("", { finish_reason: "stop" }), choice({ message: {} })],
    some: [
      said("a"),
      said("", { finish_reason: "length" }),
      said("", { finish_reason: "content_filter" }),
      choice({
        message: {
          content: null,
          tool_calls: [{ id: "c", function: { name: "f", arguments: "{}" } }],
        },
      }),
      choice({ message: { content: null, refusal: "no" } }),
      choice({ message: { content: "", reasoning_content: "well" } }),
      JSON.stringify({
        choices: [],
        usage: { prompt_tokens: 1, completion_tokens: 4, total_tokens: 5 },
      }),
    ],
  },
];

describe("an answer of status 200 without what was asked for", () => {
  let g: Gateway;
  let second: FakeUpstream;
  const models =
    "gpt-4o-mini,text-embedding-3-small,dall-e-3,gpt-3.5-turbo-instruct,omni-moderation-latest,rerank-1,tts-1";
  beforeAll(async () => {
    g = await startGateway({ channel: { models, priority: 10 } });
    await g.setOption("SelfUseModeEnabled", "true");
    await g.setOption("ErrorLogEnabled", "true");
    second = await startFakeUpstream();
  });
  afterAll(async () => {
    await g.close();
    second.stop();
  });
  beforeEach(() => g.upstream.reset());

  test("administrators read what came in its place", async () => {
    g.upstream.always(whole(BUSY));
    await (
      await g.post("/v1/moderations", {
        model: "omni-moderation-latest",
        input: "hi",
      })
    ).text();
    const row = (await g.logs()).findLast(({ type }) => type === LogType.error);
    expect(row?.other["admin_info"]).toMatchObject({
      upstream_text: "overloaded",
      internal: BUSY,
    });
  });

  test.each(ASKED)(
    "$path $body is refused and costs nothing; what holds it is delivered",
    async ({ path, body, none, some }) => {
      const before = await g.balance();
      for (const text of [BUSY, ...none]) {
        g.upstream.always(whole(text));
        const response = await g.post(path, body);
        expect([text, response.status, await response.text()]).toEqual([
          text,
          502,
          expect.stringContaining("request id"),
        ]);
      }
      expect(await g.balance()).toEqual(before);
      for (const text of some) {
        g.upstream.always(whole(text));
        const response = await g.post(path, body);
        expect([text, response.status, await response.text()]).toEqual([text, 200, expect.any(String)]);
      }
    },
  );

  test("pictures that failed beside others are not paid", async () => {
    const picture = { url: "https://a" };
    const ask = (data: object[]) => {
      g.upstream.always(whole(JSON.stringify({ data })));
      return g.charged(() =>
        g.post("/v1/images/generations", {
          model: "dall-e-3",
          prompt: "x",
          n: 3,
        }),
      );
    };
    const { quota: one } = await ask([picture]);
    expect((await ask([picture, { error: { message: "no" } }, picture])).quota).toBe(2 * one);
  });

  test("speech that is an error in words costs nothing, whatever its type says", async () => {
    const before = await g.balance();
    for (const type of ["application/json", "text/plain", "audio/mpeg", "application/octet-stream"]) {
      g.upstream.always({ headers: { "content-type": type }, steps: [BUSY] });
      const response = await g.post("/v1/audio/speech", {
        model: "tts-1",
        input: "a weir",
        voice: "alloy",
      });
      expect([type, response.status]).toEqual([type, 502]);
      await response.text();
    }
    expect(await g.balance()).toEqual(before);
  });

  test("a transcript without a text costs nothing, an empty one is an answer to silence", async () => {
    await g.app.createChannel({ baseUrl: g.upstream.url, models: "whisper-1" });
    const ask = async (text: string): Promise<number> => {
      g.upstream.always(whole(text));
      const body = new FormData();
      body.set("model", "whisper-1");
      body.set("file", new File([new Uint8Array(32_000)], "a.wav"));
      const headers = { authorization: `Bearer ${g.key}` };
      const response = await fetch(`${g.app.url}/v1/audio/transcriptions`, {
        method: "POST",
        headers,
        body,
      });
      await response.text();
      return response.status;
    };
    const before = await g.balance();
    expect(await ask(BUSY)).toBe(502);
    expect(await g.balance()).toEqual(before);
    expect(await ask('{"text":""}')).toBe(200);
  });

  test("is made good by the next channel", async () => {
    await g.app.createChannel({ baseUrl: second.url, models, priority: 0 });
    await g.setOption("RetryTimes", "1");
    g.upstream.always(whole(BUSY));
    second.always(whole('{"results":[{"flagged":false}]}'));
    const response = await g.post("/v1/moderations", {
      model: "omni-moderation-latest",
      input: "hi",
    });
    expect(await response.json()).toEqual({ results: [{ flagged: false }] });
    await g.setOption("RetryTimes", "0");
  });
});

describe("an empty error beside an answer", () => {
  let g: Gateway;
  beforeAll(async () => {
    g = await startGateway();
    await g.setOption("SelfUseModeEnabled", "true");
  });
  afterAll(() => g.close());

  const chunk = (delta: object, finish_reason: string | null = null) =>
    JSON.stringify({
      id: "a",
      error: {},
      choices: [{ index: 0, delta, finish_reason }],
    });

  // Whoever speaks the Responses API gets it from the upstream itself.
  test.each(NAMES.filter((name) => name !== "openai-responses"))(
    "is none for %s clients, whole or streamed",
    async (client) => {
      for (const isStream of [false, true]) {
        const parts = [chunk({ content: "Hello" }), chunk({}, "stop"), "[DONE]"];
        const body = said("Hello", { finish_reason: "stop" }).replace(
          "{",
          '{"error":{"message":"","code":null},',
        );
        g.upstream.always(isStream ? stream(...parts) : whole(body));
        const [path, asked] = CLIENTS[client]("gpt-4o-mini", isStream);
        const response = await g.post(path, asked, { "x-api-key": g.key });
        const text = await response.text();
        expect([client, isStream, response.status, text.includes("Hello")]).toEqual([
          client,
          isStream,
          200,
          true,
        ]);
        expect(text).not.toContain("request id");
      }
    },
  );

  test.each(NAMES)("is none in a whole answer of %s", (name) => {
    const wire = JSON.parse(answerText(name)) as object;
    const read = (body: object) => DIALECTS[name].decodeAnswer(body, { newId: (prefix) => prefix });
    expect(read({ ...wire, error: {} }).blocks).toEqual(read(wire).blocks);
    expect(() => read({ ...wire, error: { message: "no" } })).toThrow("upstream_down");
    expect(() => read({ error: {} })).toThrow("upstream_down");
  });

  test("is one in its place", async () => {
    for (const script of [whole('{"error":{}}'), stream('{"error":{}}', "[DONE]")]) {
      g.upstream.always(script);
      for (const isStream of [false, true]) expect((await g.chat({ stream: isStream })).status).toBe(502);
    }
  });
});

describe("providers with a protocol of their own", () => {
  let g: Gateway;
  let root: TestUser;
  beforeAll(async () => {
    g = await startGateway();
    root = await g.app.createUser({ role: 100 });
    await g.setOption("SelfUseModeEnabled", "true");
  });
  afterAll(() => g.close());

  /** Zhipu's elder API says its words as they are, without JSON around them. */
  const SAYS_WORDS = 16;
  const served = listProviders().flatMap((row) => {
    const fixture = FIXTURES.get(row.id);
    const isChat = row.operations.chat ?? row.operations.messages ?? row.operations.gemini;
    return fixture && !fixture.socket && isChat ? [{ row, fixture }] : [];
  });

  test.each(served.map(({ row, fixture }) => [row.id, row.label.en, fixture] as const))(
    "type %d, %s",
    async (type, _name, fixture) => {
      const { channels } = g.app.deps.db.t;
      await g.app.deps.db.orm.delete(channels).returning({ id: channels.id });
      const model = fixture.models.chat ?? fixture.models.any ?? "some-model";
      await g.app.createChannel({
        type,
        key: fixture.key.replaceAll("{url}", g.upstream.url),
        baseUrl: fixture.baseUrl?.(g.upstream.url, "chat") ?? g.upstream.url,
        other: fixture.other ?? "",
        models: model,
      });
      await g.app.call("POST", "/api/channel/fix", {}, root);
      const before = await g.balance();
      const [path, body] = CLIENTS["openai-chat"](model, false);
      const isToken = (url: string) => /\/token(\?|$)/.test(url.replace(/access_token=.*/, ""));
      for (const text of NOTHING)
        for (const isStream of [false, true])
          for (const script of [whole(text), stream(text)]) {
            if (type === SAYS_WORDS && script.headers?.["content-type"] !== "application/json") continue;
            g.upstream.always((request) =>
              isToken(request.url) ? fixture.answer(request, { kind: "text", status: 200 }) : script,
            );
            const answer = await g.post(path, {
              ...(body as object),
              stream: isStream,
            });
            expect([text, isStream, script, answer.status >= 400]).toEqual([text, isStream, script, true]);
            await answer.body?.cancel();
          }
      expect(await g.balance()).toEqual(before);
    },
  );
});
