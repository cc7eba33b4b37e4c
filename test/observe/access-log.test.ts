// ACCESS_LOG=1: one line for each call, with what finds it again, and nothing of what was said.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createLogger } from "../../src/core/kit/logger.ts";
import { untilSo } from "../support/turns.ts";
import { MODEL, startGateway } from "../relay/support.ts";
import type { Gateway } from "../relay/support.ts";

const lines: Record<string, unknown>[] = [];
let gateway: Gateway;

beforeAll(async () => {
  const logger = createLogger("info", (line) => void lines.push(JSON.parse(line) as Record<string, unknown>));
  gateway = await startGateway({ env: { ACCESS_LOG: "1" }, logger });
});
afterAll(() => gateway.close());

const calls = () => lines.filter(({ message }) => message === "call");

test("an answered call, a stream and a refused one leave a line each", async () => {
  const plain = await gateway.chat();
  await plain.text();
  await (await gateway.chat({ stream: true })).text();
  await (await gateway.chat({ model: "nobody-serves-this" })).text();
  await untilSo(() => calls().length >= 3);
  const charge = (await gateway.logs()).find(({ type }) => type === 2);
  expect(calls().length).toBe(3);
  expect(calls()[0]).toMatchObject({
    level: "info",
    request_id: plain.headers.get("x-oneapi-request-id"),
    endpoint: "chat",
    model: MODEL,
    outcome: "ok",
    channel: gateway.channelId,
    user: gateway.user.id,
    key: gateway.tokenId,
    input: charge?.promptTokens,
    output: charge?.completionTokens,
    quota: charge?.quota,
  });
  expect(calls()[1]?.["first_ms"]).toBeNumber();
  expect(calls()[2]).toMatchObject({ outcome: "client", error: "model_not_found", status: 404 });
  const messages = [{ role: "user", content: "Hello" }];
  await (await gateway.post("/v1/messages/count_tokens", { model: MODEL, messages })).text();
  expect(calls().at(-1)).toMatchObject({ endpoint: "count", outcome: "ok", user: gateway.user.id });
  const text = JSON.stringify(lines);
  for (const secret of ["Hello", gateway.key.slice(3), gateway.user.username])
    expect(text).not.toContain(secret);
});
