// Cloudflare Workers AI beyond its OpenAI-shaped addresses: legacy completions and transcriptions through `ai/run`.
// Refuses nothing of its own; what the model cannot do comes back as Cloudflare's error.
import { asList, asNumber, asObject, asString, parseJson } from "../../protocol/json.ts";
import type { AdapterCall } from "../adapter.ts";
import { errorResponse, eventsOf, jsonResponse, post, readJson, streamResponse } from "../adapter-kit.ts";

/** Cloudflare wraps answers: {success, result, errors[{code,message}]}. */
function refusal(body: Record<string, unknown>): Response | undefined {
  if (body["success"] !== false) return undefined;
  const first = asObject(asList(body["errors"])[0]);
  return errorResponse(
    400,
    asString(first?.["message"]) ?? "",
    asNumber(first?.["code"]) ?? "cloudflare_error",
  );
}

async function completions(call: AdapterCall): Promise<Response> {
  const { prompt, max_tokens: maxTokens, temperature } = call.body;
  const response = await post(call, call.url, {
    prompt,
    max_tokens: maxTokens,
    temperature,
    stream: call.isStream,
  });
  if (response.status !== 200) return response;
  const id = call.newId("cmpl-");
  const created = Math.floor(call.nowMs() / 1000);
  const chunk = (text: string, reason: string | null) => ({
    id,
    object: "text_completion",
    created,
    model: call.model,
    choices: [{ index: 0, text, finish_reason: reason, logprobs: null }],
  });
  if (!call.isStream) {
    const body = await readJson(response);
    const refused = refusal(body);
    if (refused) return refused;
    const result = asObject(body["result"]);
    return jsonResponse({ ...chunk(asString(result?.["response"]) ?? "", "stop"), usage: result?.["usage"] });
  }
  return streamResponse(
    (async function* () {
      for await (const { data } of eventsOf(response)) {
        if (data === "[DONE]") break;
        const wire = asObject(parseJson(data));
        const text = asString(wire?.["response"]) ?? "";
        if (text !== "") yield `data: ${JSON.stringify(chunk(text, null))}\n\n`;
      }
      yield `data: ${JSON.stringify(chunk("", "stop"))}\n\ndata: [DONE]\n\n`;
    })(),
  );
}

/** The raw bytes of the recording go up, the text comes back. */
async function transcription(call: AdapterCall): Promise<Response> {
  const file = call.files?.find(({ name }) => name === "file");
  const { "content-type": _type, ...headers } = call.headers;
  const response = await call.fetch(call.url, {
    method: "POST",
    headers: { ...headers, "content-type": "application/octet-stream" },
    body: file?.bytes ?? new Uint8Array(0),
  });
  if (response.status !== 200) return response;
  const body = await readJson(response);
  return refusal(body) ?? jsonResponse({ text: asString(asObject(body["result"])?.["text"]) ?? "" });
}

export function cloudflare(call: AdapterCall): Promise<Response> {
  return call.operation === "completions" ? completions(call) : transcription(call);
}
