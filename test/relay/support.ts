// A gateway in front of the fake upstream: one user, one key, one channel, and the books to look into.
// Refuses nothing; every test file starts its own.
import { eq } from "drizzle-orm";
import OpenAI from "openai";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestAppOptions, TestUser } from "../support/app.ts";
import { startFakeUpstream } from "../support/fake-upstream.ts";
import type { FakeUpstream } from "../support/fake-upstream.ts";
import { nextLook } from "../support/turns.ts";

export const MODEL = "gpt-4o-mini";
export const HI = [{ role: "user" as const, content: "hi" }];

export interface LogLine {
  type: number;
  userId: number;
  tokenId: number;
  quota: number;
  promptTokens: number;
  completionTokens: number;
  content: string;
  modelName: string;
  channelId: number;
  isStream: boolean;
  useTimeMs: number;
  tokenName: string;
  group: string;
  other: Record<string, unknown>;
}

export interface Gateway {
  app: TestApp;
  upstream: FakeUpstream;
  user: TestUser;
  key: string;
  tokenId: number;
  channelId: number;
  client: OpenAI;
  /** A raw call with the key. */
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Response>;
  chat(fields?: Record<string, unknown>, headers?: Record<string, string>): Promise<Response>;
  setOption(key: string, value: string): Promise<void>;
  /** Rows of the log in order, after everything queued was written; forgets nothing. */
  logs(): Promise<LogLine[]>;
  /** The newest consume row. */
  lastCharge(): Promise<LogLine | undefined>;
  /** Makes a call, and gives the consume row that it left: as soon as it is in the books, and no other's. */
  charged(call: () => Promise<unknown>): Promise<LogLine>;
  balance(userId?: number): Promise<{ quota: number; used: number; requests: number }>;
  close(): Promise<void>;
}

export async function startGateway(
  options: TestAppOptions & { quota?: number; channel?: Record<string, unknown> } = {},
): Promise<Gateway> {
  const upstream = await startFakeUpstream();
  const app = await startTestApp(options);
  const channelId = await app.createChannel({ baseUrl: upstream.url, models: MODEL, ...options.channel });
  const user = await app.createUser({ quota: options.quota ?? 10_000_000 });
  const token = await app.createToken(user.id);
  const { deps } = app;

  const post: Gateway["post"] = (path, body, headers = {}) =>
    fetch(app.url + path, {
      method: "POST",
      headers: { authorization: `Bearer ${token.key}`, "content-type": "application/json", ...headers },
      body: typeof body === "string" ? body : JSON.stringify(body),
    });

  async function logs(): Promise<LogLine[]> {
    await deps.ledger.flush();
    const rows = await deps.db.orm.select().from(deps.db.t.logs).orderBy(deps.db.t.logs.id);
    return rows.map((row) => ({
      ...row,
      other: (row.other === "" ? {} : JSON.parse(row.other)) as Record<string, unknown>,
    }));
  }

  const charges = async (): Promise<LogLine[]> => (await logs()).filter((row) => row.type === 2);

  return {
    app,
    upstream,
    user,
    key: token.key,
    tokenId: token.id,
    channelId,
    client: new OpenAI({ apiKey: token.key, baseURL: `${app.url}/v1`, maxRetries: 0 }),
    post,
    chat: (fields = {}, headers) =>
      post("/v1/chat/completions", { model: MODEL, messages: HI, ...fields }, headers),
    setOption: (key, value) => deps.options.set(key, value),
    logs,
    lastCharge: async () => (await charges()).at(-1),
    async charged(call) {
      const before = (await charges()).length;
      await call();
      const [charge, ...others] = await until(async () => {
        const left = (await charges()).slice(before);
        return left.length > 0 ? left : undefined;
      });
      if (others.length > 0) throw new Error(`one call left ${others.length + 1} charges`);
      return charge as LogLine;
    },
    async balance(userId = user.id) {
      await deps.ledger.flush();
      const { users } = deps.db.t;
      const [row] = await deps.db.orm.select().from(users).where(eq(users.id, userId));
      return { quota: row?.quota ?? 0, used: row?.usedQuota ?? 0, requests: row?.requestCount ?? 0 };
    },
    async close() {
      await app.close();
      upstream.stop();
    },
  };
}

export interface WireError {
  error: { message: string; type: string; param?: string; code?: string | number | null };
}

export async function errorOf(response: Response): Promise<WireError["error"]> {
  return ((await response.json()) as WireError).error;
}

/** Content of all data lines that are JSON, in order. */
export function dataLines(text: string): Record<string, unknown>[] {
  return text
    .split("\n")
    .filter((line) => line.startsWith("data: {"))
    .map((line) => JSON.parse(line.slice(6)) as Record<string, unknown>);
}

/** Looks again and again until something is there. */
export async function until<T>(look: () => Promise<T | undefined>): Promise<T> {
  for (let looks = 0; ; looks++) {
    const found = await look();
    if (found !== undefined) return found;
    await nextLook(looks);
  }
}
