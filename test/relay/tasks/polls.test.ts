// How open tasks are asked about: less and less often while there is no news, never forgotten, never crowded out; what a
// killed gateway never charged is not given back; pushes and pictures lead nobody into closed networks.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { eq } from "drizzle-orm";
import { audit } from "../../../src/core/ledger/audit.ts";
import { CREATIVE_TASKS, DRAWINGS } from "../../../src/core/tasks/families.ts";
import { nextPoll } from "../../../src/core/tasks/polling.ts";
import { addTask } from "../../../src/core/tasks/store.ts";
import { pollTasks } from "../../../src/relay/tasks/poll.ts";
import type { TestUser } from "../../support/app.ts";
import { FORTY_DAYS_MS } from "../../support/clock.ts";
import { startGateway } from "../support.ts";
import type { Gateway } from "../support.ts";

type Json = Record<string, unknown>;

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

describe("the wait until the next question", () => {
  const waits = (outcome: "quiet" | "unreachable", rounds: number): number[] => {
    const seconds: number[] = [];
    let polls = 0;
    for (let i = 0; i < rounds; i++) {
      const state = nextPoll(polls, outcome, 0);
      ({ polls } = state);
      seconds.push(Math.round(state.nextPollMs / 1000));
    }
    return seconds;
  };
  test("is a round for two minutes without news, then doubles up to five minutes", () => {
    expect(waits("quiet", 14)).toEqual([14, 14, 14, 14, 14, 14, 14, 14, 29, 59, 119, 239, 299, 299]);
  });
  test("doubles at once when nobody answers", () => {
    expect(waits("unreachable", 7)).toEqual([14, 29, 59, 119, 239, 299, 299]);
  });
  test("starts anew with every piece of news", () => {
    expect(nextPoll(40, "news", 1000)).toEqual({ polls: 0, nextPollMs: 15_000 });
  });
});

for (const database of ["sqlite", "postgres"] as const) {
  describe(`on ${database}`, () => {
    let g: Gateway;
    let admin: TestUser;
    let mjChannel = 0;
    let nowMs = 1_900_000_000_000;
    /** By how much somebody set the time of day. */
    let jumpedMs = 0;
    let serial = 0;
    let isDown = false;
    const upstream = new Map<string, Json>();
    const asked: string[][] = [];
    const proxied: string[] = [];
    /** Pictures whose upstream takes its time. */
    const waiting: (() => void)[] = [];
    const crowded = Promise.withResolvers<void>();
    const server = createServer((request, response) => {
      const parts: Buffer[] = [];
      request.on("data", (part: Buffer) => parts.push(part));
      request.on("end", () => {
        const path = request.url ?? "";
        const text = Buffer.concat(parts).toString();
        const ids = text === "" ? undefined : ((JSON.parse(text) as Json)["ids"] as string[] | undefined);
        const send = (value: unknown, status = 200) =>
          response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
        if (/^https?:/.test(path)) {
          // Asked as a proxy.
          proxied.push(path);
          return response.writeHead(200, { "content-type": "image/png" }).end("PROXIED");
        }
        if (path === "/gone.png")
          return response.writeHead(404).end("no such picture on http://inner.example/x");
        if (path === "/slow.png") {
          waiting.push(() => response.writeHead(200, { "content-type": "image/png" }).end("PNG"));
          if (waiting.length === 16) crowded.resolve();
          return undefined;
        }
        if (path.endsWith(".png")) return response.writeHead(200, { "content-type": "image/png" }).end("PNG");
        if (ids) asked.push(ids);
        if (isDown) return send({ error: "down" }, 503);
        if (path.endsWith("/list-by-condition"))
          return send(ids?.flatMap((id) => (upstream.has(id) ? [{ id, ...upstream.get(id) }] : [])));
        if (path === "/suno/fetch") {
          const data = ids?.flatMap((id) => (upstream.has(id) ? [{ task_id: id, ...upstream.get(id) }] : []));
          return send({ code: "success", data });
        }
        serial++;
        if (path.startsWith("/suno/")) return send({ code: "success", message: "", data: `song-${serial}` });
        return send({ code: 1, description: "ok", result: `task-${serial}` });
      });
    });
    let base = "";

    beforeAll(async () => {
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      g = await startGateway({
        database,
        quota: 50_000_000,
        clock: { nowMs: () => nowMs + jumpedMs, monotonicMs: () => nowMs },
      });
      admin = await g.app.createUser({ role: 10 });
      mjChannel = await g.app.createChannel({ type: 2, baseUrl: base, models: "mj_imagine", key: "k" });
      await g.app.createChannel({ type: 36, baseUrl: base, models: "suno_music", key: "k" });
    });
    afterAll(async () => {
      await g.close();
      server.closeAllConnections();
      server.close();
    });
    beforeEach(() => {
      isDown = false;
      upstream.clear();
      asked.length = 0;
      proxied.length = 0;
    });
    afterEach(async () => {
      // Whatever a test left open ends before the next one.
      const { drawings, tasks } = g.app.deps.db.t;
      await g.app.deps.ledger.flush();
      expect((await audit(g.app.deps.db)).differences).toEqual([]);
      await g.app.deps.db.orm.update(drawings).set({ progress: "100%" }).returning({ id: drawings.id });
      await g.app.deps.db.orm.update(tasks).set({ progress: "100%" }).returning({ id: tasks.id });
    });

    const poll = (afterMs = 15_000) => {
      nowMs += afterMs;
      return pollTasks(g.app.deps);
    };
    const submit = async (path: string, body: Json, key = g.key): Promise<string> => {
      const answer = (await (await g.post(path, body, { authorization: `Bearer ${key}` })).json()) as Json;
      return String(answer["result"] ?? answer["data"]);
    };
    const imagine = (key?: string) => submit("/mj/submit/imagine", { prompt: "x" }, key);
    const fetched = async (id: string, key = g.key): Promise<Json> =>
      (await (
        await fetch(`${g.app.url}/mj/task/${id}/fetch`, { headers: { authorization: `Bearer ${key}` } })
      ).json()) as Json;
    const row = async (mjId: string) => {
      const { drawings } = g.app.deps.db.t;
      const [found] = await g.app.deps.db.orm.select().from(drawings).where(eq(drawings.mjId, mjId));
      return found;
    };

    test("a task without news is asked about every round, then less and less often; news bring the pace back", async () => {
      const id = await imagine();
      upstream.set(id, { progress: "10%", status: "IN_PROGRESS" });
      for (let i = 0; i < 10; i++) await poll();
      expect(asked.length).toBe(10);
      // The first brought news, eight more did not: now half of the rounds ask.
      asked.length = 0;
      for (let i = 0; i < 4; i++) await poll();
      expect(asked.length).toBe(1);
      upstream.set(id, { progress: "20%", status: "IN_PROGRESS" });
      await poll(5 * MINUTE_MS);
      asked.length = 0;
      for (let i = 0; i < 4; i++) await poll();
      expect(asked.length).toBe(4);
    });

    test("a clock that is set by forty days neither loses a task nor stops its being asked for", async () => {
      const before = await g.balance();
      const id = await imagine();
      await poll();
      for (const way of [1, -2, 1]) {
        jumpedMs += way * FORTY_DAYS_MS;
        upstream.set(id, { progress: `${50 + way}%`, status: "IN_PROGRESS" });
        await poll();
        expect(await fetched(id)).toMatchObject({ status: "IN_PROGRESS", progress: `${50 + way}%` });
      }
      expect(jumpedMs).toBe(0);
      expect((await g.balance()).quota).toBe(before.quota - 50_000);
      // Time that really passes makes it a lost one.
      upstream.clear();
      await poll(61 * MINUTE_MS);
      expect((await fetched(id))["status"]).not.toBe("IN_PROGRESS");
    });

    test("an upstream that is down is asked less and less often, which a restart does not forget", async () => {
      const id = await imagine();
      isDown = true;
      for (let i = 0; i < 20; i++) await poll();
      expect(asked.length).toBe(5);
      // The state stands in the row: whoever polls next keeps the pace.
      const waiting = await row(id);
      expect([waiting?.polls, (waiting?.nextPollMs ?? 0) > nowMs]).toEqual([5, true]);
      isDown = false;
      upstream.set(id, { progress: "100%", status: "SUCCESS" });
      await poll(0);
      expect((await fetched(id))["progress"]).toBe("0%");
      await poll(5 * MINUTE_MS);
      expect((await fetched(id))["progress"]).toBe("100%");
    });

    test("hundreds of tasks that nobody knows any more do not crowd out a new one", async () => {
      const old = { userId: g.user.id, channelId: mjChannel, action: "IMAGINE", submitTimeMs: nowMs };
      const { drawings } = g.app.deps.db.t;
      await g.app.deps.db.orm
        .insert(drawings)
        .values(Array.from({ length: 600 }, (_, i) => ({ ...old, mjId: `lost-${i}` })))
        .returning({ id: drawings.id });
      const id = await imagine();
      upstream.set(id, { progress: "100%", status: "SUCCESS" });
      await poll();
      await poll();
      expect((await fetched(id))["status"]).toBe("SUCCESS");
      expect(Math.max(...asked.map((ids) => ids.length))).toBe(500);
    });

    test("what no database can hold is stored without it: the work is charged, and no other task waits for it", async () => {
      const before = await g.balance();
      const id = await submit("/mj/submit/imagine", { prompt: "a\0b \ud800" });
      const other = await imagine();
      const song = await submit("/suno/submit/music", { gpt_description_prompt: "a\0\udc00" });
      expect([id, other, song].every((each) => /^(task|song)-/.test(each))).toBe(true);
      expect(before.quota - (await g.balance()).quota).toBe(150_000);
      expect((await row(id))?.prompt).toBe("ab \ufffd");
      upstream.set(id, {
        progress: "50%",
        status: "IN\0_PROGRESS",
        promptEn: "\ud800",
        startTime: 1e308,
        finishTime: "NaN",
        imageUrl: { not: "text" },
        buttons: [{ label: "\0" }],
        properties: "x".repeat(3_000_000),
      });
      upstream.set(other, { progress: "100%", status: "SUCCESS" });
      await poll();
      expect(await fetched(id)).toMatchObject({
        status: "IN_PROGRESS",
        promptEn: "\ufffd",
        startTime: 0,
        finishTime: 0,
      });
      expect((await fetched(other))["status"]).toBe("SUCCESS");
      const missing = encodeURIComponent("a\0b");
      const headers = { authorization: `Bearer ${g.key}` };
      for (const path of [
        `/mj/task/${missing}/fetch`,
        `/mj/task/${missing}/image-seed`,
        `/mj/image/${missing}`,
        `/suno/fetch/${missing}`,
      ])
        expect([path, (await fetch(g.app.url + path, { headers })).status]).toEqual([path, 400]);
      for (const [path, body] of [
        ["/mj/task/list-by-condition", { ids: ["a\0b", "\ud800", 7, null] }],
        ["/suno/fetch", { ids: ["a\0b", "\ud800", {}] }],
      ] as const)
        expect([path, (await g.post(path, body)).status]).toEqual([path, 200]);
      for (const [path, body] of [
        ["/mj/submit/change", { taskId: "a\0b", action: "REROLL" }],
        ["/mj/notify", { id: "a\0b" }],
        ["/suno/submit/music", { continue_clip_id: "c", task_id: "a\0b" }],
      ] as const)
        expect([path, (await g.post(path, body)).status]).toEqual([path, 400]);
    });

    test("every answer carries its request's id", async () => {
      const headers = { authorization: `Bearer ${g.key}` };
      for (const response of [
        await g.post("/mj/submit/imagine", { prompt: "x" }),
        await g.post("/mj/submit/imagine", {}),
        await g.post("/suno/submit/music", {}),
        await fetch(`${g.app.url}/mj/task/none/fetch`, { headers }),
        await fetch(`${g.app.url}/suno/fetch/none`, { headers }),
      ])
        expect(response.headers.get("x-oneapi-request-id")).toMatch(/^\d\w{30,}$/);
    });

    test("a failed task whose charge never came ends without a refund once there is no hope", async () => {
      const before = await g.balance();
      const killed = { userId: g.user.id, tokenId: g.tokenId, quota: 50_000, requestId: "never-settled" };
      await addTask(g.app.deps, DRAWINGS, {
        ...killed,
        mjId: "orphan",
        action: "IMAGINE",
        modelName: "mj_imagine",
        channelId: mjChannel,
        submitTimeMs: nowMs,
      });
      await addTask(g.app.deps, CREATIVE_TASKS, {
        ...killed,
        taskId: "orphan-song",
        action: "MUSIC",
        modelName: "suno_music",
        channelId: 987_654,
        createdAt: Math.floor(nowMs / 1000),
      });
      upstream.set("orphan", { progress: "50%", status: "FAILURE", failReason: "no" });
      await poll();
      expect(await row("orphan")).toMatchObject({ progress: "0%", quota: 50_000 });
      await poll(2 * HOUR_MS);
      expect(await row("orphan")).toMatchObject({
        progress: "100%",
        status: "FAILURE",
        failReason: "no",
        quota: 0,
        refunded: false,
      });
      expect(await g.balance()).toEqual(before);
    });

    test("a song that its upstream forgot ends after a day, paid back", async () => {
      const before = await g.balance();
      const id = await submit("/suno/submit/music", {});
      await poll(23 * HOUR_MS);
      const song = async () =>
        (
          await fetch(`${g.app.url}/suno/fetch/${id}`, { headers: { authorization: `Bearer ${g.key}` } })
        ).json();
      expect(await song()).toMatchObject({ data: { progress: "0%" } });
      await poll(2 * HOUR_MS);
      expect(await song()).toMatchObject({
        data: { status: "FAILURE", fail_reason: "上游任务超时（超过24小时）" },
      });
      const after = await g.balance();
      expect([after.quota, after.used]).toEqual([before.quota, before.used]);
    });

    test("a drawing whose upstream is away is not lost for a day: it may be drawn, and billed", async () => {
      const before = await g.balance();
      const [id, lost] = [await imagine(), await imagine()];
      isDown = true;
      await poll(2 * HOUR_MS);
      expect(await fetched(id)).toMatchObject({ progress: "0%", failReason: "" });
      await poll(20 * HOUR_MS);
      expect((await fetched(lost))["progress"]).toBe("0%");
      isDown = false;
      upstream.set(id, { progress: "100%", status: "SUCCESS" });
      await poll(HOUR_MS);
      expect((await fetched(id))["status"]).toBe("SUCCESS");
      expect(await fetched(lost)).toMatchObject({
        status: "FAILURE",
        failReason: "上游任务超时（超过1小时）",
      });
      const silent = await imagine();
      isDown = true;
      await poll(26 * HOUR_MS);
      expect(await fetched(silent)).toMatchObject({
        status: "FAILURE",
        failReason: "上游任务超时（超过25小时）",
      });
      expect(before.quota - (await g.balance()).quota).toBe(50_000);
    });

    test("a key that the task's charge used up can be used again after the refund", async () => {
      const { id: tokenId, key } = await g.app.createToken(g.user.id, {
        remainQuota: 50_000,
        unlimitedQuota: false,
      });
      const id = await imagine(key);
      await g.app.deps.ledger.flush();
      expect(
        (await g.post("/mj/submit/imagine", { prompt: "x" }, { authorization: `Bearer ${key}` })).status,
      ).toBe(401);
      upstream.set(id, { progress: "1%", status: "FAILURE", failReason: "no" });
      await poll();
      const { tokens } = g.app.deps.db.t;
      const [token] = await g.app.deps.db.orm.select().from(tokens).where(eq(tokens.id, tokenId));
      expect(token).toMatchObject({ status: 1, remainQuota: 50_000, usedQuota: 0 });
      expect(await imagine(key)).toStartWith("task-");
    });

    test("a picture's address is this server's, also before the operator has named one", async () => {
      const id = await imagine();
      upstream.set(id, { progress: "100%", status: "SUCCESS", imageUrl: `${base}/a.png` });
      await poll();
      expect((await fetched(id))["imageUrl"]).toBe(`${g.app.url}/mj/image/${id}`);
      const list = await g.app.call<{ data: Json[] }>("GET", `/api/mj/self?mj_id=${id}`, undefined, g.user);
      expect(list.body.data[0]?.["image_url"]).toBe(`${g.app.url}/mj/image/${id}`);
      await g.setOption("ServerAddress", "https://draw.example/");
      expect((await fetched(id))["imageUrl"]).toBe(`https://draw.example/mj/image/${id}`);
      await g.setOption("ServerAddress", "");
    });

    test("pictures come from the upstream's own host, and from elsewhere only where networks are open", async () => {
      const id = await imagine();
      const show = async () => {
        const response = await fetch(`${g.app.url}/mj/image/${id}`);
        return [response.status, await response.text()];
      };
      const push = (imageUrl: string, headers?: Record<string, string>) =>
        g.post("/mj/notify", { id, status: "IN_PROGRESS", progress: "50%", imageUrl }, headers);
      upstream.set(id, { progress: "40%", status: "IN_PROGRESS", imageUrl: `${base}/a.png` });
      await poll();
      expect(await show()).toEqual([200, "PNG"]);
      // The upstream's word does not open other hosts of the operator's networks.
      upstream.set(id, { progress: "41%", status: "IN_PROGRESS", imageUrl: "http://127.8.8.8:1/secret.png" });
      await poll();
      expect(await show()).toEqual([500, '{"error":"http_get_image_failed"}']);
      // The owner's push opens nothing at all.
      await push(`${base}/a.png`);
      expect((await fetched(id))["progress"]).toBe("50%");
      expect(await show()).toEqual([500, '{"error":"http_get_image_failed"}']);
      // The operator's push is the upstream's.
      const { key } = await g.app.createToken(admin.id);
      await push(`${base}/gone.png`, { authorization: `Bearer ${key}` });
      const [status, text] = await show();
      expect(status).toBe(404);
      expect(text).toContain("no such picture");
      expect(text).not.toContain("inner.example");
    });

    test("a crowd that asks for slow pictures fills no memory: the rest are told to come back", async () => {
      const drawing = { userId: g.user.id, action: "IMAGINE", status: "SUCCESS", progress: "100%" };
      await addTask(g.app.deps, DRAWINGS, {
        ...drawing,
        mjId: "slow",
        channelId: mjChannel,
        imageUrl: `${base}/slow.png`,
      });
      const refused: Response[] = [];
      const told = Promise.withResolvers<void>();
      const crowd = Array.from({ length: 24 }, async () => {
        const response = await fetch(`${g.app.url}/mj/image/slow`);
        if (response.status === 503 && refused.push(response) === 8) told.resolve();
        return response;
      });
      // The refused ones are answered while the others still wait.
      await Promise.all([crowded.promise, told.promise]);
      expect(refused[0]?.headers.get("retry-after")).toBe("1");
      for (const answer of waiting) answer();
      const statuses = (await Promise.all(crowd)).map(({ status }) => status).sort((a, b) => a - b);
      expect(statuses).toEqual([...Array<number>(16).fill(200), ...Array<number>(8).fill(503)]);
      expect((await fetch(`${g.app.url}/mj/image/unknown`)).status).toBe(400);
    });

    test("pictures go through the channel's proxy", async () => {
      const setting = JSON.stringify({ proxy: base });
      const proxiedChannel = await g.app.createChannel({ type: 2, baseUrl: base, models: "mj_pan", setting });
      const drawing = { userId: g.user.id, action: "PAN", status: "SUCCESS", progress: "100%" };
      const imageUrl = "http://93.184.216.34/a.png";
      await addTask(g.app.deps, DRAWINGS, {
        ...drawing,
        mjId: "through",
        channelId: proxiedChannel,
        imageUrl,
      });
      expect(await (await fetch(`${g.app.url}/mj/image/through`)).text()).toBe("PROXIED");
      expect(proxied).toEqual([imageUrl]);
      await addTask(g.app.deps, DRAWINGS, {
        ...drawing,
        mjId: "inner",
        channelId: proxiedChannel,
        imageUrl: "http://169.254.169.254/",
      });
      expect((await fetch(`${g.app.url}/mj/image/inner`)).status).toBe(500);
      expect(proxied).toEqual([imageUrl]);
    });

    test("a picture whose address a user pushed does not: a proxy knows names of networks that are closed to users", async () => {
      const setting = JSON.stringify({ proxy: base });
      const behind = await g.app.createChannel({ type: 2, baseUrl: base, models: "mj_zoom", setting });
      const drawing = { userId: g.user.id, action: "ZOOM", status: "IN_PROGRESS", progress: "10%" };
      await addTask(g.app.deps, DRAWINGS, { ...drawing, mjId: "pushed", channelId: behind, imageUrl: "" });
      const before = proxied.length;
      const imageUrl = "http://intranet.corp.invalid/x";
      expect((await g.post("/mj/notify", { id: "pushed", imageUrl })).status).toBe(200);
      expect((await fetch(`${g.app.url}/mj/image/pushed`)).status).toBe(500);
      expect(proxied.slice(before)).toEqual([]);
    });

    test("the operator's upstream pushes to everybody's tasks, users to their own", async () => {
      const id = await imagine();
      const stranger = await g.app.createToken((await g.app.createUser({ quota: 10 })).id);
      const operator = await g.app.createToken(admin.id);
      const push = async (key: string) =>
        (
          await g.post(
            "/mj/notify",
            { id, status: "IN_PROGRESS", progress: "77%" },
            { authorization: `Bearer ${key}` },
          )
        ).status;
      expect(await push(stranger.key)).toBe(400);
      expect((await fetched(id))["progress"]).toBe("0%");
      expect(await push(operator.key)).toBe(200);
      expect((await fetched(id))["progress"]).toBe("77%");
      expect((await g.post("/mj/notify", {}, { authorization: `Bearer ${operator.key}` })).status).toBe(400);
    });
  });
}
