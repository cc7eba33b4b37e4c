// Counting tokens: what may wait, whose turn it is, what a client that leaves frees, and what a full queue answers.
// Refuses the encoder itself: a thread that the test moves by hand stands in; the real one is asked in late-parts.test.ts.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  createTokenCounter,
  estimateTokens,
  MAX_WAITING_CHARS,
} from "../../../src/relay/meter/token-count.ts";
import type { TokenRequest } from "../../../src/relay/meter/token-count.ts";
import { HI, MODEL, startGateway } from "../support.ts";
import type { Gateway } from "../support.ts";

type Thread = NonNullable<ReturnType<NonNullable<Parameters<typeof createTokenCounter>[0]>>>;

/** A thread that counts one token a character, when it is told to. */
function handMoved() {
  const asked: TokenRequest[] = [];
  let ends = 0;
  let receive: (event: MessageEvent) => void = () => {};
  const thread = {
    postMessage: (request: TokenRequest) => void asked.push(request),
    terminate: () => void ends++,
    ref: () => {},
    unref: () => {},
    set onmessage(listener: (event: MessageEvent) => void) {
      receive = listener;
    },
    onerror: null,
  };
  return {
    counter: createTokenCounter(() => thread as unknown as Thread),
    asked,
    ends: () => ends,
    /** Answers the oldest request; false when there is none. */
    step(): boolean {
      const request = asked.shift();
      if (!request) return false;
      const tokens = request.texts.reduce((sum, text) => sum + text.length, 0);
      receive({ data: { id: request.id, tokens } } as MessageEvent);
      return true;
    },
  };
}

const handed = (request: TokenRequest | undefined): number =>
  (request?.texts ?? []).reduce((sum, text) => sum + text.length, 0);

describe("the queue", () => {
  test("what all callers hold together is bounded; what does not fit is left to the estimate at once", async () => {
    const { counter, step } = handMoved();
    const most = "x".repeat(MAX_WAITING_CHARS - 10);
    const first = counter.count([most], MODEL);
    expect([counter.isFullFor(10), counter.isFullFor(11)]).toEqual([false, true]);
    expect(await counter.count(["x".repeat(11)], MODEL)).toBeUndefined();
    // Never to be counted, so it waits for nobody.
    expect(counter.isFullFor(MAX_WAITING_CHARS + 1)).toBe(false);
    expect(await counter.count(["x".repeat(MAX_WAITING_CHARS + 1)], MODEL)).toBeUndefined();
    while (step());
    expect(await first).toBe(most.length);
    expect(counter.isFullFor(MAX_WAITING_CHARS)).toBe(false);
    counter.close();
  });

  test("a client that leaves frees its place, and its text is handed over no further", async () => {
    const { counter, asked, step } = handMoved();
    const leaving = new AbortController();
    const gone = counter.count(["x".repeat(MAX_WAITING_CHARS)], MODEL, leaving.signal);
    expect(handed(asked[0])).toBeLessThan(MAX_WAITING_CHARS / 100);
    leaving.abort();
    expect(await gone).toBeUndefined();
    expect(counter.isFullFor(MAX_WAITING_CHARS)).toBe(false);
    const next = counter.count(["yy"], MODEL);
    step();
    expect(handed(asked[0])).toBe(2);
    step();
    expect(await next).toBe(2);
    expect(asked).toHaveLength(0);
    expect(await counter.count(["zz"], MODEL, AbortSignal.abort())).toBeUndefined();
    counter.close();
  });

  test("a short text does not wait for a long one's end", async () => {
    const { counter, step } = handMoved();
    let isLongDone = false;
    const long = counter.count(["x".repeat(1_000_000)], MODEL).finally(() => (isLongDone = true));
    const short = counter.count(["abc"], MODEL);
    step();
    step();
    expect(await short).toBe(3);
    expect(isLongDone).toBe(false);
    while (step());
    expect(await long).toBe(1_000_000);
    counter.close();
  });

  test("pieces never part one character", async () => {
    const { counter, asked, step } = handMoved();
    const text = `x${"😀".repeat(100_000)}`;
    const done = counter.count([text], MODEL);
    let whole = "";
    for (let request = asked[0]; request; request = asked[0]) {
      for (const piece of request.texts) {
        expect(piece.isWellFormed()).toBe(true);
        whole += piece;
      }
      step();
    }
    expect([await done, whole === text]).toEqual([text.length, true]);
    counter.close();
  });

  test("closing ends what waits, and the thread", async () => {
    const { counter, ends } = handMoved();
    const waiting = [counter.count(["a"], MODEL), counter.count(["b"], MODEL)];
    counter.close();
    expect([await Promise.all(waiting), ends()]).toEqual([[undefined, undefined], 1]);
    expect(counter.isFullFor(MAX_WAITING_CHARS)).toBe(false);
  });
});

describe("while the queue is full", () => {
  let g: Gateway;
  let leave: () => void;
  beforeAll(async () => {
    g = await startGateway();
    // The whole queue, held by somebody else's call.
    const other = new AbortController();
    leave = () => other.abort();
    const { counter } = g.app.services.gateway.relay.parts;
    void counter.count(["tip tap ".repeat(MAX_WAITING_CHARS / 8)], MODEL, other.signal);
  });
  afterAll(() => g.close());

  const COUNTS: [string, string, object, object][] = [
    [
      "Anthropic's",
      "/v1/messages/count_tokens",
      { model: MODEL, messages: HI },
      { type: "error", error: { type: "rate_limit_error" } },
    ],
    [
      "Google's",
      `/v1beta/models/${MODEL}:countTokens`,
      { contents: [{ parts: [{ text: "hi" }] }] },
      { error: { code: 429, status: "RESOURCE_EXHAUSTED" } },
    ],
  ];
  test.each(COUNTS)("%s clients are told to come back, in their own form", async (_, path, body, form) => {
    const response = await g.post(path, body);
    const answer = (await response.json()) as { error: { message: string } };
    expect([response.status, response.headers.get("retry-after")]).toEqual([429, "1"]);
    expect(answer).toMatchObject(form);
    expect(answer.error.message).toContain("当前正在计数的文本过多");
  });

  test("a settlement takes the estimate and does not wait", async () => {
    g.upstream.script({
      headers: { "content-type": "application/json" },
      steps: [
        JSON.stringify({
          id: "c",
          object: "chat.completion",
          choices: [
            { index: 0, message: { role: "assistant", content: "tip tap toe" }, finish_reason: "stop" },
          ],
        }),
      ],
    });
    const charge = await g.charged(() => g.chat());
    expect(charge.completionTokens).toBe(estimateTokens("tip tap toe"));
  });

  test.each(COUNTS)("%s clients are served again as soon as the other has left", async (_, path, body) => {
    leave();
    expect((await g.post(path, body)).status).toBe(200);
  });
});
