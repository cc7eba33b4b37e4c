// Google Vertex AI: Gemini, Claude (rawPredict), the open models behind its OpenAI-shaped endpoint, and what is
// predicted in its own form: embeddings and Imagen pictures.
// Refuses channels without a region, and keys that are no service account.
import type { JsonObject } from "../../protocol/canonical.ts";
import { asList, asNumber, asObject, asString, parseJson } from "../../protocol/json.ts";
import { retryDelay } from "../../protocol/gemini/failure.ts";
import { Failure } from "../../shared/failures.ts";
import type { Adapter, AdapterCall } from "../adapter.ts";
import { answerOf, errorResponse } from "../adapter-kit.ts";
import { embeddingsAnswer } from "./embeddings.ts";
import { imagenAnswer, imagenRequest } from "./gemini.ts";
import { googleRequests, predictionsOf, vertexContent } from "./google-embeddings.ts";
import { accessToken, forgetToken, parseServiceAccount } from "./google-token.ts";
import type { ServiceAccount } from "./google-token.ts";

const ANTHROPIC_VERSION = "vertex-2023-10-16";
/** Several regions at once have hosts of another form than one. */
const MULTI_REGIONS: ReadonlySet<string> = new Set(["us", "eu"]);
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
  if (region === "global") return "https://aiplatform.googleapis.com";
  return MULTI_REGIONS.has(region)
    ? `https://aiplatform.${region}.rep.googleapis.com`
    : `https://${region}-aiplatform.googleapis.com`;
}

interface Prepared {
  url: string;
  body: Record<string, unknown>;
}

/** Host, and the project's place in its region. */
function placeOf(call: AdapterCall, account: ServiceAccount): { host: string; place: string } {
  const region = regionOf(call.channel.other, call.requestedModel ?? call.model, call.model);
  const place = `projects/${encodeURIComponent(account.projectId)}/locations/${region}`;
  return { host: hostOf(call, region), place };
}

/** A method of one of Google's own models. */
function googleUrl(call: AdapterCall, account: ServiceAccount, method: string): string {
  const { host, place } = placeOf(call, account);
  return `${host}/v1/${place}/publishers/google/models/${encodeURIComponent(call.model)}:${method}`;
}

function prepare(call: AdapterCall, account: ServiceAccount): Prepared {
  const { model, isStream } = call;
  const { host, place } = placeOf(call, account);
  if (call.route.dialect === "openai-chat")
    return { url: `${host}/v1beta1/${place}/endpoints/openapi/chat/completions`, body: { ...call.body } };
  if (call.route.dialect === "gemini") {
    const method = isStream ? "streamGenerateContent?alt=sse" : "generateContent";
    return { url: googleUrl(call, account, method), body: { ...call.body } };
  }
  const action = isStream ? "streamRawPredict?alt=sse" : "rawPredict";
  const path = encodeURIComponent(vertexModel(model)).replaceAll("%40", "@");
  const { model: _model, ...body } = call.body;
  return {
    url: `${host}/v1/${place}/publishers/anthropic/models/${path}:${action}`,
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
  const retryAfter = response.headers.get("retry-after") ?? retryDelay(body);
  return errorResponse(response.status, message, type ?? response.status, type, retryAfter);
}

async function send(call: AdapterCall, account: ServiceAccount, { url, body }: Prepared): Promise<Response> {
  const text = JSON.stringify(body);
  const attempt = (token: string): Promise<Response> =>
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
  let response = await attempt(token);
  // A token can be withdrawn before its time.
  if (response.status === 401) {
    await response.body?.cancel();
    await forgetToken(account, token);
    response = await attempt(await accessToken(account, call));
  }
  return response.status === 200 ? response : refusal(response);
}

/** The first of Google's newer models takes one text a prediction. */
const ONE_TEXT = /^gemini-embedding/;
/** Those behind it embed contents, with a method of their own (Google's SDK 2 asks them so, and no others). */
const WHOLE_CONTENTS = /^gemini-embedding-(?!001$)/;

/** Vectors as they come, and the tokens that the provider counted for them. */
interface Embedded {
  vectors: unknown[];
  tokens: number;
}

/** Asks with one body after the other and hands each answer to `read`; resolves with the first refusal, if there is one. */
async function askEach(
  call: AdapterCall,
  account: ServiceAccount,
  { method, bodies }: { method: string; bodies: readonly JsonObject[] },
  read: (answer: JsonObject) => void,
): Promise<Response | undefined> {
  for (const body of bodies) {
    const response = await send(call, account, { url: googleUrl(call, account, method), body });
    if (response.status !== 200) return response;
    read(await answerOf(response));
  }
  return undefined;
}

async function embed(call: AdapterCall, account: ServiceAccount): Promise<Response> {
  const requests = googleRequests(call);
  const isWhole = WHOLE_CONTENTS.test(call.model);
  const found: Embedded = { vectors: [], tokens: 0 };
  const refused = isWhole
    ? await askEach(
        call,
        account,
        { method: "embedContent", bodies: requests.map(vertexContent) },
        (answer) => {
          found.vectors.push(asObject(answer["embedding"])?.["values"]);
          found.tokens += asNumber(asObject(answer["usageMetadata"])?.["promptTokenCount"]) ?? 0;
        },
      )
    : await askEach(
        call,
        account,
        { method: "predict", bodies: predictionsOf(requests, !ONE_TEXT.test(call.model)) },
        (answer) => readPredictions(answer, found),
      );
  return refused ?? embeddingsAnswer(call, found.vectors, found.tokens > 0 ? found.tokens : undefined);
}

function readPredictions(answer: JsonObject, found: Embedded): void {
  for (const prediction of asList(answer["predictions"])) {
    const embedding = asObject(asObject(prediction)?.["embeddings"]);
    found.vectors.push(embedding?.["values"]);
    found.tokens += asNumber(asObject(embedding?.["statistics"])?.["token_count"]) ?? 0;
  }
}

async function draw(call: AdapterCall, account: ServiceAccount): Promise<Response> {
  const response = await send(call, account, {
    url: googleUrl(call, account, "predict"),
    body: imagenRequest(call),
  });
  return response.status === 200 ? imagenAnswer(call, await answerOf(response)) : response;
}

export const vertex: Adapter = async (call) => {
  const account = parseServiceAccount(call.key);
  switch (call.operation) {
    case "embeddings":
      return embed(call, account);
    case "image-generations":
      return draw(call, account);
    default:
      return send(call, account, prepare(call, account));
  }
};

/** The version stands in the body here; Vertex refuses it as a header beside that. */
function headersOf(call: AdapterCall): Record<string, string> {
  const { "anthropic-version": _version, ...headers } = call.headers;
  return headers;
}
