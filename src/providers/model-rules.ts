// THE table of what single models refuse although their dialect has words for it: what is left out, moved or hashed so that
// a request is served, each row with its source. Refuses to guess: a name that stands in no row gets no rule.
import { BUDGET_MODELS } from "../protocol/anthropic/models.ts";
import type { DialectName, JsonObject } from "../protocol/canonical.ts";
import type { Operation } from "./define.ts";

/** Whom a rule concerns; what is absent allows everything. */
interface Concern {
  /** Dialects of the upstream. */
  speaks: readonly DialectName[];
  /** The upstream's name of the model, without the vendor in front (`openai/`). */
  models: RegExp;
  except?: RegExp;
  /** Channel types: where one provider refuses what others of the same dialect and model take. */
  types?: readonly number[];
  notTypes?: readonly number[];
  /** Requests of clients of another dialect, which has no word for what would make it right. */
  onlyConverted?: true;
  /** Operations beside the four conversations. */
  also?: readonly Operation[];
}

/**
 * What a rule does. Fields are paths of one or two members, and are told by their last word in the form of the other
 * dialects (`frequencyPenalty` as `frequency_penalty`).
 */
export type RuleAction =
  /** The fields go; a value of `silent` is the model's own default, so that nothing is lost and nothing is told. */
  | { do: "omit"; fields: readonly string[]; silent?: JsonObject; unless?: "effort-none" }
  /** One entry of a list goes. */
  | { do: "unlist"; field: string; entry: string; told: string }
  /** Only one of the two may be there: the second goes, or the first where it only says its default. */
  | { do: "one-of"; fields: readonly [string, string]; silent: JsonObject }
  | { do: "move"; from: string; to: string }
  /** A word that the model does not know becomes the nearest one that it does. */
  | { do: "reword"; field: string; words: Readonly<Record<string, string>> }
  /** Texts above `max` characters, and e-mail addresses where they are refused, become their SHA-256 in hex digits. */
  | { do: "hash"; fields: readonly string[]; max: number; noMail?: true }
  /** A declared search goes; a request whose tool_choice demands it is refused. */
  | { do: "no-search"; when?: "effort-minimal" }
  /** Hosted tools beside functions go, the search among them. */
  | { do: "functions-alone" }
  /** Fields that are refused beside an empty list of tools; and that list itself, where it is refused too. */
  | { do: "no-empty-tools"; list: boolean; fields: readonly string[]; keeps?: readonly unknown[] }
  /** Thinking by a budget becomes adaptive thinking with the nearest effort. */
  | { do: "adaptive" }
  /** Thinking of this type is not asked for. */
  | { do: "no-thinking-of"; type: "adaptive" | "disabled" };

export type ModelRule = Concern & RuleAction;

const CHAT = ["openai-chat"] as const;
const RESPONSES = ["openai-responses"] as const;
const OPENAI = ["openai-chat", "openai-responses"] as const;
const ANTHROPIC = ["anthropic"] as const;
const GEMINI = ["gemini"] as const;

const OPENROUTER = 20;
const BEDROCK = 33;
const MISTRAL = 42;
const DEEPSEEK = 43;

/** Models that OpenAI itself serves; its open weights are served by others. */
const OPENAI_MODELS = /^(?:ft:)?(?:gpt-(?!oss)|chatgpt-|o\d|codex-|computer-use-|text-embedding-|dall-e)/;
/** OpenAI, "Reasoning models": they know max_completion_tokens only, and sampling is theirs. */
const REASONING = /^(?:o\d(?![\w.])|gpt-5)/;
/** "Using GPT-5.2", parameter compatibility: with effort none, their default, these sample as others do; later ones never. */
const RESTING = /^gpt-5\.[124](?!\d)(?!.*(?:codex|pro|chat))/;
/** No reasoning: `gpt-5-chat-latest` and its followers, and the search models, which have a row of their own. */
const NOT_REASONING = /^gpt-5(?:\.\d+)?-(?:chat|search)/;
const MAY_SAMPLE = new RegExp(`${RESTING.source}|${NOT_REASONING.source}`);
const SEARCH_MODELS = /-search-preview|-search-api/;

const CLAUDE = /claude/;
/** Opus 4.1 to the models of generation 4.6. Dates (`claude-opus-4-20250514`) are no versions. */
const CLAUDE_4_1_TO_4_6 = /claude-(?:(?:opus|sonnet|haiku)-4[.-][1-6](?!\d)|4\.[1-6]-(?:opus|sonnet|haiku))/;
const SINCE_CLAUDE_4_7 =
  /claude-(?:(?:opus|sonnet|haiku)-(?:4[.-](?:[7-9]|[1-9]\d)(?!\d)|[5-9](?!\d))|4\.(?:[7-9]|\d\d)-|fable|mythos)/;

const SAMPLING = ["temperature", "top_p"] as const;
const PENALTIES = ["presence_penalty", "frequency_penalty"] as const;
/** Google reads both spellings. */
const GEMINI_PENALTIES = ["generationConfig", "generation_config"].flatMap((config) =>
  ["frequencyPenalty", "presencePenalty", ...PENALTIES].map((field) => `${config}.${field}`),
);
const DEFAULTS: JsonObject = {
  temperature: 1,
  top_p: 1,
  presence_penalty: 0,
  frequency_penalty: 0,
  frequencyPenalty: 0,
  presencePenalty: 0,
  logprobs: false,
  top_logprobs: 0,
};

/** In the order in which they apply: a search that goes may leave an empty list of tools. */
export const MODEL_RULES: Readonly<
  Record<"openai" | "anthropic" | "google" | "others", readonly ModelRule[]>
> = {
  openai: [
    // Observed: "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    { speaks: CHAT, models: REASONING, do: "move", from: "max_tokens", to: "max_completion_tokens" },
    // "Using GPT-5.2", parameter compatibility: temperature, top_p and logprobs raise an error with any other effort than
    // none, and with older GPT-5 models; observed for the o-series: "Unsupported parameter: 'top_p' is not supported".
    {
      speaks: OPENAI,
      models: REASONING,
      except: MAY_SAMPLE,
      do: "omit",
      fields: [...SAMPLING, "logprobs", "top_logprobs"],
      silent: DEFAULTS,
    },
    {
      speaks: OPENAI,
      models: RESTING,
      do: "omit",
      fields: [...SAMPLING, "logprobs", "top_logprobs"],
      silent: DEFAULTS,
      unless: "effort-none",
    },
    {
      speaks: RESPONSES,
      models: REASONING,
      except: MAY_SAMPLE,
      do: "unlist",
      field: "include",
      entry: "message.output_text.logprobs",
      told: "logprobs",
    },
    // "Reasoning models", limitations (guide of the o-series, kept for GPT-5): penalties and logit_bias are refused.
    {
      speaks: CHAT,
      models: REASONING,
      except: NOT_REASONING,
      do: "omit",
      fields: [...PENALTIES, "logit_bias"],
      silent: DEFAULTS,
    },
    // Observed for o1, o3, o3-mini, o4-mini: "Unsupported parameter: 'parallel_tool_calls' is not supported with this model."
    { speaks: CHAT, models: /^o\d/, do: "omit", fields: ["parallel_tool_calls"] },
    // Observed: "Model incompatible request arguments supplied: frequency_penalty, presence_penalty, temperature, top_p".
    {
      speaks: CHAT,
      models: SEARCH_MODELS,
      do: "omit",
      fields: [...SAMPLING, ...PENALTIES],
      silent: DEFAULTS,
    },
    // API reference, safety_identifier and prompt_cache_key: at most 64 characters; observed of all three: "string too
    // long. Expected a string with maximum length 64".
    {
      speaks: OPENAI,
      models: OPENAI_MODELS,
      also: ["completions", "embeddings", "image-generations"],
      do: "hash",
      fields: ["user", "safety_identifier", "prompt_cache_key"],
      max: 64,
    },
    // "Web search", chat completions: gpt-5-search-api and the search previews only; observed of the others: "Unknown
    // parameter: 'web_search_options'", and of Azure "Unrecognized request argument". OpenRouter searches for any model.
    {
      speaks: CHAT,
      models: OPENAI_MODELS,
      except: SEARCH_MODELS,
      notTypes: [OPENROUTER],
      do: "no-search",
    },
    // "Web search", limitations, and the models' own pages: no such tool. Observed: "Hosted tool 'web_search_preview' is
    // not supported with gpt-4.1-nano."
    {
      speaks: RESPONSES,
      models: /^(?:gpt-4\.1-nano|gpt-3\.5|gpt-4(?:$|-\d|-turbo)|o1|o3-mini)/,
      do: "no-search",
    },
    // Observed: "The following tools cannot be used with reasoning.effort 'minimal': web_search."
    { speaks: RESPONSES, models: /^gpt-5/, do: "no-search", when: "effort-minimal" },
    // Observed: "[] is too short - 'tools'", "'tool_choice' is only allowed when 'tools' are specified", and likewise of
    // parallel_tool_calls.
    {
      speaks: CHAT,
      models: OPENAI_MODELS,
      do: "no-empty-tools",
      list: true,
      fields: ["tool_choice", "parallel_tool_calls"],
    },
    // Observed: "Tool choice 'required' must be specified with 'tools' parameter." An empty list is accepted here.
    {
      speaks: RESPONSES,
      models: OPENAI_MODELS,
      do: "no-empty-tools",
      list: false,
      fields: ["tool_choice"],
      keeps: ["auto", "none"],
    },
  ],
  anthropic: [
    // Release notes of Opus 4.1 and "Migrating to Claude 4.5"; observed: "`temperature` and `top_p` cannot both be
    // specified for this model. Please use only one."
    {
      speaks: ["anthropic", "openai-chat"],
      models: CLAUDE_4_1_TO_4_6,
      do: "one-of",
      fields: SAMPLING,
      silent: DEFAULTS,
    },
    // "Migration guide", Opus 4.7: sampling parameters are removed (400); observed: "`temperature` is deprecated for this
    // model."
    {
      speaks: ["anthropic", "openai-chat"],
      models: SINCE_CLAUDE_4_7,
      do: "omit",
      fields: [...SAMPLING, "top_k"],
      silent: DEFAULTS,
    },
    // "Migration guide", Opus 4.7; observed: "\"thinking.type.enabled\" is not supported for this model. Use
    // \"thinking.type.adaptive\" and \"output_config.effort\"".
    { speaks: ANTHROPIC, models: SINCE_CLAUDE_4_7, do: "adaptive" },
    // Observed: "\"thinking.type.disabled\" is not supported for this model."
    { speaks: ANTHROPIC, models: /claude-(?:fable|mythos)/, do: "no-thinking-of", type: "disabled" },
    // "Adaptive thinking", supported models: since 4.6.
    { speaks: ANTHROPIC, models: BUDGET_MODELS, do: "no-thinking-of", type: "adaptive" },
    // "Effort", supported models: Opus 4.5, and all since 4.6; observed: "This model does not support the effort parameter."
    {
      speaks: ANTHROPIC,
      models: BUDGET_MODELS,
      except: /opus-4[.-]5/,
      do: "omit",
      fields: ["output_config.effort"],
    },
    // "Effort", levels; observed of 4.6: "This model does not support effort level 'xhigh'. Supported levels: high, low,
    // max, medium."
    {
      speaks: ANTHROPIC,
      models: /claude-(?:opus|sonnet|haiku)-4[.-]6(?!\d)/,
      do: "reword",
      field: "output_config.effort",
      words: { xhigh: "high" },
    },
    {
      speaks: ANTHROPIC,
      models: /opus-4[.-]5(?!\d)/,
      do: "reword",
      field: "output_config.effort",
      words: { xhigh: "high", max: "high" },
    },
    // Messages reference, metadata.user_id: at most 256 characters, no names, e-mail addresses or telephone numbers;
    // observed: "metadata.user_id: user_id appears to contain an email address. Please send a uuid or hash value".
    { speaks: ANTHROPIC, models: CLAUDE, do: "hash", fields: ["metadata.user_id"], max: 256, noMail: true },
    // "Web search tool", supported models: Sonnet and Haiku 3.5 (October 2024), 3.7 and all since 4.
    {
      speaks: ANTHROPIC,
      models: /claude-(?:instant|2|3-(?:opus|sonnet|haiku)|3-5-sonnet[-@]20240620)/,
      do: "no-search",
    },
    // "Claude in Amazon Bedrock", features: the search tool is not available there.
    { speaks: ANTHROPIC, models: CLAUDE, types: [BEDROCK], do: "no-search" },
    // Observed: "tool_choice may only be specified while providing tools".
    { speaks: ANTHROPIC, models: CLAUDE, do: "no-empty-tools", list: false, fields: ["tool_choice"] },
  ],
  google: [
    // Observed of the 2.5 and 3 series, and confirmed by Google (forum, "Doom Loop"): "Penalty is not enabled for this
    // model"; the default is accepted.
    {
      speaks: GEMINI,
      models: /gemini-(?:2\.5|[3-9]|\d\d)/,
      do: "omit",
      fields: GEMINI_PENALTIES,
      silent: DEFAULTS,
    },
    // "Grounding with Google Search", supported models: neither 2.0 Flash-Lite nor those that draw or speak.
    {
      speaks: GEMINI,
      models: /gemini-2\.0-flash-lite|gemini-2\.\d-\S*(?:image|tts)|gemma/,
      do: "no-search",
    },
    // "Combine built-in tools and function calling": since Gemini 3, and there with a switch; observed: "Tool use with
    // function calling is unsupported". Functions stay: a model cannot call what never reached it.
    { speaks: GEMINI, models: /gemini-(?:1|2)/, do: "functions-alone" },
    {
      speaks: GEMINI,
      models: /gemini-(?:[3-9]|\d\d)/,
      onlyConverted: true,
      do: "functions-alone",
    },
    // Observed: "Function calling config is set without function_declarations."
    {
      speaks: GEMINI,
      models: /gemini/,
      do: "no-empty-tools",
      list: false,
      fields: ["toolConfig.functionCallingConfig", "tool_config.function_calling_config"],
    },
  ],
  others: [
    // xAI, "Reasoning"; observed, whatever the value: "Model grok-4-latest does not support parameter reasoningEffort."
    {
      speaks: OPENAI,
      models: /^grok-(?:3(?!-mini)|4(?:$|-|\.20(?!\S*multi-agent))|code)/,
      do: "omit",
      fields: ["reasoning_effort", "reasoning.effort"],
    },
    // Likewise, also of 0: "Model grok-4.5 does not support parameter presencePenalty."
    { speaks: OPENAI, models: /^grok-(?:4|code)/, do: "omit", fields: PENALTIES, silent: DEFAULTS },
    // OpenRouter, "user": observed: at most 128 characters.
    { speaks: CHAT, models: /./, types: [OPENROUTER], do: "hash", fields: ["user"], max: 128 },
    // DeepSeek's and Mistral's chat completions have no search of their own (their API references); Mistral answers 422 to
    // the field, DeepSeek ignores it.
    { speaks: CHAT, models: /./, types: [MISTRAL, DEEPSEEK], do: "no-search" },
  ],
};
