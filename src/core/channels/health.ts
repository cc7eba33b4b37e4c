// How the channels are: kept per channel and upstream model, so that what one model meets leaves the others alone, and per
// channel where none of its keys works. Refuses to grow with anything but trouble: a channel without any has no entry.
import {
  abandoned,
  askedUntil,
  createBreaker,
  failed,
  isForgotten,
  isNewer,
  isReady,
  opened,
  stateOf,
  succeeded,
  take,
} from "./breaker.ts";
import type { Breaker, CellState, Outcome, RestReason } from "./breaker.ts";
import { createProxyHealth } from "./proxy-health.ts";
import { isSameAccess } from "./keyring.ts";
import { upstreamModel } from "./rows.ts";
import { atMostEachMinute } from "./tidying.ts";
import type { Channel } from "./rows.ts";
import type { Routing } from "./routing.ts";

/** How an attempt failed. */
interface FailedAttempt {
  reason: RestReason;
  /** When the attempt began (steady clock). */
  beganMs: number;
  /** Every model of the channel is met by it: no key of it works. */
  isWhole?: boolean;
  /** What a limited upstream asked for. */
  retryAfterSeconds?: number | undefined;
  /** Nobody was reached at all: that may be the proxy in between. */
  isUnreached?: boolean;
  /** What was said of it, scrubbed. */
  detail?: string;
}

/** Why a channel is left alone, for one model or for all. */
interface Rest {
  /** At the upstream; undefined: all of them. */
  model: string | undefined;
  reason: RestReason;
  /** On the steady clock. */
  untilMs: number;
}

/** A cell as it is looked at; times on the steady clock. */
export interface CellReport {
  /** At the upstream; undefined: the whole channel, none of whose keys works, or its proxy. */
  model: string | undefined;
  isProxy: boolean;
  state: CellState;
  reason: RestReason;
  detail: string;
  /** When its rest ends, or ended; 0: it is closed. */
  untilMs: number;
  failures: number;
  outcomes: readonly Outcome[];
}

/** Models are those of requests. `beganMs`: when the attempt began (steady clock); a rest that began later outlives its answer. */
export interface ChannelHealth {
  /** There was no trouble lately, anywhere: nobody need be asked about. */
  isCalm(nowMs: number): boolean;
  /** Whether the channel may serve the model now; a rest that is over lets exactly one call through. */
  isUsable(channel: Channel, model: string, nowMs: number): boolean;
  /** The channel is asked for the model: where its rest is over, this is the call that finds out. */
  take(channel: Channel, model: string, nowMs: number): void;
  /** On the steady clock; 0 = it does not rest. */
  restsUntil(channel: Channel, model: string): number;
  /** Until when the upstream itself wants to be left alone with the model (steady clock); 0: it does not ask for that now. */
  askedUntil(channel: Channel, model: string, nowMs: number): number;
  /** For a call that only this channel can serve: why it may not go there now, undefined when it may (and does). */
  claim(channel: Channel, model: string, nowMs: number): Rest | undefined;
  /** The attempt began to answer, and `succeeded` or `failed` tells how that ended. */
  opened(channel: Channel, model: string, beganMs: number): void;
  succeeded(channel: Channel, model: string, beganMs: number, nowMs: number): void;
  failed(channel: Channel, model: string, how: FailedAttempt, nowMs: number): void;
  /** The attempt ended without a word on the channel: the next one may find out. */
  abandoned(channel: Channel, model: string, beganMs: number): void;
  /** What rests now. */
  rests(channelId: number, nowMs: number): Rest[];
  /** Every cell of the channel that had trouble lately. */
  cells(channel: Channel, nowMs: number): CellReport[];
  /** An administrator lets calls through again: for the upstream's model, or, undefined, for all and through the proxy. */
  close(channel: Channel, model: string | undefined): void;
}

/** Where there was trouble lately; a channel without any has no entry, so the size follows the trouble. */
interface Health {
  /** As it stood when it was last judged. */
  channel: Channel;
  /** No key works, whatever the model. */
  whole: Breaker | undefined;
  /** By the model's name at the upstream. */
  readonly models: Map<string, Breaker>;
}

/** Of one channel. */
const MAX_MODELS = 1000;

/** Whether an edit left alone what decides about success: address, keys, account, proxy and form of the call. */
function isCalledAlike(a: Channel, b: Channel): boolean {
  return (
    isSameAccess(a, b) &&
    a.status === b.status &&
    a.organization === b.organization &&
    a.other === b.other &&
    Bun.deepEquals(a.setting, b.setting) &&
    Bun.deepEquals(a.modelMapping, b.modelMapping) &&
    Bun.deepEquals(a.paramOverride, b.paramOverride) &&
    Bun.deepEquals(a.operations, b.operations) &&
    Bun.deepEquals(a.headerRules, b.headerRules)
  );
}

/** A channel that is called otherwise now gets a fresh start, other edits wake nobody; a deleted one leaves nothing behind. */
function changed(health: Map<number, Health>, id: number, channel: Channel | undefined): void {
  const state = health.get(id);
  if (!state) return;
  if (channel && isCalledAlike(state.channel, channel)) state.channel = channel;
  else health.delete(id);
}

export function createChannelHealth(routing: Pick<Routing, "channel" | "onChange">): ChannelHealth {
  const health = new Map<number, Health>();
  const proxies = createProxyHealth();
  const tidy = atMostEachMinute((nowMs) => sweep(health, nowMs));
  routing.onChange((ids) => {
    for (const id of ids) changed(health, id, routing.channel(id));
  });

  function isUsable(channel: Channel, model: string, nowMs: number): boolean {
    if (!proxies.isUsable(channel, nowMs)) return false;
    const state = health.get(channel.id);
    if (!state) return true;
    if (state.whole && !isReady(state.whole, nowMs)) return false;
    const cell = state.models.get(upstreamModel(channel, model));
    return !cell || isReady(cell, nowMs);
  }

  function taken(channel: Channel, model: string, nowMs: number): void {
    proxies.take(channel, nowMs);
    for (const breaker of breakersOf(health.get(channel.id), channel, model)) take(breaker, nowMs);
  }

  function healthOf(channel: Channel, nowMs: number): Health | undefined {
    const current = routing.channel(channel.id);
    if (!current) return undefined;
    let state = health.get(channel.id);
    if (!state) {
      sweep(health, nowMs);
      health.set(channel.id, (state = { channel: current, whole: undefined, models: new Map() }));
    }
    return state;
  }

  function isCalm(nowMs: number): boolean {
    if (health.size > 0) tidy(nowMs);
    return health.size === 0 && proxies.isCalm(nowMs);
  }

  /** Proxy and keys work, as far as a call that began then can tell. */
  function answered(channel: Channel, beganMs: number): Health | undefined {
    proxies.answered(channel, beganMs);
    const state = health.size === 0 ? undefined : health.get(channel.id);
    if (state?.whole && !isNewer(state.whole, beganMs)) state.whole = undefined;
    return state;
  }

  function dropEmpty(channel: Channel, state: Health | undefined): void {
    if (state && !state.whole && state.models.size === 0) health.delete(channel.id);
  }

  return {
    isCalm,
    isUsable,
    take: taken,
    restsUntil(channel, model) {
      const state = health.get(channel.id);
      const cell = state?.models.get(upstreamModel(channel, model));
      return Math.max(state?.whole?.openUntilMs ?? 0, cell?.openUntilMs ?? 0, proxies.restsUntil(channel));
    },
    askedUntil(channel, model, nowMs) {
      const cell = health.get(channel.id)?.models.get(upstreamModel(channel, model));
      return cell ? askedUntil(cell, nowMs) : 0;
    },
    claim(channel, model, nowMs) {
      if (isCalm(nowMs)) return undefined;
      if (isUsable(channel, model, nowMs)) {
        taken(channel, model, nowMs);
        return undefined;
      }
      const proxy = proxies.breakerOf(channel);
      if (proxy && !isReady(proxy, nowMs))
        return { model: undefined, reason: proxy.reason, untilMs: Math.max(proxy.openUntilMs, nowMs) };
      return restIn(health.get(channel.id), upstreamModel(channel, model), nowMs);
    },
    opened(channel, model, beganMs) {
      const state = answered(channel, beganMs);
      const cell = state?.models.get(upstreamModel(channel, model));
      if (cell) opened(cell, beganMs);
      else dropEmpty(channel, state);
    },
    succeeded(channel, model, beganMs, nowMs) {
      const state = answered(channel, beganMs);
      const name = upstreamModel(channel, model);
      const cell = state?.models.get(name);
      if (cell && !succeeded(cell, beganMs, nowMs)) state?.models.delete(name);
      dropEmpty(channel, state);
    },
    failed(channel, model, { reason, beganMs, isWhole, retryAfterSeconds, isUnreached, detail }, nowMs) {
      if (isUnreached) proxies.unreached(channel, { nowMs, beganMs, detail });
      else proxies.answered(channel, beganMs);
      const state = healthOf(channel, nowMs);
      if (!state) return;
      const breaker = isWhole
        ? (state.whole ??= createBreaker())
        : cellOf(state, upstreamModel(channel, model));
      failed(breaker, reason, nowMs, { retryAfterSeconds, detail, beganMs });
    },
    abandoned(channel, model, beganMs) {
      proxies.abandoned(channel, beganMs);
      for (const breaker of breakersOf(health.get(channel.id), channel, model)) abandoned(breaker, beganMs);
    },
    rests(channelId, nowMs) {
      const state = health.get(channelId);
      return state ? restsIn(state, nowMs) : [];
    },
    cells: (channel, nowMs) => cellsOf(health.get(channel.id), proxies.breakerOf(channel), nowMs),
    close(channel, model) {
      if (model === undefined) {
        proxies.close(channel);
        health.delete(channel.id);
      } else health.get(channel.id)?.models.delete(model);
    },
  };
}

/** Those that a call for the model passes. */
function breakersOf(state: Health | undefined, channel: Channel, model: string): Breaker[] {
  return state
    ? [state.whole, state.models.get(upstreamModel(channel, model))].filter((each) => each !== undefined)
    : [];
}

function cellsOf(state: Health | undefined, proxy: Breaker | undefined, nowMs: number): CellReport[] {
  return [
    ...(proxy ? [reportOf(proxy, undefined, nowMs, true)] : []),
    ...(state?.whole ? [reportOf(state.whole, undefined, nowMs)] : []),
    ...[...(state?.models ?? [])].map(([model, cell]) => reportOf(cell, model, nowMs)),
  ];
}

function reportOf(breaker: Breaker, model: string | undefined, nowMs: number, isProxy = false): CellReport {
  const { reason, detail, openUntilMs, failures, outcomes } = breaker;
  return {
    model,
    isProxy,
    state: stateOf(breaker, nowMs),
    reason,
    detail,
    untilMs: openUntilMs,
    failures,
    outcomes,
  };
}

/** What has not been met for long goes: models that nobody asks for any more leave nothing behind. */
function sweep(health: Map<number, Health>, nowMs: number): void {
  for (const [id, state] of health) {
    if (state.whole && isForgotten(state.whole, nowMs)) state.whole = undefined;
    for (const [model, cell] of state.models) if (isForgotten(cell, nowMs)) state.models.delete(model);
    if (!state.whole && state.models.size === 0) health.delete(id);
  }
}

function cellOf({ models }: Health, name: string): Breaker {
  let cell = models.get(name);
  if (cell) return cell;
  // Only whoever names channels may ask for models that are not on their lists.
  const [oldest] = models.keys();
  if (models.size >= MAX_MODELS && oldest !== undefined) models.delete(oldest);
  models.set(name, (cell = createBreaker()));
  return cell;
}

/** Why nobody may go there now. */
function restIn(state: Health | undefined, name: string, nowMs: number): Rest {
  const isWhole = state?.whole !== undefined && !isReady(state.whole, nowMs);
  const blocking = isWhole ? state.whole : state?.models.get(name);
  return {
    model: isWhole ? undefined : name,
    reason: blocking?.reason ?? "down",
    untilMs: Math.max(blocking?.openUntilMs ?? 0, nowMs),
  };
}

function restsIn({ whole, models }: Health, nowMs: number): Rest[] {
  const all: [string | undefined, Breaker | undefined][] = [[undefined, whole], ...models];
  return all.flatMap(([model, breaker]) =>
    breaker && breaker.openUntilMs > nowMs
      ? [{ model, reason: breaker.reason, untilMs: breaker.openUntilMs }]
      : [],
  );
}
