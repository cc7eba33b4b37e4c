// Clients that leave before anything of the answer was passed on: the upstream bills what it was asked, so it is read on
// for a bounded time and its report is charged. Runs on both databases; after every test the books are audited.
// Refuses to retry for somebody who is gone, and to charge for an upstream's error.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { audit } from "../../../src/core/ledger/audit.ts";
import {
  answer,
  gate,
  HANG,
  hangBeforeHeaders,
  json,
  refuse,
  sse,
  stream,
} from "../../support/fake-upstream.ts";
import type { Gate, RecordedRequest, Script } from "../../support/fake-upstream.ts";
import { FRAMES, script } from "./begun-streams.ts";
import { HI, MODEL, startGateway, until } from "../support.ts";
import type { Gateway, LogLine } from "../support.ts";

const PICTURE = "dall-e-3";
const SPEECH = "tts-1";
const EMBEDDING = "text-embedding-3-small";
const LATE: Record<string, unknown> = { prompt_tokens: 9000, completion_tokens: 500, total_tokens: 9500 };
/** At 0.075 for a token of input and four times that for one of output. */
const LATE_QUOTA = Math.round((9000 + 500 * 4) * 0.075);

for (const database of ["sqlite", "postgres"] as const) {
  describe(`clients that leave, on ${database}`, () => {
    let g: Gateway;
    beforeAll(async () => {
      g = await startGateway({
        database,
        quota: 100_000_000,
        // What has not begun is not cut by the patience for streams that have.
        drainMs: 1,
        channel: { models: [MODEL, PICTURE, SPEECH, EMBEDDING].join(",") },
      });
      await g.setOption("SelfUseModeEnabled", "true");
    });
    afterAll(() => g.close());
    beforeEach(async () => {
      g.upstream.reset();
      await g.setOption("relay.abandoned_read_seconds", "120");
      // The first frame of a stream that says nothing goes with the first sign of life.
      await g.setOption("general_setting.ping_interval_seconds", "1");
    });
    afterEach(async () => {
      await until(async () =>
        (await g.app.deps.accounts.user(g.user.id))?.reserved === 0 ? true : undefined,
      );
      await g.app.deps.ledger.flush();
      expect((await audit(g.app.deps.db)).differences).toEqual([]);
    });

    /** Makes a call and leaves it when the upstream has it, or when a text has come; the server knows when this resolves. */
    async function leave(path: string, body: unknown, seen?: string): Promise<RecordedRequest> {
      const leaver = new AbortController();
      const called = fetch(g.app.url + path, {
        method: "POST",
        headers: {
          authorization: `Bearer ${g.key}`,
          ...(body instanceof FormData ? {} : { "content-type": "application/json" }),
        },
        body: body instanceof FormData ? body : JSON.stringify(body),
        signal: leaver.signal,
      });
      const request = await g.upstream.request(0);
      if (seen !== undefined) {
        const reader = ((await called).body as ReadableStream<Uint8Array>).getReader();
        let text = "";
        while (!text.includes(seen)) text += new TextDecoder().decode((await reader.read()).value);
      }
      leaver.abort();
      await called.then(
        (response) => response.text().catch(() => ""),
        () => "",
      );
      // What arrives behind the goodbye is looked at behind it.
      for (let i = 0; i < 5; i++) await g.app.call("GET", "/api/status");
      return request;
    }

    const chat = { model: MODEL, messages: HI };
    const late = (door: Gate, script: Script): Script => ({ ...script, before: door });
    const charges = async (): Promise<LogLine[]> => (await g.logs()).filter((row) => row.type === 2);
    const reserved = async (): Promise<number> =>
      (await g.app.deps.accounts.user(g.user.id))?.reserved ?? Number.NaN;

    /** Leaves, lets the upstream go on, and gives the one charge of it. */
    async function left(
      path: string,
      body: unknown,
      script: (door: Gate) => Script,
      seen?: string,
    ): Promise<{ charge: LogLine; request: RecordedRequest }> {
      const door = gate();
      g.upstream.script(script(door));
      let request: RecordedRequest | undefined;
      const before = await g.balance();
      const charge = await g.charged(async () => {
        request = await leave(path, body, seen);
        expect(request.aborted).toBe(false);
        expect(await charges()).toHaveLength(before.requests);
        door.open();
      });
      expect(before.quota - (await g.balance()).quota).toBe(charge.quota);
      expect(g.upstream.requests).toHaveLength(1);
      return { charge, request: request as RecordedRequest };
    }

    test.each([
      ["chat completions", "/v1/chat/completions", chat],
      ["Messages", "/v1/messages", { ...chat, max_tokens: 4000 }],
      ["Responses", "/v1/responses", { model: MODEL, input: "hi" }],
      ["Gemini", `/v1beta/models/${MODEL}:generateContent`, { contents: [{ parts: [{ text: "hi" }] }] }],
    ])(
      "an unstreamed call, %s: what the upstream reports when it answers is charged",
      async (_, path, body) => {
        const script =
          path === "/v1/responses"
            ? { headers: { "content-type": "application/json" }, steps: [JSON.stringify(RESPONSE)] }
            : answer("late", { usage: LATE });
        const { charge, request } = await left(path, body, (door) => late(door, script));
        expect(charge).toMatchObject({ promptTokens: 9000, completionTokens: 500, quota: LATE_QUOTA });
        expect(charge.other).toMatchObject({
          end_reason: "client-gone",
          attempts: [{ channel: g.channelId, code: "ok" }],
        });
        expect(charge.other["estimated"]).toBeUndefined();
        expect(request.aborted).toBe(false);
      },
    );

    test("its amount stays held back until it is settled", async () => {
      const door = gate();
      g.upstream.script(late(door, answer("late", { usage: LATE })));
      await g.charged(async () => {
        await leave("/v1/chat/completions", { ...chat, max_tokens: 2000 });
        expect(await reserved()).toBeGreaterThan(0);
        door.open();
      });
    });

    test("no answer within the time: the prompt is charged as an estimate, and the upstream hung up on", async () => {
      await g.setOption("relay.abandoned_read_seconds", "1");
      const words = "Please answer this at some length. ".repeat(100);
      g.upstream.script(hangBeforeHeaders());
      let request: RecordedRequest | undefined;
      const charge = await g.charged(async () => {
        request = await leave("/v1/chat/completions", {
          model: MODEL,
          messages: [{ role: "user", content: words }],
        });
      });
      await request?.closed;
      expect(request?.aborted).toBe(true);
      expect(charge.promptTokens).toBeGreaterThan(600);
      expect(charge).toMatchObject({ completionTokens: 0, quota: Math.round(charge.promptTokens * 0.075) });
      expect(charge.other).toMatchObject({
        end_reason: "abandoned",
        estimated: true,
        note: "note_client_gone",
        attempts: [{ channel: g.channelId, code: "client_gone" }],
      });
      expect(g.upstream.requests).toHaveLength(1);
    });

    test("half an answer within the time is no answer", async () => {
      await g.setOption("relay.abandoned_read_seconds", "1");
      g.upstream.script({ headers: { "content-type": "application/json" }, steps: ['{"choices":[', HANG] });
      const charge = await g.charged(() => leave("/v1/chat/completions", chat));
      expect(charge.other).toMatchObject({ end_reason: "abandoned", estimated: true });
    });

    test("no reading on where the operator wants none", async () => {
      await g.setOption("relay.abandoned_read_seconds", "0");
      g.upstream.script(hangBeforeHeaders());
      const charge = await g.charged(() => leave("/v1/chat/completions", chat));
      expect(charge.other).toMatchObject({ end_reason: "abandoned", estimated: true });
    });

    test("an upstream that answers with an error is paid nothing, and nobody else is asked", async () => {
      const second = await g.app.createChannel({ baseUrl: g.upstream.url, models: MODEL });
      const before = await g.balance();
      const door = gate();
      g.upstream.script(late(door, refuse(500)));
      await leave("/v1/chat/completions", chat);
      door.open();
      await until(async () => ((await reserved()) === 0 ? true : undefined));
      const errors = await until(async () => {
        const rows = (await g.logs()).filter((row) => row.type === 5);
        return rows.length > 0 ? rows : undefined;
      });
      expect(errors.at(-1)?.other).toMatchObject({ status_code: 500 });
      expect(await g.balance()).toEqual(before);
      expect(g.upstream.requests).toHaveLength(1);
      const { channels } = g.app.deps.db.t;
      const { eq } = await import("drizzle-orm");
      await g.app.deps.db.orm.delete(channels).where(eq(channels.id, second));
      await g.app.deps.routing.reload();
    });

    test.each<[string, string, object, Script]>([
      ["has no Responses API", "/v1/responses", { input: "hi" }, json({ detail: "Not Found" }, 404)],
      [
        "cannot read a proof",
        "/v1/responses",
        { input: [{ type: "reasoning", id: "rs_1", summary: [], encrypted_content: "x" }], store: false },
        json({ error: { message: "no", code: "invalid_encrypted_content" } }, 400),
      ],
    ])("an upstream that %s bills nothing, and is not asked again", async (_, path, body, script) => {
      const before = await g.balance();
      const door = gate();
      g.upstream.script(late(door, script));
      await leave(path, { model: MODEL, ...body });
      door.open();
      await until(async () => ((await reserved()) === 0 ? true : undefined));
      expect(await g.balance()).toEqual(before);
      expect(g.upstream.requests).toHaveLength(1);
    });

    test("a stream that has not begun is read on and charged what it reports", async () => {
      const body = { ...chat, stream: true };
      const { charge } = await left("/v1/chat/completions", body, (door) =>
        late(door, stream(["Hello"], { usage: LATE })),
      );
      expect(charge).toMatchObject({ promptTokens: 9000, completionTokens: 500, quota: LATE_QUOTA });
      expect(charge.other).toMatchObject({ end_reason: "client-gone" });
    });

    test("a stream whose first frame says nothing is read on and charged what it reports", async () => {
      const body = { ...chat, stream: true };
      const script = (door: Gate): Script => stream([door, "Hello"], { usage: LATE });
      const { charge } = await left("/v1/chat/completions", body, script, '"role":"assistant"');
      expect(charge).toMatchObject({ promptTokens: 9000, completionTokens: 500, quota: LATE_QUOTA });
      expect(charge.other).toMatchObject({ end_reason: "client-gone" });
    });

    test("a stream whose first frame waits for content is read on alike, and charged what it reports", async () => {
      const body = { ...chat, stream: true };
      const { charge } = await left("/v1/chat/completions", body, (door) =>
        stream([door, "Hello"], { usage: LATE }),
      );
      expect(charge).toMatchObject({ promptTokens: 9000, completionTokens: 500, quota: LATE_QUOTA });
      expect(charge.other).toMatchObject({ end_reason: "client-gone" });
    });

    test("a stream whose first frame waits, and behind which nothing comes, is charged its prompt", async () => {
      await g.setOption("relay.abandoned_read_seconds", "1");
      g.upstream.script(stream([HANG]));
      const charge = await g.charged(() => leave("/v1/chat/completions", { ...chat, stream: true }));
      expect(charge.other).toMatchObject({ end_reason: "abandoned", estimated: true });
      expect(charge).toMatchObject({ completionTokens: 0 });
      expect(charge.promptTokens).toBeGreaterThan(0);
    });

    test("what a waiting frame said of its usage is charged, not an estimate of it", async () => {
      await g.setOption("relay.abandoned_read_seconds", "1");
      await g.setOption("general_setting.ping_interval_seconds", "15");
      g.upstream.script(script([...FRAMES["openai-chat"].slice(0, 1), HANG]));
      const charge = await g.charged(() => leave("/v1/chat/completions", { ...chat, stream: true }));
      expect(charge.other).toMatchObject({ end_reason: "abandoned", cache_tokens: 600 });
      expect(charge).toMatchObject({ promptTokens: 1000, completionTokens: 0 });
    });

    test("a stream that never begins is charged its prompt when the time is over", async () => {
      await g.setOption("relay.abandoned_read_seconds", "1");
      g.upstream.script(hangBeforeHeaders());
      const body = { ...chat, stream: true };
      const before = await g.charged(() => leave("/v1/chat/completions", body));
      g.upstream.reset();
      g.upstream.script(stream([HANG]));
      const behind = await g.charged(() => leave("/v1/chat/completions", body, '"role":"assistant"'));
      for (const charge of [before, behind]) {
        expect(charge.other).toMatchObject({ end_reason: "abandoned", estimated: true });
        expect(charge.promptTokens).toBeGreaterThan(0);
        expect(charge.completionTokens).toBe(0);
      }
    });

    test("a stream that has not begun and ends in an error is paid nothing", async () => {
      const error = new TextEncoder().encode(sse({ error: { message: "overloaded", type: "server_error" } }));
      const script = (door: Gate): Script => stream([door, error, HANG]);
      const body = { ...chat, stream: true };
      const { charge } = await left("/v1/chat/completions", body, script, '"role":"assistant"');
      expect(charge).toMatchObject({ quota: 0, promptTokens: 0 });
      expect(charge.other).toMatchObject({ end_reason: "error-in-stream" });
    });

    test("an upstream that streams although a whole answer was asked for is read on alike", async () => {
      const { charge } = await left("/v1/chat/completions", chat, (door) =>
        late(door, stream(["Hello"], { usage: LATE })),
      );
      expect(charge).toMatchObject({ promptTokens: 9000, completionTokens: 500, quota: LATE_QUOTA });
    });

    test("pictures, speech and embeddings are read on as well", async () => {
      const picture = { model: PICTURE, prompt: "a boat", n: 1, size: "1024x1024" };
      const drawn = { created: 1, data: [{ url: "https://example.com/1.png" }] };
      const whole = (value: unknown): Script => ({
        headers: { "content-type": "application/json" },
        steps: [JSON.stringify(value)],
      });
      const { charge: pictures } = await left("/v1/images/generations", picture, (door) =>
        late(door, whole(drawn)),
      );
      expect(pictures.quota).toBeGreaterThan(0);
      g.upstream.reset();
      const speech = { model: SPEECH, input: "Hello there", voice: "alloy" };
      const { charge: spoken } = await left("/v1/audio/speech", speech, (door) =>
        late(door, { headers: { "content-type": "audio/mpeg" }, steps: ["sound", "more sound"] }),
      );
      expect(spoken.quota).toBeGreaterThan(0);
      g.upstream.reset();
      const { charge: embedded } = await left("/v1/embeddings", { model: EMBEDDING, input: "x" }, (door) =>
        late(
          door,
          whole({
            data: [{ embedding: [1], index: 0 }],
            model: EMBEDDING,
            usage: { prompt_tokens: 800, total_tokens: 800 },
          }),
        ),
      );
      expect(embedded).toMatchObject({ promptTokens: 800, quota: 8 });
    });

    test("a price by the piece costs nothing where no piece came", async () => {
      await g.setOption("relay.abandoned_read_seconds", "1");
      await g.setOption("ModelPrice", JSON.stringify({ [PICTURE]: 0.04 }));
      g.upstream.script(hangBeforeHeaders());
      const charge = await g.charged(() =>
        leave("/v1/images/generations", { model: PICTURE, prompt: "a boat", n: 1 }),
      );
      expect(charge.quota).toBe(0);
      expect(charge.other).toMatchObject({ end_reason: "abandoned" });
    });
  });
}

const RESPONSE = {
  id: "resp_late",
  object: "response",
  status: "completed",
  output: [{ type: "message", role: "assistant", content: [{ type: "output_text", text: "late" }] }],
  usage: { input_tokens: 9000, output_tokens: 500, total_tokens: 9500 },
};
