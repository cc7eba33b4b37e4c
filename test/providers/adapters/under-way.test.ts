// What is under way at a provider is paid for: questions after it that fail are repeated, and begin nothing anew.
// The pause between two questions is the test's own.
import { expect, test } from "bun:test";
import type { Adapter } from "../../../src/providers/adapter.ts";
import { createAli } from "../../../src/providers/adapters/ali.ts";
import { createCoze } from "../../../src/providers/adapters/coze.ts";
import { createReplicate } from "../../../src/providers/adapters/replicate.ts";
import type { Wait } from "../../../src/providers/wait.ts";
import { Failure } from "../../../src/shared/failures.ts";
import { adapterCall, failureOf, HI } from "./support.ts";
import type { CallOptions } from "./support.ts";

interface Provider {
  name: string;
  make: (wait: Wait) => Adapter;
  options: Omit<CallOptions, "baseUrl" | "key">;
  begun: unknown;
  done: unknown;
  /** Behind the end of what was asked for. */
  last?: unknown;
}

const picture = { operation: "image-generations", body: { prompt: "a square" } } as const;
const chat = { id: "chat-1", conversation_id: "conv-1" };
const PROVIDERS: readonly Provider[] = [
  {
    name: "ali",
    make: createAli,
    options: { type: 17, model: "wanx-v1", ...picture },
    begun: { output: { task_id: "t", task_status: "PENDING" } },
    done: { output: { task_status: "SUCCEEDED", results: [{ url: "https://o.test/1" }] } },
  },
  {
    name: "replicate",
    make: createReplicate,
    options: { type: 56, model: "a/b", ...picture },
    begun: { id: "p", status: "starting" },
    done: { id: "p", status: "succeeded", output: "https://o.test/1" },
  },
  {
    name: "coze",
    make: createCoze,
    options: { type: 49, model: "m", body: { messages: HI }, channel: { other: "bot" } },
    begun: { code: 0, data: { ...chat, status: "in_progress" } },
    done: { code: 0, data: { ...chat, status: "completed" } },
    last: { code: 0, data: [{ type: "answer", content: "Hello" }] },
  },
];

type Said = () => Response | Promise<Response>;
const says =
  (body: unknown, status = 200, headers: Record<string, string> = {}): Said =>
  () =>
    Response.json(body, { status, headers });

/** The provider as the answers to one call, in their order. */
async function ask(provider: Provider, answers: readonly Said[]) {
  const methods: string[] = [];
  const pauses: number[] = [];
  let begunTold = 0;
  const left = [says(provider.begun), ...answers];
  const adapter = provider.make((ms) => {
    pauses.push(ms);
    return Promise.resolve();
  });
  const call = adapterCall({
    ...provider.options,
    key: "k",
    baseUrl: "https://provider.test",
    more: {
      fetch: async (_url, init) => {
        methods.push(init.method ?? "GET");
        const next = left.shift();
        if (!next) throw new Error("nothing was to be asked any more");
        return next();
      },
      underWay: () => begunTold++,
    },
  });
  const answer = await adapter(call).catch((error: unknown) => error);
  return { answer, methods, pauses, begunTold };
}

const TROUBLES: readonly Said[] = [
  says({ error: "slow down" }, 429, { "retry-after": "7" }),
  says({ error: "overloaded" }, 503),
  () => Promise.reject(new TypeError("connection reset")),
  () => new Response("<html>", { headers: { "content-type": "text/html" } }),
];

for (const provider of PROVIDERS) {
  test(`${provider.name}: a question that finds nobody is repeated, later each time, and nothing is begun twice`, async () => {
    const more = provider.last === undefined ? [] : [...TROUBLES, says(provider.last)];
    const found = await ask(provider, [...TROUBLES, says(provider.done), ...more]);
    expect((found.answer as Response).status).toBe(200);
    expect(found.methods.filter((method) => method === "POST")).toEqual(["POST"]);
    expect(found.pauses.slice(1, 5)).toEqual([7000, 2000, 4000, 8000]);
    expect(found.begunTold).toBeGreaterThan(0);
  });

  test(`${provider.name}: a refusal that no time mends ends it`, async () => {
    for (const status of [401, 403, 404]) {
      const { answer, methods } = await ask(provider, [says({ message: "no" }, status)]);
      expect([(answer as Response).status, methods]).toEqual([status, ["POST", "GET"]]);
    }
  });

  test(`${provider.name}: an address that may not be called is not asked again`, async () => {
    const closed = new Failure("no-channel", "channel_address_closed", { retryable: true });
    const { answer } = await ask(provider, [() => Promise.reject(closed)]);
    expect(answer).toBe(closed);
  });
}

test("coze: errors that come with status 200 are sorted likewise, and a refusal keeps the time that it names", async () => {
  const [, , coze] = PROVIDERS;
  if (!coze) throw new Error("no row");
  const busy = says({ code: 4013, msg: "too many requests" });
  const { answer, methods } = await ask(coze, [busy, says(coze.done), busy, says(coze.last)]);
  expect([(answer as Response).status, methods.length]).toEqual([200, 5]);
  const refused = await ask({ ...coze, begun: { code: 4013, msg: "too many requests" } }, []);
  expect((await failureOf(refused.answer as Response)).kind).toBe("upstream-limit");
});
