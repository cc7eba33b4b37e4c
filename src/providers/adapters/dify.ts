// Dify apps: chat, agent and chatflow apps, workflows and text generators, told apart by what the key's app answers.
// Refuses tools and formats, which an app decides for itself; its sampling is the app's own as well.
import { asObject, asString, parseJson } from "../../protocol/json.ts";
import type { Adapter, AdapterCall } from "../adapter.ts";
import { answerOf, chatResponse, errorResponse, post } from "../adapter-kit.ts";
import { decodeChatRequest } from "./chat-request.ts";
import { completeAnswer, difyStatus, streamedAnswer } from "./dify-answer.ts";
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
  const { status, headers } = response;
  const answer = errorResponse(
    difyStatus(status, code),
    message,
    code || status,
    code || undefined,
    headers.get("retry-after"),
  );
  return { response: answer, code, message };
}

export const dify: Adapter = async (call) => {
  const request = decodeChatRequest(call, { images: true, files: true });
  const base = call.url.slice(0, -PATHS.chat.length);
  const name = nameOf(call);
  let mode: DifyMode = modes.get(name) ?? "chat";
  let isStreamed = call.isStream;
  const body = await difyRequest(call, request, base);
  for (let step = 0; ; step++) {
    const response = await post(call, base + PATHS[mode], body(mode, isStreamed));
    if (response.status === 200) {
      if (mode === "chat") modes.delete(name);
      else remember(name, mode);
      // A stream is gathered where the call wants a whole answer and the app has none.
      const events = isStreamed
        ? streamedAnswer(response, mode)
        : completeAnswer(await answerOf(response), mode);
      return chatResponse(call, events);
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
