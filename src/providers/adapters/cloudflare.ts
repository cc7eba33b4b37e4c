// Cloudflare Workers AI where it is not OpenAI-shaped: legacy completions, and speech to text.
// Refuses by name what those calls have no field for.
import { cannotCarry } from "../../protocol/carry.ts";
import { asBoolean, asList, asNumber, asObject, asString, parseJson } from "../../protocol/json.ts";
import { Failure } from "../../shared/failures.ts";
import type { Adapter, AdapterCall } from "../adapter.ts";
import { answerOf, errorResponse, eventsOf, jsonResponse, post, streamResponse } from "../adapter-kit.ts";
import { brokenStream } from "../../protocol/assemble.ts";

/** `{success, errors: [{code, message}]}` under the status it came with. */
async function refusal(response: Response): Promise<Response> {
  const text = await response.text();
  const error = asObject(asList(asObject(parseJson(text))?.["errors"])[0]);
  const message = asString(error?.["message"]) ?? text;
  const { status, headers } = response;
  return errorResponse(status, message, status, undefined, headers.get("retry-after"));
}

async function resultOf(response: Response): Promise<Record<string, unknown>> {
  const body = await answerOf(response);
  const result = asObject(body["result"]);
  if (!result || asBoolean(body["success"]) === false)
    throw new Failure("upstream-down", "upstream_bad_answer", { retryable: true });
  return result;
}

function completionRequest(call: AdapterCall): Record<string, unknown> {
  const { prompt, n, suffix, logprobs, echo, best_of: bestOf } = call.body;
  const single: unknown = Array.isArray(prompt) && prompt.length === 1 ? prompt[0] : prompt;
  if (typeof single !== "string") throw cannotCarry("prompt (list)");
  if ((asNumber(n) ?? 1) > 1) throw cannotCarry("n");
  if ((asNumber(bestOf) ?? 1) > 1) throw cannotCarry("best_of");
  if (suffix) throw cannotCarry("suffix");
  if (echo) throw cannotCarry("echo");
  if (logprobs !== undefined && logprobs !== null) throw cannotCarry("logprobs");
  const body: Record<string, unknown> = { prompt: single, stream: call.isStream };
  for (const name of ["max_tokens", "temperature", "top_p", "top_k", "seed"])
    if (call.body[name] !== undefined && call.body[name] !== null) body[name] = call.body[name];
  return body;
}

async function complete(call: AdapterCall): Promise<Response> {
  const response = await post(call, call.url, completionRequest(call));
  if (response.status !== 200) return refusal(response);
  const id = call.newId("cmpl-");
  const head = {
    id,
    object: "text_completion",
    created: Math.floor(call.nowMs() / 1000),
    model: call.model,
  };
  const choice = (text: string, finish: string | null): object => ({
    ...head,
    choices: [{ index: 0, text, logprobs: null, finish_reason: finish }],
  });
  if (!call.isStream) {
    const result = await resultOf(response);
    const usage = asObject(result["usage"]);
    return jsonResponse({
      ...choice(asString(result["response"]) ?? "", "stop"),
      ...(usage ? { usage } : {}),
    });
  }
  return streamResponse(completionStream(response, head, choice));
}

async function* completionStream(
  response: Response,
  head: object,
  choice: (text: string, finish: string | null) => object,
): AsyncGenerator<string> {
  const frame = (value: object): string => `data: ${JSON.stringify(value)}\n\n`;
  let usage: Record<string, unknown> | undefined;
  for await (const { data } of eventsOf(response)) {
    if (data.trim() === "[DONE]") {
      const figures = usage ? frame({ ...head, choices: [], usage }) : "";
      yield `${frame(choice("", "stop"))}${figures}data: [DONE]\n\n`;
      return;
    }
    const wire = asObject(parseJson(data));
    usage = asObject(wire?.["usage"]) ?? usage;
    const text = asString(wire?.["response"]) ?? "";
    if (text !== "") yield frame(choice(text, null));
  }
  throw brokenStream("no [DONE]");
}

/** Models that take the recording inside of JSON, with a task and a language. */
const TAKES_JSON = /whisper-large-v3/;

async function listen(call: AdapterCall): Promise<Response> {
  const file = call.files?.find((each) => each.name === "file") ?? call.files?.[0];
  if (!file) throw new Failure("client", "field_required", { params: { field: "file" }, param: "file" });
  const format = asString(call.body["response_format"]) ?? "json";
  if (format !== "json" && format !== "text" && format !== "vtt")
    throw cannotCarry(`response_format=${format}`);
  const isJson = TAKES_JSON.test(call.model);
  const language = asString(call.body["language"]);
  const prompt = asString(call.body["prompt"]);
  const response = isJson
    ? await post(call, call.url, {
        audio: Buffer.from(file.bytes).toString("base64"),
        task: call.operation === "translations" ? "translate" : "transcribe",
        ...(language ? { language } : {}),
        ...(prompt ? { initial_prompt: prompt } : {}),
      })
    : await call.fetch(call.url, {
        method: "POST",
        headers: { ...call.headers, "content-type": "application/octet-stream" },
        body: file.bytes,
        signal: call.signal,
      });
  if (response.status !== 200) return refusal(response);
  const result = await resultOf(response);
  if (format === "json") return jsonResponse({ text: asString(result["text"]) ?? "" });
  const text = asString(result[format]) ?? "";
  return new Response(text, { headers: { "content-type": "text/plain; charset=utf-8" } });
}

export const cloudflare: Adapter = (call) =>
  call.operation === "completions" ? complete(call) : listen(call);
