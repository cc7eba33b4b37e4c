// Which members of a body an adapter makes something of, so that the log can tell what a provider was not told.
// Refuses the length of vectors where it cannot be asked for: what comes back would be another vector.
// A row is held against its adapter's code when either changes; adapters that pass a body on whole have none.
import { cannotCarry } from "../protocol/carry.ts";
import type { FoundRoute } from "./address.ts";
import type { Operation } from "./define.ts";

/** The members that are carried, or those that are not where everything else is. */
type Carried = { only: readonly string[] } | { but: readonly string[] };

/** What decides by which of its ways an adapter asks: the model's name at the upstream, and the channel's key. */
interface AskedWith {
  model: string;
  key: string;
}

/** Undefined: everything is carried. */
type CarriedBy =
  Carried | ((asked: AskedWith, body: Readonly<Record<string, unknown>>) => Carried | undefined);

const only = (...names: string[]): Carried => ({ only: names });

/** The gateway's own matter: the model, how the answer is framed, the playground's group. */
const OURS = ["model", "stream", "stream_options", "group"];
/** Judged by name when the conversation is read (`decodeChatRequest`): carried, or refused. */
const JUDGED = [
  "messages",
  "n",
  "logprobs",
  "modalities",
  "response_format",
  "tools",
  "tool_choice",
  "functions",
  "function_call",
];
const LIMITS = ["max_tokens", "max_completion_tokens"];
const SAMPLING = ["temperature", "top_p"];
/** The gateway gives vectors in either form, whatever the provider answers. */
const TEXTS = ["input", "encoding_format"];
/** As with vectors, pictures are inlined where that was asked for. */
const PICTURES = ["prompt", "n", "response_format"];
const COMPLETION = [
  "prompt",
  "n",
  "best_of",
  "suffix",
  "echo",
  "logprobs",
  "max_tokens",
  "top_k",
  "seed",
  ...SAMPLING,
];
/** OpenAI's words about a picture that only OpenAI's models know. */
const LOOKS = ["quality", "style", "user", "background", "moderation"];
/** Models' own words for the number of pictures, which `n` alone says: it is what is paid for. */
export const REPLICATE_COUNTS = [
  "num_outputs",
  "num_images",
  "number_of_images",
  "max_images",
  "sequential_image_generation",
  "batch_size",
];
const REPLICATE: Carried = { but: [...LOOKS, ...REPLICATE_COUNTS] };
const SILICONFLOW = [...LOOKS, "output_format", "batch_size", "num_images"];

const IMAGEN = only(...PICTURES, "size");
const GOOGLE_TEXTS = only(...TEXTS, "dimensions");

const CONVERSE = [...JUDGED, ...LIMITS, ...SAMPLING, "top_k", "stop"];
/** Of the models behind Converse those that are told how much to think. */
const THINKS_BY_EFFORT = /openai\.gpt-oss|nova-2/;
/** Only the model that takes a recording inside of JSON is told its language and what came before. */
const hears = ({ model }: AskedWith): Carried =>
  model.includes("whisper-large-v3")
    ? only("response_format", "language", "prompt")
    : only("response_format");

/** By adapter and operation. */
const CARRIED: Readonly<Record<string, Partial<Record<Operation, CarriedBy>>>> = {
  "aiproxy-library": { chat: only(...JUDGED) },
  ali: {
    rerank: only("query", "documents", "top_n", "return_documents"),
    embeddings: only(...TEXTS, "dimensions"),
    "image-generations": only(...PICTURES, "size", "seed", "negative_prompt"),
  },
  baidu: {
    chat: only(...JUDGED, ...LIMITS, ...SAMPLING, "frequency_penalty", "stop", "user"),
    embeddings: only(...TEXTS),
  },
  bedrock: {
    messages: { but: ["service_tier", "inference_geo"] },
    chat: ({ model }) =>
      THINKS_BY_EFFORT.test(model) ? only(...CONVERSE, "reasoning_effort") : only(...CONVERSE),
  },
  cloudflare: { completions: only(...COMPLETION), transcriptions: hears, translations: hears },
  cohere: {
    chat: only(
      ...JUDGED,
      ...LIMITS,
      ...SAMPLING,
      "top_k",
      "seed",
      "frequency_penalty",
      "presence_penalty",
      "stop",
      "reasoning_effort",
    ),
    embeddings: only(...TEXTS, "dimensions", "input_type"),
  },
  coze: { chat: only(...JUDGED, "user") },
  dify: { chat: only(...JUDGED, "user", "inputs") },
  gemini: { embeddings: GOOGLE_TEXTS, "image-generations": IMAGEN },
  minimax: {
    embeddings: only(...TEXTS, "type", "input_type"),
    speech: only("input", "voice", "speed", "response_format"),
    "image-generations": only(...PICTURES, "size", "seed", "aspect_ratio"),
  },
  ollama: {
    embeddings: only(...TEXTS, ...SAMPLING, "dimensions", "seed", "frequency_penalty", "presence_penalty"),
  },
  replicate: { "image-generations": REPLICATE, "image-edits": REPLICATE },
  siliconflow: {
    "image-generations": (_asked, { size }) => ({
      // Its own word for the size counts where OpenAI's is absent.
      but: typeof size === "string" && size !== "" ? [...SILICONFLOW, "image_size"] : SILICONFLOW,
    }),
  },
  tencent: { chat: only(...JUDGED, ...SAMPLING, "stop", "seed", "reasoning_effort") },
  vertex: { embeddings: GOOGLE_TEXTS, "image-generations": IMAGEN },
  // Its HTTP address takes a body as it is, its socket does not.
  xunfei: {
    chat: ({ key }) =>
      key.includes("|") ? only(...JUDGED, ...LIMITS, "temperature", "top_k", "user") : undefined,
  },
  "zhipu-v3": { chat: only(...JUDGED, ...SAMPLING) },
};

const NOTHING: readonly string[] = [];

/**
 * Names of what a body in the route's dialect asks for and its adapter has no words for; an explicit null asks for
 * nothing. Throws `unsupported_field` where vectors of a length were asked for that the provider does not let choose.
 */
export function lostFields(
  { operation, route }: FoundRoute,
  body: Readonly<Record<string, unknown>>,
  asked: AskedWith,
): readonly string[] {
  const row = route.adapter === undefined ? undefined : CARRIED[route.adapter]?.[operation];
  const carried = typeof row === "function" ? row(asked, body) : row;
  if (!carried) return NOTHING;
  const isLost = (name: string): boolean => {
    if (body[name] === undefined || body[name] === null || OURS.includes(name)) return false;
    return "only" in carried ? !carried.only.includes(name) : carried.but.includes(name);
  };
  const lost = Object.keys(body).filter(isLost);
  if (operation === "embeddings" && lost.includes("dimensions")) throw cannotCarry("dimensions");
  return lost;
}
