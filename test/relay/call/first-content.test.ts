// What fails before the first content is made good by the next channel, with a true status where there is none, and paid
// by nobody: in every dialect of clients over every dialect of upstreams. Both databases; the books are audited.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { audit } from "../../../src/core/ledger/audit.ts";
import type { DialectName } from "../../../src/protocol/canonical.ts";
import { streamText, UPSTREAMS } from "../../support/dialect-upstream.ts";
import { CUT, gate, sse, startFakeUpstream } from "../../support/fake-upstream.ts";
import type { FakeUpstream, Script, Step } from "../../support/fake-upstream.ts";
import { startGateway } from "../support.ts";
import type { Gateway, LogLine } from "../support.ts";
import { CLIENTS, event, FRAMES, script } from "./begun-streams.ts";

const NAMES = Object.keys(UPSTREAMS) as DialectName[];
const PAIRS = NAMES.flatMap((upstream) => NAMES.map((client) => [upstream, client] as const));

/** The life cycle of a stream, with usage in it, and no word of an answer. */
const LIFE: Readonly<Record<DialectName, readonly Step[]>> = {
  "openai-chat": FRAMES["openai-chat"].slice(0, 1),
  anthropic: [
    event("message_start", {
      type: "message_start",
      message: {
        id: "msg_1",
        type: "message",
        role: "assistant",
        model: "claude",
        content: [],
        usage: { input_tokens: 400, cache_read_input_tokens: 600, output_tokens: 0 },
      },
    }),
    ...FRAMES.anthropic.slice(1, 2),
    event("ping", { type: "ping" }),
  ],
  "openai-responses": FRAMES["openai-responses"].slice(0, 3),
  gemini: [
    sse({
      candidates: [{ index: 0, content: { role: "model", parts: [{ text: "" }] } }],
      usageMetadata: { promptTokenCount: 1000, totalTokenCount: 1000 },
    }),
  ],
};

const ERRORS: Readonly<Record<DialectName, string>> = {
  "openai-chat": sse({
    error: { message: "slow down", type: "rate_limit_error", code: "rate_limit_exceeded" },
  }),
  anthropic: event("error", { type: "error", error: { type: "rate_limit_error", message: "slow down" } }),
  "openai-responses": event("response.failed", {
    type: "response.failed",
    response: { status: "failed", error: { code: "rate_limit_exceeded", message: "slow down" } },
  }),
  gemini: sse({ error: { code: 429, message: "slow down", status: "RESOURCE_EXHAUSTED" } }),
};

/** An end in order, with nothing said and no output reported. */
const EMPTY_ENDS: Readonly<Record<DialectName, readonly string[]>> = {
  "openai-chat": [sse({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }), "data: [DONE]\n\n"],
  anthropic: [
    event("content_block_stop", { type: "content_block_stop", index: 0 }),
    event("message_delta", {
      type: "message_delta",
      delta: { stop_reason: "end_turn" },
      usage: { output_tokens: 0 },
    }),
    event("message_stop", { type: "message_stop" }),
  ],
  "openai-responses": [
    event("response.completed", {
      type: "response.completed",
      response: { id: "resp_1", status: "completed", output: [] },
    }),
  ],
  gemini: [sse({ candidates: [{ index: 0, content: { parts: [] }, finishReason: "STOP" }] })],
};

const FAULTS: Readonly<
  Record<string, (upstream: DialectName) => { steps: readonly Step[]; status: number }>
> = {
  "an error event": (upstream) => ({ steps: [...LIFE[upstream], ERRORS[upstream]], status: 429 }),
  "a cut": (upstream) => ({ steps: [...LIFE[upstream], CUT], status: 502 }),
  "an early end": (upstream) => ({ steps: LIFE[upstream], status: 502 }),
  "an end without content": (upstream) => ({
    steps: [...LIFE[upstream], ...EMPTY_ENDS[upstream]],
    status: 502,
  }),
};

/** Errors inside of a begun stream, as each dialect's clients raise them. */
const RAISED: Readonly<Record<DialectName, RegExp>> = {
  "openai-chat": /data: \{"error":\{"message":"/,
  "openai-responses": /event: (?:error|response\.failed)\n/,
  anthropic: /event: error\ndata: \{"type":"error","error":\{/,
  gemini: /data: \{"error":\{"code":\d+,/,
};

for (const database of ["sqlite", "postgres"] as const) {
  describe(`before the first content, on ${database}`, () => {
    let g: Gateway;
    let spare: FakeUpstream;
    let serial = 0;

    beforeAll(async () => {
      g = await startGateway({ database, drainMs: 50, quota: 1_000_000_000 });
      spare = await startFakeUpstream();
      await g.setOption("SelfUseModeEnabled", "true");
      await g.setOption("RetryTimes", "1");
    });
    afterAll(async () => {
      await g.close();
      spare.stop();
    });
    beforeEach(async () => {
      g.upstream.reset();
      spare.reset();
      await g.setOption("general_setting.ping_interval_seconds", "15");
    });
    afterEach(async () => {
      await g.app.deps.ledger.flush();
      expect((await audit(g.app.deps.db)).differences).toEqual([]);
    });

    /** A model whose first channel does what it is told, and whose second one, if any, answers. */
    async function modelOf(upstream: DialectName, hasSpare: boolean): Promise<string> {
      const { type, model } = UPSTREAMS[upstream];
      const models = `${model}-${++serial}`;
      await g.app.createChannel({ type, models, baseUrl: g.upstream.url, priority: 9 });
      if (hasSpare) await g.app.createChannel({ type, models, baseUrl: spare.url, priority: 1 });
      return models;
    }

    const post = (client: DialectName, model: string): Promise<Response> => {
      const { path, body } = (CLIENTS[client] as (typeof CLIENTS)[string])(model);
      return g.post(path, body);
    };

    const stream = (upstream: DialectName): Script => script([streamText(upstream)]);
    const charges = async (): Promise<LogLine[]> => (await g.logs()).filter((row) => row.type === 2);

    describe.each(Object.entries(FAULTS))("%s", (_, fault) => {
      test.each(PAIRS)(
        "of a %s upstream is nothing to %s clients: the next channel answers, alone and paid alone",
        async (upstream, client) => {
          const model = await modelOf(upstream, true);
          spare.always(stream(upstream));
          const other = await modelOf(upstream, true);
          g.upstream.script(stream(upstream));
          let calm = "";
          // Until its row is there: it must not be taken for the next call's.
          await g.charged(async () => {
            calm = await (await post(client, other)).text();
          });
          const { steps } = fault(upstream);
          g.upstream.script(script([...steps]));
          const before = await g.balance();
          let text = "";
          const charge = await g.charged(async () => {
            const response = await post(client, model);
            expect(response.status).toBe(200);
            text = await response.text();
          });
          expect(shape(text)).toEqual(shape(calm));
          expect(charge.other["attempts"]).toMatchObject([
            { code: expect.not.stringMatching(/^ok$/) },
            { code: "ok" },
          ]);
          expect(charge.other["end_reason"]).toBe("completed");
          expect(before.quota - (await g.balance()).quota).toBe(charge.quota);
        },
      );

      test.each(PAIRS)(
        "of a %s upstream, with none left, is a true status to %s clients, and free",
        async (upstream, client) => {
          const { steps, status } = fault(upstream);
          const model = await modelOf(upstream, false);
          g.upstream.script(script([...steps]));
          const before = await g.balance();
          const charged = (await charges()).length;
          const response = await post(client, model);
          expect([response.status, response.headers.get("content-type")]).toEqual([
            status,
            "application/json",
          ]);
          expect(await response.json()).toHaveProperty("error");
          expect(await g.balance()).toEqual(before);
          expect(await charges()).toHaveLength(charged);
        },
      );
    });

    test.each(PAIRS.filter(([, client]) => client !== "gemini"))(
      "of a %s upstream, once %s clients have had a sign of life: the dialect's error event, and nobody else is asked",
      async (upstream, client) => {
        await g.setOption("general_setting.ping_interval_seconds", "1");
        const model = await modelOf(upstream, true);
        spare.always(stream(upstream));
        const door = gate();
        g.upstream.script(script([...LIFE[upstream], door, ERRORS[upstream]]));
        const response = await post(client, model);
        expect(response.status).toBe(200);
        let text = "";
        for await (const chunk of response.body as ReadableStream<Uint8Array>) {
          text += new TextDecoder().decode(chunk);
          // The life cycle went with the first sign of life.
          if (text.length > 60) door.open();
        }
        expect(text).toMatch(RAISED[client]);
        expect(spare.requests).toHaveLength(0);
      },
    );

    test("an empty answer with reported output, or with a telling end, is an answer: nobody else is asked", async () => {
      const told = [
        sse({ choices: [{ index: 0, delta: {}, finish_reason: "length" }] }),
        sse({ choices: [], usage: { prompt_tokens: 5, completion_tokens: 9, total_tokens: 14 } }),
        "data: [DONE]\n\n",
      ];
      const filtered = [
        sse({ choices: [{ index: 0, delta: {}, finish_reason: "content_filter" }] }),
        "data: [DONE]\n\n",
      ];
      for (const client of NAMES)
        for (const end of [told, filtered]) {
          const model = await modelOf("openai-chat", true);
          g.upstream.script(script([...LIFE["openai-chat"], ...end]));
          const response = await post(client, model);
          expect([client, response.status]).toEqual([client, 200]);
          expect(await response.text()).not.toMatch(RAISED[client]);
        }
      expect(spare.requests).toHaveLength(0);
    });

    test("the time to the first token is that of the first content", async () => {
      const model = await modelOf("openai-chat", false);
      const door = gate();
      g.upstream.script(script([...LIFE["openai-chat"], door, streamText("openai-chat")]));
      const charge = await g.charged(async () => {
        const called = post("openai-chat", model);
        await g.upstream.request(0);
        const startedMs = performance.now();
        while (performance.now() - startedMs < 120) await g.app.call("GET", "/api/status");
        door.open();
        await (await called).text();
      });
      expect(charge.other["frt"]).toBeGreaterThanOrEqual(100);
    });
  });
}

/** Without what differs from call to call. */
function shape(text: string): string {
  return text
    .replaceAll(/"(?:id|item_id|responseId|call_id|model|modelVersion|obfuscation)":"[^"]*"/g, "")
    .replaceAll(/"(?:created|created_at)":\d+/g, "");
}
