// Pictures: made from a prompt (JSON) or from other pictures (a form), priced by size, quality and number.
// Refuses sizes that the model does not know, before anything is paid for.
import { pictureRemark } from "../../core/logs/sentences.ts";
import { pictureFactor } from "../../core/prices/piece-prices.ts";
import { emptyUsage } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";
import { hasPictures, picturesIn } from "./answer-checks.ts";
import { checkNumbers, refused } from "./endpoint.ts";
import type { AnswerFacts, Endpoint, Json } from "./endpoint.ts";
import { mediaMeter } from "./media-meter.ts";
import { withField, withoutField } from "../wire/multipart.ts";
import type { Form, FormPart } from "../wire/multipart.ts";
import { patchedBody } from "../wire/patch-json.ts";
import type { RelayBody } from "../wire/read-body.ts";

const IMAGES = { refusalCode: "invalid_image_request", dialect: "openai-chat" } as const;
const NUMBERS = { n: { min: 1, max: 128, whole: true } };

/** Models whose sizes are known; others are the upstream's business. */
const SIZES: Readonly<Record<string, readonly string[]>> = {
  "dall-e-2": ["256x256", "512x512", "1024x1024"],
  "dall-e": ["256x256", "512x512", "1024x1024"],
  "dall-e-3": ["1024x1024", "1024x1792", "1792x1024"],
};
const DEFAULT_SIZE = "1024x1024";
/** A request that names no model is routed as `dall-e` and held to the rules of its successor. */
const RULES_WITHOUT_MODEL = "dall-e-3";

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function rulesOf(body: Json): string {
  return text(body["model"]) || RULES_WITHOUT_MODEL;
}

/** As it was asked for; some providers' own word counts where OpenAI's is absent, as after a rule of a channel. */
function askedSize(body: Json): string {
  return text(body["size"]) || text(body["image_size"]);
}

/**
 * One size, whichever word for it an upstream reads: every one is asked for the picture that is priced. Where only another word than
 * OpenAI's stands it becomes that one, beside it the other says the same. The same object where nothing is to be changed.
 */
function withOneSize(body: RelayBody): RelayBody {
  const { json, form } = body;
  const native = text(json["image_size"]);
  const size = askedSize(json);
  if (native === "" || (native === size && text(json["size"]) === size)) return body;
  const other = text(json["size"]) === "" ? undefined : size;
  if (!form) return patchedBody(body, { size, image_size: other });
  const { image_size: _said, ...rest } = json;
  const bare = withField(withoutField(form, "image_size"), "size", size);
  const moved = other === undefined ? bare : withField(bare, "image_size", other);
  const fields = other === undefined ? { ...rest, size } : { ...rest, size, image_size: other };
  // The client's own bytes say something else.
  return { ...body, json: fields, form: { ...moved, isPlain: false } };
}

function sizeOf(body: Json): string {
  return askedSize(body) || (rulesOf(body) in SIZES ? DEFAULT_SIZE : "");
}

function count(body: Json): number {
  const n = Number(body["n"] ?? 1);
  return Number.isInteger(n) && n > 0 ? n : 1;
}

function check(body: Json): void {
  const size = askedSize(body);
  if (size.includes("×")) throw refused(IMAGES, "image_size_sign", "size");
  const known = SIZES[rulesOf(body)];
  if (size !== "" && known && !known.includes(size))
    throw refused(IMAGES, "image_size_unknown", "size", known.join(", "));
  if (text(body["prompt"]) === "") throw refused(IMAGES, "prompt_required", "prompt");
}

/** How many are paid for: those that were asked for, or fewer where fewer came. `json` is the answer, once it is there. */
function pieces(body: Json, json?: unknown): number {
  const came = picturesIn(json);
  return came > 0 ? Math.min(count(body), came) : count(body);
}

/** Without a word of the upstream a picture counts as one token, so that the call is billed. */
function ownUsage({ body, json }: AnswerFacts): Promise<Usage> {
  const usage = emptyUsage();
  usage.input.fresh = pieces(body, json);
  return Promise.resolve(usage);
}

const COMMON = {
  ...IMAGES,
  canStream: true,
  isScreened: true,
  isConversation: false,
  isMedia: true,
  quotaCode: "image_quota_short",
  outputLimit: () => 0,
  readOnce: new Set(["n", "size", "image_size", "quality", "prompt"]),
  answersTokens: false,
  translate: withOneSize,
  visitPrompt: (body, visitor) => visitor.text(text(body["prompt"])),
  holds: hasPictures,
  pieces,
  factor: (body, model) => pictureFactor(model, sizeOf(body), text(body["quality"])),
  ownUsage,
  meterStream: mediaMeter,
  remark: (body) => pictureRemark(sizeOf(body) || "auto", body["quality"] === "hd" ? "hd" : "standard"),
} satisfies Partial<Endpoint>;

export const imageGenerations: Endpoint = {
  ...COMMON,
  name: "image-generations",
  defaultModel: "dall-e",
  check(body) {
    checkNumbers(IMAGES, body, NUMBERS);
    check(body);
  },
};

const FILE_TYPES: Readonly<Record<string, string>> = {
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  webp: "image/webp",
  png: "image/png",
};

function isPicture({ name, filename }: FormPart): boolean {
  return filename !== undefined && /^image(?:\[.*\])?$/.test(name);
}

/** One picture goes out as `image`, several as `image[]`; their types follow their names. */
function rename(form: Form): Form {
  const name = form.parts.filter(isPicture).length > 1 ? "image[]" : "image";
  const parts = form.parts.map((part) => {
    const isMask = part.filename !== undefined && part.name === "mask";
    if (!isPicture(part) && !isMask) return part;
    const extension = /\.(\w+)$/.exec(part.filename ?? "")?.[1]?.toLowerCase() ?? "";
    const type = part.type.startsWith("image/") ? part.type : (FILE_TYPES[extension] ?? "image/png");
    return { ...part, type, name: isMask ? part.name : name };
  });
  return { ...form, parts };
}

export const imageEdits: Endpoint = {
  ...COMMON,
  name: "image-edits",
  defaultModel: "gpt-image-1",
  check(body, form) {
    // Fields of a form are text.
    const n = text(body["n"]);
    checkNumbers(IMAGES, n === "" ? {} : { n: Number(n) }, NUMBERS);
    check(body);
    if (!form?.parts.some(isPicture)) throw refused(IMAGES, "file_required", "image");
  },
  form: rename,
};
