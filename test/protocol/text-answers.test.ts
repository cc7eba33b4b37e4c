// Guarantees that the short way of reading plain text answers gives what the decoder of streams gives: field by field,
// for any text, number of blocks, usage and unknown field.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { collect } from "../../src/protocol/assemble.ts";
import type { Answer } from "../../src/protocol/assemble.ts";
import type { Dialect } from "../../src/protocol/dialect.ts";
import { anthropic } from "../../src/protocol/anthropic/dialect.ts";
import { gemini } from "../../src/protocol/gemini/dialect.ts";
import { openaiChat } from "../../src/protocol/openai-chat/dialect.ts";
import { openaiResponses } from "../../src/protocol/openai-responses/dialect.ts";
import { counter, dataFrame, decode } from "./support.ts";

type Wire = Record<string, unknown>;

const text = fc.oneof(fc.constant(""), fc.string({ unit: "binary" }));
const count = fc.integer({ min: 0, max: 9999 });
/** Absent, null and there are three things. */
const maybe = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | null | undefined> =>
  fc.oneof(fc.constant(undefined), fc.constant(null), value);
const wire = (fields: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<Wire> =>
  fc.record(fields).map((object) => JSON.parse(JSON.stringify(object)) as Wire);

const openaiUsage = fc.record({
  prompt_tokens: count,
  completion_tokens: count,
  total_tokens: count,
  prompt_tokens_details: maybe(fc.record({ cached_tokens: count })),
});

const CASES: { dialect: Dialect; answers: fc.Arbitrary<Wire>; asStream: (answer: Wire) => unknown[] }[] = [
  {
    dialect: openaiChat,
    answers: wire({
      id: maybe(fc.constant("chatcmpl-1")),
      object: fc.constant("chat.completion"),
      created: maybe(count),
      model: maybe(fc.constant("m")),
      system_fingerprint: maybe(fc.constant("fp")),
      choices: fc
        .record({
          content: text,
          refusal: maybe(text),
          tool_calls: maybe(fc.constant([])),
          annotations: maybe(fc.constant([])),
          reasoning_content: maybe(text),
          finish_reason: fc.constantFrom("stop", "length", "content_filter", "new", null),
          logprobs: maybe(fc.constant({ content: [] })),
        })
        .map(({ finish_reason, logprobs, ...message }) => [
          { index: 0, message: { role: "assistant", ...message }, finish_reason, logprobs },
        ]),
      usage: maybe(openaiUsage),
    }),
    asStream(answer) {
      const choices = (answer["choices"] as Wire[]).map(({ message, ...choice }) => ({
        ...choice,
        delta: message,
      }));
      return [{ ...answer, choices }, "[DONE]"];
    },
  },
  {
    dialect: anthropic,
    answers: wire({
      id: fc.constant("msg_1"),
      type: fc.constant("message"),
      role: fc.constant("assistant"),
      model: maybe(fc.constant("m")),
      content: fc.array(fc.record({ type: fc.constant("text"), text, citations: maybe(fc.constant([])) }), {
        maxLength: 3,
      }),
      stop_reason: fc.constantFrom("end_turn", "max_tokens", "stop_sequence", "new", null),
      stop_sequence: maybe(text),
      container: maybe(fc.constant({ id: "c" })),
      usage: fc.record({ input_tokens: count, output_tokens: count, cache_read_input_tokens: maybe(count) }),
    }),
    asStream({ content, stop_reason, stop_sequence, usage, ...message }) {
      const blocks = (content as Wire[]).flatMap((content_block, index) => [
        { type: "content_block_start", index, content_block },
        { type: "content_block_stop", index },
      ]);
      return [
        { type: "message_start", message },
        ...blocks,
        { type: "message_delta", delta: { stop_reason, stop_sequence }, usage },
        { type: "message_stop" },
      ];
    },
  },
  {
    dialect: gemini,
    answers: wire({
      candidates: fc
        .record({ parts: fc.array(fc.record({ text }), { maxLength: 3 }), index: maybe(fc.constant(0)) })
        .chain(({ parts, index }) =>
          fc
            .constantFrom("STOP", "MAX_TOKENS", "SAFETY", "NEW")
            .map((finishReason) => [{ content: { role: "model", parts }, finishReason, index }]),
        ),
      usageMetadata: maybe(
        fc.record({ promptTokenCount: count, candidatesTokenCount: maybe(count), totalTokenCount: count }),
      ),
      modelVersion: maybe(fc.constant("m")),
      responseId: maybe(fc.constant("r")),
    }),
    asStream: (answer) => [answer],
  },
  {
    dialect: openaiResponses,
    answers: wire({
      id: maybe(fc.constant("resp_1")),
      object: fc.constant("response"),
      created_at: maybe(count),
      model: maybe(fc.constant("m")),
      status: fc.constantFrom("completed", "incomplete"),
      incomplete_details: maybe(fc.constant({ reason: "max_output_tokens" })),
      output: fc.array(
        fc.oneof(
          fc.record({
            type: fc.constant("reasoning"),
            id: fc.constant("rs_1"),
            summary: fc.constantFrom([], [{ type: "summary_text", text: "so" }]),
          }),
          fc
            .array(
              fc.record({ type: fc.constant("output_text"), text, annotations: maybe(fc.constant([])) }),
              {
                maxLength: 3,
              },
            )
            .map((content) => ({ type: "message", id: "msg_1", role: "assistant", content })),
        ),
        { maxLength: 3 },
      ),
      usage: maybe(fc.record({ input_tokens: count, output_tokens: count, total_tokens: count })),
    }),
    asStream(answer) {
      const status = answer["status"] === "incomplete" ? "incomplete" : "completed";
      return [{ type: `response.${status}`, response: answer }];
    },
  },
];

describe("plain text answers", () => {
  for (const { dialect, answers, asStream } of CASES) {
    test(`${dialect.name}: the whole answer reads as its stream does`, () => {
      fc.assert(
        fc.property(answers, (answer) => {
          const expected: Answer = collect(
            decode(
              dialect,
              asStream(answer).map((value) => dataFrame(value)),
            ),
          );
          const read = dialect.decodeAnswer?.(answer, { newId: counter() });
          // The raw numbers of a stream are merged ones.
          if (read && dialect === anthropic) read.usage.raw = expected.usage.raw;
          expect(read as unknown).toEqual(expected);
        }),
        { numRuns: 300 },
      );
    });
  }
});
