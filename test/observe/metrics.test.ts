// /metrics as a real parser and Prometheus' own tool read it: what is counted, who may read it, and that clients cannot make it grow.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { METRICS } from "../../src/observe/names.ts";
import { mergedText } from "../../src/observe/metrics.ts";
import { CUT, gate, refuse, stream } from "../support/fake-upstream.ts";
import { untilSo } from "../support/turns.ts";
import { MODEL, startGateway } from "../relay/support.ts";
import type { Gateway } from "../relay/support.ts";
import { parseMetrics } from "./prometheus.ts";
import type { Scrape } from "./prometheus.ts";

const TOKEN = "a-token-for-the-scraper";
const UNKNOWN_MODELS = process.env["WEIR_LONG"] ? 10_000 : 300;

let gateway: Gateway;

beforeAll(async () => {
  gateway = await startGateway({ env: { METRICS_TOKEN: TOKEN } });
});
afterAll(() => gateway.close());

async function read(headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${gateway.app.url}/metrics`, { headers });
}

async function scrape(): Promise<Scrape> {
  const response = await read();
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toStartWith("text/plain; version=0.0.4");
  return parseMetrics(await response.text());
}

/** What a call added to the figures, once it is told. */
async function added(
  work: () => Promise<unknown>,
  name: string,
  labels: Record<string, string>,
): Promise<{ by: number; before: Scrape; after: Scrape }> {
  const before = await scrape();
  await work();
  let after = before;
  await untilSo(async () => {
    after = await scrape();
    return after.value(name, labels) > before.value(name, labels);
  });
  return { by: after.value(name, labels) - before.value(name, labels), before, after };
}

const OK = { endpoint: "chat", outcome: "ok" };
const OF_MODEL = {
  gen_ai_operation_name: "chat",
  gen_ai_provider_name: "openai",
  gen_ai_request_model: MODEL,
};

test("a plain call is one observation of each kind, its tokens are those that were charged", async () => {
  const { by, before, after } = await added(
    async () => (await gateway.chat()).json(),
    "weir_requests_total",
    OK,
  );
  const grown = (name: string, labels = {}) => after.value(name, labels) - before.value(name, labels);
  const charge = await gateway.lastCharge();
  expect(by).toBe(1);
  expect(grown("gen_ai_client_operation_duration_seconds", { ...OF_MODEL, error_type: "" })).toBe(1);
  expect(grown("gen_ai_server_request_duration_seconds", { ...OF_MODEL, error_type: "" })).toBe(1);
  expect(grown("gen_ai_client_token_usage", { ...OF_MODEL, gen_ai_token_type: "input" })).toBe(1);
  expect(grown("weir_tokens_total", { type: "input" })).toBe(charge?.promptTokens ?? -1);
  expect(grown("weir_tokens_total", { type: "output" })).toBe(charge?.completionTokens ?? -1);
  expect(grown("weir_channel_attempts_total", { channel: String(gateway.channelId), outcome: "ok" })).toBe(1);
  expect(grown("weir_added_seconds")).toBe(1);
  // A plain answer has no first token.
  expect(grown("gen_ai_server_time_to_first_token_seconds")).toBe(0);
  expect(after.value("weir_journal_sync_seconds")).toBeGreaterThan(0);
});

test("a stream is told at its end, with its first token and its pace", async () => {
  const inFlight = gate();
  gateway.upstream.script(stream(["Hello", inFlight, " there", " you"], {}));
  const before = await scrape();
  const response = await gateway.chat({ stream: true });
  const reading = response.text();
  expect((await scrape()).value("weir_inflight")).toBe(1);
  expect((await scrape()).value("weir_requests_total", OK)).toBe(before.value("weir_requests_total", OK));
  inFlight.open();
  await reading;
  await untilSo(async () => (await scrape()).value("weir_inflight") === 0);
  const after = await scrape();
  const grown = (name: string, labels = {}) => after.value(name, labels) - before.value(name, labels);
  expect(grown("weir_requests_total", OK)).toBe(1);
  expect(grown("gen_ai_server_time_to_first_token_seconds", OF_MODEL)).toBe(1);
  expect(grown("gen_ai_server_time_per_output_token_seconds", OF_MODEL)).toBe(1);
  expect(grown("gen_ai_client_operation_duration_seconds", OF_MODEL)).toBe(1);
});

test("what goes wrong is told by whose fault it is", async () => {
  const refusedUpstream = { endpoint: "chat", outcome: "upstream" };
  gateway.upstream.always(refuse(500));
  const failed = await added(
    async () => (await gateway.chat()).text(),
    "weir_requests_total",
    refusedUpstream,
  );
  gateway.upstream.always(undefined);
  expect(failed.by).toBe(1);
  const down = { channel: String(gateway.channelId), outcome: "down" };
  expect(failed.after.value("weir_channel_attempts_total", down)).toBeGreaterThan(
    failed.before.value("weir_channel_attempts_total", down),
  );
  const bad = await added(() => gateway.post("/v1/chat/completions", "no json"), "weir_requests_total", {
    endpoint: "chat",
    outcome: "client",
  });
  expect(bad.by).toBe(1);
  const stranger = await added(
    () => gateway.chat({}, { authorization: "Bearer sk-nobody" }),
    "weir_requests_total",
    { endpoint: "chat", outcome: "auth" },
  );
  expect(stranger.by).toBe(1);
  const begun = gate();
  gateway.upstream.script(stream(["Hel", begun, CUT], {}));
  const cut = await added(
    async () => {
      const response = await gateway.chat({ stream: true });
      begun.open();
      await response.text();
    },
    "gen_ai_server_request_duration_seconds",
    { ...OF_MODEL, error_type: "upstream-cut" },
  );
  expect(cut.by).toBe(1);
});

test("counting tokens and asking for prices are requests of their own kind", async () => {
  const body = { model: MODEL, messages: [{ role: "user", content: "hi" }], max_tokens: 5 };
  const counted = await added(() => gateway.post("/v1/messages/count_tokens", body), "weir_requests_total", {
    endpoint: "count",
    outcome: "ok",
  });
  expect(counted.by).toBe(1);
});

test("the process tells of itself: ledger, database, disk, channels, loop", async () => {
  const found = await scrape();
  const channel = { channel: String(gateway.channelId) };
  expect(found.value("weir_channel_up", channel)).toBe(1);
  expect(found.lines("weir_channel_info")[0]?.labels["gen_ai_provider_name"]).toBe("openai");
  expect(found.value("weir_database_up")).toBe(1);
  expect(found.value("weir_journal_bytes")).toBeGreaterThan(0);
  expect(found.value("weir_disk_free_ratio")).toBeGreaterThan(0);
  expect(found.value("weir_audit_differences")).toBe(0);
  expect(found.value("process_resident_memory_bytes")).toBeGreaterThan(10_000_000);
  // Everything of the table is there by name.
  expect(Object.keys(METRICS).filter((name) => !found.names.includes(name))).toEqual([]);
  await gateway.app.deps.ledger.flush();
  expect((await scrape()).value("weir_ledger_waiting")).toBe(0);
  expect((await scrape()).value("weir_ledger_oldest_seconds")).toBe(0);
  gateway.app.deps.inbox.keep({ kind: "audit", params: { count: 3 } });
  await untilSo(async () => (await scrape()).value("weir_audit_differences") === 3);
});

test("models that nobody serves make no series, and no label names a user, a key or a request", async () => {
  const ask = (model: string) => gateway.chat({ model }).then((response) => response.status);
  await ask("nobody-serves-this");
  const before = await scrape();
  for (let index = 0; index < UNKNOWN_MODELS; index += 50)
    await Promise.all(Array.from({ length: 50 }, (_, place) => ask(`made-up-${index + place}`)));
  const after = await scrape();
  expect(after.series).toBe(before.series);
  const other = { gen_ai_request_model: "_other" };
  const name = "gen_ai_server_request_duration_seconds";
  expect(after.value(name, other) - before.value(name, other)).toBe(UNKNOWN_MODELS);
  const text = await (await read()).text();
  expect(text).not.toContain("made-up");
  expect(text).not.toContain(gateway.user.username);
  expect(text).not.toContain(gateway.key.slice(3));
});

test("strangers find no such address; a token opens it, and this machine itself", async () => {
  const unknown = await fetch(`${gateway.app.url}/v1/nowhere`);
  const refusals: Record<string, string>[] = [
    { "x-forwarded-for": "127.0.0.1" },
    { forwarded: "for=127.0.0.1" },
    { via: "1.1 proxy" },
    { host: "gateway.example" },
    { "x-real-ip": "127.0.0.1", authorization: `Bearer ${TOKEN}x` },
    { "x-real-ip": "127.0.0.1", authorization: "Bearer " },
  ];
  for (const headers of refusals) {
    const refused = await read(headers);
    expect(refused.status).toBe(404);
    expect(Object.keys(await refused.json())).toEqual(Object.keys(await unknown.clone().json()));
    expect(refused.headers.get("content-type")).toBe(unknown.headers.get("content-type"));
  }
  const opened = await read({ "x-forwarded-for": "192.0.2.1", authorization: `Bearer ${TOKEN}` });
  expect(opened.status).toBe(200);
  expect((await opened.text()).length).toBeGreaterThan(1000);
});

test("several processes behind one port are one text: counts add up, the worst is told of what is a state", async () => {
  const { metrics } = gateway.app.services;
  const [one, two] = [await metrics.snapshot(), structuredClone(await metrics.snapshot())];
  for (const family of two)
    if (family.name === "weir_database_up") family.values = [{ value: 0, labels: {} }];
  const merged = parseMetrics(await mergedText([one, two]));
  const single = parseMetrics(await mergedText([one]));
  expect(merged.value("weir_requests_total", OK)).toBe(2 * single.value("weir_requests_total", OK));
  expect(merged.value("weir_database_up")).toBe(0);
  expect(merged.value("weir_channel_up", { channel: String(gateway.channelId) })).toBe(1);
  expect(merged.series).toBe(single.series);
});

// Debian's package `prometheus` holds it; where it is missing, the parser above has read every line all the same.
test("Prometheus' own tool finds nothing to object to", async () => {
  const text = await (await read()).text();
  const tool = Bun.which("promtool");
  if (!tool) return expect(parseMetrics(text).names.length).toBe(Object.keys(METRICS).length);
  const run = Bun.spawn([tool, "check", "metrics"], { stdin: new Blob([text]), stderr: "pipe" });
  const [said, code] = [await new Response(run.stderr).text(), await run.exited];
  expect(said).toBe("");
  expect(code).toBe(0);
});
