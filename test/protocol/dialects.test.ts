// Guarantees every dialect keeps for itself: requests there and back, streams under the validator, usage, errors.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { collect, explode } from "../../src/protocol/assemble.ts";
import type { Answer } from "../../src/protocol/assemble.ts";
import { Failure } from "../../src/shared/failures.ts";
import { promptTokens } from "../../src/shared/usage.ts";
import { anthropicRequest, chatRequest, geminiRequest, responsesRequest } from "./arbitraries.ts";
import { ALL_DIALECTS, counter, decode, encode, fixture, frames, jsonFixture } from "./support.ts";

/** Every recorded stream, by dialect. */
const STREAMS = {
  "openai-chat": ["text", "tools-interleaved"],
  anthropic: ["thinking-tools", "search"],
  "openai-responses": ["full"],
  gemini: ["thoughts-tools", "candidates"],
} as const;

const REQUESTS: Record<string, fc.Arbitrary<object>> = {
  "openai-chat": chatRequest,
  anthropic: anthropicRequest,
  "openai-responses": responsesRequest,
  gemini: geminiRequest,
};

/** What must be equal when an answer went through a wire and back: neighbouring texts of a choice may be joined. */
function essence(answer: Answer): unknown {
  const blocks: {
    kind: string;
    name?: string;
    text: string;
    choice: number;
    data?: string;
    notes: unknown[];
  }[] = [];
  const sorted = [...answer.blocks].sort((a, b) => (a.choice ?? 0) - (b.choice ?? 0));
  for (const { kind, name, text, choice = 0, data, notes } of sorted) {
    const kept = notes.filter((note) => note.note !== "logprobs");
    const last = blocks.at(-1);
    const call = kind === "tool-call" || kind === "hosted-tool";
    if (kind === "text" && last?.kind === kind && last.choice === choice) {
      last.text += text;
      last.notes.push(...kept);
    } else {
      const same = call && text !== "" ? JSON.stringify(JSON.parse(text)) : text;
      blocks.push({ kind, name, text: call && same === "{}" ? "" : same, choice, data, notes: [...kept] });
    }
  }
  return {
    blocks,
    prompt: promptTokens(answer.usage),
    output: answer.usage.output,
    reason: answer.reason,
    others: answer.others?.map(({ choice, reason }) => ({ choice, reason })),
  };
}

for (const dialect of ALL_DIALECTS) {
  describe(dialect.name, () => {
    test("a request with everything in it survives word for word", () => {
      const body = jsonFixture(`${dialect.name}/request-full.json`);
      const request = dialect.decodeRequest(body, { model: "m" });
      const again = dialect.encodeRequest(request, { model: body["model"] as string });
      const { model, ...rest } = again.body;
      const { model: said, ...given } = body;
      expect(rest).toEqual(given);
      if (said !== undefined) expect(model).toBe(said);
      expect(again.dropped).toEqual([]);
    });

    test("any request of known shape is encode(decode(x)), and nothing counts as dropped", () => {
      fc.assert(
        fc.property(REQUESTS[dialect.name] ?? fc.constant({}), (body) => {
          const given = JSON.parse(JSON.stringify(body)) as Record<string, unknown>;
          const request = dialect.decodeRequest(given, dialect.name === "gemini" ? { model: "m" } : {});
          const { body: again, dropped } = dialect.encodeRequest(request);
          if (dialect.name === "gemini") delete again["model"];
          expect(again).toEqual(given);
          expect(dropped).toEqual([]);
        }),
        { numRuns: 300 },
      );
    });

    test("a request converts to every other dialect or is refused with the name of a field", () => {
      fc.assert(
        fc.property(REQUESTS[dialect.name] ?? fc.constant({}), (body) => {
          const given = JSON.parse(JSON.stringify(body)) as Record<string, unknown>;
          const request = dialect.decodeRequest(given, dialect.name === "gemini" ? { model: "m" } : {});
          for (const other of ALL_DIALECTS) {
            try {
              const wire = other.encodeRequest(request).body;
              other.decodeRequest(JSON.parse(JSON.stringify(wire)), { model: "m" });
            } catch (error) {
              expect(error).toMatchObject({
                kind: "client",
                code: "unsupported_field",
                param: expect.any(String),
              });
            }
          }
        }),
        { numRuns: 300 },
      );
    });

    for (const name of STREAMS[dialect.name]) {
      test(`${name}: the stream keeps the invariants, however it is cut short`, () => {
        const list = frames(fixture(`${dialect.name}/${name}.sse`));
        for (let length = 0; length <= list.length; length++) decode(dialect, list.slice(0, length));
        expect(decode(dialect, list).at(-1)?.type).toBe("finish");
        expect(decode(dialect, list.slice(0, 1)).at(-1)).toMatchObject({
          type: "fail",
          failure: { kind: "broken-stream" },
        });
      });

      test(`${name}: decode(encode(answer)) is the same answer, streamed and whole`, () => {
        const answer = collect(decode(dialect, fixture(`${dialect.name}/${name}.sse`)));
        const streamed = collect(decode(dialect, encode(dialect, explode(answer))));
        expect(essence(streamed)).toEqual(essence(answer));
        const context = { newId: counter(), nowSeconds: 1 };
        const whole = dialect.decodeAnswer(dialect.encodeAnswer(answer, context), context);
        expect(essence(whole)).toEqual(essence(answer));
      });

      test(`${name}: the meter sees what the decoder sees`, () => {
        const text = fixture(`${dialect.name}/${name}.sse`);
        const meter = dialect.meterStream();
        for (const frame of frames(text)) meter.push(frame);
        const { usage } = collect(decode(dialect, text));
        expect(meter.state).toMatchObject({ ended: true, usageFinal: true, sawText: true, failure: null });
        expect(meter.state.usage).toMatchObject({
          input: usage.input,
          output: usage.output,
          calls: usage.calls,
        });
        expect(meter.state.textChars).toBeGreaterThan(0);
      });
    }

    test("a whole answer survives decodeAnswer and encodeAnswer", () => {
      const wire = jsonFixture(`${dialect.name}/answer.json`);
      const context = { newId: counter(), nowSeconds: 1 };
      const answer = dialect.decodeAnswer(wire, context);
      const again = dialect.encodeAnswer(answer, context);
      expect(essence(dialect.decodeAnswer(again, context))).toEqual(essence(answer));
      expect(again).toMatchObject(withoutIds(wire) as object);
    });

    test("frames of any shape never throw and keep the invariants", () => {
      const types = frames(
        STREAMS[dialect.name].map((name) => fixture(`${dialect.name}/${name}.sse`)).join(""),
      ).map((frame) => frame.data);
      const value = fc.oneof(
        fc.string(),
        fc.integer(),
        fc.constant(null),
        fc.constant({}),
        fc.constant([]),
        fc.constant([null, 1, "x", {}]),
      );
      const mutated = fc
        .tuple(fc.constantFrom(...types), fc.nat(30), value)
        .map(([text, place, other]) => mutate(text, place, other));
      fc.assert(
        fc.property(fc.array(fc.oneof(fc.constantFrom(...types), mutated), { maxLength: 25 }), (list) => {
          decode(
            dialect,
            list.map((data) => ({ event: "", data })),
          );
          const meter = dialect.meterStream();
          for (const data of list) meter.push({ event: "", data });
        }),
        { numRuns: 300 },
      );
    });

    test("answers of any shape give an answer or a Failure, nothing else", () => {
      fc.assert(
        fc.property(fc.anything(), (body) => {
          try {
            dialect.decodeAnswer(body, { newId: counter() });
          } catch (error) {
            expect(error).toBeInstanceOf(Failure);
          }
        }),
      );
    });

    test("requests of any shape give a request or a client Failure, nothing else", () => {
      const body = jsonFixture(`${dialect.name}/request-full.json`);
      const keys = Object.keys(body);
      fc.assert(
        fc.property(fc.constantFrom(...keys), fc.jsonValue(), (key, value) => {
          try {
            const request = dialect.decodeRequest({ ...body, [key]: value }, {});
            for (const other of ALL_DIALECTS) {
              try {
                other.encodeRequest(request);
              } catch (error) {
                expect(error).toBeInstanceOf(Failure);
              }
            }
          } catch (error) {
            expect(error).toMatchObject({ kind: "client", status: 400 });
          }
        }),
        { numRuns: 300 },
      );
    });

    test("failures are written in the dialect's envelope, and text never shows codes of the gateway's inside", () => {
      const failure = new Failure("limit", "rate_limit_total", { internal: "secret detail" });
      const wire = dialect.encodeFailure(failure, "Too fast.");
      expect(wire.status).toBe(429);
      expect(JSON.stringify(wire.body)).toContain("Too fast.");
      expect(JSON.stringify(wire.body)).not.toContain("secret");
      const events = encode(dialect, [{ type: "start" }, { type: "fail", failure }], {
        failureText: () => "Too fast.",
      });
      expect(events).toContain("Too fast.");
      expect(decode(dialect, events).at(-1)).toMatchObject({
        type: "fail",
        failure: { kind: "upstream-limit" },
      });
    });
  });
}

/** Ids of items are made anew in Responses answers. */
function withoutIds(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutIds);
  if (typeof value !== "object" || value === null) return value;
  const out: Record<string, unknown> = {};
  for (const [key, inner] of Object.entries(value))
    if (key !== "id" && key !== "summary") out[key] = withoutIds(inner);
  return out;
}

/** The JSON text with one of its values replaced. */
function mutate(text: string, place: number, other: unknown): string {
  let at = 0;
  try {
    return JSON.stringify(JSON.parse(text), (key, value: unknown) =>
      key !== "" && at++ === place ? other : value,
    );
  } catch {
    return text;
  }
}
