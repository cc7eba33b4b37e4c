// Replicate's pictures: a prediction of a model, waited for in the same call or asked after until it has ended.
// Refuses to follow addresses that an answer names, and several pictures of models that make one a call; a prediction that
// failed or was cancelled yields nothing.
import type { JsonObject } from "../../protocol/canonical.ts";
import { cannotCarry } from "../../protocol/carry.ts";
import { asList, asObject, asString, dataUrl } from "../../protocol/json.ts";
import type { Adapter, AdapterCall, AdapterFile } from "../adapter.ts";
import { answerOf, errorResponse, post } from "../adapter-kit.ts";
import { askAfter, realWait } from "../wait.ts";
import type { Wait } from "../wait.ts";
import { pictureCount, picturesFrom, pictureSize } from "./pictures.ts";
import { REPLICATE_COUNTS } from "../carried-fields.ts";

const POLL_MS = 1000;
const UNDER_WAY: ReadonlySet<string> = new Set(["starting", "processing"]);
/** Files up to this size travel inside of the request, as the documentation recommends. */
const MAX_DATA_URL_BYTES = 256 * 1024;

/**
 * OpenAI's fields that have another name or no meaning here, and the models' own words for the number of pictures, which
 * is what `n` says and what is paid for; everything else is the model's own input.
 */
const KNOWN: ReadonlySet<string> = new Set([
  "model",
  "n",
  "size",
  "response_format",
  "quality",
  "style",
  "user",
  "background",
  "moderation",
  "stream",
  ...REPLICATE_COUNTS,
]);

/**
 * Models that are told how many pictures to make: the open ones and what is trained from them, asked for by version. The
 * others ignore the word and make one.
 */
const COUNTED =
  /flux-(?:schnell|dev|(?:fill|canny|depth|redux)-(?:dev|schnell))|sdxl|stable-diffusion(?!-3)|:/;

/** DALL·E's tall and wide sizes have a ratio that no model here has; this is how its clients mean them. */
const NEAREST: Readonly<Record<string, string>> = { "4:7": "9:16", "7:4": "16:9" };

function divisor(a: number, b: number): number {
  return b === 0 ? a : divisor(b, a % b);
}

function inputOf(call: AdapterCall): JsonObject {
  const input: JsonObject = {};
  for (const name in call.body) if (!KNOWN.has(name)) input[name] = call.body[name];
  const size = pictureSize(call);
  if (size && input["aspect_ratio"] === undefined) {
    const by = divisor(size.width, size.height);
    const ratio = `${size.width / by}:${size.height / by}`;
    input["aspect_ratio"] = NEAREST[ratio] ?? ratio;
  }
  const count = pictureCount(call);
  if (count > 1) {
    if (!COUNTED.test(call.model)) throw cannotCarry("n");
    input["num_outputs"] = count;
  }
  if (input["output_format"] === "jpeg") input["output_format"] = "jpg";
  return input;
}

/** Models name the picture they start from differently. */
function pictureField(model: string): string {
  if (model.includes("kontext")) return "input_image";
  return /nano-banana|seedream/.test(model) ? "image_input" : "image";
}

async function fileInput(call: AdapterCall, base: string, file: AdapterFile): Promise<string | Response> {
  const type = file.type.startsWith("image/") ? file.type : "image/png";
  if (file.bytes.length <= MAX_DATA_URL_BYTES)
    return dataUrl(type, Buffer.from(file.bytes).toString("base64"));
  const form = new FormData();
  form.set("content", new File([file.bytes], file.filename ?? "image", { type }));
  const { "content-type": _type, prefer: _prefer, ...headers } = call.headers;
  const init = { method: "POST", headers, body: form, signal: call.signal };
  const response = await call.fetch(`${base}/v1/files`, init);
  if (response.status !== 201 && response.status !== 200) return response;
  return asString(asObject((await answerOf(response))["urls"])?.["get"]) ?? "";
}

function outputOf(prediction: JsonObject): string[] {
  const { output } = prediction;
  const list = typeof output === "string" ? [output] : asList(output);
  return list.flatMap((each) => asString(each) ?? asString(asObject(each)?.["url"]) ?? []);
}

async function perform(call: AdapterCall, wait: Wait): Promise<Response> {
  const base = call.url.slice(0, call.url.lastIndexOf("/v1/models/"));
  const input = inputOf(call);
  for (const file of call.files ?? []) {
    const value = await fileInput(call, base, file);
    if (typeof value !== "string") return value;
    const field = file.name === "mask" ? "mask" : pictureField(call.model);
    if (field === "image_input") input[field] = [...asList(input[field]), value];
    else input[field] ??= value;
  }
  // A model of the community is asked for by its version.
  const [, version] = call.model.split(":");
  const submitted = await (version === undefined
    ? post(call, call.url, { input })
    : post(call, `${base}/v1/predictions`, { version, input }));
  if (submitted.status !== 200 && submitted.status !== 201 && submitted.status !== 202) return submitted;
  let prediction = await answerOf(submitted);
  const { "content-type": _type, prefer: _prefer, ...headers } = call.headers;
  while (UNDER_WAY.has(asString(prediction["status"]) ?? "")) {
    const address = `${base}/v1/predictions/${encodeURIComponent(asString(prediction["id"]) ?? "")}`;
    const told = await askAfter(call, { url: address, headers, wait, pauseMs: POLL_MS });
    if ("refused" in told) return told.refused;
    prediction = told.body;
  }
  const status = asString(prediction["status"]) ?? "";
  if (status === "succeeded") return picturesFrom(call, outputOf(prediction), wait);
  const message = asString(prediction["error"]) ?? `the prediction is ${status}`;
  const isPolicy = /nsfw|sensitive|safety/i.test(message);
  return isPolicy
    ? errorResponse(400, message, status, "content_policy_violation")
    : errorResponse(502, message, status);
}

/** `wait` is the pause between two questions after a prediction; tests pass their own. */
export function createReplicate(wait: Wait): Adapter {
  return (call) => perform(call, wait);
}

export const replicate: Adapter = createReplicate(realWait);
