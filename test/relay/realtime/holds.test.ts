// What a realtime turn holds back: lengthened before a frame goes on, at a price that is frozen, and the session's end
// where the balance cannot follow. Runs on both databases.
// Refuses to pass on what is not paid, and to cap what was delivered by what was held.
import { afterAll, afterEach, beforeAll, describe, expect, mock, spyOn, test } from "bun:test";
import { audit } from "../../../src/core/ledger/audit.ts";
import { Failure } from "../../../src/shared/failures.ts";
import { REALTIME_USAGE, responseDone } from "../../support/fake-realtime.ts";
import type { RealtimeConnection } from "../../support/fake-realtime.ts";
import { testClock } from "../../support/clock.ts";
import { MODEL, startRealtimeGateway } from "./support.ts";
import type { RealtimeGateway, SocketClient } from "./support.ts";
import type { TestUser } from "../../support/app.ts";
import { until } from "../support.ts";

/** One second of 24 kHz sound, in base64. */
const SECOND = "A".repeat((48_000 * 4) / 3);
const delta = { type: "response.output_audio.delta", delta: SECOND };
/** Units of a token of sound that is spoken: 8 × 2 × 2.5. */
const SPOKEN = 40;
const TOKENS_PER_SECOND = 200 / 0.24 / 60;

for (const database of ["sqlite", "postgres"] as const) {
  describe(`holds of realtime turns on ${database}`, () => {
    const clock = testClock();
    let g: RealtimeGateway;
    beforeAll(async () => {
      g = await startRealtimeGateway({ database, clock });
    });
    afterAll(() => g.close());
    afterEach(async () => {
      mock.restore();
      await g.app.deps.ledger.flush();
      expect((await audit(g.app.deps.db)).differences).toEqual([]);
    });

    async function session(
      quota: number,
      fields: Record<string, unknown> = {},
    ): Promise<{ client: SocketClient; peer: RealtimeConnection; user: TestUser }> {
      const user = await g.app.createUser({ quota });
      const { key } = await g.app.createToken(user.id, fields);
      const client = await g.open({ key });
      const peer = await g.upstream.connections.next();
      await client.nextOf("session.created");
      return { client, peer, user };
    }

    const account = async (user: TestUser) => {
      const found = await g.app.deps.accounts.user(user.id);
      if (!found) throw new Error("no such user");
      return found;
    };

    async function balanceOf(user: TestUser): Promise<number> {
      await g.app.deps.ledger.flush();
      const { users } = g.app.deps.db.t;
      const { eq } = await import("drizzle-orm");
      const [row] = await g.app.deps.db.orm.select().from(users).where(eq(users.id, user.id));
      return row?.quota ?? Number.NaN;
    }

    /** What is held back, in memory or durably. */
    const held = async (user: TestUser, quota: number): Promise<number> => {
      const { reserved, quota: left } = await account(user);
      return reserved + quota - left;
    };

    test("what has gone on is held back, however long the response is; all of it is charged without a report", async () => {
      const quota = 50_000_000;
      const { client, peer, user } = await session(quota);
      peer.say({ type: "response.created", response: { id: "long" } });
      const seconds = 120;
      for (let second = 1; second <= seconds; second++) {
        peer.say(delta);
        await client.nextOf(delta.type);
        expect(await held(user, quota)).toBeGreaterThanOrEqual(
          Math.floor(second * TOKENS_PER_SECOND) * SPOKEN,
        );
      }
      peer.say(responseDone("long", null));
      await client.nextOf("response.done");
      const charge = (await g.logs()).at(-1);
      expect(charge?.quota).toBe(Math.trunc(seconds * TOKENS_PER_SECOND) * SPOKEN);
      expect(charge?.other).toMatchObject({ estimated: true });
      expect(await balanceOf(user)).toBeLessThanOrEqual(quota - (charge?.quota ?? 0));
      client.socket.close();
      await client.closed;
    });

    test("the frame that the balance cannot pay is neither delivered nor charged, and the client is told", async () => {
      const quota = 3000;
      const { client, peer, user } = await session(quota);
      peer.say({ type: "response.created", response: { id: "short" } });
      for (let second = 0; second < 10; second++) peer.say(delta);
      expect(await peer.nextJson()).toEqual({ type: "response.cancel" });
      peer.say(delta);
      peer.say(responseDone("short", REALTIME_USAGE, "cancelled"));
      const seen: unknown[] = [];
      for (;;) {
        const event = await client.next();
        seen.push(event["type"]);
        if (event["type"] === "error") {
          expect(event).toMatchObject({ error: { code: "insufficient_user_quota" } });
          break;
        }
      }
      const delivered = seen.filter((type) => type === delta.type).length;
      expect(delivered).toBe(Math.floor(quota / SPOKEN / TOKENS_PER_SECOND));
      expect(await client.closed).toEqual({ code: 1008, reason: "insufficient_user_quota" });
      const charge = await until(async () => (await g.logs()).at(-1));
      expect(charge?.other).toMatchObject({ end_reason: "balance", stopped: "balance", estimated: true });
      expect(charge?.completionTokens).toBe(Math.trunc(delivered * TOKENS_PER_SECOND));
      // The input that was reported, and no more of the answer than went on.
      expect(charge?.promptTokens).toBe(132);
      expect(await balanceOf(user)).toBe(quota - (charge?.quota ?? 0));
      await until(async () => ((await account(user)).reserved === 0 ? true : undefined));
    });

    test("a turn that grows into the key's budget ends there, and the session with it", async () => {
      const budget = 3000;
      const { client, peer } = await session(50_000_000, { budgetQuota: budget, budgetPeriod: "day" });
      peer.say({ type: "response.created", response: { id: "short" } });
      for (let second = 0; second < 10; second++) peer.say(delta);
      expect(await peer.nextJson()).toEqual({ type: "response.cancel" });
      peer.say(responseDone("short", null, "cancelled"));
      expect(await client.nextOf("error")).toMatchObject({ error: { code: "budget_exceeded" } });
      expect(await client.closed).toEqual({ code: 1008, reason: "budget_exceeded" });
      const charge = await until(async () => (await g.logs()).at(-1));
      expect(charge?.other).toMatchObject({ end_reason: "balance", stopped: "balance" });
      expect(charge?.quota).toBe(
        Math.trunc(Math.floor(budget / SPOKEN / TOKENS_PER_SECOND) * TOKENS_PER_SECOND) * SPOKEN,
      );
    });

    test("all turns of a session share its cap: it ends at it, and is never charged above it", async () => {
      const cap = 20_000;
      const { client, peer, user } = await session(1_000_000, { maxQuota: cap });
      peer.say({ type: "response.created", response: { id: "first" } });
      peer.say(responseDone("first", REALTIME_USAGE));
      await client.nextOf("response.done");
      peer.say({ type: "response.created", response: { id: "second" } });
      for (let second = 0; second < 60; second++) peer.say(delta);
      expect(await peer.nextJson()).toEqual({ type: "response.cancel" });
      peer.say(responseDone("second", REALTIME_USAGE, "cancelled"));
      for (;;) {
        const event = await client.next();
        if (event["type"] !== "error") continue;
        expect(event).toMatchObject({ error: { code: "max_cost_exceeded" } });
        break;
      }
      expect(await client.closed).toEqual({ code: 1008, reason: "max_cost_exceeded" });
      const charges = await until(async () => {
        const rows = (await g.logs()).filter((row) => row.userId === user.id && row.type === 2);
        return rows.length === 2 ? rows : undefined;
      });
      expect(charges[1]?.other).toMatchObject({ stopped: "max_cost", max_quota: cap });
      const spent = charges.reduce((sum, { quota }) => sum + quota, 0);
      expect(spent).toBeLessThanOrEqual(cap);
      expect(await balanceOf(user)).toBe(1_000_000 - spent);
    });

    describe("what is heard beside the turns", () => {
      const type = "conversation.item.input_audio_transcription.completed";
      const part = "conversation.item.input_audio_transcription.delta";
      const named = { audio: { input: { transcription: { model: "whisper-1" } } } };

      beforeAll(async () => {
        const listed = g.app.deps.options.get("ModelRatio");
        // An operator's own price: fifteen thousand units a minute.
        await g.setOption("ModelRatio", JSON.stringify({ ...listed, "whisper-1": 15 }));
      });

      async function hearing(quota: number, fields: Record<string, unknown> = {}) {
        const opened = await session(quota, fields);
        const { client, peer, user } = opened;
        peer.say({ type: "session.updated", session: named });
        await client.nextOf("session.updated");
        return {
          ...opened,
          async hear(...lengths: number[]) {
            for (const seconds of lengths) {
              peer.say({ type, item_id: crypto.randomUUID(), usage: { type: "duration", seconds } });
              await client.nextOf(type);
            }
          },
          /** Model and units of each row, when all has ended. */
          async charges() {
            client.socket.close();
            await Promise.all([client.closed, peer.closed]);
            const rows = (await g.logs()).filter((row) => row.userId === user.id && row.type === 2);
            expect(await balanceOf(user)).toBe(quota - rows.reduce((sum, row) => sum + row.quota, 0));
            return rows.map((row) => [row.modelName, row.quota, row.other["over_cap"]]);
          },
        };
      }

      test("counts against the cap, at which the session ends; where nothing is left for it, it is charged with the turn as sound", async () => {
        const capped = await hearing(1_000_000, { maxQuota: 20_000 });
        await capped.hear(60, 60);
        expect(await capped.client.nextOf("error")).toMatchObject({ error: { code: "max_cost_exceeded" } });
        expect(await capped.client.closed).toEqual({ code: 1008, reason: "max_cost_exceeded" });
        expect(await capped.charges()).toEqual([
          ["whisper-1", 15_000, undefined],
          ["whisper-1", 5000, 10_000],
        ]);
        // What is as long as before is looked at again: less of the cap is left.
        const again = await hearing(1_000_000, { maxQuota: 4000 });
        const words = { type: part, item_id: "same", delta: "word ".repeat(80) };
        again.peer.say(words);
        await again.client.nextOf(part);
        await again.hear(6, 6);
        again.peer.say(words);
        expect(await again.client.nextOf("error")).toMatchObject({ error: { code: "max_cost_exceeded" } });
        expect(await again.charges()).toEqual(Array(2).fill(["whisper-1", 1500, undefined]));
        const poor = await hearing(2000);
        await poor.hear(6);
        expect(await poor.charges()).toEqual([[MODEL, 60 * 8 * 2.5, undefined]]);
      });

      test("is no request of its own, neither under limits nor as told", async () => {
        const told = spyOn(g.app.deps.observer, "ended");
        const { hear, charges } = await hearing(1_000_000, {
          maxConcurrency: 1,
          rpmLimit: 1,
          budgetQuota: 500_000,
        });
        await hear(6, 6);
        expect(await charges()).toEqual(Array(2).fill(["whisper-1", 1500, undefined]));
        expect(told).not.toHaveBeenCalled();
      });

      test("goes with the turn where it cannot be held, and the session goes on", async () => {
        const { ledger } = g.app.deps;
        const reserve = ledger.reserve.bind(ledger);
        const { hear, charges, client, peer } = await hearing(1_000_000);
        spyOn(ledger, "reserve").mockImplementation((request) => {
          if (request.isPart === true) throw new Failure("internal", "ledger_down", { status: 503 });
          return reserve(request);
        });
        await hear(6);
        peer.say({ type: part, item_id: "cut", delta: "hello" });
        await client.nextOf(part);
        // What was heard in part is a second of sound at the least.
        expect(await charges()).toEqual([
          [MODEL, 60 * 8 * 2.5, undefined],
          [MODEL, 10 * 8 * 2.5, undefined],
        ]);
      });

      test("is charged once where its end comes while the session ends", async () => {
        const { ledger } = g.app.deps;
        const reserve = ledger.reserve.bind(ledger);
        const asked = Promise.withResolvers<void>();
        const gate = Promise.withResolvers<void>();
        const { charges, client, peer } = await hearing(1_000_000);
        spyOn(ledger, "reserve").mockImplementation((request) => {
          if (request.isPart !== true) return reserve(request);
          asked.resolve();
          return gate.promise.then(() => reserve(request));
        });
        peer.say({ type: part, item_id: "cut", delta: "hello" });
        await client.nextOf(part);
        client.socket.close();
        await asked.promise;
        peer.say({ type, item_id: "cut", usage: { type: "duration", seconds: 6 } });
        // Behind a whole handshake of another session the frame has come.
        const other = await session(1_000_000);
        gate.resolve();
        expect(await charges()).toEqual([["whisper-1", 17 * 15, undefined]]);
        other.client.socket.close();
        await other.client.closed;
      });
    });

    test("a session is quoted by an answer and by all that it can cost; its turns have the quoted prices while they stand", async () => {
      const quota = 10_000_000;
      const user = await g.app.createUser({ quota });
      const { key } = await g.app.createToken(user.id);
      const quoteOf = async (body: object, headers: Record<string, string> = {}) => {
        const response = await fetch(`${g.app.url}/v1/quote`, {
          method: "POST",
          headers: { authorization: `Bearer ${key}`, ...headers },
          body: JSON.stringify({ path: "/v1/realtime", body }),
        });
        return [response.status, await response.json()] as const;
      };
      const [status, quote] = await quoteOf({ model: MODEL, max_output_tokens: 100 });
      expect(status).toBe(200);
      expect(quote).toMatchObject({
        model: MODEL,
        output_tokens: 100,
        expected: 100 * SPOKEN,
        reserve: 100 * SPOKEN,
        worst: quota,
        affordable: true,
      });
      expect(await quoteOf({ model: MODEL }, { "x-max-quota": "5000" })).toMatchObject([
        200,
        { expected: 5000, worst: 5000, reserve: 5000 },
      ]);
      expect(await quoteOf({ model: MODEL }, { "x-max-quota": "1" })).toMatchObject([402, {}]);
      expect(await quoteOf({ model: "nobody-serves" })).toMatchObject([404, {}]);

      const id = (quote as { quote_id: string }).quote_id;
      const foreign = await g.refused({ headers: { "x-quote": id } });
      expect([foreign.status, foreign.error.code]).toEqual([400, "quote_foreign"]);
      const shipped = g.app.deps.options.text("ModelRatio");
      await g.setOption("ModelRatio", JSON.stringify({ [MODEL]: 25 }));
      const client = await g.open({ key, headers: { "x-quote": id } });
      const peer = await g.upstream.connections.next();
      await client.nextOf("session.created");
      const turn = async (name: string) => {
        peer.say({ type: "response.created", response: { id: name } });
        peer.say(responseDone(name, REALTIME_USAGE));
        await client.nextOf("response.done");
        return (await g.logs()).at(-1)?.quota;
      };
      const units = 55 + 32 + 13 * 8 + 30 * 4 + 91 * 16;
      expect(await turn("quoted")).toBe(Math.round(units * 2.5));
      // The turn that is open now was opened at the quoted prices; the one after it is not.
      clock.advance(5 * 60_000 + 1000);
      expect(await turn("opened before")).toBe(Math.round(units * 2.5));
      expect(await turn("over")).toBe(units * 25);
      await g.setOption("ModelRatio", shipped);
      client.socket.close();
      await client.closed;
    });

    test("the next turn holds the conversation that it reads again; a balance below that ends the session", async () => {
      const quota = 6000;
      const { client, peer } = await session(quota);
      peer.say({ type: "response.created", response: { id: "first" } });
      // (119-64) + 64 + 30 of text and 13 + 91 of sound at 8, read again at 2.5: 2453 units.
      peer.say(responseDone("first", REALTIME_USAGE));
      await client.nextOf("response.done");
      expect(await client.nextOf("error")).toMatchObject({ error: { code: "insufficient_user_quota" } });
      expect((await client.closed).code).toBe(1008);
    });

    test("prices that change in the middle of a turn are those of the next one", async () => {
      const shipped = g.app.deps.options.text("ModelRatio");
      const { client, peer } = await session(50_000_000);
      const charges = async () => (await g.logs()).slice(-1).map((row) => row.quota)[0] ?? 0;
      peer.say({ type: "response.created", response: { id: "before" } });
      peer.say({ type: "response.output_text.delta", delta: "Hello" });
      await client.nextOf("response.output_text.delta");
      await g.setOption("ModelRatio", JSON.stringify({ [MODEL]: 25 }));
      await g.setOption("QuotaPerUnit", "5000000");
      peer.say(responseDone("before", REALTIME_USAGE));
      await client.nextOf("response.done");
      const before = await charges();
      peer.say({ type: "response.created", response: { id: "after" } });
      peer.say(responseDone("after", REALTIME_USAGE));
      await client.nextOf("response.done");
      const after = await charges();
      await g.setOption("ModelRatio", shipped);
      await g.setOption("QuotaPerUnit", "500000");
      expect(before).toBe(Math.round((55 + 32 + 13 * 8 + 30 * 4 + 91 * 16) * 2.5));
      expect(after).toBe((55 + 32 + 13 * 8 + 30 * 4 + 91 * 16) * 25);
      client.socket.close();
      await client.closed;
    });

    test("sound that goes in is held by its seconds before it goes on", async () => {
      const { client, peer, user } = await session(2000);
      // A minute of it is 1,667 tokens at 8 × 2.5.
      client.say({ type: "input_audio_buffer.append", audio: SECOND });
      await peer.received.next();
      for (let second = 0; second < 60; second++)
        client.say({ type: "input_audio_buffer.append", audio: SECOND });
      expect(await client.nextOf("error")).toMatchObject({ error: { code: "insufficient_user_quota" } });
      await Promise.all([client.closed, peer.closed]);
      expect(peer.received.items.length).toBeLessThanOrEqual(Math.ceil(2000 / 20 / (1667 / 60)));
      expect(await balanceOf(user)).toBe(2000);
    });
  });
}
