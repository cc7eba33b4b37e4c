// A small make-believe provider on loopback in OpenAI's dialect: chat (also streaming), embeddings, models.
// Its answers are made of stock sentences. Only `bun run demo` starts it.

const SENTENCES = [
  "A weir is a low dam that measures what flows over it.",
  "Every token that passes here is counted, priced and written down before the last byte leaves.",
  "堰是横跨河流的低坝，水从坝顶流过，流量因此可以被计量。",
  "This answer comes from the demo provider, so no account at any real provider was used.",
  "Ask again and you will get another stock sentence; the bill is computed as if it were real.",
];

const PACE_MS = 25;

interface ChatBody {
  model?: string;
  stream?: boolean;
  stream_options?: { include_usage?: boolean };
  messages?: { content?: unknown }[];
  input?: unknown;
}

/** About four letters a token, or one Han character: good enough for a provider that is not real. */
function countTokens(text: string): number {
  const han = text.match(/\p{Script=Han}/gu)?.length ?? 0;
  return Math.max(1, han + Math.ceil((text.length - han) / 4));
}

function answerText(seed: number): string {
  const picked = Array.from(
    { length: 1 + (seed % 3) },
    (_, i) => SENTENCES[(seed + i * 2) % SENTENCES.length],
  );
  return picked.join(" ");
}

function chat(body: ChatBody): Response {
  const prompt = JSON.stringify(body.messages ?? []);
  const text = answerText(countTokens(prompt) + Math.floor(Math.random() * 7));
  const usage = {
    prompt_tokens: countTokens(prompt),
    completion_tokens: countTokens(text),
    total_tokens: countTokens(prompt) + countTokens(text),
  };
  const base = {
    id: `chatcmpl-${crypto.randomUUID()}`,
    created: Math.floor(Date.now() / 1000),
    model: body.model,
  };
  if (body.stream !== true) {
    return Response.json({
      ...base,
      object: "chat.completion",
      choices: [{ index: 0, message: { role: "assistant", content: text }, finish_reason: "stop" }],
      usage,
    });
  }
  const pieces = text.match(/\S+\s*|\s+/g) ?? [text];
  const encoder = new TextEncoder();
  const frame = (data: unknown) =>
    encoder.encode(`data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`);
  const chunk = (delta: object, finish: string | null = null) => ({
    ...base,
    object: "chat.completion.chunk",
    choices: [{ index: 0, delta, finish_reason: finish }],
  });
  let position = -1;
  return new Response(
    new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          position++;
          if (position === 0) return controller.enqueue(frame(chunk({ role: "assistant", content: "" })));
          if (position <= pieces.length) {
            await Bun.sleep(PACE_MS);
            return controller.enqueue(frame(chunk({ content: pieces[position - 1] })));
          }
          controller.enqueue(frame(chunk({}, "stop")));
          if (body.stream_options?.include_usage) {
            controller.enqueue(frame({ ...base, object: "chat.completion.chunk", choices: [], usage }));
          }
          controller.enqueue(frame("[DONE]"));
          controller.close();
        },
      },
      { highWaterMark: 0 },
    ),
    { headers: { "content-type": "text/event-stream" } },
  );
}

function embeddings(body: ChatBody): Response {
  const inputs = Array.isArray(body.input) ? body.input : [body.input];
  const tokens = inputs.reduce<number>((sum, each) => sum + countTokens(String(each)), 0);
  return Response.json({
    object: "list",
    model: body.model,
    data: inputs.map((each, index) => ({
      object: "embedding",
      index,
      embedding: Array.from({ length: 16 }, (_, i) => Math.sin(String(each).length + i) / 4),
    })),
    usage: { prompt_tokens: tokens, total_tokens: tokens },
  });
}

export const DEMO_MODELS = ["gpt-4o", "gpt-4o-mini", "text-embedding-3-small"];

/** Starts the provider on a free port of 127.0.0.1. */
export function startDemoProvider(): { url: string; stop(): void } {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    async fetch(request) {
      const { pathname } = new URL(request.url);
      if (pathname === "/v1/models") {
        return Response.json({
          object: "list",
          data: DEMO_MODELS.map((id) => ({ id, object: "model", owned_by: "demo" })),
        });
      }
      const body = (await request.json().catch(() => ({}))) as ChatBody;
      if (pathname === "/v1/chat/completions") return chat(body);
      if (pathname === "/v1/embeddings") return embeddings(body);
      return Response.json(
        { error: { message: "the demo provider has no such call", type: "invalid_request_error" } },
        { status: 404 },
      );
    },
  });
  return { url: `http://127.0.0.1:${server.port}`, stop: () => void server.stop(true) };
}
