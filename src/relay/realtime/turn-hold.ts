// One turn of a realtime session as the ledger sees it: what is held back for it, and how far that reaches.
// Refuses to let a turn go on that is not paid: its hold is lengthened before more of it passes.
import type { Reservation } from "../../core/deps.ts";
import { LEAST_TOKENS, ratesOf, STEP_TOKENS, unitsForMore } from "../../core/prices/holds.ts";
import type { WantedHold } from "../../core/prices/holds.ts";
import { costOf, estimateReserve } from "../../core/prices/prices.ts";
import type { CallPrice } from "../../core/prices/prices.ts";
import { CloseCode } from "../../http/sockets.ts";
import type { Failure } from "../../shared/failures.ts";
import { completionTokens, emptyUsage, promptTokens } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";

/** The next step is taken so many tokens ahead, so that not every frame has to be priced. */
export const AHEAD_TOKENS = 16;

/** The hard cap of a session: all of its turns share it. */
export interface SessionCap {
  readonly units: number;
  spent: number;
}

/** One turn's amount and the price at which it is charged. */
export interface TurnHold {
  /** Units that the session's cap leaves for the turn; undefined: it has none. */
  left: number | undefined;
  /** Whose that is: what the turn is charged counts there. */
  session: SessionCap | undefined;
  reservation: Reservation;
  price: CallPrice;
  /** Units of one token of output, at the dearest price that may apply. */
  outputRate: number;
}

/** The dearest of a session: sound and pictures go in, sound comes out. */
export function outputRateOf(price: CallPrice): number {
  return ratesOf(price, { cacheWrite: "none", audioInput: true, imageInput: true, audioOutput: true }).output;
}

/** What a turn holds at first: the conversation so far, read again, and an answer of the usual length. */
export function turnReserve(
  price: CallPrice,
  context: Usage | undefined,
  answer: { usual: number; limit: number | undefined; preConsumedTokens: number },
): WantedHold {
  const { ratios, groupRatio, quotaPerUnit } = price;
  if (ratios.callPrice !== undefined) {
    const amount = estimateReserve(ratios, groupRatio, {
      promptTokens: 0,
      maxTokens: 0,
      preConsumedTokens: 0,
      quotaPerUnit,
    });
    return { amount, least: amount };
  }
  const read = context ? costOf(price, asInput(context), { surface: "realtime" }).quota : 0;
  const rate = outputRateOf(price);
  const limit = answer.limit ?? Infinity;
  const wanted = read + unitsForMore(rate, Math.min(limit, answer.usual));
  return {
    amount: Math.max(wanted, unitsForMore(ratios.modelRatio * groupRatio, answer.preConsumedTokens)),
    least: read + unitsForMore(rate, Math.min(limit, LEAST_TOKENS)),
  };
}

/** A response and what it answered are the input of the next one. */
function asInput({ input, output }: Usage): Usage {
  const usage = emptyUsage();
  usage.input.fresh = input.fresh + input.cacheRead + output.text + output.thinking;
  usage.input.audio = input.audio + output.audio;
  usage.input.image = input.image + output.image;
  return usage;
}

/**
 * Whether so much of the turn is paid, after its hold was lengthened where it can be; a promise where the database has to
 * be asked. `more` tells that it is paid well ahead.
 */
export function coverTurn(turn: TurnHold, usage: Usage): TurnCover | Promise<TurnCover> {
  const { reservation, price, outputRate, left = Infinity } = turn;
  const due = costOf(price, usage, { surface: "realtime" }).quota;
  const ahead = due + unitsForMore(outputRate, AHEAD_TOKENS);
  // What was heard beside the turn may have taken of the session's cap since the turn was held.
  const paid = (): number => Math.min(reservation.amount, left);
  const judge = (): TurnCover => ({ isPaid: due <= paid(), isAhead: ahead <= paid() });
  if (ahead <= paid()) return judge();
  const step = Math.max(unitsForMore(outputRate, STEP_TOKENS), ahead - reservation.amount);
  const more = Math.min(step, left - reservation.amount);
  if (more <= 0) return judge();
  const grown = reservation.grow(more, outputRate > 0 ? Math.floor(more / outputRate) : 0);
  return typeof grown === "number" ? judge() : grown.then(judge);
}

export interface TurnCover {
  isPaid: boolean;
  isAhead: boolean;
}

export const tokensOf = (usage: Usage): number => promptTokens(usage) + completionTokens(usage);

/** How a session is closed that the failure ends. */
export function goodbyeOf(failure: Failure): { code: number; text: string } {
  if (failure.kind === "internal") return { code: CloseCode.broken, text: failure.code };
  const { wireCode } = failure;
  return { code: CloseCode.refused, text: typeof wireCode === "string" ? wireCode : failure.code };
}
