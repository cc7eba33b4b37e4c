// The one class of errors that agents answer by shortening their conversation: recognised in the words of many upstreams,
// written in the words that the clients of each dialect look for.
import type { Failure } from "../shared/failures.ts";
import type { DialectName } from "./canonical.ts";
import { asNumber, asObject } from "./json.ts";

/** Tokens of the request and the most that the model takes, as far as the upstream told them. */
export interface ContextLength {
  used?: number;
  limit?: number;
}

/**
 * Codes and types: OpenAI `context_length_exceeded`, llama.cpp `exceed_context_size_error`, GitHub's
 * `model_max_prompt_tokens_exceeded`, `context_window_exceeded` of several proxies.
 */
const CODES =
  /context_length|context_window_exceeded|exceed_context_size|max_prompt_tokens_exceeded|prompt_too_long/i;

/** A number of tokens with its separators. */
const N = "(?<used>[\\d,_]+)";
const M = "(?<limit>[\\d,_]+)";

/**
 * Sentences by which an upstream says it, with the numbers where it gives them. The first row that matches counts, so the
 * rows with more numbers stand before those with fewer.
 */
const SENTENCES: readonly RegExp[] = [
  // Anthropic; also through Bedrock and Vertex.
  `prompt is too long:? *${N} tokens? *> *${M}`,
  `exceed context limit:? *(?<part>[\\d,_]+) *\\+ *(?<more>[\\d,_]+) *> *${M}`,
  // Gemini, AI Studio and Vertex.
  `input token count \\(?${N}\\)? exceeds the maximum number of tokens allowed \\(?${M}`,
  `input token count is ${N} but (?:the )?model only supports up to ${M}`,
  `input token count exceeds the maximum number of tokens allowed(?: \\(?${M})?`,
  // OpenAI; DeepSeek, vLLM, OpenRouter and others use its sentence.
  `maximum context length (?:is|of) ${M} tokens?[^]*?(?:requested|resulted in)(?: a total of)?(?: about)? ${N} tokens`,
  `maximum context length is ${M} tokens?[^]*?request has ${N} input tokens`,
  `exceeds? the configured limit of ${M} tokens[^]*?resulted in ${N} tokens`,
  // Mistral.
  `prompt contains ${N} tokens[^]*?model with ${M} maximum context length`,
  // xAI.
  `maximum prompt length is ${M} but the request contains ${N} tokens`,
  // vLLM, older and newer.
  `(?:prompt|input) \\(?(?:total )?length:? ${N}\\)? is longer than the maximum (?:model|context) length of ${M}`,
  // llama.cpp, SGLang, GitHub, Moonshot, text-generation-inference.
  `request \\(${N} tokens\\) exceeds the available context size \\(${M}`,
  `input \\(${N} tokens\\) is longer than the model'?s context length \\(${M}`,
  `prompt token count of ${N} exceeds the limit of ${M}`,
  `exceeded model token limit:? ${M} \\(requested:? ${N}`,
  "max_new_tokens\\W* must be <= (?<limit>\\d+)\\. Given: (?<part>\\d+) \\W*inputs\\W* tokens and (?<more>\\d+)",
  // LM Studio, Ollama, DashScope, MiniMax, Zhipu, Bedrock.
  `context length of only ${M} tokens`,
  `range of input length should be \\[\\d+, ?${M}\\]`,
  `maximum context length(?: (?:is|of) ${M})?`,
  "exceeds the available context size",
  "(?:exceeds?|exceeded|longer than) the (?:model'?s )?(?:maximum )?context (?:length|window|size)",
  "context window exceeds limit",
  "(?:prompt|input) is too long",
  "prompt exceeds max length",
].map((words) => new RegExp(words, "i"));

/** What the dialect's clients look for; text that has it already is left as it is. */
const OWN_WORDS: Readonly<Record<DialectName, RegExp>> = {
  "openai-chat": /maximum context length is [\d,]+|context window of this model/i,
  "openai-responses": /maximum context length is [\d,]+|context window of this model/i,
  anthropic: /prompt is too long|exceed context limit: \d+ \+ \d+ > \d+/i,
  gemini: /input token count.*exceeds the maximum number of tokens allowed/i,
};

/** An upstream's error, as far as it matters here. */
export interface SuspectedError {
  /** Type and code. */
  words: string;
  message: string;
  /** The whole body. */
  raw: unknown;
}

/** The numbers of an error that says that the request is longer than the model's context; undefined = it says no such thing. */
export function contextLengthOf({ words, message, raw }: SuspectedError): ContextLength | undefined {
  const told = messageNumbers(message);
  if (!told && !CODES.test(words)) return undefined;
  const fields = { ...fieldNumbers(raw), ...told };
  return fields;
}

/** Only sentences: for statuses under which a code says something else. */
function messageNumbers(message: string): ContextLength | undefined {
  for (const sentence of SENTENCES) {
    const match = sentence.exec(message.slice(0, 4000));
    if (!match) continue;
    const { used, limit, part, more } = match.groups ?? {};
    const sum = part === undefined ? numberOf(used) : (numberOf(part) ?? 0) + (numberOf(more) ?? 0);
    return known(sum, numberOf(limit));
  }
  return undefined;
}

/** llama.cpp gives both numbers in fields of their own. */
function fieldNumbers(raw: unknown): ContextLength {
  const body = asObject(raw);
  const error = asObject(body?.["error"]) ?? body;
  return known(asNumber(error?.["n_prompt_tokens"]), asNumber(error?.["n_ctx"]));
}

function known(used: number | undefined, limit: number | undefined): ContextLength {
  return { ...(used === undefined ? {} : { used }), ...(limit === undefined ? {} : { limit }) };
}

function numberOf(digits: string | undefined): number | undefined {
  const value = Number(digits?.replaceAll(/[,_]/g, ""));
  return digits === undefined || !Number.isSafeInteger(value) ? undefined : value;
}

/**
 * The public text of a failure of kind `context-length`, in the words of the dialect. It is not translated: clients look
 * for these very words. An upstream's own text stays where it has them.
 */
export function contextLengthText(dialect: DialectName, { text, params }: Failure): string {
  if (text !== undefined && OWN_WORDS[dialect].test(text)) return text;
  const { used, limit } = params;
  switch (dialect) {
    case "anthropic":
      if (used === undefined && limit === undefined) return "prompt is too long";
      if (used === undefined) return `prompt is too long: ${limit} tokens maximum`;
      return `prompt is too long: ${used} tokens${limit === undefined ? "" : ` > ${limit} maximum`}`;
    case "gemini":
      return `The input token count${used === undefined ? "" : ` (${used})`} exceeds the maximum number of tokens allowed${limit === undefined ? "" : ` (${limit})`}.`;
    default:
      if (limit === undefined)
        return "Your input exceeds the context window of this model. Please adjust your input and try again.";
      return `This model's maximum context length is ${limit} tokens. ${used === undefined ? "" : `However, your messages resulted in ${used} tokens. `}Please reduce the length of the messages.`;
  }
}
