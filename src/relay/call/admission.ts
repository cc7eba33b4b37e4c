// The first checks of every call with a key: key, user, group, address, and the request rate.
// Refuses with the documented statuses and sentences; unknown, deleted and foreign keys look alike.
import type { Deps, TokenAccount, UserAccount } from "../../core/deps.ts";
import type { Channel } from "../../core/channels/rows.ts";
import { refuseInMaintenance } from "../../core/site/maintenance.ts";
import { autoGroups, mayUseGroup } from "../../core/users/groups.ts";
import { inRanges, parseRanges } from "../../http/address.ts";
import type { Range } from "../../http/address.ts";
import { presentedKey } from "../../http/relay-key.ts";
import type { Visitors } from "../../http/visitors.ts";
import { AUTO_GROUP } from "../../shared/auto-group.ts";
import { ChannelStatus, Role, TokenStatus, UserStatus } from "../../shared/enums.ts";
import { Failure } from "../../shared/failures.ts";
import { rateRefusal } from "../../core/limits/refusals.ts";
import type { RateClaim } from "../../core/limits/shared-rates.ts";
import type { RateLimiter, RateRule } from "../../core/kit/rate-limit.ts";
import type { Exchange } from "./exchange.ts";
import type { CallServices } from "./services.ts";

/** Who calls, and on whose account. */
export interface Caller {
  user: UserAccount;
  /** Undefined in the playground. */
  token: TokenAccount | undefined;
  /** Name for the log where there is no key. */
  tokenName: string | undefined;
  /** Decides price and channels; `auto` until it is known which group serves the model. */
  group: string;
  /** Of an automatic key the groups that may serve, in their order; undefined: the one above. */
  auto: readonly string[] | undefined;
  /** Set when the key named a channel. */
  pinned: string | undefined;
}

export type AdmissionDeps = Pick<
  Deps,
  "accounts" | "options" | "clock" | "ledger" | "logger" | "maintenance" | "routing"
>;

function refuseToken(deps: AdmissionDeps, token: TokenAccount, isPaid: boolean): void {
  const { masked } = token;
  if (token.status === TokenStatus.exhausted)
    throw new Failure("auth", "token_exhausted_status", { params: { key: masked } });
  if (token.status === TokenStatus.expired) throw new Failure("auth", "token_expired");
  if (token.status !== TokenStatus.enabled) throw new Failure("auth", "token_unusable");
  if (token.expiredTime !== -1 && token.expiredTime * 1000 < deps.clock.nowMs()) {
    deps.ledger.tokenExpired(token).catch((error: unknown) => {
      deps.logger.warn("expired key could not be marked", { token: token.id, error: String(error) });
    });
    throw new Failure("auth", "token_expired");
  }
  if (!isPaid && !token.unlimitedQuota && token.remainQuota <= 0)
    throw new Failure("auth", "token_exhausted", { params: { key: masked, quota: token.remainQuota } });
}

/** A key's own group must be open to its owner and must still exist; an automatic key needs one that is and does. */
function groupOf(deps: AdmissionDeps, token: TokenAccount): Pick<Caller, "group" | "auto"> {
  const { group, user } = token;
  if (group === "") return { group: user.group, auto: undefined };
  if (group === AUTO_GROUP) {
    const auto = autoGroups(deps, user, token.autoGroups);
    if (auto.length === 0) throw new Failure("forbidden", "token_group_disabled", { params: { group } });
    return { group, auto };
  }
  if (!mayUseGroup(deps, user, group))
    throw new Failure("forbidden", "token_group_disabled", { params: { group } });
  if (!Object.hasOwn(deps.options.get("GroupRatio"), group))
    throw new Failure("forbidden", "group_retired", { params: { group } });
  return { group, auto: undefined };
}

/** Whoever brings a key that has to be looked up is a stranger so long. */
async function lookedUp<T>(
  found: Promise<T>,
  key: string,
  request: Request,
  visitors: Pick<Visitors, "lookUp">,
): Promise<T> {
  try {
    return await visitors.lookUp(request, key, () => found);
  } catch (error) {
    // Refused before the answer: nobody else waits for it.
    found.catch(() => undefined);
    throw error;
  }
}

/** A request whose caller may make it. */
export interface Admitted {
  exchange: Exchange;
  caller: Caller;
}

/** Whoever was let in before is a stranger no more. */
export const ACCEPTED: Pick<Visitors, "lookUp"> = { lookUp: (_request, _shown, work) => work() };

/** The first stage: whose key it is, from where it may be used, and how often. */
export function admit(services: CallServices, exchange: Exchange): Admitted | Promise<Admitted> {
  const caller = admitCaller(services.deps, exchange.request, services.visitors);
  return caller instanceof Promise
    ? caller.then((known) => admitKnown(services, exchange, known))
    : admitKnown(services, exchange, caller);
}

function admitKnown({ deps, visitors, limiter }: CallServices, exchange: Exchange, caller: Caller): Admitted {
  const { request } = exchange;
  exchange.caller = caller;
  checkAddress(caller, request, visitors);
  const rule = rateRule(deps.options, caller);
  if (rule) {
    const rate = { rule, userId: caller.user.id, isAdmitted: false };
    exchange.rate = rate;
    checkRate(deps, limiter, rate);
    rate.isAdmitted = true;
  }
  return { exchange, caller };
}

/**
 * Key → token → user → group. Does not look at the address: reading the model list is allowed from anywhere. Usually at
 * once: a promise for every call would cost each of them a turn.
 */
export function admitCaller(
  deps: AdmissionDeps,
  request: Request,
  visitors: Pick<Visitors, "lookUp">,
): Caller | Promise<Caller> {
  const { key, channel } = presentedKey(request);
  if (key === "") throw new Failure("auth", "token_missing");
  const found = deps.accounts.tokenByKey(key);
  return found instanceof Promise
    ? lookedUp(found, key, request, visitors).then((token) => callerOf(deps, token, channel))
    : callerOf(deps, found, channel);
}

/** The callers of keys that were known and refused all the same; those of deleted users look unknown, and are. */
const refusedCallers = new WeakMap<Failure, Caller>();

/** Whose key a failure of `admitCaller` refused; undefined where nobody knows the key. */
export function refusedCaller(failure: Failure): Caller | undefined {
  return refusedCallers.get(failure);
}

function callerOf(deps: AdmissionDeps, token: TokenAccount | undefined, channel: string | undefined): Caller {
  if (!token) throw new Failure("auth", "token_invalid");
  try {
    return callerWith(deps, token, channel);
  } catch (error) {
    const { user, group } = token;
    if (error instanceof Failure && !user.deleted)
      refusedCallers.set(error, {
        user,
        token,
        tokenName: undefined,
        group: group || user.group,
        auto: undefined,
        pinned: undefined,
      });
    throw error;
  }
}

/**
 * Whoever has the key; throws what its calls are refused with. `channel`: which the key names. `isPaid`: what goes on is held back
 * already, which may be all that the key had.
 */
export function callerWith(
  deps: AdmissionDeps,
  token: TokenAccount,
  channel: string | undefined,
  isPaid = false,
): Caller {
  const { user } = token;
  if (deps.maintenance.isOn) refuseInMaintenance(deps.maintenance, user.role);
  refuseToken(deps, token, isPaid);
  if (user.deleted) throw new Failure("auth", "token_invalid");
  if (user.status !== UserStatus.enabled) throw new Failure("forbidden", "user_banned");
  if (user.flagged) throw new Failure("forbidden", "account_flagged");
  if (channel !== undefined && user.role < Role.admin)
    throw new Failure("forbidden", "channel_pin_forbidden");
  const { group, auto } = groupOf(deps, token);
  return { user, token, tokenName: undefined, group, auto, pinned: channel };
}

const rangesOf = new WeakMap<readonly string[], readonly Range[]>();

/** The IP list of the key; the address is only worked out when there is one. */
export function checkAddress(caller: Caller, request: Request, visitors: Pick<Visitors, "addressOf">): void {
  checkCallsFrom(caller, () => visitors.addressOf(request));
}

/** The same where the request is gone, and what is left of it its client's address. */
export function checkCallsFrom(caller: Caller, addressOf: () => string): void {
  const list = caller.token?.allowIps;
  if (list === undefined || list.length === 0) return;
  let ranges = rangesOf.get(list);
  if (!ranges) rangesOf.set(list, (ranges = parseRanges(list)));
  if (!inRanges(addressOf(), ranges)) throw new Failure("forbidden", "ip_not_allowed");
}

/**
 * The rule in force for the caller's group; undefined when the limit is off. Automatic keys have one of their own, else that
 * of their owner's group: which group will serve is not known yet.
 */
export function rateRule(options: Deps["options"], { group, auto, user }: Caller): RateRule | undefined {
  if (!options.get("ModelRequestRateLimitEnabled")) return undefined;
  const minutes = options.get("ModelRequestRateLimitDurationMinutes");
  if (minutes === 0) return undefined;
  const groups = options.get("ModelRequestRateLimitGroup");
  const named = auto && !Object.hasOwn(groups, group) ? user.group : group;
  const own = Object.hasOwn(groups, named) ? groups[named] : undefined;
  return {
    windowMs: minutes * 60_000,
    total: own ? own[0] : options.get("ModelRequestRateLimitCount"),
    success: own ? own[1] : options.get("ModelRequestRateLimitSuccessCount"),
  };
}

/** Throws where this process knows that a limit is reached; what passes must be ended (RateLimiter). */
export function checkRate(
  { limits, clock }: Pick<Deps, "limits" | "clock">,
  limiter: RateLimiter,
  rate: RateClaim,
): void {
  const rule = limits.rateHere(rate);
  const refusal = limiter.admit(rate.userId, rule, clock.monotonicMs());
  if (refusal) throw rateRefusal(rate.rule, refusal.which, refusal);
  rate.here = limiter.counted(rate.userId, rule, clock.monotonicMs());
}

/** What is admitted and holds nothing: its rate alone is asked about. */
export async function admitAlone(services: CallServices, exchange: Exchange): Promise<Admitted> {
  const admitted = await admit(services, exchange);
  if (exchange.rate) await services.deps.limits.confirmRate(exchange.rate);
  return admitted;
}

/** The model limits of the key, by the requested name; a named channel overrules them. */
export function checkModel(caller: Caller, model: string): void {
  const limits = caller.token?.modelLimits;
  if (limits === undefined || caller.pinned !== undefined || limits.has(model)) return;
  throw new Failure("forbidden", "token_model_forbidden", { params: { model } });
}

/** Why a model is refused that no channel serves: nobody of the group has it, or who has it is off at the moment. */
export function unserved(
  { routing }: Pick<Deps, "routing">,
  { group, auto }: Pick<Caller, "group" | "auto">,
  model: string,
): Failure {
  const isKnown = auto ? auto.some((each) => routing.knows(each, model)) : routing.knows(group, model);
  if (!isKnown) return modelNotFound(model);
  return new Failure("no-channel", "no_channel", { params: { group: auto ? AUTO_GROUP : group, model } });
}

/** As OpenAI says it: agents end here, and do not ask again. */
export function modelNotFound(model: string): Failure {
  return new Failure("client", "model_not_found", {
    status: 404,
    params: { model },
    type: "invalid_request_error",
    param: "model",
  });
}

/** The channel that an administrator's key names. */
export function pinnedChannel(deps: Pick<Deps, "routing">, pinned: string): Channel {
  const channel = /^\d{1,15}$/.test(pinned) ? deps.routing.channel(Number(pinned)) : undefined;
  if (!channel) throw new Failure("client", "channel_pin_invalid");
  if (channel.status !== ChannelStatus.enabled) throw new Failure("forbidden", "channel_disabled");
  return channel;
}
