// Charges what a realtime session had transcribed beside its responses: by itself, at the price of the model that did it.
// Refuses nothing that was heard: what cannot be held back by itself goes with the turn, at the session's price.
import { bornCost } from "../../core/costs/book.ts";
import type { Deps, Reservation } from "../../core/deps.ts";
import { spokenChargeSentence } from "../../core/logs/sentences.ts";
import { keyFields } from "../../core/channels/rows.ts";
import { costOf } from "../../core/prices/prices.ts";
import type { CallFacts, CallPrice } from "../../core/prices/prices.ts";
import type { EndReason } from "../../core/ledger/settle-policy.ts";
import { Failure } from "../../shared/failures.ts";
import { completionTokens, promptTokens } from "../../shared/usage.ts";
import type { HeardEnd } from "./meter.ts";
import type { SessionParts } from "./session-parts.ts";
import { tokensOf } from "./turn-hold.ts";
import type { TurnHold } from "./turn-hold.ts";
import { transcriberPrice } from "./turn-pricing.ts";

/** What of a session its transcriptions are charged with. */
type HeardParts = Pick<
  SessionParts,
  "caller" | "channel" | "keyIndex" | "model" | "upstreamModel" | "requestId" | "attempts"
>;

interface Heard {
  parts: HeardParts;
  /** Of the log row; every charge of a session has its own. */
  requestId: string;
  heard: HeardEnd;
  /** The running turn: its session's cap counts what was heard, too. */
  turn: TurnHold;
  end: EndReason;
}

/**
 * Charges and logs one transcription at the price of the model that made it; it is no request of its own. False: nothing was
 * charged, for it has no price any more, or nothing could be held back for it, whyever. Rejects with `ledger_down` where what
 * was held back could not be settled; nothing was charged then either.
 */
export async function chargeHeard(
  deps: Pick<Deps, "prices" | "ledger" | "costs" | "clock" | "logger">,
  { parts, requestId, heard, turn, end }: Heard,
): Promise<boolean> {
  const { caller } = parts;
  const { usage } = heard;
  const price = transcriberPrice(deps, caller, heard.transcriber);
  if (!price) return false;
  const due = costOf(price, usage, factsOf(price, undefined)).quota;
  const { session } = turn;
  const quotaCap = session && Math.max(0, session.units - session.spent);
  const facts = factsOf(price, quotaCap);
  const charge = costOf(price, usage, facts);
  const { user, token } = caller;
  const tokens = tokensOf(usage);
  let reservation: Reservation;
  try {
    const hold = { amount: charge.quota, least: Math.min(1, charge.quota), promptTokens: tokens, tokens };
    reservation = await deps.ledger.reserve({ requestId, user, token, isPart: true, ...hold });
  } catch (error) {
    const isRefused = error instanceof Failure && (error.kind === "quota" || error.kind === "limit");
    if (!isRefused) {
      const text = error instanceof Error ? error.message : "thrown value";
      deps.logger.warn("what a realtime session heard goes with its turn", {
        request_id: requestId,
        error: text,
      });
    }
    return false;
  }
  const over = due > charge.quota ? { over_cap: due - charge.quota } : {};
  await settleHeard(deps, { parts, heard, reservation, end, price, charge, over, units: session?.units });
  if (session) {
    session.spent += charge.quota;
    if (turn.left !== undefined) turn.left = Math.max(0, turn.left - charge.quota);
  }
  return true;
}

function factsOf({ ratios }: CallPrice, quotaCap: number | undefined): CallFacts {
  return {
    surface: "realtime",
    quotaCap,
    ...(ratios.callPrice === undefined ? {} : { rounding: "floor" }),
  };
}

interface Priced {
  parts: HeardParts;
  heard: HeardEnd;
  reservation: Reservation;
  end: EndReason;
  price: CallPrice;
  charge: ReturnType<typeof costOf>;
  /** What the session's cap kept from being charged. */
  over: { over_cap?: number };
  /** The session's cap. */
  units: number | undefined;
}

async function settleHeard(
  deps: Pick<Deps, "costs" | "clock">,
  { parts, heard, reservation, end, price, charge, over, units }: Priced,
): Promise<void> {
  const { caller, channel, keyIndex, attempts } = parts;
  const { usage, transcriber } = heard;
  const nanos = deps.costs.has(channel.id)
    ? deps.costs.nanos({
        channelId: channel.id,
        upstreamModel: transcriber,
        model: transcriber,
        usage,
        facts: {},
        atMs: deps.clock.nowMs(),
      })
    : undefined;
  const cost = nanos === undefined ? undefined : bornCost(nanos, charge.quota, price.groupRatio);
  try {
    await reservation.settle({
      quota: charge.quota,
      promptTokens: promptTokens(usage),
      completionTokens: completionTokens(usage),
      modelName: transcriber,
      channelId: channel.id,
      keyId: channel.keyRows[keyIndex]?.id,
      group: caller.group,
      isStream: true,
      useTimeMs: 0,
      content: spokenChargeSentence(price),
      cost,
      ...(caller.tokenName === undefined ? {} : { tokenName: caller.tokenName }),
      other: {
        ...charge.other,
        frt: -1000,
        admin_info: {
          use_channel: attempts.map((note) => String(note.channel)),
          ...keyFields(channel, keyIndex),
          upstream_model: transcriber,
          ...(cost ? { cost_nanos: cost.nanos } : {}),
        },
        attempts,
        end_reason: end,
        client_dialect: "openai-realtime",
        upstream_dialect: "openai-realtime",
        session: parts.requestId,
        ...(units === undefined ? {} : { max_quota: units }),
        ...(caller.auto ? { auto: true } : {}),
        ...(usage.estimated === true ? { estimated: true } : {}),
        ...over,
      },
    });
  } finally {
    await reservation.release();
  }
}
