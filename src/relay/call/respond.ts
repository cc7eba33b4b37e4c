// Answers in the client's form: the upstream's own bytes where they fit, else the little that has to be rewritten.
// Refuses to pass on headers that are not on the list: they name the provider, its accounts and its addresses.
import { explode } from "../../protocol/assemble.ts";
import type { Answer as CanonicalAnswer } from "../../protocol/assemble.ts";
import { DIALECTS } from "../../protocol/dialects.ts";
import { asList, asObject } from "../../protocol/json.ts";
import { REQUEST_ID_HEADER } from "../../http/request-id.ts";
import type { Usage } from "../../shared/usage.ts";
import { answerContext, decodeWhole } from "./answer.ts";
import type { WholeAnswer } from "./answer.ts";
import type { Call } from "./call.ts";
import { corsHeaders } from "../wire/cors.ts";

const JSON_TYPE = "application/json";

const PASSED_HEADERS: ReadonlySet<string> = new Set([
  "content-type",
  "x-request-id",
  "request-id",
  "openai-processing-ms",
  "openai-version",
  "retry-after",
  "retry-after-ms",
]);

/** Names that the gateway's own answer carries besides the upstream's. */
export function answerHeaders(call: Call, response: Response): Record<string, string> {
  const headers = corsHeaders(call.request);
  // One plain object costs half of an iterator over them.
  const theirs = response.headers.toJSON();
  for (const name in theirs) {
    const value = theirs[name];
    if (value !== undefined && (PASSED_HEADERS.has(name) || name.startsWith("x-ratelimit-")))
      headers[name] = value;
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
  const whole = bytes.subarray(0, bytes.length - (bytes.length % 4));
  return Array.from({ length: whole.length / 4 }, (_, i) => whole.readFloatLE(i * 4));
}

/** The answer with its vectors in the asked form; undefined when nothing has to change. */
export function convertEmbeddings(json: unknown, format: unknown): string | undefined {
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
  return hasChanged ? JSON.stringify({ ...body, data: converted }) : undefined;
}

/** A plain answer as the stream that the client asked for: some upstreams do not stream. */
function asStream(call: Call, answer: CanonicalAnswer): string {
  const encoder = DIALECTS[call.endpoint.dialect].encodeStream(answerContext(call, Date.now()));
  let text = "";
  for (const event of explode(answer)) text += encoder.push(event);
  return text;
}

/** An answer in canonical form, when the bytes of the upstream are not what this client can read. */
function retold(call: Call, answer: WholeAnswer): CanonicalAnswer | undefined {
  const { plan, canonical, json } = answer;
  if (!call.endpoint.isConversation) return undefined;
  if (!call.wantsStream && !plan.isConverted && answer.isGathered !== true) return undefined;
  return canonical ?? decodeWhole(call, plan, json);
}

/** The response for a settled plain answer; `usage` as charged, for upstreams that reported none. */
export function wholeResponse(call: Call, answer: WholeAnswer, usage: Usage | undefined): Response {
  const canonical = retold(call, answer);
  if (canonical) {
    if (answer.meter.usage === null && usage) canonical.usage = usage;
    if (call.wantsStream) {
      const headers = streamHeaders(call, answer.response);
      if (call.wantsArray) headers["content-type"] = JSON_TYPE;
      return new Response(asStream(call, canonical), { headers });
    }
    const headers = { ...answerHeaders(call, answer.response), "content-type": JSON_TYPE };
    const dialect = DIALECTS[call.endpoint.dialect];
    const body = dialect.encodeAnswer(canonical, answerContext(call, Date.now()));
    const told = call.endpoint.answer?.(body, { body: call.body.json, usage }) ?? body;
    return new Response(JSON.stringify(told), { headers });
  }
  const headers = answerHeaders(call, answer.response);
  const { answer: told } = call.endpoint;
  let converted: string | undefined;
  if (call.endpoint.name === "embeddings")
    converted = convertEmbeddings(answer.json, call.sent.json["encoding_format"]);
  if (told) {
    const json: unknown = converted === undefined ? answer.json : JSON.parse(converted);
    const body = told(json, { body: call.body.json, usage });
    return new Response(JSON.stringify(body), { headers: { ...headers, "content-type": JSON_TYPE } });
  }
  if (converted !== undefined) return new Response(converted, { headers });
  return new Response(answer.bytes, { headers });
}
