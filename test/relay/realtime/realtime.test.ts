// Realtime sessions over the wire: frames pass untouched both ways, each response is charged exactly once, and every
// way out leaves the books in balance. Runs on both databases.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { audit } from "../../../src/core/ledger/audit.ts";
import { GREETING, REALTIME_USAGE, responseDone } from "../../support/fake-realtime.ts";
import type { RealtimeConnection } from "../../support/fake-realtime.ts";
import { replayLog } from "../../support/replayed.ts";
import { until } from "../support.ts";
import { MODEL, startRealtimeGateway } from "./support.ts";
import type { RealtimeGateway, SocketClient } from "./support.ts";

/** (119-64) fresh + 64 cached at half price + 13 audio × 8 + 30 text × 4 + 91 audio × 8 × 2, at ratio 2.5. */
const TURN_QUOTA = Math.round((55 + 32 + 13 * 8 + 30 * 4 + 91 * 16) * 2.5);

for (const database of ["sqlite", "postgres"] as const) {
  describe(`realtime on ${database}`, () => {
    let g: RealtimeGateway;
    beforeAll(async () => {
      g = await startRealtimeGateway({ database });
    });
    afterAll(() => g.close());
    afterEach(async () => {
      await g.app.deps.ledger.flush();
      expect((await audit(g.app.deps.db)).differences).toEqual([]);
    });

    async function session(
      options: Parameters<RealtimeGateway["open"]>[0] = {},
    ): Promise<{ client: SocketClient; peer: RealtimeConnection }> {
      const client = await g.open(options);
      const peer = await g.upstream.connections.next();
      expect(await client.next()).toEqual(GREETING);
      return { client, peer };
    }

    async function goodbye(client: SocketClient, peer: RealtimeConnection): Promise<void> {
      client.socket.close(1000, "done");
      await Promise.all([client.closed, peer.closed]);
    }

    test("frames pass both ways as they are: text, numbers, long digits, bytes", async () => {
      const { client, peer } = await session();
      const bytes = Buffer.from([0, 255, 1, 254, 128, 10, 13]);
      const frames = [
        "007",
        "true",
        '{"n":12345678901234567890,"s":"你好 😀","x":1.0}',
        "[1,  2]",
        "not json",
        bytes,
        "",
      ];
      for (const frame of frames) client.say(frame);
      for (const frame of frames) expect(await peer.received.next()).toEqual(frame);
      for (const frame of frames) peer.say(frame);
      for (const frame of frames) expect(await client.frames.next()).toEqual(frame);
      await goodbye(client, peer);
    });

    test("the upstream gets the channel's key and the model once, never the client's key", async () => {
      const { client, peer } = await session({
        query: `?model=${MODEL}&key=secret&call_id=rtc_1&api-key=x&voice=alto`,
      });
      const { pathname, searchParams } = new URL(peer.url, "http://x");
      expect(pathname).toBe("/v1/realtime");
      expect([...searchParams]).toEqual([
        ["model", MODEL],
        ["voice", "alto"],
      ]);
      expect(peer.headers.get("authorization")).toBe("Bearer upstream-key");
      expect(peer.headers.has("openai-beta")).toBe(false);
      expect(peer.protocols).toEqual([]);
      expect(client.socket.protocol).toBe("");
      await goodbye(client, peer);
    });

    test("a key in the sub-protocol opens the session, and is answered with the protocol alone", async () => {
      const { client, peer } = await session({
        protocols: ["realtime", `openai-insecure-api-key.${g.key}`, "openai-beta.realtime-v1"],
      });
      expect(client.socket.protocol).toBe("realtime");
      expect(peer.protocols).toEqual([
        "realtime",
        "openai-insecure-api-key.upstream-key",
        "openai-beta.realtime-v1",
      ]);
      await goodbye(client, peer);
    });

    test("each response.done is charged once, by text, cache and sound, before the client sees it", async () => {
      const before = await g.balance();
      const count = (await g.logs()).length;
      const { client, peer } = await session();
      client.say({ type: "response.create" });
      expect(await peer.nextJson()).toEqual({ type: "response.create" });
      peer.say({ type: "response.created", response: { id: "resp_1" } });
      peer.say({ type: "response.audio.delta", delta: "AAAA" });
      peer.say(responseDone("resp_1", REALTIME_USAGE));
      await client.nextOf("response.done");
      const [row, ...others] = (await g.logs()).slice(count);
      expect(others).toEqual([]);
      expect(row).toMatchObject({
        quota: TURN_QUOTA,
        promptTokens: 132,
        completionTokens: 121,
        modelName: MODEL,
        channelId: g.channelId,
        tokenName: "test key",
        group: "default",
        isStream: true,
        content: "模型倍率 2.50，补全倍率 4.00，音频倍率 8.00，音频补全倍率 2.00，分组倍率 1.00",
      });
      expect(row?.other).toMatchObject({
        ws: true,
        audio_input: 13,
        audio_output: 91,
        text_input: 55,
        text_output: 30,
        cache_tokens: 64,
        cache_ratio: 0.5,
        audio_ratio: 8,
        audio_completion_ratio: 2,
        model_ratio: 2.5,
        completion_ratio: 4,
        group_ratio: 1,
        model_price: -1,
        admin_info: { use_channel: [String(g.channelId)] },
        end_reason: "completed",
      });
      expect(row?.other["frt"]).toBeGreaterThanOrEqual(0);
      // Told twice, charged once.
      peer.say(responseDone("resp_1", REALTIME_USAGE));
      await client.nextOf("response.done");
      peer.say({ type: "response.created", response: { id: "resp_2" } });
      peer.say(responseDone("resp_2", REALTIME_USAGE));
      await client.nextOf("response.done");
      await goodbye(client, peer);
      const after = await g.balance();
      expect(before.quota - after.quota).toBe(2 * TURN_QUOTA);
      expect(after.used - before.used).toBe(2 * TURN_QUOTA);
      const rows = (await g.logs()).slice(count);
      expect(rows).toHaveLength(2);
      expect(rows[1]?.other["session"]).toBe(rows[0]?.other["session"]);
    });

    test("many responses in one go keep their order and are each charged", async () => {
      const before = await g.balance();
      const { client, peer } = await session();
      for (let i = 0; i < 20; i++) {
        peer.say({ type: "response.created", response: { id: `many_${i}` } });
        peer.say(responseDone(`many_${i}`, REALTIME_USAGE));
        peer.say({ type: "after", i });
      }
      for (let i = 0; i < 20; i++) {
        expect(await client.next()).toMatchObject({
          type: "response.created",
          response: { id: `many_${i}` },
        });
        expect(await client.next()).toMatchObject({ type: "response.done", response: { id: `many_${i}` } });
        expect(await client.next()).toEqual({ type: "after", i });
      }
      await goodbye(client, peer);
      expect(before.quota - (await g.balance()).quota).toBe(20 * TURN_QUOTA);
    });

    test("a response without usage is counted here, and marked so", async () => {
      const count = (await g.logs()).length;
      const { client, peer } = await session();
      client.say({ type: "session.update", session: { instructions: "Speak like a pirate.", tools: [] } });
      await peer.received.next();
      peer.say({ type: "response.created", response: { id: "bare_1" } });
      // Six seconds of 24 kHz sound.
      peer.say({ type: "response.output_audio.delta", delta: "A".repeat((6 * 48_000 * 4) / 3) });
      peer.say({ type: "response.output_audio_transcript.delta", delta: "Arr, hello there." });
      peer.say(responseDone("bare_1", null));
      await client.nextOf("response.done");
      const [row] = (await g.logs()).slice(count);
      expect(row?.other).toMatchObject({ estimated: true, audio_output: 83, note: "note_usage_estimated" });
      expect(row?.other["text_output"]).toBeGreaterThanOrEqual(4);
      expect(row?.quota).toBeGreaterThan(83 * 16 * 2);
      // A failed response that delivered nothing costs nothing.
      peer.say({ type: "response.created", response: { id: "bare_2" } });
      peer.say(responseDone("bare_2", null, "failed"));
      await client.nextOf("response.done");
      const failed = (await g.logs()).slice(count)[1];
      expect(failed).toMatchObject({ quota: 0, promptTokens: 0 });
      await goodbye(client, peer);
    });

    test("a session without a response costs nothing and leaves nothing held back", async () => {
      const before = await g.balance();
      const count = (await g.logs()).length;
      const { client, peer } = await session();
      client.say({ type: "input_audio_buffer.append", audio: "A".repeat(64_000) });
      await peer.received.next();
      await goodbye(client, peer);
      await until(() => Promise.resolve(reserved(g) === 0 || undefined));
      expect(await g.balance()).toEqual(before);
      expect(await g.logs()).toHaveLength(count);
    });

    test("a client that leaves in the middle of a response has it cancelled and pays what it cost", async () => {
      const count = (await g.logs()).length;
      const { client, peer } = await session();
      client.say({ type: "response.create" });
      await peer.received.next();
      peer.say({ type: "response.created", response: { id: "left_1" } });
      peer.say({ type: "response.text.delta", delta: "Once upon" });
      await client.nextOf("response.text.delta");
      client.socket.terminate();
      expect(await peer.nextJson()).toEqual({ type: "response.cancel" });
      peer.say(responseDone("left_1", REALTIME_USAGE, "cancelled"));
      await peer.closed;
      const rows = await until(async () => {
        const found = (await g.logs()).slice(count);
        return found.length > 0 ? found : undefined;
      });
      expect(rows).toHaveLength(1);
      expect(rows[0]?.quota).toBe(TURN_QUOTA);
      await until(() => Promise.resolve(reserved(g) === 0 || undefined));
    });

    test("an upstream that breaks off is told as an error event, and what was heard is estimated", async () => {
      const count = (await g.logs()).length;
      const { client, peer } = await session();
      peer.say({ type: "response.created", response: { id: "cut_1" } });
      peer.say({ type: "response.text.delta", delta: "Half a sentence" });
      await client.nextOf("response.text.delta");
      peer.cut();
      const event = await client.nextOf("error");
      expect(event).toMatchObject({
        event_id: expect.stringMatching(/^evt_\d\w{30,}$/) as string,
        error: { type: "upstream_error", code: "broken_stream", param: "" },
      });
      expect(await client.closed).toEqual({ code: 1011, reason: "broken_stream" });
      const rows = (await g.logs()).slice(count);
      expect(rows).toHaveLength(1);
      expect(rows[0]?.other).toMatchObject({ estimated: true, end_reason: "upstream-cut" });
      expect(rows[0]?.quota).toBeGreaterThan(0);
    });

    test("a proper goodbye of the upstream is handed on with its code and reason", async () => {
      const { client, peer } = await session();
      peer.close(4001, "session expired at https://api.example.com/x");
      expect(await client.closed).toEqual({ code: 4001, reason: "session expired at [url]" });
    });

    test("a frame of fifteen megabytes passes both ways", async () => {
      const { client, peer } = await session();
      const sound = "A".repeat(15 * 1024 * 1024);
      const up = `{"type":"input_audio_buffer.append","audio":"${sound}"}`;
      client.say(up);
      expect((await peer.received.next()) === up).toBe(true);
      peer.say(up);
      expect((await client.frames.next()) === up).toBe(true);
      const binary = Buffer.alloc(15 * 1024 * 1024, 7);
      client.say(binary);
      expect(binary.equals((await peer.received.next()) as Buffer)).toBe(true);
      await goodbye(client, peer);
    });

    test("a client that stops reading stops the upstream, not the gateway's memory", async () => {
      const { client, peer } = await session();
      const piece = Buffer.alloc(1024 * 1024, 1);
      const total = 200;
      client.socket.pause();
      let sent = 0;
      // Goes on as long as the gateway takes it.
      for (; sent < total; sent++) if (peer.say(piece) === -1 && peer.buffered() > 8 * piece.length) break;
      expect(sent).toBeLessThan(total);
      client.socket.resume();
      for (let i = sent + 1; i < total; i++) {
        peer.say(piece);
      }
      for (let i = 0; i < total; i++)
        expect(((await client.frames.next()) as Buffer).length).toBe(piece.length);
      await goodbye(client, peer);
    });

    test("an upstream that stops reading stops the client", async () => {
      const { client, peer } = await session();
      const piece = Buffer.alloc(1024 * 1024, 1);
      peer.stopReading();
      const total = 100;
      for (let i = 0; i < total; i++) client.say(piece);
      await until(() => Promise.resolve(client.socket.bufferedAmount > 50 * piece.length || undefined));
      peer.goOnReading();
      for (let i = 0; i < total; i++)
        expect(((await peer.received.next()) as Buffer).length).toBe(piece.length);
      await goodbye(client, peer);
    });

    test("when the balance runs out the client is told why and the session ends", async () => {
      const poor = await g.app.createUser({ quota: 5000 });
      const { key } = await g.app.createToken(poor.id);
      const { client, peer } = await session({ key });
      peer.say({ type: "response.created", response: { id: "poor_1" } });
      peer.say(responseDone("poor_1", REALTIME_USAGE));
      expect(await client.next()).toMatchObject({ type: "response.created" });
      expect(await client.next()).toMatchObject({ type: "response.done" });
      expect(await client.next()).toMatchObject({
        type: "error",
        error: { code: "insufficient_user_quota", type: "new_api_error" },
      });
      expect(await client.closed).toEqual({ code: 1008, reason: "insufficient_user_quota" });
      await peer.closed;
      const refused = await g.refused({ key, query: `?model=${MODEL}&x=1` });
      expect(refused).toMatchObject({ status: 403, error: { code: "insufficient_user_quota" } });
    });

    test("a turn that grows beyond the balance ends in its middle", async () => {
      const poor = await g.app.createUser({ quota: 3000 });
      const { key } = await g.app.createToken(poor.id);
      const { client, peer } = await session({ key });
      peer.say({ type: "response.created", response: { id: "long_1" } });
      // One minute of sound is 833 tokens: 833 × 16 × 2.5 is far above the balance.
      peer.say({ type: "response.audio.delta", delta: "A".repeat((60 * 48_000 * 4) / 3) });
      expect(await peer.nextJson()).toEqual({ type: "response.cancel" });
      peer.say(responseDone("long_1", REALTIME_USAGE, "cancelled"));
      await client.nextOf("error");
      expect(await client.closed).toEqual({ code: 1008, reason: "insufficient_user_quota" });
    });

    test("a key with a quota of its own is held to it", async () => {
      const { key, id } = await g.app.createToken(g.user.id, {
        remainQuota: TURN_QUOTA + 2000,
        unlimitedQuota: false,
      });
      const { client, peer } = await session({ key });
      peer.say({ type: "response.created", response: { id: "key_1" } });
      peer.say(responseDone("key_1", REALTIME_USAGE));
      await client.nextOf("error");
      expect(await client.closed).toEqual({ code: 1008, reason: "pre_consume_token_quota_failed" });
      expect(await g.tokenLeft(id)).toBe(2000);
    });

    test("a key that is switched off ends its open sessions within a second or two", async () => {
      const { key, id } = await g.app.createToken(g.user.id);
      const { client, peer } = await session({ key });
      const { tokens } = g.app.deps.db.t;
      const { eq } = await import("drizzle-orm");
      await g.app.deps.db.orm.update(tokens).set({ status: 2 }).where(eq(tokens.id, id));
      await g.app.deps.accounts.tokenChanged(id);
      expect(await client.nextOf("error")).toMatchObject({ error: { type: "new_api_error" } });
      expect(await client.closed).toEqual({ code: 1008, reason: "token_unusable" });
      await peer.closed;
    });

    test("an error event of the upstream passes, without its keys and addresses", async () => {
      const { client, peer } = await session();
      const plain = '{"type":"error","error":{"type":"invalid_request_error","message":"no such voice"}}';
      peer.say(plain);
      expect(await client.frames.next()).toBe(plain);
      peer.say({
        type: "error",
        error: { message: "bad key sk-abcdefghijklmnop at https://api.example.com/v1" },
      });
      expect(await client.next()).toEqual({ type: "error", error: { message: "bad key [key] at [url]" } });
      await goodbye(client, peer);
    });

    test("a frame above the limit is refused and ends the session", async () => {
      await g.setOption("relay.max_body_mb", "1");
      const { client, peer } = await session();
      client.say("x".repeat(1024 * 1024 + 1));
      expect(await client.nextOf("error")).toMatchObject({ error: { code: "body_too_large" } });
      expect((await client.closed).code).toBe(1009);
      await peer.closed;
      await g.setOption("relay.max_body_mb", "64");
    });

    test("a replay of the log at unchanged prices gives every charge, to the unit", async () => {
      const { replayed, differences } = await replayLog(g.app.deps);
      expect(replayed).toBeGreaterThan(10);
      expect(differences).toEqual([]);
    });
  });
}

function reserved(g: RealtimeGateway): number {
  const { accounts } = g.app.deps;
  const user = accounts.user(g.user.id);
  return user instanceof Promise ? -1 : (user?.reserved ?? 0);
}
