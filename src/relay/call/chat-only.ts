// Upstreams that speak chat completions and have no Responses API, although their type has one: vLLM, llama.cpp, LM Studio
// and others behind a type that stands for everything OpenAI-shaped. What they answer to it is recognised here.
import type { Channel } from "../../core/channels/rows.ts";
import { routeFor } from "../../providers/address.ts";
import type { FoundRoute } from "../../providers/address.ts";
import type { ProviderRow } from "../../providers/define.ts";
import type { Endpoint } from "../endpoints/endpoint.ts";
import { AttemptFailure } from "./attempt.ts";
import type { Call } from "./call.ts";
import { clientSaid } from "./client-words.ts";
import type { ClientWords } from "./client-words.ts";
import type { Plan } from "./plan.ts";

/**
 * Channels whose upstream was seen to have no Responses API, as they were read: a channel that is edited is another object
 * and is asked once more. So does each node, and each start: what it costs is one refused request.
 */
export type ChatOnlyChannels = WeakSet<Channel>;

interface ChatTarget {
  channel: Channel;
  row: ProviderRow;
  endpoint: Endpoint;
  model: string;
  /** The upstream was seen to be one. */
  isChatOnly: boolean;
}

/** The route of a Responses call at an upstream that is known to have chat completions only; else the one given. */
export function chatRoute(
  found: FoundRoute | undefined,
  { channel, row, endpoint, model, isChatOnly }: ChatTarget,
): FoundRoute | undefined {
  if (found?.operation !== "responses" || !endpoint.isConversation) return found;
  const { responses } = channel.setting;
  if (responses !== "convert" && (responses === "native" || !isChatOnly)) return found;
  const chat = routeFor(row, "chat", model);
  return chat?.operation === "chat" ? chat : found;
}

/** An address that a server does not have; 405 where the same address has other methods. */
const NO_ROUTE: ReadonlySet<number | undefined> = new Set([404, 405]);
/** A model that is not there, or something stored that is not: the address itself is known. */
const NAMED = /model|deployment|\b(?:resp|conv|msg|rs|fc|file|pmpt|vs)_\w|\bids?\b/i;
/** LM Studio says this with status 200. */
const UNEXPECTED = "unexpected endpoint or method";

/** Not by words that the client wrote: repeated in a refusal they would turn the channel's calls into chat for everybody. */
function isNoRoute(
  { failure: { upstreamStatus, internal = "" } }: AttemptFailure,
  call: ClientWords,
): boolean {
  if (NO_ROUTE.has(upstreamStatus)) return true;
  return (
    upstreamStatus === 200 && internal.toLowerCase().includes(UNEXPECTED) && !clientSaid(call, [UNEXPECTED])
  );
}

/** Whether the upstream refused because it has no Responses API: a 404 or 405 that names neither a model nor an id. */
export function lacksResponses(thrown: unknown, call: Call, plan: Plan): boolean {
  const { endpoint } = call;
  if (endpoint.name !== "responses" || !endpoint.isConversation) return false;
  if (plan.dialect.name !== "openai-responses") return false;
  if (plan.channel.setting.responses === "native" || !(thrown instanceof AttemptFailure)) return false;
  if (!isNoRoute(thrown, call)) return false;
  const { refusal } = thrown;
  const words = refusal ? `${refusal.message} ${refusal.type} ${refusal.code}` : "";
  return !NAMED.test(words) && !words.includes(plan.upstreamModel) && !words.includes(call.model);
}

/** Whether the upstream has chat completions, as far as its answer tells: another 404 says that nothing is there. */
export function hasChat(thrown: unknown, call: ClientWords): boolean {
  return !(thrown instanceof AttemptFailure && isNoRoute(thrown, call));
}
