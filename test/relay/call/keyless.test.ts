// What an upstream says may repeat the key that it was asked with, also in an answer of status 200, in the middle of a stream, in a
// session or of a task: no client reads it, and no row of the log keeps it.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { LogType } from "../../../src/shared/enums.ts";
import { secretsOf, withoutKeys } from "../../../src/shared/without-keys.ts";
import { DONE, json, sse } from "../../support/fake-upstream.ts";
import type { Script } from "../../support/fake-upstream.ts";
import { GREETING } from "../../support/fake-realtime.ts";
import { startRealtimeGateway } from "../realtime/support.ts";
import type { RealtimeGateway } from "../realtime/support.ts";
import { HI, MODEL, startGateway } from "../support.ts";
import type { Gateway } from "../support.ts";

/** As no pattern of keys knows it. */
const KEY = "c3f9a1b27d5e4e0f9a8b7c6d5e4f3a2b";
const SHORT = "hush-1";
const SLASHED = "aB3/dE5+fG7/hI9+jK1/lM3";
const COMPOSED = "AKID-of-an-account|9Zq1wS8xE3dC6rF5vT2g|cn-beijing";
const SECRET = "9Zq1wS8xE3dC6rF5vT2g";

const says = (key: string): string => `Incorrect API key provided: ${key}. Look into your console.`;
const errorOf = (key: string) => ({
  error: { message: says(key), type: "invalid_request_error", code: null },
});
const chunk = (content: string) => ({
  id: "1",
  object: "chat.completion.chunk",
  created: 1,
  model: "m",
  choices: [{ index: 0, delta: { content }, finish_reason: null }],
});
const events = (...list: unknown[]): Script => ({
  headers: { "content-type": "text/event-stream" },
  steps: list.map((each) => (typeof each === "string" ? each : sse(each))),
});

/** PHP puts a stroke before each slash: the text of such an answer does not hold what its members say. */
const phpWrites = (script: Script): Script => ({
  ...script,
  steps: script.steps.map((step) => (typeof step === "string" ? step.replaceAll("/", String.raw`\/`) : step)),
});

const CHAT = ["/v1/chat/completions", { model: MODEL, messages: HI }] as const;
const MESSAGES = ["/v1/messages", { model: MODEL, max_tokens: 50, messages: HI }] as const;
const EMBEDDINGS = ["/v1/embeddings", { model: MODEL, input: "x" }] as const;

describe.each([
  ["that looks like nothing", KEY, KEY],
  ["as short as a word", SHORT, SHORT],
  ["with slashes", SLASHED, SLASHED],
  ["of several parts", COMPOSED, SECRET],
])("a key %s", (_, key, secret) => {
  let g: Gateway;
  beforeAll(async () => {
    g = await startGateway({ channel: { key } });
    await g.setOption("SelfUseModeEnabled", "true");
    await g.setOption("ErrorLogEnabled", "true");
  });
  afterAll(() => g.close());
  beforeEach(() => g.upstream.reset());

  const error = errorOf(secret);
  test.each<[string, readonly [string, object], boolean, Script]>([
    ["another status", CHAT, false, json(error, 400)],
    ["a whole answer", CHAT, false, json(error)],
    ["a whole answer that is converted", MESSAGES, false, json(error)],
    ["a stream for who wants none", CHAT, false, events(error)],
    ["the first event of a stream", CHAT, true, events(error)],
    ["an event after content", CHAT, true, events(chunk("Hello"), error)],
    [
      "an event behind the last blank line",
      CHAT,
      true,
      events(chunk("Hello"), `data: ${JSON.stringify(error)}`),
    ],
    ["the first event of a converted stream", MESSAGES, true, events(error)],
    ["an event of a converted stream", MESSAGES, true, events(chunk("Hello"), error)],
    ["vectors", EMBEDDINGS, false, json(error)],
  ])("in %s goes neither to the client nor into the log", async (_name, [path, body], stream, script) => {
    const before = (await g.logs()).length;
    g.upstream.script(phpWrites(script));
    const response = await g.post(path, { ...body, stream }, { "x-api-key": g.key });
    const text = await response.text();
    expect(String(g.upstream.requests[0]?.headers["authorization"])).toContain(secret);
    expect(text).not.toContain(secret);
    const rows = (await g.logs()).slice(before);
    expect(rows.length).toBeGreaterThan(0);
    expect(JSON.stringify(rows)).not.toContain(secret);
  });

  test("is told by its place: the rest of the words stays for administrators", async () => {
    g.upstream.script(json(error));
    await (await g.chat()).text();
    const row = (await g.logs()).findLast(({ type }) => type === LogType.error);
    expect(row?.other["admin_info"]).toMatchObject({
      upstream_text: "Incorrect API key provided: ***. Look into your console.",
    });
  });
});

describe("what is passed on as it came", () => {
  let g: Gateway;
  beforeAll(async () => {
    g = await startGateway({ channel: { key: KEY } });
    await g.setOption("SelfUseModeEnabled", "true");
  });
  afterAll(() => g.close());
  beforeEach(() => g.upstream.reset());

  test("has the key taken out where an upstream says its error as if it were an answer", async () => {
    const answer = { id: "a", choices: [{ index: 0, message: { role: "assistant", content: says(KEY) } }] };
    g.upstream.script(json(answer));
    const response = await g.chat();
    expect(await response.json()).toEqual({
      ...answer,
      choices: [{ index: 0, message: { role: "assistant", content: says("***") } }],
    });
  });

  test("as in the frames of a stream, of which the others stay byte for byte", async () => {
    const odd = { code: 401, message: says(KEY) };
    g.upstream.script(events(chunk("Hello"), odd, chunk(says(KEY)), DONE));
    const text = await (await g.chat({ stream: true })).text();
    expect(text).toBe(
      sse(chunk("Hello")) + sse({ ...odd, message: says("***") }) + sse(chunk(says("***"))) + DONE,
    );
  });
});

describe("a realtime session", () => {
  let g: RealtimeGateway;
  beforeAll(async () => {
    g = await startRealtimeGateway({ channel: { key: KEY } });
    await g.setOption("ErrorLogEnabled", "true");
  });
  afterAll(() => g.close());

  test("that is refused tells no key", async () => {
    g.upstream.greeting = { type: "error", error: { ...errorOf(KEY).error, code: "bad" } };
    const refused = await g.refused();
    expect(refused.error.message).toContain("Incorrect API key provided: ***");
    g.upstream.greeting = GREETING;
    const rows = await g.app.deps.db.orm.select().from(g.app.deps.db.t.logs);
    expect(rows.length).toBeGreaterThan(0);
    expect(JSON.stringify(rows)).not.toContain(KEY);
  });

  test("tells none while it runs, in whichever event, nor when it ends", async () => {
    const client = await g.open();
    const upstream = g.upstream.connections.items.at(-1);
    await client.next();
    const { error } = errorOf(KEY);
    const failed = { id: "resp_1", status: "failed", status_details: { type: "failed", error } };
    for (const event of [
      { type: "error", error },
      { type: "conversation.item.input_audio_transcription.failed", error },
      { type: "response.done", response: failed },
      { type: "something.new", about: says(KEY) },
      { about: says(KEY) },
    ]) {
      upstream?.say(event);
      expect(JSON.stringify(await client.next())).toBe(JSON.stringify(event).replace(KEY, "***"));
    }
    upstream?.close(4001, says(KEY));
    expect((await client.closed).reason).toBe(says("***"));
  });
});

describe.each([
  ["drawings", 2, "mj_imagine", "/mj/submit/imagine", KEY],
  ["drawings, by a key as short as a word", 2, "mj_imagine", "/mj/submit/imagine", SHORT],
  ["drawings, by a key with slashes", 2, "mj_imagine", "/mj/submit/imagine", SLASHED],
  ["songs", 36, "suno_music", "/suno/submit/music", KEY],
  ["songs, by a key as short as a word", 36, "suno_music", "/suno/submit/music", SHORT],
])("tasks: %s", (_, type, models, path, key) => {
  let g: Gateway;
  const refusal = { code: type === 2 ? 4 : "bad", description: says(key), message: says(key) };
  beforeAll(async () => {
    g = await startGateway({ channel: { type, models, key } });
    await g.setOption("ErrorLogEnabled", "true");
  });
  afterAll(() => g.close());

  test.each([200, 400, 401])("a refusal of status %d tells no key", async (status) => {
    g.upstream.script(phpWrites(json(refusal, status)));
    const text = await (await g.post(path, { prompt: "x" })).text();
    expect(text).not.toContain(key);
    expect(JSON.stringify(await g.logs())).not.toContain(key);
    const { drawings } = g.app.deps.db.t;
    expect(JSON.stringify(await g.app.deps.db.orm.select().from(drawings))).not.toContain(key);
  });
});

test("the region in a composed key is no secret: good answers may name it", () => {
  for (const region of ["ap-northeast-1", "us-gov-west-1", "ap-guangzhou-open"]) {
    const key = `AKID-of-an-account|${SECRET}|${region}`;
    expect(secretsOf(key)).toEqual([key, "AKID-of-an-account", SECRET]);
    expect(withoutKeys(`${SECRET} in ${region}`, [key])).toBe(`*** in ${region}`);
  }
});

test("of a service account's JSON the lines of its private key count, and no name or address", () => {
  const line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7";
  const key = JSON.stringify({
    type: "service_account",
    project_id: "a-project-of-somebody",
    private_key_id: "9f8e7d6c5b4a39281706",
    private_key: `-----BEGIN PRIVATE KEY-----\n${line}\n-----END PRIVATE KEY-----\n`,
    token_uri: "https://oauth2.googleapis.com/token",
  });
  expect(secretsOf(key).slice(2)).toEqual(["9f8e7d6c5b4a39281706", line]);
  expect(withoutKeys(`a-project-of-somebody ${JSON.stringify(`x\n${line}`)}`, [key])).toBe(
    'a-project-of-somebody "x\\n***"',
  );
});
