// Streams that end without a reason: complete where the upstream's end marker came, with the ordinary reason in the
// client's dialect; an error event where it did not. Passed through and told in every other dialect.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { DialectName } from "../../../src/protocol/canonical.ts";
import { UPSTREAMS } from "../../support/dialect-upstream.ts";
import { sse } from "../../support/fake-upstream.ts";
import type { Step } from "../../support/fake-upstream.ts";
import { startGateway } from "../support.ts";
import type { Gateway } from "../support.ts";
import { CLIENTS, event, script } from "./begun-streams.ts";

const NAMES = Object.keys(UPSTREAMS) as DialectName[];

const chat = (delta: object): string => sse({ id: "c", choices: [{ index: 0, delta, finish_reason: null }] });
const block = (index: number, content_block: object, delta: object): Step[] => [
  event("content_block_start", { type: "content_block_start", index, content_block }),
  event("content_block_delta", { type: "content_block_delta", index, delta }),
  event("content_block_stop", { type: "content_block_stop", index }),
];
const called = { id: "call_1", type: "function", function: { name: "weather", arguments: "{}" } };

/** What comes before the end marker, and the marker; Google's streams have none but the reason itself. */
const UNSAID: Readonly<Record<string, { text: readonly Step[]; call: readonly Step[]; marker: string }>> = {
  "openai-chat": {
    text: [chat({ role: "assistant", content: "" }), chat({ content: "Hello" })],
    call: [chat({ role: "assistant", tool_calls: [{ index: 0, ...called }] })],
    marker: "data: [DONE]\n\n",
  },
  anthropic: {
    text: [
      event("message_start", { type: "message_start", message: { id: "msg_1", content: [], usage: {} } }),
      ...block(0, { type: "text", text: "" }, { type: "text_delta", text: "Hello" }),
    ],
    call: [
      event("message_start", { type: "message_start", message: { id: "msg_1", content: [], usage: {} } }),
      ...block(
        0,
        { type: "tool_use", id: "call_1", name: "weather", input: {} },
        { type: "input_json_delta", partial_json: "{}" },
      ),
    ],
    marker: event("message_stop", { type: "message_stop" }),
  },
  "openai-responses": {
    text: [
      event("response.created", { type: "response.created", response: { id: "resp_1" } }),
      event("response.output_text.delta", { type: "response.output_text.delta", delta: "Hello" }),
    ],
    call: [
      event("response.output_item.done", {
        type: "response.output_item.done",
        item: { type: "function_call", call_id: "call_1", name: "weather", arguments: "{}" },
      }),
    ],
    marker: event("response.completed", { type: "response.completed", response: { id: "resp_1" } }),
  },
};

const ORDINARY: Readonly<Record<DialectName, { text: RegExp; call: RegExp; raised: RegExp }>> = {
  "openai-chat": {
    text: /"finish_reason":"stop"/,
    call: /"finish_reason":"tool_calls"/,
    raised: /"error":\{/,
  },
  "openai-responses": {
    text: /"type":"response.completed"/,
    call: /"type":"response.completed"/,
    raised: /event: (?:error|response.failed)\n/,
  },
  anthropic: { text: /"stop_reason":"end_turn"/, call: /"stop_reason":"tool_use"/, raised: /event: error\n/ },
  gemini: { text: /"finishReason":"STOP"/, call: /"finishReason":"STOP"/, raised: /"error":\{"code":/ },
};

for (const upstream of Object.keys(UNSAID) as DialectName[]) {
  const { type, model } = UPSTREAMS[upstream];
  const { text, call, marker } = UNSAID[upstream] as (typeof UNSAID)[string];

  describe(`a ${upstream} upstream that gives no reason`, () => {
    let g: Gateway;
    beforeAll(async () => {
      g = await startGateway({ quota: 100_000_000, channel: { type, models: model } });
      await g.setOption("SelfUseModeEnabled", "true");
    });
    afterAll(() => g.close());

    const answered = async (client: DialectName, steps: readonly Step[]): Promise<string> => {
      g.upstream.script(script([...steps]));
      const { path, body } = (CLIENTS[client] as (typeof CLIENTS)[string])(model);
      return (await g.post(path, body)).text();
    };

    for (const client of NAMES) {
      const ordinary = ORDINARY[client];
      test(`ends as such answers do for ${client} clients, where its end marker came`, async () => {
        // What is passed through says what the upstream said.
        const isPassed = client === upstream && upstream !== "openai-responses";
        for (const kind of ["text", "call"] as const) {
          const got = await answered(client, [...(kind === "text" ? text : call), marker]);
          expect(got).not.toMatch(ordinary.raised);
          expect(got).not.toContain('"OTHER"');
          if (isPassed) expect(got.endsWith(marker)).toBe(true);
          else expect(got).toMatch(ordinary[kind]);
        }
      });

      test(`ends in an error event for ${client} clients, where it did not`, async () => {
        for (const steps of [text, call]) {
          const got = await answered(client, steps);
          expect(got).toMatch(ordinary.raised);
          expect(got).not.toMatch(/"finishReason"|"stop_reason":"(?!null)|response\.completed|\[DONE\]/);
        }
      });
    }
  });
}
