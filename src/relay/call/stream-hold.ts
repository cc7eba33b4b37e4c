// The hold of a stream, lengthened before more of it goes on than is paid for.
// Refuses to pass on what neither the hold nor the balance covers: the chunk is neither delivered nor charged.
import type { Reservation } from "../../core/deps.ts";
import { STEP_TOKENS, unitsForMore } from "../../core/prices/holds.ts";
import type { Call } from "./call.ts";
import type { CallHold } from "./hold.ts";
import type { OutputCounter } from "../meter/meter.ts";
import { UNHELD } from "../wire/stream-allowance.ts";
import type { StreamHold } from "../wire/stream-allowance.ts";

/** The next step is taken so many tokens ahead, so that few chunks have to be counted one by one. */
const AHEAD_TOKENS = 256;

export function createStreamHold(
  reservation: Pick<Reservation, "grow">,
  { tokens: first, outputRate }: CallHold,
  output: Pick<OutputCounter, "countedTokens" | "unsureTokens" | "outputTokens" | "tokensPerUnit">,
  spared: () => Promise<number>,
): StreamHold {
  if (outputRate <= 0) return UNHELD;
  let tokens = first;
  /** A step ahead was refused: the next is reserved when it is due. */
  let isShort = false;
  let freeChars = Math.floor(tokens / output.tokensPerUnit);

  async function grow(wanted: number): Promise<void> {
    const units = unitsForMore(outputRate, wanted);
    const added = await reservation.grow(units, wanted);
    tokens += added >= units ? wanted : added / outputRate;
    if (added >= units) return;
    // From here on every unit counts, also those that the prompt turns out not to need.
    if (!isShort) tokens += (await spared()) / outputRate;
    isShort = true;
  }

  return {
    get freeChars() {
      return freeChars;
    },
    get paidTokens() {
      return tokens;
    },
    shortOf: "balance",
    async cover(chars) {
      // With nothing left to grow by, every token counts.
      let counted = await (isShort ? output.outputTokens() : output.countedTokens());
      // What is estimated may turn out dearer: it is counted before the hold might not pay it.
      const unsure = output.unsureTokens();
      if (unsure > 0 && tokens - counted - unsure < AHEAD_TOKENS / 2) counted = await output.outputTokens();
      if (counted > tokens) await grow(Math.max(STEP_TOKENS, counted - tokens + AHEAD_TOKENS));
      else if (!isShort && tokens - counted < AHEAD_TOKENS) await grow(STEP_TOKENS);
      if (counted > tokens) return false;
      const sure = Math.max(0, tokens - counted - output.unsureTokens());
      freeChars = chars + Math.floor(sure / output.tokensPerUnit);
      return true;
    },
  };
}

/** Whether a full answer is paid that came where a stream was requested: it is one chunk, and its hold has to follow. */
export async function coverFull(
  { hold, reservation }: Pick<Call, "hold" | "reservation">,
  countTokens: () => Promise<number>,
  spared: () => Promise<number>,
): Promise<boolean> {
  if (!hold.grows || hold.outputRate <= 0) return true;
  const tokens = await countTokens();
  if (tokens <= hold.tokens) return true;
  const more = tokens - hold.tokens;
  const units = unitsForMore(hold.outputRate, more);
  const added = await reservation.grow(units, more);
  return added >= units || added + (await spared()) >= units;
}
