// MiniMax: chat nearly in OpenAI's form, with refusals inside of answers and streams; embeddings, speech and pictures
// in its own. Refuses by name formats of sound and sizes of pictures that it does not make.
import type { JsonObject } from "../../protocol/canonical.ts";
import { defined } from "../../protocol/assemble.ts";
import { cannotCarry } from "../../protocol/carry.ts";
import { asList, asNumber, asObject, asString, asText } from "../../protocol/json.ts";
import type { AdapterCall } from "../adapter.ts";
import { answerOf, badAnswer, jsonResponse, post } from "../adapter-kit.ts";
import { checkedStream, reportedErrorResponse } from "../openai-stream.ts";
import type { ReportedError } from "../openai-stream.ts";
import { embeddingsAnswer, embeddingTexts } from "./embeddings.ts";
import { pictureCount, picturesAnswer, picturesFrom, pictureSize } from "./pictures.ts";

/** The balance is used up. */
const UNPAID = 1008;
/** What was asked or was to be said is not allowed. */
const POLICY_CODES: ReadonlySet<number> = new Set([1026, 1027]);

/** The provider's list of error codes as statuses. */
function minimaxStatus(code: number): number {
  switch (code) {
    case 1004:
    case 2049:
      return 401;
    case 2061:
      return 403;
    case UNPAID:
      return 402;
    case 1002:
    case 1039:
    case 1041:
    case 2045:
    case 2056:
      return 429;
    case 1001:
      return 504;
    case 1026:
    case 1027:
    case 1042:
      return 400;
    default:
      return code >= 2000 && code < 3000 ? 400 : 500;
  }
}

function errorIn(wire: JsonObject): ReportedError | undefined {
  const reported = asObject(wire["base_resp"]);
  const code = asNumber(reported?.["status_code"]) ?? 0;
  if (code === 0) return undefined;
  const type = POLICY_CODES.has(code)
    ? "content_policy_violation"
    : code === UNPAID
      ? "insufficient_quota"
      : "minimax_error";
  return { status: minimaxStatus(code), message: asString(reported?.["status_msg"]) ?? "", code, type };
}

/** The last chunk repeats the whole message; new in it are the usage and, at times, why the answer ended. */
function chunkOf(wire: JsonObject, isEnded: boolean): JsonObject | undefined {
  const { base_resp: _base, ...chunk } = wire;
  const reported = asList(wire["choices"]).map(asObject);
  // What its own search found stands between the words as if the model had said it.
  if (reported.some((choice) => asObject(choice?.["delta"])?.["role"] === "tool")) return undefined;
  if (!reported.some((choice) => asObject(choice?.["message"]))) return chunk;
  const choices = isEnded
    ? []
    : reported.map((choice) => ({
        index: choice?.["index"] ?? 0,
        delta: {},
        finish_reason: choice?.["finish_reason"],
      }));
  if (choices.length === 0 && !asObject(wire["usage"])) return undefined;
  return { ...chunk, object: "chat.completion.chunk", choices };
}

async function chat(call: AdapterCall): Promise<Response> {
  const response = await post(call, call.url, call.body);
  if (response.status !== 200) return response;
  if ((response.headers.get("content-type") ?? "").includes("event-stream"))
    return checkedStream(response, { error: errorIn, chunk: chunkOf });
  return fullAnswer(response, ({ base_resp: _base, ...body }) => jsonResponse(body));
}

async function fullAnswer(
  response: Response,
  read: (body: JsonObject) => Response | Promise<Response>,
): Promise<Response> {
  if (response.status !== 200) return response;
  const body = await answerOf(response);
  const error = errorIn(body);
  return error ? reportedErrorResponse(error, response) : read(body);
}

async function embeddings(call: AdapterCall): Promise<Response> {
  // Texts to be searched and texts to search with are embedded differently.
  const isQuery = call.body["type"] === "query" || call.body["input_type"] === "query";
  const type = isQuery ? "query" : "db";
  const response = await post(call, call.url, { model: call.model, texts: embeddingTexts(call), type });
  return fullAnswer(response, (body) =>
    embeddingsAnswer(call, asList(body["vectors"]), asNumber(body["total_tokens"])),
  );
}

const SOUND_TYPES: Readonly<Record<string, string>> = {
  mp3: "audio/mpeg",
  wav: "audio/wav",
  flac: "audio/flac",
  pcm: "audio/pcm",
};

async function speech(call: AdapterCall): Promise<Response> {
  const { input, voice, speed, response_format: wanted } = call.body;
  const format = asString(wanted) ?? "mp3";
  const type = SOUND_TYPES[format];
  if (type === undefined) throw cannotCarry(`response_format=${format}`);
  const pace = asNumber(speed);
  const response = await post(call, call.url, {
    model: call.model,
    text: input,
    stream: false,
    output_format: "hex",
    voice_setting: defined({
      voice_id: asString(voice),
      speed: pace === undefined ? undefined : Math.min(2, Math.max(0.5, pace)),
    }),
    audio_setting: { format },
  });
  return fullAnswer(response, (body) => {
    const hex = asString(asObject(body["data"])?.["audio"]) ?? "";
    const sound = Buffer.from(hex, "hex");
    if (sound.length === 0) throw badAnswer();
    return new Response(sound, { headers: { "content-type": type } });
  });
}

/** Sides from 512 to 2048, in steps of 8. */
function isSide(length: number): boolean {
  return length >= 512 && length <= 2048 && length % 8 === 0;
}

async function pictures(call: AdapterCall): Promise<Response> {
  const { prompt, size, seed, aspect_ratio: ratio, response_format: format } = call.body;
  const sides = pictureSize(call);
  const isAuto = size === undefined || size === null || size === "" || size === "auto";
  if (!isAuto && !(sides && isSide(sides.width) && isSide(sides.height)))
    throw cannotCarry(`size=${asText(size)}`);
  const isInline = format === "b64_json";
  const response = await post(call, call.url, {
    model: call.model,
    prompt,
    n: pictureCount(call),
    response_format: isInline ? "base64" : "url",
    ...sides,
    ...defined({ aspect_ratio: sides ? undefined : asString(ratio), seed: asNumber(seed) }),
  });
  return fullAnswer(response, (body) => {
    const data = asObject(body["data"]);
    const list = (name: string): string[] => asList(data?.[name]).flatMap((each) => asString(each) ?? []);
    if (!isInline) return picturesFrom(call, list("image_urls"));
    return picturesAnswer(
      call,
      list("image_base64").map((text) => ({ b64_json: text })),
    );
  });
}

export function minimax(call: AdapterCall): Promise<Response> {
  switch (call.operation) {
    case "embeddings":
      return embeddings(call);
    case "speech":
      return speech(call);
    case "image-generations":
      return pictures(call);
    default:
      return chat(call);
  }
}
