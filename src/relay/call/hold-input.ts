// What a hold takes for a call's input: far from the limit the prompt as long as it can be, which costs nobody a wait; near it what
// the encoder counts, so that nobody is refused for tokens that are none. Never less than it will be charged by our own count.
import type { Deps } from "../../core/deps.ts";
import { heldCallPrice } from "../../core/prices/holds.ts";
import type { HoldRates, HoldTerms } from "../../core/prices/holds.ts";
import { countUnits } from "../endpoints/call-units.ts";
import { Failure } from "../../shared/failures.ts";
import { countBusy, countedPrompt } from "../meter/meter.ts";
import type { PromptSize } from "../meter/meter.ts";
import type { TokenCounter } from "../meter/token-count.ts";
import type { Call } from "./call.ts";
import type { HoldRequest } from "./hold.ts";
import type { Plan } from "./plan.ts";

/** Tokens of a large picture: what one costs that is priced by the token. */
const PICTURE_TOKENS = 6240;
/** What is unsure may be this share of what is free beside the rest of the hold; where it is more, it is counted. */
const UNSURE_SHARE = 4;

/** Tokens of the prompt, without what is unsure of it; an encoder that gave no answer leaves nothing to go by but the most. */
export function heldPrompt({ tokens, mostTokens, isUncountable }: PromptSize): number {
  return isUncountable === true ? mostTokens : tokens;
}

/** Tokens that the prompt may have beyond `heldPrompt`. */
function unsureTokens(prompt: PromptSize): number {
  return Math.max(0, prompt.mostTokens - heldPrompt(prompt));
}

/** Units that are due whatever is answered; `hosted` are those of hosted tools, before the group ratio. */
export function dueUnits(
  request: HoldRequest,
  { output, text, media }: HoldRates,
  { hosted, tiers }: { hosted: number; tiers: readonly string[] },
): Pick<HoldTerms, "fixedUnits" | "unsureUnits"> {
  const { endpoint, body, model, price, prompt } = request;
  const { json } = body;
  const callPrice = heldCallPrice(price, tiers);
  const tools = hosted * price.groupRatio;
  if (callPrice !== undefined) {
    const counted = countUnits(endpoint, price, { body: json, form: body.form, json: undefined });
    const { callCount = 1, callFactor = 1 } = counted;
    const factor = endpoint.factor?.(json, model) ?? callFactor;
    const units = callPrice * factor * callCount * price.quotaPerUnit * price.groupRatio;
    return { fixedUnits: units + tools, unsureUnits: 0 };
  }
  const counted = endpoint.heldInput?.({ body: json, form: body.form, model }) ?? 0;
  const { mediaTokens } = prompt;
  const read = Math.max(heldPrompt(prompt) - mediaTokens, counted) + request.earlierTokens;
  const pictures = endpoint.pieces ? endpoint.pieces(json) * PICTURE_TOKENS : 0;
  const sound = endpoint.heldSound?.({ body: json, model, ratios: price.ratios }) ?? 0;
  return {
    fixedUnits: read * text + mediaTokens * media + (pictures + sound) * output + tools,
    unsureUnits: unsureTokens(prompt) * text,
  };
}

/** The request with its prompt counted by the encoder, or known as one that cannot be. */
export async function withCounted(
  { counter }: { counter: TokenCounter },
  request: HoldRequest,
): Promise<HoldRequest> {
  const { prompt, endpoint, body, sent, model } = request;
  if (prompt.mostTokens <= prompt.tokens) return request;
  const counted = await countedPrompt(counter, {
    endpoint,
    body: sent?.prompt ?? body.json,
    model,
  });
  if (counted === undefined) return { ...request, prompt: { ...prompt, isUncountable: true } };
  const tokens = counted + (sent?.addedTokens ?? 0);
  return { ...request, prompt: { ...prompt, tokens, mostTokens: tokens } };
}

/** Whether `available` pays the hold with all that is unsure in it, and leaves enough for others. */
export function isFarEnough(available: number, { unsureUnits }: HoldTerms, held: number): boolean {
  if (unsureUnits <= 0 || available <= 0) return true;
  return unsureUnits <= (available - held + unsureUnits) / UNSURE_SHARE;
}

/** Units by which the prompt is cheaper than what is held for it: once it is counted, they pay for the answer. */
export async function sparedUnits(
  { counter }: { counter: TokenCounter },
  { prompt, endpoint, body, hold }: Pick<Call, "prompt" | "endpoint" | "body" | "hold">,
  { upstreamModel: model }: Pick<Plan, "upstreamModel">,
): Promise<number> {
  const { unsureUnits, inputRate } = hold;
  if (unsureUnits <= 0) return 0;
  const counted = await countedPrompt(counter, {
    endpoint,
    body: body.json,
    model,
  });
  if (counted === undefined) return 0;
  return Math.max(0, unsureUnits - Math.max(0, counted - heldPrompt(prompt)) * inputRate);
}

/**
 * Holds with the prompt counted. Throws `count_busy` where the balance pays the prompt as it is estimated (`least`), and nobody could
 * count whether it is longer: who comes again soon hears what it is.
 */
export async function countedFirst<Held>(
  services: { counter: TokenCounter; deps: Pick<Deps, "ledger"> },
  request: HoldRequest,
  least: number | undefined,
  hold: (counted: HoldRequest) => Held | Promise<Held>,
): Promise<Held> {
  const counted = await withCounted(services, request);
  try {
    return await hold(counted);
  } catch (error) {
    const isShort = error instanceof Failure && error.kind === "quota";
    if (!isShort || counted.prompt.isUncountable !== true) throw error;
    if (services.deps.ledger.available(request.caller) < (least ?? 0)) throw error;
    throw countBusy();
  }
}
