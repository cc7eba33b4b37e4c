// Long answers in the four dialects for the tests of holds: words of one token each, as many as a test wants.
// Refuses to know the gateway: whether a limit is kept is the test's choice, as it is a provider's.
import type { DialectName } from "../../../src/protocol/canonical.ts";
import type { RecordedRequest, Script, Step } from "../../support/fake-upstream.ts";
import { HI, startGateway } from "../support.ts";
import type { Gateway } from "../support.ts";

export const DIALECTS = ["openai-chat", "openai-responses", "anthropic", "gemini"] as const;
/** Models that deliver what they bill; each is served in its own dialect only. */
export const MODELS: Readonly<Record<DialectName, string>> = {
  "openai-chat": "deepseek-chat",
  "openai-responses": "gpt-4.1-nano",
  anthropic: "claude-3-5-haiku-latest",
  gemini: "gemini-2.0-flash",
};
/** Units of a token that goes in, and of one that comes out. */
export const IN = 1;
export const OUT = 4;

/** What a stream holds that ends at its limit as its client knows it. */
export const CLEAN_END: Readonly<Record<DialectName, readonly string[]>> = {
  "openai-chat": ['"finish_reason":"length"', "data: [DONE]"],
  "openai-responses": ['"type":"response.incomplete"', '"reason":"max_output_tokens"'],
  anthropic: ['"type":"content_block_stop"', '"stop_reason":"max_tokens"', '"type":"message_stop"'],
  gemini: ['"finishReason":"MAX_TOKENS"'],
};

/** A gateway with a channel for each dialect; `more` names further models of the OpenAI channel. */
export async function startPriced(
  database: "sqlite" | "postgres",
  more: readonly string[],
  prices: Readonly<Record<string, readonly [ratio: number, completion: number]>> = {},
): Promise<Gateway> {
  const g = await startGateway({
    database,
    channel: { type: 1, models: [MODELS["openai-responses"], ...more].join(",") },
  });
  for (const [type, models] of [
    [43, MODELS["openai-chat"]],
    [14, MODELS.anthropic],
    [24, MODELS.gemini],
  ])
    await g.app.createChannel({ type, models, baseUrl: g.upstream.url });
  const names = [...Object.values(MODELS), ...more];
  const maps = (at: 0 | 1, usual: number) =>
    JSON.stringify(Object.fromEntries(names.map((name) => [name, prices[name]?.[at] ?? usual])));
  await g.setOption("ModelRatio", maps(0, IN));
  await g.setOption("CompletionRatio", maps(1, OUT));
  await g.setOption("CacheRatio", "{}");
  return g;
}

/** Somebody with so much, and a key of theirs. */
export async function person(
  g: Gateway,
  quota = 10_000_000,
  key: Record<string, unknown> = {},
): Promise<{ id: number; key: string }> {
  const user = await g.app.createUser({ quota });
  return { id: user.id, key: (await g.app.createToken(user.id, key)).key };
}

/** What the upstream was sent last. */
export const lastBody = (g: Gateway): Record<string, unknown> => g.upstream.requests.at(-1)?.json() ?? {};

/** Four characters, one token, and one token by its length. */
const WORD = "tip ";

export interface Long {
  words: number;
  /** Words in one chunk. */
  per: number;
  /** What the upstream says of its usage at the end; null = nothing. */
  usage?: { input: number; output: number } | null;
  /** Happens before each chunk but the first. */
  between?: Step;
}

const sse = (event: string, data: object): string =>
  `${event === "" ? "" : `event: ${event}\n`}data: ${JSON.stringify(data)}\n\n`;

interface Wire {
  begin: string[];
  text: (words: string) => string;
  end: (usage: { input: number; output: number } | null) => string[];
}

const CHUNK = { id: "chatcmpl-up", object: "chat.completion.chunk", created: 1_750_000_000, model: "m" };
const RESPONSE = { id: "resp_up", object: "response", created_at: 1_750_000_000, model: "m", output: [] };

const WIRES: Readonly<Record<DialectName, Wire>> = {
  "openai-chat": {
    begin: [sse("", { ...CHUNK, choices: [{ index: 0, delta: { role: "assistant", content: "" } }] })],
    text: (content) => sse("", { ...CHUNK, choices: [{ index: 0, delta: { content } }] }),
    end: (usage) => [
      sse("", { ...CHUNK, choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }),
      ...(usage
        ? [
            sse("", {
              ...CHUNK,
              choices: [],
              usage: {
                prompt_tokens: usage.input,
                completion_tokens: usage.output,
                total_tokens: usage.input + usage.output,
              },
            }),
          ]
        : []),
      "data: [DONE]\n\n",
    ],
  },
  "openai-responses": {
    begin: [
      sse("response.created", { type: "response.created", response: { ...RESPONSE, status: "in_progress" } }),
      sse("response.output_item.added", {
        type: "response.output_item.added",
        output_index: 0,
        item: { type: "message", id: "msg_up", status: "in_progress", role: "assistant", content: [] },
      }),
      sse("response.content_part.added", {
        type: "response.content_part.added",
        item_id: "msg_up",
        output_index: 0,
        content_index: 0,
        part: { type: "output_text", text: "", annotations: [] },
      }),
    ],
    text: (delta) =>
      sse("response.output_text.delta", {
        type: "response.output_text.delta",
        item_id: "msg_up",
        output_index: 0,
        content_index: 0,
        delta,
      }),
    end: (usage) => [
      sse("response.completed", {
        type: "response.completed",
        response: {
          ...RESPONSE,
          status: "completed",
          ...(usage
            ? {
                usage: {
                  input_tokens: usage.input,
                  output_tokens: usage.output,
                  total_tokens: usage.input + usage.output,
                },
              }
            : {}),
        },
      }),
    ],
  },
  anthropic: {
    begin: [
      sse("message_start", {
        type: "message_start",
        message: {
          id: "msg_up",
          type: "message",
          role: "assistant",
          model: "m",
          content: [],
          stop_reason: null,
          usage: { input_tokens: 11, output_tokens: 1 },
        },
      }),
      sse("content_block_start", {
        type: "content_block_start",
        index: 0,
        content_block: { type: "text", text: "" },
      }) + sse("ping", { type: "ping" }),
    ],
    text: (text) =>
      sse("content_block_delta", {
        type: "content_block_delta",
        index: 0,
        delta: { type: "text_delta", text },
      }),
    end: (usage) => [
      sse("content_block_stop", { type: "content_block_stop", index: 0 }),
      sse("message_delta", {
        type: "message_delta",
        delta: { stop_reason: "end_turn", stop_sequence: null },
        ...(usage ? { usage: { input_tokens: usage.input, output_tokens: usage.output } } : {}),
      }),
      sse("message_stop", { type: "message_stop" }),
    ],
  },
  gemini: {
    begin: [],
    text: (text) =>
      sse("", {
        candidates: [{ content: { role: "model", parts: [{ text }] }, index: 0 }],
        modelVersion: "m",
        responseId: "gem_up",
      }),
    end: (usage) => [
      sse("", {
        candidates: [{ content: { role: "model", parts: [{ text: "" }] }, finishReason: "STOP", index: 0 }],
        ...(usage
          ? {
              usageMetadata: {
                promptTokenCount: usage.input,
                candidatesTokenCount: usage.output,
                totalTokenCount: usage.input + usage.output,
              },
            }
          : {}),
      }),
    ],
  },
};

/** A stream of so many words. */
export function longStream(dialect: DialectName, { words, per, usage = null, between }: Long): Script {
  const { begin, text, end } = WIRES[dialect];
  const steps: Step[] = [...begin];
  for (let left = words; left > 0; left -= per) {
    if (between !== undefined && left < words) steps.push(between);
    steps.push(text(WORD.repeat(Math.min(per, left))));
  }
  return { headers: { "content-type": "text/event-stream" }, steps: [...steps, ...end(usage)] };
}

/** No more than the shortest prompt is counted for. */
export const INPUT_TOKENS = 4;

/** A whole answer of as many tokens as its limit allows, or of `words`; it reports what it gave. */
export function completeAnswer(dialect: DialectName, words: number) {
  return (request: Pick<RecordedRequest, "json">): Script => {
    const output = Math.min(words, limitOf(dialect, request.json()) ?? words);
    const text = WORD.repeat(output);
    const input = INPUT_TOKENS;
    const usage = { input_tokens: input, output_tokens: output, total_tokens: input + output };
    const body: Record<DialectName, object> = {
      "openai-chat": {
        ...CHUNK,
        object: "chat.completion",
        choices: [{ index: 0, message: { role: "assistant", content: text }, finish_reason: "stop" }],
        usage: { prompt_tokens: input, completion_tokens: output, total_tokens: input + output },
      },
      "openai-responses": {
        ...RESPONSE,
        status: "completed",
        output: [
          {
            type: "message",
            id: "msg_up",
            status: "completed",
            role: "assistant",
            content: [{ type: "output_text", text, annotations: [] }],
          },
        ],
        usage,
      },
      anthropic: {
        id: "msg_up",
        type: "message",
        role: "assistant",
        model: "m",
        content: [{ type: "text", text }],
        stop_reason: "end_turn",
        usage: { input_tokens: input, output_tokens: output },
      },
      gemini: {
        candidates: [{ content: { role: "model", parts: [{ text }] }, finishReason: "STOP", index: 0 }],
        usageMetadata: {
          promptTokenCount: input,
          candidatesTokenCount: output,
          totalTokenCount: input + output,
        },
      },
    };
    return { headers: { "content-type": "application/json" }, steps: [JSON.stringify(body[dialect])] };
  };
}

/** The limit that a request of the dialect names. */
export function limitOf(dialect: DialectName, body: Record<string, unknown>): number | undefined {
  const config = body["generationConfig"] as { maxOutputTokens?: number } | undefined;
  const named =
    dialect === "gemini"
      ? config?.maxOutputTokens
      : dialect === "openai-responses"
        ? body["max_output_tokens"]
        : (body["max_completion_tokens"] ?? body["max_tokens"]);
  return typeof named === "number" ? named : undefined;
}

/** A call in the client's dialect; `limit` as that dialect writes it. */
export function ask(
  g: Gateway,
  dialect: DialectName,
  model: string,
  options: {
    key: string;
    stream?: boolean;
    limit?: number;
    fields?: Record<string, unknown>;
    headers?: Record<string, string>;
  },
): Promise<Response> {
  const headers = { authorization: `Bearer ${options.key}`, ...options.headers };
  const { stream = false, limit, fields = {} } = options;
  const named = (field: string) => (limit === undefined ? {} : { [field]: limit });
  switch (dialect) {
    case "openai-chat":
      return g.post(
        "/v1/chat/completions",
        { model, messages: HI, stream, ...named("max_tokens"), ...fields },
        headers,
      );
    case "openai-responses":
      return g.post(
        "/v1/responses",
        { model, input: "hi", stream, ...named("max_output_tokens"), ...fields },
        headers,
      );
    case "anthropic":
      return g.post(
        "/v1/messages",
        { model, messages: HI, stream, ...(limit === undefined ? {} : { max_tokens: limit }), ...fields },
        headers,
      );
    case "gemini":
      return g.post(
        `/v1beta/models/${model}:${stream ? "streamGenerateContent?alt=sse" : "generateContent"}`,
        {
          contents: [{ role: "user", parts: [{ text: "hi" }] }],
          ...(limit === undefined ? {} : { generationConfig: { maxOutputTokens: limit } }),
          ...fields,
        },
        headers,
      );
  }
}

/** How often the word stands in the text that reached the client. */
export function wordsIn(text: string): number {
  return text.split("tip").length - 1;
}
