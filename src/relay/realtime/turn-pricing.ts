// Prices a turn of a realtime session and holds its amount back.
import type { Deps } from "../../core/deps.ts";
import { quotaDisplay } from "../../core/options/store.ts";
import type { CallPrice } from "../../core/prices/prices.ts";
import { Failure } from "../../shared/failures.ts";
import { shortQuotaText } from "../../shared/money.ts";
import type { Usage } from "../../shared/usage.ts";
import type { Caller } from "../call/admission.ts";
import type { RelayParts } from "../call/services.ts";
import { overCap } from "../call/cap.ts";
import { assertCountable } from "../endpoints/call-units.ts";
import type { NamedQuote } from "../call/quote-id.ts";
import { outputRateOf, tokensOf, turnReserve } from "./turn-hold.ts";
import type { SessionCap, TurnHold } from "./turn-hold.ts";

/** A turn counts tokens, and is one call: nothing in it is the unit of another fixed price. */
const TURNS = {};

interface TurnToHold {
  caller: Caller;
  /** As requested. */
  model: string;
  upstreamModel: string;
  /** Every turn has an id of its own. */
  requestId: string;
  /** What was charged last: the turn reads it again. */
  context?: Usage | undefined;
  /** The session's own limit on the tokens of a response. */
  outputLimit?: number | undefined;
  /** Of the session; undefined: it has none. */
  cap: SessionCap | undefined;
  /** Of the session: a turn that is opened while it stands has its prices. */
  quote: NamedQuote | undefined;
}

export interface TurnHolds {
  /**
   * Throws failures of kinds quota and limit, model_not_priced for a model that has no price, and price_unit_uncounted where
   * its price is for what turns are not counted in.
   */
  open(turn: TurnToHold): Promise<TurnHold>;
  /** Why a turn cannot go on whose hold could not be lengthened. */
  refusal(caller: Caller, turn: TurnHold): Failure;
}

export function createTurnHolds(deps: Deps, { usual }: Pick<RelayParts, "usual">): TurnHolds {
  const { options, ledger } = deps;
  return {
    async open({ caller, model, upstreamModel, requestId, context, outputLimit, cap, quote }) {
      const quoted =
        quote && deps.clock.nowMs() < quote.expiresMs ? quote.prices.get(caller.group) : undefined;
      const price = quoted ?? priceFor(deps, caller, model, upstreamModel);
      const wanted = turnReserve(price, context, {
        usual: usual.of(model),
        limit: outputLimit,
        preConsumedTokens: options.get("PreConsumedQuota"),
      });
      const { user, token } = caller;
      const left = cap && Math.max(0, cap.units - cap.spent);
      if (cap && left !== undefined && wanted.least > left)
        throw overCap(options, cap.spent + wanted.least, cap.units);
      const amount = Math.min(wanted.amount, left ?? Infinity);
      const read = context ? tokensOf(context) : 0;
      const reservation = await ledger.reserve({
        requestId,
        user,
        token,
        amount,
        least: wanted.least,
        promptTokens: read,
        tokens: read + Math.min(outputLimit ?? Infinity, usual.of(model)),
      });
      return { reservation, price, outputRate: outputRateOf(price), left, session: cap };
    },
    // The running turn's own hold is all that is left: whichever of user and key has less is named.
    refusal({ user, token }, { session, left = Infinity, reservation }) {
      if (session && reservation.amount >= left) return overCap(options, session.units + 1, session.units);
      const overBudget = deps.limits.refusal({ user, token });
      if (overBudget) return overBudget;
      const ofUser = user.quota - user.reserved;
      const ofToken = token && !token.unlimitedQuota ? token.remainQuota - token.reserved : Infinity;
      if (ofToken >= ofUser)
        return new Failure("quota", "user_quota_empty", { wireCode: "insufficient_user_quota" });
      const display = quotaDisplay(options);
      const params = {
        A: shortQuotaText(ofToken, display),
        B: shortQuotaText(Math.max(1, ofToken + 1), display),
      };
      return new Failure("quota", "token_quota_short", {
        wireCode: "pre_consume_token_quota_failed",
        params,
      });
    },
  };
}

/** The price of a model that transcribes beside responses; undefined where none is set by the token or by the call. */
export function transcriberPrice(
  { prices }: Pick<Deps, "prices">,
  { user, group }: Pick<Caller, "user" | "group">,
  transcriber: string,
): CallPrice | undefined {
  const price = prices.callPrice(transcriber, group, user.group);
  const unit = price?.ratios.callUnit;
  return unit === undefined || unit === "call" ? price : undefined;
}

/**
 * Sessions are priced by the mapped name; a mapping to a name without a price keeps the requested one's. Throws
 * `model_not_priced`.
 */
export function priceFor(
  { prices, options, inbox }: Pick<Deps, "prices" | "options" | "inbox">,
  { user, group }: Pick<Caller, "user" | "group">,
  model: string,
  upstreamModel: string,
): CallPrice {
  const price =
    prices.callPrice(upstreamModel, group, user.group) ?? prices.callPrice(model, group, user.group);
  if (price) {
    assertCountable(TURNS, price, model);
    return price;
  }
  const isAccepted =
    options.get("SelfUseModeEnabled") || user.setting.accept_unset_model_ratio_model === true;
  if (!isAccepted) {
    inbox.raise({ kind: "price", subject: model });
    throw new Failure("client", "model_not_priced", { params: { model } });
  }
  return prices.missingCallPrice(model, group, user.group);
}
