// The capability suite: every channel type that is served, added through REST and called through the whole gateway with
// the official client, against a provider that speaks its wire form. Fails for a type without a fixture and for an
// operation that is declared and not answered.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { audit } from "../../src/core/audit.ts";
import { listProviders } from "../../src/providers/catalog.ts";
import { CONVERSATIONS } from "../../src/providers/define.ts";
import type { Operation, ProviderRow } from "../../src/providers/define.ts";
import { Role } from "../../src/shared/enums.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { gate, startFakeUpstream } from "../support/fake-upstream.ts";
import type { FakeUpstream } from "../support/fake-upstream.ts";
import { TEXT, TOOL, USAGE, VECTOR } from "./fixture.ts";
import type { Fixture, Scene } from "./fixture.ts";
import { FIXTURES } from "./fixtures.ts";

const SERVED = listProviders().filter(
  (row) => row.status !== "later" && row.status !== "retired" && Object.keys(row.operations).length > 0,
);

let app: TestApp;
let upstream: FakeUpstream;
let admin: TestUser;
let key = "";
let client: OpenAI;
let scene: Scene = { kind: "text", status: 200 };

beforeAll(async () => {
  // A client that leaves is not waited for: the suite asks once per type.
  app = await startTestApp({ drainMs: 1 });
  upstream = await startFakeUpstream();
  admin = await app.createUser({ role: Role.admin, quota: 1_000_000_000 });
  ({ key } = await app.createToken(admin.id));
  client = new OpenAI({ apiKey: key, baseURL: `${app.url}/v1`, maxRetries: 0 });
  await app.deps.options.set("SelfUseModeEnabled", "true");
});
afterAll(async () => {
  await app.close();
  upstream.stop();
});
afterEach(async () => {
  await app.deps.ledger.flush();
  expect((await audit(app.deps.db)).differences).toEqual([]);
});

/** Adds a channel of the type over REST, under a name of the model that no other channel has. */
async function addChannel(
  row: ProviderRow,
  fixture: Fixture,
  operation: Operation,
  base: string,
): Promise<string> {
  const { models } = fixture;
  const model = models[operation as keyof typeof models] ?? models.any ?? models.chat ?? "some-model";
  const body = {
    type: row.id,
    name: `${row.owner} ${operation}`,
    key: fixture.key.replaceAll("{url}", base),
    base_url: fixture.baseUrl?.(base, operation) ?? base,
    other: fixture.other ?? "",
    models: model,
    group: "default",
    auto_ban: 0,
  };
  for (const { id } of await app.deps.db.orm.select().from(app.deps.db.t.channels))
    await app.call("DELETE", `/api/channel/${id}`, undefined, admin);
  const added = await app.call<{ success: boolean; message: string }>("POST", "/api/channel/", body, admin);
  expect(added.body).toMatchObject({ success: true, message: "" });
  return model;
}

function play(fixture: Fixture, kind: Scene["kind"] = "text", status = 200): void {
  scene = { kind, status };
  upstream.reset();
  upstream.always((request) => fixture.answer(request, scene));
}

function expectAuthorised(fixture: Fixture): void {
  expect(upstream.requests.length).toBeGreaterThan(0);
  for (const request of upstream.requests)
    expect([request.url, fixture.isAuthorised(request)]).toEqual([request.url, true]);
}

async function lastCharge() {
  await app.deps.ledger.flush();
  const rows = await app.deps.db.orm.select().from(app.deps.db.t.logs).orderBy(app.deps.db.t.logs.id);
  return rows.findLast((row) => row.type === 2);
}

const HI = [{ role: "user" as const, content: "hi" }];
const TOOLS = [
  {
    type: "function" as const,
    function: { name: TOOL.name, parameters: { type: "object", properties: { city: { type: "string" } } } },
  },
];

async function statusOf(promise: Promise<unknown>): Promise<number | undefined> {
  return promise.then(
    () => 200,
    (error: { status?: number }) => error.status,
  );
}

function post(path: string, body: unknown): Promise<Response> {
  const form = body instanceof FormData;
  return fetch(app.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, ...(form ? {} : { "content-type": "application/json" }) },
    body: form ? body : JSON.stringify(body),
  });
}

function sound(model: string): FormData {
  const form = new FormData();
  form.set("model", model);
  form.set("file", new Blob([new Uint8Array(64)], { type: "audio/wav" }), "a.wav");
  return form;
}

function picture(model: string): FormData {
  const form = new FormData();
  form.set("model", model);
  form.set("prompt", "a square");
  form.set("image", new Blob([new Uint8Array(64)], { type: "image/png" }), "a.png");
  return form;
}

/** One call of each operation beside the conversations, and what its answer must hold. */
const CALLS: Readonly<
  Partial<Record<Operation, (model: string) => [path: string, body: unknown, holds: string]>>
> = {
  completions: (model) => ["/v1/completions", { model, prompt: "hi" }, TEXT],
  embeddings: (model) => ["/v1/embeddings", { model, input: ["hi"] }, JSON.stringify(VECTOR).slice(1, -1)],
  moderations: (model) => ["/v1/moderations", { model, input: "hi" }, '"flagged":false'],
  "image-generations": (model) => ["/v1/images/generations", { model, prompt: "a square" }, '"data":[{'],
  "image-edits": (model) => ["/v1/images/edits", picture(model), '"data":[{'],
  speech: (model) => ["/v1/audio/speech", { model, input: "hi", voice: "alloy" }, "sound"],
  transcriptions: (model) => ["/v1/audio/transcriptions", sound(model), TEXT],
  translations: (model) => ["/v1/audio/translations", sound(model), TEXT],
  rerank: (model) => ["/v1/rerank", { model, query: "hi", documents: ["a", "b"] }, '"relevance_score":0.9'],
};

test("every served type has a fixture, and every fixture a type", () => {
  expect(SERVED.filter((row) => !FIXTURES.has(row.id)).map((row) => row.id)).toEqual([]);
  const ids = new Set(SERVED.map((row) => row.id));
  expect([...FIXTURES.keys()].filter((id) => !ids.has(id))).toEqual([]);
});

test("retired types answer with a clear sentence", async () => {
  const model = "chat-bison-001";
  await app.createChannel({ type: 11, baseUrl: upstream.url, models: model });
  const error = await client.chat.completions
    .create({ model, messages: HI })
    .catch((caught: unknown) => caught);
  expect(error).toMatchObject({ status: 503 });
});

for (const row of SERVED) {
  const fixture = FIXTURES.get(row.id);
  if (!fixture) continue;
  const operations = Object.keys(row.operations) as Operation[];
  // Types that speak several dialects are asked in each of them, chosen by the model.
  const conversations = operations.filter(
    (operation) => CONVERSATIONS.includes(operation) && !(row.hasFullUrl && operation !== "chat"),
  );

  describe(`type ${row.id}, ${row.label.en}`, () => {
    for (const operation of conversations) {
      describe(operation, () => {
        let model = "";
        let socket: ReturnType<NonNullable<Fixture["socket"]>> | undefined;
        beforeAll(async () => {
          socket = fixture.socket?.(() => scene);
          model = await addChannel(row, fixture, operation, socket?.url ?? upstream.url);
        });
        afterAll(() => socket?.stop());

        const ask = (stream: boolean): Promise<string> =>
          stream
            ? client.chat.completions
                .stream({ model, messages: HI })
                .finalChatCompletion()
                .then((answer) => answer.choices[0]?.message.content ?? "")
            : client.chat.completions
                .create({ model, messages: HI })
                .then((answer) => answer.choices[0]?.message.content ?? "");

        for (const isStream of [false, true]) {
          test(`${isStream ? "streams" : "answers"}, authorised, and is paid by what the provider reports`, async () => {
            play(fixture);
            expect(await ask(isStream)).toBe(TEXT);
            if (!socket) expectAuthorised(fixture);
            const charge = await lastCharge();
            expect(charge).toMatchObject({ modelName: model, isStream });
            if (fixture.reportsUsage)
              expect(charge).toMatchObject({
                promptTokens: USAGE.prompt,
                completionTokens: USAGE.completion,
              });
            else expect(JSON.parse(charge?.other ?? "{}")).toMatchObject({ estimated: true });
          });
        }

        test(
          fixture.hasTools
            ? "calls tools, whole and streamed"
            : "refuses tools by name, before anything is asked",
          async () => {
            play(fixture, "tool");
            const asked = { model, messages: HI, tools: TOOLS };
            if (!fixture.hasTools) {
              const error = await client.chat.completions.create(asked).catch((caught: unknown) => caught);
              expect(error).toMatchObject({ status: 400, param: "tools" });
              expect(upstream.requests.filter((request) => !request.url.includes("token"))).toEqual([]);
              return;
            }
            // Responses answers of the fake hold no tool: the pairs suite covers them.
            if (operation === "responses") return expect(model).toBe("gpt-5-codex");
            const whole = await client.chat.completions.create(asked);
            const streamed = await client.chat.completions.stream(asked).finalChatCompletion();
            for (const answer of [whole, streamed]) {
              const [call] = answer.choices[0]?.message.tool_calls ?? [];
              expect(call).toMatchObject({ type: "function", function: { name: TOOL.name } });
              expect(JSON.parse(call?.type === "function" ? call.function.arguments : "{}")).toEqual(
                TOOL.input,
              );
              expect(answer.choices[0]?.finish_reason).toBe("tool_calls");
            }
          },
        );

        test("an error becomes a proper one, unpaid, without the provider's address", async () => {
          const before = await lastCharge();
          for (const status of [401, 429, 500]) {
            // Spark has no answer of its own for a bad key: the socket is not opened.
            if (socket && status === 401) continue;
            play(fixture, "error", status);
            const got = await statusOf(client.chat.completions.create({ model, messages: HI }));
            // A socket has no status: a broken provider is a bad gateway.
            expect([status, got]).toEqual([status, socket && status === 500 ? 502 : status]);
          }
          expect((await lastCharge())?.id).toBe(before?.id);
        });

        test("a client that leaves is noticed by the provider", async () => {
          if (socket) return expect(socket.seen.some((line) => line.includes("signed"))).toBe(true);
          play(fixture);
          const door = gate();
          const arrived = Promise.withResolvers<{ closed: Promise<void> }>();
          upstream.always((request) => {
            const script = fixture.answer(request, { kind: "text", status: 200 });
            if (request.url.split("?")[0]?.endsWith("token") === true) return script;
            arrived.resolve({ closed: request.closed });
            return { ...script, before: door };
          });
          const controller = new AbortController();
          const asked = client.chat.completions.create(
            { model, messages: HI, stream: true },
            { signal: controller.signal },
          );
          asked.catch(() => {});
          const { closed } = await arrived.promise;
          controller.abort();
          await closed;
          door.open();
          expect(await statusOf(asked)).toBeUndefined();
        });
      });
    }

    for (const operation of operations) {
      const call = CALLS[operation];
      if (!call) continue;
      test(`${operation} is answered`, async () => {
        play(fixture);
        const model = await addChannel(row, fixture, operation, upstream.url);
        const [path, body, holds] = call(model);
        const response = await post(path, body);
        const text = await response.text();
        expect([response.status, text]).toEqual([200, expect.stringContaining(holds)]);
        expectAuthorised(fixture);
        expect(await lastCharge()).toMatchObject({ modelName: model });
      });
    }

    if (operations.includes("realtime")) {
      test("realtime is answered", async () => {
        const server = Bun.serve({
          port: 0,
          hostname: "127.0.0.1",
          fetch: (request, self) =>
            self.upgrade(request) ? undefined : new Response("no socket", { status: 400 }),
          websocket: {
            open: (socket) =>
              void socket.send(JSON.stringify({ type: "session.created", session: { id: "s" } })),
            message: () => {},
          },
        });
        const model = await addChannel(row, fixture, "realtime", `http://127.0.0.1:${server.port}`);
        const protocols = ["realtime", `openai-insecure-api-key.${key}`];
        const socket = new WebSocket(
          `${app.url.replace("http", "ws")}/v1/realtime?model=${model}`,
          protocols,
        );
        const first = await new Promise<string>((resolve) => {
          socket.onmessage = (event: MessageEvent) => resolve(String(event.data));
          socket.onclose = (event) => resolve(`closed ${event.code} ${event.reason}`);
        });
        socket.close();
        await server.stop(true);
        expect(first).toContain("session.created");
      });
    }
  });
}
