// The sixteen pairs of the bench: what a call of each client dialect is, and which channel speaks which upstream dialect.
// Refuses streams: the pairs are compared by whole answers of 1 KB, conversion both ways.

import type { Ask } from "./load.ts";

export const DIALECTS = ["chat", "responses", "messages", "gemini"] as const;
export type DialectName = (typeof DIALECTS)[number];

/** Channels that speak exactly one dialect for their model: types and names as operators add them. */
export const UPSTREAMS: Readonly<Record<DialectName, { type: number; model: string }>> = {
  chat: { type: 43, model: "deepseek-chat" },
  responses: { type: 1, model: "gpt-5-codex" },
  messages: { type: 14, model: "claude-sonnet-4-20250514" },
  gemini: { type: 24, model: "gemini-2.0-flash" },
};

const WORDS = "Say something short about rivers and the people who live on their banks.";

/** One call of a client that speaks `client`, to the model of `upstream`. */
export function askFor(client: DialectName, upstream: DialectName): Ask {
  const { model } = UPSTREAMS[upstream];
  const turns = [{ role: "user", content: WORDS }];
  switch (client) {
    case "chat":
      return {
        path: "/v1/chat/completions",
        body: JSON.stringify({ model, messages: turns, max_tokens: 256 }),
      };
    case "responses":
      return { path: "/v1/responses", body: JSON.stringify({ model, input: turns, max_output_tokens: 256 }) };
    case "messages":
      return { path: "/v1/messages", body: JSON.stringify({ model, messages: turns, max_tokens: 256 }) };
    case "gemini": {
      const contents = [{ role: "user", parts: [{ text: WORDS }] }];
      const body = JSON.stringify({ contents, generationConfig: { maxOutputTokens: 256 } });
      return { path: `/v1beta/models/${model}:generateContent`, body };
    }
  }
}
