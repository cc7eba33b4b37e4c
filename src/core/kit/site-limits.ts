// The limits of the console's routes: the general lines per address and per account, and what counts per address at all.
// Refuses with 429 `too_many_attempts` and the seconds to wait; the networks of RATE_LIMIT_TRUSTED have no limits per address.
import ipaddr from "ipaddr.js";
import { Failure } from "../../shared/failures.ts";
import { createAttemptLimit, createWrongLimit } from "./attempt-limit.ts";
import type { AttemptLimit, WrongLimit, WrongRule } from "./attempt-limit.ts";
import { sha256Hex } from "./seal.ts";
import { alone } from "./shared-attempts.ts";
import type { AskedLimit, SharedAttempts } from "./shared-attempts.ts";
import type { Clock } from "../deps.ts";

interface LimitRule {
  count: number;
  windowMs: number;
}

/** What the operator said in the environment. */
export interface LimitSettings {
  /** Calls below /api: per address without a session, and per signed-in account; undefined: no limit. */
  strangers: LimitRule | undefined;
  accounts: LimitRule | undefined;
  /** In place of every route's own limit per address; "off": none. Undefined: each route's own. */
  perAddress: LimitRule | "off" | undefined;
}

export interface SiteLimits {
  /** Counts a call without a session. Throws when there were too many. */
  stranger(address: string): void;
  /**
   * Before what a call shows is looked up: counts it like a stranger's, unless the same was known the last time. Throws when
   * there were too many, so that nobody is looked up for an address that is refused anyway.
   */
  unproven(address: string, shown: string): void;
  /** What came of it; a known one is given back. */
  proven(address: string, shown: string, isKnown: boolean): void;
  /** Counts a call of a signed-in account. */
  account(userId: number): void;
  /** A route's own limit per address. All processes that share a Valkey count what has one name together. */
  perAddress(name: string, rule: LimitRule): AskedLimit;
  /** The same where only wrong attempts count. */
  wrongPerAddress(name: string, rule: LimitRule): WrongLimit;
  /** The same of anything else: accounts, or the site. Whoever asks for one name has one count. */
  wrong(name: string, rule: WrongRule): WrongLimit;
}

/** What was shown and known is remembered as a digest, of so many. */
const MAX_KNOWN = 10_000;

export function tooMany(seconds: number): Failure {
  return new Failure("limit", "too_many_attempts", { params: { seconds }, retryAfterSeconds: seconds });
}

/** What counts as one address: an IPv4 address, or the /64 network that one subscriber has of IPv6. */
export function addressGroup(address: string): string {
  if (!ipaddr.isValid(address)) return address;
  const parsed = ipaddr.process(address);
  if (!(parsed instanceof ipaddr.IPv6)) return parsed.toString();
  return `${parsed.parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(":")}::/64`;
}

const FREE: AttemptLimit = { take: () => undefined, giveBack: () => undefined };
const FREE_FOR_WRONG: WrongLimit = { enter: () => Promise.resolve(undefined), leave: () => undefined };

export function createSiteLimits(
  settings: LimitSettings,
  clock: Pick<Clock, "monotonicMs">,
  isTrusted: (address: string) => boolean,
  shared?: SharedAttempts,
): SiteLimits {
  const monotonicMs = () => clock.monotonicMs();
  const limitOf = (rule: LimitRule | undefined) =>
    rule ? createAttemptLimit(rule.count, rule.windowMs, monotonicMs) : FREE;
  const strangers = limitOf(settings.strangers);
  const accounts = limitOf(settings.accounts);

  const check = (limit: AttemptLimit, key: string): void => {
    const seconds = limit.take(key);
    if (seconds !== undefined) throw tooMany(seconds);
  };
  const ruleOf = (own: LimitRule): LimitRule | undefined =>
    settings.perAddress === "off" ? undefined : (settings.perAddress ?? own);

  function askedOf(name: string, rule: LimitRule | undefined): AskedLimit {
    if (!rule || !shared) return alone(limitOf(rule));
    const local = createAttemptLimit(() => shared.limitHere(rule.count), rule.windowMs, monotonicMs);
    return shared.limit(name, { limit: rule.count, windowMs: rule.windowMs }, local);
  }
  function wrongOf(name: string, rule: WrongRule): WrongLimit {
    if (!shared) return createWrongLimit(rule, monotonicMs);
    const limit = () => shared.limitHere(rule.limit);
    return shared.wrong(name, rule, createWrongLimit({ ...rule, limit }, monotonicMs));
  }

  /** The latest last; neighbours who try tokens keep nobody out whose own was good. */
  const known = new Set<string>();

  const named = new Map<string, WrongLimit>();

  return {
    stranger(address) {
      if (!isTrusted(address)) check(strangers, addressGroup(address));
    },
    unproven(address, shown) {
      if (!isTrusted(address) && !known.has(sha256Hex(shown))) check(strangers, addressGroup(address));
    },
    proven(address, shown, isKnown) {
      const digest = sha256Hex(shown);
      const wasKnown = known.delete(digest);
      if (!isKnown) return;
      if (!wasKnown && !isTrusted(address)) strangers.giveBack(addressGroup(address));
      known.add(digest);
      const [oldest] = known;
      if (known.size > MAX_KNOWN && oldest !== undefined) known.delete(oldest);
    },
    account: (userId) => check(accounts, String(userId)),
    perAddress(name, own) {
      const limit = askedOf(name, ruleOf(own));
      return {
        take: (address) =>
          isTrusted(address) ? Promise.resolve(undefined) : limit.take(addressGroup(address)),
        giveBack: (address) => {
          if (!isTrusted(address)) limit.giveBack(addressGroup(address));
        },
      };
    },
    wrong(name, rule) {
      const limit = named.get(name) ?? wrongOf(name, rule);
      named.set(name, limit);
      return limit;
    },
    wrongPerAddress(name, own) {
      const rule = ruleOf(own);
      const wrong: WrongRule | undefined = rule && { limit: rule.count, windowMs: rule.windowMs };
      const limit = wrong ? wrongOf(name, wrong) : FREE_FOR_WRONG;
      return {
        enter: (address) =>
          isTrusted(address) ? Promise.resolve(undefined) : limit.enter(addressGroup(address)),
        leave: (address, isWrong) => {
          if (!isTrusted(address)) limit.leave(addressGroup(address), isWrong);
        },
      };
    },
  };
}
