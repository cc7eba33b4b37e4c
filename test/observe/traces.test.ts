// Traces as a receiver on loopback gets them: which spans a call leaves, whose children they are, and what they never say.
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { readEnv } from "../../src/env.ts";
import { newRecord } from "../../src/observe/record.ts";
import { idsOf, traceparentOf } from "../../src/observe/trace-context.ts";
import { createTraces } from "../../src/observe/traces.ts";
import type { TraceSettings } from "../../src/observe/traces.ts";
import { newMeterState } from "../../src/protocol/dialect.ts";
import { traceStream } from "../../src/relay/call/tracing.ts";
import { refuse, startFakeUpstream } from "../support/fake-upstream.ts";
import type { FakeUpstream } from "../support/fake-upstream.ts";
import { startOtlpReceiver } from "../support/otlp-receiver.ts";
import type { OtlpReceiver, ReceivedSpan } from "../support/otlp-receiver.ts";
import { MODEL, startGateway } from "../relay/support.ts";
import type { Gateway } from "../relay/support.ts";

const SERVER = 2;
const CLIENT = 3;
const PARENT = { traceId: "4bf92f3577b34da6a3ce929d0e0e4736", spanId: "00f067aa0ba902b7" };
const PROMPT = "a-secret-of-the-prompt";

let receiver: OtlpReceiver;
let spare: FakeUpstream;
let gateway: Gateway;
let spareId: number;

beforeAll(async () => {
  receiver = startOtlpReceiver();
  spare = await startFakeUpstream();
  gateway = await startGateway({
    env: {
      // As Langfuse takes them: a path of its own, basic authentication, a header with its version.
      OTEL_EXPORTER_OTLP_ENDPOINT: `${receiver.url}/api/public/otel/`,
      OTEL_EXPORTER_OTLP_HEADERS: "Authorization=Basic%20cGs6c2s=,x-langfuse-ingestion-version=4",
      OTEL_SERVICE_NAME: "gateway-under-test",
    },
    channel: { priority: 10, settings: '{"send_traceparent":true}' },
  });
  await gateway.setOption("RetryTimes", "1");
  spareId = await gateway.app.createChannel({ baseUrl: spare.url, models: MODEL, priority: 0 });
});
afterAll(async () => {
  await gateway.close();
  spare.stop();
  receiver.stop();
});
beforeEach(async () => {
  await gateway.app.deps.observer.traces?.flush();
  receiver.spans.length = 0;
  gateway.upstream.reset();
  spare.reset();
});

/** Everything that the work left, the request's own span first. */
async function spansOf(work: () => Promise<unknown>): Promise<[ReceivedSpan, ...ReceivedSpan[]]> {
  await work();
  await gateway.app.deps.ledger.flush();
  await gateway.app.services.gateway.relay.idle();
  await gateway.app.deps.observer.traces?.flush();
  const found = receiver.spans.toSorted((a, b) => a.kind - b.kind || a.startMs - b.startMs);
  const [first, ...others] = found;
  if (first?.kind !== SERVER) throw new Error("no span of the request");
  return [first, ...others];
}

const ask = (fields: Record<string, unknown> = {}, headers: Record<string, string> = {}) =>
  gateway
    .chat({ messages: [{ role: "user", content: PROMPT }], ...fields }, headers)
    .then(async (response) => ({ response, text: await response.text() }));

test("a plain call is a SERVER span with one CLIENT span, in the form of the conventions", async () => {
  let requestId: string | null = null;
  const [server, client, ...more] = await spansOf(async () => {
    const { response } = await ask();
    requestId = response.headers.get("x-oneapi-request-id");
  });
  expect(more).toEqual([]);
  expect(server.name).toBe(`chat ${MODEL}`);
  expect(server.parentSpanId).toBeUndefined();
  expect([client?.kind, client?.parentSpanId, client?.traceId]).toEqual([
    CLIENT,
    server.spanId,
    server.traceId,
  ]);
  const charge = await gateway.lastCharge();
  expect(server.attributes).toMatchObject({
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "openai",
    "gen_ai.system": "openai",
    "gen_ai.request.model": MODEL,
    "gen_ai.response.model": MODEL,
    "gen_ai.response.finish_reasons": ["stop"],
    "gen_ai.usage.input_tokens": charge?.promptTokens,
    "gen_ai.usage.output_tokens": charge?.completionTokens,
    "gen_ai.usage.cache_read.input_tokens": 0,
    "weir.channel": gateway.channelId,
    "weir.cost": (charge?.quota ?? 0) / 500_000,
    "weir.request_id": requestId,
  });
  expect(server.resource["service.name"]).toBe("gateway-under-test");
  expect(server.endMs).toBeGreaterThanOrEqual(client?.endMs ?? Infinity);
  expect(Math.abs(server.endMs - Date.now())).toBeLessThan(60_000);
});

test("a stream's spans last to its end", async () => {
  const [server, client] = await spansOf(() => ask({ stream: true }));
  expect(server.status).not.toBe(2);
  expect(client?.endMs).toBeGreaterThan(client?.startMs ?? Infinity);
  expect(server.endMs).toBeGreaterThanOrEqual(client?.endMs ?? Infinity);
  expect(server.attributes["gen_ai.usage.output_tokens"]).toBeGreaterThan(0);
  expect(server.attributes).toMatchObject({
    "gen_ai.response.model": MODEL,
    "gen_ai.response.id": "chatcmpl-fake",
    "gen_ai.response.finish_reasons": ["stop"],
  });
});

test("a stream's own words are read in each dialect, and nothing that a text only quotes", () => {
  const quoted = JSON.stringify('{"finish_reason":"length","type":"response.failed"}');
  const said = (frames: readonly string[], isSampled = true) => {
    const record = newRecord({ ...PARENT, parentId: undefined, isSampled, attemptId: "", attempts: [] });
    const seen: string[] = [];
    const meter = { state: newMeterState(), push: ({ data }: { data: string }) => void seen.push(data) };
    traceStream({ record }, meter);
    for (const data of frames) meter.push({ data });
    expect(seen).toEqual([...frames]);
    return record.words;
  };
  const chat = [
    `{"id":"c1","model":"m-1","choices":[{"delta":{"content":${quoted}},"finish_reason":null}]}`,
    `{"id":"c1","model":"m-1","choices":[{"index":0,"delta":{},"finish_reason": "tool_calls"}]}`,
    `{"id":"c1","model":"m-1","choices":[{"index":1,"delta":{},"finish_reason":"stop"}]}`,
    "[DONE]",
  ];
  expect(said(chat)).toEqual({ model: "m-1", id: "c1", reasons: ["tool_calls", "stop"] });
  const messages = [
    '{"type":"message_start","message":{"id":"msg_1","model":"claude","stop_reason":null}}',
    `{"type":"content_block_delta","delta":{"type":"text_delta","text":${quoted}}}`,
    '{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}',
  ];
  expect(said(messages)).toEqual({ model: "claude", id: "msg_1", reasons: ["end_turn"] });
  const responses = [
    '{"type":"response.created","response":{"id":"resp_1","model":"m-2","status":"in_progress"}}',
    `{"type":"response.output_text.delta","delta":${quoted}}`,
    '{"type":"response.incomplete","response":{"id":"resp_1","model":"m-2","status":"incomplete"}}',
  ];
  expect(said(responses)).toEqual({ model: "m-2", id: "resp_1", reasons: ["incomplete"] });
  const gemini = [
    '{"candidates":[{"content":{"parts":[{"text":"a"}]}}],"modelVersion":"g-1","responseId":"r1"}',
    '{"candidates":[{"finishReason":"STOP"}],"modelVersion":"g-1","responseId":"r1"}',
  ];
  expect(said(gemini)).toEqual({ model: "g-1", id: "r1", reasons: ["STOP"] });
  expect(said(chat, false)).toBeUndefined();
});

test("a call that goes on to a second channel has a CLIENT span for each, the first of them failed", async () => {
  gateway.upstream.always(refuse(500));
  const [server, first, second, ...more] = await spansOf(() => ask());
  gateway.upstream.always(undefined);
  expect(more).toEqual([]);
  expect(server.status).not.toBe(2);
  expect(server.attributes["weir.channel"]).toBe(spareId);
  expect([first?.attributes["weir.channel"], second?.attributes["weir.channel"]]).toEqual([
    gateway.channelId,
    spareId,
  ]);
  expect([first?.status, second?.status]).not.toEqual([second?.status, first?.status]);
  expect(first?.attributes["http.response.status_code"]).toBe(500);
  expect(first?.attributes["error.type"]).toBeString();
  expect(new Set([first?.parentSpanId, second?.parentSpanId])).toEqual(new Set([server.spanId]));
});

test("a refused call is a span with its error, and asks nobody", async () => {
  const [server, ...others] = await spansOf(() => ask({ model: "nobody-serves-this" }));
  expect(others).toEqual([]);
  expect(server.status).toBe(2);
  expect(server.attributes["error.type"]).toBe("model_not_found");
  // Clients choose names: a long one is cut before it travels.
  const [long] = await spansOf(() => ask({ model: "m".repeat(5000) }));
  expect(long.name.length).toBeLessThan(200);
});

test("a client's trace goes on here, and at upstreams whose channel says so", async () => {
  const sent = { traceparent: traceparentOf({ ...PARENT, isSampled: true }) };
  const [server, client] = await spansOf(() => ask({}, sent));
  expect([server.traceId, server.parentSpanId]).toEqual([PARENT.traceId, PARENT.spanId]);
  const [request] = gateway.upstream.requests;
  expect(request?.headers["traceparent"]).toBe(`00-${PARENT.traceId}-${client?.spanId}-01`);
  // The other channel is told nothing.
  gateway.upstream.always(refuse(500));
  await spansOf(() => ask({}, sent));
  gateway.upstream.always(undefined);
  expect(spare.requests.length).toBeGreaterThan(0);
  expect(spare.requests.map(({ headers }) => headers["traceparent"])).not.toContain(sent.traceparent);
  expect(spare.requests.every(({ headers }) => headers["traceparent"] === undefined)).toBe(true);
});

test("what a client does not want sampled leaves no span", async () => {
  await ask({}, { traceparent: traceparentOf({ ...PARENT, isSampled: false }) });
  await gateway.app.deps.observer.traces?.flush();
  expect(receiver.spans).toEqual([]);
});

test("no prompt, no answer and no header ever leaves; the receiver is asked as Langfuse wants it", async () => {
  await spansOf(() => ask({}, { "x-private": "a-secret-of-a-header" }));
  expect(receiver.problems).toEqual([]);
  for (const { path, headers, text } of receiver.requests) {
    expect(path).toBe("/api/public/otel/v1/traces");
    expect(headers.get("authorization")).toBe("Basic cGs6c2s=");
    expect(headers.get("x-langfuse-ingestion-version")).toBe("4");
    expect(headers.get("content-type")).toBe("application/json");
    for (const secret of [PROMPT, "Hello there", "a-secret-of-a-header", gateway.key.slice(3)])
      expect(text).not.toContain(secret);
  }
});

test("prompts and whole answers go along where the operator asks for it; headers never", async () => {
  const { traces } = gateway.app.deps.observer;
  Object.assign(traces ?? {}, { showsContent: true });
  const [server] = await spansOf(() => ask({}, { "x-private": "a-secret-of-a-header" }));
  Object.assign(traces ?? {}, { showsContent: false });
  expect(String(server.attributes["gen_ai.input.messages"])).toContain(PROMPT);
  expect(String(server.attributes["gen_ai.output.messages"])).toContain("Hello there!");
  expect(receiver.requests.at(-1)?.text).not.toContain("a-secret-of-a-header");
});

const settings: TraceSettings = {
  endpoint: "http://127.0.0.1:1",
  headers: {},
  serviceName: "weir",
  sampler: "parentbased_always_on",
  ratio: 1,
  showsContent: false,
  version: "0",
  instance: "test",
};

test("with nobody listening spans are dropped, and the end waits two seconds at most", async () => {
  const traces = await createTraces(settings);
  const write = (count: number): void => {
    for (let index = 0; index < count; index++) {
      const request = { operation: "chat", model: "m", startedMs: 0, endedMs: 1, error: "", attributes: {} };
      traces.ended(traces.begin(null), request);
    }
  };
  write(4000);
  Bun.gc(true);
  const before = process.memoryUsage().heapUsed;
  write(40_000);
  Bun.gc(true);
  // What 40,000 kept spans would take is some 60 MB.
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(15_000_000);
  const startedMs = performance.now();
  await traces.close();
  expect(performance.now() - startedMs).toBeLessThan(2500);
});

test("a share of the calls is traced, and which ones follows from the trace alone", async () => {
  const none = await createTraces({ ...settings, sampler: "traceidratio", ratio: 0 });
  const all = await createTraces({ ...settings, sampler: "traceidratio", ratio: 1 });
  expect(none.begin(null).isSampled).toBe(false);
  expect(all.begin(null).isSampled).toBe(true);
  const child = traceparentOf({ ...PARENT, isSampled: true });
  const off = await createTraces({ ...settings, sampler: "parentbased_always_off" });
  expect([off.begin(null).isSampled, off.begin(child).isSampled]).toEqual([false, true]);
  await Promise.all([none.close(), all.close(), off.close()]);
});

test("a traceparent that is none counts as none", () => {
  const { traceId, spanId } = PARENT;
  expect(idsOf(`00-${traceId}-${spanId}-01`)).toEqual({ ...PARENT, isSampled: true });
  expect(idsOf(`cc-${traceId}-${spanId}-00-more`)).toEqual({ ...PARENT, isSampled: false });
  const wrong = [
    null,
    "",
    `00-${traceId}-${spanId}`,
    `00-${traceId}-${spanId}-01-more`,
    `ff-${traceId}-${spanId}-01`,
    `00-${"0".repeat(32)}-${spanId}-01`,
    `00-${traceId}-${"0".repeat(16)}-01`,
    `00-${traceId.toUpperCase()}-${spanId}-01`,
  ];
  expect(wrong.map((each) => idsOf(each))).toEqual(wrong.map(() => undefined));
});

test("a wrong setting stops the start with its name, and never with what may be a secret", () => {
  const said = (source: Record<string, string>): string => {
    try {
      readEnv({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:4318", ...source });
      return "";
    } catch (error) {
      return (error as Error).message;
    }
  };
  expect(said({})).toBe("");
  expect(said({ OTEL_EXPORTER_OTLP_ENDPOINT: "collector:4318" })).toStartWith("OTEL_EXPORTER_OTLP_ENDPOINT");
  expect(said({ OTEL_TRACES_SAMPLER: "jaeger_remote" })).toStartWith("OTEL_TRACES_SAMPLER must be one of");
  expect(said({ OTEL_TRACES_SAMPLER_ARG: "2" })).toStartWith("OTEL_TRACES_SAMPLER_ARG");
  const refused = said({ OTEL_EXPORTER_OTLP_HEADERS: "Basic c2VjcmV0" });
  expect(refused).toStartWith("OTEL_EXPORTER_OTLP_HEADERS");
  expect(refused).not.toContain("c2VjcmV0");
  expect(said({ ACCESS_LOG: "yes" })).toStartWith("ACCESS_LOG");
});
