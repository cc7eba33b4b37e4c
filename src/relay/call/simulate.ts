// Which channel and key would serve a call now, who would be asked after it, and why not the others: chosen by the code that chooses
// for calls (choice.ts), with its turns and trials left as they are. Nobody is asked, nothing is held or logged.
import { KeyStatus, ChannelStatus } from "../../shared/enums.ts";
import type { Channel } from "../../core/channels/rows.ts";
import type {
  KeyVerdict,
  RouteCandidate,
  RouteQuestion,
  RouteReport,
  RouteSession,
  RouteVerdict,
} from "../../core/channels/route-report.ts";
import type { TokenAccount } from "../../core/deps.ts";
import { wallTimeOf } from "../../core/kit/clock.ts";
import { Failure } from "../../shared/failures.ts";
import { callerWith, checkModel, unserved } from "./admission.ts";
import type { Caller } from "./admission.ts";
import { boundHome, boundSession } from "./affinity.ts";
import type { CallAffinity } from "./affinity.ts";
import { callerFor, groupsOf } from "./auto-group.ts";
import { keyFor, nextChannel } from "./choice.ts";
import type { Choice } from "./choice.ts";
import { takesInput } from "./input-limit.ts";
import { canServe } from "./plan.ts";
import { quotedTarget } from "./quote-paths.ts";
import type { CallServices } from "./services.ts";
import type { Endpoint } from "../endpoints/endpoint.ts";

type SimulationServices = Pick<CallServices, "deps" | "picker">;

/** Keys that are told of, of one channel. */
const MOST_KEYS = 100;

/** A route of the site's, as it stands; everything about the call but its texts. */
interface Simulated {
  /** Undefined: nobody asks about one, or it is bound nowhere. */
  affinity: CallAffinity | undefined;
  services: SimulationServices;
  caller: Caller;
  endpoint: Endpoint;
  model: string;
  tokens: number;
  nowMs: number;
}

/** Rejects only for questions that are none; a call that would be refused is a report. */
export async function simulateRoute(
  services: SimulationServices,
  question: RouteQuestion,
  token: TokenAccount | undefined,
): Promise<RouteReport> {
  const { deps } = services;
  const { model, path, tokens } = question;
  const target = quotedTarget(path);
  if (!target) throw new Failure("client", "quote_path_unknown", { params: { path }, param: "path" });
  const nowMs = deps.clock.monotonicMs();
  const known = { services, endpoint: target.endpoint, model, tokens, nowMs };
  try {
    const caller = callerFor(deps, callerOf(services, question, token), model);
    checkModel(caller, model);
    const { session } = question;
    const affinity = session === "" ? undefined : await boundSession(deps, caller, { model, session });
    return reportOf({ ...known, caller, affinity }, session !== "");
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return { groups: [], refused: error, session: undefined, candidates: [] };
  }
}

function callerOf(
  { deps }: SimulationServices,
  { user, group }: RouteQuestion,
  token: TokenAccount | undefined,
): Caller {
  const caller: Caller = token
    ? callerWith(deps, token, undefined)
    : { user, token: undefined, tokenName: undefined, group: user.group, auto: undefined, pinned: undefined };
  return group === "" ? caller : { ...caller, group, auto: undefined };
}

function reportOf(call: Simulated, asksSession: boolean): RouteReport {
  const { services, caller, model } = call;
  const { deps } = services;
  const order = orderOf(call);
  const groups = groupsOf(caller);
  const chosen = [...order.values()][0];
  const tierOf = new Map(
    groups.flatMap((group, at) =>
      deps.routing
        .tiers(group, model)
        .flatMap(({ entries }, tier) => entries.map(({ channel }) => [channel.id, [at, tier]] as const)),
    ),
  );
  const first = chosen && tierOf.get(chosen.channelId);
  const candidates = [...deps.routing.channels()]
    .filter((channel) => channel.models.includes(model))
    .map((channel) => {
      const at = order.get(channel.id);
      const place = tierOf.get(channel.id);
      const isBehind =
        first !== undefined && place !== undefined && (place[0] !== first[0] || place[1] !== first[1]);
      return candidateOf(call, channel, { groups, at, isBehind });
    })
    .toSorted(
      (a, b) => (a.order || Infinity) - (b.order || Infinity) || b.priority - a.priority || a.id - b.id,
    );
  const refused = chosen ? undefined : whyNobody(call, candidates);
  const session = asksSession ? sessionOf(call, chosen) : undefined;
  return { groups: [...groups], refused, session, candidates };
}

function sessionOf({ affinity }: Simulated, chosen: Asked | undefined): RouteSession {
  const [home] = affinity?.seen ?? [];
  if (!affinity || !home) return { state: "unbound", channelId: 0, reason: "" };
  return chosen?.isBound
    ? { state: "kept", channelId: chosen.channelId, reason: "" }
    : { state: "left", channelId: home.channelId, reason: affinity.leftFor ?? "" };
}

interface Asked {
  channelId: number;
  group: string;
  keyIndex: number;
  order: number;
  /** Its session is bound there. */
  isBound: boolean;
}

/** Who would be asked, one after another, if each failed; by the channel's id. */
function orderOf({ services, caller, endpoint, model, tokens, affinity }: Simulated): Map<number, Asked> {
  const nowMs = services.deps.clock.monotonicMs();
  const order = new Map<number, Asked>();
  const accepts = (channel: Channel): boolean =>
    takesInput(channel, tokens) && canServe(channel, endpoint, model);
  const excluded = new Set<number>();
  const bound =
    affinity && boundHome(services, { caller, model, affinity, tokens, accepts, excluded }, nowMs);
  if (bound) {
    const { channel, group, keyIndex } = bound;
    order.set(channel.id, { channelId: channel.id, group, keyIndex, order: 1, isBound: true });
    excluded.add(channel.id);
  }
  for (;;) {
    const choice: Choice = {
      services,
      request: { caller, model, pinned: undefined, prompt: { tokens } },
      policy: { accepts },
      excluded,
      full: new Set(),
      isPeek: true,
    };
    const picked = nextChannel(choice, nowMs);
    const key = picked && keyFor(choice, picked.channel, nowMs);
    if (!picked || !key) return order;
    const { channel, group } = picked;
    const place = { channelId: channel.id, group, keyIndex: key.index, order: order.size + 1 };
    order.set(channel.id, { ...place, isBound: false });
    excluded.add(channel.id);
  }
}

function candidateOf(
  call: Simulated,
  channel: Channel,
  { groups, at, isBehind }: { groups: readonly string[]; at: Asked | undefined; isBehind: boolean },
): RouteCandidate {
  const { id, name, type, priority, weight, keyMode } = channel;
  const [verdict, untilMs = 0, detail = ""] = verdictOf(call, channel, { groups, at, isBehind });
  return {
    id,
    name,
    type,
    priority,
    weight,
    keyMode,
    order: at?.order ?? 0,
    group: at?.group ?? "",
    keyIndex: at?.keyIndex ?? -1,
    verdict,
    until: atSeconds(call, untilMs),
    detail,
    keys: channel.keyRows.slice(0, MOST_KEYS).map((key, index) => {
      const [state, until = 0] = keyVerdict(call, channel, index);
      return { index, label: key.label, verdict: state, until: atSeconds(call, until) };
    }),
  };
}

const atSeconds = ({ services: { deps } }: Simulated, steadyMs: number): number =>
  steadyMs === 0 ? 0 : Math.ceil(wallTimeOf(deps.clock, steadyMs) / 1000);

/** Why the channel stands where it does; until when (steady clock), where that ends by itself. */
function verdictOf(
  { services, endpoint, model, tokens, nowMs }: Simulated,
  channel: Channel,
  { groups, at, isBehind }: { groups: readonly string[]; at: Asked | undefined; isBehind: boolean },
): [verdict: RouteVerdict, untilMs?: number, detail?: string] {
  const { picker, deps } = services;
  if (at?.order === 1) return ["chosen"];
  if (channel.status === ChannelStatus.autoDisabled) return ["auto_off"];
  if (channel.status !== ChannelStatus.enabled) return ["off"];
  if (!groups.some((group) => channel.groups.includes(group))) return ["group", 0, channel.groups.join(", ")];
  if (!canServe(channel, endpoint, model)) return ["endpoint"];
  if (!takesInput(channel, tokens)) return ["too_long", 0, String(channel.maxInputTokens)];
  const fitness = deps.keyring.fitness(channel, model, nowMs, tokens);
  if (fitness === "off") return ["keys_off"];
  if (fitness === "full") return ["full"];
  if (fitness !== "fit") return ["keys_resting", deps.keyring.fitAtMs(channel, model, nowMs)];
  if (!picker.isUsable(channel, model, nowMs)) {
    const rest = picker.rests(channel.id, nowMs)[0];
    return ["resting", picker.restsUntil(channel, model), rest?.reason ?? ""];
  }
  return isBehind ? ["priority"] : ["turn"];
}

/** Whether the key could be asked for the model; until when (steady clock) it could not. */
function keyVerdict(
  { services: { deps }, model, tokens, nowMs }: Simulated,
  channel: Channel,
  index: number,
): [verdict: KeyVerdict, untilMs?: number] {
  const status = channel.keyRows[index]?.status;
  if (status === KeyStatus.autoOff) return ["auto_off"];
  if (status !== KeyStatus.on) return ["off"];
  const rest = deps.keyring.restOf(channel, index, model, nowMs);
  if (rest) return ["resting", rest.restsUntilMs];
  const hasRoom = !channel.isCapped || deps.caps.hasRoom(channel, index, tokens, nowMs);
  return hasRoom ? ["fit"] : ["full"];
}

/** What the client would read. */
function whyNobody(
  { services: { deps }, caller, model }: Simulated,
  candidates: readonly RouteCandidate[],
): Failure {
  const has = (...verdicts: RouteVerdict[]): boolean =>
    candidates.some(({ verdict }) => verdicts.includes(verdict));
  if (has("full"))
    return new Failure("limit", "channel_capacity_exhausted", { params: { model, seconds: 1 } });
  if (has("keys_resting", "resting")) return new Failure("upstream-limit", "upstream_saturated");
  if (has("endpoint", "too_long", "keys_off"))
    return new Failure("no-channel", "endpoint_unsupported", { params: { group: caller.group, model } });
  return unserved(deps, caller, model);
}
