// Drawing and music tasks against a fake Midjourney proxy and a fake Suno server: every action and state, what is paid
// and given back, exactly once, also over restarts; the books are audited after every test, on both databases.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, spyOn, test } from "bun:test";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { eq, inArray } from "drizzle-orm";
import { audit } from "../../../src/core/ledger/audit.ts";
import { pollTasks } from "../../../src/relay/tasks/poll.ts";
import { replayLog } from "../../support/replayed.ts";
import { startGateway } from "../support.ts";
import type { Gateway } from "../support.ts";
import { createPictures } from "../../../src/relay/tasks/midjourney-picture.ts";

type Json = Record<string, unknown>;

interface Seen {
  path: string;
  body: Json;
  secret: string;
}

const PRICE = 50_000;

for (const database of ["sqlite", "postgres"] as const) {
  describe(`on ${database}`, () => {
    let g: Gateway;
    let mjChannel = 0;
    let sunoChannel = 0;
    let serial = 0;
    /** What the fakes answer next; undefined = the polite default. */
    let reply: { status?: number; body: unknown } | undefined;
    /** State of the upstream's tasks, by id. */
    const upstream = new Map<string, Json>();
    const seen: Seen[] = [];
    let nowMs = 1_900_000_000_000;

    const server = createServer((request, response) => {
      const parts: Buffer[] = [];
      request.on("data", (part: Buffer) => parts.push(part));
      request.on("end", () => {
        const path = request.url ?? "";
        const text = Buffer.concat(parts).toString();
        const body = (text === "" ? {} : JSON.parse(text)) as Json;
        seen.push({
          path,
          body,
          secret: String(request.headers["mj-api-secret"] ?? request.headers["authorization"] ?? ""),
        });
        const send = (value: unknown, status = 200) => {
          response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
        };
        if (path === "/picture.png")
          return response.writeHead(200, { "content-type": "image/png" }).end("PNG");
        if (path.endsWith("/list-by-condition")) {
          const ids = body["ids"] as string[];
          return send(ids.flatMap((id) => (upstream.has(id) ? [{ id, ...upstream.get(id) }] : [])));
        }
        if (path === "/suno/fetch") {
          const ids = body["ids"] as string[];
          const data = ids.flatMap((id) => (upstream.has(id) ? [{ task_id: id, ...upstream.get(id) }] : []));
          return send({ code: "success", data });
        }
        if (path.endsWith("/image-seed")) return send({ code: 1, result: "1234" });
        if (reply) return send(reply.body, reply.status);
        serial++;
        if (path.startsWith("/suno/submit/"))
          return send({ code: "success", message: "", data: `song-${serial}` });
        return send({ code: 1, description: "提交成功", properties: {}, result: `task-${serial}` });
      });
    });

    beforeAll(async () => {
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      g = await startGateway({
        database,
        quota: 10_000_000,
        clock: { nowMs: () => nowMs, monotonicMs: () => nowMs },
      });
      const setting = JSON.stringify({ allow_networks: ["127.0.0.1"] });
      const models =
        "mj_imagine,mj_upscale,mj_variation,mj_reroll,mj_describe,mj_shorten,mj_blend,mj_upload,mj_modal,mj_inpaint,mj_custom_zoom,mj_zoom,mj_pan,mj_high_variation,mj_low_variation,swap_face";
      mjChannel = await g.app.createChannel({ type: 2, baseUrl: url, models, key: "mj-key", setting });
      sunoChannel = await g.app.createChannel({
        type: 36,
        baseUrl: url,
        models: "suno_music,suno_lyrics",
        key: "suno-key",
      });
    });
    afterAll(async () => {
      await g.close();
      server.closeAllConnections();
      server.close();
    });
    beforeEach(() => {
      reply = undefined;
      seen.length = 0;
      upstream.clear();
    });
    afterEach(async () => {
      await g.app.deps.ledger.flush();
      expect((await audit(g.app.deps.db)).differences).toEqual([]);
    });

    const post = async (path: string, body: unknown): Promise<[number, Json]> => {
      const response = await g.post(path, body);
      const text = await response.text();
      return [response.status, (text === "" ? {} : JSON.parse(text)) as Json];
    };
    const get = async (path: string) => {
      const response = await fetch(g.app.url + path, { headers: { authorization: `Bearer ${g.key}` } });
      return [response.status, await response.json()] as [number, Json];
    };
    const imagine = async (): Promise<string> => {
      const [status, answer] = await post("/mj/submit/imagine", { prompt: "a weir" });
      expect([status, answer["code"]]).toEqual([200, 1]);
      return String(answer["result"]);
    };
    /** A round of the poller, with the time since the one before. */
    const poll = () => {
      nowMs += 15_000;
      return pollTasks(g.app.deps);
    };
    const sums = async () => {
      await g.app.deps.ledger.flush();
      const { users, tokens, channels } = g.app.deps.db.t;
      const { orm } = g.app.deps.db;
      const [user] = await orm.select().from(users).where(eq(users.id, g.user.id));
      const [token] = await orm.select().from(tokens).where(eq(tokens.id, g.tokenId));
      const [mj] = await orm.select().from(channels).where(eq(channels.id, mjChannel));
      const [suno] = await orm.select().from(channels).where(eq(channels.id, sunoChannel));
      return {
        quota: user?.quota,
        used: user?.usedQuota,
        tokenUsed: token?.usedQuota,
        mj: mj?.usedQuota,
        suno: suno?.usedQuota,
      };
    };

    describe("Midjourney", () => {
      test("a submission is paid once, stored, sent on with the channel's secret, and logged in the documented words", async () => {
        const before = await sums();
        const id = await imagine();
        expect(seen[0]).toMatchObject({
          path: "/mj/submit/imagine",
          body: { prompt: "a weir" },
          secret: "mj-key",
        });
        const after = await sums();
        expect((before.quota ?? 0) - (after.quota ?? 0)).toBe(PRICE);
        expect((after.mj ?? 0) - (before.mj ?? 0)).toBe(PRICE);
        expect((after.tokenUsed ?? 0) - (before.tokenUsed ?? 0)).toBe(PRICE);
        expect(await g.lastCharge()).toMatchObject({
          modelName: "mj_imagine",
          quota: PRICE,
          content: `模型固定价格 0.10，分组倍率 1.00，操作 IMAGINE，ID ${id}`,
          other: { model_price: 0.1, group_ratio: 1 },
        });
        expect((await get(`/mj/task/${id}/fetch`))[1]).toMatchObject({
          id,
          action: "IMAGINE",
          prompt: "a weir",
          status: "",
          progress: "0%",
        });
      });

      test("the operator's switches decide what is sent on; unknown fields stay; modes of speed lose their prefix", async () => {
        const body = {
          prompt: "x --fast",
          notifyHook: "http://h",
          accountFilter: { modes: ["FAST"] },
          own: [1],
        };
        await post("/mj-fast/mj/submit/imagine", body);
        expect(seen[0]).toMatchObject({ path: "/mj/submit/imagine", body: { prompt: "x --fast", own: [1] } });
        expect(seen[0]?.body).not.toHaveProperty("notifyHook");
        expect(seen[0]?.body).not.toHaveProperty("accountFilter");
        await g.setOption("MjNotifyEnabled", "true");
        await g.setOption("MjAccountFilterEnabled", "true");
        await g.setOption("MjModeClearEnabled", "true");
        await post("/mj/submit/imagine", body);
        expect(seen[1]?.body).toEqual({ ...body, prompt: "x" });
        for (const key of ["MjNotifyEnabled", "MjAccountFilterEnabled", "MjModeClearEnabled"])
          await g.setOption(key, "false");
      });

      test("a task moves on as the upstream says, and its picture is shown through this server", async () => {
        const id = await imagine();
        const picture = `http://127.0.0.1:${(server.address() as AddressInfo).port}/picture.png`;
        upstream.set(id, { progress: "35%", status: "IN_PROGRESS", imageUrl: picture, promptEn: "a weir" });
        await poll();
        const [, moving] = await get(`/mj/task/${id}/fetch`);
        expect(moving).toMatchObject({ progress: "35%", status: "IN_PROGRESS", promptEn: "a weir" });
        expect(String(moving["imageUrl"])).toContain(`/mj/image/${id}?rand=`);
        const buttons = [{ customId: "MJ::JOB::upsample::1::u", label: "U1" }];
        upstream.set(id, { progress: "100%", status: "SUCCESS", imageUrl: picture, buttons, finishTime: 7 });
        await poll();
        const [, done] = await get(`/mj/task/${id}/fetch`);
        expect(done).toMatchObject({ progress: "100%", status: "SUCCESS", buttons, finishTime: 7 });
        expect(String(done["imageUrl"])).toEndWith(`/mj/image/${id}`);
        const shown = await fetch(`${g.app.url}/mj/image/${id}`);
        expect([shown.status, shown.headers.get("content-type"), await shown.text()]).toEqual([
          200,
          "image/png",
          "PNG",
        ]);
        expect((await fetch(`${g.app.url}/mj/image/unknown`)).status).toBe(400);
        // Nobody else has the place of a picture that has not left yet.
        const pictures = createPictures(g.app.deps);
        const ask = () => pictures(new Request(`${g.app.url}/mj/image/${id}`), id);
        const open = await Promise.all(Array.from({ length: 16 }, ask));
        expect(open.map((each) => each.status)).toEqual(open.map(() => 200));
        expect((await ask()).status).toBe(503);
        await open.pop()?.body?.cancel();
        for (const each of [...open, await ask()]) expect(await each.text()).toBe("PNG");
        // Ended is ended.
        upstream.set(id, { progress: "100%", status: "FAILURE", failReason: "late" });
        const before = await sums();
        await poll();
        expect(await sums()).toEqual(before);
      });

      test("a failure gives everything back, exactly once, however many nodes notice it", async () => {
        const before = await sums();
        const id = await imagine();
        upstream.set(id, { progress: "60%", status: "IN_PROGRESS", failReason: "banned words" });
        const { accounts } = g.app.deps;
        const changed = [spyOn(accounts, "userChanged"), spyOn(accounts, "tokenChanged")];
        await Promise.all([poll(), poll(), poll()]);
        await poll();
        // A refund is no change that memory must not stand in for.
        for (const each of changed) expect(each).not.toHaveBeenCalled();
        changed.forEach((each) => each.mockRestore());
        expect(await sums()).toEqual(before);
        expect((await get(`/mj/task/${id}/fetch`))[1]).toMatchObject({
          status: "FAILURE",
          progress: "100%",
          failReason: "banned words",
        });
        const rows = (await g.logs()).filter((row) => row.content.includes(`构图失败 ${id}`));
        expect(rows).toMatchObject([{ type: 4, content: `构图失败 ${id}，补偿 ＄0.100000 额度` }]);
        expect((await g.lastCharge())?.other["refunded"]).toBe(PRICE);
        // The balance that calls are held against knows it, too.
        expect((await g.app.deps.accounts.user(g.user.id))?.quota).toBe(before.quota ?? -1);
      });

      test("a task that the upstream forgot ends after an hour, paid back; a channel that is gone ends it as well", async () => {
        // Tasks of other tests that are still open end first.
        nowMs += 4_000_000;
        await poll();
        const before = await sums();
        const id = await imagine();
        nowMs += 3_500_000;
        await poll();
        expect((await get(`/mj/task/${id}/fetch`))[1]).toMatchObject({ progress: "0%" });
        nowMs += 200_000;
        await poll();
        expect((await get(`/mj/task/${id}/fetch`))[1]).toMatchObject({
          status: "FAILURE",
          failReason: "上游任务超时（超过1小时）",
        });
        expect(await sums()).toEqual(before);
      });

      test.each([
        [
          { code: 21, result: "again", properties: { status: "SUCCESS", imageUrl: "http://x/y.png" } },
          1,
          PRICE,
        ],
        [{ code: 22, result: "queued" }, 1, PRICE],
        [{ code: 23, description: "queue full" }, 23, 0],
        [{ code: 24, description: "banned at https://drawer.internal:8080/mj" }, 24, 0],
        [{ code: 4, description: "bad" }, 4, 0],
      ])("the answer %j reaches the client as code %d and costs %d", async (body, code, cost) => {
        const before = await sums();
        reply = { body };
        const [status, answer] = await post("/mj/submit/imagine", { prompt: "x" });
        expect([status, answer["code"]]).toEqual([200, code]);
        // Where the upstream is does not leave.
        expect(JSON.stringify(answer)).not.toMatch(/drawer\.internal|http:\/\/x\//);
        expect((before.quota ?? 0) - ((await sums()).quota ?? 0)).toBe(cost);
      });

      test("follow-ups go to the channel of their origin, by every form of asking", async () => {
        const id = await imagine();
        expect(await post("/mj/submit/change", { taskId: id, action: "UPSCALE", index: 1 })).toMatchObject([
          400,
          { code: 4, description: "task_status_not_success" },
        ]);
        upstream.set(id, { progress: "100%", status: "SUCCESS" });
        await poll();
        const asks: [string, Json, string, number][] = [
          ["change", { taskId: id, action: "VARIATION", index: 2 }, "VARIATION", PRICE],
          ["simple-change", { content: `${id} U3` }, "UPSCALE", PRICE / 2],
          ["simple-change", { content: `${id} r` }, "REROLL", PRICE],
          ["action", { taskId: id, customId: "MJ::JOB::upsample::2::uuid" }, "UPSCALE", PRICE / 2],
          ["action", { taskId: id, customId: "MJ::JOB::low_variation::1::u::SOLO" }, "LOW_VARIATION", PRICE],
          ["action", { taskId: id, customId: "MJ::JOB::pan_left::1::u" }, "PAN", PRICE],
          ["action", { taskId: id, customId: "MJ::Outpaint::50::1::u" }, "ZOOM", PRICE],
          ["action", { taskId: id, customId: "MJ::Inpaint::1::u" }, "INPAINT", 0],
          ["action", { taskId: id, customId: "MJ::CustomZoom::u" }, "CUSTOM_ZOOM", 0],
          ["modal", { taskId: id, prompt: "more" }, "MODAL", PRICE],
        ];
        for (const [kind, body, action, cost] of asks) {
          const before = await sums();
          const [status, answer] = await post(`/mj/submit/${kind}`, body);
          expect([kind, status, answer["code"]]).toEqual([kind, 200, 1]);
          expect([action, (before.quota ?? 0) - ((await sums()).quota ?? 0)]).toEqual([action, cost]);
          expect((await get(`/mj/task/${String(answer["result"])}/fetch`))[1]).toMatchObject({ action });
        }
      });

      test("what follows no task names none on its way, and hooks go by no spelling", async () => {
        const id = await imagine();
        upstream.set(id, { progress: "100%", status: "SUCCESS" });
        await poll();
        seen.length = 0;
        await post("/mj/submit/imagine", { prompt: "x", taskId: "somebody's", NotifyHook: "http://x", a: 1 });
        await post("/mj/submit/simple-change", { content: `${id} R`, taskId: "somebody's" });
        await post("/mj/submit/modal", { taskId: id, prompt: "x" });
        await post("/suno/submit/lyrics", { prompt: "x", task_id: "somebody's" });
        expect(seen.map(({ body }) => body)).toEqual([
          { prompt: "x", a: 1 },
          { content: `${id} R` },
          { taskId: id, prompt: "x" },
          { prompt: "x" },
        ]);
      });

      test.each<[string, Json, string]>([
        ["imagine", {}, "prompt_is_required"],
        ["change", {}, "task_id_is_required"],
        ["change", { taskId: "x" }, "action_is_required"],
        ["change", { taskId: "x", action: "UPSCALE" }, "index_is_required"],
        ["change", { taskId: "x", action: "inpaint" }, "unknown_action:INPAINT"],
        ["simple-change", {}, "content_is_required"],
        ["simple-change", { content: "x  U1" }, "content_parse_failed"],
        ["simple-change", { content: "x U5" }, "content_parse_failed"],
        ["action", {}, "custom_id_is_required"],
        ["action", { taskId: "x", customId: "MJ::Dance" }, "unknown_action:MJ::Dance"],
        ["change", { taskId: "x", action: "REROLL" }, "task_not_found"],
        ["dance", {}, "unknown_relay_action"],
        // Whose task it is, what is done and what it costs are read alike by everybody.
        ["modal", { taskId: 7, prompt: "x" }, "task_id_must_be_a_string"],
        ["modal", { taskid: "x" }, "unknown_field:taskid"],
        ["imagine", { prompt: "x", task_id: "x" }, "unknown_field:task_id"],
        ["change", { taskId: "x", action: "REROLL", Action: "UPSCALE" }, "unknown_field:Action"],
      ])("%s %j is refused as %s", async (kind, body, description) => {
        const before = await sums();
        expect(await post(`/mj/submit/${kind}`, body)).toEqual([
          400,
          { description, type: "upstream_error", code: 4 },
        ]);
        expect(seen).toEqual([]);
        expect(await sums()).toEqual(before);
      });

      test("swapping faces needs both pictures; uploads are done at once; the own tasks are listed", async () => {
        expect((await post("/mj/insight-face/swap", { sourceBase64: "a" }))[0]).toBe(400);
        const [, swapped] = await post("/mj/insight-face/swap", { sourceBase64: "a", targetBase64: "b" });
        reply = { body: { code: 1, description: "ok", result: ["http://u/1.png"] } };
        expect((await post("/mj/submit/upload-discord-images", { base64Array: ["x"] }))[1]).toMatchObject({
          result: ["http://u/1.png"],
        });
        const id = String(swapped["result"]);
        const [, list] = await post("/mj/task/list-by-condition", { ids: [id, "unknown"] });
        expect(list as unknown).toMatchObject([{ id, action: "SWAP_FACE", prompt: "InsightFace" }]);
        expect((await get(`/mj/task/${id}/image-seed`))[1]).toEqual({ code: 1, result: "1234" });
      });

      test("nobody reaches another user's tasks, and a poor one submits none", async () => {
        const id = await imagine();
        const stranger = await g.app.createUser({ quota: 10 });
        const { key } = await g.app.createToken(stranger.id);
        const headers = { authorization: `Bearer ${key}` };
        const fetched = await fetch(`${g.app.url}/mj/task/${id}/fetch`, { headers });
        expect(await fetched.json()).toMatchObject({ description: "task_no_found" });
        expect(
          await (await g.post("/mj/notify", { id, status: "SUCCESS", progress: "100%" }, headers)).json(),
        ).toMatchObject({ description: "midjourney_task_not_found" });
        expect(await (await g.post("/mj/submit/imagine", { prompt: "x" }, headers)).json()).toEqual({
          description: "quota_not_enough",
          type: "upstream_error",
          code: 4,
        });
        expect(
          (await g.post("/mj/submit/imagine", { prompt: "x" }, { authorization: "Bearer wrong" })).status,
        ).toBe(401);
      });

      test("a task that its cap does not pay is refused before its upstream is asked; one that it pays is taken", async () => {
        const before = await sums();
        const asked = seen.length;
        const submit = (cap: number) =>
          g.post("/mj/submit/imagine", { prompt: "x" }, { "x-max-quota": String(cap) });
        const refused = await submit(PRICE - 1);
        expect([refused.status, refused.headers.get("x-weir-error-code")]).toEqual([
          402,
          "max_cost_exceeded",
        ]);
        expect(seen).toHaveLength(asked);
        expect((await submit(PRICE)).status).toBe(200);
        expect((before.quota ?? 0) - ((await sums()).quota ?? 0)).toBe(PRICE);
      });

      test("a push moves a task on, but a failure waits for the poller, which gives the charge back", async () => {
        const before = await sums();
        const id = await imagine();
        await post("/mj/notify", { id, status: "IN_PROGRESS", progress: "50%" });
        expect((await get(`/mj/task/${id}/fetch`))[1]).toMatchObject({
          progress: "50%",
          status: "IN_PROGRESS",
        });
        await post("/mj/notify", { id, status: "FAILURE", progress: "100%", failReason: "no" });
        expect((await get(`/mj/task/${id}/fetch`))[1]).toMatchObject({ progress: "99%" });
        upstream.set(id, { progress: "100%", status: "FAILURE", failReason: "no" });
        await poll();
        expect(await sums()).toEqual(before);
      });
    });

    describe("Suno", () => {
      const submit = async (
        action = "music",
        body: Json = { gpt_description_prompt: "a song" },
      ): Promise<string> => {
        const [status, answer] = await post(`/suno/submit/${action}`, body);
        expect([status, answer["code"]]).toEqual([200, "success"]);
        return String(answer["data"]);
      };

      test("music and lyrics are submitted, paid and read back", async () => {
        const before = await sums();
        const id = await submit();
        expect(seen[0]).toMatchObject({
          path: "/suno/submit/MUSIC",
          body: { mv: "chirp-v3-0" },
          secret: "Bearer suno-key",
        });
        expect((before.quota ?? 0) - ((await sums()).quota ?? 0)).toBe(PRICE);
        await submit("lyrics", { prompt: "rain", unknown: 1 });
        expect(seen[1]?.body).toEqual({ prompt: "rain" });
        expect((await get(`/suno/fetch/${id}`))[1]).toMatchObject({
          code: "success",
          data: { task_id: id, action: "MUSIC", status: "NOT_START", progress: "0%" },
        });
        upstream.set(id, {
          status: "SUCCESS",
          finish_time: 99,
          data: [{ id: "clip", audio_url: "http://a" }],
        });
        await poll();
        const [, list] = await post("/suno/fetch", { ids: [id] });
        expect(list["data"]).toMatchObject([
          { status: "SUCCESS", progress: "100%", finish_time: 99, data: [{ id: "clip" }] },
        ]);
        expect((await post("/suno/fetch", { ids: ["unknown"] }))[1]["data"]).toBeNull();
        // An answer has an end, which is said; in parts all of it can be had.
        const { tasks } = g.app.deps.db.t;
        const [row] = await g.app.deps.db.orm.select().from(tasks).where(eq(tasks.taskId, id));
        if (!row) throw new Error("no task");
        const { id: _, ...rest } = row;
        const ids = Array.from({ length: 20 }, (__, at) => `large-${at}`);
        const data = JSON.stringify("x".repeat(1_900_000));
        for (const taskId of ids) await g.app.deps.db.orm.insert(tasks).values({ ...rest, taskId, data });
        expect(await post("/suno/fetch", { ids })).toMatchObject([
          413,
          { error: { code: "tasks_too_large" } },
        ]);
        expect(
          (await post("/suno/fetch", { ids: [...ids.slice(0, 10), ...ids.slice(0, 10)] }))[1]["data"],
        ).toHaveLength(10);
        await g.app.deps.db.orm.delete(tasks).where(inArray(tasks.taskId, ids));
        expect((await post("/suno/fetch", { ids: [] }))[1]["data"]).toEqual([]);
      });

      test("a failure gives everything back, exactly once", async () => {
        const before = await sums();
        const id = await submit();
        upstream.set(id, { status: "FAILURE", fail_reason: "moderated" });
        await Promise.all([poll(), poll()]);
        await poll();
        expect(await sums()).toEqual(before);
        expect(
          (await g.logs()).filter((row) => row.content === `异步任务执行失败 ${id}，补偿 ＄0.100000 额度`),
        ).toHaveLength(1);
      });

      test.each<[string, Json, string, string]>([
        ["dance", {}, "invalid_request", "invalid_action"],
        ["lyrics", {}, "invalid_request", "prompt_empty"],
        ["music", { continue_clip_id: "c" }, "invalid_request", "task id is empty"],
        ["music", { continue_clip_id: "c", task_id: "unknown" }, "task_not_exist", "task_origin_not_exist"],
      ])("%s %j is refused", async (action, body, code, message) => {
        expect(await post(`/suno/submit/${action}`, body)).toEqual([400, { code, message, data: null }]);
        expect(seen).toEqual([]);
      });

      test("an upstream's refusal is told and costs nothing, without its address", async () => {
        const before = await sums();
        reply = { body: { code: "busy", message: "try later at http://suno.internal/x", data: null } };
        const [status, answer] = await post("/suno/submit/music", {});
        expect([status, answer["code"]]).toEqual([500, "busy"]);
        expect(String(answer["message"])).not.toContain("suno.internal");
        reply = { status: 429, body: { error: "slow down" } };
        expect(await post("/suno/submit/music", {})).toMatchObject([
          429,
          { message: "当前分组上游负载已饱和，请稍后再试" },
        ]);
        expect(await sums()).toEqual(before);
      });
    });

    test("the lists of the console hold the own rows for users and all for administrators", async () => {
      const admin = await g.app.createUser({ role: 10 });
      const stranger = await g.app.createUser({});
      const list = async (path: string, as: typeof admin) =>
        (await g.app.call<{ data: Json[]; total: number }>("GET", path, undefined, as)).body;
      const all = await list("/api/mj/?p=0&page_size=100", admin);
      expect(all.total).toBeGreaterThan(5);
      expect(all.data[0]?.["channel_id"]).toBe(mjChannel);
      expect((await list("/api/mj/self?p=0", stranger)).data).toEqual([]);
      const own = await list(`/api/mj/self?p=0&mj_id=${String(all.data[0]?.["mj_id"])}`, g.user);
      expect(own.data).toMatchObject([{ mj_id: all.data[0]?.["mj_id"], channel_id: 0 }]);
      const songs = await list(`/api/task/?p=0&platform=suno&channel_id=${sunoChannel}`, admin);
      expect(songs.total).toBeGreaterThan(1);
      expect((await list("/api/task/?p=0&channel_id=999", admin)).data).toEqual([]);
      expect((await g.app.call("GET", "/api/mj/", undefined, stranger)).status).toBe(403);
    });

    test("a replay of the log at unchanged prices gives every charge, to the unit", async () => {
      const { replayed, differences } = await replayLog(g.app.deps);
      expect(replayed).toBeGreaterThan(20);
      expect(differences).toEqual([]);
    });
  });
}
