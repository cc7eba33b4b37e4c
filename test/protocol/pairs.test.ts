// Guarantees of all sixteen pairs of client and upstream dialect: the same conversation, the same answer,
// the same proof of thinking, and a clear end whatever happens.
import { describe, expect, test } from "bun:test";
import { collect, explode } from "../../src/protocol/assemble.ts";
import type { Answer } from "../../src/protocol/assemble.ts";
import type { CanonicalRequest, Part } from "../../src/protocol/canonical.ts";
import { mergeTurns } from "../../src/protocol/turns.ts";
import { promptTokens } from "../../src/shared/usage.ts";
import { ALL_DIALECTS, counter, decode, encode, fixture, frames, jsonFixture } from "./support.ts";

type AnyDialect = (typeof ALL_DIALECTS)[number];

const RICH_STREAM = {
  "openai-chat": "tools-interleaved",
  anthropic: "thinking-tools",
  "openai-responses": "full",
  gemini: "thoughts-tools",
} as const;

/** The conversation apart from what the wire decides: spelling, ids (by order), and where turns are cut. */
function meaning(request: CanonicalRequest): unknown {
  const ids: string[] = [];
  const place = (id: string): number => {
    if (!ids.includes(id)) ids.push(id);
    return ids.indexOf(id);
  };
  const part = (value: Part): unknown => {
    if (value.type === "text") return value.text;
    if (value.type === "image") return value.source;
    if (value.type === "tool-call")
      return { call: place(value.id), name: value.name, input: JSON.parse(value.input) };
    if (value.type === "tool-result") return { result: place(value.id), content: value.content.map(part) };
    return value.type;
  };
  const turns = mergeTurns(request.messages, (role) =>
    role === "assistant" ? role : role === "system" || role === "developer" ? null : "user",
  );
  const { maxOutputTokens, temperature, topP } = request.settings;
  return {
    turns: turns.map((turn) => ({
      who: turn.role === "tool" ? "user" : turn.role,
      parts: turn.parts.map(part),
    })),
    tools: request.tools?.map((tool) =>
      tool.type === "function" ? [tool.name, tool.description, tool.schema] : tool,
    ),
    choice: request.toolChoice,
    format:
      request.responseFormat?.type === "json-schema" ? request.responseFormat.schema : request.responseFormat,
    limits: [maxOutputTokens, temperature, topP],
  };
}

/** The answer apart from ids and notes; neighbouring texts are one, as not every wire can tell them apart. */
function substance(answer: Answer): unknown {
  const text = (kind: string): string =>
    answer.blocks.map((block) => (block.kind === kind ? block.text : "")).join("");
  return {
    thinking: text("thinking"),
    text: text("text"),
    calls: answer.blocks
      .filter((block) => block.kind === "tool-call")
      .map((block) => [block.name, JSON.parse(block.text || "{}")]),
    reason: answer.reason,
    prompt: promptTokens(answer.usage),
    output: answer.usage.output.text + answer.usage.output.thinking,
    cacheRead: answer.usage.input.cacheRead,
  };
}

/** The client's next request: its conversation so far and the answer, exactly as it was given. */
function nextRequest(client: AnyDialect, answer: Record<string, unknown>): Record<string, unknown> {
  const first = (list: unknown): Record<string, unknown> => (list as Record<string, unknown>[])[0] ?? {};
  switch (client.name) {
    case "openai-chat":
      return { model: "m", messages: [{ role: "user", content: "q" }, first(answer["choices"])["message"]] };
    case "anthropic":
      return {
        model: "m",
        max_tokens: 9,
        messages: [
          { role: "user", content: "q" },
          { role: "assistant", content: answer["content"] },
        ],
      };
    case "openai-responses":
      return { model: "m", input: [{ role: "user", content: "q" }, ...(answer["output"] as unknown[])] };
    case "gemini":
      return { contents: [{ role: "user", parts: [{ text: "q" }] }, first(answer["candidates"])["content"]] };
  }
}

for (const client of ALL_DIALECTS) {
  for (const upstream of ALL_DIALECTS) {
    describe(`${client.name} client, ${upstream.name} upstream`, () => {
      const stream = fixture(`${upstream.name}/${RICH_STREAM[upstream.name]}.sse`);

      test("the request says the same to the upstream", () => {
        const asked = client.decodeRequest(jsonFixture(`${client.name}/conversation.json`), { model: "m" });
        const { body, dropped } = upstream.encodeRequest(asked);
        expect(dropped).toEqual([]);
        const heard = upstream.decodeRequest(JSON.parse(JSON.stringify(body)), { model: "m" });
        expect(meaning(heard)).toEqual(meaning(asked));
        const written = upstream.decodeRequest(jsonFixture(`${upstream.name}/conversation.json`), {
          model: "m",
        });
        expect(meaning(heard)).toEqual(meaning(written));
      });

      test("the streamed answer says the same to the client", () => {
        const answer = collect(decode(upstream, stream));
        const seen = collect(decode(client, encode(client, decode(upstream, stream), { model: "shown" })));
        expect(substance(seen)).toEqual(substance(answer));
        expect(seen.model).toBe("shown");
      });

      test("the whole answer says the same as the streamed one", () => {
        const answer = collect(decode(upstream, stream));
        const context = { newId: counter(), nowSeconds: 7 };
        const whole = client.decodeAnswer(client.encodeAnswer(answer, context), context);
        expect(substance(whole)).toEqual(substance(answer));
      });

      test("the upstream's proof of thinking comes back to it unchanged", () => {
        const answer = collect(decode(upstream, stream));
        const context = { newId: counter(), nowSeconds: 7 };
        const proofs =
          JSON.stringify(upstream.encodeAnswer(answer, context)).match(
            /EqQBsig\+\/=|RWRhdGE=|gAAAABenc-_==|Q2lRQmc=/g,
          ) ?? [];
        // Through the stream, as the client would put it together, and whole.
        for (const seen of [answer, collect(decode(client, encode(client, explode(answer))))]) {
          const shown = client.encodeAnswer(seen, context) as Record<string, unknown>;
          const again = client.decodeRequest(nextRequest(client, shown), { model: "gemini-2.5-pro" });
          const wire = JSON.stringify(upstream.encodeRequest(again).body);
          for (const proof of proofs) expect(wire).toContain(`"${proof}"`);
          // Encrypted reasoning is only valid under its item's id.
          if (upstream.name === "openai-responses") expect(wire).toContain('"id":"rs_01"');
          for (const other of ALL_DIALECTS)
            if (other !== upstream) expect(wire).not.toContain(`"${other.name}.`);
        }
      });

      test("a foreign proof never reaches an upstream that did not make it", () => {
        const answer = collect(decode(upstream, stream));
        const shown = client.encodeAnswer(answer, { newId: counter(), nowSeconds: 7 }) as Record<
          string,
          unknown
        >;
        for (const other of ALL_DIALECTS) {
          if (other === upstream || other === client) continue;
          const again = client.decodeRequest(nextRequest(client, shown), { model: "m" });
          expect(JSON.stringify(other.encodeRequest(again).body)).not.toMatch(
            /EqQBsig|RWRhdGE|gAAAABenc|Q2lRQmc/,
          );
        }
      });

      test("a stream that breaks off ends in an error the client understands, never cleanly", () => {
        const list = frames(stream);
        for (let length = 1; length < list.length - 2; length += 3) {
          const wire = encode(client, decode(upstream, list.slice(0, length)));
          expect(decode(client, wire).at(-1)).toMatchObject({
            type: "fail",
            failure: { kind: "upstream-down" },
          });
        }
      });
    });
  }
}
