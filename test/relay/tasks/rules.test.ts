// Rules of drawing and music tasks one by one: the operator's switches, which channel is asked, who is let in, and what
// the oddest answers of an upstream cost (nothing). Sums over restarts and databases are in tasks.test.ts.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { eq } from "drizzle-orm";
import { pollTasks } from "../../../src/relay/tasks/poll.ts";
import { startGateway } from "../support.ts";
import type { Gateway } from "../support.ts";

type Json = Record<string, unknown>;

let g: Gateway;
let base = "";
let nowMs = 1_900_000_000_000;
let serial = 0;
/** Channel "a" is preferred, "b" stands behind it; both are paths of one server. */
const ids: Record<string, number> = {};
const seen: { path: string; secret: string }[] = [];
/** Answers by the beginning of the path: status and text. */
const replies = new Map<string, [number, string]>();
const states = new Map<string, Json>();

const server = createServer((request, response) => {
  const parts: Buffer[] = [];
  request.on("data", (part: Buffer) => parts.push(part));
  request.on("end", () => {
    const path = request.url ?? "";
    const { headers } = request;
    seen.push({ path, secret: String(headers["mj-api-secret"] ?? headers["authorization"] ?? "") });
    if (path.includes("list-by-condition"))
      return response.end(JSON.stringify([...states].map(([id, state]) => ({ id, ...state }))));
    const [, [status, text] = [200, ""]] = [...replies].find(([start]) => path.startsWith(start)) ?? [];
    if (text !== "" || status !== 200 || replies.has(path)) return response.writeHead(status).end(text);
    serial++;
    const id = `t-${serial}`;
    const answer = path.includes("/suno/")
      ? { code: "success", message: "", data: id }
      : { code: 1, description: "ok", result: id };
    return response.end(JSON.stringify(answer));
  });
});

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  g = await startGateway({ quota: 50_000_000, clock: { nowMs: () => nowMs, monotonicMs: () => nowMs } });
  for (const [name, priority] of [
    ["a", 10],
    ["b", 0],
  ] as const) {
    const common = { priority, key: `key-${name}`, baseUrl: `${base}/${name}` };
    ids[name] = await g.app.createChannel({
      type: 5,
      models: "mj_imagine,mj_upscale,mj_modal,mj_upload",
      ...common,
    });
    ids[`suno-${name}`] = await g.app.createChannel({
      type: 36,
      models: "suno_music,suno_lyrics",
      ...common,
    });
  }
});
afterAll(async () => {
  await g.close();
  server.closeAllConnections();
  server.close();
});
beforeEach(() => {
  // A channel that failed in the test before has rested.
  nowMs += 600_000;
  seen.length = 0;
  replies.clear();
  states.clear();
});

async function post(path: string, body: unknown, key = g.key): Promise<[number, Json]> {
  const response = await g.post(path, body, { authorization: `Bearer ${key}` });
  return [response.status, (await response.json()) as Json];
}
async function fetched(id: string): Promise<Json> {
  const headers = { authorization: `Bearer ${g.key}` };
  return (await (await fetch(`${g.app.url}/mj/task/${id}/fetch`, { headers })).json()) as Json;
}
const imagine = async (): Promise<string> =>
  String((await post("/mj/submit/imagine", { prompt: "x" }))[1]["result"]);
async function setStatus(name: string, status: number): Promise<void> {
  const { channels } = g.app.deps.db.t;
  await g.app.deps.db.orm
    .update(channels)
    .set({ status })
    .where(eq(channels.id, ids[name] ?? 0))
    .returning();
  await g.app.deps.routing.reload();
}
async function finish(id: string, imageUrl = ""): Promise<void> {
  states.set(id, { progress: "100%", status: "SUCCESS", imageUrl });
  nowMs += 15_000;
  await pollTasks(g.app.deps);
  seen.length = 0;
}

describe("the operator's switches", () => {
  test("without forwarding, pictures are shown where the upstream has them", async () => {
    const id = await imagine();
    await finish(id, "https://cdn.example/p.png");
    await g.setOption("MjForwardUrlEnabled", "false");
    expect((await fetched(id))["imageUrl"]).toBe("https://cdn.example/p.png");
    const list = await g.app.call<{ data: Json[] }>("GET", `/api/mj/self?mj_id=${id}`, undefined, g.user);
    expect(list.body.data[0]?.["image_url"]).toBe("https://cdn.example/p.png");
    await g.setOption("MjForwardUrlEnabled", "true");
    expect((await fetched(id))["imageUrl"]).toBe(`${g.app.url}/mj/image/${id}`);
  });

  test("without the action check, unfinished tasks may be followed up; a dialog always may", async () => {
    const id = await imagine();
    const upscale = { taskId: id, action: "UPSCALE", index: 1 };
    expect((await post("/mj/submit/change", upscale))[1]["description"]).toBe("task_status_not_success");
    expect((await post("/mj/submit/modal", { taskId: id, prompt: "more" }))[1]["code"]).toBe(1);
    await g.setOption("MjActionCheckSuccessEnabled", "false");
    expect((await post("/mj/submit/change", upscale))[1]["code"]).toBe(1);
    await g.setOption("MjActionCheckSuccessEnabled", "true");
  });

  test("a channel without accounts is taken out of service, when the operator wants that", async () => {
    replies.set("/a/", [200, '{"code":3,"description":"No available account instance"}']);
    const status = async () => g.app.deps.routing.channel(ids["a"] ?? 0)?.status;
    expect((await post("/mj/submit/imagine", { prompt: "x" }))[1]["code"]).toBe(3);
    expect(await status()).toBe(1);
    await g.setOption("AutomaticDisableChannelEnabled", "true");
    expect((await post("/mj/submit/imagine", { prompt: "x" }))[1]["code"]).toBe(3);
    expect(await status()).not.toBe(1);
    expect((await post("/mj/submit/imagine", { prompt: "x" }))[1]["code"]).toBe(1);
    expect(seen.at(-1)?.path).toStartWith("/b/");
    await g.setOption("AutomaticDisableChannelEnabled", "false");
    await setStatus("a", 1);
  });
});

describe("which channel is asked", () => {
  test("a follow-up goes to the channel of its origin with that channel's key, not to the preferred one", async () => {
    await setStatus("a", 2);
    const id = await imagine();
    await setStatus("a", 1);
    await finish(id);
    await post("/mj/submit/change", { taskId: id, action: "UPSCALE", index: 1 });
    expect(seen).toEqual([{ path: "/b/mj/submit/change", secret: "key-b" }]);
    await setStatus("b", 2);
    expect(await post("/mj/submit/change", { taskId: id, action: "UPSCALE", index: 1 })).toMatchObject([
      400,
      { description: "该任务所属渠道已被禁用" },
    ]);
    await setStatus("b", 1);
  });

  test("a drawing is tried at one channel only", async () => {
    await g.setOption("RetryTimes", "3");
    replies.set("/a/", [500, '{"code":1,"description":"broken","result":"x"}']);
    const before = await g.balance();
    expect((await post("/mj/submit/imagine", { prompt: "x" }))[0]).toBe(500);
    expect(seen.map(({ path }) => path)).toEqual(["/a/mj/submit/imagine"]);
    expect(await g.balance()).toEqual(before);
    await g.setOption("RetryTimes", "0");
  });

  test.each([
    [429, true],
    [500, true],
    [307, true],
    [401, true],
    [400, false],
    [408, false],
    [504, false],
    [524, false],
  ])("a song refused with %d is tried at the next channel: %p", async (status, isTried) => {
    await g.setOption("RetryTimes", "1");
    replies.set("/a/suno/", [status, '{"code":"no"}']);
    const before = await g.balance();
    const [answered] = await post("/suno/submit/music", {});
    expect([answered, seen.length]).toEqual(isTried ? [200, 2] : [status, 1]);
    expect(before.quota - (await g.balance()).quota).toBe(isTried ? 50_000 : 0);
    if (isTried) expect(seen[1]).toEqual({ path: "/b/suno/submit/MUSIC", secret: "Bearer key-b" });
    await g.setOption("RetryTimes", "0");
  });

  test("a continued song goes to its origin's channel with that channel's key", async () => {
    await setStatus("suno-a", 2);
    const [, { data }] = await post("/suno/submit/music", {});
    await setStatus("suno-a", 1);
    seen.length = 0;
    await post("/suno/submit/music", { task_id: data, continue_clip_id: "clip", continue_at: 12 });
    expect(seen).toEqual([{ path: "/b/suno/submit/MUSIC", secret: "Bearer key-b" }]);
    await setStatus("suno-b", 2);
    expect((await post("/suno/submit/music", { task_id: data, continue_clip_id: "clip" }))[1]).toMatchObject({
      code: "task_channel_disable",
    });
    await setStatus("suno-b", 1);
  });

  test.each(["mj-fast", "mj-relax", "mj-turbo"])(
    "the mode /%s stays here; another prefix goes along",
    async (mode) => {
      const [status, answer] = await post(`/${mode}/mj/submit/imagine`, { prompt: "x" });
      expect([status, seen.at(-1)?.path]).toEqual([200, "/a/mj/submit/imagine"]);
      const headers = { authorization: `Bearer ${g.key}` };
      const task = await fetch(`${g.app.url}/${mode}/mj/task/${String(answer["result"])}/fetch`, { headers });
      expect(task.status).toBe(200);
      await post("/own/mj/submit/imagine", { prompt: "x" });
      expect(seen.at(-1)?.path).toBe("/a/own/mj/submit/imagine");
    },
  );
});

describe("answers that are none", () => {
  test.each<[string, [number, string], string]>([
    ["an empty one", [200, " "], "empty_response_body"],
    ["no JSON", [200, "<html>"], "unmarshal_response_body_failed"],
    ["a list", [200, "[1]"], "unmarshal_response_body_failed"],
  ])("%s is an error and costs nothing", async (_, reply, description) => {
    replies.set("/a/mj/", reply);
    const before = await g.balance();
    expect(await post("/mj/submit/imagine", { prompt: "x" })).toMatchObject([400, { code: 5, description }]);
    expect(await g.balance()).toEqual(before);
  });

  test("an accepted code with another status than 200 is not charged, and the task has ended", async () => {
    replies.set("/a/mj/", [502, '{"code":1,"description":"odd","result":"odd-1"}']);
    const before = await g.balance();
    expect((await post("/mj/submit/imagine", { prompt: "x" }))[0]).toBe(502);
    expect(await g.balance()).toEqual(before);
    expect(await fetched("odd-1")).toMatchObject({ status: "FAILURE", progress: "100%" });
  });

  test.each<[string, [number, string], string]>([
    [
      "words of a transport",
      [200, '{"code":"x","message":"Post failed: dial tcp 10.0.0.1:80"}'],
      "请求上游地址失败",
    ],
    ["no JSON", [200, "<html>"], "unmarshal_response_body_failed"],
    ["a plain refusal", [200, '{"code":"x","message":"too long"}'], "too long"],
  ])("a song's answer with %s is told as %j", async (_, reply, message) => {
    replies.set("/a/suno/", reply as [number, string]);
    const before = await g.balance();
    const [status, answer] = await post("/suno/submit/music", {});
    expect([status, answer["message"]]).toEqual([500, message as unknown]);
    expect(await g.balance()).toEqual(before);
  });
});

describe("who is let in", () => {
  test("strangers get 401 in the shape of the first checks, before their body is looked at", async () => {
    for (const path of [
      "/mj/submit/imagine",
      "/mj/notify",
      "/mj/task/list-by-condition",
      "/suno/submit/music",
      "/suno/fetch",
    ]) {
      const [status, answer] = await post(path, "{broken", "sk-unknown");
      expect([path, status, typeof (answer["error"] as Json | undefined)?.["message"]]).toEqual([
        path,
        401,
        "string",
      ]);
    }
    expect(seen).toEqual([]);
  });

  test("the key may come as mj-api-secret, also behind the placeholder of its clients", async () => {
    const bare = { "content-type": "application/json", "mj-api-secret": g.key };
    for (const headers of [bare, { ...bare, authorization: "Bearer midjourney-proxy" }]) {
      const init = { method: "POST", headers, body: '{"prompt":"x"}' };
      expect((await fetch(`${g.app.url}/mj/submit/imagine`, init)).status).toBe(200);
    }
  });

  test("a key's model limits hold for what it submits, not for what it reads", async () => {
    const { key } = await g.app.createToken(g.user.id, {
      modelLimitsEnabled: true,
      modelLimits: "mj_imagine",
    });
    const [, answer] = await post("/mj/submit/imagine", { prompt: "x" }, key);
    const id = String(answer["result"]);
    expect((await post("/mj/submit/describe", { base64: "x" }, key))[0]).toBe(403);
    expect((await post("/suno/submit/music", {}, key))[0]).toBe(403);
    expect((await post("/mj/task/list-by-condition", { ids: [id] }, key))[0]).toBe(200);
    expect((await post("/suno/fetch", { ids: ["x"] }, key))[0]).toBe(200);
  });

  test("a key's address list holds for every route", async () => {
    const { key } = await g.app.createToken(g.user.id, { allowIps: "203.0.113.7" });
    for (const [path, body] of [
      ["/mj/submit/imagine", { prompt: "x" }],
      ["/mj/task/list-by-condition", { ids: [] }],
      ["/suno/submit/music", {}],
    ] as const)
      expect([path, (await post(path, body, key))[0]]).toEqual([path, 403]);
  });

  test("a model that no channel serves is told so with 404, one whose channels are off with 503", async () => {
    const before = await g.balance();
    expect((await post("/mj/submit/shorten", { prompt: "x" }))[0]).toBe(404);
    await g.app.createChannel({ baseUrl: g.upstream.url, type: 2, models: "mj_shorten", status: 2 });
    expect((await post("/mj/submit/shorten", { prompt: "x" }))[0]).toBe(503);
    expect(await g.balance()).toEqual(before);
  });
});
