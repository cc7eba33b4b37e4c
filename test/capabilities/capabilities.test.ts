// The capability suite: every channel type that is served, added through REST and called through the whole gateway with
// the official client, against a provider that speaks its wire form. Fails for a type without a fixture and for an
// operation that is declared and not answered.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { desc, eq } from "drizzle-orm";
import OpenAI from "openai";
import { audit } from "../../src/core/ledger/audit.ts";
import { listProviders } from "../../src/providers/catalog.ts";
import { CONVERSATIONS } from "../../src/providers/define.ts";
import type { Operation, ProviderRow } from "../../src/providers/define.ts";
import { LogType, Role } from "../../src/shared/enums.ts";
import { until } from "../relay/support.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { CUT, gate, startFakeUpstream } from "../support/fake-upstream.ts";
import type { FakeUpstream, RecordedRequest, Script, Step } from "../support/fake-upstream.ts";
import { OPERATION_CALLS } from "./calls.ts";
import type { Site } from "./calls.ts";
import { TEXT, TOOL, USAGE } from "./fixture.ts";
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
let site: Site;
let scene: Scene = { kind: "text", status: 200 };

beforeAll(async () => {
  // A client that leaves is not waited for: the suite asks once per type.
  app = await startTestApp({ drainMs: 1 });
  // Else a provider that says nothing would be read on without its client.
  await app.deps.options.set("relay.abandoned_read_seconds", "0");
  upstream = await startFakeUpstream();
  admin = await app.createUser({ role: Role.admin, quota: 1_000_000_000 });
  ({ key } = await app.createToken(admin.id));
  client = new OpenAI({ apiKey: key, baseURL: `${app.url}/v1`, maxRetries: 0 });
  site = { url: app.url, key, client };
  await app.deps.options.set("SelfUseModeEnabled", "true");
});
afterAll(async () => {
  await app.close();
  upstream.stop();
});
/** The books balance after everything that was asked of a type. */
async function expectBalance(): Promise<void> {
  await app.deps.ledger.flush();
  expect((await audit(app.deps.db)).differences).toEqual([]);
}

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

/** The answer up to its first words, and then what becomes of it. */
function broken(script: Script, ...end: Step[]): Script {
  const words = script.steps.findIndex((step) => typeof step !== "string" || step.includes("Hello"));
  return { ...script, steps: [...script.steps.slice(0, words + 1), ...end] };
}

/** A token that is exchanged is no part of the answer. */
const isExchange = (request: RecordedRequest): boolean =>
  request.url.split("?")[0]?.endsWith("/token") === true;

function play(fixture: Fixture, kind: Scene["kind"] = "text", status = 200): void {
  scene = { kind, status };
  upstream.reset();
  upstream.always((request) => fixture.answer(request, scene));
}

/** Every answer as `change` makes it; gives the request as soon as it has arrived. */
function playChanged(fixture: Fixture, change: (script: Script) => Script): Promise<RecordedRequest> {
  upstream.reset();
  const arrived = Promise.withResolvers<RecordedRequest>();
  upstream.always((request) => {
    const script = fixture.answer(request, { kind: "text", status: 200 });
    if (isExchange(request)) return script;
    arrived.resolve(request);
    return change(script);
  });
  return arrived.promise;
}

function expectAuthorised(fixture: Fixture): void {
  expect(upstream.requests.length).toBeGreaterThan(0);
  for (const request of upstream.requests)
    expect([request.url, fixture.isAuthorised(request)]).toEqual([request.url, true]);
}

async function lastCharge() {
  await app.deps.ledger.flush();
  const { logs } = app.deps.db.t;
  const [row] = await app.deps.db.orm
    .select()
    .from(logs)
    .where(eq(logs.type, LogType.consume))
    .orderBy(desc(logs.id))
    .limit(1);
  return row;
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

test("every served type has a fixture, and every fixture a type", () => {
  expect(SERVED.filter((row) => !FIXTURES.has(row.id)).map((row) => row.id)).toEqual([]);
  const ids = new Set(SERVED.map((row) => row.id));
  expect([...FIXTURES.keys()].filter((id) => !ids.has(id))).toEqual([]);
});

describe("types that nobody can be asked through any more", () => {
  const retired = listProviders().filter(
    (row) => row.status === "retired" || (row.status === "later" && row.tasks === undefined),
  );
  for (const row of retired) {
    test(`${row.id}, ${row.label.en}: the client reads why, by the model and by the channel, and nothing is sent`, async () => {
      upstream.reset();
      const model = `model-of-${row.id}`;
      const id = await app.createChannel({ type: row.id, baseUrl: upstream.url, models: model });
      const said =
        row.status === "retired"
          ? `${row.label.en} has been shut down`
          : `type ${row.label.en} are not served`;
      const callers = [
        client,
        new OpenAI({ apiKey: `${key}-${id}`, baseURL: `${app.url}/v1`, maxRetries: 0 }),
      ];
      for (const caller of callers) {
        const headers = { "accept-language": "en" };
        const error: unknown = await caller.chat.completions
          .create({ model, messages: HI }, { headers })
          .catch((caught: unknown) => caught);
        expect(error).toMatchObject({ status: 503, message: expect.stringContaining(said) as string });
      }
      expect(upstream.requests).toEqual([]);
      const added = await app.call<{ success: boolean }>(
        "POST",
        "/api/channel/",
        { type: row.id, name: "new", key: "k", models: model, group: "default" },
        admin,
      );
      expect(added.body.success).toBe(false);
    });
  }

  test("a channel that works goes before one that does not", async () => {
    const model = "shared-model";
    await app.createChannel({ type: 11, baseUrl: upstream.url, models: model, priority: 9 });
    await app.createChannel({ type: 1, baseUrl: upstream.url, models: model });
    const fixture = FIXTURES.get(1);
    if (!fixture) throw new Error("no fixture 1");
    play(fixture);
    expect(await OPERATION_CALLS.chat.whole(site, model)).toBe(TEXT);
  });
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
    afterAll(expectBalance);
    for (const operation of conversations) {
      describe(operation, () => {
        let model = "";
        let socket: ReturnType<NonNullable<Fixture["socket"]>> | undefined;
        beforeAll(async () => {
          socket = fixture.socket?.(() => scene);
          model = await addChannel(row, fixture, operation, socket?.url ?? upstream.url);
        });
        afterAll(() => socket?.stop());
        const { chat } = OPERATION_CALLS;

        for (const isStream of [false, true]) {
          test(`${isStream ? "streams" : "answers"}, authorised, and is paid by what the provider reports`, async () => {
            play(fixture);
            expect(await (isStream ? chat.streamed : chat.whole)?.(site, model)).toBe(TEXT);
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
              expect(upstream.requests.filter((request) => !isExchange(request))).toEqual([]);
              return;
            }
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
            for (const stream of [false, true]) {
              play(fixture, "error", status);
              const asked = client.chat.completions.create({ model, messages: HI, stream });
              const error = (await asked.then(
                () => ({}),
                (caught: unknown) => caught,
              )) as { status?: number; message?: string };
              // Our credentials are no matter of the client's.
              const shown = status === 401 ? 502 : status;
              expect([status, stream, error.status]).toEqual([status, stream, shown]);
              expect(error.message).not.toContain("127.0.0.1");
            }
          }
          expect((await lastCharge())?.id).toBe(before?.id);
        });

        test("a stream that breaks off in the middle is an error, and what was told is paid", async () => {
          const before = await lastCharge();
          scene = { kind: "cut", status: 200 };
          const door = gate();
          if (!socket) void playChanged(fixture, (script) => broken(script, door, CUT));
          const stream = await client.chat.completions.create({ model, messages: HI, stream: true });
          let told = "";
          const end: unknown = await (async () => {
            for await (const chunk of stream) {
              told += chunk.choices[0]?.delta.content ?? "";
              // Not before the first words are here: what breaks off earlier is no answer at all.
              if (told !== "") door.open();
            }
            return "ended as if it were whole";
          })().catch((error: unknown) => error);
          expect(end).toBeInstanceOf(OpenAI.APIError);
          expect(TEXT).toStartWith(told);
          expect(told).toStartWith("Hello");
          const charge = await lastCharge();
          expect(charge?.id).toBeGreaterThan(before?.id ?? 0);
          expect(charge).toMatchObject({ modelName: model, isStream: true });
          expect(charge?.completionTokens).toBeGreaterThan(0);
        });

        test("a client that leaves is noticed by the provider, before the answer and in the middle of it", async () => {
          let last = (await lastCharge())?.id ?? 0;
          /** The books are closed on the call: nothing of it reaches into the next one. */
          const settled = async () => {
            last = await until(async () => {
              const id = (await lastCharge())?.id ?? 0;
              return id > last ? id : undefined;
            });
          };
          const ask = (signal: AbortSignal) =>
            client.chat.completions.create({ model, messages: HI, stream: true }, { signal });
          const readSome = async (controller: AbortController) => {
            const stream = await ask(controller.signal);
            expect((await stream[Symbol.asyncIterator]().next()).done).toBe(false);
          };
          if (socket) {
            scene = { kind: "hang", status: 200 };
            const left = socket.left();
            const controller = new AbortController();
            await readSome(controller);
            controller.abort();
            await left;
            return settled();
          }
          const early = new AbortController();
          const first = playChanged(fixture, (script) => ({ ...script, before: "never" }));
          const asked = statusOf(ask(early.signal));
          const { closed } = await first;
          early.abort();
          await closed;
          expect(await asked).toBeUndefined();
          await settled();
          const door = gate();
          const late = new AbortController();
          const second = playChanged(fixture, (script) => broken(script, door));
          await readSome(late);
          const request = await second;
          late.abort();
          await request.closed;
          expect(request.aborted).toBe(true);
          door.open();
          return settled();
        });
      });
    }

    for (const operation of operations) {
      if (operation === "realtime") continue;
      const { whole, streamed, holds = TEXT } = OPERATION_CALLS[operation];
      // Chat was asked in all its forms above; over a socket it has no other.
      if (operation === "chat") continue;
      for (const [name, ask] of [
        ["answered", whole],
        ["streamed", streamed],
      ] as const) {
        if (!ask) continue;
        test(`${operation} is ${name} in its own form, authorised and charged`, async () => {
          play(fixture);
          const model = await addChannel(row, fixture, operation, upstream.url);
          const answer = await ask(site, model);
          if (holds === "picture") expect(answer).toContain(holds);
          else expect(answer).toBe(holds);
          expectAuthorised(fixture);
          expect(await lastCharge()).toMatchObject({ modelName: model });
        });
      }

      test(`${operation} refused with 401 is an error, and unpaid`, async () => {
        const model = await addChannel(row, fixture, operation, upstream.url);
        const before = await lastCharge();
        play(fixture, "error", 401);
        const error: unknown = await whole(site, model).catch((caught: unknown) => caught);
        const { status, message } = error as { status?: number; message: string };
        expect(status ?? Number(message.slice(0, 3))).toBe(502);
        expect((await lastCharge())?.id).toBe(before?.id);
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
