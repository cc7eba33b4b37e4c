// Streams that are cut or left before their final usage, in every dialect, passed through and told in another one: the
// reported input is charged with the larger of reported and counted output. Both databases where balances are concerned.
// Refuses to believe a first word: what an upstream says before its end is not the bill.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { audit } from "../../../src/core/ledger/audit.ts";
import { HANG, sse } from "../../support/fake-upstream.ts";
import { UPSTREAMS } from "../../support/dialect-upstream.ts";
import { CLIENTS, event, FRAMES, LEAST_TOKENS, script, chatUsage } from "./begun-streams.ts";
import { startGateway } from "../support.ts";
import type { Gateway, LogLine } from "../support.ts";

const PAIRS = Object.keys(UPSTREAMS).flatMap((upstream) =>
  Object.keys(CLIENTS).map((client) => [upstream as keyof typeof UPSTREAMS, client] as const),
);

for (const database of ["sqlite", "postgres"] as const) {
  describe(`partial usage on ${database}`, () => {
    let g: Gateway;
    beforeAll(async () => {
      g = await startGateway({ database, drainMs: 50, quota: 100_000_000 });
      await g.setOption("SelfUseModeEnabled", "true");
      // Two of the models think unseen: theirs would be read on, and never end here.
      await g.setOption("relay.abandoned_read_seconds", "0");
      for (const { type, model } of Object.values(UPSTREAMS))
        await g.app.createChannel({ type, models: model, baseUrl: g.upstream.url });
    });
    afterAll(async () => {
      await g.app.deps.ledger.flush();
      expect((await audit(g.app.deps.db)).differences).toEqual([]);
      await g.close();
    });

    /** Opens the stream, reads until the words are there, and lets `end` do the rest. */
    async function read(client: string, model: string, leaver?: AbortController): Promise<string> {
      const { path, body } = (CLIENTS[client] as (typeof CLIENTS)[string])(model);
      const response = await fetch(g.app.url + path, {
        method: "POST",
        headers: { authorization: `Bearer ${g.key}`, "content-type": "application/json" },
        body: JSON.stringify(body),
        ...(leaver ? { signal: leaver.signal } : {}),
      });
      let text = "";
      const decoder = new TextDecoder();
      for await (const chunk of response.body as ReadableStream<Uint8Array>) {
        text += decoder.decode(chunk, { stream: true });
        if (leaver && text.includes("Once upon")) break;
      }
      leaver?.abort();
      return text;
    }

    function expectPartial(charge: LogLine, reason: string): void {
      expect(charge.other).toMatchObject({ estimated: true, end_reason: reason, cache_tokens: 600 });
      expect(charge.promptTokens).toBe(1000);
      expect(charge.completionTokens).toBeGreaterThan(LEAST_TOKENS);
      expect(charge.quota).toBeGreaterThan(0);
    }

    test.each(PAIRS)("%s told as %s, cut: reported input, counted output", async (upstream, client) => {
      const { model } = UPSTREAMS[upstream];
      const before = await g.balance();
      g.upstream.script(script(FRAMES[upstream]));
      const charge = await g.charged(() => read(client, model));
      expectPartial(charge, "upstream-cut");
      expect(before.quota - (await g.balance()).quota).toBe(charge.quota);
    });

    test.each(PAIRS)("%s told as %s, left: reported input, counted output", async (upstream, client) => {
      const { model } = UPSTREAMS[upstream];
      const before = await g.balance();
      g.upstream.script(script([...FRAMES[upstream], HANG]));
      const charge = await g.charged(() => read(client, model, new AbortController()).catch(() => ""));
      expectPartial(charge, "client-gone");
      expect(before.quota - (await g.balance()).quota).toBe(charge.quota);
    });

    test("a larger output that was reported on the way stands", async () => {
      const { model } = UPSTREAMS["openai-chat"];
      const frame = sse({ choices: [{ index: 0, delta: { content: "Hi" } }], usage: chatUsage(5000) });
      g.upstream.script(script([frame]));
      const charge = await g.charged(() => read("openai-chat", model));
      expect(charge).toMatchObject({ promptTokens: 1000, completionTokens: 5000 });
      expect(charge.other).toMatchObject({ estimated: true });
    });

    test("an upstream that ends in order without a last word on its usage is charged alike", async () => {
      const { model } = UPSTREAMS.anthropic;
      const last = [
        event("content_block_stop", { type: "content_block_stop", index: 0 }),
        event("message_delta", { type: "message_delta", delta: { stop_reason: "end_turn" } }),
        event("message_stop", { type: "message_stop" }),
      ];
      for (const client of ["anthropic", "openai-chat"]) {
        g.upstream.script(script([...FRAMES.anthropic, ...last]));
        expectPartial(await g.charged(() => read(client, model)), "completed");
      }
    });
  });
}
