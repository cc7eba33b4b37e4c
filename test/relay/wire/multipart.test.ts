// Multipart forms: files stay slices of the body, text stays text, and what is written reads back the same.
// Broken forms are refused by name, whatever a hostile client sends.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  boundaryOf,
  formFields,
  parseForm,
  withField,
  writeForm,
} from "../../../src/relay/wire/multipart.ts";
import type { Form } from "../../../src/relay/wire/multipart.ts";
import { Failure } from "../../../src/shared/failures.ts";

const encoder = new TextEncoder();
const TYPE = "multipart/form-data; boundary=xYz";

async function browserForm(form: FormData): Promise<{ bytes: Uint8Array<ArrayBuffer>; type: string }> {
  const request = new Request("http://localhost/", { method: "POST", body: form });
  const type = request.headers.get("content-type") ?? "";
  return { type, bytes: await request.bytes() };
}

test("a form of the platform is read: fields, files with any bytes, names with any letters", async () => {
  const file = new Uint8Array([0, 13, 10, 45, 45, 255, 13, 10, 13, 10]);
  const form = new FormData();
  form.append("model", "whisper-1");
  form.append("prompt", "你好 \r\n 😀");
  form.append("empty", "");
  form.append("file", new File([file], 'a "quoted" 名.mp3', { type: "audio/mpeg" }));
  const { bytes, type } = await browserForm(form);
  const { parts } = parseForm(bytes, type);
  expect(formFields({ parts, boundary: "", isPlain: true })).toEqual({
    model: "whisper-1",
    prompt: "你好 \r\n 😀",
    empty: "",
  });
  const part = parts.find((each) => each.name === "file");
  expect(part).toMatchObject({ filename: 'a "quoted" 名.mp3', type: "audio/mpeg" });
  expect(part?.bytes).toEqual(file);
  // A slice of the body, not a copy.
  expect(part?.bytes.buffer).toBe(bytes.buffer);
});

test("what is written reads back the same", () => {
  const name = fc
    .string({ minLength: 1, maxLength: 20 })
    .filter((text) => !/[\r\n\\]/.test(text) && !text.includes("%22"));
  fc.assert(
    fc.property(
      fc.array(
        fc.record({
          name: name.filter((text) => text !== "__proto__"),
          filename: fc.option(name, { nil: undefined }),
          type: fc.constantFrom("", "audio/wav", "text/plain; charset=utf-8"),
          bytes: fc.uint8Array({ maxLength: 300 }).map((each) => new Uint8Array(each)),
        }),
        { maxLength: 8 },
      ),
      (parts) => {
        const form: Form = { parts, boundary: "----weir-boundary-that-no-bytes-hold", isPlain: true };
        const read = parseForm(writeForm(form), `multipart/form-data; boundary=${form.boundary}`);
        expect(read.parts.map(({ bytes, ...rest }) => ({ ...rest, bytes: [...bytes] }))).toEqual(
          parts.map(({ bytes, ...rest }) => ({ ...rest, bytes: [...bytes] })),
        );
      },
    ),
    { numRuns: 200 },
  );
});

test("a field is replaced in its place, or put first", () => {
  const form = parseForm(
    encoder.encode(
      '--xYz\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--xYz\r\nContent-Disposition: form-data; name="model"\r\n\r\nold\r\n--xYz--\r\n',
    ),
    TYPE,
  );
  expect(formFields(withField(form, "model", "new"))).toEqual({ a: "1", model: "new" });
  expect(withField(form, "b", "2").parts.map((part) => part.name)).toEqual(["b", "a", "model"]);
});

/** A form of parts, each its head's disposition (behind `form-data`) and its text. */
function formOf(...parts: readonly [disposition: string, text?: string][]): Form {
  const text = parts.map(
    ([disposition, value = "x"]) =>
      `--xYz\r\nContent-Disposition: form-data${disposition}\r\n\r\n${value}\r\n`,
  );
  return parseForm(encoder.encode(`${text.join("")}--xYz--\r\n`), TYPE);
}

/** What a reader finds that looks for each parameter by itself, as our own once did, in the bytes that go out. */
const sentHeads = (form: Form) =>
  Buffer.from(writeForm(form))
    .toString()
    .match(/form-data.*/g);

describe("every reader sees one form:", () => {
  test("what all read alike goes on as it is, anything else as it was read here", () => {
    expect(formOf(['; name="a"'], ['; name="file"; filename="名.mp3"']).isPlain).toBe(true);
    for (const odd of ["; name=a", '; name="a"; x="; name=b"', '; name="a"; filename=""', '; name="%22a"'])
      expect([odd, formOf([odd]).isPlain]).toEqual([odd, false]);
    const behind = '--xYz\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--xYz--\r\n--xYz';
    expect(parseForm(encoder.encode(behind), TYPE).isPlain).toBe(false);
  });
  test("a file without a name is a field, and one without bytes too is nothing", () => {
    const form = formOf(['; name="n"; filename=""', "10"], ['; name="mask"; filename=""', ""]);
    expect(formFields(form)).toEqual({ n: "10" });
    expect(sentHeads(form)).toEqual(['form-data; name="n"']);
    expect(() => formFields(formOf(['; name="model"', "a"], ['; name="model"; filename=""', "b"]))).toThrow(
      "model_ambiguous",
    );
  });
  test("what stands inside of quotes is no parameter", () => {
    const form = formOf(['; x="; name=dummy"; name="model"', "dear"]);
    expect(formFields(form)).toEqual({ model: "dear" });
    expect(sentHeads(form)).toEqual(['form-data; name="model"']);
  });
  test("names of files beyond ASCII are read as other headers write them", () => {
    const form = formOf(["; name=\"file\"; filename*=utf-8''%E5%90%8D.mp3"]);
    expect(form.parts[0]?.filename).toBe("名.mp3");
    expect(sentHeads(form)).toEqual(['form-data; name="file"; filename="名.mp3"']);
  });
  test("lists and pictures may repeat, nothing else may", () => {
    const list = '; name="timestamp_granularities[]"';
    expect(formFields(formOf([list, "word"], [list, "segment"]))).toEqual({
      "timestamp_granularities[]": "segment",
    });
    const picture = '; name="image"; filename="a.png"';
    expect(formFields(formOf([picture], [picture]))).toEqual({});
    for (const [first, second] of [
      ['; name="n"', '; name="n"'],
      ['; name="file"; filename="a.mp3"', '; name="file"; filename="b.mp3"'],
      ['; name="n"', '; name="n"; filename="a"'],
      [picture, '; name="image"'],
    ] as const)
      expect(() => formFields(formOf([first], [second]))).toThrow(Failure);
  });
});

describe("refused:", () => {
  const part = (head: string, body = "x") => `--xYz\r\n${head}\r\n\r\n${body}\r\n--xYz--\r\n`;
  const good = 'Content-Disposition: form-data; name="a"';
  test.each([
    ["no form at all", "hello"],
    ["a form without its end", `--xYz\r\n${good}\r\n\r\nx`],
    ["a part without a name", part("Content-Disposition: form-data")],
    ["a part without a disposition", part("Content-Type: text/plain")],
    ["two dispositions", part(`${good}\r\n${good}`)],
    ["two names", part(`${good}; name="b"`)],
    ["a name in another form", part("Content-Disposition: form-data; name*=utf-8''a")],
    ["a parameter in pieces", part(`Content-Disposition: form-data; name="a" b="c"`)],
    ["a boundary behind a bare line feed", `--xYz\r\n${good}\r\n\r\nx\n--xYz\r\n${good}\r\n\r\nx\r\n--xYz--`],
    ["a line feed in a head", part(`Content-Type: a/b\nContent-Disposition: form-data; name="b"\r\n${good}`)],
    ["a head that goes on", part(`${good}\r\n ; name="b"`)],
    ["an encoded part", part(`${good}\r\nContent-Transfer-Encoding: base64`)],
    ["a head without end", `--xYz\r\n${good}${"y".repeat(10_000)}`],
    ["too many parts", `${`--xYz\r\n${good}\r\n\r\nx\r\n`.repeat(300)}--xYz--`],
  ])("%s", (_, text) => {
    expect(() => parseForm(encoder.encode(text), TYPE)).toThrow(Failure);
  });
  test("two models: the one that is priced is the one that is served", () => {
    const field = (value: string) =>
      `--xYz\r\nContent-Disposition: form-data; name="model"\r\n\r\n${value}\r\n`;
    const form = parseForm(encoder.encode(`${field("a")}${field("b")}--xYz--`), TYPE);
    expect(() => formFields(form)).toThrow("model_ambiguous");
  });
  test.each([
    null,
    "application/json",
    "multipart/form-data",
    "multipart/form-data; boundary=",
    `multipart/form-data; boundary=${"b".repeat(71)}`,
    "multipart/mixed; boundary=x",
  ])("content type %p", (type) => {
    expect(() => boundaryOf(type)).toThrow(Failure);
  });
  test("whatever the bytes are, a form or a failure comes back", () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom("--xYz", "--", "\r\n", "\r\n\r\n", good, "x", "\0"), { maxLength: 40 }),
        (pieces) => {
          try {
            parseForm(encoder.encode(pieces.join("")), TYPE);
          } catch (error) {
            expect(error).toBeInstanceOf(Failure);
          }
        },
      ),
      { numRuns: 500 },
    );
  });
});
