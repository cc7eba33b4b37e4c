// Four providers that refuse what the real ones refuse, in their own words, and answer everything else from recordings.
// Written from what was observed of them, not from the gateway's table.
import type { DialectName } from "../../src/protocol/canonical.ts";
import { answerOf } from "./dialect-upstream.ts";
import type { RecordedRequest, Script } from "./fake-upstream.ts";

type Body = Record<string, unknown>;

interface Asked {
  model: string;
  body: Body;
}

/** The provider's sentence, or undefined where it accepts. */
type Judge = (asked: Asked) => string | undefined;

const has = (body: Body, field: string): boolean => body[field] !== undefined && body[field] !== null;
const object = (value: unknown): Body => (typeof value === "object" && value !== null ? (value as Body) : {});
const list = (value: unknown): Body[] => (Array.isArray(value) ? (value as Body[]) : []);

const tooLong =
  (...fields: string[]): Judge =>
  ({ body }) => {
    const field = fields.find((name) => typeof body[name] === "string" && (body[name] as string).length > 64);
    return field && `Invalid '${field}': string too long. Expected a string with maximum length 64.`;
  };

const isReasoning = (model: string): boolean => /^(?:o\d|gpt-5)/.test(model) && !/chat|search/.test(model);
/** Models that sample as others do as long as they are not told to reason. */
const restsByDefault = (model: string): boolean => /^gpt-5\.(?:1|2|4)(?:$|-mini|-nano|-20)/.test(model);

const unsupported = (field: string): string =>
  `Unsupported parameter: '${field}' is not supported with this model.`;

function reasoningRefuses(
  { model, body }: Asked,
  effort: unknown,
  fields: readonly string[],
): string | undefined {
  if (!isReasoning(model)) return undefined;
  const samples = restsByDefault(model) && (effort === undefined || effort === "none");
  const free = samples ? ["temperature", "top_p", "logprobs", "top_logprobs"] : [];
  const field = fields.find((name) => has(body, name) && !free.includes(name));
  return field && unsupported(field);
}

const CHAT: readonly Judge[] = [
  tooLong("user", "safety_identifier", "prompt_cache_key"),
  ({ model, body }) =>
    has(body, "max_tokens") && /^(?:o\d|gpt-5)/.test(model)
      ? "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
      : undefined,
  (asked) =>
    reasoningRefuses(asked, asked.body["reasoning_effort"], [
      "temperature",
      "top_p",
      "logprobs",
      "top_logprobs",
      "presence_penalty",
      "frequency_penalty",
      "logit_bias",
    ]),
  ({ model, body }) =>
    /^o\d/.test(model) && has(body, "parallel_tool_calls") ? unsupported("parallel_tool_calls") : undefined,
  ({ model, body }) =>
    model.includes("-search-") &&
    ["temperature", "top_p", "presence_penalty", "frequency_penalty"].some((field) => has(body, field))
      ? "Model incompatible request argument supplied"
      : undefined,
  ({ model, body }) =>
    !model.includes("-search-") && has(body, "web_search_options")
      ? "Unknown parameter: 'web_search_options'."
      : undefined,
  ({ body }) =>
    Array.isArray(body["tools"]) && body["tools"].length === 0 ? "[] is too short - 'tools'" : undefined,
  ({ body }) => {
    const field = ["tool_choice", "parallel_tool_calls"].find((name) => has(body, name));
    return field && !has(body, "tools")
      ? `'${field}' is only allowed when 'tools' are specified.`
      : undefined;
  },
];

const RESPONSES: readonly Judge[] = [
  tooLong("user", "safety_identifier", "prompt_cache_key"),
  (asked) =>
    reasoningRefuses(asked, object(asked.body["reasoning"])["effort"], [
      "temperature",
      "top_p",
      "top_logprobs",
    ]),
  ({ model, body }) =>
    /gpt-4\.1-nano|^o1|^o3-mini/.test(model) && list(body["tools"]).some(isWebSearch)
      ? `Hosted tool 'web_search' is not supported with ${model}.`
      : undefined,
  ({ body }) =>
    object(body["reasoning"])["effort"] === "minimal" && list(body["tools"]).some(isWebSearch)
      ? "The following tools cannot be used with reasoning.effort 'minimal': web_search."
      : undefined,
  ({ body }) => {
    const { tool_choice: choice } = body;
    return choice !== undefined && choice !== "auto" && choice !== "none" && list(body["tools"]).length === 0
      ? "Tool choice must be specified with 'tools' parameter."
      : undefined;
  },
];

function isWebSearch(tool: Body): boolean {
  return String(tool["type"]).startsWith("web_search");
}

const ANTHROPIC: readonly Judge[] = [
  ({ model, body }) =>
    /4-[1-6](?!\d)/.test(model) && has(body, "temperature") && has(body, "top_p")
      ? "`temperature` and `top_p` cannot both be specified for this model. Please use only one."
      : undefined,
  ({ model, body }) => {
    const field = ["temperature", "top_p", "top_k"].find((name) => has(body, name));
    return field && /4-[789](?!\d)|-5(?!\d)$/.test(model) && !/4-5/.test(model)
      ? `\`${field}\` is deprecated for this model.`
      : undefined;
  },
  ({ model, body }) => {
    const type = object(body["thinking"])["type"];
    if (/4-[789]|fable|claude-\w+-5$/.test(model) && type === "enabled")
      return '"thinking.type.enabled" is not supported for this model.';
    if (/fable/.test(model) && type === "disabled")
      return '"thinking.type.disabled" is not supported for this model.';
    return /4-5|4-1/.test(model) && type === "adaptive"
      ? "adaptive thinking is not supported on this model"
      : undefined;
  },
  ({ model, body }) =>
    /(?:sonnet|haiku)-4-5|4-1/.test(model) && has(object(body["output_config"]), "effort")
      ? "This model does not support the effort parameter."
      : undefined,
  ({ model, body }) =>
    /4-6/.test(model) && object(body["output_config"])["effort"] === "xhigh"
      ? "This model does not support effort level 'xhigh'. Supported levels: high, low, max, medium."
      : undefined,
  ({ body }) =>
    JSON.stringify(object(body["metadata"])["user_id"] ?? "").includes("@")
      ? "metadata.user_id: user_id appears to contain an email address. Please send a uuid or hash value in its place."
      : undefined,
  ({ model, body }) =>
    /claude-3-(?:haiku|opus)/.test(model) && list(body["tools"]).some(isWebSearch)
      ? "tools.0: web_search is not supported on this model"
      : undefined,
  ({ body }) =>
    has(body, "tool_choice") && list(body["tools"]).length === 0
      ? "tool_choice: tool_choice may only be specified while providing tools"
      : undefined,
];

const GEMINI: readonly Judge[] = [
  ({ model, body }) => {
    const config = object(body["generationConfig"]);
    return /gemini-2\.5|gemini-3/.test(model) && (config["frequencyPenalty"] || config["presencePenalty"])
      ? "Penalty is not enabled for this model"
      : undefined;
  },
  ({ model, body }) => {
    const names = list(body["tools"]).flatMap((tool) => Object.keys(tool));
    if (names.length === 0) return undefined;
    const hasFunctions = names.includes("functionDeclarations");
    const isMixed = hasFunctions && names.some((name) => name !== "functionDeclarations");
    if (isMixed && /gemini-2/.test(model)) return "Tool use with function calling is unsupported";
    const isOn = object(body["toolConfig"])["includeServerSideToolInvocations"] === true;
    if (isMixed && /gemini-3/.test(model) && !isOn)
      return "Please enable tool_config.include_server_side_tool_invocations";
    return names.includes("googleSearch") && /flash-lite/.test(model)
      ? "Search Grounding is not supported."
      : undefined;
  },
  ({ body }) =>
    has(object(body["toolConfig"]), "functionCallingConfig") &&
    !list(body["tools"]).some((tool) => has(tool, "functionDeclarations"))
      ? "Function calling config is set without function_declarations."
      : undefined,
];

const JUDGES: Readonly<Record<DialectName, readonly Judge[]>> = {
  "openai-chat": CHAT,
  "openai-responses": RESPONSES,
  anthropic: ANTHROPIC,
  gemini: GEMINI,
};

function dialectAt(url: string): DialectName {
  if (url.includes("/v1beta/")) return "gemini";
  if (url.includes("/messages")) return "anthropic";
  return url.includes("/responses") ? "openai-responses" : "openai-chat";
}

/** 400 with the provider's sentence, or its recorded answer. */
export function refusing(request: RecordedRequest): Script {
  const dialect = dialectAt(request.url);
  const body = request.json();
  const model =
    dialect === "gemini" ? (/models\/([^:]+):/.exec(request.url)?.[1] ?? "") : String(body["model"]);
  const message = JUDGES[dialect].map((judge) => judge({ model, body })).find((found) => found !== undefined);
  if (message === undefined) return answerOf(dialect)(request);
  const error =
    dialect === "anthropic"
      ? { type: "error", error: { type: "invalid_request_error", message } }
      : { error: { message, type: "invalid_request_error", code: 400, status: "INVALID_ARGUMENT" } };
  return { status: 400, headers: { "content-type": "application/json" }, steps: [JSON.stringify(error)] };
}
