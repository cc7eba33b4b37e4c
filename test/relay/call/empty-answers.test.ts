// What an upstream says with status 200 and is no answer is none: lists, numbers, nothing. It is refused as a broken
// upstream's, nobody pays, and the next channel is asked; in every dialect, whole and streamed.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { DialectName } from "../../../src/protocol/canonical.ts";
import { listProviders } from "../../../src/providers/catalog.ts";
import { FIXTURES } from "../../capabilities/fixtures.ts";
import type { TestUser } from "../../support/app.ts";
import { answerOf, UPSTREAMS } from "../../support/dialect-upstream.ts";
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
    { model, stream, max_tokens: 50, messages: [{ role: "user", content: "hi" }] },
  ],
  gemini: (model, stream) => [
    `/v1beta/models/${model}:${stream ? "streamGenerateContent?alt=sse" : "generateContent"}`,
    { contents: [{ role: "user", parts: [{ text: "hi" }] }] },
  ],
};
const NAMES = Object.keys(UPSTREAMS) as DialectName[];

const whole = (text: string): Script => ({ headers: { "content-type": "application/json" }, steps: [text] });
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
    await g.app.createChannel({ type, models: model, baseUrl: second.url, priority: 0 });
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
            const answer = await g.post(path, { ...(body as object), stream: isStream });
            expect([text, isStream, script, answer.status >= 400]).toEqual([text, isStream, script, true]);
            await answer.body?.cancel();
          }
      expect(await g.balance()).toEqual(before);
    },
  );
});
