// The hold of a stream whose call has a hard cap: each part of it is priced as it would be charged, before it goes on.
// Refuses the part that passes the cap, or what the balance still pays below it.
import { withCountedOutput, usageTrust } from "../../core/ledger/settle-policy.ts";
import { STEP_TOKENS, unitsForMore } from "../../core/prices/holds.ts";
import { costOf, withTier } from "../../core/prices/prices.ts";
import type { Usage } from "../../shared/usage.ts";
import { estimatedUsage } from "../meter/meter.ts";
import type { OutputCounter } from "../meter/meter.ts";
import { UNHELD } from "../wire/stream-allowance.ts";
import type { StreamHold } from "../wire/stream-allowance.ts";
import type { Call } from "./call.ts";
import { heldPrompt } from "./hold-input.ts";
import type { Plan } from "./plan.ts";

type CappedCall = Pick<Call, "hold" | "price" | "prompt" | "endpoint" | "reservation">;

/** `reported`: what the upstream has said of its usage so far; its word on the input goes before our count. */
export function createCapHold(
  call: CappedCall,
  cap: number,
  { tier }: Pick<Plan, "tier">,
  output: Pick<OutputCounter, "outputTokens" | "tokensPerUnit" | "meter">,
  reported: () => Usage | null,
): StreamHold {
  const { hold, price, prompt, endpoint, reservation } = call;
  const { outputRate } = hold;
  if (outputRate <= 0) return UNHELD;
  let freeChars = Math.floor(hold.tokens / output.tokensPerUnit);
  let paidTokens = hold.tokens;
  let shortOf: StreamHold["shortOf"] = "max-cost";

  /** Units of the call if it ended here, by the formula of its charge. */
  function dueFor(tokens: number): number {
    const said = reported();
    const base = said && usageTrust(said, false) === "partial" ? said : estimatedUsage(heldPrompt(prompt), 0);
    return costOf(withTier(price, tier), withCountedOutput(base, tokens), {
      surface: endpoint.name === "messages" ? "messages" : undefined,
      servedTier: output.meter.state.servedTier,
    }).quota;
  }

  return {
    get freeChars() {
      return freeChars;
    },
    get paidTokens() {
      return paidTokens;
    },
    get shortOf() {
      return shortOf;
    },
    async cover(chars) {
      const counted = await output.outputTokens();
      const due = dueFor(counted);
      if (due > cap) return false;
      if (due > reservation.amount) {
        // An upstream that passes the limit it was given: the hold follows, as far as the cap.
        const wanted = Math.min(cap, due + unitsForMore(outputRate, STEP_TOKENS)) - reservation.amount;
        await reservation.grow(wanted);
        if (due > reservation.amount) {
          shortOf = "balance";
          return false;
        }
      }
      const more = Math.max(0, Math.min(cap, reservation.amount) - due) / outputRate;
      paidTokens = counted + more;
      freeChars = chars + Math.floor(more / output.tokensPerUnit);
      return true;
    },
  };
}
