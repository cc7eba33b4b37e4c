// AWS Bedrock: Claude through InvokeModel in Anthropic's own form, every other model through the Converse API.
// Refuses keys without access key, secret and region, and what Converse has no words for, by name.
import type { CanonicalRequest, Message, Part } from "../../protocol/canonical.ts";
import { cannotCarry } from "../../protocol/carry.ts";
import { errorEnvelope } from "../../protocol/anthropic/failure.ts";
import type { CanonicalEvent, FinishReason } from "../../protocol/events.ts";
import { asList, asObject, asString, parseJson } from "../../protocol/json.ts";
import { toolNames } from "../../protocol/canonical.ts";
import { upstreamFailure } from "../../protocol/classify.ts";
import { Failure } from "../../shared/failures.ts";
import type { Usage } from "../../shared/usage.ts";
import { boundedCount, emptyUsage } from "../../shared/usage.ts";
import type { AdapterCall } from "../adapter.ts";
import {
  chatResponse,
  conversation,
  eventWriter,
  keyParts,
  readJson,
  streamResponse,
} from "../adapter-kit.ts";
import { createAwsEventReader } from "../aws-event-stream.ts";
import type { AwsEvent } from "../aws-event-stream.ts";
import { encodeStrict, signAws } from "../aws-signature.ts";

/** Families of regions in which a model is reached through a cross-region profile. */
const PROFILES: Readonly<Record<string, readonly string[]>> = {
  "anthropic.claude-3-sonnet-20240229-v1:0": ["ap", "eu", "us"],
  "anthropic.claude-3-opus-20240229-v1:0": ["us"],
  "anthropic.claude-3-haiku-20240307-v1:0": ["ap", "eu", "us"],
  "anthropic.claude-3-5-sonnet-20240620-v1:0": ["ap", "eu", "us"],
  "anthropic.claude-3-5-sonnet-20241022-v2:0": ["ap", "us"],
  "anthropic.claude-3-5-haiku-20241022-v1:0": ["us"],
  "anthropic.claude-3-7-sonnet-20250219-v1:0": ["ap", "eu", "us"],
  "anthropic.claude-sonnet-4-20250514-v1:0": ["ap", "eu", "us"],
  "anthropic.claude-opus-4-20250514-v1:0": ["us"],
};
const PREFIXES: Readonly<Record<string, string>> = { us: "us", eu: "eu", ap: "apac" };
/** Model names whose id at Bedrock does not follow from the name. */
const IDS: Readonly<Record<string, string>> = {
  "claude-instant-1.2": "anthropic.claude-instant-v1",
  "claude-2.0": "anthropic.claude-v2",
  "claude-2.1": "anthropic.claude-v2:1",
  "claude-3-5-sonnet-20241022": "anthropic.claude-3-5-sonnet-20241022-v2:0",
};
const ANTHROPIC_VERSION = "bedrock-2023-05-31";

/** Anthropic's dated names become Bedrock ids; anything else is one already (a profile, another maker's model). */
export function bedrockModelId(model: string, region: string): string {
  const id = IDS[model] ?? (/^claude-[\w.-]*-\d{8}$/.test(model) ? `anthropic.${model}-v1:0` : model);
  const [family = ""] = region.split("-");
  const prefix = PREFIXES[family];
  return prefix !== undefined && PROFILES[id]?.includes(family) === true ? `${prefix}.${id}` : id;
}

function send(call: AdapterCall, action: string, body: unknown): Promise<Response> {
  const text = JSON.stringify(body);
  const parts = call.key.split("|").map((part) => part.trim());
  // API keys of Bedrock's own: `key|region`, sent as a bearer.
  const isBearer = parts.length === 2;
  const region = isBearer ? (parts[1] ?? "") : (keyParts(call.key, 3)[2] ?? "");
  const base = call.channel.baseUrl || `https://bedrock-runtime.${region}.amazonaws.com`;
  const url = `${base}/model/${encodeStrict(bedrockModelId(call.model, region))}/${action}`;
  const headers: Record<string, string> = { "content-type": "application/json", accept: "application/json" };
  if (isBearer) headers["authorization"] = `Bearer ${parts[0]}`;
  else {
    const [accessKey = "", secretKey = ""] = parts;
    const credentials = { accessKey, secretKey, region, service: "bedrock" };
    Object.assign(headers, signAws({ method: "POST", url, headers, body: text }, credentials, call.nowMs()));
  }
  return call.fetch(url, { method: "POST", headers, body: text });
}

async function* awsEvents(response: Response): AsyncGenerator<AwsEvent> {
  if (!response.body) return;
  const events = createAwsEventReader();
  for await (const chunk of response.body) yield* events.push(chunk);
  if (!events.isEmpty())
    throw new Failure("broken-stream", "broken_stream", { internal: "event stream: cut" });
}

/** The failure of an exception frame: AWS names it in a header and puts a message into the payload. */
function exceptionOf({ headers, payload }: AwsEvent): Failure | undefined {
  const name = headers[":exception-type"] ?? headers[":error-code"];
  if (headers[":message-type"] === "event" || name === undefined) return undefined;
  const text = new TextDecoder().decode(payload);
  const message = asString(asObject(parseJson(text))?.["message"]) ?? text;
  const status = /throttl/i.test(name) ? 429 : /validation/i.test(name) ? 400 : 500;
  return upstreamFailure({ status, message, type: name, raw: text });
}

// --- Claude ----------------------------------------------------------------------------------------------------------

async function invoke(call: AdapterCall): Promise<Response> {
  const { model: _model, stream: _stream, ...body } = call.body;
  const asked = { anthropic_version: ANTHROPIC_VERSION, ...body };
  const beta = call.headers["anthropic-beta"];
  if (beta !== undefined)
    Object.assign(asked, { anthropic_beta: beta.split(",").map((name) => name.trim()) });
  if (!call.isStream) return send(call, "invoke", asked);
  const response = await send(call, "invoke-with-response-stream", asked);
  if (response.status !== 200) return response;
  return streamResponse(
    (async function* () {
      for await (const event of awsEvents(response)) {
        const failure = exceptionOf(event);
        if (failure) {
          yield `event: error\ndata: ${JSON.stringify(errorEnvelope(failure, failure.text ?? failure.code))}\n\n`;
          return;
        }
        const bytes = asString(asObject(parseJson(new TextDecoder().decode(event.payload)))?.["bytes"]);
        if (bytes === undefined) continue;
        const data = Buffer.from(bytes, "base64").toString("utf8");
        yield `event: ${asString(asObject(parseJson(data))?.["type"]) ?? "message"}\ndata: ${data}\n\n`;
      }
    })(),
  );
}

// --- Converse --------------------------------------------------------------------------------------------------------

function conversePart(part: Part): unknown {
  switch (part.type) {
    case "text":
      return { text: part.text };
    case "image": {
      if (part.source.kind !== "base64") throw cannotCarry("image_url");
      const format = part.source.mime.replace("image/", "").replace("jpg", "jpeg");
      return { image: { format, source: { bytes: part.source.data } } };
    }
    case "tool-call":
      return { toolUse: { toolUseId: part.id, name: part.name, input: parseJson(part.input) ?? {} } };
    case "tool-result": {
      const content = part.content.map((inner) => {
        if (inner.type !== "text") throw cannotCarry("messages.tool.content");
        return { text: inner.text };
      });
      return {
        toolResult: { toolUseId: part.id, content, ...(part.isError === true ? { status: "error" } : {}) },
      };
    }
    case "thinking":
      return undefined;
    default:
      throw cannotCarry(part.type);
  }
}

/** Turns of one role stand in one message; tool results are the user's. */
function converseMessages(messages: readonly Message[]): unknown[] {
  const out: { role: string; content: unknown[] }[] = [];
  for (const message of messages) {
    if (message.role === "system" || message.role === "developer") continue;
    const role = message.role === "assistant" ? "assistant" : "user";
    const content = message.parts.map(conversePart).filter((part) => part !== undefined);
    const last = out.at(-1);
    if (last?.role === role) last.content.push(...content);
    else out.push({ role, content });
  }
  return out.filter((message) => message.content.length > 0);
}

function converseBody(request: CanonicalRequest): Record<string, unknown> {
  const { settings, tools = [], toolChoice } = request;
  if ((settings.n ?? 1) > 1) throw cannotCarry("n");
  const system = request.messages
    .filter((message) => message.role === "system" || message.role === "developer")
    .flatMap((message) =>
      message.parts.map((part) => (part.type === "text" ? { text: part.text } : undefined)),
    )
    .filter((part) => part !== undefined);
  const inference = {
    maxTokens: settings.maxOutputTokens,
    temperature: settings.temperature,
    topP: settings.topP,
    stopSequences: settings.stop,
  };
  const body: Record<string, unknown> = {
    messages: converseMessages(request.messages),
    inferenceConfig: inference,
  };
  if (system.length > 0) body["system"] = system;
  // A history with calls needs the tools named even when none is offered any more.
  const known =
    tools.length > 0
      ? tools
      : [...new Set(toolNames(request.messages).values())].map((name) => ({
          type: "function" as const,
          name,
        }));
  if (known.length > 0) {
    const specs = known.map((tool) => {
      if (tool.type !== "function") throw cannotCarry("tools");
      const { name, description, schema } = { description: undefined, schema: undefined, ...tool };
      return { toolSpec: { name, description, inputSchema: { json: schema ?? { type: "object" } } } };
    });
    const config: Record<string, unknown> = { tools: specs };
    if (toolChoice?.mode === "any") config["toolChoice"] = { any: {} };
    if (toolChoice?.mode === "tool") config["toolChoice"] = { tool: { name: toolChoice.name } };
    if (toolChoice?.mode !== "none" || tools.length === 0) body["toolConfig"] = config;
  }
  if (request.responseFormat && request.responseFormat.type !== "text") throw cannotCarry("response_format");
  return body;
}

const FINISH: Readonly<Record<string, FinishReason>> = {
  end_turn: "stop",
  tool_use: "tool-calls",
  max_tokens: "length",
  stop_sequence: "stop-sequence",
  guardrail_intervened: "content-filter",
  content_filtered: "content-filter",
};

function converseUsage(raw: unknown): Usage {
  const usage = emptyUsage();
  const wire = asObject(raw);
  if (!wire) return usage;
  usage.input.fresh = boundedCount(wire["inputTokens"]);
  usage.input.cacheRead = boundedCount(wire["cacheReadInputTokens"]);
  usage.input.cacheWrite5m = boundedCount(wire["cacheWriteInputTokens"]);
  usage.output.text = boundedCount(wire["outputTokens"]);
  usage.raw = raw;
  return usage;
}

function* wholeEvents(body: Record<string, unknown>): Generator<CanonicalEvent> {
  const writer = eventWriter();
  yield* writer.start();
  const message = asObject(asObject(body["output"])?.["message"]);
  for (const value of asList(message?.["content"])) {
    const block = asObject(value);
    const thought = asObject(asObject(block?.["reasoningContent"])?.["reasoningText"]);
    const use = asObject(block?.["toolUse"]);
    if (thought) yield* writer.text(asString(thought["text"]) ?? "", "thinking");
    yield* writer.text(asString(block?.["text"]) ?? "");
    if (use)
      yield* writer.call(
        asString(use["toolUseId"]) ?? "",
        asString(use["name"]) ?? "",
        JSON.stringify(use["input"] ?? {}),
      );
  }
  const reason = asString(body["stopReason"]) ?? "";
  yield* writer.finish(FINISH[reason] ?? "other", reason, converseUsage(body["usage"]));
}

async function* streamedEvents(response: Response): AsyncGenerator<CanonicalEvent> {
  const writer = eventWriter();
  yield* writer.start();
  let reason = "";
  for await (const event of awsEvents(response)) {
    const failure = exceptionOf(event);
    if (failure) return yield { type: "fail", failure };
    const wire = asObject(parseJson(new TextDecoder().decode(event.payload)));
    const delta = asObject(wire?.["delta"]);
    switch (event.headers[":event-type"]) {
      case "contentBlockStart": {
        const use = asObject(asObject(wire?.["start"])?.["toolUse"]);
        if (use) yield* writer.call(asString(use["toolUseId"]) ?? "", asString(use["name"]) ?? "");
        break;
      }
      case "contentBlockDelta": {
        yield* writer.text(asString(asObject(delta?.["reasoningContent"])?.["text"]) ?? "", "thinking");
        yield* writer.text(asString(delta?.["text"]) ?? "");
        yield* writer.json(asString(asObject(delta?.["toolUse"])?.["input"]) ?? "");
        break;
      }
      case "messageStop":
        reason = asString(wire?.["stopReason"]) ?? "";
        break;
      case "metadata":
        yield* writer.finish(FINISH[reason] ?? "other", reason, converseUsage(wire?.["usage"]));
        return;
      default:
    }
  }
  if (reason === "") throw new Failure("broken-stream", "broken_stream");
  yield* writer.finish(FINISH[reason] ?? "other", reason, emptyUsage());
}

async function converse(call: AdapterCall): Promise<Response> {
  const body = converseBody(conversation(call));
  const response = await send(call, call.isStream ? "converse-stream" : "converse", body);
  if (response.status !== 200) return response;
  return chatResponse(call, call.isStream ? streamedEvents(response) : wholeEvents(await readJson(response)));
}

export function bedrock(call: AdapterCall): Promise<Response> {
  return call.route.dialect === "anthropic" ? invoke(call) : converse(call);
}
