// The least that a metered gateway on this runtime can be: the bare proxy (bare-proxy.ts) that also reads the question, reads
// what the answer says of its use, has a line of it synced in a journal before the client has the last byte, and puts a row
// into a SQLite table with two indexes. What the gateway needs beyond it is its own: accounts, prices, limits, routing, the log.
// Refuses to check, to price or to limit anything.
import { Database } from "bun:sqlite";
import { constants, openSync, writeSync } from "node:fs";
import { join } from "node:path";

const [upstream = "", dir = ""] = process.argv.slice(2);

/** Rows of one transaction, as many as the gateway's own batches have under load. */
const ROWS_AT_ONCE = 64;
/** About what the gateway's own row has in texts. */
const OTHER = JSON.stringify({
  frt: 120,
  end_reason: "completed",
  attempts: [{ channel: 1, ms: 3, code: "ok" }],
});

const database = new Database(join(dir, "floor.sqlite"), { create: true });
database.run("pragma journal_mode = wal");
database.run("pragma synchronous = normal");
database.run(
  "create table calls (id integer primary key, at int, account int, key int, prompt int, completion int, model text, request text, other text)",
);
database.run("create index calls_at on calls (at, account)");
database.run("create index calls_request on calls (request)");
const insert = database.prepare(
  "insert into calls (at, account, key, prompt, completion, model, request, other) values (?, 1, 1, ?, ?, ?, ?, ?)",
);
const enter = database.transaction((rows: readonly Row[]) => {
  for (const row of rows) insert.run(...row);
});

type Row = [at: number, prompt: number, completion: number, model: string, request: string, other: string];

/** A write returns when its bytes are durable. */
const journal = openSync(
  join(dir, "floor.log"),
  constants.O_RDWR | constants.O_CREAT | constants.O_DSYNC,
  0o600,
);
let lines = "";
let rows: Row[] = [];
let written: PromiseWithResolvers<void> | undefined;

function writeLines(): void {
  writeSync(journal, lines, 0);
  lines = "";
  written?.resolve();
  written = undefined;
  if (rows.length < ROWS_AT_ONCE) return;
  enter(rows);
  rows = [];
}

/** Resolves once the line of this call is durable, with those of all that ended in the same turn. */
async function settle(model: string, text: string): Promise<void> {
  const { usage } = JSON.parse(text) as { usage?: { prompt_tokens: number; completion_tokens: number } };
  const row: Row = [
    Date.now(),
    usage?.prompt_tokens ?? 0,
    usage?.completion_tokens ?? 0,
    model,
    crypto.randomUUID(),
    OTHER,
  ];
  rows.push(row);
  lines += `${JSON.stringify(row)}\n`;
  if (!written) {
    written = Promise.withResolvers();
    setImmediate(writeLines);
  }
  await written.promise;
}

/** Chunks as they come; the last frame that has a use is what is settled, before the end. */
function passOn(body: ReadableStream<Uint8Array>, model: string): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  let used = "";
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await reader.read();
      if (!done) {
        const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
        if (bytes.includes('"usage":{')) used = bytes.toString();
        controller.enqueue(value);
        return;
      }
      await settle(model, /^data: (\{.*"usage":\{.*\})$/m.exec(used)?.[1] ?? "{}");
      controller.close();
    },
    cancel: (reason) => reader.cancel(reason),
  });
}

const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  idleTimeout: 0,
  async fetch(request) {
    const { pathname } = new URL(request.url);
    const question = await request.bytes();
    const { model } = JSON.parse(Buffer.from(question).toString()) as { model: string };
    const answer = await fetch(upstream + pathname, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: question,
      signal: request.signal,
    });
    const type = answer.headers.get("content-type") ?? "";
    const init = { status: answer.status, headers: { "content-type": type } };
    if (type.includes("event-stream") && answer.body) return new Response(passOn(answer.body, model), init);
    const bytes = await answer.bytes();
    await settle(model, Buffer.from(bytes).toString());
    return new Response(bytes, init);
  },
});
console.log(server.port);
