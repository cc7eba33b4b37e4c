// DashScope on loopback: an OpenAI-shaped address, and the native calls for embeddings, rerank and picture tasks, as
// the Model Studio documentation gives them. Refuses foreign keys.
type Json = Record<string, unknown>;

export const KEY = "sk-dashscope";
const PIXELS = Buffer.from("picture bytes");

export interface AliFake {
  handler: (request: Request) => Promise<Response>;
  /** What the task says, one state each time it is asked for; the last one stays. */
  states: Json[];
  /** Size of the pictures behind the addresses. */
  pictureBytes: number;
}

export function createAliFake(): AliFake {
  let asked = 0;
  const fake: AliFake = { handler, states: [], pictureBytes: PIXELS.length };
  const refuse = (status: number, code: string): Response =>
    Response.json({ code, message: `says ${code}`, request_id: "r-1" }, { status });

  async function handler(request: Request): Promise<Response> {
    const { pathname, origin } = new URL(request.url);
    if (pathname.startsWith("/pictures/")) {
      if (request.headers.get("authorization")) return new Response("leaked", { status: 400 });
      return new Response(fake.pictureBytes === PIXELS.length ? PIXELS : new Uint8Array(fake.pictureBytes));
    }
    const { headers } = request;
    if (headers.get("authorization") !== `Bearer ${KEY}`) return refuse(401, "InvalidApiKey");
    const filled = (state: Json): Json =>
      JSON.parse(JSON.stringify(state).replaceAll("{origin}", origin)) as Json;
    if (pathname === "/api/v1/tasks/task-1") {
      const state = fake.states[Math.min(asked++, fake.states.length - 1)] ?? {};
      return Response.json({ request_id: "r-2", output: filled({ task_id: "task-1", ...state }) });
    }
    const body = (await request.json()) as Json;
    const text = JSON.stringify(body);
    const wanted = /says (\d{3}) (\w[\w.]*)/.exec(text);
    if (wanted && pathname.startsWith("/compatible-mode/"))
      return Response.json(
        { error: { message: `says ${wanted[2]}`, type: wanted[2], code: wanted[2], param: null } },
        { status: Number(wanted[1]) },
      );
    if (wanted) return refuse(Number(wanted[1]), wanted[2] ?? "");
    switch (pathname) {
      case "/compatible-mode/v1/chat/completions":
        return Response.json({
          id: "chatcmpl-1",
          object: "chat.completion",
          choices: [
            { index: 0, message: { role: "assistant", content: "Hello world" }, finish_reason: "stop" },
          ],
          usage: { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 },
        });
      case "/api/v1/services/embeddings/text-embedding/text-embedding": {
        const { texts } = body["input"] as { texts: string[] };
        const embeddings = texts
          .map((_, index) => ({ text_index: index, embedding: [index, 0.5] }))
          .toReversed();
        return Response.json({ output: { embeddings }, usage: { total_tokens: 4 }, request_id: "r-1" });
      }
      case "/api/v1/services/rerank/text-rerank/text-rerank": {
        const { documents } = body["input"] as { documents: string[] };
        const { return_documents: returns } = body["parameters"] as Json;
        const results = documents.map((document, index) => ({
          ...(returns === true ? { document: { text: document } } : {}),
          index,
          relevance_score: 0.9 - index / 10,
        }));
        return Response.json({ output: { results }, usage: { total_tokens: 79 }, request_id: "r-1" });
      }
      case "/api/v1/services/aigc/text2image/image-synthesis":
        if (headers.get("x-dashscope-async") !== "enable") return refuse(403, "AccessDenied");
        asked = 0;
        return Response.json({ output: { task_status: "PENDING", task_id: "task-1" }, request_id: "r-1" });
      default:
        return refuse(404, "NotFound");
    }
  }
  return fake;
}
