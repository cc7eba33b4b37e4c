// Affinity of stored responses to channels: only the account that holds a response can go on from it
// (`previous_response_id`). A preference within the caller's own channels, forgotten when memory or health say so.
import type { Channel } from "../../core/channels/rows.ts";
import type { Picker } from "../../core/channels/picker.ts";
import type { Routing } from "../../core/channels/routing.ts";
import type { Caller } from "./admission.ts";
import type { Call } from "./call.ts";
import type { Plan } from "./plan.ts";
import type { RelayBody } from "../wire/read-body.ts";

export interface ResponseAffinity {
  /** Call when a response was answered; what the client asked not to store is not kept. `tokens`: all that it holds. */
  keep(call: Call, plan: Plan, responseId: unknown, tokens: number): void;
  /** Tokens of the response that the body goes on from: its provider reads them again. 0 = none is known. */
  tokensBefore(caller: Caller, body: RelayBody): number;
  /** The channel that holds the response which the call goes on from, as long as it may serve the caller. */
  find(call: Call, accepts: (channel: Channel) => boolean, nowMs: number): Channel | undefined;
}

interface StoredResponse {
  channel: number;
  tokens: number;
}

/** Responses that are remembered; the longest unused go first. */
const MAX_RESPONSES = 20_000;
const MAX_ID_CHARS = 256;

export function createResponseAffinity(
  routing: Pick<Routing, "tiers">,
  picker: Pick<Picker, "coolingUntilMs">,
): ResponseAffinity {
  const stored = new Map<string, StoredResponse>();
  /** Users do not find each other's responses. */
  const keyOf = ({ user }: Caller, id: string): string => `${user.id} ${id}`;

  return {
    keep(call, plan, responseId, tokens) {
      if (plan.isConverted || call.body.json["store"] === false) return;
      if (typeof responseId !== "string" || responseId === "" || responseId.length > MAX_ID_CHARS) return;
      const key = keyOf(call.caller, responseId);
      stored.delete(key);
      stored.set(key, { channel: plan.channel.id, tokens });
      if (stored.size <= MAX_RESPONSES) return;
      const oldest = stored.keys().next().value;
      if (oldest !== undefined) stored.delete(oldest);
    },
    tokensBefore(caller, { json }) {
      const previous = json["previous_response_id"];
      return typeof previous === "string" ? (stored.get(keyOf(caller, previous))?.tokens ?? 0) : 0;
    },
    find(call, accepts, nowMs) {
      const previous = call.body.json["previous_response_id"];
      if (typeof previous !== "string") return undefined;
      const key = keyOf(call.caller, previous);
      const response = stored.get(key);
      if (!response || picker.coolingUntilMs(response.channel) > nowMs) return undefined;
      const id = response.channel;
      stored.delete(key);
      stored.set(key, response);
      for (const tier of routing.tiers(call.caller.group, call.model)) {
        const entry = tier.entries.find(({ channel }) => channel.id === id);
        if (entry) return accepts(entry.channel) ? entry.channel : undefined;
      }
      return undefined;
    },
  };
}
