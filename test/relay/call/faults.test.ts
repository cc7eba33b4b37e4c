// The classic failover faults, each met by clients of all four dialects: with a spare channel the client gets its answer,
// without one it gets an error of its own protocol, and the books hold whatever happened.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { DialectName } from "../../../src/protocol/canonical.ts";
import { audit } from "../../../src/core/ledger/audit.ts";
import {
  CUT,
  gate,
  hangAfterHeaders,
  hangBeforeHeaders,
  okWithError,
  refuse,
  refuseUntil,
  startFakeUpstream,
  stream,
} from "../../support/fake-upstream.ts";
import type { FakeUpstream, Gate, Script } from "../../support/fake-upstream.ts";
import { startGateway } from "../support.ts";
import type { Gateway } from "../support.ts";

interface Fault {
  name: string;
  /** What the faulty upstream does; absent: the address itself is at fault. */
  script?: () => Script;
  baseUrl?: string;
  /** Whether a spare channel may serve the call. */
  isMadeGood: boolean;
  /** Status of the answer when there is no spare; 200 when the error comes inside a stream that had begun. */
  status: number;
  /** Rows of the log that charge something, when there is no spare. */
  charged?: number;
}

/** Opened when the client has its status line: what was sent before a cut must have arrived. */
let door: Gate | undefined;

const quotaBody = {
  error: {
    message: "You exceeded your current quota",
    type: "insufficient_quota",
    code: "insufficient_quota",
  },
};
const policyBody = {
  error: { message: "flagged", type: "invalid_request_error", code: "content_policy_violation" },
};
const html = "<html><body><h1>502 Bad Gateway</h1>nginx at 10.0.0.7</body></html>";

const FAULTS: readonly Fault[] = [
  { name: "connection refused", baseUrl: "http://127.0.0.1:1", isMadeGood: true, status: 500 },
  { name: "a name that does not resolve", baseUrl: "http://nowhere.invalid", isMadeGood: true, status: 500 },
  { name: "401", script: () => refuse(401), isMadeGood: true, status: 502 },
  { name: "a quota body", script: () => refuse(429, quotaBody), isMadeGood: true, status: 429 },
  { name: "403", script: () => refuse(403), isMadeGood: true, status: 502 },
  { name: "404 for the model", script: () => refuse(404), isMadeGood: true, status: 404 },
  { name: "408", script: () => refuse(408), isMadeGood: false, status: 408 },
  { name: "429 with Retry-After", script: () => refuseUntil(30), isMadeGood: true, status: 429 },
  { name: "429 without", script: () => refuse(429), isMadeGood: true, status: 429 },
  { name: "500", script: () => refuse(500), isMadeGood: true, status: 500 },
  { name: "502 with a page", script: () => refuse(502, html), isMadeGood: true, status: 502 },
  { name: "503", script: () => refuse(503), isMadeGood: true, status: 503 },
  { name: "silence before the headers", script: hangBeforeHeaders, isMadeGood: true, status: 504 },
  { name: "silence behind the headers", script: hangAfterHeaders, isMadeGood: true, status: 504 },
  { name: "200 with an error in it", script: () => okWithError(), isMadeGood: true, status: 502 },
  { name: "a refusal on principle", script: () => refuse(400, policyBody), isMadeGood: false, status: 400 },
  {
    name: "a cut in mid-stream",
    script: () => stream(["some text", (door = gate()), CUT]),
    isMadeGood: false,
    status: 200,
    charged: 1,
  },
  {
    name: "a stall in mid-stream",
    script: () => stream(["some text", gate()]),
    isMadeGood: false,
    status: 200,
    charged: 1,
  },
];

/** A streamed call in the client's dialect. */
const CALLS: Readonly<Record<DialectName, (model: string) => [path: string, body: object]>> = {
  "openai-chat": (model) => [
    "/v1/chat/completions",
    { model, stream: true, messages: [{ role: "user", content: "hi" }] },
  ],
  "openai-responses": (model) => ["/v1/responses", { model, stream: true, input: "hi" }],
  anthropic: (model) => [
    "/v1/messages",
    { model, stream: true, max_tokens: 50, messages: [{ role: "user", content: "hi" }] },
  ],
  gemini: (model) => [
    `/v1beta/models/${model}:streamGenerateContent?alt=sse`,
    { contents: [{ parts: [{ text: "hi" }] }] },
  ],
};

/** Whether the text is, or ends with, an error that this dialect's clients raise. */
const RAISES: Readonly<Record<DialectName, (text: string) => boolean>> = {
  "openai-chat": (text) => /"error":\{"message":"/.test(text) && !text.includes("[DONE]"),
  "openai-responses": (text) =>
    (/"error":\{"message":"/.test(text) || text.includes("event: response.failed")) &&
    !text.includes("response.completed"),
  anthropic: (text) =>
    /"type":"error","error":\{"type":"\w+","message":"/.test(text) && !text.includes("message_stop"),
  gemini: (text) => /"error":\{"code":\d+,"message":"/.test(text) && !text.includes('"finishReason"'),
};

let g: Gateway;
let spare: FakeUpstream;
let serial = 0;

beforeAll(async () => {
  g = await startGateway();
  spare = await startFakeUpstream();
  await g.setOption("SelfUseModeEnabled", "true");
  await g.setOption("RetryTimes", "1");
  await g.setOption("relay.first_byte_timeout_seconds", "1");
  await g.setOption("relay.stream_idle_timeout_seconds", "1");
});
afterAll(async () => {
  await g.close();
  spare.stop();
});
beforeEach(() => {
  door = undefined;
  g.upstream.reset();
  spare.reset();
});
afterEach(async () => {
  await g.app.deps.ledger.flush();
  expect((await audit(g.app.deps.db)).differences).toEqual([]);
});

/** DeepSeek: chat completions only, so that three of the four dialects are converted. */
const type = 43;

/** A model of its own: cool-downs of one case must not touch another. */
async function faulty(fault: Fault, hasSpare: boolean): Promise<string> {
  const model = `fault-${++serial}`;
  await g.app.createChannel({ type, baseUrl: fault.baseUrl ?? g.upstream.url, models: model, priority: 9 });
  if (hasSpare) await g.app.createChannel({ type, baseUrl: spare.url, models: model, priority: 1 });
  if (fault.script) g.upstream.script(fault.script());
  return model;
}

const charges = async (model: string) =>
  (await g.logs()).filter((row) => row.type === 2 && row.modelName === model);

for (const fault of FAULTS) {
  describe(fault.name, () => {
    for (const dialect of Object.keys(CALLS) as DialectName[]) {
      test(`a ${dialect} client with a spare channel ${fault.isMadeGood ? "gets its answer" : "is told, and the spare is left alone"}`, async () => {
        const model = await faulty(fault, true);
        const [path, body] = CALLS[dialect](model);
        const response = await g.post(path, body);
        door?.open();
        const text = await response.text();
        if (!fault.isMadeGood) {
          expect(spare.requests).toHaveLength(0);
          expect(RAISES[dialect](text)).toBe(true);
          return;
        }
        expect(response.status).toBe(200);
        for (const piece of ["Hello", " there", "!"]) expect(text).toContain(piece);
        expect(RAISES[dialect](text)).toBe(false);
        const [charge, ...more] = await charges(model);
        expect(more).toEqual([]);
        expect(charge?.other["attempts"]).toHaveLength(2);
      });

      test(`a ${dialect} client without one gets an error of its own protocol`, async () => {
        const model = await faulty(fault, false);
        const before = await g.balance();
        const [path, body] = CALLS[dialect](model);
        const response = await g.post(path, body);
        door?.open();
        const text = await response.text();
        expect(response.status).toBe(fault.status);
        expect(RAISES[dialect](text)).toBe(true);
        // No address, page or word of the provider's innards.
        expect(text).not.toMatch(/127\.0\.0\.1|10\.0\.0\.7|nowhere\.invalid|nginx/);
        const charged = await charges(model);
        expect(charged).toHaveLength(fault.charged ?? 0);
        if (charged.length === 0) expect(await g.balance()).toEqual(before);
      });
    }
  });
}
