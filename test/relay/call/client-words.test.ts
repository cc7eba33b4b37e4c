// Which words of a refusal its client wrote itself, and what it takes at most to find out. Refuses to measure time: the letters
// that are looked at are counted.
import { describe, expect, test } from "bun:test";
import type { FormPart } from "../../../src/relay/wire/multipart.ts";
import { clientSaid, MOST_WORK } from "../../../src/relay/call/client-words.ts";
import type { ClientWords, SearchWork } from "../../../src/relay/call/client-words.ts";

const WORDS = "Insufficient balance";
/** A piece of a text with its overlap, decoded twice, every letter beyond ASCII and escaped. */
const MOST_OF_A_PIECE = 3 * 4096 * 16 + 4096 * 70;

const request = { url: "https://weir.example/v1/chat/completions", headers: new Headers({ "x-a": "b" }) };
const ofText = (text: string): ClientWords => ({ request, body: { text } });
const part = (name: string, content: string | Uint8Array<ArrayBuffer>, filename?: string): FormPart => ({
  name,
  filename,
  type: filename === undefined ? "" : "application/octet-stream",
  bytes: typeof content === "string" ? new TextEncoder().encode(content) : content,
});
const ofParts = (...parts: FormPart[]): ClientWords => ({
  request,
  body: { text: "", form: { parts, boundary: "b", isPlain: true } },
});
const json = (text: string): string => JSON.stringify({ messages: [{ role: "user", content: text }] });

describe("words of a refusal", () => {
  test("are the client's however it writes them, in a text, a field, a head or a file", () => {
    const long = "Lorem ipsum dolor. ".repeat(40_000);
    const said: ClientWords[] = [
      ofText(json(WORDS.toUpperCase())),
      ofText(json(JSON.stringify({ a: "insufficient\n\n- balance" }))),
      ofText('{"a":"\\u0049nsufficient\\u0020b\\u0061lance"}'),
      ofText(json("ＩＮＳＵＦＦＩＣＩＥＮＴ　ｂａｌａｎｃｅ")),
      ofText(json(`${long}${WORDS}`)),
      ofText(json(`${long}insuff\\u0069cient`)),
      { request: { ...request, url: `${request.url}?q=insufficient%20bal%61nce` } },
      { request: { ...request, headers: new Headers({ "x-a": "insufficient_balance" }) } },
      ofParts(part("prompt", "say: insufficient   balance")),
      ofParts(part("file", "RIFF", "insufficient-balance.wav")),
      ofParts(part("file", `${long}${WORDS.toLowerCase()}`, "a.jsonl")),
      ofParts(part("file", String.raw`{"a":"insuff\u0069cient balance"}`, "a.jsonl")),
    ];
    expect(said.map((client) => clientSaid(client, [WORDS]))).toEqual(said.map(() => true));
    expect(clientSaid(ofText(json("no credit (402)")), ["402"])).toBe(true);
  });

  test("are the upstream's where the client wrote others, or one of several only, beside files of any bytes", () => {
    const sound = crypto.getRandomValues(new Uint8Array(65_536));
    expect(clientSaid(ofText(json("Lorem ipsum dolor. ".repeat(40_000))), [WORDS])).toBe(false);
    expect(clientSaid(ofText(json("4 of 10, 2 left")), ["402"])).toBe(false);
    expect(clientSaid(ofText(json(WORDS)), [WORDS, "account suspended"])).toBe(false);
    expect(clientSaid(ofParts(part("model", "whisper"), part("file", sound, "a.wav")), [WORDS])).toBe(false);
  });

  test("are sought with bounded work for all of them together, and cannot be told beyond it", () => {
    const bytes = new Uint8Array(1024 * 1024);
    for (let at = 0; at < bytes.length; at += 65_536) crypto.getRandomValues(bytes.subarray(at, at + 65_536));
    const garbage = Buffer.from(bytes).toString("utf8");
    const size = 256 * 1024;
    const bodies = {
      letters: ofText("a!".repeat(size)),
      garbage: ofText(garbage),
      field: ofParts(part("prompt", bytes)),
      fields: ofParts(...Array.from({ length: 50 }, () => part("prompt", "a!".repeat(size)))),
      accents: ofText(`a${"\u0301\u0316".repeat(size)}`),
      sentences: ofText("\ufdfa".repeat(size)),
      squares: ofText("\u3316".repeat(size)),
      escapes: ofText("\\u0041".repeat(size)),
      slashes: ofText("\\".repeat(size)),
      percents: ofText("%ff ".repeat(size)),
      large: ofText("a ".repeat(8 * size)),
      file: ofParts(part("file", bytes, "a.bin")),
      files: ofParts(...Array.from({ length: 30 }, () => part("file", bytes, "a.bin"))),
      begun: ofParts(part("file", "\\u".repeat(size), "a.bin")),
    };
    const words = [WORDS, "account suspended", "quota exceeded", "余额不足", "billing"];
    const slow = Object.entries(bodies).flatMap(([name, client]) => {
      const work: SearchWork = { loose: 0, plain: 0, bytes: 0 };
      const isSaid = clientSaid(client, words, work);
      // What is refused as too much was not looked at: it is counted, and that is all.
      const isBounded = work.loose < MOST_WORK.loose + MOST_OF_A_PIECE;
      const isLooked = work.plain <= MOST_WORK.plain && work.bytes <= MOST_WORK.bytes;
      return isBounded && (isLooked || isSaid) ? [] : [name];
    });
    expect(slow).toEqual([]);
    expect(clientSaid(bodies.large, words)).toBe(true);
    expect(clientSaid(bodies.files, words)).toBe(true);
  });
});
