// Opens a realtime session's upstream: channel after channel and key after key as for any other call, with the amount for
// the first turn held back before each attempt.
import { upstreamModel } from "../../core/channels/rows.ts";
import type { Lease } from "../../core/channels/caps.ts";
import type { Channel } from "../../core/channels/rows.ts";
import { baseUrlOf, requireServed, routeFor, upstreamUrl } from "../../providers/address.ts";
import { providerOf } from "../../providers/catalog.ts";
import { upstreamHeaders } from "../../providers/headers.ts";
import { Failure } from "../../shared/failures.ts";
import type { Caller } from "../call/admission.ts";
import { failureIn } from "../call/attempt.ts";
import { callerIn } from "../call/auto-group.ts";
import { attemptChannels } from "../call/channel-attempts.ts";
import type { AttemptServices, ChannelAttempt } from "../call/channel-attempts.ts";
import { keyless } from "../call/keyless.ts";
import { mappedModel } from "../call/plan.ts";
import { applyHeaderRules } from "../call/rules.ts";
import { connectUpstream } from "./connect.ts";
import type { SocketTarget, UpstreamSocket } from "./connect.ts";
import { upstreamProtocols, upstreamQuery } from "./handshake.ts";
import type { RealtimeRequest } from "./handshake.ts";
import type { TurnHold } from "./turn-hold.ts";
import type { TurnHolds } from "./turn-pricing.ts";

/** An upstream that opened its side, and what the first turn holds there. */
export interface OpenedUpstream {
  /** In the group that its channel was asked in. */
  caller: Caller;
  channel: Channel;
  keyIndex: number;
  /** The session's place: to be released at its end. */
  lease: Lease;
  upstreamModel: string;
  upstream: UpstreamSocket;
  firstTurn: TurnHold;
}

const FIRST_EVENT_MS = 1000;

/** Throws the failure of the last attempt. */
export async function openUpstream(
  services: AttemptServices,
  holds: TurnHolds,
  request: RealtimeRequest,
): Promise<OpenedUpstream> {
  const { model } = request;
  try {
    return await attemptChannels(
      services,
      request,
      {
        accepts: (channel) => canServe(channel, model),
        dialect: "openai-chat",
        endpoint: "realtime",
        keepsLease: true,
      },
      (attempt) => openOne(services, holds, request, attempt),
    );
  } catch (error) {
    throw failureIn(error);
  }
}

async function openOne(
  { deps }: AttemptServices,
  holds: TurnHolds,
  request: RealtimeRequest,
  attempt: ChannelAttempt,
): Promise<OpenedUpstream> {
  const { channel, keyIndex, lease, limits } = attempt;
  const site = deps.options.get("ServerAddress");
  const { target, upstreamModel } = socketTarget(request, attempt, site);
  await deps.reach.target(target.url, channel);
  const { model, requestId, cap, quote } = request;
  const caller = callerIn(request.caller, attempt.group);
  const firstTurn = await holds.open({ caller, model, upstreamModel, requestId, cap, quote });
  try {
    const upstream = await connectUpstream({
      target,
      openMs: limits.firstByteMs > 0 ? Math.min(limits.firstByteMs, limits.deadlineMs) : limits.deadlineMs,
      firstEventMs: FIRST_EVENT_MS,
      channel,
      clientSignal: request.request.signal,
    });
    return { caller, channel, keyIndex, lease, upstreamModel, upstream, firstTurn };
  } catch (error) {
    await firstTurn.reservation.release();
    throw keyless(error, attempt.key);
  }
}

function canServe(channel: Channel, model: string): boolean {
  const row = providerOf(channel.type);
  if (!row || row.status === "retired" || row.status === "later" || row.auth.kind === "adapter") return false;
  if (channel.baseUrl === "" && row.baseUrl === "") return false;
  const found = routeFor(row, "realtime", upstreamModel(channel, model));
  return found !== undefined && found.route.adapter === undefined;
}

function unserved({ caller, model }: RealtimeRequest): Failure {
  const params = { group: caller.group, model };
  return new Failure("no-channel", "endpoint_unsupported", { params, retryable: true });
}

function socketTarget(
  realtimeRequest: RealtimeRequest,
  { channel, key }: ChannelAttempt,
  site: string,
): { target: SocketTarget; upstreamModel: string } {
  const { request, offered, model } = realtimeRequest;
  const row = providerOf(channel.type);
  if (!row) throw unserved(realtimeRequest);
  requireServed(row);
  const upstreamModel = mappedModel(channel, model);
  if (!routeFor(row, "realtime", upstreamModel)) throw unserved(realtimeRequest);
  baseUrlOf(row, channel);
  const headers = upstreamHeaders(row, {
    operation: "realtime",
    key,
    organization: channel.organization,
    other: channel.other,
    site,
  });
  // The current protocol is spoken without this header; who wants the old one says so.
  delete headers["openai-beta"];
  const beta = request.headers.get("openai-beta");
  if (beta !== null) headers["openai-beta"] = beta;
  // Frames are the client's own; of a channel's rules those about headers concern its handshake.
  applyHeaderRules({ channel, headers, client: request.headers, key });
  const url = upstreamUrl(row, channel, {
    operation: "realtime",
    model: upstreamModel,
    query: upstreamQuery(request, upstreamModel),
  });
  const { proxy } = channel.setting;
  return {
    upstreamModel,
    target: {
      url,
      headers,
      protocols: upstreamProtocols(row, offered, key),
      proxy: typeof proxy === "string" ? proxy : "",
    },
  };
}
