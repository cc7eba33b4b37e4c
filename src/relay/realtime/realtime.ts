// GET /v1/realtime: the checks of every inference call, a channel that answers, then two sockets and a session between.
// Refuses by HTTP as long as it can: the client's handshake is answered when an upstream has opened its side.
import type { Channel } from "../../core/channels/rows.ts";
import type { Deps } from "../../core/deps.ts";
import { quotaDisplay } from "../../core/options/store.ts";
import type { CallPrice } from "../../core/prices/prices.ts";
import { refuseShortHost } from "../../http/host.ts";
import { languageOf } from "../../http/messages.ts";
import { presentedKey } from "../../http/relay-key.ts";
import { newRequestId, REQUEST_ID_HEADER } from "../../http/request-id.ts";
import { upgradeSocket, wantsSocket } from "../../http/sockets.ts";
import type { Visitors, Work } from "../../http/visitors.ts";
import { baseUrlOf, requireServed, routeFor, upstreamUrl } from "../../providers/address.ts";
import { providerOf } from "../../providers/catalog.ts";
import type { ProviderRow } from "../../providers/define.ts";
import { upstreamHeaders } from "../../providers/headers.ts";
import { TokenStatus, UserStatus } from "../../shared/enums.ts";
import { Failure } from "../../shared/failures.ts";
import { shortQuotaText } from "../../shared/money.ts";
import { completionTokens } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";
import {
  admitCaller,
  checkAddress,
  checkModel,
  checkRate,
  pinnedChannel,
  rateRule,
} from "../call/admission.ts";
import type { Caller } from "../call/admission.ts";
import { attemptFailure, AttemptFailure, mayRetry } from "../call/attempt.ts";
import { disableIfFatal } from "../call/auto-disable.ts";
import type { AttemptNote } from "../call/call.ts";
import { corsHeaders } from "../wire/cors.ts";
import { familyName } from "../endpoints/model-name.ts";
import { goneReason, mappedModel } from "../call/plan.ts";
import { connectUpstream } from "./connect.ts";
import type { SocketTarget, UpstreamSocket } from "./connect.ts";
import { RealtimeSession } from "./session.ts";
import { outputRateOf, turnReserve } from "./turn.ts";
import type { Turn } from "./turn.ts";
import { asFailure, renderFailure } from "../wire/render-failure.ts";
import type { RelayParts } from "../call/services.ts";

/** The caller of an open session is a stranger no more. */
const ACCEPTED: Pick<Visitors, "lookUp"> = { lookUp: (_request, _shown, work) => work() };

export interface Realtime {
  /** Answers with 101 (undefined: the socket has taken over) or with an error. Never throws. */
  serve(request: Request): Promise<Response | undefined>;
  /** Sessions that are open. */
  count(): number;
}

const CHECK_MS = 500;
const RELIEF_MS = 20;
/** A silent upstream is asked for a sign of life after the first, and given up after the second. */
const PING_MS = 30_000;
const SILENT_MS = 150_000;
const FIRST_EVENT_MS = 1000;
const BYTES_PER_MIB = 1024 * 1024;
const MAX_MODEL_CHARS = 256;

const KEY_PROTOCOL = "openai-insecure-api-key.";
const BETA_PROTOCOL = "openai-beta.";
/** Parameters that are the gateway's matter or that would reach into somebody else's session. */
const OWN_PARAMETERS: ReadonlySet<string> = new Set([
  "model",
  "key",
  "api-key",
  "authorization",
  "deployment",
  "call_id",
]);

/** An upstream that opened its side, and what the session will cost there. */
interface Connected {
  channel: Channel;
  upstreamModel: string;
  upstream: UpstreamSocket;
  turn: Turn;
}

interface Asked {
  request: Request;
  requestId: string;
  caller: Caller;
  model: string;
  pinned: Channel | undefined;
  /** Sub-protocols that the client offers. */
  offered: readonly string[];
  attempts: AttemptNote[];
}

function offeredProtocols(request: Request): string[] {
  const header = request.headers.get("sec-websocket-protocol") ?? "";
  return header
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
}

/** The one that is answered: browsers insist on one of those they offered, and a key must not be said aloud. */
function chosenProtocol(offered: readonly string[]): string | undefined {
  return (
    offered.find((name) => name === "realtime") ?? offered.find((name) => !name.startsWith(KEY_PROTOCOL))
  );
}

function modelOf(request: Request): string {
  const names = new URL(request.url).searchParams.getAll("model");
  const details = { wireCode: "invalid_request", param: "model" };
  if (names.length > 1) throw new Failure("client", "model_ambiguous", details);
  const name = names[0] ?? "";
  if (name === "") throw new Failure("client", "field_required", { params: { field: "model" }, ...details });
  if (name.length > MAX_MODEL_CHARS || hasControl(name))
    throw new Failure("client", "invalid_field", {
      params: { field: "model", reason: "must be a name" },
      ...details,
    });
  return familyName(name);
}

function hasControl(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) < 0x20) return true;
  return false;
}

/** The client's query with one model in it: the one that is priced is the one that is served. */
function upstreamQuery(request: Request, model: string): string {
  const query = new URLSearchParams({ model });
  for (const [name, value] of new URL(request.url).searchParams)
    if (!OWN_PARAMETERS.has(name.toLowerCase())) query.append(name, value);
  return `?${query.toString()}`;
}

/** Sends the key the way the client sent its own; providers with headers of their own for it get those only. */
function upstreamProtocols(row: ProviderRow, offered: readonly string[], key: string): string[] {
  if (offered.length === 0) return [];
  const takesKey = row.auth.kind === "header" && row.auth.name === "authorization" && key !== "";
  return [
    "realtime",
    ...(takesKey ? [`${KEY_PROTOCOL}${key}`] : []),
    ...offered.filter((name) => name.startsWith(BETA_PROTOCOL)),
  ];
}

let turn = 0;
/** Several keys of one channel take turns. */
function keyOf(channel: Channel): string {
  turn = (turn + 1) % 1_000_000_007;
  return (channel.keys[turn % channel.keys.length] ?? "").trim();
}

function canServe(channel: Channel, model: string): boolean {
  const row = providerOf(channel.type);
  if (!row || row.status === "retired" || row.status === "later" || row.auth.kind === "adapter") return false;
  if (channel.baseUrl === "" && row.baseUrl === "") return false;
  const { modelMapping } = channel;
  const mapped = typeof modelMapping === "string" ? model : (modelMapping.get(model) ?? model);
  const found = routeFor(row, "realtime", mapped);
  return found !== undefined && found.route.adapter === undefined;
}

function unserved(asked: Asked): Failure {
  return new Failure("no-channel", "endpoint_unsupported", {
    params: { group: asked.caller.group, model: asked.model },
    retryable: true,
  });
}

export function createRealtime(deps: Deps, parts: RelayParts): Realtime {
  const { options, clock, prices } = deps;
  const { picker, limiter, counter, usual, visitors } = parts;
  const sessions = new Set<RealtimeSession>();
  /** Sessions whose client waits for the upstream. */
  const congested = new Set<RealtimeSession>();
  let checking: ReturnType<typeof setInterval> | undefined;
  let relieving: ReturnType<typeof setInterval> | undefined;

  // One timer for all sessions and none without any.
  function add(session: RealtimeSession): void {
    sessions.add(session);
    checking ??= setInterval(() => {
      const nowMs = performance.now();
      for (const each of sessions) void each.check(nowMs, PING_MS, SILENT_MS);
    }, CHECK_MS);
  }
  function remove(session: RealtimeSession): void {
    sessions.delete(session);
    if (sessions.size > 0) return;
    clearInterval(checking);
    checking = undefined;
  }
  function congest(session: RealtimeSession): void {
    congested.add(session);
    relieving ??= setInterval(() => {
      for (const each of congested) if (each.relieve()) congested.delete(each);
      if (congested.size > 0) return;
      clearInterval(relieving);
      relieving = undefined;
    }, RELIEF_MS);
  }

  /** Sessions are priced by the mapped name; a mapping to a name without a price keeps the requested one's. */
  function priceFor(caller: Caller, model: string, upstreamModel: string): CallPrice {
    const { group } = caller;
    const price = prices.callPrice(upstreamModel, group) ?? prices.callPrice(model, group);
    if (price) return price;
    const isAccepted =
      options.get("SelfUseModeEnabled") || caller.user.setting.accept_unset_model_ratio_model === true;
    if (!isAccepted) throw new Failure("internal", "model_price_error", { params: { model } });
    return prices.missingCallPrice(model, group);
  }

  async function openTurn(
    caller: Caller,
    model: string,
    upstreamModel: string,
    requestId: string,
    context?: Usage,
    limit?: number,
  ): Promise<Turn> {
    const price = priceFor(caller, model, upstreamModel);
    const wanted = turnReserve(price, context, {
      usual: usual.of(model),
      limit,
      preConsumedTokens: options.get("PreConsumedQuota"),
    });
    const { user, token } = caller;
    const hold = await deps.ledger.reserve({ requestId, user, token, ...wanted });
    return { hold, price, outputRate: outputRateOf(price) };
  }

  /** The running turn's own hold is all that is left: whichever of user and key has less is named. */
  function refusalOf({ user, token }: Caller): Failure {
    const ofUser = user.quota - user.reserved;
    const ofToken = token && !token.unlimitedQuota ? token.remainQuota - token.reserved : Infinity;
    if (ofToken >= ofUser)
      return new Failure("quota", "user_quota_empty", { wireCode: "insufficient_user_quota" });
    const display = quotaDisplay(options);
    const params = {
      A: shortQuotaText(ofToken, display),
      B: shortQuotaText(Math.max(1, ofToken + 1), display),
    };
    return new Failure("quota", "token_quota_short", { wireCode: "pre_consume_token_quota_failed", params });
  }

  function targetOf(asked: Asked, channel: Channel): { target: SocketTarget; upstreamModel: string } {
    const { request, offered } = asked;
    const row = providerOf(channel.type);
    if (!row) throw unserved(asked);
    requireServed(row);
    const upstreamModel = mappedModel(channel, asked.model);
    if (!routeFor(row, "realtime", upstreamModel)) throw unserved(asked);
    baseUrlOf(row, channel);
    const key = keyOf(channel);
    const headers = upstreamHeaders(row, {
      operation: "realtime",
      key,
      organization: channel.organization,
      other: channel.other,
      site: options.get("ServerAddress"),
    });
    // The current protocol is spoken without this header; who wants the old one says so.
    delete headers["openai-beta"];
    const beta = request.headers.get("openai-beta");
    if (beta !== null) headers["openai-beta"] = beta;
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

  /** Channel after channel until one opens; the amount for the first turn is held back before each attempt. */
  async function connect(asked: Asked): Promise<Connected> {
    const { caller, model, pinned, attempts, request } = asked;
    const failed = new Set<number>();
    const tries = pinned ? 1 : options.get("RetryTimes") + 1;
    const deadlineAtMs = performance.now() + options.get("relay.deadline_seconds") * 1000;
    const firstByteMs = options.get("relay.first_byte_timeout_seconds") * 1000;
    let last: Failure | undefined;
    for (let i = 0; i < tries; i++) {
      const channel = pinned
        ? pinned
        : picker.pick(caller.group, model, failed, clock.monotonicMs(), (each) => canServe(each, model));
      if (!channel) break;
      const startedMs = performance.now();
      const leftMs = deadlineAtMs - startedMs;
      if (leftMs <= 0) break;
      const note = (code: string, status?: number): void => {
        const ms = Math.round(performance.now() - startedMs);
        attempts.push({ channel: channel.id, ms, code, ...(status === undefined ? {} : { status }) });
      };
      let held: Turn | undefined;
      try {
        const { target, upstreamModel } = targetOf(asked, channel);
        await deps.reach.target(target.url, channel);
        held = await openTurn(caller, model, upstreamModel, asked.requestId);
        const limits = {
          openMs: firstByteMs > 0 ? Math.min(firstByteMs, leftMs) : leftMs,
          firstEventMs: FIRST_EVENT_MS,
        };
        const upstream = await connectUpstream(target, limits, channel, request.signal);
        note("ok");
        picker.report(channel.id, "ok", clock.monotonicMs());
        return { channel, upstreamModel, upstream, turn: held };
      } catch (thrown) {
        await held?.hold.release();
        const error = thrown instanceof Failure && thrown.retryable ? attemptFailure(thrown) : thrown;
        if (!(error instanceof AttemptFailure)) throw error;
        const { failure } = error;
        note(failure.code, failure.upstreamStatus);
        failed.add(channel.id);
        last = failure;
        if (request.signal.aborted) break;
        picker.report(channel.id, error.verdict, clock.monotonicMs(), failure.retryAfterSeconds);
        if (error.refusal) void disableIfFatal(deps, channel, error.refusal);
        if (!mayRetry(error, channel.type)) break;
      }
    }
    const left = deps.routing.tiers(caller.group, model).flatMap(({ entries }) => entries);
    throw last ?? goneReason(left.map(({ channel }) => channel)) ?? unserved(asked);
  }

  /** The key alone, to ask for it again while the session runs: no memory is held for the handshake's other headers. */
  function keyRequest(request: Request): Request {
    const { key, channel } = presentedKey(request);
    const suffix = channel === undefined ? "" : `-${channel}`;
    return new Request("http://localhost/v1/realtime", {
      headers: { authorization: `Bearer ${key}${suffix}` },
    });
  }

  async function open(asked: Asked): Promise<boolean> {
    const { request, requestId, caller, model } = asked;
    const { channel, upstreamModel, upstream, turn: first } = await connect(asked);
    const { key } = presentedKey(request);
    const credentials = keyRequest(request);
    const session = new RealtimeSession({
      deps,
      counter,
      requestId,
      language: languageOf(request),
      caller,
      channel,
      model,
      upstreamModel,
      attempts: asked.attempts,
      isTranscription: new URL(request.url).searchParams.get("intent") === "transcription",
      maxFrameBytes: options.get("relay.max_body_mb") * BYTES_PER_MIB,
      upstream,
      turn: first,
      openTurn: (id, context, limit) => openTurn(caller, model, upstreamModel, id, context, limit),
      refusal: () => refusalOf(caller),
      charged: (usage) => usual.learn(model, completionTokens(usage)),
      isUnchanged() {
        const { token } = caller;
        return (
          token !== undefined &&
          deps.accounts.tokenByKey(key) === token &&
          token.status === TokenStatus.enabled &&
          (token.expiredTime === -1 || token.expiredTime * 1000 >= clock.nowMs()) &&
          token.user.status === UserStatus.enabled &&
          !token.user.deleted &&
          (token.modelLimits === undefined || token.modelLimits.has(model))
        );
      },
      async readmit() {
        try {
          checkModel(await admitCaller(deps, credentials, ACCEPTED), model);
        } catch (error) {
          // What is held back for the running turn may be all that the key had; the next turn decides.
          if (!(error instanceof Failure && error.code === "token_exhausted")) throw error;
        }
      },
      ended: remove,
      congested: congest,
    });
    const protocol = chosenProtocol(asked.offered);
    const headers: Record<string, string> = { [REQUEST_ID_HEADER]: requestId };
    if (protocol !== undefined) headers["sec-websocket-protocol"] = protocol;
    add(session);
    if (upgradeSocket(visitors.server, request, session, headers)) return true;
    remove(session);
    upstream.socket.terminate();
    await first.hold.release();
    return false;
  }

  return {
    async serve(request) {
      const refused = refuseShortHost({ request });
      if (refused) return refused;
      const requestId = newRequestId(clock.nowMs());
      let work: Work | undefined;
      try {
        const caller = await admitCaller(deps, request, visitors);
        checkAddress(caller, request, visitors);
        // Until the socket is open or refused: its upstream may take its time.
        work = visitors.working(request);
        const rule = rateRule(options, caller.group);
        if (rule) checkRate(limiter, rule, caller.user.id, clock.monotonicMs());
        if (!wantsSocket(request))
          throw new Failure("client", "websocket_required", { status: 426, type: "invalid_request_error" });
        const model = modelOf(request);
        checkModel(caller, model);
        const pinned = caller.pinned === undefined ? undefined : pinnedChannel(deps, caller.pinned);
        if (!pinned && deps.routing.tiers(caller.group, model).length === 0)
          throw new Failure("no-channel", "no_channel", { params: { group: caller.group, model } });
        const offered = offeredProtocols(request);
        const asked: Asked = { request, requestId, caller, model, pinned, offered, attempts: [] };
        if (!(await open(asked))) throw new Failure("client", "websocket_required", { status: 400 });
        if (rule) limiter.succeeded(caller.user.id, rule, clock.monotonicMs());
        return undefined;
      } catch (error) {
        const failure = asFailure(error);
        if (failure.kind === "internal" && failure.cause !== undefined)
          deps.logger.error("realtime call failed", {
            requestId,
            code: failure.code,
            error:
              failure.cause instanceof Error
                ? (failure.cause.stack ?? failure.cause.message)
                : "thrown value",
          });
        const view = { dialect: "openai-chat", language: languageOf(request), requestId } as const;
        const response = renderFailure(failure, view, corsHeaders(request));
        if (failure.status === 426) response.headers.set("upgrade", "websocket");
        return response;
      } finally {
        visitors.done(work);
      }
    },
    count: () => sessions.size,
  };
}
