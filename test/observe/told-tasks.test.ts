// A task that is submitted is a call like any other to those who watch: spans, a line of the access log, its outcome.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createLogger } from "../../src/core/kit/logger.ts";
import { startOtlpReceiver } from "../support/otlp-receiver.ts";
import type { OtlpReceiver } from "../support/otlp-receiver.ts";
import { startGateway } from "../relay/support.ts";
import type { Gateway } from "../relay/support.ts";

const MODEL = "suno_music";
const SUNO = 36;
const PRICE = 50_000;

const lines: Record<string, unknown>[] = [];
let status = 200;
let receiver: OtlpReceiver;
let gateway: Gateway;
let channelId: number;
const upstream = Bun.serve({
  port: 0,
  fetch: () => Response.json({ code: "success", message: "", data: "task-1" }, { status }),
});

beforeAll(async () => {
  receiver = startOtlpReceiver();
  const logger = createLogger("info", (line) => void lines.push(JSON.parse(line) as Record<string, unknown>));
  gateway = await startGateway({
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, ACCESS_LOG: "1" },
    logger,
    quota: 50_000_000,
  });
  channelId = await gateway.app.createChannel({ type: SUNO, models: MODEL, baseUrl: upstream.url.origin });
});
afterAll(async () => {
  await gateway.close();
  receiver.stop();
  await upstream.stop(true);
});

async function submitted() {
  lines.length = 0;
  receiver.spans.length = 0;
  const answer = await gateway.post("/suno/submit/music", {});
  await answer.text();
  await gateway.app.deps.observer.traces?.flush();
  const spans = receiver.spans.toSorted((a, b) => a.kind - b.kind);
  return { answer, spans, calls: lines.filter(({ message }) => message === "call") };
}

test("one that is taken has its charge in both", async () => {
  const { answer, spans, calls } = await submitted();
  expect(answer.status).toBe(200);
  const requestId = answer.headers.get("x-oneapi-request-id");
  const [server, client, ...more] = spans;
  expect(more).toEqual([]);
  expect([server?.name, client?.parentSpanId]).toEqual([`suno ${MODEL}`, server?.spanId]);
  expect(server?.attributes).toMatchObject({
    "gen_ai.request.model": MODEL,
    "weir.channel": channelId,
    "weir.cost": PRICE / 500_000,
    "weir.request_id": requestId,
  });
  expect(calls).toHaveLength(1);
  expect(calls[0]).toMatchObject({
    request_id: requestId,
    trace_id: server?.traceId,
    endpoint: "suno",
    outcome: "ok",
    user: gateway.user.id,
    key: gateway.tokenId,
    quota: PRICE,
  });
});

test("one that its upstream fails is told as failed, once", async () => {
  status = 500;
  const { spans, calls } = await submitted();
  status = 200;
  expect(spans[0]?.attributes["error.type"]).toBeString();
  expect(calls).toHaveLength(1);
  expect(calls[0]?.["outcome"]).toBe("upstream");
  expect(calls[0]?.["user"]).toBe(gateway.user.id);
});
