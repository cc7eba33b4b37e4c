// Who may call is decided anew when a body was slow: what was taken from its sender meanwhile serves nothing, on every route with a body.
// Refuses to wait for real seconds: the steady clock is in the test's hands, and the body ends when the test says so.
import { afterAll, beforeAll, beforeEach, describe, expect, spyOn, test } from "bun:test";
import { eq } from "drizzle-orm";
import type { LedgerAccounts } from "../../../src/core/deps.ts";
import { testClock } from "../../support/clock.ts";
import { connectRaw } from "../../support/raw-client.ts";
import type { TestUser } from "../../support/app.ts";
import { HI, MODEL, startGateway, until } from "../support.ts";
import type { Gateway } from "../support.ts";

const SLOW_MS = 1001;
/** An account that was not used for so many rounds is asked about no more. */
const ROUNDS_TO_REST = 60;
const clock = testClock();
let g: Gateway;
let root: TestUser;

beforeAll(async () => {
  g = await startGateway({ database: "postgres", clock });
  await g.setOption("SelfUseModeEnabled", "true");
  await g.app.createChannel({ baseUrl: g.upstream.url, type: 2, models: "mj_imagine" });
  await g.app.createChannel({ baseUrl: g.upstream.url, type: 36, models: "suno_music" });
  await g.app.createChannel({ baseUrl: g.upstream.url, models: "whisper-1" });
  root = await g.app.createUser({ role: 100 });
});
afterAll(() => g.close());
beforeEach(() => g.upstream.reset());

const chat = { model: MODEL, messages: HI, max_tokens: 5 };
const form = ['--b\r\ncontent-disposition: form-data; name="model"', "", "whisper-1", "--b--", ""].join(
  "\r\n",
);

const OPENAI = /"error":\{"message"/;
const ANTHROPIC = /"type":"error"/;

/** Path, body, how a refusal looks, and the body's type, of what admits by a key and receives a body then. */
const ROUTES: [path: string, body: string, told: RegExp, type?: string][] = [
  ["/v1/chat/completions", JSON.stringify(chat), OPENAI],
  // Larger bodies are read in another way.
  ["/v1/chat/completions", JSON.stringify({ ...chat, user: "x".repeat(70_000) }), OPENAI],
  ["/v1/messages", JSON.stringify(chat), ANTHROPIC],
  ["/v1/messages/count_tokens", JSON.stringify(chat), ANTHROPIC],
  [
    `/v1beta/models/${MODEL}:generateContent`,
    '{"contents":[{"parts":[{"text":"hi"}]}]}',
    /"status":"(UNAUTHENTICATED|PERMISSION_DENIED)"/,
  ],
  ["/v1/audio/transcriptions", form, OPENAI, "multipart/form-data; boundary=b"],
  ["/v1/quote", JSON.stringify({ path: "/v1/chat/completions", body: chat }), OPENAI],
  ["/mj/submit/imagine", '{"prompt":"x"}', OPENAI],
  ["/suno/submit/music", '{"prompt":"x"}', OPENAI],
];

interface Slow {
  path: string;
  body: string;
  type?: string;
  headers: Record<string, string>;
  /** What happens between the body's first half and its last. */
  meanwhile: () => Promise<unknown>;
  /** By so much the body's last half comes later by the steady clock. */
  lateMs?: number;
}

async function slowly(slow: Slow) {
  const { path, body, type = "application/json", headers, meanwhile, lateMs = SLOW_MS } = slow;
  const connection = await connectRaw(g.app.url, "127.0.0.1");
  const lines = Object.entries({
    host: new URL(g.app.url).host,
    connection: "close",
    "content-type": type,
    "content-length": String(body.length),
    ...headers,
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  const half = body.length >> 1;
  connection.write(`POST ${path} HTTP/1.1\r\n${lines.join("")}\r\n${body.slice(0, half)}`);
  await meanwhile();
  clock.advance(lateMs);
  connection.write(body.slice(half));
  const status = await connection.status();
  await connection.closed;
  return { status, text: connection.text() };
}

/** Those of the application are the ledger's. */
const accounts = () => g.app.deps.accounts as LedgerAccounts;

async function caller() {
  const user = await g.app.createUser({ quota: 1_000_000 });
  const { id, key } = await g.app.createToken(user.id);
  /** Memory has the key as soon as its call is admitted. */
  const admitted = () => until(async () => accounts().cachedToken(id));
  return { user, id, admitted, headers: { authorization: `Bearer ${key}` } };
}

async function change(method: string, path: string, body: unknown, as: TestUser): Promise<void> {
  expect((await g.app.call(method, path, body, as)).body).toMatchObject({ success: true });
}

const disable = (user: TestUser) =>
  change("POST", "/api/user/manage", { id: user.id, action: "disable" }, root);

async function untouched(user: TestUser): Promise<void> {
  expect(g.upstream.requests).toHaveLength(0);
  expect(await g.balance(user.id)).toMatchObject({ quota: 1_000_000, requests: 0 });
  expect((await g.logs()).filter(({ userId, type }) => userId === user.id && type === 2)).toEqual([]);
}

describe.each(ROUTES)("%s", (path, body, told, type) => {
  test.each([
    ["a key is deleted", 401],
    ["its user is disabled", 403],
  ] as const)("%s while the body comes", async (what, status) => {
    const { user, id, admitted, headers } = await caller();
    const meanwhile = async () => {
      await admitted();
      await (status === 401 ? change("DELETE", `/api/token/${id}`, undefined, user) : disable(user));
    };
    const answer = await slowly({ path, body, ...(type ? { type } : {}), headers, meanwhile });
    expect([what, answer.status]).toEqual([what, status]);
    expect(answer.text).toMatch(told);
    await untouched(user);
  });
});

test("a session that ends, as all of a disabled user's do, plays no more", async () => {
  const body = JSON.stringify({ ...chat, group: "default" });
  for (const taken of [(user: TestUser) => g.app.deps.sessions.endAll(user.id, "test"), disable]) {
    const user = await g.app.createUser({ quota: 1_000_000 });
    const meanwhile = async () => {
      await until(async () => g.app.deps.accounts.cachedUser(user.id));
      await taken(user);
    };
    const answer = await slowly({ path: "/pg/chat/completions", body, headers: user.headers, meanwhile });
    expect(answer.status).toBe(401);
    await untouched(user);
  }
});

test("what another node spent while the account rested here is spent", async () => {
  const { user, admitted, headers } = await caller();
  const { db } = g.app.deps;
  const { users } = db.t;
  const meanwhile = async () => {
    await admitted();
    for (let rounds = 0; rounds < ROUNDS_TO_REST; rounds++) {
      await accounts().refresh();
      // One of the node's own may have been under way, and then this was none: it is over soon.
      await db.ping();
    }
    await db.orm.update(users).set({ quota: 0 }).where(eq(users.id, user.id));
  };
  const body = JSON.stringify(chat);
  const { status, text } = await slowly({ path: "/v1/chat/completions", body, headers, meanwhile });
  expect([status, text]).toEqual([403, expect.stringContaining("insufficient_user_quota")]);
  expect(g.upstream.requests).toHaveLength(0);
});

test("a slow body is served where nothing was taken, and counts once to the request rate", async () => {
  await g.setOption("ModelRequestRateLimitEnabled", "true");
  await g.setOption("ModelRequestRateLimitCount", "1");
  const { admitted, headers } = await caller();
  const body = JSON.stringify(chat);
  const looked = spyOn(accounts(), "tokenByKey");
  const answer = await slowly({ path: "/v1/chat/completions", body, headers, meanwhile: admitted });
  expect(answer.status).toBe(200);
  expect(g.upstream.requests).toHaveLength(1);
  // Judged when it came, and when its body was there.
  expect(looked).toHaveBeenCalledTimes(2);
  looked.mockRestore();
});

test("a session that goes on plays after a slow body too, and is looked for once more", async () => {
  await g.setOption("ModelRequestRateLimitEnabled", "false");
  const { headers } = await g.app.createUser({ quota: 1_000_000 });
  const body = JSON.stringify({ ...chat, group: "default" });
  const looked = spyOn(g.app.deps.sessions, "find");
  const looks: number[] = [];
  // The second time memory has the session: once it was looked for, the body is being read.
  for (const lateMs of [0, SLOW_MS]) {
    looked.mockClear();
    const meanwhile = () => until(async () => looked.mock.calls.length || undefined);
    const { status } = await slowly({ path: "/pg/chat/completions", body, headers, meanwhile, lateMs });
    expect(status).toBe(200);
    looks.push(looked.mock.calls.length);
  }
  looked.mockRestore();
  const [quick = 0, slow] = looks;
  expect(slow).toBe(quick + 1);
  expect(g.upstream.requests).toHaveLength(2);
});
