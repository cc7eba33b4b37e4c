// Upstreams that fall silent, before their headers, behind their first frame and in the middle of one: real clients of
// every dialect read the whole answer, each is kept alive in the form that it counts, and Google's get nothing but data.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { DialectName } from "../../../src/protocol/canonical.ts";
import { streamText, UPSTREAMS } from "../../support/dialect-upstream.ts";
import { gate } from "../../support/fake-upstream.ts";
import type { Gate, Script, Step } from "../../support/fake-upstream.ts";
import { SDK_CLIENTS } from "../../support/sdk-clients.ts";
import { ask, longStream } from "../call/holds-support.ts";
import { dataLines, startGateway } from "../support.ts";
import type { Gateway } from "../support.ts";

const NAMES = Object.keys(UPSTREAMS) as DialectName[];
const COMMENT = ": the upstream's own sign of life\n\n";
const HI = { messages: [{ role: "user", content: "hi" }] };

/** Streamed requests as they are written by hand. */
const RAW: Readonly<Record<string, (model: string) => [path: string, body: object]>> = {
  "openai-chat": (model) => [
    "/v1/chat/completions",
    { model, stream: true, stream_options: { include_usage: true }, ...HI },
  ],
  "openai-responses": (model) => ["/v1/responses", { model, stream: true, input: "hi" }],
  anthropic: (model) => ["/v1/messages", { model, stream: true, max_tokens: 5000, ...HI }],
  gemini: (model) => [`/v1beta/models/${model}:streamGenerateContent?alt=sse`, GEMINI],
  "gemini by /v1": (model) => [`/v1/models/${model}:streamGenerateContent?alt=sse`, GEMINI],
  "gemini array": (model) => [`/v1beta/models/${model}:streamGenerateContent`, GEMINI],
};
const GEMINI = { contents: [{ parts: [{ text: "hi" }] }] };

const PINGS: Readonly<Record<string, RegExp>> = {
  "openai-chat": /: PING\n\n/g,
  "openai-responses": /: PING\n\n|event: keepalive\ndata: \{"type":"keepalive"\}\n\n/g,
  anthropic: /event: ping\ndata: \{"type":"ping"\}\n\n/g,
};

/** The recorded stream with silences, and with comments of its own. */
function silent(dialect: DialectName, [before, behind, within]: readonly Gate[]): Script {
  const [first = "", ...rest] = streamText(dialect).split(/(?<=\r?\n\r?\n)/);
  const middle = Math.floor(rest.length / 2);
  const cut = rest[middle] ?? "";
  const steps: Step[] = [
    first,
    behind as Gate,
    COMMENT,
    ...rest.slice(0, middle),
    cut.slice(0, 20),
    within as Gate,
    cut.slice(20),
    ...rest.slice(middle + 1),
  ];
  return { headers: { "content-type": "text/event-stream" }, before: before as Gate, steps };
}

/** Opens one door after the other, each when a client of chat completions has had two pings at it. */
async function openAtPings(response: Response, doors: readonly Gate[]): Promise<string> {
  const waiting = [...doors];
  let text = "";
  let pings = 0;
  for await (const chunk of response.body as ReadableStream<Uint8Array>) {
    const piece = new TextDecoder().decode(chunk);
    text += piece;
    if (piece !== ": PING\n\n") continue;
    pings += 1;
    if (pings % 2 === 0) waiting.shift()?.open();
  }
  return text;
}

/** Every byte is a data line of JSON with its blank line. */
function expectOnlyData(text: string): void {
  const frames = text.split(/\r\n\r\n|\n\n/);
  expect(frames.pop()).toBe("");
  for (const frame of frames) {
    expect(frame.startsWith("data: {")).toBe(true);
    expect(JSON.parse(frame.slice(6))).toBeObject();
  }
  expect(frames.length).toBeGreaterThan(0);
}

for (const upstream of NAMES) {
  const { type, model } = UPSTREAMS[upstream];

  describe(`a ${upstream} upstream`, () => {
    let g: Gateway;
    beforeAll(async () => {
      g = await startGateway({ quota: 1_000_000_000, channel: { type, models: model } });
      await g.setOption("SelfUseModeEnabled", "true");
    });
    afterAll(() => g.close());

    test("that falls silent: every client reads what it reads of one that does not, and is kept alive", async () => {
      await g.setOption("general_setting.ping_interval_enabled", "false");
      const open = [gate(), gate(), gate()];
      for (const door of open) door.open();
      g.upstream.always(() => silent(upstream, open));
      const raw = async (name: string): Promise<string> => {
        const [path, body] = (RAW[name] as (typeof RAW)[string])(model);
        const response = await g.post(path, body);
        expect(response.status).toBe(200);
        return response.text();
      };
      const names = Object.keys(RAW);
      const wanted = await Promise.all(SDK_CLIENTS.map(({ make }) => make(g).stream(model)));
      const plain = await Promise.all(names.map(raw));

      await g.setOption("general_setting.ping_interval_enabled", "true");
      await g.setOption("general_setting.ping_interval_seconds", "1");
      const doors = [gate(), gate(), gate()];
      g.upstream.always(() => silent(upstream, doors));
      const [path, body] = (RAW["openai-chat"] as (typeof RAW)[string])(model);
      const opener = g.post(path, body).then((response) => openAtPings(response, doors));
      const [seen, texts] = await Promise.all([
        Promise.all(SDK_CLIENTS.map(({ make }) => make(g).stream(model))),
        Promise.all(names.map(raw)),
        opener,
      ]);
      expect(seen).toEqual(wanted);
      names.forEach((name, at) => {
        const text = texts[at] as string;
        const pings = text.match(PINGS[name] ?? /$^/g) ?? [];
        if (name.startsWith("gemini")) expect(pings).toEqual([]);
        else expect([name, pings.length >= 3]).toEqual([name, true]);
        // What is left is what an upstream that never falls silent gives.
        const rest = text.replaceAll(PINGS[name] ?? /$^/g, "");
        const calm = (plain[at] as string).replaceAll(PINGS[name] ?? /$^/g, "");
        expect([name, shape(rest)]).toEqual([name, shape(calm)]);
        if (name === upstream && !name.startsWith("gemini"))
          expect(withoutComments(rest)).toBe(streamText(upstream).replaceAll(PINGS[name] ?? /$^/g, ""));
        if (name === "gemini" || name === "gemini by /v1") expectOnlyData(text);
        if (name === "gemini array") {
          expect(text).toMatch(/^\[\{[^]*\}\]$/);
          expect(JSON.parse(text)).toBeArray();
        }
        if (name === "openai-responses") {
          expect(text.indexOf("event: keepalive")).toBeGreaterThan(text.indexOf("response.created"));
          expect(pings.some((ping) => ping.startsWith("event: keepalive"))).toBe(true);
          expect(pings.some((ping) => ping.startsWith(":"))).toBe(true);
        }
      });
    }, 60_000);

    test("whose stream is cut, or which the balance cannot follow: Google's clients read that as data alone", async () => {
      await g.setOption("general_setting.ping_interval_seconds", "1");
      const doors = [gate(), gate(), gate()];
      for (const door of doors) door.open();
      const { steps, ...head } = silent(upstream, doors);
      g.upstream.script({ ...head, steps: [...steps.slice(0, steps.length / 2), COMMENT] });
      const cut = await (await g.post(...(RAW["gemini"] as (typeof RAW)[string])(model))).text();
      expectOnlyData(cut);
      expect(dataLines(cut).at(-1)).toMatchObject({ error: { status: expect.any(String) } });

      await g.setOption("ModelRatio", JSON.stringify({ [model]: 1 }));
      await g.setOption("CompletionRatio", JSON.stringify({ [model]: 4 }));
      const poor = await g.app.createUser({ quota: 6000 });
      const { key } = await g.app.createToken(poor.id);
      g.upstream.script(longStream(upstream, { words: 6000, per: 10 }));
      const stopped = await (await ask(g, "gemini", model, { key, stream: true })).text();
      expectOnlyData(stopped);
      expect(dataLines(stopped).at(-1)).toMatchObject({ candidates: [{ finishReason: "MAX_TOKENS" }] });
    });
  });
}

/** The upstream's comments are not the client's frames. */
function withoutComments(text: string): string {
  return text.replaceAll(COMMENT, "");
}

/** Without what differs from call to call. */
function shape(text: string): string {
  return withoutComments(text)
    .replaceAll(/"(?:id|item_id|responseId|call_id)":"[^"]*"/g, "")
    .replaceAll(/"(?:created|created_at)":\d+/g, "");
}

test("an end marker of other dialects is no word of Google's, and no end without a reason", async () => {
  const { type, model } = UPSTREAMS.gemini;
  const g = await startGateway({ channel: { type, models: model } });
  await g.setOption("SelfUseModeEnabled", "true");
  const said = (finishReason?: string): string =>
    `data: ${JSON.stringify({ candidates: [{ index: 0, content: { parts: [{ text: "Hi" }] }, finishReason }] })}\n\n`;
  const get = async (name: string, steps: string[]): Promise<string> => {
    g.upstream.script({ headers: { "content-type": "text/event-stream" }, steps });
    const [path, body] = (RAW[name] as (typeof RAW)[string])(model);
    return (await g.post(path, body)).text();
  };
  const done = "data: [DONE]\n\n";
  const whole = await get("gemini", [said(), said("STOP"), done]);
  expectOnlyData(whole);
  expect(dataLines(whole)).toHaveLength(2);
  const broken = await get("gemini", [said(), done]);
  expectOnlyData(broken);
  expect(dataLines(broken).at(-1)).toHaveProperty("error");
  expect(JSON.parse(await get("gemini array", [said(), said("STOP"), done]))).toHaveLength(2);
  expect(JSON.parse(await get("gemini array", [said(), done]))).toMatchObject([{}, { error: {} }]);
  await g.close();
});

test("other event streams are kept alive by comments: legacy completions and pictures", async () => {
  const models = "gpt-3.5-turbo-instruct,gpt-image-1";
  const g = await startGateway({ channel: { models } });
  await g.setOption("SelfUseModeEnabled", "true");
  await g.setOption("general_setting.ping_interval_seconds", "1");
  const frames = (pieces: readonly object[]): string[] =>
    pieces.map((piece) => `data: ${JSON.stringify(piece)}\n\n`);
  const calls: [path: string, body: object, frames: string[]][] = [
    [
      "/v1/completions",
      { model: "gpt-3.5-turbo-instruct", prompt: "hi", stream: true },
      [
        ...frames([
          { id: "cmpl-1", choices: [{ index: 0, text: "", finish_reason: null }] },
          { id: "cmpl-1", choices: [{ index: 0, text: "Hello", finish_reason: null }] },
          { id: "cmpl-1", choices: [{ index: 0, text: "", finish_reason: "stop" }] },
        ]),
        "data: [DONE]\n\n",
      ],
    ],
    [
      "/v1/images/generations",
      { model: "gpt-image-1", prompt: "a weir", stream: true },
      frames([
        { type: "image_generation.partial_image", b64_json: "AAAA", partial_image_index: 0 },
        {
          type: "image_generation.completed",
          b64_json: "AAAA",
          usage: { input_tokens: 5, output_tokens: 9 },
        },
      ]),
    ],
  ];
  for (const [path, body, [first = "", ...rest]] of calls) {
    const doors = [gate(), gate()];
    const [before, behind] = doors as [Gate, Gate];
    g.upstream.script({
      headers: { "content-type": "text/event-stream" },
      before,
      steps: [first, behind, ...rest],
    });
    const response = await g.post(path, body);
    const text = await openAtPings(response, doors);
    expect(text.match(/: PING\n\n/g)?.length).toBeGreaterThanOrEqual(4);
    expect([path, text.replaceAll(": PING\n\n", "")]).toEqual([path, [first, ...rest].join("")]);
  }
  await g.close();
}, 30_000);

test("what keeps Google's own clients alive is nothing: one that waits gets the true status of a late failure", async () => {
  const g = await startGateway({ channel: { type: 24, models: "gemini-2.5-flash" } });
  await g.setOption("SelfUseModeEnabled", "true");
  await g.setOption("general_setting.ping_interval_seconds", "1");
  const door = gate();
  const error = { error: { code: 400, message: "no", status: "INVALID_ARGUMENT" } };
  const refusal = {
    status: 400,
    headers: { "content-type": "application/json" },
    steps: [JSON.stringify(error)],
  };
  g.upstream.always(() => ({ ...refusal, before: door }));
  const [path, body] = (RAW["openai-chat"] as (typeof RAW)[string])("gemini-2.5-flash");
  const [chat, google] = await Promise.all([
    g.post(path, body).then((response) => openAtPings(response, [door])),
    g.post(...(RAW["gemini"] as (typeof RAW)[string])("gemini-2.5-flash")),
  ]);
  expect(chat).toMatch(/^(?:: PING\n\n){2,}data: \{"error":/);
  expect([google.status, await google.json()]).toMatchObject([
    400,
    { error: { status: "INVALID_ARGUMENT" } },
  ]);
  await g.close();
}, 30_000);
