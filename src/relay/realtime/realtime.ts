// GET /v1/realtime: the checks of every inference call, a channel that answers, then two sockets and a session between.
// Refuses by HTTP as long as it can: the client's handshake is answered when an upstream has opened its side.
import type { Deps, TokenAccount } from "../../core/deps.ts";
import { refuseBadHost } from "../../http/host.ts";
import { relayLanguageOf } from "../../http/messages.ts";
import { presentedKey } from "../../http/relay-key.ts";
import { newRequestId, REQUEST_ID_HEADER } from "../../http/request-id.ts";
import { isClosing, isHandshake, upgradeSocket, wantsSocket } from "../../http/sockets.ts";
import { mayUseGroup } from "../../core/users/groups.ts";
import { TokenStatus, UserStatus } from "../../shared/enums.ts";
import type { RateClaim } from "../../core/limits/shared-rates.ts";
import { Failure } from "../../shared/failures.ts";
import { completionTokens, promptTokens } from "../../shared/usage.ts";
import {
  admitCaller,
  callerWith,
  checkAddress,
  checkCallsFrom,
  checkModel,
  checkRate,
  pinnedChannel,
  rateRule,
  unserved,
} from "../call/admission.ts";
import type { Caller } from "../call/admission.ts";
import { callerFor, groupsOf } from "../call/auto-group.ts";
import type { AttemptServices } from "../call/channel-attempts.ts";
import { refusePlain } from "../call/exchange.ts";
import type { RelayParts } from "../call/services.ts";
import {
  chosenProtocol,
  isTranscription,
  namedModel,
  offeredProtocols,
  requestedModel,
} from "./handshake.ts";
import type { RealtimeRequest } from "./handshake.ts";
import { createOpenSessions } from "./open-sessions.ts";
import type { OpenSessions } from "./open-sessions.ts";
import { openUpstream } from "./open-upstream.ts";
import type { OpenedUpstream } from "./open-upstream.ts";
import { RealtimeSession } from "./session.ts";
import type { SessionParts } from "./session-parts.ts";
import { drainingFailure } from "../call/call.ts";
import { capOf } from "../call/cap.ts";
import { namedQuote } from "../call/quote-id.ts";
import { createTurnHolds } from "./turn-pricing.ts";
import type { TurnHolds } from "./turn-pricing.ts";

export interface Realtime {
  /** Answers with 101 (undefined: the socket has taken over) or with an error. Never throws. */
  serve(request: Request): Promise<Response | undefined>;
  /** Sessions that are open. */
  count(): number;
}

/** What all sessions share; one of each per process. */
interface Services extends AttemptServices {
  parts: RelayParts;
  holds: TurnHolds;
  sessions: OpenSessions;
}

/** What its refusals count as. */
const REALTIME = { name: "realtime" } as const;
const BYTES_PER_MIB = 1024 * 1024;

export function createRealtime(deps: Deps, parts: RelayParts): Realtime {
  const { picker, errorRows, visitors } = parts;
  const sessions = createOpenSessions();
  const services: Services = {
    deps,
    picker,
    errorRows,
    parts,
    holds: createTurnHolds(deps, parts),
    sessions,
  };
  return {
    async serve(request) {
      const refused = refuseBadHost({ request });
      if (refused) return refused;
      const requestId = newRequestId(deps.clock.nowMs());
      const startedMs = performance.now();
      let caller: Caller | undefined;
      try {
        caller = await admitCaller(deps, request, visitors);
        checkAddress(caller, request, visitors);
        // Until the socket is open or refused: its upstream may take its time.
        const work = visitors.working(request);
        try {
          await admitAndOpen(services, request, requestId, caller);
        } finally {
          visitors.done(work);
        }
        return undefined;
      } catch (error) {
        const model = namedModel(request);
        const dialect = "openai-chat";
        const plain = { request, requestId, caller, model, startedMs, dialect, endpoint: REALTIME } as const;
        const response = refusePlain(services, plain, error);
        if (response.status === 426) response.headers.set("upgrade", "websocket");
        return response;
      }
    },
    count: () => sessions.count(),
  };
}

/** The rest of the checks, then the session; a session that opened counts against the caller's rate. */
async function admitAndOpen(
  services: Services,
  request: Request,
  requestId: string,
  caller: Caller,
): Promise<void> {
  const { deps, parts } = services;
  const { limiter } = parts;
  const rule = rateRule(deps.options, caller);
  if (!rule) return openFor(services, request, requestId, caller);
  const rate: RateClaim = { rule, userId: caller.user.id };
  checkRate(deps, limiter, rate);
  let isSuccess = false;
  try {
    await deps.limits.confirmRate(rate);
    await openFor(services, request, requestId, caller);
    isSuccess = true;
  } finally {
    const isUndone = rate.shared === "refused";
    limiter.ended(caller.user.id, rule, isSuccess, deps.clock.monotonicMs(), isUndone);
    deps.limits.rateEnded(rate, isSuccess);
  }
}

async function openFor(
  services: Services,
  request: Request,
  requestId: string,
  admitted: Caller,
): Promise<void> {
  const { deps } = services;
  const startedMs = performance.now();
  checkHandshake(services, request);
  const model = requestedModel(request);
  checkModel(admitted, model);
  const pinned = admitted.pinned === undefined ? undefined : pinnedChannel(deps, admitted.pinned);
  const caller = callerFor(deps, admitted, model, pinned);
  if (!pinned && deps.routing.tiers(caller.group, model).length === 0) throw unserved(deps, caller, model);
  const units = capOf(request.headers, caller, deps.options.get("QuotaPerUnit"));
  const quote = namedQuote(deps, request.headers, caller, model);
  const isOpen = await openSession(services, {
    request,
    cap: units === undefined ? undefined : { units, spent: 0 },
    quote,
    requestId,
    caller,
    model,
    pinned,
    offered: offeredProtocols(request),
    attempts: [],
    startedMs,
    wantsStream: true,
  });
  if (isOpen) return;
  checkHandshake(services, request);
  throw new Failure("client", "client_gone", { status: 499 });
}

/** Nobody is asked for who cannot be answered with a socket afterwards. */
function checkHandshake({ parts }: Services, request: Request): void {
  const type = "invalid_request_error";
  if (!wantsSocket(request)) throw new Failure("client", "websocket_required", { status: 426, type });
  if (!isHandshake(request)) throw new Failure("client", "websocket_required", { status: 400, type });
  if (isClosing(parts.visitors.server)) throw drainingFailure();
}

/** False when the client's side could not be opened: nothing is left of the session then, its place neither. */
async function openSession(services: Services, realtimeRequest: RealtimeRequest): Promise<boolean> {
  const { parts, holds, sessions } = services;
  const { request, requestId, offered } = realtimeRequest;
  const opened = await openUpstream(services, holds, realtimeRequest);
  const session = new RealtimeSession(sessionParts(services, realtimeRequest, opened));
  const protocol = chosenProtocol(offered);
  const headers: Record<string, string> = { [REQUEST_ID_HEADER]: requestId };
  if (protocol !== undefined) headers["sec-websocket-protocol"] = protocol;
  sessions.add(session);
  if (upgradeSocket(parts.visitors.server, request, session, headers)) return true;
  sessions.remove(session);
  opened.lease.release();
  opened.upstream.socket.terminate();
  await opened.firstTurn.reservation.release();
  return false;
}

/** Takes of the handshake only what a session needs: it may stay open for hours. */
function sessionParts(
  { deps, parts, holds, sessions }: Services,
  { request, requestId, model, attempts, cap, quote }: RealtimeRequest,
  { caller, channel, keyIndex, lease, upstreamModel, upstream, firstTurn }: OpenedUpstream,
): SessionParts {
  const { counter, usual } = parts;
  return {
    deps,
    counter,
    requestId,
    language: relayLanguageOf(request, deps.options),
    caller,
    channel,
    keyIndex,
    model,
    upstreamModel,
    attempts,
    isTranscription: isTranscription(request),
    maxFrameBytes: deps.options.get("relay.max_body_mb") * BYTES_PER_MIB,
    upstream,
    firstTurn,
    openTurn: (id, context, outputLimit) =>
      holds.open({ caller, model, upstreamModel, requestId: id, context, outputLimit, cap, quote }),
    refusal: (turn) => holds.refusal(caller, turn),
    charged(usage, isHeard) {
      lease.used(promptTokens(usage) + completionTokens(usage));
      if (!isHeard) usual.learn(model, completionTokens(usage));
    },
    chargedHeard: (usage) => lease.used(promptTokens(usage) + completionTokens(usage)),
    ...admissionChecks(deps, request, caller, { model, address: parts.visitors.addressOf(request) }),
    ended: (session) => {
      lease.release();
      sessions.remove(session);
    },
    congested: (session) => sessions.congested(session),
  };
}

/** Of a key and its owner, what decides where a session may be served, and from where it may be used. */
function standingOf({ group, autoGroups, allowIps, user }: TokenAccount): readonly (string | number)[] {
  return [group, autoGroups.join(), allowIps.join(), user.group, user.role];
}

/** Whether the key still admits the session that it opened, in the group that serves it and from its client's address. */
function admissionChecks(
  deps: Deps,
  request: Request,
  { token, group }: Caller,
  { model, address }: { model: string; address: string },
): Pick<SessionParts, "isUnchanged" | "readmit"> {
  // No memory is held for the handshake itself.
  const { key, channel } = presentedKey(request);
  /** As last admitted: what changed since the handshake is judged by the first look. */
  let admitted: readonly (string | number)[] = [];
  return {
    isUnchanged: () =>
      token !== undefined &&
      deps.accounts.tokenByKey(key) === token &&
      token.status === TokenStatus.enabled &&
      (token.expiredTime === -1 || token.expiredTime * 1000 >= deps.clock.nowMs()) &&
      token.user.status === UserStatus.enabled &&
      !token.user.deleted &&
      !token.user.flagged &&
      standingOf(token).every((each, nth) => each === admitted[nth]) &&
      mayUseGroup(deps, token.user, group) &&
      (token.modelLimits === undefined || token.modelLimits.has(model)),
    async readmit() {
      const known = await deps.accounts.tokenByKey(key);
      if (!known) throw new Failure("auth", "token_invalid");
      // What is held back for the running turn may be all that the key had; the next turn decides.
      const caller = callerWith(deps, known, channel, true);
      checkModel(caller, model);
      checkCallsFrom(caller, () => address);
      // The session goes on where it was opened, or not at all.
      if (!groupsOf(caller).includes(group))
        throw new Failure("forbidden", "token_group_disabled", { params: { group } });
      admitted = standingOf(known);
    },
  };
}
