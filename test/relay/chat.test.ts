// The first relayed call: the official client against a real server and a fake upstream.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { startTestApp } from "../support/app.ts";
import type { TestApp } from "../support/app.ts";
import { startFakeUpstream } from "../support/fake-upstream.ts";
import type { FakeUpstream } from "../support/fake-upstream.ts";

let app: TestApp;
let upstream: FakeUpstream;
let key: string;
let userId: number;

beforeAll(async () => {
  upstream = await startFakeUpstream();
  app = await startTestApp();
  await app.createChannel({ baseUrl: upstream.url, models: "gpt-4o-mini" });
  const user = await app.createUser({ quota: 1_000_000 });
  userId = user.id;
  key = (await app.createToken(user.id)).key;
});
afterAll(async () => {
  await app.close();
  upstream.stop();
});

test("hello", async () => {
  const client = new OpenAI({ apiKey: key, baseURL: `${app.url}/v1`, maxRetries: 0 });
  const answer = await client.chat.completions.create({ model: "gpt-4o-mini", messages: [{ role: "user", content: "hi" }] });
  expect(answer.choices[0]?.message.content).toBe("Hello there!");
  console.log(upstream.requests[0]?.headers, upstream.requests[0]?.body.toString());
  const rows = await app.deps.db.orm.select().from(app.deps.db.t.logs);
  console.log(rows);
  const stream = await client.chat.completions.create({ model: "gpt-4o-mini", stream: true, messages: [{ role: "user", content: "hi" }] });
  let text = "";
  for await (const chunk of stream) { text += chunk.choices[0]?.delta.content ?? ""; if (chunk.usage) console.log("USAGE", chunk) }
  expect(text).toBe("Hello there!");
  console.log(await app.deps.db.orm.select().from(app.deps.db.t.logs));
  void userId;
});
