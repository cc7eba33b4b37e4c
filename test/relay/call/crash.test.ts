// The first promise under fire: a process that is killed again and again under load has logged all that it answered.
// Refuses clocks: the moment of each kill is a random number of answers, a restart is over when the process says so.
import { expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { connect } from "../../../src/db/connect.ts";
import { readEnv } from "../../../src/env.ts";
import { LogType } from "../../../src/shared/enums.ts";
import { startFakeUpstream } from "../../support/fake-upstream.ts";
import { startOperator } from "../../support/operator.ts";
import { createTestDatabase, DATABASE_KINDS } from "../../support/postgres.ts";
import { startServerProcess } from "../../support/server.ts";

/** In the ordinary run a sample: each database has its own kills. */
const KILLS = Bun.env["WEIR_LONG"] === "1" ? 40 : 10;
const CONCURRENCY = 16;
/** A kill comes after at least one and at most this many answers since the restart. */
const MAX_ANSWERS_BETWEEN = 60;
const MODEL = "gpt-4o-mini";
const DONE = "data: [DONE]\n\n";

/** One call; the request id when the answer arrived in full, undefined when the connection broke on the way. */
async function callOnce(url: string, key: string, stream: boolean): Promise<string | undefined> {
  let response: Response;
  let text = "";
  try {
    response = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: MODEL, stream, messages: [{ role: "user", content: "hi" }] }),
    });
    const decoder = new TextDecoder();
    for await (const chunk of response.body as ReadableStream<Uint8Array>) {
      text += decoder.decode(chunk, { stream: true });
      // What the socket does after the terminal frame no longer matters to the client.
      if (stream && text.endsWith(DONE)) break;
    }
  } catch {
    return undefined;
  }
  if (response.status !== 200) throw new Error(`${response.status}: ${text}`);
  if (stream && !text.endsWith(DONE)) return undefined;
  if (!stream) expect(JSON.parse(text)).toHaveProperty("usage");
  return response.headers.get("X-Oneapi-Request-Id") ?? undefined;
}

test.concurrent.each(DATABASE_KINDS)(
  `on %s every fully received answer is in the log after ${KILLS} kills under load, once, and the books agree`,
  async (kind) => {
    const upstream = await startFakeUpstream();
    const database = await createTestDatabase(kind);
    const server = await startServerProcess({ DATABASE_URL: database.databaseUrl ?? "", LOG_LEVEL: "info" });
    const { key } = await startOperator(server, { base_url: upstream.url, models: MODEL });

    const answered: string[] = [];
    let kills = 0;
    let broken = 0;
    let killAt = 1;
    /** Settles when the process serves again; workers whose call broke wait for it. */
    let serving = Promise.resolve();
    const aim = () => (killAt = answered.length + 1 + Math.floor(Math.random() * MAX_ANSWERS_BETWEEN));
    aim();

    const worker = async (number: number): Promise<void> => {
      for (let round = number; kills < KILLS; round++) {
        await serving;
        const id = await callOnce(server.url, key, round % 2 === 0);
        if (id === undefined) broken++;
        else if (answered.push(id) === killAt) {
          kills++;
          serving = server.kill().then(() => server.restart());
          void serving.then(aim);
        }
      }
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, (_, number) => worker(number)));
    await serving;
    await server.stop();

    expect(server.audit()).toMatchObject({ code: 0, text: expect.stringContaining("No difference") });
    const db = await connect(
      readEnv({ DATA_DIR: server.dataDir, DATABASE_URL: database.databaseUrl ?? "", LOG_LEVEL: "silent" }),
    );
    const { logs, reservations } = db.t;
    const rows = await db.orm.select({ id: logs.requestId }).from(logs).where(eq(logs.type, LogType.consume));
    const logged = new Set(rows.map((row) => row.id));
    expect(answered.filter((id) => !logged.has(id))).toEqual([]);
    expect(logged.size).toBe(rows.length);
    expect(new Set(answered).size).toBe(answered.length);
    expect(await db.orm.select().from(reservations)).toEqual([]);
    // The fire was real: many answers, and calls that died with their process.
    expect(answered.length).toBeGreaterThanOrEqual(KILLS);
    expect(broken).toBeGreaterThanOrEqual(KILLS);
    console.log(`${kind}: ${answered.length} answers checked, ${broken} calls broken by ${kills} kills`);

    await db.close();
    await server.remove();
    await database.drop();
    upstream.stop();
  },
  // Forty restarts beside a busy browser on two slow cores took 105 s; the run as a whole has its own limit.
  300_000,
);
