// Guarantees that a converted answer says nothing that only its upstream's dialect knows: whatever members a provider adds to
// its objects, clients of the other three dialects never see them, streamed or whole.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { DialectName } from "../../src/protocol/canonical.ts";
import { answerText, streamText, UPSTREAMS } from "../support/dialect-upstream.ts";
import type { RecordedRequest, Script } from "../support/fake-upstream.ts";
import { startGateway } from "./support.ts";
import type { Gateway } from "./support.ts";

const NAMES = Object.keys(UPSTREAMS) as DialectName[];
/** What the model says in them is the answer itself. */
const SPOKEN = new Set(["input", "args", "arguments", "parameters", "partial_json"]);
const ODD = { zz_member: "zz-value", stop_details: null, zz_object: { zz_inner: [1] } };

/** Every object of the wire with members that nobody else knows. */
function withOddities(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withOddities);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, inner]) => [
    key,
    SPOKEN.has(key) ? inner : withOddities(inner),
  ]);
  return { ...Object.fromEntries(entries), ...ODD };
}

const odd = (text: string): string => JSON.stringify(withOddities(JSON.parse(text)));

function oddAnswer(dialect: DialectName): (request: RecordedRequest) => Script {
  return (request) => {
    const isStream =
      dialect === "gemini"
        ? request.url.includes(":streamGenerateContent")
        : request.json()["stream"] === true;
    const text = isStream
      ? streamText(dialect).replace(/^data: (\{.*\})/gm, (_, json: string) => `data: ${odd(json)}`)
      : odd(answerText(dialect));
    const type = isStream ? "text/event-stream" : "application/json";
    return { status: 200, headers: { "content-type": type }, steps: [text] };
  };
}

const ASKS: Readonly<Record<DialectName, (model: string, stream: boolean) => [path: string, body: object]>> =
  {
    "openai-chat": (model, stream) => [
      "/v1/chat/completions",
      { model, stream, messages: [{ role: "user", content: "hi" }] },
    ],
    "openai-responses": (model, stream) => ["/v1/responses", { model, stream, input: "hi" }],
    anthropic: (model, stream) => [
      "/v1/messages",
      { model, stream, max_tokens: 100, messages: [{ role: "user", content: "hi" }] },
    ],
    gemini: (model, stream) => [
      `/v1beta/models/${model}:${stream ? "streamGenerateContent?alt=sse" : "generateContent"}`,
      { contents: [{ parts: [{ text: "hi" }] }] },
    ],
  };

for (const upstream of NAMES) {
  const { type, model } = UPSTREAMS[upstream];
  describe(`of ${upstream}'s own members`, () => {
    let g: Gateway;
    beforeAll(async () => {
      g = await startGateway({ quota: 1_000_000_000, channel: { type, models: model } });
      await g.setOption("SelfUseModeEnabled", "true");
      g.upstream.always(oddAnswer(upstream));
    });
    afterAll(() => g.close());

    for (const client of NAMES.filter((name) => name !== upstream))
      test.each([false, true])(`${client} clients see none (streamed: %p)`, async (isStream) => {
        const [path, body] = ASKS[client](model, isStream);
        const response = await g.post(path, body);
        const text = await response.text();
        expect(response.status).toBe(200);
        expect(text.length).toBeGreaterThan(50);
        expect(text).not.toMatch(/zz_(?:member|object|inner)|zz-value|stop_details/);
      });
  });
}
