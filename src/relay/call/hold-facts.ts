// What the channels that may serve a model add to a request: limits and tiers of their operators, the model's other names.
import { allowsTiers, upstreamModel } from "../../core/channels/rows.ts";
import type { Channel } from "../../core/channels/rows.ts";
import type { Tier } from "../../core/channels/routing.ts";
import type { Deps } from "../../core/deps.ts";
import { LEAST_OUTPUT_TOKENS } from "../../protocol/openai-responses/wire.ts";
import { routeFor } from "../../providers/address.ts";
import { providerOf } from "../../providers/catalog.ts";
import type { Endpoint, Json } from "../endpoints/endpoint.ts";
import { asksToThink } from "../endpoints/model-settings.ts";
import { overriddenLimit } from "../endpoints/output-limit.ts";
import { askedTier } from "../endpoints/service-tier.ts";
import type { HoldRequest } from "./hold.ts";

interface Place {
  type: number;
  name: string;
}

/** What the channels that may serve a model add to a request. */
export interface ChannelFacts {
  /** Limits that operators put in the client's place; 0 = none. */
  largestOverride: number;
  isAlwaysOverridden: boolean;
  /** The model's names at the upstreams, its own among them. */
  names: readonly string[];
  /** Where it may be served: channel types, each with the model's name there. */
  places: readonly Place[];
  /** One of them asks for thinking by its suffix. */
  hasThinkingName: boolean;
  /** One of them lets service tiers out. */
  allowsTiers: boolean;
  /** Tiers that operators put in the client's place. */
  overriddenTiers: readonly string[];
  /** One of them takes conversations as their clients wrote them. */
  isPassedThrough: boolean;
}

/** Tiers are built anew when one of their channels changes. */
const factsOf = new WeakMap<readonly Tier[], ChannelFacts>();

export function factsFor(
  routing: Deps["routing"],
  { caller, model, pinned }: Pick<HoldRequest, "caller" | "model" | "pinned">,
): ChannelFacts {
  if (pinned) return gather([pinned], model);
  const { auto, group } = caller;
  return auto
    ? auto.map((each) => channelFacts(routing.tiers(each, model), model)).reduce(together)
    : channelFacts(routing.tiers(group, model), model);
}

/** Of several groups: any of their channels may serve. */
function together(some: ChannelFacts, more: ChannelFacts): ChannelFacts {
  return {
    largestOverride: Math.max(some.largestOverride, more.largestOverride),
    isAlwaysOverridden: some.isAlwaysOverridden && more.isAlwaysOverridden,
    names: [...new Set([...some.names, ...more.names])],
    places: [...some.places, ...more.places],
    hasThinkingName: some.hasThinkingName || more.hasThinkingName,
    allowsTiers: some.allowsTiers || more.allowsTiers,
    overriddenTiers: [...some.overriddenTiers, ...more.overriddenTiers],
    isPassedThrough: some.isPassedThrough || more.isPassedThrough,
  };
}

function channelFacts(tiers: readonly Tier[], model: string): ChannelFacts {
  let facts = factsOf.get(tiers);
  if (!facts) {
    facts = gather(
      tiers.flatMap(({ entries }) => entries.map(({ channel }) => channel)),
      model,
    );
    factsOf.set(tiers, facts);
  }
  return facts;
}

/** The smallest limit that is sent to every upstream which may serve the call. */
export function leastLimit({ name, isConversation }: Endpoint, { places }: ChannelFacts): number {
  const isOfResponses = (place: Place): boolean => {
    const row = providerOf(place.type);
    return row !== undefined && routeFor(row, name, place.name)?.route.dialect === "openai-responses";
  };
  return isConversation && places.some(isOfResponses) ? LEAST_OUTPUT_TOKENS : 1;
}

function gather(channels: readonly Channel[], model: string): ChannelFacts {
  const limits = channels.map(({ paramOverride }) => overriddenLimit(paramOverride ?? {}));
  const names = new Set([model]);
  const places = new Map<string, Place>();
  for (const channel of channels) {
    const { type } = channel;
    const name = upstreamModel(channel, model);
    names.add(name);
    places.set(`${type} ${name}`, { type, name });
  }
  return {
    largestOverride: Math.max(0, ...limits),
    isAlwaysOverridden: limits.length > 0 && limits.every((limit) => limit > 0),
    names: [...names],
    places: [...places.values()],
    hasThinkingName: [...names].some(asksToThink),
    allowsTiers: channels.some((channel) => allowsTiers(channel) || channel.setting.allow_speed === true),
    // What a rule asks for passes the same gate.
    overriddenTiers: channels
      .filter(allowsTiers)
      .flatMap(({ paramOverride }) => overriddenTiers(paramOverride ?? {})),
    isPassedThrough: channels.some(({ setting }) => setting.pass_through_body_enabled === true),
  };
}

/** By what the word means in either dialect: where it will be sent is open. */
function overriddenTiers(override: Json): string[] {
  return (["openai-chat", "anthropic"] as const).flatMap((dialect) => askedTier(dialect, override) ?? []);
}
