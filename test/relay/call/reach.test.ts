// Channels of closed networks, over the wire: no kind of call reaches an upstream there, and an opened one is reached.
// The fakes stand on loopback, so every gateway here is started with the operator's networks closed.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { TestUser } from "../../support/app.ts";
import { errorOf, HI, MODEL, startGateway } from "../support.ts";
import type { Gateway } from "../support.ts";

let g: Gateway;
let admin: TestUser;
let tasksChannel: number;
const OPENED = JSON.stringify({ allow_networks: ["127.0.0.0/8"] });

/** Answers of the name server, in order; the last one stays. */
let names: string[] = ["127.0.0.1"];

beforeAll(async () => {
  g = await startGateway({
    env: { UPSTREAM_NETWORKS: "none" },
    lookup: () => Promise.resolve([names.length > 1 ? (names.shift() ?? "") : (names[0] ?? "")]),
  });
  await g.app.createUser({ role: 100 });
  admin = await g.app.createUser({ role: 10 });
  tasksChannel = await g.app.createChannel({ type: 2, baseUrl: g.upstream.url, models: "mj_imagine" });
  await g.app.createChannel({ type: 36, baseUrl: g.upstream.url, models: "suno_music" });
});
afterAll(() => g.close());
beforeEach(() => {
  g.upstream.reset();
  names = ["127.0.0.1"];
});

describe("a channel in a closed network", () => {
  test("serves no call, and who calls learns nothing of where it is", async () => {
    const response = await g.chat();
    expect(response.status).toBe(503);
    const error = await errorOf(response);
    expect(error.code).toBe("channel_address_closed");
    expect(error.message).not.toContain("127.0.0.1");
    expect(error.message).not.toContain("UPSTREAM_NETWORKS");
    expect((await g.post("/v1/embeddings", { model: MODEL, input: "x" })).status).toBe(503);
    expect(g.upstream.requests).toEqual([]);
    expect(await g.lastCharge()).toBeUndefined();
  });

  test("takes no drawing and no song, and gives back what was held", async () => {
    const before = await g.balance();
    expect((await g.post("/mj/submit/imagine", { prompt: "x" })).status).toBe(400);
    expect((await g.post("/suno/submit/music", {})).status).toBe(500);
    expect(g.upstream.requests).toEqual([]);
    expect(await g.balance()).toEqual(before);
  });

  test("fails its test, its balance and its model list; administrators read how to open it", async () => {
    for (const path of ["test", "update_balance", "fetch_models"]) {
      const { body } = await g.app.call("GET", `/api/channel/${path}/${g.channelId}`, undefined, admin);
      expect([path, body["success"], body["code"]]).toEqual([path, false, "channel_address_closed"]);
      expect(body["message"]).toContain("UPSTREAM_NETWORKS");
    }
    expect(g.upstream.requests).toEqual([]);
    expect(tasksChannel).toBeGreaterThan(0);
  });

  test("makes room for another channel that may be reached", async () => {
    await g.setOption("RetryTimes", "1");
    await g.app.createChannel({ baseUrl: g.upstream.url, models: MODEL, priority: -1, setting: OPENED });
    expect((await g.chat()).status).toBe(200);
    expect((await g.lastCharge())?.other["attempts"]).toMatchObject([
      { channel: g.channelId, code: "channel_address_closed" },
      { code: "ok" },
    ]);
    await g.setOption("RetryTimes", "0");
  });
});

test("a name that turns to a closed network between two calls is still connected to where it was judged", async () => {
  const { port } = new URL(g.upstream.url);
  const base = `http://provider.test:${port}`;
  const models = "rebound-model";
  await g.setOption("SelfUseModeEnabled", "true");
  await g.app.createChannel({ baseUrl: base, models, setting: OPENED });
  names = ["127.0.0.1", "10.0.0.1"];
  for (let i = 0; i < 3; i++) expect((await g.chat({ model: models, messages: HI })).status).toBe(200);
  expect(g.upstream.requests.map((request) => request.headers.host)).toEqual(
    Array.from({ length: 3 }, () => `provider.test:${port}`),
  );
  await g.setOption("SelfUseModeEnabled", "false");
});
