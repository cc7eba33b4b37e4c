// Qianfan's first API on loopback, as its documentation describes it: a token for a key pair, answers in `result`,
// functions one at a time, errors under status 200. What the last message says decides what happens.
// Refuses keys and tokens that it did not give out.
type Json = Record<string, unknown>;

const ID = "baidu-id";
const SECRET = "baidu-secret";
export const KEY = `${ID}|${SECRET}`;

const USAGE = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 };
const HEAD = { id: "as-bcmt5ct4iy", object: "chat.completion", created: 1_680_167_072 };

export interface BaiduFake {
  handler: (request: Request) => Promise<Response>;
  /** Exchanges so far. */
  exchanges: number;
  /** Held back until resolved, when set. */
  door: Promise<void> | undefined;
  /** Tokens that are not taken any more. */
  revoked: Set<string>;
  /** Every token is refused, also the newest. */
  takesNone: boolean;
}

const sse = (...frames: Json[]): Response =>
  new Response(frames.map((frame) => `data: ${JSON.stringify(frame)}\n\n`).join(""), {
    headers: { "content-type": "text/event-stream; charset=utf-8" },
  });

const refuse = (error_code: number, error_msg: string): Response => Response.json({ error_code, error_msg });

export function createBaiduFake(): BaiduFake {
  const fake: BaiduFake = { handler, exchanges: 0, door: undefined, revoked: new Set(), takesNone: false };

  function chat(body: Json): Response {
    const messages = body["messages"] as { role: string; content: string }[];
    const roles = messages.map(({ role }) => (role === "function" ? "user" : role));
    if (messages.length % 2 === 0 || roles.some((role, at) => role !== (at % 2 === 0 ? "user" : "assistant")))
      return refuse(336_006, "the role of message with odd index must be user or function");
    const prompt = messages.at(-1)?.content ?? "";
    const code = /^code (\d+)$/.exec(prompt)?.[1];
    if (code) return refuse(Number(code), `says ${code}`);
    if (prompt === "nonsense") return Response.json({ hello: "world" });
    const isStream = body["stream"] === true;
    const call = {
      name: "get_weather",
      thoughts: "I need the weather.",
      arguments: '{"city":"Paris"}',
    };
    if (body["functions"] && prompt.includes("Weather")) {
      const answer = { ...HEAD, result: "", is_truncated: false, finish_reason: "function_call" };
      if (!isStream) return Response.json({ ...answer, function_call: call, usage: USAGE });
      return sse(
        { ...HEAD, sentence_id: 0, is_end: false, result: "" },
        { ...answer, sentence_id: 1, is_end: true, function_call: call, usage: USAGE },
      );
    }
    if (!isStream)
      return Response.json({ ...HEAD, result: "Hello world", is_truncated: prompt === "long", usage: USAGE });
    const first = { ...HEAD, sentence_id: 0, is_end: false, result: "Hello", usage: USAGE };
    if (prompt === "cut") return sse(first);
    if (prompt === "frame by frame")
      return sse(first, {
        ...HEAD,
        sentence_id: 1,
        is_end: true,
        result: "",
        usage: { prompt_tokens: 11, completion_tokens: 0, total_tokens: 18 },
      });
    if (prompt === "late error") return sse(first, { error_code: 336_100, error_msg: "try again later" });
    return sse(first, { ...HEAD, sentence_id: 1, is_end: true, result: " world", usage: USAGE });
  }

  async function handler(request: Request): Promise<Response> {
    const { pathname: path, searchParams } = new URL(request.url);
    // An address of an operator's own in front of the provider's.
    const pathname = path.replace(/^\/proxy-\w+/, "");
    if (pathname === "/oauth/2.0/token") {
      fake.exchanges++;
      const token = `24.token-${fake.exchanges}`;
      await fake.door;
      if (searchParams.get("grant_type") !== "client_credentials" || searchParams.get("client_id") !== ID)
        return Response.json(
          { error: "invalid_client", error_description: "unknown client id" },
          { status: 401 },
        );
      if (searchParams.get("client_secret") !== SECRET)
        return Response.json(
          { error: "invalid_client", error_description: "Client authentication failed" },
          { status: 401 },
        );
      return Response.json({ access_token: token, expires_in: 2_592_000, scope: "public" });
    }
    const token = searchParams.get("access_token") ?? "";
    if (fake.takesNone || !token.startsWith("24.token-") || fake.revoked.has(token))
      return refuse(110, "Access token invalid or no longer valid");
    const body = (await request.json()) as Json;
    const root = "/rpc/2.0/ai_custom/v1/wenxinworkshop";
    if (pathname === `${root}/embeddings/embedding-v1`) {
      const input = body["input"] as string[];
      return Response.json({
        id: "as-gjs275mj6s",
        object: "embedding_list",
        data: input.map((_, index) => ({ object: "embedding", embedding: [index, 0.5], index })).toReversed(),
        usage: { prompt_tokens: 4, total_tokens: 4 },
      });
    }
    if (pathname === `${root}/chat/completions_pro` || pathname === `${root}/chat/ernie-speed-128k`)
      return chat(body);
    return refuse(3, "Unsupported openapi method");
  }
  return fake;
}
