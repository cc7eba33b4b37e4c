// The beginnings of streams in every dialect, whose usage is no last word yet, and the requests that ask for them.
// Refuses to end them: a test cuts, leaves or drains.
import type { UPSTREAMS } from "../../support/dialect-upstream.ts";
import { sse } from "../../support/fake-upstream.ts";
import type { Script, Step } from "../../support/fake-upstream.ts";

const WORDS = "Once upon a time there was a gateway that counted every word it passed on. ".repeat(20);
/** No encoder makes fewer tokens of that; the estimate makes more. */
export const LEAST_TOKENS = 250;
export const event = (name: string, data: object): string =>
  `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;

/** Frames that report 1,000 tokens of input, 600 of them cached, and next to no output; then the text. */
export const FRAMES: Record<keyof typeof UPSTREAMS, Step[]> = {
  "openai-chat": [
    sse({ choices: [{ index: 0, delta: { role: "assistant", content: "" } }], usage: chatUsage(0) }),
    sse({ choices: [{ index: 0, delta: { content: WORDS } }], usage: chatUsage(1) }),
  ],
  anthropic: [
    event("message_start", {
      type: "message_start",
      message: {
        id: "msg_1",
        type: "message",
        role: "assistant",
        model: "claude",
        content: [],
        usage: { input_tokens: 400, cache_read_input_tokens: 600, output_tokens: 1 },
      },
    }),
    event("content_block_start", {
      type: "content_block_start",
      index: 0,
      content_block: { type: "text", text: "" },
    }),
    event("content_block_delta", {
      type: "content_block_delta",
      index: 0,
      delta: { type: "text_delta", text: WORDS },
    }),
  ],
  "openai-responses": [
    event("response.created", { type: "response.created", response: responseWith("in_progress") }),
    event("response.in_progress", { type: "response.in_progress", response: responseWith("in_progress") }),
    event("response.output_item.added", {
      type: "response.output_item.added",
      output_index: 0,
      item: { id: "msg_1", type: "message", role: "assistant", content: [] },
    }),
    event("response.output_text.delta", {
      type: "response.output_text.delta",
      item_id: "msg_1",
      output_index: 0,
      content_index: 0,
      delta: WORDS,
    }),
  ],
  gemini: [
    sse({
      candidates: [{ index: 0, content: { role: "model", parts: [{ text: WORDS }] } }],
      usageMetadata: {
        promptTokenCount: 1000,
        cachedContentTokenCount: 600,
        candidatesTokenCount: 1,
        totalTokenCount: 1001,
      },
    }),
  ],
};

export function chatUsage(output: number) {
  return {
    prompt_tokens: 1000,
    completion_tokens: output,
    total_tokens: 1000 + output,
    prompt_tokens_details: { cached_tokens: 600 },
  };
}

function responseWith(status: string) {
  return {
    id: "resp_1",
    object: "response",
    status,
    output: [],
    usage: {
      input_tokens: 1000,
      input_tokens_details: { cached_tokens: 600 },
      output_tokens: 0,
      total_tokens: 1000,
    },
  };
}

export const script = (steps: Step[]): Script => ({
  headers: { "content-type": "text/event-stream" },
  steps,
});

/** A streamed request of each client dialect for a model. */
export const CLIENTS: Record<string, (model: string) => { path: string; body: unknown }> = {
  "openai-chat": (model) => ({
    path: "/v1/chat/completions",
    body: { model, stream: true, max_tokens: 4000, messages: [{ role: "user", content: "hi" }] },
  }),
  anthropic: (model) => ({
    path: "/v1/messages",
    body: { model, stream: true, max_tokens: 4000, messages: [{ role: "user", content: "hi" }] },
  }),
  "openai-responses": (model) => ({
    path: "/v1/responses",
    body: { model, stream: true, max_output_tokens: 4000, input: "hi" },
  }),
  gemini: (model) => ({
    path: `/v1beta/models/${model}:streamGenerateContent?alt=sse`,
    body: {
      contents: [{ role: "user", parts: [{ text: "hi" }] }],
      generationConfig: { maxOutputTokens: 4000 },
    },
  }),
};
