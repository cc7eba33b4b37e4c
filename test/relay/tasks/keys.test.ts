// Tasks choose channel and key as every call does: a key that its upstream rejects rests alone, a channel that fails is
// left alone for a while, and each failed attempt leaves a row in the log. What is polled keeps to the account that knows it.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { eq } from "drizzle-orm";
import { pollTasks } from "../../../src/relay/tasks/poll.ts";
import { startGateway, until } from "../support.ts";
import type { Gateway } from "../support.ts";

type Json = Record<string, unknown>;

const PRICE = 50_000;
const ERROR_ROW = 5;

let g: Gateway;
let nowMs = 1_900_000_000_000;
let serial = 0;
/** What was asked: channel and kind by the path, and the key without its scheme. */
const seen: string[] = [];
/** Status by key. */
const refusals = new Map<string, number>();

/** Whose account knows a task: the key that submitted it. */
const accounts = new Map<string, string>();

const server = createServer((request, response) => {
  const parts: Buffer[] = [];
  request.on("data", (part: Buffer) => parts.push(part));
  request.on("end", () => {
    const { url: path = "", headers } = request;
    const key = String(headers["mj-api-secret"] ?? headers["authorization"] ?? "").replace("Bearer ", "");
    seen.push(`${path} ${key}`);
    const refused = refusals.get(key);
    if (refused !== undefined)
      return response.writeHead(refused).end('{"code":4,"description":"no","message":"no"}');
    const { ids = [] } = JSON.parse(Buffer.concat(parts).toString()) as { ids?: string[] };
    const known = ids.filter((id) => accounts.get(id) === key);
    if (path.endsWith("/list-by-condition"))
      return response.end(JSON.stringify(known.map((id) => ({ id, progress: "9%", status: "IN_PROGRESS" }))));
    if (path.endsWith("/suno/fetch")) {
      const data = known.map((id) => ({ task_id: id, status: "IN_PROGRESS" }));
      return response.end(JSON.stringify({ code: "success", data }));
    }
    const id = `task-${++serial}`;
    accounts.set(id, key);
    const answer = path.includes("/suno/")
      ? { code: "success", message: "", data: id }
      : { code: 1, description: "ok", result: id };
    return response.end(JSON.stringify(answer));
  });
});

const FAMILIES = [
  {
    family: "drawings",
    type: 2,
    model: "mj_imagine",
    models: "mj_imagine,mj_modal",
    submit: "/mj/submit/imagine",
    sent: "/mj/submit/imagine",
    poll: "/mj/task/list-by-condition",
    body: { prompt: "x" },
  },
  {
    family: "songs",
    type: 36,
    model: "suno_music",
    models: "suno_music",
    submit: "/suno/submit/music",
    sent: "/suno/submit/MUSIC",
    poll: "/suno/fetch",
    body: {},
  },
] as const;

describe.each(FAMILIES)("$family", ({ type, model, models, submit, sent, poll, body }) => {
  const ids: Record<string, number> = {};

  beforeAll(async () => {
    await new Promise<void>((resolve) =>
      server.listening ? resolve() : server.listen(0, "127.0.0.1", resolve),
    );
    const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    g = await startGateway({ quota: 50_000_000, clock: { nowMs: () => nowMs, monotonicMs: () => nowMs } });
    for (const [name, priority, key] of [
      ["two", 10, "first\nsecond"],
      ["one", 0, "single"],
    ] as const)
      ids[name] = await g.app.createChannel({
        type,
        models,
        priority,
        key,
        baseUrl: `${base}/${name}`,
      });
    await g.setOption("AutomaticDisableChannelEnabled", "true");
    await g.setOption("RetryTimes", "1");
  });
  afterAll(() => g.close());
  beforeEach(async () => {
    // Whatever failed in the test before has rested, and whoever was refused for good is on again.
    nowMs += 700_000;
    const { orm, t } = g.app.deps.db;
    await orm.update(t.channelKeys).set({ status: 1 }).returning({ id: t.channelKeys.id });
    await g.app.deps.routing.reload();
    refusals.clear();
    seen.length = 0;
  });

  const send = async (headers?: Record<string, string>): Promise<[number, Json]> => {
    const response = await g.post(submit, body, headers);
    return [response.status, (await response.json()) as Json];
  };
  /** Ends whatever earlier tests left open. */
  const endAll = async (): Promise<void> => {
    const { orm, t } = g.app.deps.db;
    await orm.update(t.drawings).set({ progress: "100%" }).returning({ id: t.drawings.id });
    await orm.update(t.tasks).set({ progress: "100%" }).returning({ id: t.tasks.id });
  };
  const statusOf = (name: string) => g.app.deps.routing.channel(ids[name] ?? 0)?.status;
  const errorRows = async () => (await g.logs()).filter((row) => row.type === ERROR_ROW);

  test("with two keys of which the first is rejected are submitted with the second, and the channel stays enabled", async () => {
    refusals.set("first", 401);
    const before = await g.balance();
    const errors = (await errorRows()).length;
    expect((await send())[0]).toBe(200);
    expect(seen).toEqual([`/two${sent} first`, `/two${sent} second`]);
    expect(before.quota - (await g.balance()).quota).toBe(PRICE);
    expect(statusOf("two")).toBe(1);
    expect((await errorRows()).slice(errors)).toMatchObject([
      { channelId: ids["two"], modelName: model, quota: 0 },
    ]);
    // The rejected key rests.
    await send();
    expect(seen.slice(2)).toEqual([`/two${sent} second`]);
    expect((await g.lastCharge())?.channelId).toBe(ids["two"] ?? -1);
  });

  test("keep to the first key that works, in submissions and in polls", async () => {
    await endAll();
    await send();
    await send();
    nowMs += 15_000;
    await pollTasks(g.app.deps);
    expect(seen).toEqual([`/two${sent} first`, `/two${sent} first`, `/two${poll} first`]);
  });

  test("are found with the key that submitted them, also when another one works again", async () => {
    await endAll();
    refusals.set("first", 429);
    const [, answer] = await send();
    refusals.clear();
    nowMs += 60_000;
    seen.length = 0;
    await pollTasks(g.app.deps);
    expect(seen).toEqual([`/two${poll} first`, `/two${poll} second`]);
    const { drawings, tasks } = g.app.deps.db.t;
    const { orm } = g.app.deps.db;
    const rows = [...(await orm.select().from(drawings)), ...(await orm.select().from(tasks))];
    const id = answer["result"] ?? answer["data"];
    const task = rows.find((row) => ("mjId" in row ? row.mjId : row.taskId) === id);
    expect(task?.status).toBe("IN_PROGRESS");
    // A key that refuses a poll rests once another one has answered.
    refusals.set("first", 403);
    nowMs += 60_000;
    await pollTasks(g.app.deps);
    nowMs += 60_000;
    await pollTasks(g.app.deps);
    expect(seen.slice(2)).toEqual([`/two${poll} first`, `/two${poll} second`, `/two${poll} second`]);
  });

  test("are not lost while their own account fails, whatever others answer", async () => {
    await endAll();
    refusals.set("first", 429);
    const [, answer] = await send();
    const id = answer["result"] ?? answer["data"];
    const { drawings, tasks } = g.app.deps.db.t;
    const { orm } = g.app.deps.db;
    const progressOf = async (): Promise<string | undefined> => {
      const rows = [...(await orm.select().from(drawings)), ...(await orm.select().from(tasks))];
      return rows.find((row) => ("mjId" in row ? row.mjId : row.taskId) === id)?.progress;
    };
    // Another account that fails holds it up no more than one that does not know it.
    refusals.set("first", 500);
    nowMs += 60_000;
    seen.length = 0;
    await pollTasks(g.app.deps);
    expect(seen).toEqual([`/two${poll} first`, `/two${poll} second`]);
    refusals.clear();
    for (const status of [403, 500]) {
      refusals.set("second", status);
      nowMs += 11 * 3_600_000;
      seen.length = 0;
      await pollTasks(g.app.deps);
      expect([...seen].sort()).toEqual([`/two${poll} first`, `/two${poll} second`]);
      expect(await progressOf()).not.toBe("100%");
    }
    // An upstream that is broken is not asked with every key.
    const own = ids["two"] ?? 0;
    await g.app.setKeys(own, "first", "second", "third");
    await g.app.deps.routing.reload();
    for (const key of ["first", "second", "third"]) refusals.set(key, 502);
    nowMs += 15_000;
    seen.length = 0;
    await pollTasks(g.app.deps);
    expect(seen).toHaveLength(2);
    await g.app.setKeys(own, "first", "second");
    await g.app.deps.routing.reload();
    // Its own account has forgotten it.
    refusals.clear();
    accounts.delete(String(id));
    nowMs += 3 * 3_600_000;
    await pollTasks(g.app.deps);
    expect(await progressOf()).toBe("100%");
  });

  test("are followed up with the key that made them, also where another one would be asked first", async () => {
    refusals.set("first", 429);
    const [, answer] = await send();
    const id = String(answer["result"] ?? answer["data"]);
    refusals.clear();
    nowMs += 700_000;
    seen.length = 0;
    const isSong = "data" in answer;
    const follow = isSong ? { continue_clip_id: "clip", task_id: id } : { taskId: id, prompt: "more" };
    const path = isSong ? submit : "/mj/submit/modal";
    expect((await g.post(path, follow)).status).toBe(200);
    expect(seen).toEqual([`/two${isSong ? sent : "/mj/submit/modal"} second`]);
    // Switched off, it is asked no more.
    const { orm, t } = g.app.deps.db;
    const own = g.app.deps.routing.channel(ids["two"] ?? 0)?.keyRows[1]?.id ?? 0;
    await orm
      .update(t.channelKeys)
      .set({ status: 2 })
      .where(eq(t.channelKeys.id, own))
      .returning({ id: t.channelKeys.id });
    await g.app.deps.routing.reload();
    await g.post(path, follow);
    expect(seen.at(-1)).toEndWith(" first");
  });

  test("leave a key alone that failed three times, a channel whose other key fails too, and each attempt leaves an error row", async () => {
    refusals.set("first", 500);
    refusals.set("second", 500);
    await g.setOption("RetryTimes", "0");
    const before = await g.balance();
    const errors = (await errorRows()).length;
    for (let i = 0; i < 4; i++) expect((await send())[0]).toBe(500);
    expect(await g.balance()).toEqual(before);
    expect((await errorRows()).slice(errors)).toHaveLength(4);
    expect((await send())[0]).toBe(200);
    expect(seen).toEqual([
      ...Array<string>(3).fill(`/two${sent} first`),
      `/two${sent} second`,
      `/one${sent} single`,
    ]);
    await g.setOption("RetryTimes", "1");
  });

  test("go to the named channel alone when an administrator's key names one", async () => {
    const admin = await g.app.createUser({ role: 10, quota: 1_000_000 });
    const { key } = await g.app.createToken(admin.id);
    refusals.set("single", 500);
    const [status] = await send({ authorization: `Bearer ${key}-${ids["one"] ?? 0}` });
    expect([status, seen]).toEqual([500, [`/one${sent} single`]]);
  });

  test("take a channel out of service whose keys are all rejected, where the operator wants that", async () => {
    expect((await send())[0]).toBe(200);
    refusals.set("first", 401);
    refusals.set("second", 401);
    expect((await send())[0]).toBe(502);
    await until(() => Promise.resolve(statusOf("two") !== 1 || undefined));
    seen.length = 0;
    expect((await send())[0]).toBe(200);
    expect(seen).toEqual([`/one${sent} single`]);
  });
});

afterAll(() => {
  server.closeAllConnections();
  server.close();
});
