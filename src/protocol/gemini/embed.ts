// Embedding requests in Google's form (`embedContent`, `batchEmbedContents`): what each of them asks for, the same in
// OpenAI's form, and what that form has no words for.
// Refuses, where another dialect has to carry them, parts that are no text and a batch whose vectors differ in length.
import type { JsonObject } from "../canonical.ts";
import { cannotCarry, drop } from "../carry.ts";
import { asList, asNumber, asObject, asString, rest } from "../json.ts";

/** Google reads both spellings of a name. */
const camel = (name: string): string =>
  name.replace(/_([a-z])/g, (_match, letter: string) => letter.toUpperCase());

/** Member of an answer in OpenAI's form, and of each of its vectors, that holds what Google's answer says besides. */
export const OWN_ANSWER = "google";

/** The requests of a body: those of a batch, or the body itself. */
export function embedRequests(body: JsonObject): JsonObject[] {
  if (!Array.isArray(body["requests"])) return [body];
  return asList(body["requests"]).map((request) => asObject(request) ?? {});
}

const partsOf = (request: JsonObject): JsonObject[] =>
  asList(asObject(request["content"])?.["parts"]).map((part) => asObject(part) ?? {});

/** The text that one vector is made of: that of all parts. */
export function embeddedText(request: JsonObject): string {
  return partsOf(request)
    .map((part) => asString(part["text"]) ?? "")
    .join("");
}

/** How many parts are no text: pictures, sound, files. */
export function embeddedMedia(request: JsonObject): number {
  return partsOf(request).filter((part) => typeof part["text"] !== "string" && Object.keys(part).length > 0)
    .length;
}

/** Settings of one request by their camel-case names; newer models take them in an object of their own. */
export function embedSettings(request: JsonObject): JsonObject {
  const settings: JsonObject = {};
  const read = (from: JsonObject): void => {
    for (const key in from) {
      const name = camel(key);
      if (name === "embedContentConfig") read(asObject(from[key]) ?? {});
      // An explicit null asks for the default, and so does a task without a type.
      else if (from[key] !== null && from[key] !== "TASK_TYPE_UNSPECIFIED") settings[name] = from[key];
    }
  };
  read(rest(request, ["model", "content"]) ?? {});
  return settings;
}

/** Length of a request's vector, where it asks for one. */
function embedDimensions(request: JsonObject): number | undefined {
  return asNumber(embedSettings(request)["outputDimensionality"]);
}

/** The length that all requests ask for; undefined where they ask for none, or for different ones. */
export function sharedDimensions(requests: readonly JsonObject[]): number | undefined {
  const [first, ...others] = requests.map(embedDimensions);
  return others.every((dimensions) => dimensions === first) ? first : undefined;
}

/** The body of OpenAI's embeddings call: a text per request. What it leaves behind is told by `embedLosses`. */
export function embeddingsBody(body: JsonObject, model: string): JsonObject {
  const requests = embedRequests(body);
  const dimensions = sharedDimensions(requests);
  return {
    model,
    input: requests.map(embeddedText),
    encoding_format: "float",
    ...(dimensions === undefined ? {} : { dimensions }),
  };
}

/**
 * Names of what `embeddingsBody` leaves behind that only tunes the vectors (task type, title). Throws
 * `unsupported_field` for what changes what is embedded: parts that are no text, vectors of different lengths.
 */
export function embedLosses(body: JsonObject): string[] {
  const dropped: string[] = [];
  const requests = embedRequests(body);
  if (Array.isArray(body["requests"]))
    for (const key in body) if (key !== "requests" && key !== "model") drop(dropped, camel(key));
  for (const request of requests) {
    for (const key in embedSettings(request)) if (key !== "outputDimensionality") drop(dropped, key);
    for (const part of partsOf(request)) {
      const [other] = Object.keys(part).filter((key) => key !== "text");
      if (other === undefined) continue;
      if (typeof part["text"] !== "string") throw cannotCarry(`content.${camel(other)}`);
      drop(dropped, `content.${camel(other)}`);
    }
  }
  const dimensions = new Set(requests.map(embedDimensions));
  if (dimensions.size > 1) throw cannotCarry("outputDimensionality");
  return dropped;
}
