// What a realtime session is quoted at: one answer as it usually is, spoken unless its body asks for text alone. A session has
// no end of its own, so that the worst of it is all that can be paid, or its cap.
import type { Deps } from "../../core/deps.ts";
import { medianOutput } from "../../core/logs/usual-output.ts";
import { costOf } from "../../core/prices/prices.ts";
import type { CallPrice } from "../../core/prices/prices.ts";
import { asList, asObject, asString } from "../../protocol/json.ts";
import { emptyUsage } from "../../shared/usage.ts";
import { factsFor } from "../call/hold-facts.ts";
import type { QuotedSurface, SurfaceCosts } from "../call/quote.ts";
import type { RelayParts } from "../call/services.ts";
import { sessionModel } from "./handshake.ts";
import { outputRateOf, turnReserve } from "./turn-hold.ts";
import { priceFor } from "./turn-pricing.ts";

const PATH = "/v1/realtime";

interface Asked {
  model: string;
  /** Tokens of a response. */
  limit: number | undefined;
  isText: boolean;
}

/** The model stands in the query, as in a handshake, or in the body beside the fields of a session. */
function askedIn(query: string, body: Record<string, unknown>): Asked {
  const session = asObject(body["session"]) ?? body;
  const named = asString(body["model"]) ?? asString(session["model"]);
  const limit = session["max_response_output_tokens"] ?? session["max_output_tokens"];
  const modalities = asList(session["output_modalities"] ?? session["modalities"]);
  return {
    model: sessionModel(named === undefined ? new URLSearchParams(query).getAll("model") : [named]),
    limit: typeof limit === "number" && limit > 0 ? limit : undefined,
    isText: modalities.length > 0 && modalities.every((each) => each === "text"),
  };
}

/** Undefined: the path is not that of sessions. Throws Failures of kind client for a model that is none. */
export function sessionQuote(
  deps: Deps,
  { usual }: Pick<RelayParts, "usual">,
  address: string,
  body: Record<string, unknown>,
): QuotedSurface | undefined {
  const [path = "", query = ""] = address.split("?");
  if (path !== PATH) return undefined;
  const asked = askedIn(query, body);
  const { model } = asked;
  return {
    model,
    // Which channel will serve is open: the dearest of the names by which one of the group may send the model on.
    priceIn(caller, group) {
      const { routing } = deps;
      const inGroup = { ...caller, group, auto: undefined };
      const { places } = factsFor(routing, { caller: inGroup, model, pinned: undefined });
      const names = places.length === 0 ? [model] : places.map(({ name }) => name);
      return names
        .map((name) => priceFor(deps, inGroup, model, name))
        .reduce((most, each) => (outputRateOf(each) > outputRateOf(most) ? each : most));
    },
    async costs({ caller, price, own, available }) {
      const tokens = (await medianOutput(deps, caller.user.id, model)) ?? usual.of(model);
      const expected = chargeOf(own, { ...asked, tokens: Math.min(asked.limit ?? Infinity, tokens) });
      const { amount, least } = turnReserve(price, undefined, {
        usual: usual.of(model),
        limit: asked.limit,
        preConsumedTokens: deps.options.get("PreConsumedQuota"),
      });
      return { ...expected, worst: Math.max(available, amount), reserve: amount, least };
    },
  };
}

function chargeOf(
  price: CallPrice,
  { tokens, isText }: { tokens: number; isText: boolean },
): Pick<SurfaceCosts, "usage" | "charge"> {
  const usage = emptyUsage();
  if (isText) usage.output.text = tokens;
  else usage.output.audio = tokens;
  const isWhole = price.ratios.callPrice !== undefined;
  const charge = costOf(price, usage, { surface: "realtime", ...(isWhole ? { rounding: "floor" } : {}) });
  return { usage, charge };
}
