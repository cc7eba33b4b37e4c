// MiniMax on loopback in its documented form: refusals in base_resp under status 200, a last chunk that repeats the
// whole message and is followed by nothing, sound as hexadecimal digits. Refuses foreign keys the same way.
type Json = Record<string, unknown>;

export const KEY = "minimax-key";

const good = { status_code: 0, status_msg: "" };
const head = { id: "04ecb5d9b1921ae0fb0e8da9017a5474", created: 1_755_153_113, model: "abab6.5s-chat" };
const usage = { total_tokens: 18, prompt_tokens: 11, completion_tokens: 7 };

const refuse = (status_code: number): Json => ({
  base_resp: { status_code, status_msg: `says ${status_code}` },
});
const event = (wire: Json): string => `data: ${JSON.stringify(wire)}\n\n`;

const CALLS = [
  { id: "call_1", type: "function", function: { name: "get_weather", arguments: '{"city":"Paris"}' } },
];

function chat(body: Json): Response {
  const prompt = String((body["messages"] as { content: unknown }[]).at(-1)?.content);
  const code = /^code (\d+)$/.exec(prompt)?.[1];
  const isStream = body["stream"] === true;
  const frames = (list: readonly Json[]): Response =>
    new Response(list.map(event).join(""), { headers: { "content-type": "text/event-stream" } });
  if (code) return isStream ? frames([refuse(Number(code))]) : Response.json(refuse(Number(code)));
  const hasTools = body["tools"] !== undefined;
  const message = hasTools
    ? { role: "assistant", content: "", tool_calls: CALLS }
    : { role: "assistant", content: "Hello world" };
  const whole = {
    ...head,
    object: "chat.completion",
    choices: [{ finish_reason: hasTools ? "tool_calls" : "stop", index: 0, message }],
    usage,
    input_sensitive: false,
    base_resp: good,
  };
  if (!isStream) return Response.json(whole);
  const chunk = (delta: Json, finish_reason?: string): Json => ({
    ...head,
    object: "chat.completion.chunk",
    choices: [
      { index: 0, delta: { role: "assistant", ...delta }, ...(finish_reason ? { finish_reason } : {}) },
    ],
  });
  if (hasTools)
    return frames([chunk({ tool_calls: CALLS.map((call) => ({ index: 0, ...call })) }, "tool_calls"), whole]);
  const first = chunk({ content: "Hello" });
  if (prompt === "cut") return frames([first]);
  const found = chunk({
    role: "tool",
    content: '[{"no":1,"url":"https://x.example"}]',
    tool_call_id: "call_function_1",
  });
  if (prompt === "search") return frames([found, first, chunk({ content: " world" }, "stop"), whole]);
  if (prompt === "late end") return frames([first, chunk({ content: " world" }), whole]);
  if (prompt === "late error") return frames([first, refuse(1002)]);
  return frames([first, chunk({ content: " world" }, "stop"), whole]);
}

export async function minimaxFake(request: Request): Promise<Response> {
  const { pathname } = new URL(request.url);
  if (request.headers.get("authorization") !== `Bearer ${KEY}`) return Response.json(refuse(1004));
  const body = (await request.json()) as Json;
  const refused = /says (\d{4})/.exec(JSON.stringify([body["text"], body["prompt"], body["texts"]]))?.[1];
  if (refused) return Response.json(refuse(Number(refused)));
  switch (pathname) {
    case "/v1/text/chatcompletion_v2":
      return chat(body);
    case "/v1/embeddings": {
      const texts = body["texts"] as string[];
      return Response.json({ vectors: texts.map((_, at) => [at, 0.5]), total_tokens: 4, base_resp: good });
    }
    case "/v1/t2a_v2":
      return Response.json({
        data: { audio: Buffer.from("sound").toString("hex"), status: 2 },
        extra_info: { audio_format: "mp3", usage_characters: 2 },
        trace_id: "t-1",
        base_resp: good,
      });
    case "/v1/image_generation": {
      const count = Number(body["n"]) - (String(body["prompt"]).includes("one fails") ? 1 : 0);
      const list = (text: string): string[] => Array.from({ length: count }, () => text);
      const data =
        body["response_format"] === "base64"
          ? { image_base64: list("aGk=") }
          : { image_urls: list("https://pictures.example/1.jpeg") };
      return Response.json({
        id: "03ff3cd0820949eb8a410056b5f21d38",
        data,
        metadata: { failed_count: "0", success_count: String(count) },
        base_resp: good,
      });
    }
    default:
      return new Response("404 page not found", { status: 404 });
  }
}
