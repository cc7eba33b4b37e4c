// Embedding requests of Google's own clients for Google's upstreams: as they were written, but for what the channel changed.
// Refuses, where Vertex predicts from texts only, parts and settings that a prediction has no place for.
import type { JsonObject } from "../../protocol/canonical.ts";
import { cannotCarry } from "../../protocol/carry.ts";
import {
  embeddedText,
  embedLosses,
  embedRequests,
  embedSettings,
  sharedDimensions,
} from "../../protocol/gemini/embed.ts";
import { asNumber, asObject, rest } from "../../protocol/json.ts";
import type { AdapterCall } from "../adapter.ts";
import { embeddingTexts } from "./embeddings.ts";

const DIMENSION_NAMES = ["outputDimensionality", "output_dimensionality"];
const CONFIG_NAMES = ["embedContentConfig", "embed_content_config"];

/** The request with vectors of another length, wherever it named one; undefined: of the model's own. */
function withDimensions(request: JsonObject, dimensions: number | undefined): JsonObject {
  const changed = rest(request, DIMENSION_NAMES) ?? {};
  for (const name of CONFIG_NAMES) {
    const config = asObject(changed[name]);
    if (config) changed[name] = rest(config, DIMENSION_NAMES) ?? {};
  }
  return dimensions === undefined ? changed : { ...changed, outputDimensionality: dimensions };
}

/** Whether rules of the channel put other texts in the place of the client's. */
function hasOtherTexts(call: AdapterCall, requests: readonly JsonObject[]): boolean {
  const texts = embeddingTexts(call);
  return (
    texts.length !== requests.length || texts.some((text, at) => text !== embeddedText(requests[at] ?? {}))
  );
}

/**
 * A request per vector: the client's own where it wrote any, with the length of vectors that a rule of the channel asks
 * for, or without the one that it takes away; else the texts of the call. Throws `unsupported_field` for token lists.
 */
export function googleRequests(call: AdapterCall): JsonObject[] {
  const dimensions = asNumber(call.body["dimensions"]);
  const own = call.own && embedRequests(call.own);
  if (own && !hasOtherTexts(call, own)) {
    const isSame = dimensions === sharedDimensions(own);
    return isSame ? own : own.map((request) => withDimensions(request, dimensions));
  }
  return embeddingTexts(call).map((text) => ({
    content: { parts: [{ text }] },
    ...(dimensions === undefined ? {} : { outputDimensionality: dimensions }),
  }));
}

/** What one prediction of Vertex is asked for: its instances share their parameters. */
type Prediction = {
  instances: JsonObject[];
  parameters?: JsonObject;
};

/** One request as Vertex predicts it, by the names of its text embeddings API. */
function predictionOf(request: JsonObject): Prediction {
  // The losses of this one alone: what is no text is refused, settings have their places below.
  embedLosses({ requests: [request] });
  const { taskType, title, outputDimensionality, autoTruncate, ...others } = embedSettings(request);
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) throw cannotCarry(unknown);
  const parameters = {
    ...(outputDimensionality === undefined ? {} : { outputDimensionality }),
    ...(autoTruncate === undefined ? {} : { autoTruncate }),
  };
  return {
    instances: [
      {
        content: embeddedText(request),
        ...(taskType === undefined ? {} : { task_type: taskType }),
        ...(title === undefined ? {} : { title }),
      },
    ],
    ...(Object.keys(parameters).length === 0 ? {} : { parameters }),
  };
}

/**
 * The predictions of a call in the order of its requests; neighbours with the same parameters share one where the model
 * takes several texts. Throws `unsupported_field` with the name of what a prediction cannot say.
 */
export function predictionsOf(requests: readonly JsonObject[], takesSeveral: boolean): Prediction[] {
  const predictions: Prediction[] = [];
  for (const next of requests.map(predictionOf)) {
    const last = predictions.at(-1);
    const fits = takesSeveral && JSON.stringify(last?.parameters) === JSON.stringify(next.parameters);
    if (last && fits) last.instances.push(...next.instances);
    else predictions.push(next);
  }
  return predictions;
}

/** One request as Vertex embeds whole contents: its settings in an object of their own, as Google's SDK writes them. */
export function vertexContent(request: JsonObject): JsonObject {
  const settings = embedSettings(request);
  return {
    // Vertex asks every content for its role.
    content: { role: "user", ...asObject(request["content"]) },
    ...(Object.keys(settings).length === 0 ? {} : { embedContentConfig: settings }),
  };
}
