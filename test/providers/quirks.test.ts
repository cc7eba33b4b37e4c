// What the catalogue changes in bodies: each rule by example, and what must hold whatever the body is.
// Refuses to look at addresses; see request.test.ts.
import { expect, test } from "bun:test";
import fc from "fast-check";
import { listProviders, providerOf } from "../../src/providers/catalog.ts";
import type { Operation, ProviderRow } from "../../src/providers/define.ts";
import { patchBody } from "../../src/providers/quirks.ts";
import type { JsonBody } from "../../src/providers/quirks.ts";

function row(type: number): ProviderRow {
  const found = providerOf(type);
  if (!found) throw new Error(`no row ${type}`);
  return found;
}

function patched(type: number, body: JsonBody, operation: Operation = "chat"): JsonBody {
  return patchBody(row(type), body, { operation }).body;
}

test("usage of a stream is asked for where the type reports it, and the client's other options stay", () => {
  expect(patched(1, { model: "m", stream: true })).toEqual({
    model: "m",
    stream: true,
    stream_options: { include_usage: true },
  });
  expect(patched(1, { stream: true, stream_options: { include_obfuscation: false } })).toEqual({
    stream: true,
    stream_options: { include_obfuscation: false, include_usage: true },
  });
  const asked = { stream: true, stream_options: { include_usage: true } };
  expect(patched(43, asked)).toBe(asked);
});

test("stream_options goes where the type does not know it, and where nothing is streamed", () => {
  expect(patched(6, { stream: true, stream_options: { include_usage: true } })).toEqual({ stream: true });
  expect(patched(1, { stream: false, stream_options: { include_usage: true } })).toEqual({ stream: false });
  // Responses has options of the same name with another meaning.
  const responses = { stream: true, stream_options: { include_obfuscation: false } };
  expect(patched(6, responses, "responses")).toBe(responses);
});

test("the operator may leave the asking to the client", () => {
  const body = { model: "m", stream: true };
  expect(patchBody(row(1), body, { operation: "chat", forceStreamUsage: false }).body).toBe(body);
});

test("OpenAI's reasoning models: the leading system message has another role", () => {
  const body = {
    model: "o1",
    messages: [
      { role: "system", content: "s", x: 1 },
      { role: "system", content: "t" },
    ],
  };
  expect(patched(1, body)).toEqual({
    model: "o1",
    messages: [
      { role: "developer", content: "s", x: 1 },
      { role: "system", content: "t" },
    ],
  });
  expect(patched(1, { model: "o1-mini", messages: [{ role: "system", content: "s" }] })).toEqual({
    model: "o1-mini",
    messages: [{ role: "system", content: "s" }],
  });
});

test("names that only begin like a reasoning model are left alone", () => {
  for (const model of ["open-mistral-7b", "omni-moderation", "olmo-high"]) {
    const body = { model, max_tokens: 5, temperature: 0.5 };
    expect(patched(1, body)).toBe(body);
  }
});

test("an effort in the model's name becomes the field of its endpoint", () => {
  expect(patched(1, { model: "o3-mini-low" })).toEqual({ model: "o3-mini", reasoning_effort: "low" });
  expect(patched(1, { model: "o3-mini-high", reasoning: { summary: "auto" } }, "responses")).toEqual({
    model: "o3-mini",
    reasoning: { summary: "auto", effort: "high" },
  });
  expect(patched(1, { model: "o3-mini-high" }, "responses")).toEqual({
    model: "o3-mini",
    reasoning: { effort: "high" },
  });
  expect(patched(48, { model: "grok-3-mini-beta-high", max_tokens: 1 })).toEqual({
    model: "grok-3-mini-beta",
    reasoning_effort: "high",
    max_completion_tokens: 1,
  });
  expect(patched(48, { model: "grok-3-beta", max_tokens: 1 })).toEqual({
    model: "grok-3-beta",
    max_tokens: 1,
  });
});

test("sampling bounds cut what is outside of them and never invent a value", () => {
  expect(patched(17, { stream: true, top_p: 0 })).toEqual({ stream: true, top_p: 0.001 });
  expect(patched(17, { stream: true, top_p: 1 })).toEqual({ stream: true, top_p: 0.999 });
  expect(patched(17, { stream: true })).toEqual({ stream: true });
  expect(patched(27, { top_p: 1 })).toEqual({ top_p: 0.99 });
  expect(patched(27, { top_p: 0 })).toEqual({ top_p: 0 });
  // What is no number is the upstream's to refuse.
  for (const value of [null, "0"]) {
    const body = { stream: true, top_p: value };
    expect(patched(17, body)).toBe(body);
  }
});

test("Qwen does not think in plain answers and may in streams", () => {
  expect(patched(17, { model: "qwen" })).toEqual({ model: "qwen", enable_thinking: false });
  const stream = { model: "qwen", stream: true, enable_thinking: true };
  expect(patched(17, stream)).toBe(stream);
});

test("Mistral gets its own names, pictures as text, and no field it answers 422 to", () => {
  expect(
    patched(42, {
      model: "m",
      seed: 0,
      user: "u",
      safe_prompt: false,
      max_completion_tokens: 3,
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "t" },
            { type: "image_url", image_url: { url: "https://p.example/1.png", detail: "low" } },
          ],
        },
      ],
    }),
  ).toEqual({
    model: "m",
    random_seed: 0,
    safe_prompt: false,
    max_tokens: 3,
    messages: [
      {
        role: "user",
        content: [
          { type: "text", text: "t" },
          { type: "image_url", image_url: "https://p.example/1.png" },
        ],
      },
    ],
  });
});

test("Zhipu gets bare base64, a list of stops, and addresses as they are", () => {
  const image = (address: string) => ({ type: "image_url", image_url: { url: address, detail: "low" } });
  const body = {
    stop: "x",
    messages: [
      { role: "user", content: [image("data:image/png;base64,AAAA"), image("https://p.example/1")] },
    ],
  };
  expect(patched(26, body)).toEqual({
    stop: ["x"],
    messages: [{ role: "user", content: [image("AAAA"), image("https://p.example/1")] }],
  });
});

test("Qianfan's search suffix becomes its search object, in which the client has the last word", () => {
  expect(patched(46, { model: "ernie-4.0-8k-search", web_search: { enable_trace: false } })).toEqual({
    model: "ernie-4.0-8k",
    web_search: { enable: true, enable_citation: true, enable_trace: false, enable_status: false },
  });
});

test("xAI's pictures lose the fields it refuses, its chats keep them", () => {
  expect(patched(48, { model: "grok-2-image", prompt: "p", n: 1, size: "1x1" }, "image-generations")).toEqual(
    {
      model: "grok-2-image",
      prompt: "p",
      n: 1,
    },
  );
  expect(patched(48, { model: "grok-2", user: "u" })).toEqual({ model: "grok-2", user: "u" });
});

const MODELS = [
  "gpt-4o",
  "o3-mini-high",
  "o1",
  "gpt-5-low",
  "grok-3-mini-beta-low",
  "ernie-search",
  "",
] as const;

const bodies = fc
  .record(
    {
      model: fc.oneof(fc.constantFrom(...MODELS), fc.jsonValue()),
      stream: fc.oneof(fc.boolean(), fc.jsonValue()),
      messages: fc.oneof(
        fc.array(
          fc.record({
            role: fc.constantFrom("system", "user"),
            content: fc.oneof(
              fc.string(),
              fc.array(
                fc.oneof(
                  fc.constant({ type: "image_url", image_url: { url: "data:image/png;base64,AA" } }),
                  fc.jsonValue(),
                ),
              ),
            ),
          }),
        ),
        fc.jsonValue(),
      ),
      top_p: fc.oneof(fc.double(), fc.jsonValue()),
      max_tokens: fc.jsonValue(),
      max_completion_tokens: fc.jsonValue(),
      reasoning: fc.jsonValue(),
      stop: fc.jsonValue(),
      seed: fc.jsonValue(),
      web_search: fc.jsonValue(),
      stream_options: fc.jsonValue(),
      temperature: fc.jsonValue(),
    },
    { requiredKeys: [] },
  )
  .chain((known) =>
    fc
      .dictionary(
        fc.string().map((key) => `x_${key}`),
        fc.jsonValue(),
      )
      .map((unknown): Record<string, unknown> => ({ ...known, ...unknown })),
  );
const calls = listProviders().flatMap((each) =>
  (Object.keys(each.operations) as Operation[]).map((operation) => ({ each, operation })),
);

function deepFreeze(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  Object.freeze(value);
  for (const inner of Object.values(value)) deepFreeze(inner);
}

test("whatever the body: the input is untouched, unknown fields survive, and `changed` names exactly the difference", () => {
  fc.assert(
    fc.property(bodies, fc.constantFrom(...calls), (body, { each, operation }) => {
      deepFreeze(body);
      const { body: after, changed } = patchBody(each, body, { operation });
      for (const key of Object.keys(body)) {
        if (key.startsWith("x_")) expect(after[key]).toBe(body[key]);
      }
      const rebuilt: Record<string, unknown> = { ...body };
      for (const key of changed) {
        if (Object.hasOwn(after, key)) rebuilt[key] = after[key];
        else delete rebuilt[key];
      }
      expect(rebuilt).toEqual({ ...after });
      if (changed.length === 0) expect(after).toBe(body);
    }),
    { numRuns: 300 },
  );
});

test("zero, false and null survive in every field that no rule concerns", () => {
  for (const { each, operation } of calls) {
    const body = { model: "plain", n: 0, echo: false, suffix: null, presence_penalty: 0, vendor: { x: 0 } };
    const kept: Record<string, unknown> = { ...body };
    for (const quirk of each.quirks)
      if (quirk.patch === "omit" && quirk.on?.includes(operation) === true)
        for (const field of quirk.fields) delete kept[field];
    expect(patchBody(each, body, { operation }).body).toMatchObject(kept);
  }
});

test("what a provider is not told of a request, or told otherwise, is named; what asks for nothing is not", () => {
  const dropped = (type: number, body: Record<string, unknown>, operation: Operation) =>
    patchBody(row(type), { model: "m", ...body }, { operation }).dropped;
  expect(dropped(42, { logit_bias: { 1: 1 }, logprobs: false, user: null, store: true }, "chat")).toEqual([
    "logit_bias",
    "store",
  ]);
  expect(dropped(42, { input: "a", user: "u", encoding_format: "base64" }, "embeddings")).toEqual(["user"]);
  expect(dropped(17, { enable_thinking: true, top_p: 1 }, "chat")).toEqual(["top_p", "enable_thinking"]);
  expect(dropped(17, { enable_thinking: true, top_p: 0.5, stream: true }, "chat")).toEqual([]);
  expect(dropped(34, { top_n: 2, return_documents: false }, "rerank")).toEqual([]);
});

test("what a provider makes one of is refused by name above one, and left alone below", () => {
  expect(() => patched(45, { model: "doubao-seedream", n: 2 }, "image-generations")).toThrow(
    "unsupported_field",
  );
  expect(
    patched(
      45,
      {
        model: "doubao-seedream",
        n: 1,
        size: "1x1",
        sequential_image_generation: "auto",
        sequential_image_generation_options: { max_images: 15 },
      },
      "image-generations",
    ),
  ).toEqual({
    model: "doubao-seedream",
    size: "1x1",
  });
  expect(patched(45, { model: "doubao-pro", n: 2 }, "chat")).toMatchObject({ n: 2 });
});
