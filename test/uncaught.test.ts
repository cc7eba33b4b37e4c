// An error that reaches nobody: a socket's is told and the process serves on; any other ends it, everything settled.
// Refuses to judge by the policy alone: a real process throws, and its exit code and books are looked at.
import { expect, test } from "bun:test";
import { join } from "node:path";
import { isOfSocket, uncaughtPolicy } from "../src/uncaught.ts";
import { openBooks } from "./support/books.ts";
import { promptOf, startMockUpstream, WORD } from "./support/mock-upstream.ts";
import { startOperator } from "./support/operator.ts";
import { createTestDatabase, DATABASE_KINDS } from "./support/postgres.ts";

const EDGE_TOKENS = 8;

test("an error of a socket is told, and nothing is stopped", () => {
  const told: string[] = [];
  const note = (text: string) => void told.push(text);
  const handle = uncaughtPolicy({
    logger: { debug: note, info: note, warn: note, error: note },
    stop: () => Promise.reject(new Error("stopped")),
    exit: () => note("exit"),
  });
  handle(Object.assign(new Error("write EPIPE"), { code: "EPIPE" }));
  handle(Object.assign(new Error("gone"), { code: "CONNECTION_CLOSED" }));
  expect(told).toHaveLength(2);
  expect(told.join()).not.toContain("exit");
  for (const other of [new TypeError("x"), undefined, null, "text", { code: 7 }, { code: "42601" }])
    expect(isOfSocket(other)).toBe(false);
});

/** Starts the program with two signals that throw: SIGCONT an error of a socket, SIGUSR2 one of the program. */
async function start(place: { dataDir: string; databaseUrl?: string | undefined }) {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "support/throwing-server.ts")], {
    env: {
      ...Bun.env,
      PORT: "0",
      HOST: "127.0.0.1",
      DATA_DIR: place.dataDir,
      LOG_LEVEL: "info",
      DATABASE_URL: place.databaseUrl ?? "",
      DRAIN_SECONDS: "1",
    },
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
  });
  const reader = child.stderr.getReader();
  const decoder = new TextDecoder();
  let text = "";
  async function said(word: string): Promise<void> {
    while (!text.includes(word)) {
      const { value, done } = await reader.read();
      if (done) throw new Error(`ended without "${word}":\n${text}`);
      text += decoder.decode(value, { stream: true });
    }
  }
  await said("ready to throw");
  const url = /"url":"([^"]+)"/.exec(text)?.[1] ?? "";
  return { child, said, url };
}

test.each(DATABASE_KINDS)(
  "on %s a process whose socket breaks unheard serves on; any other error ends it with 1, what was delivered is charged",
  async (kind) => {
    const database = await createTestDatabase(kind);
    const upstream = await startMockUpstream();
    const { child, said, url } = await start(database);
    try {
      const models = "gpt-4o-mini";
      const { key } = await startOperator({ url }, { base_url: upstream.url, models });
      const open = await fetch(`${url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify({
          model: models,
          stream: true,
          messages: [{ role: "user", content: promptOf({ id: "open", words: 100_000, per: 5, paceMs: 20 }) }],
        }),
      });
      expect(open.status).toBe(200);
      const text = open.text();
      child.kill("SIGCONT");
      await said("uncaught error of a socket");
      expect((await fetch(`${url}/api/status`)).status).toBe(200);
      child.kill("SIGUSR2");
      await said("uncaught exception");
      await said("settled at the end");
      expect(await child.exited).toBe(1);
      const seen = (await text).split(WORD).length - 1;
      expect(seen).toBeGreaterThan(0);
      expect(await text).toContain('"error"');
      const books = openBooks(database);
      const [row] = await books.log(2);
      await books.close();
      expect(row?.output).toBeGreaterThanOrEqual(seen - EDGE_TOKENS);
      expect(row?.quota).toBeGreaterThan(0);
    } finally {
      child.kill("SIGKILL");
      upstream.stop();
      await database.drop();
    }
  },
  30_000,
);
