// Upstreams that compress although nobody asked: read like any other, and a bomb costs no more than the cap allows.
// Refuses the source where the binary is there: what is measured is the memory of the process.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createWriteStream, readFileSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import type { Duplex } from "node:stream";
import { pipeline } from "node:stream/promises";
import {
  brotliCompressSync,
  constants,
  createBrotliCompress,
  createGzip,
  deflateSync,
  gzipSync,
  zstdCompressSync,
} from "node:zlib";
import { startOperator } from "../../support/operator.ts";
import { startServerProcess } from "../../support/server.ts";
import type { ServerProcess } from "../../support/server.ts";

const MODEL = "gpt-4o-mini";
const MIB = 1024 * 1024;
const BOMB_MIB = 1500;

const CHAT = JSON.stringify({
  id: "x",
  object: "chat.completion",
  model: MODEL,
  choices: [{ index: 0, message: { role: "assistant", content: "packed" }, finish_reason: "stop" }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
});
const EVENTS = [
  `data: {"id":"x","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":"packed"}}]}\n\n`,
  "data: [DONE]\n\n",
].join("");

async function makeBomb(path: string, packer: Duplex): Promise<void> {
  const piece = Buffer.alloc(MIB, 0x61);
  await pipeline(Readable.from(Array<Buffer>(BOMB_MIB).fill(piece)), packer, createWriteStream(path));
}

let answer: () => Response = () => new Response(CHAT);
let server: ServerProcess;
let key: string;
const upstream = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => answer() });

beforeAll(async () => {
  server = await startServerProcess();
  const url = `http://127.0.0.1:${upstream.port}`;
  ({ key } = await startOperator(server, { base_url: url, models: MODEL }));
});
afterAll(async () => {
  await server.remove();
  await upstream.stop(true);
});

function chat(stream = false): Promise<Response> {
  return fetch(`${server.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: MODEL, stream, messages: [{ role: "user", content: "hi" }] }),
  });
}

test.each([
  ["gzip", gzipSync],
  ["deflate", deflateSync],
  ["br", brotliCompressSync],
  ["zstd", zstdCompressSync],
] as const)("an answer and a stream in %s reach the client plain", async (encoding, pack) => {
  const packed = (text: string, type: string) => () =>
    new Response(new Uint8Array(pack(text)), {
      headers: { "content-encoding": encoding, "content-type": type },
    });
  answer = packed(CHAT, "application/json");
  const whole = await chat();
  expect([whole.status, whole.headers.get("content-encoding")]).toEqual([200, null]);
  expect(await whole.json()).toMatchObject({ choices: [{ message: { content: "packed" } }] });
  answer = packed(EVENTS, "text/event-stream");
  const stream = await chat(true);
  const text = await stream.text();
  expect(text).toContain(`"content":"packed"`);
  expect(text).toEndWith("data: [DONE]\n\n");
});

test("a packed answer that breaks off is the upstream's failure", async () => {
  const cut = new Uint8Array(gzipSync(CHAT)).slice(0, -12);
  answer = () =>
    new Response(cut, { headers: { "content-encoding": "gzip", "content-type": "application/json" } });
  expect((await chat()).status).toBe(500);
});

test("bombs are refused at the cap, and what is behind it is never unpacked", async () => {
  // From files, all at once: what Bun unpacks by itself hangs on how much has arrived before somebody reads.
  const gzip = join(server.dataDir, "bomb.gz");
  const br = join(server.dataDir, "bomb.br");
  await makeBomb(gzip, createGzip());
  await makeBomb(br, createBrotliCompress({ params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }));
  const peakMib = (): number =>
    Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, "utf8"))?.[1]) / 1024;
  const before = peakMib();
  for (const [encoding, path] of [
    ["br", br],
    ["gzip", gzip],
    ["br", br],
    ["gzip", gzip],
  ] as const) {
    answer = () =>
      new Response(Bun.file(path), {
        headers: { "content-encoding": encoding, "content-type": "application/json" },
      });
    expect(await (await chat()).json()).toMatchObject({ error: { code: "upstream_answer_too_large" } });
  }
  // The cap is 64 MiB; what is collected later than it could be counts, too.
  expect(peakMib() - before).toBeLessThan(400);
}, 60_000);
