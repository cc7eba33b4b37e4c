// What the relay really answers, held against the document: every dialect from every upstream, whole and streamed, media,
// lists, tasks, and refusals. Upstreams are fakes with recorded answers. A call that nothing here asks fails the last test.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import type { DialectName } from "../../src/protocol/canonical.ts";
import { answerOf, UPSTREAMS } from "../support/dialect-upstream.ts";
import type { RecordedRequest, Script } from "../support/fake-upstream.ts";
import { startGateway } from "../relay/support.ts";
import type { Gateway } from "../relay/support.ts";
import { documentAt, Measure, operationsOf } from "./support.ts";

type Json = Record<string, unknown>;
type Texts = Record<string, string>;

const MODELS =
  "gpt-3.5-turbo-instruct,text-embedding-3-small,text-moderation-stable,bge-reranker-v2-m3,dall-e,gpt-image-1,tts-1,whisper-1";
const DRAWING_MODELS = "mj_imagine,mj_upscale,swap_face";

const reply = (value: unknown): Script => ({
  headers: { "content-type": "application/json" },
  steps: [JSON.stringify(value)],
});
const events = (...list: unknown[]): Script => ({
  headers: { "content-type": "text/event-stream" },
  steps: list.map((each) => `data: ${JSON.stringify(each)}\n\n`),
});

const usage = { input_tokens: 3, output_tokens: 4, total_tokens: 7 };
const tasks = { code: 1, description: "ok", properties: {}, result: "17" };

/** What the providers of everything but conversations answer, by the end of the path. */
const ANSWERS: readonly (readonly [string, (request: RecordedRequest) => Script])[] = [
  [
    "/responses/compact",
    () => reply({ id: "cmp_1", object: "response.compaction", output: [{ type: "compaction" }], usage }),
  ],
  [
    "/moderations",
    () => reply({ id: "m", model: "m", results: [{ flagged: false, categories: { hate: false } }] }),
  ],
  ["/rerank", () => reply({ results: [{ index: 0, relevance_score: 0.5 }], usage: { total_tokens: 5 } })],
  [
    "/images/generations",
    (request) =>
      request.json()["stream"] === true
        ? events(
            { type: "image_generation.partial_image", b64_json: "AA" },
            { type: "image_generation.completed", b64_json: "AA", usage },
          )
        : reply({ created: 1, data: [{ url: "https://cdn.example/1.png" }] }),
  ],
  ["/images/edits", () => reply({ created: 1, data: [{ b64_json: "AAAA" }], usage })],
  ["/audio/speech", () => ({ headers: { "content-type": "audio/mpeg" }, steps: ["ID3"] })],
  [
    "/audio/transcriptions",
    (request) => {
      const form = request.body.toString("latin1");
      if (form.includes('name="stream"'))
        return events(
          { type: "transcript.text.delta", delta: "A" },
          { type: "transcript.text.done", text: "A weir", usage },
        );
      if (form.includes("\r\nsrt\r\n"))
        return { headers: { "content-type": "text/plain" }, steps: ["1\n00:00 --> 00:01\nA weir"] };
      return reply({ text: "A weir" });
    },
  ],
  ["/audio/translations", () => reply({ text: "A weir" })],
  ["/picture.png", () => ({ headers: { "content-type": "image/png" }, steps: ["PNG"] })],
  ["/image-seed", () => reply({ code: 1, description: "ok", result: "1234" })],
  ["/submit/imagine", () => reply(tasks)],
  ["/insight-face/swap", () => reply({ ...tasks, result: "18" })],
  ["/suno/submit/MUSIC", () => reply({ code: "success", message: "", data: "song-1" })],
];

const DIALECT_PATHS: readonly (readonly [RegExp, DialectName])[] = [
  [/\/messages(\?|$)/, "anthropic"],
  [/\/responses(\?|$)/, "openai-responses"],
  [/enerateContent/, "gemini"],
  [/\/chat\/completions$/, "openai-chat"],
];

const HI = { role: "user", content: "hi" };
const CONTENTS = { contents: [{ role: "user", parts: [{ text: "hi" }] }] };

let g: Gateway;
let measure: Measure;

beforeAll(async () => {
  g = await startGateway({ quota: 100_000_000, channel: { models: MODELS } });
  await g.setOption("SelfUseModeEnabled", "true");
  const baseUrl = g.upstream.url;
  for (const { type, model } of Object.values(UPSTREAMS))
    await g.app.createChannel({ type, models: model, baseUrl });
  const setting = JSON.stringify({ allow_networks: ["127.0.0.1"] });
  await g.app.createChannel({ type: 2, models: DRAWING_MODELS, baseUrl, setting });
  await g.app.createChannel({ type: 36, models: "suno_music", baseUrl });
  measure = new Measure(await documentAt(g.app.url));
});
afterAll(() => g.close());

/** The polite fake knows embeddings and completions; everything else stands above. */
function answerEverything(): void {
  g.upstream.reset();
  g.upstream.always((request) => {
    const path = request.url.split("?")[0] ?? "";
    const own = ANSWERS.find(([end]) => path.endsWith(end));
    if (own) return own[1](request);
    const dialect = DIALECT_PATHS.find(([pattern]) => pattern.test(request.url))?.[1];
    if (dialect) return answerOf(dialect)(request);
    if (path.endsWith("/embeddings"))
      return reply({
        object: "list",
        model: "m",
        data: [{ object: "embedding", index: 0, embedding: [0.25, -0.5] }],
        usage: { prompt_tokens: 4, total_tokens: 4 },
      });
    return reply({
      id: "c",
      object: "text_completion",
      created: 1,
      model: "m",
      choices: [{ index: 0, text: "Hello", finish_reason: "stop" }],
      usage: { prompt_tokens: 4, completion_tokens: 1, total_tokens: 5 },
    });
  });
}

interface Sent {
  /** The path with its parameters filled in, where it differs from the document's. */
  path?: string;
  body?: unknown;
  headers?: Record<string, string>;
  status?: number;
}

/** Makes a call of the document, and holds every part of its answer against what is said there. */
async function ask(name: string, { path, body, headers, status = 200 }: Sent = {}): Promise<Json> {
  answerEverything();
  if (status === 200) measure.expectBody(name, body);
  const [method = "", written = ""] = name.split(" ");
  const isForm = body instanceof FormData;
  const sent = {
    authorization: `Bearer ${g.key}`,
    ...(body === undefined || isForm ? {} : { "content-type": "application/json" }),
    ...headers,
  };
  const answer = await fetch(g.app.url + (path ?? written), {
    method,
    headers: Object.entries(sent).filter(([, value]) => value !== ""),
    ...(body === undefined ? {} : { body: isForm ? body : JSON.stringify(body) }),
  });
  const text = await answer.text();
  expect([name, answer.status, text.slice(0, 300)]).toEqual([name, status, text.slice(0, 300)]);
  if (status >= 400) {
    const codes = measure.document.components.headers["x-weir-error-code"]?.schema.enum;
    expect([name, codes?.includes(answer.headers.get("x-weir-error-code") ?? "")]).toEqual([name, true]);
  }
  const type = (answer.headers.get("content-type") ?? "").split(";")[0] ?? "";
  if (type === "text/event-stream") {
    const pieces = text.split(/\r?\n/).filter((line) => line.startsWith("data: {"));
    expect(pieces.length).toBeGreaterThan(1);
    for (const piece of pieces) measure.expectAnswer(name, status, JSON.parse(piece.slice(6)), type);
    return {};
  }
  if (type === "application/json") {
    const json = JSON.parse(text) as Json;
    measure.expectAnswer(name, status, json);
    return json;
  }
  measure.seen.add(name);
  if (text === "") expect(measure.operation(name).responses[String(status)]?.content).toBeUndefined();
  else
    expect(measure.schemaOf(name, status, type.replace(/^(audio|image)\/.*/, "$1/*"))).toMatchObject({
      type: "string",
    });
  return {};
}

for (const [upstream, { model }] of Object.entries(UPSTREAMS)) {
  describe(`conversations with a ${upstream} upstream`, () => {
    for (const stream of [false, true])
      test(stream ? "streamed" : "whole", async () => {
        await ask("POST /v1/chat/completions", {
          body: { model, messages: [HI], stream, stream_options: { include_usage: true } },
        });
        await ask("POST /v1/responses", { body: { model, input: "hi", stream } });
        await ask("POST /responses", { body: { model, input: "hi", stream } });
        await ask("POST /v1/messages", { body: { model, messages: [HI], stream, max_tokens: 99 } });
        for (const version of ["v1", "v1beta"]) {
          const action = stream ? "streamGenerateContent" : "generateContent";
          const name = `POST /${version}/models/{model}:${action}`;
          const path = `/${version}/models/${model}:${action}`;
          await ask(name, { path: stream ? `${path}?alt=sse` : path, body: CONTENTS });
          if (stream) await ask(name, { path, body: CONTENTS });
        }
      });
  });
}

test("the playground, elder endpoints, vectors, scores and counts", async () => {
  const { model } = UPSTREAMS["openai-chat"];
  await ask("POST /pg/chat/completions", {
    body: { model, messages: [HI], group: "" },
    headers: { authorization: "", ...g.user.headers },
  });
  await ask("POST /v1/completions", { body: { model: "gpt-3.5-turbo-instruct", prompt: "hi" } });
  await ask("POST /v1/edits", { body: { model, instruction: "Mend it", input: "hi" } });
  const embedding = "text-embedding-3-small";
  for (const encoding_format of ["float", "base64"])
    await ask("POST /v1/embeddings", { body: { model: embedding, input: "hi", encoding_format } });
  await ask("POST /v1/engines/{model}/embeddings", {
    path: `/v1/engines/${embedding}/embeddings`,
    body: { input: "hi" },
  });
  await ask("POST /v1/moderations", { body: { input: "hi" } });
  for (const version of ["v1", "v2"])
    await ask(`POST /${version}/rerank`, {
      body: { model: "bge-reranker-v2-m3", query: "a", documents: ["b"], return_documents: true },
    });
  const claude = UPSTREAMS.anthropic.model;
  await ask("POST /v1/messages/count_tokens", { body: { model: claude, messages: [HI] } });
  for (const name of ["POST /v1/responses/compact", "POST /responses/compact"])
    await ask(name, { body: { model: UPSTREAMS["openai-responses"].model, input: [HI] } });
  const content = { parts: [{ text: "hi" }] };
  for (const version of ["v1", "v1beta"])
    for (const [action, body] of [
      ["countTokens", CONTENTS],
      ["embedContent", { content }],
      ["batchEmbedContents", { requests: [{ model: `models/${embedding}`, content }] }],
    ] as const)
      await ask(`POST /${version}/models/{model}:${action}`, {
        path: `/${version}/models/${embedding}:${action}`,
        body,
      });
});

test("pictures and sound", async () => {
  const form = (fields: Record<string, string>, file: string) => {
    const made = new FormData();
    for (const [name, value] of Object.entries(fields)) made.append(name, value);
    made.append(file, new Blob([new Uint8Array(64)]), "weir.png");
    return made;
  };
  for (const stream of [false, true])
    await ask("POST /v1/images/generations", { body: { model: "gpt-image-1", prompt: "a weir", stream } });
  await ask("POST /v1/images/edits", { body: form({ model: "gpt-image-1", prompt: "a heron" }, "image") });
  await ask("POST /v1/audio/speech", { body: { model: "tts-1", input: "hi", voice: "alloy" } });
  const forms: Texts[] = [{}, { response_format: "srt" }, { stream: "true" }];
  for (const fields of forms)
    await ask("POST /v1/audio/transcriptions", { body: form({ model: "whisper-1", ...fields }, "file") });
  await ask("POST /v1/audio/translations", { body: form({ model: "whisper-1" }, "file") });
});

test("lists of models in three forms, and the bills", async () => {
  const forms: Texts[] = [{}, { "anthropic-version": "2023-06-01" }, { "x-goog-api-key": g.key }];
  const model = UPSTREAMS.gemini.model;
  for (const headers of forms) {
    await ask("GET /v1/models", { headers });
    await ask("GET /models", { headers });
    await ask("GET /v1/models/{model}", { path: `/v1/models/${model}`, headers });
    await ask("GET /v1/models/{model}", { path: "/v1/models/nope", headers, status: 404 });
  }
  const codex = await ask("GET /v1/models", { path: "/v1/models?client_version=0.169.0" });
  expect(codex["models"]).not.toEqual([]);
  await ask("GET /v1beta/models", { path: "/v1beta/models?pageSize=2" });
  await ask("GET /v1beta/models/{model}", { path: `/v1beta/models/${model}` });
  for (const prefix of ["", "/v1"])
    for (const bill of ["subscription", "usage"]) await ask(`GET ${prefix}/dashboard/billing/${bill}`);
});

test("drawings and songs", async () => {
  const { drawings } = g.app.deps.db.t;
  for (const mode of ["", "mj-fast"]) {
    const call = (name: string, sent: Sent = {}) => {
      const [method = "", rest = ""] = name.split(" ");
      const path = mode === "" ? rest : `/${mode}${rest}`;
      const written = mode === "" ? rest : `/{mode}${rest}`;
      const named = written.replace("/17/", "/{id}/").replace("image/17", "image/{id}");
      return ask(`${method} ${named.replace("imagine", "{kind}")}`, { ...sent, path });
    };
    await call("POST /mj/submit/imagine", { body: { prompt: "a weir" } });
    await call("POST /mj/insight-face/swap", { body: { sourceBase64: "data:,a", targetBase64: "data:,b" } });
    await call("GET /mj/task/17/fetch");
    await call("GET /mj/task/17/image-seed");
    await call("POST /mj/task/list-by-condition", { body: { ids: ["17", "18"] } });
    await call("POST /mj/notify", { body: { id: "17", status: "IN_PROGRESS", progress: "40%" } });
    await g.app.deps.db.orm
      .update(drawings)
      .set({ imageUrl: `${g.upstream.url}/picture.png`, imagePushed: false })
      .where(eq(drawings.mjId, "17"));
    await call("GET /mj/image/17");
    await ask(`POST ${mode === "" ? "" : "/{mode}"}/mj/submit/{kind}`, {
      path: `${mode === "" ? "" : `/${mode}`}/mj/submit/imagine`,
      body: {},
      status: 400,
    });
  }
  await ask("POST /suno/submit/{action}", { path: "/suno/submit/music", body: { prompt: "a river" } });
  await ask("POST /suno/fetch", { body: { ids: ["song-1"] } });
  await ask("GET /suno/fetch/{id}", { path: "/suno/fetch/song-1" });
  await ask("GET /suno/fetch/{id}", { path: "/suno/fetch/none", status: 400 });
});

test("refusals have the form of the path: keys that nobody has, and bodies that say nothing", async () => {
  for (const { name, path, method, operation } of operationsOf(measure.document)) {
    if (path.startsWith("/api/") || operation.security.length === 0) continue;
    const filled = path
      .replace("{mode}", "mj-fast")
      .replace("{kind}", "imagine")
      .replace("{action}", "lyrics")
      .replace("{model}", "text-embedding-3-small")
      .replace(/\{\w+\}/g, "17");
    const body = method === "POST" ? {} : undefined;
    const forms: Texts[] = path === "/v1/models" ? [{}, { "x-goog-api-key": "sk-none" }] : [{}];
    for (const form of forms) {
      const headers = { authorization: path.startsWith("/pg/") ? "" : "Bearer sk-none", ...form };
      await ask(name, { path: filled, body, headers, status: 401 });
    }
    if (method === "POST" && !path.startsWith("/pg/") && !/notify|list-by|fetch/.test(path))
      await ask(name, { path: filled, body, status: 400 });
  }
});

test("no call of the relay is left out", () => {
  const all = operationsOf(measure.document).map(({ name }) => name);
  expect(all.filter((name) => !name.includes(" /api/") && !measure.seen.has(name))).toEqual([]);
});
