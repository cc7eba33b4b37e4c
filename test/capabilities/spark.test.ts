// Spark's socket through the whole gateway: what a fetch would have and a socket must be given, the channel's proxy and
// the networks it may not enter; and that a client cannot choose another model than the one it pays for.
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { Role } from "../../src/shared/enums.ts";
import { PASSWORD, SOCKET_KEY, startSparkFake } from "../providers/adapters/fakes/spark.ts";
import type { SparkFake } from "../providers/adapters/fakes/spark.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { startTunnel } from "../support/tunnel.ts";

let app: TestApp;
let admin: TestUser;
let key = "";
let fake: SparkFake;

beforeAll(async () => {
  app = await startTestApp();
  fake = startSparkFake();
  admin = await app.createUser({ role: Role.admin, quota: 1_000_000_000 });
  ({ key } = await app.createToken(admin.id));
  await app.deps.options.set("SelfUseModeEnabled", "true");
});
afterAll(async () => {
  await app.close();
  fake.stop();
});
beforeEach(() => {
  fake.seen.length = 0;
  fake.posted.length = 0;
});

let count = 0;
/** Adds a channel over REST and asks it once. */
async function ask(fields: Record<string, unknown>, query = ""): Promise<{ status: number; text: string }> {
  const model = count++ % 2 === 0 ? "SparkDesk-v1.1" : "SparkDesk-v3.1";
  for (const { id } of await app.deps.db.orm.select().from(app.deps.db.t.channels))
    await app.call("DELETE", `/api/channel/${id}`, undefined, admin);
  const channel = {
    type: 18,
    name: "spark",
    key: SOCKET_KEY,
    base_url: fake.url,
    models: model,
    group: "default",
  };
  const added = await app.call<{ success: boolean }>(
    "POST",
    "/api/channel/",
    { ...channel, ...fields },
    admin,
  );
  expect(added.body.success).toBe(true);
  const response = await fetch(`${app.url}/v1/chat/completions${query}`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", "accept-language": "en" },
    body: JSON.stringify({ model, messages: [{ role: "user", content: "hi" }] }),
  });
  return { status: response.status, text: await response.text() };
}

test("the socket goes through the channel's proxy", async () => {
  const proxy = await startTunnel();
  const answer = await ask({ setting: JSON.stringify({ proxy: proxy.url }) });
  expect([answer.status, proxy.tunnels]).toEqual([200, [new URL(fake.url).host]]);
  proxy.stop();
});

test("a closed network is not entered, by socket or by HTTP", async () => {
  for (const channelKey of [SOCKET_KEY, PASSWORD]) {
    const answer = await ask({ base_url: "http://169.254.169.254", key: channelKey });
    expect([answer.status, answer.text]).toEqual([503, expect.stringContaining("channel_address_closed")]);
  }
});

test("a client's api-version chooses no other model than the one that is paid for", async () => {
  const answers = [await ask({}, "?api-version=v4.0"), await ask({}, "?api-version=v4.0")];
  expect(answers.map(({ status }) => status)).toEqual([200, 200]);
  expect(fake.seen.map(({ path }) => path).toSorted()).toEqual(["/v1.1/chat", "/v3.1/chat"]);
});

test("a single password is asked over HTTP, under the provider's name of the model", async () => {
  const answer = await ask({ key: PASSWORD });
  expect([answer.status, fake.seen]).toEqual([200, []]);
  expect(["lite", "generalv3"]).toContain(String(fake.posted[0]?.["model"]));
});
