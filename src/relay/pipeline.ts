// The one way from a client's request to an answer, for every inference route: checks, price, reserve, attempts, settle.
// Refuses side doors: there is no other function that reaches an upstream for a client.
import type { Deps, Reservation } from "../core/deps.ts";
import type { Channel } from "../core/channel-rows.ts";
import { rootAccount } from "../core/notify.ts";
import { createPicker } from "../core/picker.ts";
import { estimateReserve, missingPrice } from "../core/prices.ts";
import type { ModelPricing } from "../core/prices.ts";
import { createWordFilter } from "../core/sensitive.ts";
import type { WordFilter } from "../core/sensitive.ts";
import { refuseShortHost } from "../http/host.ts";
import { languageOf } from "../http/messages.ts";
import { newRequestId, REQUEST_ID_HEADER } from "../http/request-id.ts";
import type { Range } from "../http/address.ts";
import { asObject } from "../protocol/json.ts";
import { LogType } from "../shared/enums.ts";
import { Failure } from "../shared/failures.ts";
import { checkAddress, checkModel, checkRate, admitCaller, pinnedChannel, rateRule } from "./admission.ts";
import type { Caller, PeerSource } from "./admission.ts";
import type { Answer } from "./answer.ts";
import { CallFailed, runAttempts } from "./attempts.ts";
import type { AttemptsContext } from "./attempts.ts";
import type { Call } from "./call.ts";
import { corsHeaders } from "./cors.ts";
import type { Endpoint } from "./endpoint.ts";
import { holdBack } from "./hold-back.ts";
import { createLockstep, STAGE } from "./lockstep.ts";
import type { MediaFetch } from "./media.ts";
import { answerTexts, canonicalTexts, countPrompt, measurePrompt } from "./meter.ts";
import { checkedName, familyName, requestedModel } from "./model-name.ts";
import { screenerOf } from "./output-screen.ts";
import { pingMs } from "./ping.ts";
import type { TestCall } from "./probe.ts";
import { TEST_ENDPOINTS } from "./test-endpoints.ts";
import { createRateLimiter } from "./rate-limit.ts";
import type { RateRule } from "./rate-limit.ts";
import { readBody, readForm } from "./read-body.ts";
import type { RelayBody } from "./read-body.ts";
import type { RelayParts } from "./realtime.ts";
import { asFailure, encodeFailure, failureFrame, renderFailure } from "./render-failure.ts";
import type { FailureView } from "./render-failure.ts";
import { answerHeaders, streamHeaders, wholeResponse } from "./respond.ts";
import { createResponseHomes } from "./response-homes.ts";
import { settleCall } from "./settle.ts";
import { awaitedStream } from "./stream-await.ts";
import { createTokenCounter, estimateTokens } from "./token-count.ts";
import { encodeUsage } from "../protocol/openai-chat/usage.ts";

export interface RelayRequest {
  request: Request;
  server: PeerSource | null;
  endpoint: Endpoint;
  /** Model that the address names, where it does. */
  pathModel?: string;
  /** What the address says about streaming (Gemini): in events, as a JSON array, or not at all. */
  pathStream?: "events" | "array" | "none";
}

/** The playground's caller is known by its session; it decides its group from the body. */
export interface SessionCaller {
  callerOf: (body: RelayBody) => Caller;
}

export interface Relay {
  /** Answers a call made with an API key. Never throws. */
  serve(call: RelayRequest): Promise<Response>;
  /** Counts the tokens of a prompt; free, and asked of nobody. `encode` writes the number. Never throws. */
  count(call: RelayRequest, encode: (tokens: number) => unknown): Promise<Response>;
  /** One call to one channel, whatever its status; nobody is charged. Never throws. */
  probe(channel: Channel, test: TestCall): Promise<{ failure?: Failure; isFatal: boolean }>;
  /** Answers a call made with a console session. Never throws. */
  serveSession(call: RelayRequest, session: SessionCaller): Promise<Response>;
  /** What realtime sessions share with the other calls. */
  readonly parts: RelayParts;
  close(): void;
}

/** What is read on after the client left: enough to see the usage of a stream that was nearly done. */
const DRAIN_MS = 2000;
const DRAIN_BYTES = 512 * 1024;
const BYTES_PER_MIB = 1024 * 1024;

/** Where clients know a refused prompt by another code than the usual one. */
const SCREEN_CODES: Readonly<Partial<Record<Endpoint["name"], string>>> = {
  responses: "check_request_sensitive_error",
  gemini: "check_request_sensitive_error",
  "image-generations": "invalid_image_request",
  "image-edits": "invalid_image_request",
  speech: "invalid_audio_request",
};

/** Token name and sentence of a channel test in the log. */
const TEST_NAME = "模型测试";
const NOBODY = { group: "", model: "" };
const FREE: Reservation = {
  requestId: "",
  amount: 0,
  settle: () => Promise.resolve(),
  release: () => Promise.resolve(),
};

function rewritten(json: Record<string, unknown>): RelayBody {
  const text = JSON.stringify(json);
  return { json, text, bytes: new TextEncoder().encode(text) };
}

export function createRelay(
  deps: Deps,
  trustedProxies: readonly Range[],
  fetchMedia: MediaFetch,
  drainMs = DRAIN_MS,
): Relay {
  const { options, clock, logger } = deps;
  const picker = createPicker(deps.routing);
  const limiter = createRateLimiter();
  const counter = createTokenCounter();
  const lockstep = createLockstep();
  let filter: WordFilter | undefined;
  options.onChange((key) => {
    if (key === "SensitiveWords") filter = undefined;
  });

  const view = (call: Pick<Call, "request" | "requestId" | "endpoint">): FailureView => ({
    dialect: call.endpoint.dialect,
    language: languageOf(call.request),
    requestId: call.requestId,
  });

  const context: AttemptsContext = {
    deps,
    picker,
    counter,
    lockstep,
    homes: createResponseHomes(deps.routing, picker),
    silent: new Set(),
    drain: { ms: drainMs, bytes: DRAIN_BYTES },
    plans: { options, clock, keyring: deps.keyring, reach: deps.reach, fetchMedia },
    failureFrame: (call, failure) => failureFrame(failure, view(call)),
    failureBody: (call, failure) => encodeFailure(failure, view(call)).body,
    screenOutput(call) {
      if (!options.get("CheckSensitiveEnabled") || !options.get("CheckSensitiveOnCompletionEnabled"))
        return undefined;
      return screenerOf(wordFilter(), call, options.get("StopOnSensitiveEnabled"));
    },
    finishBytes: (call, plan, { reason }) =>
      settleCall(deps, counter, call, plan, {
        reason,
        usage: null,
        sawText: true,
        outputTokens: () => Promise.resolve(0),
        isStream: false,
        firstByteMs: undefined,
      }),
    finish: (call, plan, tap, conversion, firstByteMs) => async (end) => {
      const { state } = tap.meter;
      if (end.reason === "completed") {
        if (state.usage === null) context.silent.add(plan.channel.id);
        else if (context.silent.size > 0) context.silent.delete(plan.channel.id);
        if (state.responseId !== undefined) context.homes.keep(call, plan, state.responseId);
      }
      const usage = await settleCall(deps, counter, call, plan, {
        reason: end.reason,
        usage: state.usage,
        sawText: state.sawText,
        outputTokens: () => tap.outputTokens(),
        isStream: true,
        firstByteMs: firstByteMs(),
      });
      if (end.reason === "completed" && conversion) return conversion.tail(usage);
      if (call.endpoint.dialect !== "openai-chat" || call.endpoint.isMedia === true) return "";
      if (end.reason !== "completed" || !call.wantsUsage || state.usage !== null || !usage) return "";
      // The client asked for usage and the upstream kept silent: it gets what it is charged for.
      return `data: ${JSON.stringify({
        id: `chatcmpl-${call.requestId}`,
        object: "chat.completion.chunk",
        created: Math.floor(clock.nowMs() / 1000),
        model: call.model,
        choices: [],
        usage: encodeUsage(usage),
      })}\n\n`;
    },
  };

  /** Body, model and everything that only reads; the price is the last of it. */
  async function prepare(
    { request, endpoint, pathModel, pathStream }: RelayRequest,
    caller: Caller,
    body: RelayBody,
    requestId: string,
    startedMs: number,
  ): Promise<Call> {
    const { refusalCode } = endpoint;
    // Gemini's address alone says which model is called.
    const named =
      endpoint.dialect === "gemini"
        ? checkedName(pathModel, refusalCode)
        : requestedModel(body, refusalCode, pathModel ?? endpoint.defaultModel);
    const model = familyName(named);
    checkModel(caller, model);
    const pinned = caller.pinned === undefined ? undefined : pinnedChannel(deps, caller.pinned);
    if (!pinned && deps.routing.tiers(caller.group, model).length === 0)
      throw new Failure("no-channel", "no_channel", { params: { group: caller.group, model } });
    endpoint.check(body.json, body.form);
    const prompt = measurePrompt(endpoint, body.json, screener(endpoint));
    const pricing = pricingFor(caller, model);
    const groupRatio = deps.prices.groupRatio(caller.group);
    const amount = estimateReserve(pricing, groupRatio, {
      promptTokens: prompt.tokens,
      maxTokens: endpoint.outputLimit(body.json),
      preConsumedTokens: options.get("PreConsumedQuota"),
      quotaPerUnit: options.get("QuotaPerUnit"),
      ...(endpoint.pieces ? { callCount: endpoint.pieces(body.json) } : {}),
      ...(endpoint.factor ? { callFactor: endpoint.factor(body.json, model) } : {}),
    });
    const { user, token } = caller;
    const wanted = { requestId, user, token, amount };
    // Usually at once: a promise for every call would cost each of them a turn.
    const held = endpoint.quotaCode ? holdBack(deps.ledger, endpoint, wanted) : deps.ledger.reserve(wanted);
    const reservation = held instanceof Promise ? await held : held;
    return {
      request,
      requestId,
      endpoint,
      caller,
      body,
      sent: endpoint.rewrite ? rewritten(endpoint.rewrite(body.json, model)) : body,
      model,
      prompt,
      pricing,
      groupRatio,
      reservation,
      wantsStream: endpoint.canStream && (pathStream ? pathStream !== "none" : body.json["stream"] === true),
      wantsArray: pathStream === "array",
      // Only chat completions and its elder let the client choose.
      wantsUsage:
        endpoint.dialect !== "openai-chat" ||
        asObject(body.json["stream_options"])?.["include_usage"] === true,
      startedMs,
      attempts: [],
      pinned,
    };
  }

  /** A model without a price is refused where calls are sold, unless the caller agreed to the stated default. */
  function pricingFor(caller: Caller, model: string): ModelPricing {
    const pricing = deps.prices.pricing(model);
    if (pricing) return pricing;
    const isAccepted =
      options.get("SelfUseModeEnabled") || caller.user.setting.accept_unset_model_ratio_model === true;
    if (!isAccepted) throw new Failure("internal", "model_price_error", { params: { model } });
    return missingPrice(deps.prices.tables(), model);
  }

  function screener(endpoint: Endpoint): ((text: string) => void) | undefined {
    if (!endpoint.isScreened) return undefined;
    if (!options.get("CheckSensitiveEnabled") || !options.get("CheckSensitiveOnPromptEnabled"))
      return undefined;
    const words = wordFilter();
    const wireCode = SCREEN_CODES[endpoint.name];
    return (text) => {
      if (words.find(text) !== undefined)
        throw new Failure("client", "sensitive_words_detected", wireCode === undefined ? {} : { wireCode });
    };
  }

  function wordFilter(): WordFilter {
    return (filter ??= createWordFilter(options.get("SensitiveWords")));
  }

  /** From the reservation on, exactly one of settle and release happens on every way out. */
  async function answerOf(call: Call): Promise<Answer> {
    try {
      return await runAttempts(context, call);
    } catch (error) {
      if (error instanceof CallFailed) {
        const { failure, plan } = error;
        if (failure.code === "client_gone" && plan) {
          await settleCall(deps, counter, call, plan, {
            reason: "client-gone",
            usage: null,
            sawText: false,
            outputTokens: () => Promise.resolve(0),
            isStream: call.wantsStream,
            firstByteMs: undefined,
          });
        } else await call.reservation.release();
        throw failure;
      }
      await call.reservation.release();
      throw error;
    }
  }

  async function respond(call: Call, answer: Answer): Promise<Response> {
    if (answer.kind === "stream") {
      const headers = streamHeaders(call, answer.response);
      headers["content-type"] = answer.contentType;
      return new Response(answer.relay.body(call.request.signal), { headers });
    }
    if (answer.kind === "bytes") {
      return new Response(answer.relay.body(call.request.signal), {
        headers: answerHeaders(call, answer.response),
      });
    }
    const { meter, plan, json, canonical } = answer;
    const refused = screenWhole(call, answer);
    const usage = await settleCall(deps, counter, call, plan, {
      reason: call.request.signal.aborted ? "client-gone" : "completed",
      usage: meter.usage,
      sawText:
        meter.textChars > 0 || call.endpoint.name === "embeddings" || call.endpoint.ownUsage !== undefined,
      outputTokens: async () => {
        const texts = canonical ? canonicalTexts(canonical) : answerTexts(json);
        const counted = await counter.count(texts, plan.upstreamModel);
        return counted ?? texts.reduce((sum, text) => sum + estimateTokens(text), 0);
      },
      isStream: false,
      firstByteMs: undefined,
      json,
    });
    if (refused) throw refused;
    if (call.endpoint.name === "responses") context.homes.keep(call, plan, asObject(json)?.["id"]);
    return wholeResponse(call, answer, usage);
  }

  /** A whole answer with forbidden words is withheld, and paid for: it was generated. */
  function screenWhole(call: Call, answer: Extract<Answer, { kind: "whole" }>): Failure | undefined {
    const screen = context.screenOutput(call);
    if (!screen) return undefined;
    const texts = answer.canonical ? canonicalTexts(answer.canonical) : answerTexts(answer.json);
    for (const text of texts) {
      const failure = screen(text);
      if (failure) return failure;
    }
    return undefined;
  }

  /** With keep-alive on, a stream's status line does not wait for the upstream longer than one interval. */
  async function run(call: Call): Promise<Response> {
    const interval = call.wantsStream ? pingMs(options) : 0;
    const answered = answerOf(call).then((answer) => respond(call, answer));
    if (interval === 0) return answered;
    const stream = awaitedStream(answered, interval, (error) =>
      failureFrame(explain(call.requestId, error), view(call)),
    );
    return stream.first((body) => new Response(body, { headers: streamHeaders(call) }));
  }

  function explain(requestId: string, error: unknown): Failure {
    const failure = asFailure(error);
    if (failure.kind === "internal" && failure.cause !== undefined) {
      const { cause } = failure;
      logger.error("relayed call failed", {
        requestId,
        code: failure.code,
        error: cause instanceof Error ? (cause.stack ?? cause.message) : "thrown value",
      });
    }
    return failure;
  }

  function refusal(request: RelayRequest, requestId: string, error: unknown, omitId = false): Response {
    const failure = explain(requestId, error);
    const shown = { ...view({ ...request, requestId }), omitId };
    return renderFailure(failure, shown, corsHeaders(request.request));
  }

  const maxBytes = (): number => options.get("relay.max_body_mb") * BYTES_PER_MIB;

  return {
    parts: { picker, limiter, counter, trustedProxies },
    async serve(relayed) {
      const refused = refuseShortHost(relayed);
      if (refused) return refused;
      const startedMs = performance.now();
      lockstep.enter();
      const requestId = newRequestId(clock.nowMs());
      let rule: RateRule | undefined;
      try {
        await lockstep.turn();
        const { request } = relayed;
        const caller = await admitCaller(deps, request);
        checkAddress(caller, request, relayed.server, trustedProxies);
        rule = rateRule(options, caller.group);
        if (rule) checkRate(limiter, rule, caller.user.id, clock.nowMs());
        const { endpoint } = relayed;
        const read = await (endpoint.form
          ? readForm(request, maxBytes(), endpoint.refusalCode)
          : readBody(request, maxBytes()));
        const body = endpoint.translate?.(read) ?? read;
        await STAGE;
        const call = await prepare(relayed, caller, body, requestId, startedMs);
        const response = await run(call);
        if (rule) limiter.succeeded(caller.user.id, rule, clock.nowMs());
        return response;
      } catch (error) {
        return refusal(relayed, requestId, error);
      } finally {
        lockstep.leave();
      }
    },
    async count(relayed, encode) {
      const refused = refuseShortHost(relayed);
      if (refused) return refused;
      const { request, endpoint, pathModel } = relayed;
      const requestId = newRequestId(clock.nowMs());
      try {
        const caller = await admitCaller(deps, request);
        checkAddress(caller, request, relayed.server, trustedProxies);
        const rule = rateRule(options, caller.group);
        if (rule) checkRate(limiter, rule, caller.user.id, clock.nowMs());
        const body = await readBody(request, maxBytes());
        const model = familyName(requestedModel(body, endpoint.refusalCode, pathModel));
        checkModel(caller, model);
        // Google's clients may wrap the whole request they are about to make.
        const json = asObject(body.json["generateContentRequest"]) ?? body.json;
        endpoint.check(json);
        const tokens = await countPrompt(counter, endpoint, json, model);
        if (rule) limiter.succeeded(caller.user.id, rule, clock.nowMs());
        const headers = {
          ...corsHeaders(request),
          "cache-control": "no-store",
          [REQUEST_ID_HEADER]: requestId,
        };
        return Response.json(encode(tokens), { headers });
      } catch (error) {
        return refusal(relayed, requestId, error);
      }
    },
    async probe(channel, { operation, body: json }) {
      const requestId = newRequestId(clock.nowMs());
      try {
        const root = await rootAccount(deps);
        const endpoint = TEST_ENDPOINTS[operation];
        if (!root) throw new Failure("no-channel", "endpoint_unsupported", { params: NOBODY });
        const body = rewritten(json);
        const model = String(json["model"]);
        const request = new Request("http://localhost/", { headers: { "content-type": "application/json" } });
        const caller: Caller = {
          user: root,
          token: undefined,
          tokenName: TEST_NAME,
          group: root.group,
          pinned: String(channel.id),
        };
        const answer = await runAttempts(context, {
          request,
          requestId,
          endpoint,
          caller,
          body,
          sent: body,
          model,
          prompt: { tokens: 0, fixedTokens: 0 },
          pricing: missingPrice(deps.prices.tables(), model),
          groupRatio: 0,
          reservation: FREE,
          wantsStream: false,
          wantsArray: false,
          wantsUsage: false,
          startedMs: performance.now(),
          attempts: [],
          pinned: channel,
        });
        await deps.ledger.log({
          type: LogType.system,
          userId: root.id,
          username: root.username,
          channelId: channel.id,
          modelName: model,
          tokenName: TEST_NAME,
          content: TEST_NAME,
          requestId,
        });
        if (answer.kind === "stream") await new Response(answer.relay.body(request.signal)).bytes();
        return { isFatal: false };
      } catch (error) {
        const failure = asFailure(error instanceof CallFailed ? error.failure : error);
        return { failure, isFatal: failure.kind === "upstream-auth" || failure.kind === "upstream-quota" };
      }
    },
    async serveSession(relayed, session) {
      const startedMs = performance.now();
      const requestId = newRequestId(clock.nowMs());
      let isOwnRefusal = true;
      try {
        const body = await readBody(relayed.request, maxBytes());
        const caller = session.callerOf(body);
        isOwnRefusal = false;
        const call = await prepare(relayed, caller, body, requestId, startedMs);
        return await run(call);
      } catch (error) {
        return refusal(relayed, requestId, error, isOwnRefusal);
      }
    },
    close: () => counter.close(),
  };
}
