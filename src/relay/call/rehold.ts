// A call whose channel's rules changed what its price follows from (answers, sizes, limits, tiers, a longer prompt): priced by what
// is sent, and held for before it is. The name that is billed stays the client's; the next attempt begins with the first price.
import { forRequest } from "../../core/prices/prices.ts";
import { requestFacts } from "../endpoints/service-tier.ts";
import type { Call } from "./call.ts";
import { holdAgain } from "./hold.ts";
import type { Plan } from "./plan.ts";
import type { CallServices } from "./services.ts";

/** Gives the call back the price and hold that it had before rules of the last channel changed them. */
export function resetTerms(call: Call): void {
  const { unruled } = call;
  if (!unruled) return;
  call.price = unruled.price;
  call.hold = unruled.hold;
  call.unruled = undefined;
  call.billed = undefined;
}

/** Undefined where nothing has to be held anew, as with nearly every call. Throws where the balance or a cap does not pay it. */
export function holdForSent(services: CallServices, call: Call, plan: Plan): Promise<void> | undefined {
  const repriced = plan.rules?.repriced;
  return repriced && call.asked ? reholdFor(services, call, plan) : undefined;
}

async function reholdFor(services: CallServices, call: Call, plan: Plan): Promise<void> {
  const { asked } = call;
  const repriced = plan.rules?.repriced;
  if (!asked || !repriced) return;
  const { dialect, addedTokens } = repriced;
  const { endpoint, prompt } = call;
  const isOwnDialect = dialect === endpoint.dialect;
  const json = { ...(isOwnDialect ? repriced.body : call.body.json) };
  const price = forRequest(call.price, () => requestFacts(dialect, repriced.body));
  call.unruled = { price: call.price, hold: call.hold };
  const hold = await holdAgain(
    services,
    {
      ...asked,
      body: { ...call.body, json },
      price,
      groupPrices: undefined,
      pinned: plan.channel,
      prompt: {
        ...prompt,
        tokens: prompt.tokens + addedTokens,
        mostTokens: prompt.mostTokens + addedTokens,
      },
      sent: { dialect, json: repriced.body, prompt: call.body.json, addedTokens },
    },
    call.reservation,
  );
  call.price = price;
  call.hold = hold;
  call.billed = json;
  plan.writeLimit(hold.limit);
}
