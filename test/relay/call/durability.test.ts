// DURABILITY=database at the wire, by the program as it ships: the end of an answer comes after PostgreSQL's commit, and an
// outage refuses calls in their own dialect before an upstream is asked. Refuses to read the books by the node's own line.
import { afterAll, beforeAll, expect, test } from "bun:test";
import postgres from "postgres";
import { DONE, gate, startFakeUpstream, stream } from "../../support/fake-upstream.ts";
import type { FakeUpstream } from "../../support/fake-upstream.ts";
import { startOperator } from "../../support/operator.ts";
import { createTestDatabase } from "../../support/postgres.ts";
import type { TestDatabase } from "../../support/postgres.ts";
import { startServerProcess } from "../../support/server.ts";
import type { ServerProcess } from "../../support/server.ts";
import { startSwitchTo } from "../../support/tcp-switch.ts";
import type { TcpSwitch } from "../../support/tcp-switch.ts";
import { untilSo } from "../../support/turns.ts";
import { HI, MODEL } from "../support.ts";

let database: TestDatabase;
let link: TcpSwitch & { url: string };
let server: ServerProcess;
let upstream: FakeUpstream;
let books: postgres.Sql;
let key = "";

beforeAll(async () => {
  database = await createTestDatabase("postgres");
  link = await startSwitchTo(database.databaseUrl ?? "");
  books = postgres(database.databaseUrl ?? "", { max: 1, onnotice: () => {} });
  upstream = await startFakeUpstream();
  server = await startServerProcess({ DATABASE_URL: link.url, DURABILITY: "database" });
  ({ key } = await startOperator(server, { base_url: upstream.url, models: MODEL }));
}, 60_000);
afterAll(async () => {
  await link.restore();
  await server.remove();
  await link.stop();
  await books.end();
  await database.drop();
  upstream.stop();
});

const PATHS = {
  chat: "/v1/chat/completions",
  messages: "/v1/messages",
  gemini: `/v1beta/models/${MODEL}:generateContent`,
};

function ask(path: string, body: Record<string, unknown> = {}, patienceMs = 30_000): Promise<Response> {
  const content =
    path === PATHS.gemini
      ? { contents: [{ parts: [{ text: "hi" }] }] }
      : { model: MODEL, max_tokens: 20, messages: HI };
  return fetch(server.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ ...content, ...body }),
    signal: AbortSignal.timeout(patienceMs),
  });
}

async function isInBooks(response: Response): Promise<boolean> {
  const id = response.headers.get("x-oneapi-request-id") ?? "";
  const rows = await books`select quota from logs where request_id = ${id}`;
  return rows.length === 1;
}

test("what was answered is in PostgreSQL at that moment, on streams too: no lost disk takes it along", async () => {
  for (let call = 0; call < 10; call++) {
    const answer = await ask(PATHS.chat, { stream: call % 2 === 1 });
    const text = await answer.text();
    expect(answer.status).toBe(200);
    if (call % 2 === 1) expect(text).toEndWith(DONE);
    expect(await isInBooks(answer)).toBe(true);
  }
  const many = await Promise.all(
    Array.from({ length: 24 }, async () => {
      const answer = await ask(PATHS.chat);
      await answer.text();
      return isInBooks(answer);
    }),
  );
  expect(many).not.toContain(false);
});

test("a stream's last bytes wait while the database is silent, and come when it has the charge", async () => {
  const end = gate();
  upstream.script(stream(["Hello", end, " world"]));
  const answer = await ask(PATHS.chat, { stream: true });
  let text = "";
  const reading = (async () => {
    const decoder = new TextDecoder();
    const reader = answer.body?.getReader();
    for (let read = await reader?.read(); read && !read.done; read = await reader?.read())
      text += decoder.decode(read.value, { stream: true });
  })();
  await untilSo(() => text.includes("Hello"));
  await link.hold();
  end.open();
  await untilSo(() => text.includes(" world"));
  // The charge is on the node's disk; more is not wanted of it before an answer ends in the other mode.
  await untilSo(async () =>
    /^weir_ledger_waiting 1$/m.test(await (await fetch(`${server.url}/metrics`)).text()),
  );
  expect(text).not.toContain(DONE);
  await link.restore();
  await reading;
  expect(text).toEndWith(DONE);
  expect(await isInBooks(answer)).toBe(true);
});

test("in an outage: 503 with Retry-After in the caller's dialect, no upstream is asked, nothing is charged; it ends by itself", async () => {
  const counted = async () => {
    const [row] = await books`select request_count from users where username = 'root'`;
    return Number(row?.["request_count"]);
  };
  const [servedBefore, countedBefore] = [upstream.requests.length, await counted()];
  await link.cut();
  // What is let through before the outage is known would be held for ten seconds: its client leaves.
  const statusNow = () =>
    ask(PATHS.chat, {}, 500).then(
      ({ status }) => status,
      () => 0,
    );
  await untilSo(async () => (await statusNow()) === 503);
  const asked = upstream.requests.length;
  const told: unknown[] = [];
  for (const path of Object.values(PATHS)) {
    const answer = await ask(path);
    expect([path, answer.status, answer.headers.get("retry-after")]).toEqual([path, 503, "2"]);
    told.push(await answer.json());
  }
  expect(told).toMatchObject([
    { error: { code: "database_down" } },
    { type: "error", error: { message: expect.any(String) } },
    { error: { code: 503, status: "UNAVAILABLE" } },
  ]);
  expect(upstream.requests).toHaveLength(asked);
  await link.restore();
  await untilSo(async () => (await ask(PATHS.chat)).status === 200);
  expect(upstream.requests).toHaveLength(asked + 1);
  expect(await server.stop()).toBe(0);
  // Whoever was served is charged once, whoever was refused not at all.
  expect((await counted()) - countedBefore).toBe(upstream.requests.length - servedBefore);
  expect(server.run(["audit"])).toMatchObject({ code: 0 });
}, 40_000);
