// Fields of a request that only leave the house where their channel lets them: they say who asks, where it may be worked on, or
// what is kept of it. Everything else about a request is its client's business.
import type { DialectName } from "../../protocol/canonical.ts";
import { asObject } from "../../protocol/json.ts";
import type { Json } from "./endpoint.ts";
import type { Changes } from "../wire/patch-json.ts";

type Settings = Readonly<Record<string, unknown>>;

/**
 * Top-level changes that take out what the channel's gates do not let through, and the names that the log tells; undefined
 * where nothing has to go, as with most requests.
 */
export function gatedFields(
  dialect: DialectName,
  body: Json,
  settings: Settings,
): { changes: Changes; names: string[] } | undefined {
  if (dialect === "gemini") return undefined;
  let changes: Record<string, unknown> | undefined;
  let names: string[] | undefined;
  const take = (name: string, key: string, value: unknown): void => {
    (changes ??= {})[key] = value;
    (names ??= []).push(name);
  };
  if (dialect === "anthropic") {
    if (body["inference_geo"] !== undefined && settings["allow_inference_geo"] !== true)
      take("inference_geo", "inference_geo", undefined);
    return changes && names ? { changes, names } : undefined;
  }
  if (body["safety_identifier"] !== undefined && settings["allow_safety_identifier"] !== true)
    take("safety_identifier", "safety_identifier", undefined);
  const stream = asObject(body["stream_options"]);
  if (stream?.["include_obfuscation"] !== undefined && settings["allow_include_obfuscation"] !== true) {
    const { include_obfuscation: _, ...kept } = stream;
    const left = Object.keys(kept).length === 0 ? undefined : kept;
    take("stream_options.include_obfuscation", "stream_options", left);
  }
  // The Responses API stores what it is not told about.
  const isStored = dialect === "openai-responses" ? body["store"] !== false : body["store"] === true;
  if (settings["disable_store"] === true && isStored)
    take("store", "store", dialect === "openai-responses" ? false : undefined);
  return changes && names ? { changes, names } : undefined;
}
