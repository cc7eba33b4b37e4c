// The operator's worker: webhooks, media in requests and pictures of drawings leave by it, so that their hosts never learn
// this server's address; what lies inside goes directly, and what it must not be asked for is refused before it hears of it.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { DRAWINGS } from "../../src/core/tasks/families.ts";
import { addTask } from "../../src/core/tasks/store.ts";
import { startFakeWorker } from "../support/fake-worker.ts";
import type { FakeWorker } from "../support/fake-worker.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";
import { startGateway } from "./support.ts";
import type { Gateway } from "./support.ts";

const KEY = "worker-key";
const PNG = Buffer.from("89504e470d0a1a0a0000", "hex");
const PICTURE = "https://pictures.example/cat.png";

const NAMES: Record<string, string[]> = { "inside.example": ["127.0.0.1"] };
/** Names of strangers: whoever looks one up here has not left it to the worker. */
const lookedUp: string[] = [];
const lookup = (name: string) => {
  lookedUp.push(name);
  return NAMES[name] === undefined ? Promise.reject(new Error("ENOTFOUND")) : Promise.resolve(NAMES[name]);
};

interface Told {
  success: boolean;
  code?: string;
  message: string;
}

describe.each(DATABASE_KINDS)("on %s", (database) => {
  let g: Gateway;
  let worker: FakeWorker;
  beforeAll(async () => {
    worker = startFakeWorker(KEY);
    // Type 24 takes pictures inline only.
    g = await startGateway({ database, lookup, channel: { type: 24, models: "gemini-2.0-flash" } });
    await g.setOption("WorkerUrl", `${worker.url}/`);
    await g.setOption("WorkerValidKey", KEY);
  });
  afterAll(async () => {
    await worker.stop();
    await g.close();
  });
  beforeEach(async () => {
    worker.asked.length = 0;
    lookedUp.length = 0;
    worker.answers.clear();
    g.upstream.reset();
    await g.setOption("WorkerAllowHttpImageRequestEnabled", "false");
  });

  const hook = (url: string, role = 1) =>
    g.app
      .createUser({ role })
      .then((who) =>
        g.app.call<Told>(
          "POST",
          "/api/user/setting/test",
          { notify_type: "webhook", quota_warning_threshold: 5, webhook_url: url, webhook_secret: "shared" },
          who,
        ),
      );

  /** A picture's address in a chat, to a provider that only takes what stands in the request. */
  const look = (url: string) =>
    g.post("/v1/chat/completions", {
      model: "gemini-2.0-flash",
      messages: [{ role: "user", content: [{ type: "image_url", image_url: { url } }] }],
    });

  test("a webhook goes by the worker, signed, and its answer counts", async () => {
    worker.answers.set("https://hook.example/in", () => new Response("taken"));
    expect((await hook("https://hook.example/in")).body.success).toBe(true);
    const [sent] = worker.asked;
    expect(sent).toMatchObject({ url: "https://hook.example/in", key: KEY, method: "POST" });
    // The receiver checks the text that the worker writes of this value.
    const text = JSON.stringify(sent?.body);
    expect(sent?.body).toMatchObject({ type: expect.any(String), title: expect.any(String) });
    expect(sent?.headers).toEqual({
      "Content-Type": "application/json",
      "X-Webhook-Signature": createHmac("sha256", "shared").update(text).digest("hex"),
      Authorization: "Bearer shared",
    });
    expect(lookedUp).toEqual([]);
    worker.answers.set("https://hook.example/in", () => new Response("no", { status: 500 }));
    expect((await hook("https://hook.example/in")).body).toMatchObject({
      success: false,
      code: "webhook_answered",
    });
  });

  test("a picture in a request comes by the worker, and what is no picture is refused", async () => {
    worker.answers.set(PICTURE, () => new Response(PNG));
    await look(PICTURE);
    expect(worker.asked).toEqual([{ url: PICTURE, key: KEY }]);
    expect(lookedUp).toEqual([]);
    const [request] = g.upstream.requests;
    expect(Buffer.from(request?.body ?? "").toString()).toContain(PNG.toString("base64"));
    worker.answers.set(PICTURE, () => new Response("<p>", { headers: { "content-type": "text/html" } }));
    expect((await look(PICTURE)).status).toBe(400);
  });

  test("a drawing's picture comes by the worker", async () => {
    const drawing = {
      userId: g.user.id,
      action: "IMAGINE",
      modelName: "mj_imagine",
      channelId: g.channelId,
      submitTimeMs: 1_900_000_000_000,
    };
    await addTask(g.app.deps, DRAWINGS, { ...drawing, mjId: "drawn", imageUrl: PICTURE });
    worker.answers.set(PICTURE, () => new Response(PNG, { headers: { "content-type": "image/png" } }));
    const shown = await fetch(`${g.app.url}/mj/image/drawn`);
    expect([shown.status, shown.headers.get("content-type")]).toEqual([200, "image/png"]);
    expect(Buffer.from(await shown.arrayBuffer())).toEqual(PNG);
    expect(worker.asked).toEqual([{ url: PICTURE, key: KEY }]);
  });

  test.each([
    ["https://127.0.0.1/x", "address_refused"],
    ["https://10.1.2.3/x", "address_refused"],
    ["https://0x7f.1/x", "address_refused"],
    ["https://[::1]/x", "address_refused"],
    ["https://[::ffff:10.0.0.1]/x", "address_refused"],
    ["https://169.254.169.254/latest", "address_refused"],
    ["https://localhost/x", "address_refused"],
    ["https://me.localhost./x", "address_refused"],
    ["https://user:pass@pictures.example/x", "address_refused"],
    ["http://pictures.example/x", "worker_https_only"],
  ])("%s is not asked for", async (url, code) => {
    const answer = await look(url);
    expect([answer.status, answer.headers.get("x-weir-error-code")]).toEqual([400, code]);
    expect(worker.asked).toEqual([]);
    expect(g.upstream.requests).toEqual([]);
  });

  test("plain http passes where the operator says so, and private addresses still do not", async () => {
    await g.setOption("WorkerAllowHttpImageRequestEnabled", "true");
    const url = "http://pictures.example/x.png";
    worker.answers.set(url, () => new Response(PNG));
    await look(url);
    expect(worker.asked).toEqual([{ url, key: KEY }]);
    expect((await look("http://192.168.1.1/x.png")).status).toBe(400);
    expect(worker.asked).toHaveLength(1);
  });

  test("an administrator's receiver inside is called directly: a worker elsewhere could not", async () => {
    const received: string[] = [];
    const receiver = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch(request) {
        received.push(request.headers.get("authorization") ?? "");
        return new Response("");
      },
    });
    try {
      for (const host of ["127.0.0.1", "inside.example"])
        expect((await hook(`http://${host}:${receiver.port}/in`, 10)).body.success).toBe(true);
      // And the secret itself goes to workers only.
      expect([received, worker.asked]).toEqual([["", ""], []]);
    } finally {
      await receiver.stop(true);
    }
  });

  test("a worker that refuses is told apart from a receiver that does, and says nothing to the user", async () => {
    await g.setOption("WorkerValidKey", "another");
    try {
      const { body } = await hook("https://hook.example/in");
      expect(body).toMatchObject({ success: false, code: "address_unreachable" });
      expect(JSON.stringify(body)).not.toContain("Unauthorized");
    } finally {
      await g.setOption("WorkerValidKey", KEY);
    }
  });

  test("its key crosses no foreign network in clear", async () => {
    await g.setOption("WorkerUrl", "http://worker.example");
    try {
      expect((await hook("https://hook.example/in")).body.code).toBe("worker_insecure");
    } finally {
      await g.setOption("WorkerUrl", worker.url);
    }
  });

  test("a list of models, which a channel is made from, never goes by it", async () => {
    const root = await g.app.createUser({ role: 100 });
    const body = { base_url: g.upstream.url, type: 1, key: "k" };
    await g.app.call("POST", "/api/channel/fetch_models", body, root);
    expect(worker.asked).toEqual([]);
  });

  test("without a worker everything goes directly", async () => {
    await g.setOption("WorkerUrl", "");
    try {
      expect((await hook("https://hook.example/in")).body.code).toBe("address_unreachable");
      expect(lookedUp).toEqual(["hook.example"]);
      expect(worker.asked).toEqual([]);
    } finally {
      await g.setOption("WorkerUrl", worker.url);
    }
  });
});
