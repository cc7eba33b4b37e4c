// Sessions that only transcribe: the model that writes down is the one that is priced, and the key decides about it. What a
// session is, its upstream says; how long it took to write something down is not the session's age.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { audit } from "../../../src/core/ledger/audit.ts";
import { untilSo } from "../../support/turns.ts";
import { MODEL, startRealtimeGateway } from "./support.ts";
import type { RealtimeGateway } from "./support.ts";

const CHEAP = "gpt-4o-mini-transcribe";
const DEAR = "gpt-4o-transcribe";
const SERVED = "served-transcribe";
const COMPLETED = "conversation.item.input_audio_transcription.completed";
const DELTA = "conversation.item.input_audio_transcription.delta";
const SECOND = "A".repeat((48_000 * 4) / 3);

let g: RealtimeGateway;
beforeAll(async () => {
  g = await startRealtimeGateway({
    channel: { models: `${CHEAP},${DEAR},${MODEL},alias`, modelMapping: JSON.stringify({ alias: SERVED }) },
  });
  await g.setOption("ModelRatio", JSON.stringify({ [CHEAP]: 1, [DEAR]: 100, [MODEL]: 2.5, [SERVED]: 10 }));
});
afterAll(async () => {
  const { db } = g.app.deps;
  expect((await audit(db)).differences).toEqual([]);
  await g.close();
});

type Fields = Record<string, unknown>;
const asked = (model: string): Fields => ({ audio: { input: { transcription: { model } } } });
const askedBefore = (model: string): Fields => ({ input_audio_transcription: { model } });
const tokens = (count: number): Fields => ({
  type: "tokens",
  input_tokens: count,
  input_token_details: { text_tokens: count },
  output_tokens: 0,
});

/** A session of a key that may use these models only; absent: all of them. */
async function session(query: string, limits?: string) {
  const { key } = await g.app.createToken(
    g.user.id,
    limits === undefined ? {} : { modelLimitsEnabled: true, modelLimits: limits },
  );
  const before = (await g.logs()).length;
  const client = await g.open({ key, query });
  const peer = g.upstream.connections.items.at(-1);
  if (!peer) throw new Error("no upstream");
  async function tell(event: Fields): Promise<void> {
    client.say(event);
    await peer?.received.next();
  }
  async function say(event: Fields): Promise<void> {
    peer?.say(event);
    await client.nextOf(String(event["type"]));
  }
  /** The rows of the session, when it has ended. */
  async function rows() {
    client.socket.close(1000);
    await Promise.all([client.closed, peer?.closed]);
    const user = await g.app.deps.accounts.user(g.user.id);
    await untilSo(() => user?.reserved === 0);
    return (await g.logs()).slice(before);
  }
  const charges = async () => (await rows()).map(({ modelName, quota }) => [modelName, quota]);
  return { client, tell, say, rows, charges };
}

const TRANSCRIBING = `?model=${CHEAP}&intent=transcription`;

describe("the model that writes down is priced", () => {
  test.each([
    ["session.updated", { type: "transcription", ...asked(DEAR) }],
    ["session.updated", { type: "transcription", ...askedBefore(DEAR) }],
    ["transcription_session.updated", askedBefore(DEAR)],
  ])("where the upstream names another than the session's: %s %j", async (type, named) => {
    const { say, charges } = await session(TRANSCRIBING);
    await say({ type: COMPLETED, item_id: "a", usage: tokens(1000) });
    await say({ type, session: named });
    await say({ type: COMPLETED, item_id: "b", usage: tokens(1000) });
    await say({ type: COMPLETED, item_id: "b", usage: tokens(1000) });
    expect(await charges()).toEqual([
      [CHEAP, 1000],
      [DEAR, 100_000],
    ]);
  });
  test("also of sound that nobody had written down when the session ended", async () => {
    const { say, tell, charges } = await session(TRANSCRIBING);
    await say({ type: "session.updated", session: asked(DEAR) });
    await tell({ type: "input_audio_buffer.append", audio: SECOND.repeat(6) });
    await say({ type: DELTA, item_id: "a", delta: "hello" });
    await say({ type: COMPLETED, item_id: "a", usage: { type: "duration", seconds: 6 } });
    await tell({ type: "input_audio_buffer.append", audio: SECOND.repeat(6) });
    expect(await charges()).toEqual([
      [DEAR, 10_000],
      [DEAR, 10_000],
    ]);
  });
  test("a word of the client that nobody took up is none: the session's own model has been asked for", async () => {
    const { say, tell, charges } = await session(`?model=${DEAR}&intent=transcription`);
    await tell({ type: "session.update", session: asked(CHEAP) });
    await say({ type: "error", error: { message: "no" } });
    await say({ type: COMPLETED, item_id: "a", usage: tokens(1000) });
    expect(await charges()).toEqual([[DEAR, 100_000]]);
  });
  test("a mapped model has its own name in the upstream's mouth", async () => {
    const { say, charges } = await session("?model=alias&intent=transcription");
    await say({ type: "session.updated", session: asked(SERVED) });
    await say({ type: COMPLETED, item_id: "a", usage: tokens(100) });
    expect(await charges()).toEqual([["alias", 1000]]);
  });
  test("what cannot be held at its price is charged with the turn, and the session goes on", async () => {
    const { ledger } = g.app.deps;
    const reserve = ledger.reserve.bind(ledger);
    const { say, tell, charges } = await session(TRANSCRIBING);
    await say({ type: "session.updated", session: asked(DEAR) });
    ledger.reserve = (request) =>
      request.isPart === true ? Promise.reject(new Error("away")) : reserve(request);
    try {
      await tell({ type: "input_audio_buffer.append", audio: SECOND });
      for (const item of ["a", "b"]) await say({ type: COMPLETED, item_id: item, usage: tokens(1000) });
      expect(await charges()).toEqual(Array(2).fill([CHEAP, 1000]));
    } finally {
      ledger.reserve = reserve;
    }
  });
});

describe("the key decides which model that may be", () => {
  test.each([
    [TRANSCRIBING, { type: "session.update", session: asked(DEAR) }],
    [TRANSCRIBING, { type: "transcription_session.update", session: askedBefore(DEAR) }],
    // Both places are read, whichever the upstream reads.
    [TRANSCRIBING, { type: "session.update", session: { ...asked(CHEAP), ...askedBefore(DEAR) } }],
    [`?model=${CHEAP}`, { type: "session.update", session: { type: "transcription", ...asked(DEAR) } }],
  ])("%s %j", async (query, update) => {
    const { client, tell, charges } = await session(query, CHEAP);
    client.say(update);
    expect(await client.nextOf("error")).toMatchObject({ error: { code: "token_model_forbidden" } });
    await tell({ type: "session.update", session: asked(CHEAP) });
    expect(await charges()).toEqual([]);
  });
  test("behind sound, too, that the same frame begins with", async () => {
    const { client, charges } = await session(TRANSCRIBING, CHEAP);
    const update = JSON.stringify({ type: "session.update", session: asked(DEAR) }).slice(1);
    for (const sound of [
      `{"type":"input_audio_buffer.append","audio":"AAAA",${update}`,
      `{"type":"response.audio.delta",${update.slice(0, -1)},"delta":"AAAA"}`,
    ]) {
      client.say(sound);
      expect(await client.nextOf("error")).toMatchObject({ error: { code: "token_model_forbidden" } });
    }
    expect(await charges()).toEqual([]);
  });
  test("the session's own is allowed by its upstream's name", async () => {
    const { tell, charges } = await session("?model=alias&intent=transcription", "alias");
    await tell({ type: "session.update", session: asked(SERVED) });
    expect(await charges()).toEqual([]);
  });
});

test.each([
  ["", { type: "transcription" }, { type: "realtime" }],
  ["&intent=transcription", { type: "transcription" }, { type: "realtime" }],
  ["", { type: "transcription" }, undefined],
])("what a session is, its upstream says: %j, %j, %j", async (intent, wanted, told) => {
  const { say, tell, charges } = await session(`?model=${MODEL}${intent}`);
  await tell({ type: "session.update", session: wanted });
  if (told) await say({ type: "session.updated", session: told });
  await say({ type: COMPLETED, item_id: "a", usage: { type: "duration", seconds: 6 } });
  // As sound beside responses, at its price, and not by the minute.
  expect(await charges()).toEqual([[MODEL, 60 * 8 * 2.5]]);
});

test("a transcription took as long as it took to write it down, however old its session is", async () => {
  const real = performance.now.bind(performance);
  let ahead = 0;
  performance.now = () => real() + ahead;
  try {
    const { say, rows } = await session(TRANSCRIBING);
    const heard = async (id: string) => {
      ahead += 2000;
      await say({ type: COMPLETED, item_id: id, usage: tokens(10) });
    };
    await heard("without a sign, since the session began");
    for (const type of ["input_audio_buffer.committed", DELTA]) {
      ahead += 10_000;
      await say({ type, item_id: type, delta: "hel" });
      await heard(type);
    }
    await heard("without a sign, since the one before");
    const seconds = (await rows()).map(({ useTimeMs }) => Math.floor(useTimeMs / 1000));
    expect(seconds).toEqual([2, 2, 2, 2]);
  } finally {
    performance.now = real;
  }
});
