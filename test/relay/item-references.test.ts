// Guarantees for clients that name earlier items by their ids, as the AI SDK does by default: the second step of a tool
// loop and the next question bring everything back, over every upstream, for the user who got the ids and nobody else.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
import type { ModelMessage } from "ai";
import { createSealer } from "../../src/core/kit/seal.ts";
import { itemOpener, itemSealer } from "../../src/relay/call/item-references.ts";
import { sse } from "../support/fake-upstream.ts";
import type { RecordedRequest, Script } from "../support/fake-upstream.ts";
import { UPSTREAMS } from "../support/dialect-upstream.ts";
import { dataLines, startGateway } from "./support.ts";
import type { Gateway } from "./support.ts";

type Wire = Record<string, unknown>;
const TARGETS = ["anthropic", "gemini", "openai-chat"] as const;
type Target = (typeof TARGETS)[number];

let g: Gateway;
beforeAll(async () => {
  g = await startGateway({ quota: 1_000_000_000, channel: { models: UPSTREAMS["openai-responses"].model } });
  for (const target of TARGETS) {
    const { type, model } = UPSTREAMS[target];
    await g.app.createChannel({ type, models: model, baseUrl: g.upstream.url });
  }
  await g.setOption("SelfUseModeEnabled", "true");
});
afterAll(() => g.close());
beforeEach(() => {
  g.upstream.reset();
  asked.length = 0;
});

const THOUGHT = "The tool knows. ".repeat(300);
const SAID = "Let me look that up.";
const PROOF = {
  anthropic: "c2lnbmVkLWJ5LWNsYXVkZQ==",
  gemini: "c2lnbmVkLWJ5LWdvb2dsZQ==",
  "openai-chat": "",
};
const ANSWER = "It is sunny in Zürich.";
const CITY = { city: "Zürich" };

const streamed = (frames: unknown[], ...more: string[]): Script => ({
  headers: { "content-type": "text/event-stream" },
  steps: [...frames.map(sse), ...more],
});
const whole = (body: unknown): Script => ({
  headers: { "content-type": "application/json" },
  steps: [JSON.stringify(body)],
});

/** Thinking, words and a call first; words alone once the call's result is there. */
const UPSTREAM: Readonly<Record<Target, (isFirst: boolean, isStream: boolean) => Script>> = {
  anthropic(isFirst, isStream) {
    const blocks: Wire[] = isFirst
      ? [
          { type: "thinking", thinking: THOUGHT, signature: PROOF.anthropic },
          { type: "text", text: SAID },
          { type: "tool_use", id: "toolu_1", name: "weather", input: CITY },
        ]
      : [{ type: "text", text: ANSWER }];
    const message = { id: "msg_1", type: "message", role: "assistant", model: "c", content: [] };
    const stop_reason = isFirst ? "tool_use" : "end_turn";
    const usage = { input_tokens: 40, output_tokens: 30 };
    if (!isStream) return whole({ ...message, content: blocks, stop_reason, usage });
    const frames: unknown[] = [{ type: "message_start", message: { ...message, usage } }];
    blocks.forEach((block, index) => {
      const { thinking, signature, text, input, ...start } = block;
      const delta = (fields: Wire) => frames.push({ type: "content_block_delta", index, delta: fields });
      frames.push({
        type: "content_block_start",
        index,
        content_block: { ...start, thinking: "", text: "", input: {} },
      });
      if (thinking) delta({ type: "thinking_delta", thinking });
      if (signature) delta({ type: "signature_delta", signature });
      if (text) delta({ type: "text_delta", text });
      if (input) delta({ type: "input_json_delta", partial_json: JSON.stringify(input) });
      frames.push({ type: "content_block_stop", index });
    });
    frames.push({ type: "message_delta", delta: { stop_reason }, usage }, { type: "message_stop" });
    return streamed(frames);
  },
  gemini(isFirst, isStream) {
    const parts: Wire[] = isFirst
      ? [
          { text: THOUGHT, thought: true },
          { text: SAID },
          { functionCall: { name: "weather", args: CITY }, thoughtSignature: PROOF.gemini },
        ]
      : [{ text: ANSWER }];
    const body = {
      candidates: [{ content: { role: "model", parts }, finishReason: "STOP", index: 0 }],
      usageMetadata: { promptTokenCount: 40, candidatesTokenCount: 30, totalTokenCount: 70 },
    };
    return isStream ? streamed([body]) : whole(body);
  },
  "openai-chat"(isFirst, isStream) {
    const call = {
      id: "call_1",
      type: "function",
      function: { name: "weather", arguments: JSON.stringify(CITY) },
    };
    const message: Wire = isFirst
      ? { role: "assistant", reasoning_content: THOUGHT, content: SAID, tool_calls: [call] }
      : { role: "assistant", content: ANSWER };
    const finish_reason = isFirst ? "tool_calls" : "stop";
    const usage = { prompt_tokens: 40, completion_tokens: 30, total_tokens: 70 };
    if (!isStream) return whole({ id: "c", choices: [{ index: 0, message, finish_reason }], usage });
    const delta = isFirst ? { ...message, tool_calls: [{ index: 0, ...call }] } : message;
    const frames = [
      { id: "c", choices: [{ index: 0, delta, finish_reason: null }] },
      { id: "c", choices: [{ index: 0, delta: {}, finish_reason }], usage },
    ];
    return streamed(frames, "data: [DONE]\n\n");
  },
};

function play(target: Target): void {
  let calls = 0;
  g.upstream.always((request: RecordedRequest) => {
    const isStream = target === "gemini" ? request.url.includes("stream") : request.json()["stream"] === true;
    return UPSTREAM[target](calls++ === 0, isStream);
  });
}

/** What an upstream is told of its own first turn, in its own words. */
const TOLD: Readonly<Record<Target, Wire[]>> = {
  anthropic: [
    { type: "thinking", thinking: THOUGHT, signature: PROOF.anthropic },
    { type: "text", text: SAID },
    { type: "tool_use", id: "toolu_1", name: "weather", input: CITY },
  ],
  gemini: [{ text: SAID }, { functionCall: { name: "weather", args: CITY }, thoughtSignature: PROOF.gemini }],
  "openai-chat": [{ role: "assistant", content: SAID, tool_calls: [{ id: "call_1" }] }],
};

function toldOf(target: Target): unknown {
  const body = (g.upstream.requests.at(-1)?.json() ?? {}) as Record<string, Wire[]>;
  const turns = body["messages"] ?? body["contents"] ?? [];
  const turn = turns.find(({ role }) => role === "assistant" || role === "model");
  return target === "openai-chat" ? [turn] : (turn?.["content"] ?? turn?.["parts"]);
}

const tools = {
  weather: tool({
    description: "Tells the weather.",
    inputSchema: jsonSchema<{ city: string }>({ type: "object", properties: { city: { type: "string" } } }),
    execute: () => "sunny",
  }),
};

/** The bodies that the AI SDK sent. */
const asked: string[] = [];

/** The AI SDK as anybody sets it up: nothing is said of storing. */
function sdk(model: string) {
  const noted = (url: RequestInfo | URL, init?: RequestInit): Promise<Response> => {
    if (typeof init?.body === "string") asked.push(init.body);
    return fetch(url, init);
  };
  return createOpenAI({ apiKey: g.key, baseURL: `${g.app.url}/v1`, fetch: noted as typeof fetch })(model);
}

async function run(isStream: boolean, model: string, messages: ModelMessage[]) {
  const ask = { model: sdk(model), messages, tools, stopWhen: stepCountIs(4), maxRetries: 0 };
  const result = isStream ? streamText({ ...ask, onError: () => undefined }) : await generateText(ask);
  const steps = await result.steps;
  const told = steps.flatMap((step) => step.response.messages as ModelMessage[]);
  return { text: await result.text, steps: steps.length, told };
}

for (const target of TARGETS) {
  const { model } = UPSTREAMS[target];
  describe(`the AI SDK on Responses over ${target}`, () => {
    for (const isStream of [false, true]) {
      test(`two steps with a tool, and the next question, ${isStream ? "streamed" : "whole"}`, async () => {
        play(target);
        const question: ModelMessage = { role: "user", content: "What is the weather?" };
        const first = await run(isStream, model, [question]);
        expect([first.text, first.steps]).toEqual([ANSWER, 2]);
        expect(toldOf(target)).toMatchObject(TOLD[target]);
        // It names what it got, and does not repeat it.
        expect([asked[1]?.includes("item_reference"), asked[1]?.includes(SAID)]).toEqual([true, false]);
        const again: ModelMessage = { role: "user", content: "And tomorrow?" };
        const next = await run(isStream, model, [question, ...first.told, again]);
        expect([next.text, g.upstream.requests.length]).toEqual([ANSWER, 3]);
        expect(toldOf(target)).toMatchObject(TOLD[target]);
        const said = g.upstream.requests.at(-1)?.body.toString() ?? "";
        expect([said.includes(ANSWER), said.includes("item_reference"), said.includes("_sealed")]).toEqual([
          true,
          false,
          false,
        ]);
        expect((await g.lastCharge())?.other["dropped"] ?? []).not.toContain("input.item_reference");
      });
    }
  });
}

describe("an id with something sealed in it", () => {
  const { model } = UPSTREAMS.anthropic;
  const input = [{ role: "user", content: "What is the weather?" }];
  const reference = (id: unknown): Wire => ({ type: "item_reference", id });
  const CLAUDE = "anthropic";

  async function output(fields: Wire = {}): Promise<Wire[]> {
    play(CLAUDE);
    const response = await g.post("/v1/responses", { model, input, ...fields });
    const text = await response.text();
    const answer = fields["stream"] ? dataLines(text).at(-1)?.["response"] : JSON.parse(text);
    return (answer as { output: Wire[] }).output;
  }

  async function sendBack(
    items: Wire[],
    key = g.key,
  ): Promise<{ status: number; dropped: unknown; body: string }> {
    const called = items.find((item) => item["type"] === "function_call") ?? {};
    const references = items.map((item) => (item === called ? item : reference(item["id"])));
    const result = { type: "function_call_output", call_id: called["call_id"], output: "sunny" };
    const body = { model, input: [...input, ...references, result] };
    const response = await g.post("/v1/responses", body, { authorization: `Bearer ${key}` });
    const dropped = (await g.lastCharge())?.other["dropped"];
    return { status: response.status, dropped, body: g.upstream.requests.at(-1)?.body.toString() ?? "" };
  }

  test("needs no particular client: what has thinking can be referred to by anybody", async () => {
    for (const stream of [false, true]) {
      const { status, body } = await sendBack(await output({ stream }));
      expect([status, body.includes(PROOF.anthropic), body.includes(SAID)]).toEqual([200, true, true]);
    }
  });

  test("is nobody else's: for another user it is reasoning that nobody knows, left out and told", async () => {
    const other = await g.app.createUser({ quota: 1_000_000_000 });
    const theirs = await g.app.createToken(other.id);
    for (const stream of [false, true]) {
      const items = (await output({ stream })).filter((item) => item["type"] !== "message");
      const { status, dropped, body } = await sendBack(items, theirs.key);
      expect([status, body.includes(PROOF.anthropic)]).toEqual([200, false]);
      expect(dropped).toContain("input.item_reference");
    }
  });

  test("names each item once, however often it is said; and a message of somebody else's is refused by name", async () => {
    const items = await output();
    const said = reference(items.find((item) => item["type"] === "message")?.["id"]);
    const ask = (key: string, list: Wire[]) =>
      g.post("/v1/responses", { model, input: [...input, ...list] }, { authorization: `Bearer ${key}` });
    expect((await ask(g.key, [said, said, said])).status).toBe(200);
    expect(g.upstream.requests.at(-1)?.body.toString().split(SAID)).toHaveLength(2);
    const other = await g.app.createUser({ quota: 1_000_000_000 });
    const theirs = await g.app.createToken(other.id);
    const refused = await ask(theirs.key, [said]);
    expect(refused.status).toBe(400);
    expect(await refused.json()).toMatchObject({ error: { param: "input.item_reference" } });
  });

  test("does no harm to clients that repeat everything", async () => {
    for (const stream of [false, true]) {
      const items = await output({ stream });
      const called = items.find((item) => item["type"] === "function_call") ?? {};
      const result = { type: "function_call_output", call_id: called["call_id"], output: "sunny" };
      const response = await g.post("/v1/responses", { model, input: [...input, ...items, result] });
      expect(response.status).toBe(200);
      expect(toldOf(CLAUDE)).toEqual(TOLD[CLAUDE]);
    }
  });

  test("is not made where the client asked for nothing to be kept", async () => {
    for (const stream of [false, true]) {
      const items = await output({ store: false, stream });
      expect(items).toHaveLength(3);
      for (const { id } of items) expect(String(id).length).toBeLessThan(64);
    }
  });

  test("reasoning that we did not give out is left out and told; other unknown items are refused by name", async () => {
    play(CLAUDE);
    const ask = (id: string) => g.post("/v1/responses", { model, input: [...input, reference(id)] });
    expect((await ask("rs_0123456789abcdef")).status).toBe(200);
    expect((await g.lastCharge())?.other["dropped"]).toContain("input.item_reference");
    const refused = await ask("msg_0123456789abcdef");
    expect(refused.status).toBe(400);
    expect(await refused.json()).toMatchObject({ error: { param: "input.item_reference" } });
  });

  test("a native upstream gets what it means and never the id; its own references stay as they are", async () => {
    const native = UPSTREAMS["openai-responses"].model;
    const items = await output();
    const said = items.find((item) => item["type"] === "message") ?? {};
    const send = async (list: Wire[]): Promise<Wire[]> => {
      await g.post("/v1/responses", { model: native, input: [...input, ...list] });
      return g.upstream.requests.at(-1)?.json()["input"] as Wire[];
    };
    const [, ...sent] = await send([reference(said["id"]), reference("rs_own"), said]);
    expect(JSON.stringify(sent)).not.toContain("_sealed");
    expect(sent).toMatchObject([
      { role: "assistant", content: [{ type: "output_text", text: SAID }] },
      reference("rs_own"),
      { role: "assistant", content: [{ type: "output_text", text: SAID }] },
    ]);
    // Without any of ours not a byte changes.
    const body = JSON.stringify({ model: native, input: [reference("rs_own")] });
    await g.post("/v1/responses", body);
    expect(g.upstream.requests.at(-1)?.body.toString()).toBe(body);
  });

  test("is opened by every node and after every start, with the installation's key, and by no other", () => {
    const items = { "": { type: "reasoning", summary: [] } };
    const sealed = itemSealer(createSealer("a"), 1)(items) ?? "";
    expect(itemOpener(createSealer("a"), 1)(sealed)).toEqual(items);
    for (const [secret, user] of [
      ["b", 1],
      ["a", 2],
    ] as const)
      expect(itemOpener(createSealer(secret), user)(sealed)).toBeUndefined();
    for (const wrong of ["", "AAAA", sealed.slice(0, -3), "x".repeat(1_000_000)])
      expect(itemOpener(createSealer("a"), 1)(wrong)).toBeUndefined();
    // What cannot be made small stays out of ids.
    const noise = crypto.getRandomValues(new Uint8Array(65_536));
    const large = {
      "": { text: `${Buffer.from(noise).toString("hex")}${Buffer.from(noise).toString("base64")}` },
    };
    expect(itemSealer(createSealer("a"), 1)(large)).toBeUndefined();
  });
});
