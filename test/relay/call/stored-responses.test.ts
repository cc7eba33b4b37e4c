// Responses that a provider stores: whoever goes on from one (`previous_response_id`) reaches the channel and the key that
// hold it, on every node and after a restart, or an error; another user's response is an unknown one.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import postgres from "postgres";
import { KEPT_SECONDS } from "../../../src/core/channels/remote-objects.ts";
import { jobsOf } from "../../../src/jobs/jobs.ts";
import { startTestApp } from "../../support/app.ts";
import type { TestApp } from "../../support/app.ts";
import { testClock } from "../../support/clock.ts";
import { gate, refuse, refuseUntil, sse, startFakeUpstream } from "../../support/fake-upstream.ts";
import type { FakeUpstream, Script } from "../../support/fake-upstream.ts";
import { startOperator } from "../../support/operator.ts";
import { startOwnPostgres } from "../../support/own-postgres.ts";
import { createTestDatabase, DATABASE_KINDS } from "../../support/postgres.ts";
import { startServerProcess } from "../../support/server.ts";
import { errorOf, startGateway, until } from "../support.ts";
import type { Gateway, WireError } from "../support.ts";

const MODEL = "gpt-5.1";
const USAGE = { input_tokens: 20, output_tokens: 5, total_tokens: 25 };

const responseOf = (id: string) => ({
  id,
  object: "response",
  status: "completed",
  model: MODEL,
  output: [
    {
      type: "message",
      id: "msg_1",
      role: "assistant",
      status: "completed",
      content: [{ type: "output_text", text: "hi", annotations: [] }],
    },
  ],
  usage: USAGE,
});

/** The provider's answer with this id, in the form that was requested. */
function answered(id: string, isStream: boolean): Script {
  const response = responseOf(id);
  if (!isStream) {
    return { headers: { "content-type": "application/json" }, steps: [JSON.stringify(response)] };
  }
  const created = { type: "response.created", response: { ...response, status: "in_progress", output: [] } };
  const delta = { type: "response.output_text.delta", item_id: "msg_1", delta: "hi" };
  return {
    headers: { "content-type": "text/event-stream" },
    steps: [created, delta, { type: "response.completed", response }].map(sse),
  };
}

interface Asked {
  status: number;
  text: string;
  error: WireError["error"] | undefined;
}

async function ask(url: string, key: string, body: Record<string, unknown>): Promise<Asked> {
  const response = await fetch(`${url}/v1/responses`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", "accept-language": "en" },
    body: JSON.stringify({ model: MODEL, input: "hi", ...body }),
  });
  const text = await response.text();
  return {
    status: response.status,
    text,
    error: response.ok ? undefined : (JSON.parse(text) as WireError).error,
  };
}

const keysAsked = (upstream: FakeUpstream): string[] =>
  upstream.requests.map(({ headers }) => String(headers["authorization"]).slice("Bearer ".length));

let made = 0;

/** Every answer gets an id of its own. */
const numbered = (request: { json(): Record<string, unknown> }): Script =>
  answered(`resp_${++made}`, request.json()["stream"] === true);

const idIn = ({ text }: Asked): string => /resp_\d+/.exec(text)?.[0] ?? "";

for (const database of DATABASE_KINDS) {
  describe(`on ${database}`, () => {
    const clock = testClock();
    let g: Gateway;
    let alone: number;

    beforeAll(async () => {
      g = await startGateway({
        database,
        clock,
        channel: { type: 1, models: MODEL, key: "one\ntwo\nthree" },
      });
      alone = await g.app.createChannel({ type: 1, baseUrl: g.upstream.url, models: MODEL, key: "alone" });
      await g.setOption("SelfUseModeEnabled", "true");
    });
    afterAll(() => g.close());
    beforeEach(() => {
      g.upstream.reset();
      g.upstream.always(numbered);
    });

    const rows = () => g.app.deps.db.orm.select().from(g.app.deps.db.t.remoteObjects);
    const create = async (body: Record<string, unknown> = {}) => {
      const created = await ask(g.app.url, g.key, body);
      expect(created.status).toBe(200);
      return { id: idIn(created), key: keysAsked(g.upstream).at(-1) ?? "" };
    };
    const goOn = (id: string, key = g.key, more: Record<string, unknown> = {}) =>
      ask(g.app.url, key, { previous_response_id: id, ...more });

    /** A response at an account of its own: a channel with these keys that the first answer came from. */
    async function storedAt(model: string, key: string): Promise<{ id: string; channelId: number }> {
      const id = `resp_${model}`;
      const channelId = await g.app.createChannel({ type: 1, baseUrl: g.upstream.url, models: model, key });
      g.upstream.script(answered(id, false));
      expect((await ask(g.app.url, g.key, { model })).status).toBe(200);
      // Others serve the model as well: they must never be asked.
      await g.app.createChannel({ type: 1, baseUrl: g.upstream.url, models: model, key: "elsewhere" });
      g.upstream.reset();
      g.upstream.always(numbered);
      return { id, channelId };
    }

    test("channel and key that made a response get what goes on from it, streamed or not", async () => {
      for (const stream of [false, true]) {
        const homes: { id: string; key: string }[] = [];
        for (let i = 0; i < 8; i++) homes.push(await create({ stream }));
        expect(new Set(homes.map(({ key }) => key))).toEqual(new Set(["one", "two", "three", "alone"]));
        for (const { id, key } of homes) {
          expect((await goOn(id, g.key, { stream: !stream })).status).toBe(200);
          expect(keysAsked(g.upstream).at(-1)).toBe(key);
        }
      }
    });

    test("a key is found wherever it stands in its list now, and by a compaction as well", async () => {
      const { id, channelId } = await storedAt("moved", "first\nsecond");
      await g.app.setKeys(channelId, "zero", "new", "first");
      expect((await goOn(id, g.key, { model: "moved" })).status).toBe(200);
      const body = { model: "moved", input: "hi", previous_response_id: id };
      expect((await g.post("/v1/responses/compact", body)).status).toBe(200);
      expect(
        (await g.post("/v1/responses/compact", { ...body, previous_response_id: "resp_x" })).status,
      ).toBe(404);
      expect(keysAsked(g.upstream)).toEqual(["first", "first"]);
    });

    test("a row says whose it is and where, and never the key", async () => {
      const { id, key } = await create();
      const [row] = (await rows()).filter(({ upstreamId }) => upstreamId === id);
      const nowSeconds = Math.floor(clock.nowMs() / 1000);
      expect(row).toEqual({
        userId: g.user.id,
        kind: "response",
        upstreamId: id,
        tokenId: g.tokenId,
        channelId: key === "alone" ? alone : g.channelId,
        keyHash: new Bun.CryptoHasher("sha256").update(key).digest("hex"),
        modelName: MODEL,
        tokenCount: 25,
        createdAt: nowSeconds,
        expiresAt: nowSeconds + KEPT_SECONDS,
        state: "completed",
      });
    });

    test("unknown, foreign, too old, of a channel or key that is gone: alike 404, and nobody is asked or charged", async () => {
      const stranger = await g.app.createUser({ quota: 1_000_000 });
      const { key: foreignKey } = await g.app.createToken(stranger.id);
      const gone = await storedAt("gone", "lost");
      const rekeyed = await storedAt("rekeyed", "old\nsecond");
      const elsewhere = await storedAt("elsewhere", "there");
      const { db, routing } = g.app.deps;
      const { channels, remoteObjects } = db.t;
      await db.orm.delete(channels).where(eq(channels.id, gone.channelId));
      await g.app.setKeys(rekeyed.channelId, "second", "third");
      await routing.refresh([gone.channelId, rekeyed.channelId]);
      const { id } = await create();
      const old = (await rows()).find(({ upstreamId }) => upstreamId === id);
      if (!old) throw new Error("no row");
      await db.orm.insert(remoteObjects).values({ ...old, upstreamId: "resp_old", expiresAt: old.createdAt });
      const asked = g.upstream.requests.length;
      const before = await g.balance();
      const refused = [
        await goOn("resp_nobody_knows"),
        await goOn(id, foreignKey),
        await goOn("resp_old"),
        await goOn(gone.id, g.key, { model: "gone" }),
        await goOn(rekeyed.id, g.key, { model: "rekeyed" }),
        // The account that has it does not serve this model.
        await goOn(elsewhere.id),
        await goOn(id, g.key, { previous_response_id: 7 }),
        await goOn(id, g.key, { previous_response_id: "resp_\u0000" }),
        await goOn("resp_nobody_knows", g.key, { stream: true }),
      ];
      const bare = refused.map(({ status, error }) => ({
        status,
        ...error,
        message: error?.message.replace(/\(request id: .*\)/, ""),
      }));
      expect(new Set(bare.map((each) => JSON.stringify(each)))).toEqual(
        new Set([
          JSON.stringify({
            status: 404,
            message: "No stored response with the id in previous_response_id was found ",
            type: "invalid_request_error",
            param: "previous_response_id",
            code: "previous_response_not_found",
          }),
        ]),
      );
      expect([g.upstream.requests.length, await g.balance()]).toEqual([asked, before]);
      // The right owner still goes on from it.
      expect((await goOn(id)).status).toBe(200);
    });

    test("a conversation at the provider is nobody's: 404 whatever its id, and nobody is asked", async () => {
      for (const conversation of ["conv_1", { id: "conv_1" }]) {
        const refused = await ask(g.app.url, g.key, { conversation });
        expect(refused).toMatchObject({
          status: 404,
          error: { code: "conversation_not_found", param: "conversation", type: "invalid_request_error" },
        });
      }
      expect(g.upstream.requests).toHaveLength(0);
    });

    test("a response that the provider was told not to store is not kept", async () => {
      const unstored = await create({ store: false });
      expect((await goOn(unstored.id)).status).toBe(404);
      const channelOf = await g.app.createChannel({
        type: 1,
        baseUrl: g.upstream.url,
        models: "overridden",
        paramOverride: '{"store":false}',
      });
      await ask(g.app.url, g.key, { model: "overridden" });
      expect((await rows()).filter(({ channelId }) => channelId === channelOf)).toEqual([]);
    });

    test("a channel that is switched off is an error, not a reason to ask another one", async () => {
      const { id, channelId } = await storedAt("off", "only");
      const { db, routing } = g.app.deps;
      for (const status of [2, 3]) {
        await db.orm.update(db.t.channels).set({ status }).where(eq(db.t.channels.id, channelId));
        await routing.refresh([channelId]);
        const refused = await goOn(id, g.key, { model: "off" });
        expect([refused.status, refused.error?.code]).toEqual([503, "previous_response_unavailable"]);
      }
      expect(g.upstream.requests).toHaveLength(0);
      await db.orm.update(db.t.channels).set({ status: 1 }).where(eq(db.t.channels.id, channelId));
      await routing.refresh([channelId]);
      expect((await goOn(id, g.key, { model: "off" })).status).toBe(200);
      expect(keysAsked(g.upstream)).toEqual(["only"]);
    });

    test.each([
      ["a lone key", "limited-lone", "only"],
      ["one of several keys", "limited-several", "first\nsecond"],
    ])("an account that asked for patience, with %s, is a 429 that says how long", async (_, model, key) => {
      const { id } = await storedAt(model, key);
      g.upstream.script(refuseUntil(40));
      const limited = await goOn(id, g.key, { model });
      expect(limited.status).toBe(429);
      const asked = g.upstream.requests.length;
      const response = await g.post("/v1/responses", { model, input: "hi", previous_response_id: id });
      expect([response.status, response.headers.get("retry-after")]).toEqual([429, "40"]);
      expect((await errorOf(response)).code).toBe("previous_response_unavailable");
      expect(g.upstream.requests).toHaveLength(asked);
      clock.advance(40_000);
      expect((await goOn(id, g.key, { model })).status).toBe(200);
    });

    test("an account that is down fails the call, and rests as for every other call", async () => {
      const { id } = await storedAt("down", "only");
      g.upstream.script(...[500, 500, 500].map((status) => refuse(status)));
      for (let i = 0; i < 3; i++) expect((await goOn(id, g.key, { model: "down" })).status).toBe(500);
      expect(keysAsked(g.upstream)).toEqual(["only", "only", "only"]);
      const refused = await goOn(id, g.key, { model: "down" });
      expect([refused.status, refused.error?.code]).toEqual([503, "previous_response_unavailable"]);
      clock.advance(5000);
      expect((await goOn(id, g.key, { model: "down" })).status).toBe(200);
      expect(keysAsked(g.upstream)).toEqual(["only", "only", "only", "only"]);
    });

    test("a deleted user leaves no rows, and the clean-up takes what is too old", async () => {
      const root = await g.app.createUser({ role: 100 });
      const { db } = g.app.deps;
      const of = async (userId: number) => (await rows()).filter((row) => row.userId === userId).length;
      for (const path of ["/api/user/self", "/api/user/ID"]) {
        const user = await g.app.createUser({ quota: 1_000_000 });
        const { key } = await g.app.createToken(user.id);
        expect((await ask(g.app.url, key, {})).status).toBe(200);
        expect(await of(user.id)).toBe(1);
        const isSelf = path.endsWith("self");
        await g.app.call("DELETE", path.replace("ID", String(user.id)), undefined, isSelf ? user : root);
        expect(await of(user.id)).toBe(0);
      }
      const { id } = await create();
      const { remoteObjects } = db.t;
      await db.orm.update(remoteObjects).set({ expiresAt: 1 }).where(eq(remoteObjects.upstreamId, id));
      const young = (await rows()).filter(({ expiresAt }) => expiresAt * 1000 > clock.nowMs());
      expect(young.length).toBeLessThan((await rows()).length);
      const job = jobsOf(g.app.deps, g.app.services.gateway.watch, () => Promise.resolve()).find(
        ({ name }) => name === "remote-object-purge",
      );
      await job?.run();
      expect(await rows()).toEqual(young);
    });
  });
}

describe("two nodes", () => {
  let upstream: FakeUpstream;
  let nodes: TestApp[];
  let drop: () => Promise<void>;
  let key: string;

  beforeAll(async () => {
    upstream = await startFakeUpstream();
    const database = await createTestDatabase("postgres");
    drop = () => database.drop();
    const env = { DATABASE_URL: database.databaseUrl ?? "", ENCRYPTION_KEY: "one key for both nodes" };
    const first = await startTestApp({ env });
    for (const id of ["one", "two\nthree"])
      await first.createChannel({ type: 1, baseUrl: upstream.url, models: MODEL, key: id });
    await first.deps.options.set("SelfUseModeEnabled", "true");
    nodes = [first, await startTestApp({ env })];
    const user = await first.createUser({ quota: 100_000_000 });
    key = (await first.createToken(user.id)).key;
    upstream.always(numbered);
  });
  afterAll(async () => {
    for (const node of nodes) await node.close();
    await drop();
    upstream.stop();
  });

  test("the other node finds a response as soon as its answer has arrived: 12 of 12, streamed and not", async () => {
    for (const stream of [false, true])
      for (let i = 0; i < 12; i++) {
        const [here, there] = i % 2 === 0 ? nodes : nodes.toReversed();
        const created = await ask(here?.url ?? "", key, { stream });
        const id = idIn(created);
        const home = keysAsked(upstream).at(-1);
        expect((await ask(there?.url ?? "", key, { previous_response_id: id })).status).toBe(200);
        expect(keysAsked(upstream).at(-1)).toBe(home);
      }
  });
});

describe("PostgreSQL goes away", () => {
  test("an answer goes on and its row follows; whoever asks meanwhile waits, and reaches no other channel", async () => {
    const own = await startOwnPostgres();
    await own.start();
    const upstream = await startFakeUpstream();
    const env = { DATABASE_URL: own.url, ENCRYPTION_KEY: "one key for both nodes" };
    const here = await startTestApp({ env });
    for (const id of ["one", "two"])
      await here.createChannel({ type: 1, baseUrl: upstream.url, models: MODEL, key: id });
    await here.deps.options.set("SelfUseModeEnabled", "true");
    const there = await startTestApp({ env });
    const user = await here.createUser({ quota: 100_000_000_000 });
    const { key } = await here.createToken(user.id);
    upstream.always(numbered);
    const known = await ask(here.url, key, {});
    expect((await ask(there.url, key, {})).status).toBe(200);
    const [home] = keysAsked(upstream);

    await own.stop("immediate");
    const late = await ask(here.url, key, { stream: true });
    expect(late.status).toBe(200);
    const homeOfLate = keysAsked(upstream).at(-1);
    const waiting = ask(there.url, key, { previous_response_id: idIn(known) });
    await own.start();
    expect((await waiting).status).toBe(200);
    expect(keysAsked(upstream).at(-1)).toBe(home ?? "?");
    // The journal of the node that answered brings in the late row.
    await here.deps.ledger.flush();
    expect((await ask(there.url, key, { previous_response_id: idIn(late) })).status).toBe(200);
    expect(keysAsked(upstream).at(-1)).toBe(homeOfLate ?? "?");
    await here.close();
    await there.close();
    await own.remove();
    upstream.stop();
  }, 60_000);
});

describe("the process ends", () => {
  test.each(DATABASE_KINDS)(
    "on %s it is killed right after its answers, and started again: every response is found where it was made",
    async (kind) => {
      const upstream = await startFakeUpstream();
      const database = await createTestDatabase(kind);
      const server = await startServerProcess({ DATABASE_URL: database.databaseUrl ?? "" });
      const operator = await startOperator(server, { base_url: upstream.url, models: MODEL });
      await operator.send("POST", "/api/channel/", {
        type: 1,
        name: "second",
        key: "second",
        base_url: upstream.url,
        models: MODEL,
      });
      await operator.send("PUT", "/api/option/", { key: "SelfUseModeEnabled", value: "true" });
      upstream.always(numbered);
      const ids: string[] = [];
      for (let i = 0; i < 4; i++)
        ids.push(idIn(await ask(server.url, operator.key, { stream: i % 2 === 0 })));
      const homes = keysAsked(upstream);
      expect(new Set(homes).size).toBe(2);
      await server.kill();
      await server.restart();
      for (const [i, home] of homes.entries()) {
        const { status } = await ask(server.url, operator.key, { previous_response_id: ids[i] });
        expect([status, keysAsked(upstream).at(-1)]).toEqual([200, home]);
      }
      await server.remove();
      await database.drop();
      upstream.stop();
    },
    60_000,
  );

  test("killed between the last frame and the row: no last bytes have left, and charge and row are there", async () => {
    const upstream = await startFakeUpstream();
    const database = await createTestDatabase("postgres");
    const server = await startServerProcess({ DATABASE_URL: database.databaseUrl ?? "" });
    const operator = await startOperator(server, { base_url: upstream.url, models: MODEL });
    await operator.send("PUT", "/api/option/", { key: "SelfUseModeEnabled", value: "true" });
    upstream.always(() => answered("resp_killed", true));
    const client = postgres(database.databaseUrl ?? "", { max: 2, onnotice: () => undefined });
    // The tables cannot take the row: it is in the journal, and the last bytes wait for it.
    const held = gate();
    const released = gate();
    const holding = client.begin(async (tx) => {
      await tx`lock table remote_objects in access exclusive mode`;
      held.open();
      await released.opened;
    });
    await held.opened;
    const text = received(server.url, operator.key);
    await until(async () => {
      const [row] = await client`select 1 from pg_locks where not granted
        and relation = 'remote_objects'::regclass`;
      return row;
    });
    await server.kill();
    expect(await text).toContain("response.output_text.delta");
    expect(await text).not.toContain("response.completed");
    released.open();
    await holding;
    await server.restart();
    const goOn = await ask(server.url, operator.key, { previous_response_id: "resp_killed", stream: true });
    expect(goOn.status).toBe(200);
    expect(upstream.requests).toHaveLength(2);
    await server.stop();
    expect(server.audit()).toMatchObject({ code: 0 });
    await client.end();
    await server.remove();
    await database.drop();
    upstream.stop();
  }, 60_000);
});

/** What arrives of a stream before its connection breaks. */
async function received(url: string, key: string): Promise<string> {
  let text = "";
  try {
    const response = await fetch(`${url}/v1/responses`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: MODEL, input: "hi", stream: true }),
    });
    const decoder = new TextDecoder();
    for await (const piece of response.body as ReadableStream<Uint8Array>)
      text += decoder.decode(piece, { stream: true });
  } catch {
    // The process was killed.
  }
  return text;
}
