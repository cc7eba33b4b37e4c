// MiniMax: refusals under status 200, streams with a repeated last chunk and no end, and its own words for embeddings,
// speech and pictures.
import { afterAll, describe, expect, test } from "bun:test";
import type { Failure } from "../../../src/shared/failures.ts";
import { KEY, minimaxFake } from "./fakes/minimax.ts";
import {
  codeOf,
  failureOf,
  HI,
  perform,
  requestOf,
  serve,
  streamed,
  text,
  WEATHER_TOOL,
  whole,
} from "./support.ts";
import type { CallOptions } from "./support.ts";

const upstream = serve(minimaxFake);
afterAll(() => upstream.stop());

function minimax(body: Record<string, unknown> = {}, more: Partial<CallOptions> = {}): CallOptions {
  const all = { messages: HI, ...body };
  return { type: 35, key: KEY, model: "abab6.5s-chat", baseUrl: upstream.url, body: all, ...more };
}
const said = (content: string, more: Partial<CallOptions> = {}) =>
  minimax({ messages: [{ role: "user", content }] }, more);
const sent = () => requestOf(upstream).json();

describe("chat", () => {
  test("answers, whole and streamed, with usage, and calls tools", async () => {
    for (const answer of [await whole(minimax()), await streamed(minimax())]) {
      expect([text(answer), answer.reason]).toEqual(["Hello world", "stop"]);
      expect([answer.usage.input.fresh, answer.usage.output.text]).toEqual([11, 7]);
    }
    for (const read of [whole, streamed]) {
      const answer = await read(minimax({ tools: [WEATHER_TOOL] }));
      const [call] = answer.blocks.filter((block) => block.kind === "tool-call");
      expect([call?.name, call?.text, answer.reason]).toEqual([
        "get_weather",
        '{"city":"Paris"}',
        "tool-calls",
      ]);
    }
  });

  test("a stream says nothing twice and ends as streams of its form do", async () => {
    const wire = await (await perform(minimax({}, { isStream: true }))).text();
    expect(wire).toEndWith("data: [DONE]\n\n");
    expect(wire).not.toContain("Hello world");
    expect(wire.split("finish_reason").length - 1).toBe(1);
    expect(text(await streamed(said("search")))).toBe("Hello world");
    const late = await streamed(said("late end"));
    expect([text(late), late.reason, late.usage.input.fresh]).toEqual(["Hello world", "stop", 11]);
  });

  test("refusals are errors, sorted by their code, before anything is answered", async () => {
    const meanings: [number, Failure["kind"]][] = [
      [1004, "upstream-auth"],
      [2049, "upstream-auth"],
      [1008, "upstream-quota"],
      [1002, "upstream-limit"],
      [1039, "upstream-limit"],
      [1026, "upstream-refusal"],
      [1027, "upstream-refusal"],
      [2013, "upstream-request"],
      [1001, "upstream-timeout"],
      [1013, "upstream-down"],
      [1000, "upstream-down"],
    ];
    for (const [code, kind] of meanings) {
      for (const isStream of [false, true]) {
        const failure = await failureOf(await perform(said(`code ${code}`, { isStream })));
        expect([code, failure.kind]).toEqual([code, kind]);
      }
    }
    const wrong = await perform(minimax({}, { key: "other" }));
    expect([wrong.status, (await failureOf(wrong)).kind]).toEqual([401, "upstream-auth"]);
  });

  test("a refusal later on ends the stream as an error; a stream that breaks off is no answer", async () => {
    const late = (await streamed(said("late error")).catch((error: unknown) => error)) as Failure;
    expect(late.kind).toBe("upstream-limit");
    const cut = await perform(said("cut", { isStream: true }));
    expect(await codeOf(() => cut.text())).toBe("broken_stream");
  });
});

test("embeddings say what the texts are for", async () => {
  const options = minimax({ input: ["a", "b"] }, { operation: "embeddings", model: "embo-01" });
  expect(await (await perform(options)).json()).toMatchObject({
    data: [{ embedding: [0, 0.5] }, { embedding: [1, 0.5] }],
    usage: { prompt_tokens: 4 },
  });
  expect(sent()).toEqual({ model: "embo-01", texts: ["a", "b"], type: "db" });
  await perform({ ...options, body: { input: "a", type: "query" } });
  expect(sent()).toMatchObject({ texts: ["a"], type: "query" });
  const refused = await perform({ ...options, body: { input: "says 1008" } });
  expect((await failureOf(refused)).kind).toBe("upstream-quota");
});

test("speech comes as bytes of the asked format; other formats are refused by name", async () => {
  const options = minimax(
    { input: "hi", voice: "male-qn-qingse", speed: 4, response_format: "wav" },
    { operation: "speech", model: "speech-02-hd" },
  );
  const answer = await perform(options);
  expect([answer.headers.get("content-type"), await answer.text()]).toEqual(["audio/wav", "sound"]);
  expect(sent()).toEqual({
    model: "speech-02-hd",
    text: "hi",
    stream: false,
    output_format: "hex",
    voice_setting: { voice_id: "male-qn-qingse", speed: 2 },
    audio_setting: { format: "wav" },
  });
  const body = { input: "hi", response_format: "opus" };
  expect(await codeOf(() => perform({ ...options, body }))).toBe("unsupported_field");
  const refused = await perform({ ...options, body: { input: "says 1026" } });
  expect((await failureOf(refused)).kind).toBe("upstream-refusal");
});

test("pictures come as addresses or inline, as many as were made", async () => {
  const draw = (body: Record<string, unknown>) =>
    perform(minimax({ prompt: "a square", ...body }, { operation: "image-generations", model: "image-01" }));
  expect(await (await draw({ n: 2, size: "1024x768" })).json()).toMatchObject({
    data: [{ url: "https://pictures.example/1.jpeg" }, { url: "https://pictures.example/1.jpeg" }],
  });
  expect(sent()).toMatchObject({ n: 2, width: 1024, height: 768, response_format: "url" });
  expect(await (await draw({ response_format: "b64_json" })).json()).toMatchObject({
    data: [{ b64_json: "aGk=" }],
  });
  expect(await codeOf(() => draw({ size: "256x256" }))).toBe("unsupported_field");
  expect(
    ((await (await draw({ prompt: "one fails", n: 2 })).json()) as { data: unknown[] }).data.length,
  ).toBe(1);
  expect(await codeOf(() => draw({ prompt: "one fails", n: 1 }))).toBe("upstream_bad_answer");
  expect((await failureOf(await draw({ prompt: "says 1002" }))).kind).toBe("upstream-limit");
});
