// A5 and A6 from outside: pushed drawings and refunds over an hour's end; the task job of the server itself does the work.
// Refuses to wait for an hour: the books of a stopped server are moved back by one.
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import postgres from "postgres";
import { offsetSeconds } from "../../src/shared/local-time.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";
import { startSite } from "./site.ts";
import type { Site } from "./site.ts";

const DRAWING_PRICE = 50_000;
/** The job looks every quarter of a minute. */
const LOOK_LIMIT_MS = 40_000;
const DUE = [
  "update midjourneys set next_poll_ms = 0",
  "insert into marks (key, value) values ('job:task-poll', 0) on conflict (key) do update set value = 0",
];

/** A drawing provider: takes everything, and answers what it is told to about a task. */
function startDrawings() {
  const tasks = new Map<string, Record<string, unknown>>();
  let serial = 0;
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      response.writeHead(200, { "content-type": "application/json" });
      if ((request.url ?? "").endsWith("/list-by-condition")) {
        const { ids } = JSON.parse(Buffer.concat(parts).toString()) as { ids: string[] };
        const known = ids.flatMap((id) => (tasks.has(id) ? [{ id, ...tasks.get(id) }] : []));
        return response.end(JSON.stringify(known));
      }
      const id = `drawing-${++serial}`;
      tasks.set(id, { status: "IN_PROGRESS", progress: "30%" });
      return response.end(JSON.stringify({ code: 1, description: "ok", properties: {}, result: id }));
    });
  });
  return new Promise<{ url: string; tasks: typeof tasks; stop(): void }>((resolve) =>
    server.listen(0, "127.0.0.1", () =>
      resolve({
        url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
        tasks,
        stop() {
          server.closeAllConnections();
          server.close();
        },
      }),
    ),
  );
}

/** Changes the books behind a stopped server's back, or a job's turn behind a running one's. */
async function write(site: Site, statements: readonly string[]): Promise<void> {
  if (site.databaseUrl) {
    const sql = postgres(site.databaseUrl, { max: 1, onnotice: () => {} });
    for (const statement of statements) await sql.unsafe(statement);
    await sql.end();
    return;
  }
  const file = new Database(join(site.server.dataDir, "weir.sqlite"));
  file.run("pragma busy_timeout = 5000");
  for (const statement of statements) file.run(statement);
  file.close();
}

test.concurrent.each(DATABASE_KINDS)(
  "on %s no push makes a running drawing free, and a refund after the hour goes back to the hour of its call",
  async (kind) => {
    const site = await startSite({ kind });
    const drawings = await startDrawings();
    await site.channel({ type: 2, models: "mj_imagine", base_url: drawings.url, key: "mj" });
    await site.set("ModelPrice", JSON.stringify({ mj_imagine: DRAWING_PRICE / 500_000 }));
    const post = async (path: string, key: string, body: unknown) => {
      const answer = await fetch(site.server.url + path, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      return (await answer.json()) as { result: string };
    };
    const draw = async (key: string) => (await post("/mj/submit/imagine", key, { prompt: "a weir" })).result;

    const person = await site.person(1_000_000);
    const key = await person.key();
    const failing = await draw(key);
    await site.server.stop();
    const columns = site.databaseUrl
      ? await site.books.ask(
          "select column_name as name from information_schema.columns where table_name = 'midjourneys'",
        )
      : await site.books.ask("select name from pragma_table_info('midjourneys')");
    // Whatever keeps the settlement's hour with the task moves with it.
    const hours = columns.map(({ name }) => String(name)).filter((name) => /hour|settled/.test(name));
    const of = `user_id = ${person.id}`;
    // The coarse sums hold nobody else's use yet; their days are those of the hour before, which may be yesterday.
    const [{ zone, hour } = { zone: "", hour: 0 }] = (await site.books.ask(
      "select zone, (select max(hour) from rollups) as hour from rollup_days",
    )) as { zone: string; hour: number }[];
    const before = Number(hour) - 3600;
    const localSeconds = before + offsetSeconds(String(zone), before * 1000);
    const day = localSeconds - (localSeconds % 86_400);
    await write(site, [
      `update rollups set hour = hour - 3600 where ${of}`,
      "update rollups_by_model set hour = hour - 3600",
      ...["user", "user_model", "token", "channel"].map((by) => `update rollups_by_${by} set day = ${day}`),
      `update logs set created_at = created_at - 3600 where ${of} and type = 2`,
      ...hours.map(
        (name) => `update midjourneys set ${name} = ${name} - 3600 where ${of} and ${name} > 3600`,
      ),
    ]);
    expect(site.server.audit()).toMatchObject({ code: 0 });
    await site.server.restart();

    // Of this hour, with all the names of the first, so that its roll-up is the newest.
    const pusher = await site.person(1_000_000);
    const pusherKey = await pusher.key();
    const pushed = await draw(pusherKey);
    await draw(key);
    for (const push of [
      { id: pushed, submitTime: 1, status: "IN_PROGRESS", progress: "10%" },
      {
        id: pushed,
        submitTime: 1,
        startTime: 1,
        finishTime: 1,
        status: "FAILURE",
        progress: "100%",
        failReason: "no",
      },
      { id: pushed, submitTime: 1, status: "NOT_START", progress: "0%" },
    ])
      await post("/mj/notify", pusherKey, push);
    drawings.tasks.set(failing, { status: "FAILURE", progress: "100%", failReason: "no" });
    await site.until(async () => {
      await write(site, DUE);
      const [row] = await site.books.ask(`select refunded from midjourneys where mj_id = '${failing}'`);
      return Number(row?.["refunded"]) === 1 || row?.["refunded"] === true;
    }, LOOK_LIMIT_MS);
    expect((await site.books.balance(person.id)).quota).toBe(1_000_000 - DRAWING_PRICE);
    // The same round has looked at the pushed one.
    const state = await fetch(`${site.server.url}/mj/task/${pushed}/fetch`, {
      headers: { authorization: `Bearer ${pusherKey}` },
    });
    const task = (await state.json()) as { submitTime: number; status: string };
    await site.server.stop();
    const audit = site.server.audit();
    expect({ audit: audit.code, pusher: (await site.books.balance(pusher.id)).quota }).toEqual({
      audit: 0,
      pusher: 1_000_000 - DRAWING_PRICE,
    });
    expect(task.submitTime).toBeGreaterThan(Date.now() - 600_000);
    expect(task.status).not.toBe("FAILURE");
    drawings.stop();
    await site.remove();
  },
  90_000,
);
