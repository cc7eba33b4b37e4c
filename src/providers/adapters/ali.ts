// Alibaba DashScope: chat in OpenAI's form; embeddings, rerank and pictures (behind a task) in its own.
// Refuses token lists; a task that failed yields nothing, and one that does not end is the attempt's deadline to end.
import type { JsonObject } from "../../protocol/canonical.ts";
import { asList, asNumber, asObject, asString, asText, parseJson } from "../../protocol/json.ts";
import { defined } from "../../protocol/assemble.ts";
import type { Adapter, AdapterCall } from "../adapter.ts";
import { answerOf, errorResponse, jsonResponse, post } from "../adapter-kit.ts";
import { askAfter, realWait } from "../wait.ts";
import type { Wait } from "../wait.ts";
import { embeddingsAnswer, embeddingTexts } from "./embeddings.ts";
import { pictureCount, picturesFrom } from "./pictures.ts";

const POLL_MS = 3000;
const UNDER_WAY: ReadonlySet<string> = new Set(["PENDING", "RUNNING", "SUSPENDED"]);

const isUnpaid = (code: string): boolean => code.startsWith("Arrearage");

/** Errors whose status hides what they are about: a bill that was not paid comes as a bad request. */
function statusOf(status: number, code: string): number {
  if (isUnpaid(code)) return 402;
  if (code.startsWith("Throttling")) return 429;
  return code === "InvalidApiKey" ? 401 : status;
}

function refused(
  status: number,
  code: string,
  message: string,
  own = "upstream_error",
  wait: string | null = null,
): Response {
  const isPolicy = /^DataInspection|inspection_failed/i.test(code);
  const type = isPolicy ? "content_policy_violation" : isUnpaid(code) ? "insufficient_quota" : own;
  return errorResponse(statusOf(status, code), message, code, type, wait);
}

/** A refusal under the status that it means; in `{code, message}`, or in OpenAI's form at compatible addresses. */
async function refusal(response: Response): Promise<Response> {
  const text = await response.text();
  const body = asObject(parseJson(text));
  const error = asObject(body?.["error"]) ?? body;
  const own = asString(error?.["type"]);
  const code = asString(error?.["code"]) ?? own ?? "";
  const message = asString(error?.["message"]) ?? (body ? "" : text.slice(0, 2000));
  return refused(response.status, code, message, own, response.headers.get("retry-after"));
}

/** An OpenAI-shaped address: bytes as they come, refusals sorted. */
async function compatible(call: AdapterCall): Promise<Response> {
  const response = await post(call, call.url, call.body);
  return response.status === 200 ? response : refusal(response);
}

async function embeddings(call: AdapterCall): Promise<Response> {
  const dimension = asNumber(call.body["dimensions"]);
  const response = await post(call, call.url, {
    model: call.model,
    input: { texts: embeddingTexts(call) },
    ...(dimension === undefined ? {} : { parameters: { dimension } }),
  });
  if (response.status !== 200) return refusal(response);
  const body = await answerOf(response);
  const items = asList(asObject(body["output"])?.["embeddings"]).map(asObject);
  const ordered = items.toSorted(
    (a, b) => (asNumber(a?.["text_index"]) ?? 0) - (asNumber(b?.["text_index"]) ?? 0),
  );
  const vectors = ordered.map((item) => item?.["embedding"] ?? []);
  return embeddingsAnswer(call, vectors, asNumber(asObject(body["usage"])?.["total_tokens"]));
}

async function rerank(call: AdapterCall): Promise<Response> {
  const { query, documents, top_n: top, return_documents: returns } = call.body;
  const texts = asList(documents).map((each) => asString(asObject(each)?.["text"]) ?? asText(each));
  const parameters = defined({ top_n: asNumber(top) || undefined, return_documents: returns === true });
  const response = await post(call, call.url, {
    model: call.model,
    input: { query, documents: texts },
    parameters,
  });
  if (response.status !== 200) return refusal(response);
  const body = await answerOf(response);
  const results = asList(asObject(body["output"])?.["results"]);
  return jsonResponse({ id: body["request_id"], model: call.model, results, usage: body["usage"] });
}

async function pictures(call: AdapterCall, wait: Wait): Promise<Response> {
  const { prompt, size, seed, negative_prompt: negative } = call.body;
  const submitted = await post(
    call,
    call.url,
    {
      model: call.model,
      input: { prompt, ...defined({ negative_prompt: asString(negative) }) },
      parameters: {
        n: pictureCount(call),
        ...defined({ size: asString(size)?.replace("x", "*"), seed: asNumber(seed) }),
      },
    },
    { "x-dashscope-async": "enable" },
  );
  if (submitted.status !== 200) return refusal(submitted);
  let output: JsonObject = asObject((await answerOf(submitted))["output"]) ?? {};
  const task = encodeURIComponent(asString(output["task_id"]) ?? "");
  const address = `${call.url.slice(0, call.url.indexOf("/api/v1/"))}/api/v1/tasks/${task}`;
  const { "content-type": _type, ...headers } = call.headers;
  while (UNDER_WAY.has(asString(output["task_status"]) ?? "")) {
    const told = await askAfter(call, { url: address, headers, wait, pauseMs: POLL_MS });
    if ("refused" in told) return refusal(told.refused);
    output = asObject(told.body["output"]) ?? {};
  }
  if (output["task_status"] !== "SUCCEEDED") {
    const code = asString(output["code"]) ?? asText(output["task_status"] ?? "no task");
    const message = asString(output["message"]) ?? code;
    const isPolicy = code.startsWith("DataInspection");
    const status = isPolicy || code.startsWith("InvalidParameter") ? 400 : 500;
    return refused(status, code, message);
  }
  const urls = asList(output["results"]).flatMap((item) => asString(asObject(item)?.["url"]) ?? []);
  return picturesFrom(call, urls, wait);
}

/** `wait` is the pause between two questions after a task; tests pass their own. */
export function createAli(wait: Wait): Adapter {
  return (call) => {
    switch (call.operation) {
      case "embeddings":
        return embeddings(call);
      case "rerank":
        return rerank(call);
      case "image-generations":
        return pictures(call, wait);
      default:
        return compatible(call);
    }
  };
}

export const ali: Adapter = createAli(realWait);
