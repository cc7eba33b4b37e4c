// A site to attack: the built program with a mock provider behind it in all four dialects, people, keys and the books.
// Refuses the product's insides: whatever is done here somebody outside could do.
import { rmSync } from "node:fs";
import type { DialectName } from "../../src/protocol/canonical.ts";
import { openBooks } from "../support/books.ts";
import type { BookRow, Books } from "../support/books.ts";
import { promptOf, startMockUpstream, WORD } from "../support/mock-upstream.ts";
import type { CallPlan, MockUpstream } from "../support/mock-upstream.ts";
import { startOperator } from "../support/operator.ts";
import type { Operator } from "../support/operator.ts";
import { createTestDatabase } from "../support/postgres.ts";
import type { DatabaseKind } from "../support/postgres.ts";
import { startServerProcess } from "../support/server.ts";
import type { Place, ServerProcess } from "../support/server.ts";

/** Long runs: everything, not the sample that the test command takes. */
export const IS_LONG = Bun.env["WEIR_LONG"] === "1";

/** One model for each dialect; each costs one unit an input token and four an output token. */
export const MODELS: Readonly<Record<DialectName, string>> = {
  "openai-chat": "mock-chat",
  "openai-responses": "mock-responses",
  anthropic: "mock-claude",
  gemini: "mock-gemini",
};
export const DIALECTS = Object.keys(MODELS) as DialectName[];
const CHANNEL_TYPES: Readonly<Record<DialectName, number>> = {
  "openai-chat": 1,
  "openai-responses": 1,
  anthropic: 14,
  gemini: 24,
};
export const INPUT_PRICE = 1;
export const OUTPUT_PRICE = 4;

export interface Person {
  id: number;
  username: string;
  /** A console call as this person. */
  send: Operator["send"];
  cookie: string;
  /** A new unlimited key of theirs, with its `sk-`. */
  key(): Promise<string>;
}

export interface Site {
  server: ServerProcess;
  databaseUrl: string | undefined;
  root: Operator;
  upstream: MockUpstream;
  books: Books;
  /** Options as root sets them. */
  set(key: string, value: string): Promise<void>;
  person(quota: number): Promise<Person>;
  channel(fields: Record<string, unknown>): Promise<void>;
  /** The consume row of a request, as soon as it is in the books. */
  row(requestId: string): Promise<BookRow>;
  /** Looks until it is so, at most so long. */
  until<T>(look: () => Promise<T | undefined | false> | T | undefined | false, limitMs?: number): Promise<T>;
  /** A further process on the same PostgreSQL. */
  join(env?: Record<string, string>): Promise<ServerProcess>;
  remove(): Promise<void>;
}

export const PASSWORD = "correct horse";
let people = 0;

async function until<T>(
  look: () => Promise<T | undefined | false> | T | undefined | false,
  limitMs = 10_000,
): Promise<T> {
  const startedMs = performance.now();
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    if (performance.now() - startedMs > limitMs)
      throw new Error(`not so after ${limitMs} ms: ${String(look)}`);
    await Bun.sleep(10);
  }
}

/** Signs in; the cookies of the session, also the device's. */
export async function signIn(
  url: string,
  username: string,
  cookie = "",
): Promise<{ id: number; cookie: string; status: number }> {
  const answer = await fetch(`${url}/api/user/login`, {
    method: "POST",
    headers: { "content-type": "application/json", cookie },
    body: JSON.stringify({ username, password: PASSWORD }),
  });
  const told = (await answer.json()) as { data?: { id: number } };
  return {
    id: told.data?.id ?? 0,
    status: answer.status,
    cookie: answer.headers
      .getSetCookie()
      .map((each) => each.split(";")[0])
      .join("; "),
  };
}

/** Console calls with a session's cookies. */
export function sender(url: string, id: number, cookie: string): Operator["send"] {
  return async (method, path, body) => {
    const answer = await fetch(url + path, {
      method,
      headers: { "content-type": "application/json", cookie, "new-api-user": String(id) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const told = (await answer.json()) as { success?: boolean; message?: string; data?: unknown };
    if (told.success !== true) throw new Error(`${method} ${path}: ${answer.status} ${told.message}`);
    return told.data;
  };
}

export interface SiteOptions {
  kind?: DatabaseKind;
  /** A PostgreSQL of the test's own, in place of one of the run's. */
  databaseUrl?: string;
  env?: Record<string, string>;
  place?: Place;
}

export async function startSite(options: SiteOptions = {}): Promise<Site> {
  const database =
    options.databaseUrl === undefined ? await createTestDatabase(options.kind ?? "sqlite") : undefined;
  const databaseUrl = options.databaseUrl ?? database?.databaseUrl;
  const settings = {
    DATABASE_URL: databaseUrl ?? "",
    ENCRYPTION_KEY: "one key for all nodes",
    SESSION_SECRET: "one secret for all nodes",
    ...options.env,
  };
  const upstream = await startMockUpstream();
  const server = await startServerProcess(settings, options.place);
  const all = Object.values(MODELS);
  const base = { base_url: upstream.url, setting: JSON.stringify({ allow_networks: ["127.0.0.1"] }) };
  const root = await startOperator(server, {
    base_url: upstream.url,
    models: `${MODELS["openai-chat"]},${MODELS["openai-responses"]}`,
  });
  const set = async (key: string, value: string) =>
    void (await root.send("PUT", "/api/option/", { key, value }));
  const channel = async (fields: Record<string, unknown>) =>
    void (await root.send("POST", "/api/channel/", { name: "mock", key: "upstream", ...base, ...fields }));
  for (const dialect of ["anthropic", "gemini"] as const)
    await channel({ type: CHANNEL_TYPES[dialect], models: MODELS[dialect] });
  await set("ModelRatio", JSON.stringify(Object.fromEntries(all.map((model) => [model, INPUT_PRICE]))));
  await set(
    "CompletionRatio",
    JSON.stringify(Object.fromEntries(all.map((model) => [model, OUTPUT_PRICE / INPUT_PRICE]))),
  );
  const books = openBooks({ dataDir: server.dataDir, databaseUrl });
  const nodes: ServerProcess[] = [];
  return {
    server,
    databaseUrl,
    root,
    upstream,
    books,
    set,
    channel,
    until,
    async person(quota) {
      const username = `user${++people}`;
      const made = (await root.send("POST", "/api/user/", {
        username,
        password: PASSWORD,
        display_name: username,
      })) as { id: number };
      if (quota > 0) await root.send("PUT", "/api/user/", { id: made.id, quota });
      const { cookie } = await signIn(server.url, username);
      const send = sender(server.url, made.id, cookie);
      return {
        id: made.id,
        username,
        send,
        cookie,
        async key() {
          const token = (await send("POST", "/api/token/", { name: "key", unlimited_quota: true })) as {
            key: string;
          };
          return `sk-${token.key}`;
        },
      };
    },
    row: (requestId) =>
      until(async () => {
        // On the embedded database a question to the server enters what waits.
        if (databaseUrl === undefined) await root.send("GET", "/api/log/?p=1&page_size=1");
        return (await books.log(2)).find((row) => row.requestId === requestId);
      }),
    async join(env = {}) {
      const node = await startServerProcess({ ...settings, ...env });
      nodes.push(node);
      return node;
    },
    async remove() {
      await books.close();
      for (const node of nodes) await node.remove();
      await server.remove();
      if (options.place?.dataDir) rmSync(options.place.dataDir, { recursive: true, force: true });
      await database?.drop();
      upstream.stop();
    },
  };
}

/** What a client saw of its call. */
export interface Outcome {
  status: number;
  requestId: string;
  /** Words of the answer that arrived. */
  words: number;
  text: string;
  /** The answer came to its end: a terminal event, or the whole body. */
  isWhole: boolean;
  /** The connection broke, or the caller hung up. */
  isBroken: boolean;
  /** How it broke, in the words of the runtime. */
  failure?: string;
}

export interface CallOptions {
  dialect?: DialectName;
  stream?: boolean;
  /** Fields of the body beside model and prompt. */
  fields?: Record<string, unknown>;
  /** The client hangs up after so many words, or so many milliseconds. */
  leaveAfterWords?: number;
  leaveAfterMs?: number;
  /** … or once this has come: what a slow machine has not begun yet must not be left. */
  leaveOnce?: Promise<unknown>;
  /** Text before the plan. */
  before?: string;
  /** On a connection of its own, so that any worker may get it. */
  isAlone?: boolean;
  /** Told when the status line is there. */
  onHead?: (requestId: string) => void;
}

const TERMINAL: Readonly<Record<DialectName, RegExp>> = {
  "openai-chat": /data: \[DONE\]/,
  "openai-responses": /"type":"response\.(completed|incomplete)"/,
  anthropic: /"type":"message_stop"/,
  gemini: /"finishReason":"\w+"/,
};

function bodyOf(dialect: DialectName, prompt: string, options: CallOptions): Record<string, unknown> {
  const stream = options.stream === true ? { stream: true } : {};
  const messages = [{ role: "user", content: prompt }];
  switch (dialect) {
    case "openai-chat":
      return { model: MODELS[dialect], messages, ...stream, ...options.fields };
    case "openai-responses":
      return { model: MODELS[dialect], input: prompt, ...stream, ...options.fields };
    case "anthropic":
      return { model: MODELS[dialect], max_tokens: 8000, messages, ...stream, ...options.fields };
    case "gemini":
      return { contents: [{ role: "user", parts: [{ text: prompt }] }], ...options.fields };
  }
}

function pathOf(dialect: DialectName, stream: boolean): string {
  if (dialect === "openai-chat") return "/v1/chat/completions";
  if (dialect === "openai-responses") return "/v1/responses";
  if (dialect === "anthropic") return "/v1/messages";
  return `/v1beta/models/${MODELS.gemini}:${stream ? "streamGenerateContent?alt=sse" : "generateContent"}`;
}

/** One call whose upstream does what the plan says. Never throws: what went wrong is in the outcome. */
export async function callPlan(
  url: string,
  key: string,
  plan: CallPlan,
  options: CallOptions = {},
): Promise<Outcome> {
  const dialect = options.dialect ?? "openai-chat";
  const stream = options.stream === true;
  const leaving = new AbortController();
  const timer =
    options.leaveAfterMs === undefined ? undefined : setTimeout(() => leaving.abort(), options.leaveAfterMs);
  void options.leaveOnce?.then(() => leaving.abort());
  const outcome: Outcome = { status: 0, requestId: "", words: 0, text: "", isWhole: false, isBroken: false };
  try {
    const answer = await fetch(url + pathOf(dialect, stream), {
      method: "POST",
      headers: {
        authorization: `Bearer ${key}`,
        "content-type": "application/json",
        ...(options.isAlone ? { connection: "close" } : {}),
      },
      keepalive: options.isAlone !== true,
      body: JSON.stringify(bodyOf(dialect, `${options.before ?? ""}${promptOf(plan)}`, options)),
      signal: leaving.signal,
    });
    outcome.status = answer.status;
    outcome.requestId = answer.headers.get("X-Oneapi-Request-Id") ?? "";
    options.onHead?.(outcome.requestId);
    const decoder = new TextDecoder();
    for await (const part of answer.body as ReadableStream<Uint8Array>) {
      outcome.text += decoder.decode(part, { stream: true });
      if (
        options.leaveAfterWords !== undefined &&
        outcome.text.split(WORD).length > options.leaveAfterWords
      ) {
        leaving.abort();
        break;
      }
      // What the socket does after the terminal event no longer matters to the client.
      if (stream && answer.status === 200 && TERMINAL[dialect].test(outcome.text)) break;
    }
    const isLeft = leaving.signal.aborted;
    outcome.isBroken = isLeft;
    outcome.isWhole =
      !isLeft && (stream && answer.status === 200 ? TERMINAL[dialect].test(outcome.text) : true);
  } catch (error) {
    outcome.isBroken = true;
    outcome.failure = String(error);
  } finally {
    clearTimeout(timer);
  }
  outcome.words = outcome.text.split(WORD).length - 1;
  return outcome;
}

/** Calls with long log rows, so that few of them fill several files of the journal; ids of the answered ones. */
export async function longCalls(site: Site, key: string, count: number): Promise<string[]> {
  const fields = Object.fromEntries(
    Array.from({ length: 45 }, (_, index) => [`unknown_${"x".repeat(70)}_${index}`, 1]),
  );
  const ids: string[] = [];
  let next = 0;
  const lane = async () => {
    for (let number = next++; number < count; number = next++) {
      const answer = await fetch(`${site.server.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify({
          model: MODELS.anthropic,
          messages: [{ role: "user", content: promptOf({ id: "long", words: 3 }) }],
          ...fields,
        }),
      });
      await answer.text();
      if (answer.status === 200) ids.push(answer.headers.get("X-Oneapi-Request-Id") ?? "");
    }
  };
  await Promise.all(Array.from({ length: 16 }, lane));
  return ids;
}

/** From here on the peak of a process's memory is told anew. */
export async function forgetPeak(pid: number): Promise<void> {
  await Bun.write(`/proc/${pid}/clear_refs`, "5");
}

/** Resident memory of a process in MiB, now and at its peak. */
export async function memoryOf(pid: number): Promise<{ now: number; peak: number }> {
  const text = await Bun.file(`/proc/${pid}/status`).text();
  const figure = (name: string) => Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(text)?.[1] ?? 0) / 1024;
  return { now: figure("VmRSS"), peak: figure("VmHWM") };
}
