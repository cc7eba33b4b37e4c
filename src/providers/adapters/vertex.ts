// Google Vertex AI: Gemini, Claude (rawPredict) and the open models behind its OpenAI-shaped endpoint.
// Refuses channels without a region, and keys that are no service account.
import { asObject, asString, parseJson } from "../../protocol/json.ts";
import { Failure } from "../../shared/failures.ts";
import type { Adapter, AdapterCall } from "../adapter.ts";
import { errorResponse } from "../adapter-kit.ts";
import { accessToken, forgetToken, parseServiceAccount } from "./google-token.ts";
import type { ServiceAccount } from "./google-token.ts";

const ANTHROPIC_VERSION = "vertex-2023-10-16";
const REGION = /^[a-z][a-z0-9-]*$/;

/** Anthropic's dated names carry the date behind an @ here. */
export function vertexModel(model: string): string {
  if (model === "claude-3-5-sonnet-20241022") return "claude-3-5-sonnet-v2@20241022";
  return model.replace(/^(claude-.+)-(\d{8})$/, "$1@$2");
}

/**
 * The region of a call: the special field is one region, or a JSON object of regions by model (as the client named it,
 * or as the upstream knows it) with a `default`.
 */
export function regionOf(other: string, requestedModel: string, model: string): string {
  const text = other.trim();
  const map = asObject(parseJson(text));
  const region = map
    ? (asString(map[requestedModel]) ?? asString(map[model]) ?? asString(map["default"]) ?? "")
    : text;
  if (!REGION.test(region.trim())) throw new Failure("no-channel", "provider_region", { retryable: true });
  return region.trim();
}

function hostOf(call: AdapterCall, region: string): string {
  const own = call.channel.baseUrl.trim().replace(/\/+$/, "");
  if (own !== "") return own;
  return region === "global"
    ? "https://aiplatform.googleapis.com"
    : `https://${region}-aiplatform.googleapis.com`;
}

interface Prepared {
  url: string;
  body: Record<string, unknown>;
}

function prepare(call: AdapterCall, account: ServiceAccount): Prepared {
  const { model, isStream } = call;
  const region = regionOf(call.channel.other, call.requestedModel ?? model, model);
  const place = `projects/${encodeURIComponent(account.projectId)}/locations/${region}`;
  const host = hostOf(call, region);
  if (call.route.dialect === "openai-chat")
    return { url: `${host}/v1beta1/${place}/endpoints/openapi/chat/completions`, body: { ...call.body } };
  const publishers = `${host}/v1/${place}/publishers`;
  if (call.route.dialect === "gemini") {
    const action = isStream ? "streamGenerateContent?alt=sse" : "generateContent";
    const url = `${publishers}/google/models/${encodeURIComponent(model)}:${action}`;
    return { url, body: { ...call.body } };
  }
  const action = isStream ? "streamRawPredict?alt=sse" : "rawPredict";
  const path = encodeURIComponent(vertexModel(model)).replaceAll("%40", "@");
  const { model: _model, ...body } = call.body;
  return {
    url: `${publishers}/anthropic/models/${path}:${action}`,
    body: { anthropic_version: ANTHROPIC_VERSION, ...body },
  };
}

/** The answer under the error's own status: Google says some of them inside a list. */
async function refusal(response: Response): Promise<Response> {
  const text = await response.text();
  const parsed = parseJson(text);
  const body = asObject(Array.isArray(parsed) ? (parsed as unknown[])[0] : parsed);
  const error = asObject(body?.["error"]);
  const type = asString(error?.["status"]) ?? asString(error?.["type"]);
  // Google's message repeats project and account; what of it may be shown is the relay's to clear.
  const message = (asString(error?.["message"]) ?? "").replace(/\bprojects\/[\w-]+/g, "projects/[project]");
  const retryAfter = response.headers.get("retry-after");
  return errorResponse(response.status, message, type ?? response.status, type, retryAfter);
}

export const vertex: Adapter = async (call) => {
  const account = parseServiceAccount(call.key);
  const { url, body } = prepare(call, account);
  const text = JSON.stringify(body);
  const send = (token: string): Promise<Response> =>
    call.fetch(url, {
      method: "POST",
      headers: {
        ...headersOf(call),
        "content-type": "application/json",
        authorization: `Bearer ${token}`,
      },
      body: text,
      signal: call.signal,
    });
  const token = await accessToken(account, call);
  let response = await send(token);
  // A token can be withdrawn before its time.
  if (response.status === 401) {
    await response.body?.cancel();
    await forgetToken(account, token);
    response = await send(await accessToken(account, call));
  }
  return response.status === 200 ? response : refusal(response);
};

/** The version stands in the body here; Vertex refuses it as a header beside that. */
function headersOf(call: AdapterCall): Record<string, string> {
  const { "anthropic-version": _version, ...headers } = call.headers;
  return headers;
}
