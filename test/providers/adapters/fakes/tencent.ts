// Hunyuan's ChatCompletions on loopback, in its documented form: capital letters, answers wrapped in Response, errors
// under status 200, requests checked by TC3 as its documentation computes it. Refuses bodies that were not signed.
import { createHash, createHmac } from "node:crypto";

type Json = Record<string, unknown>;

export const KEY = "1250000000|AKIDexample|secret-example";

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
const hmac = (key: string | Buffer, text: string): Buffer => createHmac("sha256", key).update(text).digest();

function isSigned(headers: Headers, body: string): boolean {
  const timestamp = Number(headers.get("x-tc-timestamp"));
  const day = new Date(timestamp * 1000).toISOString().slice(0, 10);
  const scope = `${day}/hunyuan/tc3_request`;
  const canonical = `POST\n/\n\ncontent-type:application/json\nhost:${headers.get("host")}\nx-tc-action:chatcompletions\n\ncontent-type;host;x-tc-action\n${sha256(body)}`;
  const key = hmac(hmac(hmac("TC3secret-example", day), "hunyuan"), "tc3_request");
  const signature = hmac(key, `TC3-HMAC-SHA256\n${timestamp}\n${scope}\n${sha256(canonical)}`).toString(
    "hex",
  );
  return (
    headers.get("authorization") ===
    `TC3-HMAC-SHA256 Credential=AKIDexample/${scope}, SignedHeaders=content-type;host;x-tc-action, Signature=${signature}`
  );
}

const Usage = {
  PromptTokens: 11,
  CompletionTokens: 7,
  TotalTokens: 18,
  PromptTokensDetails: { CachedTokens: 4 },
  CompletionTokensDetails: { ReasoningTokens: 2 },
};
const head = { Note: "generated", Id: "c2f1", Created: 1_710_000_000 };

const wrapped = (Response_: Json): Response =>
  Response.json({ Response: { RequestId: "r-1", ...Response_ } });
const refuse = (Code: string): Response => wrapped({ Error: { Code, Message: `says ${Code}` } });

function chunk(Delta: Json, FinishReason = ""): string {
  return `data: ${JSON.stringify({ ...head, Choices: [{ Index: 0, Delta: { Role: "assistant", ...Delta }, FinishReason }], Usage })}\n\n`;
}

const CALLS = [
  {
    Id: "call_a",
    Type: "function",
    Index: 0,
    Function: { Name: "get_weather", Arguments: '{"city":"Paris"}' },
  },
  {
    Id: "call_b",
    Type: "function",
    Index: 1,
    Function: { Name: "get_weather", Arguments: '{"city":"Rome"}' },
  },
];

function streamOf(prompt: string, hasTools: boolean): string[] {
  // Before calls were counted: every piece names its call.
  if (hasTools && prompt.includes("by id")) {
    const piece = (Id: string, Arguments: string): Json => ({
      Id,
      Type: "function",
      Function: { Name: "get_weather", Arguments },
    });
    return [
      chunk({ ToolCalls: [piece("call_a", '{"city":')] }),
      chunk({ ToolCalls: [piece("call_a", '"Paris"}')] }),
      chunk({ ToolCalls: [piece("call_b", '{"city":"Rome"}')] }),
      chunk({ Content: "" }, "tool_calls"),
      "data: [DONE]\n\n",
    ];
  }
  if (hasTools)
    return [
      chunk({ ToolCalls: [{ ...CALLS[0], Function: { Name: "get_weather", Arguments: "" } }] }),
      chunk({ ToolCalls: [{ Index: 0, Function: { Arguments: '{"city":' } }] }),
      chunk({ ToolCalls: [{ Index: 0, Function: { Arguments: '"Paris"}' } }] }),
      chunk({ ToolCalls: [CALLS[1]] }),
      chunk({ Content: "" }, "tool_calls"),
      "data: [DONE]\n\n",
    ];
  const said = [chunk({ ReasoningContent: "Hm." }), chunk({ Content: "Hello" })];
  if (prompt === "cut") return said;
  if (prompt === "late error")
    return [
      ...said,
      `data: ${JSON.stringify({ ...head, ErrorMsg: { Msg: "engine broke", Code: 4000 } })}\n\n`,
    ];
  return [...said, chunk({ Content: " world" }), chunk({ Content: "" }, "stop"), "data: [DONE]\n\n"];
}

export async function tencentFake(request: Request): Promise<Response> {
  const text = await request.text();
  const { headers } = request;
  if (headers.get("x-tc-action") !== "ChatCompletions" || headers.get("x-tc-version") !== "2023-09-01")
    return refuse("InvalidAction");
  if (!isSigned(headers, text)) return refuse("AuthFailure.SignatureFailure");
  const body = JSON.parse(text) as Json;
  const messages = body["Messages"] as { Content?: string }[];
  const prompt = messages.at(-1)?.Content ?? "";
  const code = /^code (\S+)$/.exec(prompt)?.[1];
  if (code) return refuse(code);
  if (prompt === "nonsense") return Response.json({ hello: "world" });
  if (prompt === "empty") return wrapped({ ...head, Choices: [], Usage });
  const hasTools = body["Tools"] !== undefined && prompt.includes("Weather");
  if (body["Stream"] === true)
    return new Response(streamOf(prompt, hasTools).join(""), {
      headers: { "content-type": "text/event-stream" },
    });
  const Message = hasTools
    ? { Role: "assistant", Content: "", ToolCalls: CALLS }
    : { Role: "assistant", Content: "Hello world", ReasoningContent: "Hm." };
  const FinishReason = hasTools ? "tool_calls" : "stop";
  return wrapped({ ...head, Choices: [{ Index: 0, Message, FinishReason }], Usage });
}
