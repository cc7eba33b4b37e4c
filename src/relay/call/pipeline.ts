// The one way from a client's request to an answer, for every inference route: checks, price, reserve, attempts, settle.
// Refuses side doors: there is no other function that reaches an upstream for a client.
import type { Deps } from "../../core/deps.ts";
import type { Channel } from "../../core/channels/rows.ts";
import { rootAccount } from "../../core/users/notify.ts";
import { createPicker } from "../../core/channels/picker.ts";
import type { CallPrice } from "../../core/prices/prices.ts";
import type { EndReason } from "../../core/ledger/settle-policy.ts";
import { refuseShortHost } from "../../http/host.ts";
import { languageOf } from "../../http/messages.ts";
import { newRequestId, REQUEST_ID_HEADER } from "../../http/request-id.ts";
import type { Visitors, Work } from "../../http/visitors.ts";
import { asObject } from "../../protocol/json.ts";
import { LogType } from "../../shared/enums.ts";
import { Failure } from "../../shared/failures.ts";
import { completionTokens, emptyUsage } from "../../shared/usage.ts";
import { checkAddress, checkModel, checkRate, admitCaller, pinnedChannel, rateRule } from "./admission.ts";
import type { Caller } from "./admission.ts";
import type { Answer } from "./answer.ts";
import { CallFailed, runAttempts } from "./attempts.ts";
import type { AttemptsContext } from "./open.ts";
import { createHoldCall, createUsualOutput, NO_HOLD } from "./hold.ts";
import type { Call } from "./call.ts";
import { corsHeaders } from "../wire/cors.ts";
import type { Endpoint } from "../endpoints/endpoint.ts";
import { createErrorRows } from "./error-rows.ts";
import { createFinish, learnLength, tokensOf } from "./finish.ts";
import { FREE } from "./reserve.ts";
import { createLockstep, STAGE } from "./lockstep.ts";
import type { MediaFetch } from "../wire/media.ts";
import { createBodyBudget } from "../wire/body-budget.ts";
import { answerTexts, canonicalTexts, countBusy, countPrompt, measurePrompt } from "../meter/meter.ts";
import { checkedName, familyName, requestedModel } from "../endpoints/model-name.ts";
import { createOpenCalls } from "./in-flight.ts";
import { pingMs } from "./ping.ts";
import type { TestCall } from "../endpoints/test-endpoints.ts";
import { TEST_ENDPOINTS } from "../endpoints/test-endpoints.ts";
import { createRateLimiter } from "../../core/kit/rate-limit.ts";
import type { RateRule } from "../../core/kit/rate-limit.ts";
import { parseBody, readBody, readBytes, readForm } from "../wire/read-body.ts";
import type { RelayBody } from "../wire/read-body.ts";
import type { RelayParts } from "./services.ts";
import { asFailure, encodeFailure, failureFrame, renderFailure } from "../wire/render-failure.ts";
import type { FailureView } from "../wire/render-failure.ts";
import { answerHeaders, streamHeaders, wholeResponse } from "./respond.ts";
import { createResponseHomes } from "./response-affinity.ts";
import { createScreens } from "./word-screens.ts";
import { settleCall } from "./settle.ts";
import { coverWhole, limitBody, limitElement } from "./stream-hold.ts";
import { awaitedStream } from "../wire/early-response.ts";
import { createTokenCounter, estimateTokens } from "../meter/token-count.ts";

export interface RelayRequest {
  request: Request;
  endpoint: Endpoint;
  /** Model that the address names, where it does. */
  pathModel?: string;
  /** What the address says about streaming (Gemini): in events, as a JSON array, or not at all. */
  pathStream?: "events" | "array" | "none";
}

/** The playground's caller is known by its session; it decides its group from the body. */
export interface SessionCaller {
  userId: number;
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
  /** Resolves when no call is open, also none that is read on without its client. */
  idle(): Promise<void>;
  /** The process has to stop: ends what is open, settled and told. Resolves when all of it is. */
  endAll(): Promise<void>;
  /** What realtime sessions share with the other calls. */
  readonly parts: RelayParts;
  close(): void;
}

/** What is read on after the client left: enough to see the usage of a stream that was nearly done. */
const DRAIN_MS = 2000;
const DRAIN_BYTES = 512 * 1024;
/** Failures of attempts that were asked and not waited for, as the table of charges knows them. */
const UNANSWERED: Readonly<Record<string, EndReason>> = {
  client_gone: "abandoned",
  server_draining: "draining",
};
const BYTES_PER_MIB = 1024 * 1024;
const MAX_COUNTING_BYTES = 32 * BYTES_PER_MIB;

/** Token name and sentence of a channel test in the log. */
const TEST_NAME = "模型测试";
const NOBODY = { group: "", model: "" };

function rewritten(json: Record<string, unknown>): RelayBody {
  const text = JSON.stringify(json);
  return { json, text, bytes: new TextEncoder().encode(text) };
}

export function createRelay(
  deps: Deps,
  visitors: Visitors,
  fetchMedia: MediaFetch,
  drainMs = DRAIN_MS,
): Relay {
  const { options, clock, logger } = deps;
  const picker = createPicker(deps.routing);
  const limiter = createRateLimiter();
  const counter = createTokenCounter();
  const lockstep = createLockstep();
  const open = createOpenCalls(() => options.get("relay.abandoned_read_seconds") * 1000);
  const homes = createResponseHomes(deps.routing, picker);
  const silent = new Set<number>();
  const usual = createUsualOutput();
  const holdCall = createHoldCall(deps, usual, counter);
  const screens = createScreens(options);

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
    errorRows: createErrorRows(deps),
    homes,
    silent,
    drain: { ms: drainMs, bytes: DRAIN_BYTES },
    open,
    plans: { options, clock, reach: deps.reach, seal: deps.seal, fetchMedia },
    failureFrame: (call, failure) => failureFrame(failure, view(call)),
    failureBody: (call, failure) => encodeFailure(failure, view(call)).body,
    screenOutput: (call) => screens.output(call),
    limitBody: (call, usage) => limitElement(call, usage, clock.nowMs()),
    ...createFinish({ clock, counter, open, silent, homes, usual, visitors }),
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
    const measured = measurePrompt(endpoint, body.json, screens.prompt(endpoint));
    const price = priceFor(caller, model);
    const wantsStream =
      endpoint.canStream && (pathStream ? pathStream !== "none" : body.json["stream"] === true);
    const earlierTokens = context.homes.tokensBefore(caller, body);
    const held = holdCall({
      requestId,
      caller,
      endpoint,
      body,
      model,
      price,
      prompt: measured,
      wantsStream,
      pinned,
      earlierTokens,
    });
    const { reservation, hold, prompt } = held instanceof Promise ? await held : held;
    return {
      request,
      requestId,
      endpoint,
      caller,
      body,
      sent: endpoint.rewrite ? rewritten(endpoint.rewrite(body.json, model)) : body,
      model,
      prompt,
      price,
      reservation,
      hold,
      wantsStream,
      wantsArray: pathStream === "array",
      // Only chat completions and its elder let the client choose.
      wantsUsage:
        endpoint.dialect !== "openai-chat" ||
        asObject(body.json["stream_options"])?.["include_usage"] === true,
      startedMs,
      attempts: [],
      pinned,
      hangUp: undefined,
      index: -1,
    };
  }

  /** A model without a price is refused where calls are sold, unless the caller agreed to the stated default. */
  function priceFor(caller: Caller, model: string): CallPrice {
    const price = deps.prices.callPrice(model, caller.group);
    if (price) return price;
    const isAccepted =
      options.get("SelfUseModeEnabled") || caller.user.setting.accept_unset_model_ratio_model === true;
    if (!isAccepted) throw new Failure("internal", "model_price_error", { params: { model } });
    return deps.prices.missingCallPrice(model, caller.group);
  }

  /** From the reservation on, exactly one of settle and release happens on every way out. */
  async function answerOf(call: Call): Promise<Answer> {
    try {
      return await runAttempts(context, call);
    } catch (error) {
      if (error instanceof CallFailed) {
        const { failure, plan } = error;
        const reason = plan && UNANSWERED[failure.code];
        if (reason) {
          await settleCall(open, counter, call, plan, {
            reason,
            usage: null,
            sawText: false,
            outputTokens: () => Promise.resolve(0),
            isStream: call.wantsStream,
            firstByteMs: undefined,
          });
        } else await giveBack(call);
        throw failure;
      }
      await giveBack(call);
      throw error;
    }
  }

  async function giveBack(call: Call): Promise<void> {
    open.remove(call);
    await call.reservation.release();
  }

  async function respond(call: Call, answer: Answer): Promise<Response> {
    if (answer.kind === "stream") {
      const headers = streamHeaders(call, answer.response);
      headers["content-type"] = answer.contentType;
      visitors.feed(call.request, answer.relay);
      return new Response(answer.relay.body(call.request.signal), { headers });
    }
    if (answer.kind === "bytes") {
      visitors.feed(call.request, answer.relay);
      return new Response(answer.relay.body(call.request.signal), {
        headers: answerHeaders(call, answer.response),
      });
    }
    const { meter, plan, json, canonical } = answer;
    const refused = screens.whole(call, answer);
    const outputTokens = async (): Promise<number> => {
      const texts = canonical ? canonicalTexts(canonical) : answerTexts(json);
      const counted = await counter.count(texts, plan.upstreamModel);
      return counted ?? texts.reduce((sum, text) => sum + estimateTokens(text), 0);
    };
    const { usage: told } = meter;
    const isUnpaid =
      call.wantsStream &&
      !(await coverWhole(call, () => (told ? Promise.resolve(completionTokens(told)) : outputTokens())));
    const usage = await settleCall(open, counter, call, plan, {
      reason: isUnpaid ? "balance" : call.request.signal.aborted ? "client-gone" : "completed",
      usage: isUnpaid && told ? { ...told, output: emptyUsage().output } : told,
      usageFinal: !isUnpaid,
      sawText:
        meter.textChars > 0 || call.endpoint.name === "embeddings" || call.endpoint.ownUsage !== undefined,
      outputTokens: isUnpaid ? () => Promise.resolve(0) : outputTokens,
      isStream: false,
      firstByteMs: undefined,
      json,
    });
    if (refused) throw refused;
    if (isUnpaid) {
      const headers = streamHeaders(call, answer.response);
      if (call.wantsArray) headers["content-type"] = "application/json";
      return new Response(limitBody(call, usage ?? emptyUsage(), clock.nowMs()), { headers });
    }
    if (usage) learnLength(usual, call, usage);
    if (call.endpoint.name === "responses")
      context.homes.keep(call, plan, asObject(json)?.["id"], tokensOf(call, meter.usage));
    return wholeResponse(call, answer, usage);
  }

  /** With keep-alive on, a stream's status line does not wait for the upstream longer than one interval. */
  async function run(call: Call): Promise<Response> {
    open.add(call);
    const interval = call.wantsStream ? pingMs(options) : 0;
    const answered = answerOf(call).then((answer) => respond(call, answer));
    if (interval === 0) return answered;
    // The handler ends before the answer is there.
    visitors.hold(call.request);
    const known = () => visitors.release(call.request);
    answered.then(known, known);
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

  /** Bodies of calls that only count, from their last byte to their answer. */
  let countingBytes = 0;

  const maxBytes = (): number => options.get("relay.max_body_mb") * BYTES_PER_MIB;
  const bodies = createBodyBudget(visitors, maxBytes);

  return {
    parts: { picker, errorRows: context.errorRows, limiter, counter, usual, visitors, bodies },
    async serve(relayed) {
      const refused = refuseShortHost(relayed);
      if (refused) return refused;
      const startedMs = performance.now();
      lockstep.enter();
      const requestId = newRequestId(clock.nowMs());
      let rule: RateRule | undefined;
      let work: Work | undefined;
      try {
        await lockstep.turn();
        const { request } = relayed;
        const caller = await admitCaller(deps, request, visitors);
        checkAddress(caller, request, visitors);
        rule = rateRule(options, caller.group);
        if (rule) checkRate(limiter, rule, caller.user.id, clock.monotonicMs());
        const { endpoint } = relayed;
        const read = await (endpoint.form
          ? readForm(request, maxBytes(), endpoint.refusalCode, bodies, caller.user.id)
          : readBody(request, maxBytes(), bodies, caller.user.id));
        work = visitors.working(request);
        const body = endpoint.translate?.(read) ?? read;
        await STAGE;
        const call = await prepare(relayed, caller, body, requestId, startedMs);
        const response = await run(call);
        if (rule) limiter.succeeded(caller.user.id, rule, clock.monotonicMs());
        return response;
      } catch (error) {
        return refusal(relayed, requestId, error);
      } finally {
        bodies.done(relayed.request);
        visitors.done(work);
        lockstep.leave();
      }
    },
    async count(relayed, encode) {
      const refused = refuseShortHost(relayed);
      if (refused) return refused;
      const { request, endpoint, pathModel } = relayed;
      const requestId = newRequestId(clock.nowMs());
      let taken = 0;
      let work: Work | undefined;
      try {
        const caller = await admitCaller(deps, request, visitors);
        checkAddress(caller, request, visitors);
        const rule = rateRule(options, caller.group);
        if (rule) checkRate(limiter, rule, caller.user.id, clock.monotonicMs());
        const bytes = await readBytes(request, maxBytes(), bodies, caller.user.id);
        work = visitors.working(request);
        // Counting is free: nothing but this keeps a wave of large bodies from being parsed at once.
        if (countingBytes > 0 && countingBytes + bytes.length > MAX_COUNTING_BYTES) throw countBusy();
        countingBytes += bytes.length;
        taken = bytes.length;
        const body = parseBody(bytes);
        const model = familyName(requestedModel(body, endpoint.refusalCode, pathModel));
        checkModel(caller, model);
        // Google's clients may wrap the whole request they are about to make.
        const json = asObject(body.json["generateContentRequest"]) ?? body.json;
        endpoint.check(json);
        const tokens = await countPrompt(counter, endpoint, json, model, request.signal);
        if (rule) limiter.succeeded(caller.user.id, rule, clock.monotonicMs());
        const headers = {
          ...corsHeaders(request),
          "cache-control": "no-store",
          [REQUEST_ID_HEADER]: requestId,
        };
        return Response.json(encode(tokens), { headers });
      } catch (error) {
        return refusal(relayed, requestId, error);
      } finally {
        countingBytes -= taken;
        bodies.done(request);
        visitors.done(work);
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
          prompt: { tokens: 0, mostTokens: 0, fixedTokens: 0, mediaTokens: 0, cacheWrite: "none" },
          price: deps.prices.missingCallPrice(model, root.group),
          reservation: FREE,
          hold: NO_HOLD,
          wantsStream: false,
          wantsArray: false,
          wantsUsage: false,
          startedMs: performance.now(),
          attempts: [],
          pinned: channel,
          isTest: true,
          hangUp: undefined,
          index: -1,
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
      let work: Work | undefined;
      try {
        const body = await readBody(relayed.request, maxBytes(), bodies, session.userId);
        work = visitors.working(relayed.request);
        const caller = session.callerOf(body);
        isOwnRefusal = false;
        const call = await prepare(relayed, caller, body, requestId, startedMs);
        return await run(call);
      } catch (error) {
        return refusal(relayed, requestId, error, isOwnRefusal);
      } finally {
        bodies.done(relayed.request);
        visitors.done(work);
      }
    },
    idle: () => open.idle(),
    endAll: () => open.endAll(),
    close() {
      context.errorRows.close();
      counter.close();
    },
  };
}
