// What the protocol tests share: reading fixtures, running decoders under the validator, stable ids.
// Refuses event lists that break an invariant.
import { expect } from "bun:test";
import { readFileSync } from "node:fs";
import { createSseReader } from "../../src/relay/wire/framing.ts";
import type { Dialect, WireFrame } from "../../src/protocol/dialect.ts";
import type { CanonicalEvent } from "../../src/protocol/events.ts";
import { anthropic } from "../../src/protocol/anthropic/dialect.ts";
import { gemini } from "../../src/protocol/gemini/dialect.ts";
import { openaiChat } from "../../src/protocol/openai-chat/dialect.ts";
import { openaiResponses } from "../../src/protocol/openai-responses/dialect.ts";
import { validateEvents } from "../../src/protocol/validate-events.ts";

/** Ids counted from one, so that expectations can name them. */
export function counter(): (prefix: string) => string {
  let next = 1;
  return (prefix) => `${prefix}${next++}`;
}

export function fixture(path: string): string {
  return readFileSync(new URL(`../fixtures/wire/${path}`, import.meta.url), "utf8");
}

export function jsonFixture(path: string): Record<string, unknown> {
  return JSON.parse(fixture(path)) as Record<string, unknown>;
}

/** The frames of a recorded or encoded stream. */
export function frames(text: string): WireFrame[] {
  const reader = createSseReader();
  return [...reader.push(new TextEncoder().encode(text)), ...reader.end()];
}

export function dataFrame(value: unknown, event = ""): WireFrame {
  return { event, data: typeof value === "string" ? value : JSON.stringify(value) };
}

/** All events of a stream, checked against the invariants. */
export function decode(dialect: Dialect, input: string | WireFrame[]): CanonicalEvent[] {
  const decoder = dialect.decodeStream?.({ newId: counter() });
  if (!decoder) throw new Error(`${dialect.name} has no stream decoder`);
  const list = typeof input === "string" ? frames(input) : input;
  const events = list.flatMap((frame) => decoder.push(frame));
  events.push(...decoder.end());
  expect(validateEvents(events)).toEqual([]);
  return events;
}

/** The wire text of an event list. */
export function encode(dialect: Dialect, events: readonly CanonicalEvent[], more: object = {}): string {
  const encoder = dialect.encodeStream?.({ newId: counter(), nowSeconds: 1_700_000_000, ...more });
  if (!encoder) throw new Error(`${dialect.name} has no stream encoder`);
  return events.map((event) => encoder.push(event)).join("");
}

/** Text of all blocks of a kind. */
export function textOf(events: readonly CanonicalEvent[], kind: string): string {
  const ats = new Set(
    events.flatMap((event) => (event.type === "open" && event.kind === kind ? [event.at] : [])),
  );
  return events
    .map((event) =>
      (event.type === "text" || event.type === "json") && ats.has(event.at) ? event.delta : "",
    )
    .join("");
}

/** Every dialect, in the order of the pair tests. */
export const ALL_DIALECTS = [openaiChat, openaiResponses, anthropic, gemini] as const;
