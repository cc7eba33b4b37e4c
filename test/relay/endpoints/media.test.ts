// Pictures, speech, transcription, rerank, moderations and edits over the wire: what passes, what is refused, what it
// costs. Runs on both databases; after every test the books are audited.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { toFile } from "openai";
import { requestFacts } from "../../../src/relay/endpoints/service-tier.ts";
import { audit } from "../../../src/core/ledger/audit.ts";
import { formFields, parseForm } from "../../../src/relay/wire/multipart.ts";
import { explainStored } from "../../../src/shared/cost.ts";
import { CUT, gate } from "../../support/fake-upstream.ts";
import type { RecordedRequest, Script } from "../../support/fake-upstream.ts";
import { replayLog } from "../../support/replayed.ts";
import { errorOf, startGateway, until } from "../support.ts";
import type { Gateway, LogLine } from "../support.ts";

const MODELS =
  "dall-e,dall-e-2,dall-e-3,gpt-image-1,tts-1,gpt-4o-mini-tts,whisper-1,gpt-4o-transcribe,text-moderation-stable,omni-moderation-latest,bge-reranker-v2-m3,gpt-4o-mini,free-rerank,sora-2,tts-by-text";

const reply = (value: unknown, headers: Record<string, string> = {}): Script => ({
  headers: { "content-type": "application/json", ...headers },
  steps: [JSON.stringify(value)],
});
const events = (...list: unknown[]): Script => ({
  headers: { "content-type": "text/event-stream" },
  steps: list.map((each) => `data: ${JSON.stringify(each)}\n\n`),
});

/** Two seconds of silence. */
function wav(seconds = 2): Uint8Array<ArrayBuffer> {
  const size = 16_000 * seconds;
  const head = Buffer.alloc(44);
  head.write("RIFF", 0);
  head.writeUInt32LE(36 + size, 4);
  head.write("WAVEfmt ", 8);
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(8000, 24);
  head.writeUInt32LE(16_000, 28);
  head.writeUInt16LE(2, 32);
  head.writeUInt16LE(16, 34);
  head.write("data", 36);
  head.writeUInt32LE(size, 40);
  return new Uint8Array(Buffer.concat([head, Buffer.alloc(size)]));
}

function formOf(request: RecordedRequest | undefined) {
  if (!request) throw new Error("no request");
  return parseForm(new Uint8Array(request.body), request.headers["content-type"] ?? null);
}

for (const database of ["sqlite", "postgres"] as const) {
  describe(`media endpoints on ${database}`, () => {
    let g: Gateway;
    beforeAll(async () => {
      g = await startGateway({ database, quota: 100_000_000, channel: { models: MODELS } });
      await g.setOption("SelfUseModeEnabled", "true");
      const { options } = g.app.deps;
      const prices = { ...options.get("ModelPrice"), "sora-2": 0.1, "tts-by-text": 0.015 };
      await g.setOption("ModelPrice", JSON.stringify(prices));
      const units = { "sora-2": { unit: "second" }, "tts-by-text": { unit: "kchar" } };
      await g.setOption("PriceRules", JSON.stringify({ ...options.get("PriceRules"), ...units }));
    }, 60_000);
    afterAll(() => g.close());
    beforeEach(() => g.upstream.reset());
    afterEach(async () => {
      await g.app.deps.ledger.flush();
      expect((await audit(g.app.deps.db)).differences).toEqual([]);
      const user = await g.app.deps.accounts.user(g.user.id);
      expect(user?.reserved).toBe(0);
    });

    /** Runs a call and tells its one new log row, if there is one. */
    async function charged<T>(
      call: () => Promise<T>,
    ): Promise<{ result: T; row: LogLine | undefined; spent: number }> {
      const count = (await g.logs()).length;
      const before = await g.balance();
      const result = await call();
      const after = await g.balance();
      const rows = (await g.logs()).slice(count).filter((row) => row.type === 2);
      expect(rows.length).toBeLessThanOrEqual(1);
      expect(before.quota - after.quota).toBe(rows[0]?.quota ?? 0);
      return { result, row: rows[0], spent: before.quota - after.quota };
    }

    async function refusal(response: Promise<Response>) {
      const answer = await response;
      const error = await errorOf(answer);
      return {
        status: answer.status,
        code: error.code,
        type: error.type,
        param: error.param,
        message: error.message,
      };
    }

    async function postForm(path: string, form: FormData): Promise<Response> {
      return fetch(g.app.url + path, {
        method: "POST",
        headers: { authorization: `Bearer ${g.key}` },
        body: form,
      });
    }

    describe("images", () => {
      const picture = { created: 1, data: [{ b64_json: "AAAA" }] };

      test("a fixed price is multiplied by size, quality and number", async () => {
        g.upstream.script(reply({ created: 1, data: [{ url: "u" }] }));
        const body = {
          model: "dall-e-3",
          prompt: "a cat",
          size: "1792x1024",
          quality: "hd",
          style: "vivid",
          x: 0,
        };
        const { result, row } = await charged(() => g.post("/v1/images/generations", body));
        expect(await result.json()).toEqual({ created: 1, data: [{ url: "u" }] });
        expect(g.upstream.requests[0]?.url).toBe("/v1/images/generations");
        expect(g.upstream.requests[0]?.json()).toEqual(body);
        expect(row).toMatchObject({ quota: 60_000, promptTokens: 1, modelName: "dall-e-3", isStream: false });
        expect(row?.content).toBe("模型价格 0.04，分组倍率 1.00, 大小 1792x1024, 品质 hd");
        expect(row?.other["model_price"]).toBeCloseTo(0.12, 9);
        const pictures = (n: number) => reply({ created: 1, data: Array(n).fill({ url: "u" }) });
        g.upstream.script(pictures(3));
        const three = await charged(() =>
          g.post("/v1/images/generations", { model: "dall-e-3", prompt: "x", n: 3 }),
        );
        expect(three.row?.quota).toBe(60_000);
        expect(three.row?.content).toEndWith("大小 1024x1024, 品质 standard");
        // Some were filtered: what came is charged, and never more than was asked.
        for (const [asked, came] of [
          [3, 2],
          [2, 4],
        ] as const) {
          g.upstream.script(pictures(came));
          const { row } = await charged(() =>
            g.post("/v1/images/generations", { model: "dall-e-3", prompt: "x", n: asked }),
          );
          expect(row?.quota).toBe(40_000);
        }
      });

      test("by tokens where the upstream tells them, pictures in the input at their own ratio", async () => {
        const usage = {
          total_tokens: 1350,
          input_tokens: 300,
          output_tokens: 1050,
          input_tokens_details: { text_tokens: 50, image_tokens: 250 },
        };
        g.upstream.script(reply({ ...picture, usage }));
        const { row } = await charged(() =>
          g.client.images.generate({ model: "gpt-image-1", prompt: "a dog" }),
        );
        expect(row?.quota).toBe(Math.round((50 + 250 * 2 + 1050 * 8) * 2.5));
        expect(row?.other).toMatchObject({ image: true, image_ratio: 2, image_output: 250 });
      });

      test("without usage each picture counts as one token, so that the call is billed", async () => {
        g.upstream.script(reply({ ...picture, data: Array(4).fill(picture.data[0]) }));
        const { row } = await charged(() =>
          g.post("/v1/images/generations", { model: "gpt-image-1", prompt: "x", n: 4 }),
        );
        expect(row).toMatchObject({ promptTokens: 4, completionTokens: 0, quota: 10 });
        expect(row?.other["estimated"]).toBeUndefined();
      });

      test("a provider's own word for the size is priced where OpenAI's is absent", async () => {
        const native = (size?: string) => requestFacts("openai-chat", { size, image_size: "2048x2048" }).size;
        expect([native(), native(""), native("1024x1024")]).toEqual(["2048x2048", "2048x2048", "1024x1024"]);
        g.upstream.script(reply(picture));
        const body = { model: "dall-e-3", prompt: "x", image_size: "1024x1792" };
        const { row } = await charged(() => g.post("/v1/images/generations", body));
        expect(row?.content).toContain("1024x1792");
        // It is asked for in the word that every upstream knows, or a picture of another size would come.
        expect(g.upstream.requests[0]?.json()).toEqual({ model: "dall-e-3", prompt: "x", size: "1024x1792" });
        // Of two words for it none asks for more than is paid.
        g.upstream.script(reply(picture));
        await g.post("/v1/images/generations", { ...body, size: "1024x1024" });
        expect(g.upstream.requests.at(-1)?.json()).toEqual({
          ...body,
          size: "1024x1024",
          image_size: "1024x1024",
        });
      });

      test("a request without a model goes out as dall-e, by the rules of dall-e-3", async () => {
        g.upstream.script(reply(picture));
        await g.post("/v1/images/generations", { prompt: "x", size: "1024x1792" });
        expect(g.upstream.requests[0]?.json()).toEqual({ prompt: "x", size: "1024x1792", model: "dall-e" });
        expect(
          await refusal(g.post("/v1/images/generations", { prompt: "x", size: "256x256" })),
        ).toMatchObject({ status: 400 });
      });

      test.each([
        [{ model: "dall-e-3", prompt: "x", size: "1024×1024" }, "size"],
        [{ model: "dall-e-3", prompt: "x", size: "512x512" }, "size"],
        [{ model: "dall-e-3", prompt: "x", image_size: "512x512" }, "size"],
        [{ model: "dall-e-2", prompt: "x", size: "1792x1024" }, "size"],
        [{ model: "dall-e-3" }, "prompt"],
        [{ model: "dall-e-3", prompt: "x", n: 0 }, "n"],
        [{ model: "dall-e-3", prompt: "x", n: 1e12 }, "n"],
        [{ model: "dall-e-3", prompt: "x", n: 1, N: 10 }, "n"],
      ])("refused: %j", async (body, param) => {
        const { result, row } = await charged(() => refusal(g.post("/v1/images/generations", body)));
        expect(result).toMatchObject({ status: 400, code: "invalid_image_request", param });
        expect(row).toBeUndefined();
        expect(g.upstream.requests).toHaveLength(0);
      });

      test("forbidden words in the prompt: 400 with the code of this endpoint", async () => {
        const body = { model: "dall-e-3", prompt: "a test_sensitive cat" };
        expect(await refusal(g.post("/v1/images/generations", body))).toMatchObject({
          status: 400,
          code: "invalid_image_request",
        });
      });

      test("a balance that cannot pay the pictures: 403 in the words of this endpoint", async () => {
        const poor = await g.app.createUser({ quota: 50_000 });
        const { key } = await g.app.createToken(poor.id);
        const body = { model: "dall-e-3", prompt: "x", n: 3 };
        const refused = await refusal(
          g.post("/v1/images/generations", body, { authorization: `Bearer ${key}` }),
        );
        expect(refused).toMatchObject({ status: 403, code: "insufficient_user_quota" });
        expect(refused.message).toStartWith(
          "image pre-consumed quota failed, user quota: ＄0.100000, need quota: ＄0.120000",
        );
      });

      test("a stream of partial pictures passes, and its last event is charged", async () => {
        const usage = {
          total_tokens: 110,
          input_tokens: 10,
          output_tokens: 100,
          input_tokens_details: { text_tokens: 10, image_tokens: 0 },
        };
        g.upstream.script(
          events(
            { type: "image_generation.partial_image", partial_image_index: 0, b64_json: "A".repeat(500_000) },
            { type: "image_generation.completed", b64_json: "BBBB", usage },
          ),
        );
        const { result, row } = await charged(async () => {
          const stream = await g.client.images.generate({
            model: "gpt-image-1",
            prompt: "x",
            stream: true,
            partial_images: 1,
          });
          const types: string[] = [];
          for await (const event of stream) types.push(event.type);
          return types;
        });
        expect(result).toEqual(["image_generation.partial_image", "image_generation.completed"]);
        expect(row).toMatchObject({
          isStream: true,
          promptTokens: 10,
          completionTokens: 100,
          quota: Math.round(810 * 2.5),
        });
      });

      test("edits: the form goes out with the mapped model, its pictures byte for byte", async () => {
        const model = "my-image";
        await g.app.createChannel({
          baseUrl: g.upstream.url,
          models: model,
          modelMapping: JSON.stringify({ [model]: "gpt-image-1" }),
        });
        const one = new Uint8Array([137, 80, 78, 71, 13, 10, 26, 10, 0, 255]);
        const two = new Uint8Array([255, 216, 13, 10, 45, 45, 1]);
        g.upstream.script(
          reply({ ...picture, usage: { input_tokens: 5, output_tokens: 6, total_tokens: 11 } }),
        );
        const { row } = await charged(async () =>
          g.client.images.edit({
            model,
            prompt: "make it blue",
            image: [await toFile(one, "a.png"), await toFile(two, "b.JPG")],
            mask: await toFile(one, "m.png"),
          }),
        );
        const form = formOf(g.upstream.requests[0]);
        expect(formFields(form)).toEqual({ model: "gpt-image-1", prompt: "make it blue" });
        const files = form.parts.filter((part) => part.filename !== undefined);
        files.sort((a, b) => a.name.localeCompare(b.name));
        expect(files.map(({ name, type, bytes }) => [name, type, [...bytes]])).toEqual([
          ["image[]", "image/png", [...one]],
          ["image[]", "image/jpeg", [...two]],
          ["mask", "image/png", [...one]],
        ]);
        expect(row).toMatchObject({ modelName: model, promptTokens: 5, completionTokens: 6 });
        expect(row?.other).toMatchObject({ is_model_mapped: true, upstream_model_name: "gpt-image-1" });
      });

      test("edits without a picture, without a prompt, with a JSON body: 400", async () => {
        const form = new FormData();
        form.append("prompt", "x");
        expect(await refusal(postForm("/v1/images/edits", form))).toMatchObject({
          status: 400,
          code: "invalid_image_request",
          param: "image",
        });
        const bare = new FormData();
        bare.append("image", new File([new Uint8Array(4)], "a.png"));
        expect(await refusal(postForm("/v1/images/edits", bare))).toMatchObject({
          status: 400,
          param: "prompt",
        });
        expect(await refusal(g.post("/v1/images/edits", { prompt: "x" }))).toMatchObject({
          status: 400,
          code: "invalid_image_request",
        });
        expect(g.upstream.requests).toHaveLength(0);
      });

      test("one picture goes out as image, and a form without a model as gpt-image-1", async () => {
        const form = new FormData();
        form.append("image[]", new File([new Uint8Array([1, 2, 3])], "a.webp"));
        form.append("prompt", "x");
        form.append("n", "2");
        form.append("quality", "");
        form.append("image_size", "1024x1024");
        g.upstream.script(reply({ ...picture, data: Array(2).fill(picture.data[0]) }));
        const { row } = await charged(() => postForm("/v1/images/edits", form));
        const sent = formOf(g.upstream.requests[0]);
        expect(formFields(sent)).toEqual({
          model: "gpt-image-1",
          prompt: "x",
          n: "2",
          quality: "",
          size: "1024x1024",
        });
        expect(sent.parts.find((part) => part.filename !== undefined)).toMatchObject({
          name: "image",
          type: "image/webp",
        });
        expect(row?.promptTokens).toBe(2);
        // Two of a number: one would be priced, the other made.
        form.append("n", "10");
        g.upstream.requests.length = 0;
        expect(await refusal(postForm("/v1/images/edits", form))).toMatchObject({ status: 400 });
        expect(g.upstream.requests).toHaveLength(0);
      });
    });

    describe("speech", () => {
      const sound = { headers: { "content-type": "audio/mpeg" } };

      test("bytes pass as they come; a model named tts is sold by the character", async () => {
        const input = "Hello 你好 😀";
        g.upstream.script({
          ...sound,
          steps: [new Uint8Array([255, 251, 0, 1]), new Uint8Array([2, 128, 254])],
        });
        const { result, row } = await charged(async () => {
          const answer = await g.client.audio.speech.create({ model: "tts-1", voice: "alloy", input });
          expect(answer.headers.get("content-type")).toBe("audio/mpeg");
          return [...new Uint8Array(await answer.arrayBuffer())];
        });
        expect(result).toEqual([255, 251, 0, 1, 2, 128, 254]);
        expect(row).toMatchObject({ promptTokens: 10, completionTokens: 0, quota: 75, modelName: "tts-1" });
        expect(g.upstream.requests[0]?.json()).toEqual({ model: "tts-1", voice: "alloy", input });
      });

      test("the first bytes arrive before the last are made", async () => {
        const door = gate();
        g.upstream.script({ ...sound, steps: ["one", "two", door, "three"] });
        const { result } = await charged(async () => {
          const answer = await g.post("/v1/audio/speech", { model: "tts-1", voice: "alloy", input: "x" });
          const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
          const first = await reader.read();
          door.open();
          let text = Buffer.from(first.value ?? []).toString();
          for (;;) {
            const { done, value } = await reader.read();
            if (done) return text;
            text += Buffer.from(value).toString();
          }
        });
        expect(result).toBe("onetwothree");
      });

      test("other models are sold by the token", async () => {
        // The encoder is loaded on first need, and a busy machine takes longer for that than a call waits.
        const row = await until(async () => {
          g.upstream.script({ ...sound, steps: ["abc"] });
          const call = await charged(async () =>
            (await g.post("/v1/audio/speech", { model: "gpt-4o-mini-tts", input: "one two three" })).text(),
          );
          return call.row?.promptTokens === 3 ? call.row : undefined;
        });
        expect(row.completionTokens).toBe(1);
      });

      test("sound that has a price is charged by its length, of which a cap knows before; what is sold by its text is not", async () => {
        const ask = { model: "gpt-4o-mini-tts", input: "x".repeat(450) };
        const read = async (body: Record<string, unknown>, bytes: Uint8Array) => {
          g.upstream.script({ ...sound, steps: [bytes] });
          return (await charged(async () => (await g.post("/v1/audio/speech", body)).arrayBuffer())).row;
        };
        // A minute is 1,250 tokens at $12 a million: $0.015, beside its text at $0.60.
        const minute = await read(ask, wav(60));
        const text = (minute?.promptTokens ?? 0) * 0.3;
        expect(minute).toMatchObject({ completionTokens: 1250, quota: Math.round(7500 + text) });
        expect(minute?.other).toMatchObject({ audio: true, audio_output: 1250, estimated: true });
        expect(
          (await read({ ...ask, response_format: "pcm" }, new Uint8Array(480_000)))?.completionTokens,
        ).toBe(209);
        expect((await read({ ...ask, model: "tts-1" }, wav(60)))?.completionTokens).toBe(0);
        // Half a minute of a usual voice is held twice.
        const asked = g.upstream.requests.length;
        const capped = await charged(() =>
          fetch(`${g.app.url}/v1/audio/speech`, {
            method: "POST",
            headers: {
              authorization: `Bearer ${g.key}`,
              "content-type": "application/json",
              "x-max-quota": "7400",
            },
            body: JSON.stringify(ask),
          }),
        );
        expect([capped.result.status, capped.spent, g.upstream.requests.length]).toEqual([402, 0, asked]);
      });

      test("an event stream passes, and what it reports is charged", async () => {
        g.upstream.script(
          events(
            { type: "speech.audio.delta", audio: "AAAA" },
            { type: "speech.audio.done", usage: { input_tokens: 14, output_tokens: 101, total_tokens: 115 } },
          ),
        );
        const { result, row } = await charged(async () =>
          (
            await g.post("/v1/audio/speech", { model: "gpt-4o-mini-tts", input: "hi", stream_format: "sse" })
          ).text(),
        );
        expect(result).toContain("speech.audio.done");
        expect(row).toMatchObject({ promptTokens: 14, completionTokens: 101, isStream: true });
      });

      test("a body that breaks off breaks off here too, and is paid for once", async () => {
        const door = gate();
        g.upstream.script({ ...sound, steps: ["abc", door, CUT] });
        const { result, row } = await charged(async () => {
          const answer = await g.post("/v1/audio/speech", { model: "tts-1", input: "four" });
          const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
          try {
            while (!(await reader.read()).done) door.open();
            return "whole";
          } catch {
            return "broken";
          }
        });
        expect(result).toBe("broken");
        expect(row?.promptTokens).toBe(4);
        expect(row?.other["end_reason"]).toBe("upstream-cut");
      });

      test("a client that leaves pays once", async () => {
        g.upstream.script({ ...sound, steps: ["abc", "def", { end: "hang" }] });
        const count = (await g.logs()).length;
        const leave = new AbortController();
        const answer = await fetch(`${g.app.url}/v1/audio/speech`, {
          method: "POST",
          headers: { authorization: `Bearer ${g.key}`, "content-type": "application/json" },
          body: JSON.stringify({ model: "tts-1", input: "hello" }),
          signal: leave.signal,
        });
        const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
        await reader.read();
        leave.abort();
        const row = await until(async () => (await g.logs()).slice(count).find((each) => each.type === 2));
        expect(row).toMatchObject({ promptTokens: 5 });
        expect(row.other["end_reason"]).toBe("client-gone");
        await g.upstream.requests[0]?.closed;
      });

      test("an error told with status 200, a page, an empty body: nothing is charged", async () => {
        for (const script of [
          reply({ error: { message: "no such voice", type: "invalid_request_error" } }),
          { headers: { "content-type": "text/html" }, steps: ["<html>"] },
          { ...sound, steps: [] },
        ]) {
          g.upstream.reset();
          g.upstream.script(script);
          const { result, row } = await charged(() =>
            g.post("/v1/audio/speech", { model: "tts-1", input: "x" }),
          );
          expect(result.status).toBeGreaterThanOrEqual(400);
          await result.text();
          expect(row).toBeUndefined();
        }
      });

      test("no input, forbidden words: 400", async () => {
        expect(await refusal(g.post("/v1/audio/speech", { model: "tts-1" }))).toMatchObject({
          status: 400,
          code: "invalid_audio_request",
          param: "input",
        });
        expect(await refusal(g.post("/v1/audio/speech", { input: "test_sensitive" }))).toMatchObject({
          status: 400,
          code: "invalid_audio_request",
        });
      });
    });

    describe("transcription", () => {
      const file = () => toFile(wav(2), "a.wav", { type: "audio/wav" });

      test("the form passes with every field; a recording is sold by its length", async () => {
        g.upstream.script(reply({ text: "hello" }));
        const { result, row } = await charged(async () =>
          g.client.audio.transcriptions.create({
            model: "whisper-1",
            file: await file(),
            language: "en",
            timestamp_granularities: ["word", "segment"],
          }),
        );
        expect(result).toEqual({ text: "hello" });
        const form = formOf(g.upstream.requests[0]);
        expect(g.upstream.requests[0]?.url).toBe("/v1/audio/transcriptions");
        expect(form.parts.filter((part) => part.name === "timestamp_granularities[]")).toHaveLength(2);
        expect([...(form.parts.find((part) => part.name === "file")?.bytes ?? [])]).toEqual([...wav(2)]);
        // Two seconds: round(2 / 60 × 1000) tokens at ratio 3.
        expect(row).toMatchObject({ promptTokens: 33, completionTokens: 0, quota: 99 });
      });

      test("what two readers could read differently goes on as it was priced", async () => {
        g.upstream.script(reply({ text: "hello" }));
        const field = (disposition: string, text: string) =>
          `--xYz\r\nContent-Disposition: form-data; ${disposition}\r\n\r\n${text}\r\n`;
        const body = Buffer.concat([
          Buffer.from(field('name="model"', "whisper-1")),
          Buffer.from(field('name="language"; filename=""', "en")),
          Buffer.from(field('x="; name=dummy"; name="prompt"', "p")),
          Buffer.from('--xYz\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n'),
          wav(2),
          Buffer.from("\r\n--xYz--\r\n"),
        ]);
        const answer = await fetch(`${g.app.url}/v1/audio/transcriptions`, {
          method: "POST",
          headers: {
            authorization: `Bearer ${g.key}`,
            "content-type": "multipart/form-data; boundary=xYz",
          },
          body,
        });
        expect(answer.status).toBe(200);
        const sent = formOf(g.upstream.requests[0]);
        expect([sent.isPlain, formFields(sent)]).toEqual([
          true,
          { model: "whisper-1", language: "en", prompt: "p" },
        ]);
      });

      test.each([
        ["text", "text/plain; charset=utf-8", "hello\n"],
        ["srt", "text/plain", "1\n00:00:00,000 --> 00:00:02,000\nhello\n"],
        ["vtt", "text/vtt", "WEBVTT\n\n00:00.000 --> 00:02.000\nhello\n"],
      ])("format %s passes as it is", async (format, type, text) => {
        g.upstream.script({ headers: { "content-type": type }, steps: [text] });
        const form = new FormData();
        form.append("file", new File([wav(2)], "a.wav"));
        form.append("response_format", format);
        const { result, row } = await charged(async () => {
          const answer = await postForm("/v1/audio/transcriptions", form);
          expect(answer.headers.get("content-type")).toBe(type);
          return answer.text();
        });
        expect(result).toBe(text);
        expect(row).toMatchObject({ modelName: "whisper-1", promptTokens: 33 });
        expect(formFields(formOf(g.upstream.requests[0]))).toMatchObject({ model: "whisper-1" });
      });

      test("a cap below what a reading or a recording costs is refused before anybody is asked; at it, it is served", async () => {
        const form = new FormData();
        form.append("model", "whisper-1");
        form.append("file", new File([wav(2)], "a.wav"));
        const capped = (path: string, body: RequestInit["body"], cap: number) =>
          fetch(g.app.url + path, {
            method: "POST",
            headers: {
              authorization: `Bearer ${g.key}`,
              "x-max-quota": String(cap),
              ...(typeof body === "string" ? { "content-type": "application/json" } : {}),
            },
            body: body ?? null,
          });
        const read = JSON.stringify({ model: "tts-by-text", voice: "alloy", input: "x".repeat(2000) });
        // Two seconds of whisper-1, and two thousand characters at $0.015 a thousand.
        for (const [path, body, price, answered] of [
          ["/v1/audio/transcriptions", form, 99, reply({ text: "hello" })],
          ["/v1/audio/speech", read, 15_000, { headers: { "content-type": "audio/mpeg" }, steps: ["abc"] }],
        ] as const) {
          const asked = g.upstream.requests.length;
          const refused = await charged(() => capped(path, body, price - 1));
          expect([refused.result.status, refused.spent]).toEqual([402, 0]);
          expect(refused.result.headers.get("x-weir-error-code")).toBe("max_cost_exceeded");
          expect(g.upstream.requests).toHaveLength(asked);
          g.upstream.script(answered);
          const served = await charged(async () => {
            const response = await capped(path, body, price);
            await response.text();
            return response.status;
          });
          expect([served.result, served.spent]).toEqual([200, price]);
        }
      });

      test("a head that tells a short length does not make subtitles of an hour cheap", async () => {
        const stamp = "01:00:00,500 --> 01:00:02.000";
        for (const [type, text, tokens] of [
          [
            "srt",
            `1\n00:00:00,000 --> 00:00:01,000\nx\n\n2\n${stamp}\nhello\n`,
            Math.round((3602 / 60) * 1000),
          ],
          // A model hears in windows of half a minute: what ends with one is no longer than the file.
          ["vtt", "WEBVTT\n\n00:00.000 --> 00:30.000\nhello\n", 33],
        ] as const) {
          g.upstream.script({ headers: { "content-type": "text/plain" }, steps: [text] });
          const form = new FormData();
          form.append("file", new File([wav(2)], "a.wav"));
          form.append("response_format", type);
          const { row } = await charged(async () =>
            (await postForm("/v1/audio/transcriptions", form)).text(),
          );
          expect(row?.promptTokens).toBe(tokens);
        }
      });

      test("the upstream's word on the length counts before the file's", async () => {
        g.upstream.script(
          reply({ text: "x", duration: 61.2, segments: [] }),
          reply({ text: "x", usage: { type: "duration", seconds: 30 } }),
        );
        const call = async () =>
          g.client.audio.transcriptions.create({
            model: "whisper-1",
            file: await file(),
            response_format: "verbose_json",
          });
        expect((await charged(call)).row?.promptTokens).toBe(Math.round((62 / 60) * 1000));
        expect((await charged(call)).row?.promptTokens).toBe(500);
      });

      test("priced by the thousand characters: every character, cut at none", async () => {
        g.upstream.script({ headers: { "content-type": "audio/mpeg" }, steps: ["sound"] });
        const { row } = await charged(async () =>
          (await g.post("/v1/audio/speech", { model: "tts-by-text", input: "好".repeat(1200) })).text(),
        );
        // 1.2 thousand at $0.015 of 500,000 units.
        expect(row?.quota).toBe(9000);
      });

      test("priced by the second: the delivered seconds once, at the group's ratio", async () => {
        const ratios = g.app.deps.options.text("GroupRatio");
        await g.setOption("GroupRatio", '{"default":0.8}');
        const call = async () =>
          g.client.audio.transcriptions.create({ model: "sora-2", file: await file() });
        // 8 s at $0.10, group 0.8: money.md's worked example. Without a word of the upstream: the file's two seconds.
        g.upstream.script(reply({ text: "x", duration: 8 }), reply({ text: "x" }));
        const { row } = await charged(call);
        expect([row?.quota, (await charged(call)).row?.quota]).toEqual([320_000, 80_000]);
        expect(explainStored(row?.other ?? {})?.quota).toBe(320_000);
        await g.setOption("GroupRatio", ratios);
        // What a conversation is not counted in is not sold as one call.
        const response = await g.chat({ model: "sora-2" });
        const refused = await errorOf(response);
        expect([response.status, refused.code, response.headers.get("x-weir-error-code")]).toEqual([
          400,
          "price_unit_uncounted",
          "price_unit_uncounted",
        ]);
      });

      test("tokens that are told are charged as tokens", async () => {
        const usage = {
          type: "tokens",
          input_tokens: 40,
          output_tokens: 12,
          total_tokens: 52,
          input_token_details: { text_tokens: 0, audio_tokens: 40 },
        };
        g.upstream.script(reply({ text: "hi", usage }));
        const { row } = await charged(async () =>
          g.client.audio.transcriptions.create({ model: "gpt-4o-transcribe", file: await file() }),
        );
        expect(row).toMatchObject({ promptTokens: 40, completionTokens: 12 });
      });

      test("a stream passes, and its final event is charged", async () => {
        g.upstream.script(
          events(
            { type: "transcript.text.delta", delta: "hel" },
            { type: "transcript.text.delta", delta: "lo" },
            {
              type: "transcript.text.done",
              text: "hello",
              usage: { type: "tokens", input_tokens: 14, output_tokens: 45, total_tokens: 59 },
            },
          ),
        );
        const { result, row } = await charged(async () => {
          const stream = await g.client.audio.transcriptions.create({
            model: "gpt-4o-transcribe",
            file: await file(),
            stream: true,
          });
          let text = "";
          for await (const event of stream) if (event.type === "transcript.text.delta") text += event.delta;
          return text;
        });
        expect(result).toBe("hello");
        expect(row).toMatchObject({ promptTokens: 14, completionTokens: 45, isStream: true });
        expect(g.upstream.requests[0]?.headers["accept"]).toBe("text/event-stream");
      });

      test("a stream that breaks off is told as an error, and what was heard is charged by its length", async () => {
        const door = gate();
        g.upstream.script({
          headers: { "content-type": "text/event-stream" },
          steps: [`data: ${JSON.stringify({ type: "transcript.text.delta", delta: "hel" })}\n\n`, door, CUT],
        });
        const form = new FormData();
        form.append("file", new File([wav(2)], "a.wav"));
        form.append("stream", "true");
        const { result, row } = await charged(async () => {
          const answer = await postForm("/v1/audio/transcriptions", form);
          const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
          let text = "";
          for (;;) {
            const { done, value } = await reader.read();
            if (done) return text;
            text += Buffer.from(value).toString();
            door.open();
          }
        });
        expect(result).toContain("hel");
        expect(result).toContain("broken_stream");
        expect(row).toMatchObject({ promptTokens: 33 });
        expect(row?.other["end_reason"]).toBe("upstream-cut");
      });

      test("a recording of an unknown format is taken for its size, and marked so", async () => {
        g.upstream.script(reply({ text: "x" }));
        const form = new FormData();
        form.append("file", new File([new Uint8Array(32_000)], "a.amr"));
        const { row } = await charged(async () => (await postForm("/v1/audio/translations", form)).json());
        expect(g.upstream.requests[0]?.url).toBe("/v1/audio/translations");
        expect(row).toMatchObject({ promptTokens: 33 });
        expect(row?.other["estimated"]).toBe(true);
      });

      test("no file, a file as text, two models: 400 and no call", async () => {
        const bare = new FormData();
        bare.append("model", "whisper-1");
        bare.append("file", "just text");
        expect(await refusal(postForm("/v1/audio/transcriptions", bare))).toMatchObject({
          status: 400,
          code: "invalid_audio_request",
          param: "file",
        });
        const twice = new FormData();
        twice.append("model", "whisper-1");
        twice.append("model", "gpt-4o-transcribe");
        twice.append("file", new File([wav(1)], "a.wav"));
        expect(await refusal(postForm("/v1/audio/transcriptions", twice))).toMatchObject({
          status: 400,
          param: "model",
        });
        expect(g.upstream.requests).toHaveLength(0);
      });

      test("a form above the limit: 413", async () => {
        await g.setOption("relay.max_body_mb", "1");
        const form = new FormData();
        form.append("file", new File([new Uint8Array(1_100_000)], "a.wav"));
        expect(await refusal(postForm("/v1/audio/transcriptions", form))).toMatchObject({ status: 413 });
        await g.setOption("relay.max_body_mb", "64");
      });

      test("a failed channel is followed by the next one, with the form whole again", async () => {
        await g.setOption("RetryTimes", "1");
        const model = "pair-whisper";
        for (let i = 0; i < 2; i++) await g.app.createChannel({ baseUrl: g.upstream.url, models: model });
        g.upstream.script({ status: 500, steps: ["{}"] }, reply({ text: "ok" }));
        const { result } = await charged(async () =>
          g.client.audio.transcriptions.create({ model, file: await file() }),
        );
        expect(result).toEqual({ text: "ok" });
        expect(g.upstream.requests).toHaveLength(2);
        expect(formFields(formOf(g.upstream.requests[1]))).toEqual({ model });
        await g.setOption("RetryTimes", "0");
      });
    });

    describe("rerank", () => {
      const ask = {
        model: "bge-reranker-v2-m3",
        query: "what?",
        documents: ["one", { text: "two" }, "three"],
      };

      test("Jina's shape: results and usage", async () => {
        const results = [
          { index: 2, relevance_score: 0.9, document: { text: "three" }, embedding: [0.5] },
          { index: 0, relevance_score: 0.1 },
        ];
        g.upstream.script(reply({ model: "m", object: "list", results, usage: { total_tokens: 15 } }));
        const { result, row } = await charged(async () =>
          (await g.post("/v1/rerank", { ...ask, top_n: 2, return_documents: true })).json(),
        );
        expect(result).toEqual({
          model: "m",
          object: "list",
          results: [
            { index: 2, relevance_score: 0.9, document: { text: "three" }, embedding: [0.5] },
            { index: 0, relevance_score: 0.1, document: { text: "one" } },
          ],
          usage: { total_tokens: 15, prompt_tokens: 15, completion_tokens: 0 },
        });
        expect(g.upstream.requests[0]?.json()).toEqual({ ...ask, top_n: 2, return_documents: true });
        expect(row).toMatchObject({ promptTokens: 15, completionTokens: 0 });
      });

      test("Cohere's shape, by its second address too, with what its channels always want", async () => {
        const model = "rerank-cohere";
        await g.app.createChannel({ type: 34, baseUrl: g.upstream.url, models: model });
        g.upstream.script(
          reply({
            id: "r1",
            results: [{ index: 0, relevance_score: 1 }],
            meta: { billed_units: { input_tokens: 21, search_units: 1 } },
          }),
        );
        const { result, row } = await charged(async () =>
          (await g.post("/v2/rerank", { ...ask, model, top_n: 0 })).json(),
        );
        expect(result).toMatchObject({
          id: "r1",
          results: [{ index: 0, relevance_score: 1 }],
          usage: { prompt_tokens: 21, total_tokens: 21 },
        });
        expect(g.upstream.requests[0]?.url).toBe("/v1/rerank");
        expect(g.upstream.requests[0]?.json()).toMatchObject({ top_n: 1, return_documents: true });
        expect(row?.promptTokens).toBe(21);
      });

      test("tokens in meta, and tokens counted here where nobody tells them", async () => {
        g.upstream.script(
          reply({
            results: [{ index: 0, relevance_score: 1 }],
            meta: { tokens: { input_tokens: 8, output_tokens: 2 } },
          }),
          reply({ results: [{ index: 0, relevance_score: 1 }] }),
        );
        expect((await charged(() => g.post("/v1/rerank", ask))).row).toMatchObject({
          promptTokens: 8,
          completionTokens: 2,
        });
        const local = await charged(() => g.post("/v1/rerank", ask));
        // "what", "?", "one", "two", "three"
        expect(local.row?.promptTokens).toBe(5);
        expect(local.row?.other["estimated"]).toBeUndefined();
      });

      test.each([
        [{ ...ask, query: "" }, "invalid_query"],
        [{ ...ask, documents: [] }, "invalid_documents"],
        [{ model: ask.model, query: "x" }, "invalid_documents"],
      ])("refused: %j", async (body, code) => {
        expect(await refusal(g.post("/v1/rerank", body))).toMatchObject({ status: 400, code });
      });
    });

    describe("moderations and edits", () => {
      test("moderations pass, default their model, and are counted here", async () => {
        const verdict = {
          id: "m",
          model: "x",
          results: [{ flagged: false, categories: {}, category_scores: {} }],
        };
        g.upstream.script(reply(verdict));
        const { result, row } = await charged(() =>
          g.client.moderations.create({ input: ["one two", "three"] }),
        );
        expect(result as unknown).toEqual(verdict);
        expect(g.upstream.requests[0]?.json()).toEqual({
          input: ["one two", "three"],
          model: "text-moderation-stable",
        });
        expect(row).toMatchObject({
          modelName: "text-moderation-stable",
          promptTokens: 3,
          completionTokens: 0,
        });
        expect(await refusal(g.post("/v1/moderations", {}))).toMatchObject({
          status: 400,
          code: "invalid_text_request",
          param: "input",
        });
        expect(await refusal(g.post("/v1/moderations", { input: "test_sensitive" }))).toMatchObject({
          status: 400,
          code: "sensitive_words_detected",
        });
      });

      test("edits are done by a chat model and answered in their own shape", async () => {
        const { result, row } = await charged(async () =>
          (
            await g.post("/v1/edits", {
              model: "gpt-4o-mini",
              input: "teh cat",
              instruction: "Fix the spelling",
              temperature: 0,
            })
          ).json(),
        );
        expect(result).toMatchObject({
          object: "edit",
          choices: [{ index: 0, text: expect.any(String) as string }],
          usage: { total_tokens: 12 },
        });
        const sent = g.upstream.requests[0]?.json() as { messages: { role: string; content: string }[] };
        expect(g.upstream.requests[0]?.url).toBe("/v1/chat/completions");
        expect(sent).toMatchObject({ model: "gpt-4o-mini", temperature: 0 });
        expect(sent).not.toHaveProperty("instruction");
        expect(sent.messages[0]?.content).toContain("Fix the spelling");
        expect(sent.messages[1]).toEqual({ role: "user", content: "teh cat" });
        expect(row).toMatchObject({ promptTokens: 9, completionTokens: 3 });
        expect(await refusal(g.post("/v1/edits", { model: "gpt-4o-mini", input: "x" }))).toMatchObject({
          status: 400,
          code: "invalid_text_request",
          param: "instruction",
        });
      });

      test("variations are known and not served: 501", async () => {
        expect((await g.post("/v1/images/variations", {})).status).toBe(501);
      });
    });

    test("a replay of the log at unchanged prices gives every charge, to the unit", async () => {
      const { replayed, differences } = await replayLog(g.app.deps);
      expect(replayed).toBeGreaterThan(20);
      expect(differences).toEqual([]);
    });
  });
}
