// Dify apps: chat, agent and chatflow apps, workflows and text generators, told apart by what the key's app answers.
// Refuses tools and formats, which an app decides for itself; its sampling is the app's own as well.
import { asObject, asString, parseJson } from "../../protocol/json.ts";
import { collect } from "../../protocol/assemble.ts";
import type { CanonicalEvent } from "../../protocol/events.ts";
import type { Adapter, AdapterCall } from "../adapter.ts";
import { errorAnswer, jsonOf, postJson, streamAnswer, wholeAnswer } from "./answers.ts";
import { askedOf } from "./asked.ts";
import { createDifyDecoder, difyAnswer } from "./dify-answer.ts";
import { difyRequest } from "./dify-request.ts";

/** The three kinds of apps, each with a path of its own. */
export type DifyMode = "chat" | "workflow" | "completion";

const PATHS: Readonly<Record<DifyMode, string>> = {
  chat: "/v1/chat-messages",
  workflow: "/v1/workflows/run",
  completion: "/v1/completion-messages",
};

/** What an app of another kind answers on the wrong path, and where to try next. */
const NEXT: Readonly<Record<string, DifyMode>> = {
  not_chat_app: "workflow",
  not_workflow_app: "completion",
};

const MAX_KEYS = 500;
/** Kinds of apps that were found out, by address and key; chat apps are not remembered. */
const modes = new Map<string, DifyMode>();

function nameOf(call: AdapterCall): string {
  return new Bun.CryptoHasher("sha256").update(`${call.url}\n${call.key}`).digest("hex");
}

interface Refused {
  response: Response;
  code: string;
  message: string;
}

async function refusalOf(response: Response): Promise<Refused> {
  const text = await response.text();
  const body = asObject(parseJson(text));
  const code = asString(body?.["code"]) ?? "";
  const message = asString(body?.["message"]) ?? text;
  const answer = errorAnswer(
    response.status,
    { message, ...(code === "" ? {} : { code, type: code }) },
    response.headers.get("retry-after"),
  );
  return { response: answer, code, message };
}

/** Collects a stream where the app gives nothing else. */
async function gathered(call: AdapterCall, response: Response, mode: DifyMode): Promise<Response> {
  const decoder = createDifyDecoder(mode);
  const events: CanonicalEvent[] = decoder.push(new Uint8Array(await response.arrayBuffer()));
  events.push(...decoder.end());
  return wholeAnswer(call, collect(events));
}

export const dify: Adapter = async (call) => {
  const request = askedOf(call, { images: true, files: true });
  const base = call.url.slice(0, -PATHS.chat.length);
  const name = nameOf(call);
  let mode: DifyMode = modes.get(name) ?? "chat";
  let isStreamed = call.isStream;
  const body = await difyRequest(call, request, base);
  for (let step = 0; ; step++) {
    const response = await postJson(call, base + PATHS[mode], body(mode, isStreamed));
    if (response.status === 200) {
      if (mode === "chat") modes.delete(name);
      else remember(name, mode);
      if (call.isStream) return streamAnswer(call, response, createDifyDecoder(mode));
      if (isStreamed) return gathered(call, response, mode);
      return wholeAnswer(call, difyAnswer(await jsonOf(response), mode));
    }
    const refused = await refusalOf(response);
    const next = NEXT[refused.code];
    // Agent apps only stream.
    const mustStream = !isStreamed && response.status === 400 && /blocking mode/i.test(refused.message);
    if (step >= 3 || (next === undefined && !mustStream)) return refused.response;
    if (next !== undefined) mode = next;
    else isStreamed = true;
  }
};

function remember(name: string, mode: DifyMode): void {
  modes.set(name, mode);
  const oldest = modes.keys().next().value;
  if (modes.size > MAX_KEYS && oldest !== undefined) modes.delete(oldest);
}
