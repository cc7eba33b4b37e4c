// A channel's max_input_tokens: a longer prompt goes to the others that serve the model, counted and not guessed; what none
// of them takes is refused in the words of the caller's protocol, and costs nothing.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { DATABASE_KINDS } from "../../support/postgres.ts";
import { MODEL, startGateway } from "../support.ts";
import type { Gateway } from "../support.ts";

/** One word is one token in every vocabulary. */
const words = (count: number) => Array<string>(count).fill("tip").join(" ");

describe.each(DATABASE_KINDS)("on %s", (database) => {
  let g: Gateway;
  let wide: number;
  beforeAll(async () => {
    g = await startGateway({ database, channel: { key: "narrow", maxInputTokens: 60, priority: 10 } });
    wide = await g.app.createChannel({ baseUrl: g.upstream.url, models: MODEL, key: "wide" });
  });
  afterAll(() => g.close());
  beforeEach(() => g.upstream.reset());

  const setColumns = async (id: number, changes: { maxInputTokens?: number; status?: number }) => {
    const { channels } = g.app.deps.db.t;
    await g.app.deps.db.orm.update(channels).set(changes).where(eq(channels.id, id)).returning();
    await g.app.deps.routing.reload();
  };
  const keysAsked = () =>
    g.upstream.requests.map(({ headers }) => headers["authorization"]?.replace("Bearer ", ""));
  const say = (content: string) => g.chat({ messages: [{ role: "user", content }] });

  test("what fits goes by priority, what is longer to the channel that takes it", async () => {
    expect((await say("hi")).status).toBe(200);
    expect((await say(words(200))).status).toBe(200);
    expect(keysAsked()).toEqual(["narrow", "wide"]);
  });

  test("the prompt is counted: as many bytes as the limit allows tokens are no reason", async () => {
    // 40 tokens in 160 bytes.
    expect((await say(words(40))).status).toBe(200);
    expect(keysAsked()).toEqual(["narrow"]);
  });

  test("0 means no limit, and a change is in force with the next call", async () => {
    await setColumns(g.channelId, { maxInputTokens: 0 });
    expect((await say(words(200))).status).toBe(200);
    expect(keysAsked()).toEqual(["narrow"]);
    await setColumns(g.channelId, { maxInputTokens: 60 });
    expect((await say(words(200))).status).toBe(200);
    expect(keysAsked()).toEqual(["narrow", "wide"]);
  });

  test("where none takes it the client reads so in its own protocol, nobody is asked and nothing is charged", async () => {
    await setColumns(wide, { maxInputTokens: 100 });
    const before = await g.balance();
    const prompt = words(200);
    const chat = await say(prompt);
    expect([chat.status, chat.headers.get("x-weir-error-code")]).toEqual([400, "context_length"]);
    const openai = (await chat.json()) as { error: { code: string; message: string } };
    expect(openai.error.code).toBe("context_length_exceeded");
    expect(openai.error.message).toMatch(/maximum context length is 100 tokens.*resulted in 2\d\d tokens/);
    const messages = await g.post("/v1/messages", {
      model: MODEL,
      max_tokens: 10,
      messages: [{ role: "user", content: prompt }],
    });
    expect(messages.status).toBe(400);
    expect(await messages.json()).toMatchObject({
      type: "error",
      error: {
        type: "invalid_request_error",
        message: expect.stringMatching(/prompt is too long: 2\d\d tokens > 100 maximum/),
      },
    });
    const google = await g.post(`/v1beta/models/${MODEL}:generateContent`, {
      contents: [{ role: "user", parts: [{ text: prompt }] }],
    });
    expect(google.status).toBe(400);
    expect(JSON.stringify(await google.json())).toMatch(
      /input token count \(2\d\d\) exceeds the maximum number of tokens allowed \(100\)/,
    );
    expect(g.upstream.requests).toEqual([]);
    expect(await g.balance()).toEqual(before);
    expect((await g.app.deps.accounts.user(g.user.id))?.reserved).toBe(0);
    await setColumns(wide, { maxInputTokens: 0 });
  });

  test("a key that names a channel is held to that channel's limit", async () => {
    const admin = await g.app.createUser({ role: 10, quota: 1_000_000 });
    const { key } = await g.app.createToken(admin.id);
    const named = (id: number) =>
      g.chat({ messages: [{ role: "user", content: words(200) }] }, { authorization: `Bearer ${key}-${id}` });
    expect((await named(g.channelId)).status).toBe(400);
    expect((await named(wide)).status).toBe(200);
    expect(keysAsked()).toEqual(["wide"]);
  });

  test("a second attempt does not go where the prompt does not fit either", async () => {
    await g.setOption("RetryTimes", "3");
    const failing = { status: 500, headers: { "content-type": "application/json" }, steps: ["{}"] };
    g.upstream.script(failing, failing);
    expect((await say(words(200))).status).toBeGreaterThanOrEqual(400);
    expect(keysAsked()).toEqual(["wide"]);
    await g.setOption("RetryTimes", "0");
  });
});
