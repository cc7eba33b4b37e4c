// A frame of an upstream as its client may read it: errors in the middle of a session are the upstream's own words, of which keys,
// hosts and accounts are taken out. Refuses to look at parts of an answer, which are the model's.
import { scrub } from "../../protocol/classify.ts";
import type { JsonObject } from "../../protocol/canonical.ts";
import { asObject } from "../../protocol/json.ts";
import { secretsOf, withoutKeys, withoutSecrets } from "../../shared/without-keys.ts";
import type { RealtimeEvent } from "./meter.ts";

/** The same frame where there is nothing to take out; `key` is the one that the session was opened with. */
export function cleanFrame(frame: string, event: RealtimeEvent | undefined, key: string): string {
  const json = event?.json;
  const response = asObject(json?.["response"]);
  const details = asObject(response?.["status_details"]);
  const error = cleanError(json?.["error"], key);
  const ended = cleanError(details?.["error"], key);
  let clean = frame;
  if (error) clean = JSON.stringify({ ...json, error });
  else if (ended)
    clean = JSON.stringify({
      ...json,
      response: { ...response, status_details: { ...details, error: ended } },
    });
  return withoutSecrets(clean, secretsOf(key));
}

/** Undefined where its message may stay as it is. */
function cleanError(value: unknown, key: string): JsonObject | undefined {
  const error = asObject(value);
  const message = error?.["message"];
  if (typeof message !== "string") return undefined;
  const clean = scrub(withoutKeys(message, [key]));
  return clean === message ? undefined : { ...error, message: clean };
}
