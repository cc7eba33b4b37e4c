// Reading bodies once, refusing what is too large, broken or absurd, and changing single members in place.
import { describe, expect, test } from "bun:test";
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { imageGenerations } from "../../../src/relay/endpoints/images.ts";
import { gemini, responses } from "../../../src/relay/endpoints/native.ts";
import { requestedModel } from "../../../src/relay/endpoints/model-name.ts";
import { checkOnce } from "../../../src/relay/endpoints/once.ts";
import { chat, completions } from "../../../src/relay/endpoints/text.ts";
import { patchTopLevel } from "../../../src/relay/wire/patch-json.ts";
import { parseBody, readBody } from "../../../src/relay/wire/read-body.ts";
import type { Failure } from "../../../src/shared/failures.ts";

const MIB = 1024 * 1024;
const WATCH = { alive: () => {}, grow: () => {} };

async function failureOf(
  work: Promise<unknown> | (() => unknown),
): Promise<{ code: string; status: number }> {
  try {
    await (typeof work === "function" ? work() : work);
  } catch (error) {
    const { code, status } = error as Failure;
    return { code, status };
  }
  throw new Error("it was accepted");
}

function post(body: BodyInit, headers: Record<string, string> = {}): Request {
  return new Request("http://gateway/v1/chat/completions", { method: "POST", body, headers });
}

describe("reading", () => {
  test.each<[string, (data: Buffer) => Uint8Array]>([
    ["gzip", gzipSync],
    ["br", brotliCompressSync],
    ["deflate", deflateSync],
    ["zstd", zstdCompressSync],
  ])("a body packed with %s is unpacked", async (encoding, pack) => {
    const packed = new Uint8Array(pack(Buffer.from('{"model":"m"}')));
    const body = await readBody(post(packed, { "content-encoding": encoding }), MIB, WATCH, 1);
    expect(body.json).toEqual({ model: "m" });
  });

  test("a small body that unpacks beyond the cap is refused with 413", async () => {
    const bomb = new Uint8Array(gzipSync(Buffer.alloc(20 * MIB, 0x20)));
    expect(bomb.length).toBeLessThan(MIB);
    expect(await failureOf(readBody(post(bomb, { "content-encoding": "gzip" }), MIB, WATCH, 1))).toEqual({
      code: "body_too_large",
      status: 413,
    });
  });

  test("an oversized body is refused with 413, announced or not", async () => {
    expect((await failureOf(readBody(post("x".repeat(MIB + 1)), MIB, WATCH, 1))).status).toBe(413);
    const endless = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(new Uint8Array(64 * 1024)),
    });
    expect((await failureOf(readBody(post(endless), MIB, WATCH, 1))).status).toBe(413);
  });

  test.each<[string, BodyInit, Record<string, string>, string, number]>([
    ["no JSON", "{oops", {}, "invalid_json", 400],
    ["an empty body", "", {}, "invalid_json", 400],
    ["a list", "[]", {}, "invalid_json", 400],
    ["null", "null", {}, "invalid_json", 400],
    ["NaN", '{"temperature":NaN}', {}, "invalid_json", 400],
    ["broken gzip", "not gzip", { "content-encoding": "gzip" }, "encoding_broken", 400],
    ["an unknown encoding", "{}", { "content-encoding": "rot13" }, "encoding_unsupported", 415],
    [
      "a hundred thousand lists in each other",
      `{"a":${"[".repeat(1e5)}${"]".repeat(1e5)}}`,
      {},
      "invalid_json",
      400,
    ],
  ])("%s is refused", async (_, body, headers, code, status) => {
    expect(await failureOf(readBody(post(body, headers), MIB, WATCH, 1))).toEqual({ code, status });
  });

  test.each<[string, string]>([
    ["empty lists", "[],"],
    ["objects", '{"a":1},'],
    ["numbers", "1,"],
  ])("megabytes of nothing but %s are refused before they are parsed", async (_, unit) => {
    const body = `{"model":"m","a":[${unit.repeat((9 * MIB) / unit.length)}1]}`;
    expect(await failureOf(readBody(post(body), 16 * MIB, WATCH, 1))).toEqual({
      code: "invalid_json",
      status: 400,
    });
  });

  test("megabytes of pictures and long texts are not", async () => {
    const content = [
      { type: "image_url", image_url: { url: `data:image/png;base64,${"A".repeat(4 * MIB)}` } },
      { type: "text", text: '{"a":[1,2,3]},\n'.repeat(300_000) },
    ];
    const body = await readBody(post(JSON.stringify({ model: "m", content })), 16 * MIB, WATCH, 1);
    expect(body.json["content"]).toEqual(content);
  });

  test("every piece of a large body is counted to its account, and what it unpacks to", async () => {
    let counted = 0;
    const watch = {
      alive: () => {},
      grow(_request: Request, owner: number, bytes: number) {
        expect(owner).toBe(7);
        counted += bytes;
      },
    };
    const text = `{"model":"m","a":"${"x".repeat(MIB)}"}`;
    await readBody(post(text), 2 * MIB, watch, 7);
    expect(counted).toBe(text.length);
    counted = 0;
    const packed = new Uint8Array(gzipSync(text));
    await readBody(post(packed, { "content-encoding": "gzip" }), 2 * MIB, watch, 7);
    expect(counted).toBeGreaterThanOrEqual(text.length);
  });

  test("brackets inside of texts do not count as nesting", async () => {
    const text = `${"[".repeat(5000)}\\"{{`;
    const body = await readBody(post(`{"a":"${text}"}`), MIB, WATCH, 1);
    expect(Object.keys(body.json)).toEqual(["a"]);
  });

  test("another content type, a byte order mark and white space are tolerated", async () => {
    const body = await readBody(
      post('\uFEFF \n{"model":"m"}', { "content-type": "text/plain" }),
      MIB,
      WATCH,
      1,
    );
    expect(body.json["model"]).toBe("m");
  });
});

describe("what decides a price", () => {
  const check = (text: string, endpoint: typeof chat = imageGenerations): void =>
    checkOnce(endpoint, parseBody(new TextEncoder().encode(text)));
  test.each([
    ["twice", '{"n":10,"n":1}'],
    ["in capitals", '{"n":1,"N":10}'],
    ["in letters that fold to its own", '{"size":"256x256","\u017fize":"1792x1024"}'],
    ["once behind an escape", '{"qualit\\u0079":"hd","quality":"standard"}'],
  ])("is refused where it stands %s", async (_, text) => {
    expect((await failureOf(() => check(text))).code).toBe("invalid_field");
  });
  test("may stand elsewhere in the body, and in other words", () => {
    check('{"n":1,"x":{"n":2,"N":3},"Seed":1,"prompt":"\\u006e \\"n\\" \\"n\\"","sizes":"n"}');
  });
  test("is whether a response is waited for: of two words for it one would be refused, the other served", async () => {
    for (const text of [
      '{"background":true,"input":"x","background":false}',
      '{"background" :true,"background"\n:false}',
      '{"b\\u0061ckground":true,"background":false}',
    ])
      expect((await failureOf(() => check(text, responses))).code).toBe("invalid_field");
    check('{"background":false,"input":"\\u0062","tools":[{"background":1,"x":"background"}]}', responses);
  });
  test("is what is screened, where prompts are: one would be looked at, the other served", async () => {
    const texts: [string, typeof chat][] = [
      ['{"messages":[1],"messages":[]}', chat],
      ['{"input":"bad","input":"good"}', responses],
      ['{"Input":"bad","input":"good"}', responses],
      ['{"contents":[1],"contents":[]}', gemini],
      ['{"prompt":"bad","prompt":"good"}', completions],
    ];
    const read = (text: string) => parseBody(new TextEncoder().encode(text));
    for (const [text, endpoint] of texts) {
      expect((await failureOf(() => checkOnce(endpoint, read(text), true))).code).toBe("invalid_field");
      if (!text.includes("Input")) checkOnce(endpoint, read(text));
    }
    const plain = '{"system":"x","messages":[{"role":"system","messages":1,"input":[{"messages":2}]}]}';
    checkOnce(chat, read(plain), true);
  });
  test("is a conversation's number of answers and their length, too", async () => {
    for (const text of ['{"n":1,"N":9}', '{"max_tokens":1,"max_to\u212aens":9}', '{"MAX_TOKENS":9}'])
      expect((await failureOf(() => check(text, chat))).code).toBe("invalid_field");
  });
});

describe("the model's name", () => {
  const modelOf = (text: string) =>
    requestedModel(parseBody(new TextEncoder().encode(text)), "invalid_text_request");
  test.each([
    ["twice", '{"model":"cheap","model":"dear"}'],
    ["in two spellings", '{"model":"cheap","Model":"dear"}'],
    ["once behind an escape", '{"\\u006dodel":"dear","model":"cheap"}'],
  ])("a request that names it %s is refused: one would be priced, the other served", async (_, text) => {
    expect((await failureOf(() => modelOf(text))).code).toBe("model_ambiguous");
  });
  test("the word may stand elsewhere in the body", () => {
    expect(modelOf('{"messages":[{"model":"x"}],"model":"m","metadata":{"model":1}}')).toBe("m");
  });
  test.each(['{"model":1}', '{"model":["m"]}', '{"model":""}', "{}", '{"model":null}', '{"model":"a\\nb"}'])(
    "%s is refused",
    async (text) => {
      expect((await failureOf(() => modelOf(text))).status).toBe(400);
    },
  );
});

describe("changing members", () => {
  const patch = (text: string, changes: Record<string, unknown>) =>
    patchTopLevel(text, changes, JSON.parse(text) as Record<string, unknown>);

  test("what is not changed keeps its bytes: large numbers, zeros, escapes, order, spaces", () => {
    const text =
      '{ "seed" : 9223372036854775807, "model":"a",\n"temperature":0.0,"x":{"model":"keep","t":"\\u4f60}\\""} ,"n":1e0 }';
    expect(patch(text, { model: "b" })).toBe(
      '{"seed" : 9223372036854775807,"model":"b","temperature":0.0,"x":{"model":"keep","t":"\\u4f60}\\""},"n":1e0}',
    );
  });
  test.each([
    ["adds to the front", '{"a":1}', { b: { c: true } }, '{"b":{"c":true},"a":1}'],
    ["adds to an empty object", "{ }", { b: 0 }, '{"b":0 }'],
    ["removes", '{"a":1,"b":[1,{"c":"]"}],"d":false}', { b: undefined }, '{"a":1,"d":false}'],
    ["removes the only one", '{"a":1}', { a: undefined }, "{}"],
    ["changes nothing without changes", '{ "a" : 1 }', {}, '{ "a" : 1 }'],
    ["ignores the removal of what is not there", '{ "a" : 1 }', { z: undefined }, '{ "a" : 1 }'],
    ["changes every occurrence", '{"a":1,"b":2,"a":3}', { a: 9 }, '{"a":9,"b":2,"a":9}'],
  ])("%s", (_, text, changes, expected) => {
    expect(patch(text, changes)).toBe(expected);
  });
});
