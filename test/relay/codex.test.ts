// Guarantees for Codex 0.169, by what it was recorded to send (test/fixtures/codex): its whole loop works over Claude,
// Gemini and chat completions, and each call comes back as the item that Codex knows, namespace and all.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { sse } from "../support/fake-upstream.ts";
import type { Script } from "../support/fake-upstream.ts";
import { UPSTREAMS } from "../support/dialect-upstream.ts";
import { dataLines, startGateway } from "./support.ts";
import type { Gateway } from "./support.ts";

type Wire = Record<string, unknown>;

/** One recorded session: the last body, and how many items of its input each turn had sent. */
interface Recording {
  headers: Record<string, string>;
  turns: number[];
  body: Wire & { input: Wire[] };
}

function recording(model: string): Recording {
  const file = new URL(`../fixtures/codex/${model}.json`, import.meta.url);
  return JSON.parse(readFileSync(file, "utf8")) as Recording;
}

/** Tools in the list, in namespaces of it, and in an item of the conversation. */
const MODELS = ["gpt-5.5", "gpt-5.1-codex", "gpt-6-sol"] as const;
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
beforeEach(() => g.upstream.reset());

const streamed = (frames: unknown[], ...more: string[]): Script => ({
  status: 200,
  headers: { "content-type": "text/event-stream" },
  steps: [...frames.map(sse), ...more],
});

/** A call as each provider streams it, its arguments in two pieces where they come in pieces. */
const CALLED: Readonly<Record<Target, (name: string, args: Wire, turn: number) => Script>> = {
  anthropic(name, args, turn) {
    const json = JSON.stringify(args);
    const usage = { input_tokens: 40, output_tokens: 1 };
    const message = { id: "msg_1", type: "message", role: "assistant", model: "c", content: [], usage };
    const block = { type: "tool_use", id: `toolu_${turn}`, name, input: {} };
    const delta = (partial_json: string) => ({
      type: "content_block_delta",
      index: 0,
      delta: { type: "input_json_delta", partial_json },
    });
    return streamed([
      { type: "message_start", message },
      { type: "content_block_start", index: 0, content_block: block },
      delta(json.slice(0, 5)),
      delta(json.slice(5)),
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta: { stop_reason: "tool_use" }, usage: { output_tokens: 30 } },
      { type: "message_stop" },
    ]);
  },
  gemini: (name, args) =>
    streamed([
      {
        candidates: [
          {
            content: { role: "model", parts: [{ functionCall: { name, args } }] },
            finishReason: "STOP",
            index: 0,
          },
        ],
        usageMetadata: { promptTokenCount: 100, candidatesTokenCount: 30, totalTokenCount: 130 },
      },
    ]),
  "openai-chat"(name, args, turn) {
    const json = JSON.stringify(args);
    const piece = (fields: Wire, finish_reason: string | null = null) => ({
      id: "c",
      choices: [{ index: 0, delta: fields, finish_reason }],
    });
    const call = (fields: Wire) => piece({ tool_calls: [{ index: 0, ...fields }] });
    return streamed(
      [
        call({ id: `call_${turn}`, type: "function", function: { name, arguments: json.slice(0, 5) } }),
        call({ function: { arguments: json.slice(5) } }),
        piece({}, "tool_calls"),
      ],
      "data: [DONE]\n\n",
    );
  },
};

const listOf = (value: unknown): Wire[] => (Array.isArray(value) ? (value as Wire[]) : []);

/** Names of the functions that the upstream was offered, and of the calls that it was told of. */
function told(): { offered: string[]; called: string[] } {
  const body = g.upstream.requests.at(-1)?.json() ?? {};
  const functions = listOf(body["tools"]).flatMap((tool) => {
    if (Array.isArray(tool["functionDeclarations"])) return listOf(tool["functionDeclarations"]);
    return [(tool["function"] ?? tool) as Wire];
  });
  const parts = [...listOf(body["messages"]), ...listOf(body["contents"])].flatMap((turn) => [
    ...listOf(turn["content"]),
    ...listOf(turn["parts"]),
    ...listOf(turn["tool_calls"]),
  ]);
  const calls = parts.flatMap((part) => {
    if (part["type"] === "tool_use") return [part];
    return [part["functionCall"] ?? part["function"] ?? []].flat() as Wire[];
  });
  const nameOf = (item: Wire): string => String(item["name"]);
  return { offered: functions.map(nameOf), called: calls.map(nameOf) };
}

/** The function, and its arguments, that the model would call for a recorded item. */
function asked(item: Wire): [string, Wire] {
  const namespace = typeof item["namespace"] === "string" ? `${item["namespace"]}__` : "";
  if (item["type"] === "tool_search_call") return ["tool_search", item["arguments"] as Wire];
  const args =
    item["type"] === "custom_tool_call"
      ? { input: item["input"] }
      : (JSON.parse(String(item["arguments"])) as Wire);
  return [namespace + String(item["name"]), args];
}

for (const target of TARGETS) {
  describe(`Codex over ${target}`, () => {
    for (const model of MODELS) {
      for (const stream of [true, false]) {
        test(`${model}'s tools: the recorded loop, ${stream ? "streamed" : "whole"}`, async () => {
          const { headers, turns, body } = recording(model);
          const calls: string[] = [];
          for (const [turn, count] of turns.entries()) {
            const next = body.input[count];
            const [name, args] = next ? asked(next) : ["exec_command", {}];
            g.upstream.script(CALLED[target](name, args, turn));
            const sent = {
              ...body,
              model: UPSTREAMS[target].model,
              input: body.input.slice(0, count),
              stream,
            };
            const response = await g.post("/v1/responses", sent, headers);
            const text = await response.text();
            expect(response.status).toBe(200);
            const events = dataLines(text);
            const answer = (stream ? events.at(-1)?.["response"] : JSON.parse(text)) as { output: Wire[] };
            // What went up before is known by the names that are offered now.
            const { offered, called } = told();
            expect(new Set(offered).size).toBe(offered.length);
            expect(called).toEqual(calls);
            for (const each of [...called, ...(next ? [name] : [])]) expect(offered).toContain(each);
            if (!next) break;
            const { id: _id, call_id: _call, ...known } = next;
            expect(answer.output).toMatchObject([known]);
            if (stream) {
              const done = events.filter((event) => event["type"] === "response.output_item.done");
              expect(done.map((event) => event["item"])).toEqual(answer.output);
              const added = events.find((event) => event["type"] === "response.output_item.added");
              const { type, namespace } = known;
              expect(added?.["item"]).toMatchObject({ type, ...(namespace ? { namespace } : {}) } as Wire);
            }
            calls.push(name);
          }
        });
      }
    }
  });
}
