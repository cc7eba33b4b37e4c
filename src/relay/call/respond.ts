// Answers in the client's form: the upstream's own bytes where they fit, else the little that has to be rewritten.
// Headers that are not on the list stay here: they name the provider, its accounts and its addresses.
import { explode } from "../../protocol/assemble.ts";
import type { Sealer } from "../../core/kit/seal.ts";
import type { Answer as CanonicalAnswer } from "../../protocol/assemble.ts";
import { DIALECTS } from "../../protocol/dialects.ts";
import { asList, asObject } from "../../protocol/json.ts";
import { REQUEST_ID_HEADER } from "../../http/request-id.ts";
import { emptyUsage, promptTokens } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";
import { answerContext, decodeFull } from "./answer.ts";
import type { FullAnswer } from "./answer.ts";
import type { Call } from "./call.ts";
import { limitBody } from "./limit-frames.ts";
import type { CallServices } from "./services.ts";
import type { SettledAnswer } from "./settle-answer.ts";
import { corsHeaders } from "../wire/cors.ts";
import { sealTurnState, TURN_STATE } from "../wire/turn-state.ts";

const JSON_TYPE = "application/json";

const PASSED_HEADERS = [
  "content-type",
  "x-request-id",
  "request-id",
  "openai-processing-ms",
  "openai-version",
  "retry-after",
  "retry-after-ms",
] as const;

/** Names that the gateway's own answer carries besides the upstream's. */
function answerHeaders(call: Call, response: Response): Record<string, string> {
  const headers = corsHeaders(call.request);
  // Asked for one by one: a list of all of them grows with what the upstream says of itself.
  const theirs = response.headers;
  for (const name of PASSED_HEADERS) {
    const value = theirs.get(name);
    if (value !== null) headers[name] = value;
  }
  headers[REQUEST_ID_HEADER] = call.requestId;
  headers["cache-control"] = "no-store";
  return headers;
}

export function streamHeaders(call: Call, response?: Response): Record<string, string> {
  const headers = response ? answerHeaders(call, response) : corsHeaders(call.request);
  headers["content-type"] = "text/event-stream";
  headers["cache-control"] = "no-cache";
  // Otherwise nginx in front collects the stream before it passes it on.
  headers["x-accel-buffering"] = "no";
  headers[REQUEST_ID_HEADER] = call.requestId;
  return headers;
}

/** Base64 of the vector as little-endian 32-bit floats, which is how clients of this API decode it. */
function packFloats(values: readonly unknown[]): string {
  const floats = new Float32Array(values.length);
  values.forEach((value, i) => (floats[i] = typeof value === "number" ? value : 0));
  return Buffer.from(floats.buffer).toString("base64");
}

function unpackFloats(text: string): number[] {
  const bytes = Buffer.from(text, "base64");
  return Array.from({ length: Math.floor(bytes.length / 4) }, (_, i) => bytes.readFloatLE(i * 4));
}

/**
 * The answer with its vectors in the requested form, and with what is charged where it states no usage; undefined when
 * nothing has to change.
 */
function convertEmbeddings(json: unknown, format: unknown, charged: Usage | undefined): string | undefined {
  const wanted = format === "base64" ? "base64" : "float";
  const body = asObject(json);
  const data = asList(body?.["data"]);
  let hasChanged = false;
  const converted = data.map((value) => {
    const item = asObject(value);
    const embedding = item?.["embedding"];
    if (wanted === "base64" && Array.isArray(embedding)) {
      hasChanged = true;
      return { ...item, embedding: packFloats(embedding) };
    }
    if (wanted === "float" && typeof embedding === "string") {
      hasChanged = true;
      return { ...item, embedding: unpackFloats(embedding) };
    }
    return value;
  });
  if (!hasChanged && !charged) return undefined;
  const tokens = charged && promptTokens(charged);
  const usage = tokens === undefined ? {} : { usage: { prompt_tokens: tokens, total_tokens: tokens } };
  return JSON.stringify({ ...body, data: converted, ...usage });
}

/** A full answer as the stream that the client requested: some upstreams do not stream. */
function asStream(call: Call, answer: CanonicalAnswer, seal: Sealer): string {
  const encoder = DIALECTS[call.endpoint.dialect].encodeStream(answerContext(call, Date.now(), seal));
  let text = "";
  for (const event of explode(answer)) text += encoder.push(event);
  return text;
}

/** An answer in canonical form, when the bytes of the upstream are not what this client can read. */
function convertedAnswer({
  call,
  plan,
  canonical,
  json,
  isGathered,
}: FullAnswer): CanonicalAnswer | undefined {
  if (!call.endpoint.isConversation) return undefined;
  if (!call.wantsStream && !plan.isConverted && isGathered !== true) return undefined;
  return canonical ?? decodeFull(call, plan, json);
}

/** The last stage: what the client gets of a settled answer. */
export function respond(services: CallServices, settled: SettledAnswer): Response {
  const response = written(services, settled);
  const { call, plan, response: theirs } = settled.answer;
  if (call.endpoint.name !== "responses" || plan.dialect.name !== "openai-responses") return response;
  const owner = { seal: services.deps.seal, userId: call.caller.user.id, channelId: plan.channel.id };
  const state = sealTurnState({ ...owner, key: plan.key }, theirs.headers.get(TURN_STATE));
  if (state !== undefined) response.headers.set(TURN_STATE, state);
  return response;
}

function written({ deps }: CallServices, settled: SettledAnswer): Response {
  const { answer, usage, isUnpaid } = settled;
  const { call, response } = answer;
  if (answer.kind === "full") {
    if (isUnpaid) return limitResponse(call, response, usage ?? emptyUsage(), deps.clock.nowMs());
    return fullResponse(answer, usage, deps.seal);
  }
  const body = answer.relay.body(call.request.signal);
  if (answer.kind === "bytes") return new Response(body, { headers: answerHeaders(call, response) });
  const headers = streamHeaders(call, response);
  headers["content-type"] = answer.contentType;
  return new Response(body, { headers });
}

/** In place of a full answer that the balance does not pay: a stream that reached its limit at once. */
function limitResponse(call: Call, response: Response, usage: Usage, nowMs: number): Response {
  const headers = streamHeaders(call, response);
  if (call.wantsArray) headers["content-type"] = JSON_TYPE;
  return new Response(limitBody(call, usage, nowMs), { headers });
}

/** What the call cost in dollars, for whoever reads no log. */
const COST_HEADER = "x-weir-cost";
/** A unit is a whole number of these dollars unless the operator chose an odd rate. */
const MOST_DECIMALS = 12;

/** Units as dollars in plain decimals, as programs read them: never 2e-6. */
function dollarsText(units: number, quotaPerUnit: number): string {
  const dollars = units / quotaPerUnit;
  // The shortest text of a quotient is its decimals; only below a millionth JavaScript writes an exponent.
  if (dollars === 0 || dollars >= 1e-6) return String(dollars);
  return dollars.toFixed(MOST_DECIMALS).replace(/\.?0+$/, "");
}

/** Headers of a whole answer: it is charged before it leaves. */
function wholeHeaders(call: Call, response: Response): Record<string, string> {
  const headers = answerHeaders(call, response);
  if (call.charged !== undefined) headers[COST_HEADER] = dollarsText(call.charged, call.price.quotaPerUnit);
  return headers;
}

/**
 * The list that answers with an upstream's own bytes copy theirs from: copying costs half of building one from an object, and
 * from answer to answer little of it changes. Read in the turn in which it is written.
 */
const sheet = new Headers({ "x-content-type-options": "nosniff", "cache-control": "no-store" });
/** What stands on it of the upstream's, by the places of PASSED_HEADERS. */
const passedOnSheet: (string | null)[] = PASSED_HEADERS.map(() => null);

/** As `wholeHeaders`. */
function wholeSheet(call: Call, { headers: theirs }: Response): Headers {
  PASSED_HEADERS.forEach((name, at) => {
    const value = theirs.get(name);
    if (value === passedOnSheet[at]) return;
    if (value === null) sheet.delete(name);
    else sheet.set(name, value);
    passedOnSheet[at] = value;
  });
  sheet.set(REQUEST_ID_HEADER, call.requestId);
  if (call.charged === undefined) sheet.delete(COST_HEADER);
  else sheet.set(COST_HEADER, dollarsText(call.charged, call.price.quotaPerUnit));
  return sheet;
}

/** `usage` as charged, for upstreams that reported none. */
function fullResponse(answer: FullAnswer, usage: Usage | undefined, seal: Sealer): Response {
  const { call } = answer;
  const canonical = convertedAnswer(answer);
  if (canonical) {
    if (answer.meter.usage === null && usage) canonical.usage = usage;
    return canonicalResponse(answer, canonical, usage, seal);
  }
  const { response } = answer;
  const { answer: rewrite } = call.endpoint;
  let converted: string | undefined;
  if (call.endpoint.name === "embeddings")
    converted = convertEmbeddings(
      answer.json,
      call.sent.json["encoding_format"],
      answer.meter.usage === null ? usage : undefined,
    );
  if (rewrite) {
    const json: unknown = converted === undefined ? answer.json : JSON.parse(converted);
    const body = rewrite(json, { body: call.body.json, usage });
    const headers = { ...wholeHeaders(call, response), "content-type": JSON_TYPE };
    return new Response(JSON.stringify(body), { headers });
  }
  // A page's own call needs more of them.
  const headers = call.request.headers.has("origin")
    ? wholeHeaders(call, response)
    : wholeSheet(call, response);
  return new Response(converted ?? answer.bytes, { headers });
}

function canonicalResponse(
  { call, response }: FullAnswer,
  canonical: CanonicalAnswer,
  usage: Usage | undefined,
  seal: Sealer,
): Response {
  if (call.wantsStream) {
    const headers = streamHeaders(call, response);
    if (call.wantsArray) headers["content-type"] = JSON_TYPE;
    return new Response(asStream(call, canonical, seal), { headers });
  }
  const headers = { ...wholeHeaders(call, response), "content-type": JSON_TYPE };
  const { endpoint } = call;
  const body = DIALECTS[endpoint.dialect].encodeAnswer(canonical, answerContext(call, Date.now(), seal));
  const written = endpoint.answer?.(body, { body: call.body.json, usage }) ?? body;
  return new Response(JSON.stringify(written), { headers });
}
