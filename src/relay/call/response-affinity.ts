// Affinity of stored responses, the "must" of core/channels/affinity.ts: only the account that holds a response can go on from it (`previous_response_id`), so a
// call that names one goes to that channel with that key, or fails; another user's response is an unknown one, and so is
// every conversation: none can be begun through this gateway.
import { KEPT_SECONDS, keyHashes } from "../../core/channels/remote-objects.ts";
import type { Channel } from "../../core/channels/rows.ts";
import type { Deps, RemoteObject } from "../../core/deps.ts";
import { storableText } from "../../core/kit/storable.ts";
import { ChannelStatus } from "../../shared/enums.ts";
import type { FailureCode } from "../../shared/failure-codes.ts";
import { Failure } from "../../shared/failures.ts";
import type { Caller } from "./admission.ts";
import { groupsOf } from "./auto-group.ts";
import type { Call } from "./call.ts";
import type { Plan } from "./plan.ts";
import type { RelayBody } from "../wire/read-body.ts";

/** Where a call has to go that goes on from a stored response. */
export interface ResponseHome {
  channel: Channel;
  /** Place of the key in the channel's list, from 0. */
  keyIndex: number;
  /** Tokens of the stored response: its provider reads them again. */
  tokens: number;
}

/** A request of the Responses API, as far as its home is decided by it. */
interface HomeRequest {
  caller: Caller;
  body: RelayBody;
  model: string;
  /** The channel that the caller's key names. */
  pinned: Channel | undefined;
}

export interface ResponseAffinity {
  /** The row to settle with the call that made the response; undefined where its provider keeps nothing for the client. */
  rowOf(call: Call, plan: Plan, responseId: unknown, tokens: number): RemoteObject | undefined;
  /** Call once the row is settled: resolves when every node finds it, or PostgreSQL does not take it for now. */
  keep(row: RemoteObject): Promise<void>;
  /**
   * Where the request has to go; undefined when it names no stored response. Throws previous_response_not_found (404)
   * for ids that are unknown, foreign, too old, of a channel or a key that is gone or not the caller's to use;
   * conversation_not_found (404) for any conversation; 503 where the channel is off, or the database away that knows.
   */
  home(request: HomeRequest): ResponseHome | undefined | Promise<ResponseHome>;
}

const RESPONSE = "response";
/** Ids of providers are short and plain; anything else is not kept, and so is never found. */
const RESPONSE_ID = /^[\x21-\x7e]{1,256}$/;

/**
 * Alike for every reason, and in the words of OpenAI's own answer (code and param as its API gives them, seen in its
 * clients' issue lists; the status is 404 here because the gateway looked and there is none).
 */
function unknownResponse(): Failure {
  return notFound("previous_response_not_found", "previous_response_id");
}

function notFound(code: FailureCode, param: string): Failure {
  return new Failure("client", code, { status: 404, type: "invalid_request_error", param });
}

/** The account is known, and cannot be asked now. */
export function responseUnavailable(isLimit: boolean, retryAfterSeconds?: number): Failure {
  return new Failure(isLimit ? "limit" : "no-channel", "previous_response_unavailable", {
    param: "previous_response_id",
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
  });
}

export function createResponseAffinity(
  deps: Pick<Deps, "affinity" | "clock" | "ledger" | "routing">,
): ResponseAffinity {
  const { affinity, clock, ledger } = deps;
  return {
    rowOf(call, plan, responseId, tokens) {
      if (plan.isConverted || call.isTest || !isStored(call, plan)) return undefined;
      if (typeof responseId !== "string" || !RESPONSE_ID.test(responseId)) return undefined;
      const createdAt = Math.floor(clock.nowMs() / 1000);
      return {
        userId: call.caller.user.id,
        kind: RESPONSE,
        upstreamId: responseId,
        tokenId: call.caller.token?.id ?? 0,
        channelId: plan.channel.id,
        keyHash: plan.channel.keyRows[plan.keyIndex]?.hash ?? "",
        modelName: storableText(call.model),
        tokenCount: tokens,
        createdAt,
        expiresAt: createdAt + KEPT_SECONDS,
        state: "completed",
      };
    },
    keep(row) {
      affinity.remember(row);
      return ledger.entered();
    },
    home(request) {
      const { json } = request.body;
      if (isGiven(json["conversation"])) throw notFound("conversation_not_found", "conversation");
      const previous = json["previous_response_id"];
      if (!isGiven(previous)) return undefined;
      if (typeof previous !== "string" || !RESPONSE_ID.test(previous)) throw unknownResponse();
      const row = affinity.stored(request.caller.user.id, RESPONSE, previous);
      return row instanceof Promise
        ? row.then((found) => homeOf(deps, request, found))
        : homeOf(deps, request, row);
    },
  };
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null;
}

/** What the operator puts into the body has the last word. */
function isStored(call: Call, { channel }: Plan): boolean {
  if (channel.setting.disable_store === true) return false;
  return (call.billed?.["store"] ?? channel.paramOverride?.["store"] ?? call.body.json["store"]) !== false;
}

function homeOf(
  { clock, routing }: Pick<Deps, "clock" | "routing">,
  { caller, model, pinned }: HomeRequest,
  row: RemoteObject | undefined,
): ResponseHome {
  if (!row) throw unknownResponse();
  const { channelId, keyHash, expiresAt, tokenCount } = row;
  const channel = routing.channel(channelId);
  const keyIndex = channel ? keyHashes(channel).indexOf(keyHash) : -1;
  const isOver = expiresAt * 1000 <= clock.nowMs();
  if (!channel || keyIndex === -1 || isOver || (pinned && pinned.id !== channelId)) throw unknownResponse();
  // Whoever may name channels may name this one for any model and group, as for every call.
  if (!pinned) {
    const isOpen = groupsOf(caller).some((group) => channel.groups.includes(group));
    if (!channel.models.includes(model) || !isOpen) throw unknownResponse();
    if (channel.status !== ChannelStatus.enabled) throw responseUnavailable(false);
  }
  return { channel, keyIndex, tokens: tokenCount };
}
