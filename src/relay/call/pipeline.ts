// The one way from a client's request to an answer, for every inference route. Read it from SERVE downwards: each stage is in
// the file that it is imported from. Refuses side doors: nothing else reaches an upstream for a client.
import type { Channel } from "../../core/channels/rows.ts";
import type { WarmProbe } from "../../core/channels/warm-probes.ts";
import type { DryRun, DryRunRequest } from "../../core/channels/watch.ts";
import type { Deps, TokenAccount, UserAccount } from "../../core/deps.ts";
import { createRateLimiter } from "../../core/kit/rate-limit.ts";
import type { Visitors } from "../../http/visitors.ts";
import type { TestCall } from "../endpoints/test-endpoints.ts";
import { createTokenCounter } from "../meter/token-count.ts";
import { createBodyBudget } from "../wire/body-budget.ts";
import { inTime } from "../wire/early-response.ts";
import type { MediaFetch } from "../wire/media.ts";
import { failureFrame } from "../wire/render-failure.ts";
import { admit, admitAlone } from "./admission.ts";
import type { Answer } from "./answer.ts";
import { CallFailed, runAttempts } from "./attempts.ts";
import type { Call } from "./call.ts";
import { testChannel } from "./channel-test.ts";
import type { ChannelTestResult } from "./channel-test.ts";
import { countForClient } from "./count.ts";
import type { CountingBodies } from "./count.ts";
import { dryRun } from "./dry-run.ts";
import { simulateRoute } from "./simulate.ts";
import type { RouteQuestion, RouteReport } from "../../core/channels/route-report.ts";
import { createErrorRows } from "./error-rows.ts";
import { explain, runExchange, viewOf } from "./exchange.ts";
import type { Exchange, RelayRequest } from "./exchange.ts";
import { createUsualOutput } from "./usual-output.ts";
import { createInFlightCalls } from "./in-flight.ts";
import { createLockstep, line, lineOnArrival } from "./lockstep.ts";
import { pingMs, PINGS } from "./ping.ts";
import { maxBodyBytes, prepare, receive, receiveInSession } from "./prepare.ts";
import type { SessionCaller } from "./prepare.ts";
import { quoteForClient, quoteInSession } from "./quote.ts";
import type { SurfaceOf } from "./quote.ts";
import { respond, streamHeaders } from "./respond.ts";
import { createResponseAffinity } from "./response-affinity.ts";
import type { CallServices, RelayParts } from "./services.ts";
import { settle, settleUnanswered } from "./settle-answer.ts";
import { tellAnswered } from "./telling.ts";
import { warmProbe } from "./warm-probe.ts";
import { createWordScreens } from "./word-screens.ts";

const SERVE = lineOnArrival(admit).to(receive).to(prepare).to(answer);
const SERVE_RECEIVED = line(prepare).to(answer);
const ANSWER = line(attempt).to(settle).to(respond);

/** With keep-alive on, a stream's status line does not wait for the upstream longer than one interval. */
function answer(services: CallServices, call: Call): Promise<Response> {
  const answered = ANSWER.run(services, call);
  const { endpoint } = call;
  // What may be sound or plain words cannot stand behind a ping.
  if (!call.wantsStream || endpoint.answers !== undefined) return answered;
  const everyMs = pingMs(services.deps.options, endpoint.dialect);
  const ping = PINGS[endpoint.dialect].before;
  if (everyMs === 0 || !ping) return answered;
  return inTime({
    answered,
    everyMs,
    ping,
    begin: (body) => beginEarly(services, call, answered, body),
    failureFrame: (error) =>
      failureFrame(explain(services, { ...call, dialect: endpoint.dialect }, error), viewOf(call)),
  });
}

/** The client gets a sign of life: from here on the stream's frames need not wait, and a failure is an event of it. */
function beginEarly(
  { visitors }: CallServices,
  call: Call,
  answered: Promise<Response>,
  body: ReadableStream<Uint8Array>,
): Response {
  // The handler ends before the answer is there.
  visitors.hold(call.request);
  const known = (): void => visitors.release(call.request);
  answered.then(known, known);
  call.isBegun = true;
  call.release?.();
  return new Response(body, { headers: streamHeaders(call) });
}

/** From the reservation on, exactly one of settle and release happens on every way out. */
async function attempt(services: CallServices, call: Call): Promise<Answer> {
  services.inFlight.add(call);
  try {
    return await runAttempts(services, call);
  } catch (error) {
    const failed = error instanceof CallFailed ? error : undefined;
    await settleUnanswered(services, call, failed);
    throw failed?.failure ?? error;
  }
}

export interface Relay {
  /** Answers a call made with an API key. Never throws. */
  serve(call: RelayRequest): Promise<Response>;
  /** Answers a call made with a console session. Never throws. */
  serveSession(call: RelayRequest, session: SessionCaller): Promise<Response>;
  /** Counts the tokens of a prompt. Never throws. */
  count(call: RelayRequest, encode: (tokens: number) => Record<string, unknown>): Promise<Response>;
  /** What a call would cost, and an id that keeps its prices; asks nobody and charges nothing. Never throws. */
  quote(call: RelayRequest, surfaceOf: SurfaceOf): Promise<Response>;
  /** The same in the playground. */
  quoteSession(call: RelayRequest, session: SessionCaller): Promise<Response>;
  /** One call to one channel, whatever its status; nobody is charged. Never throws. */
  probe(channel: Channel, test: TestCall): Promise<ChannelTestResult>;
  /** A short streamed call between calls, told to the health of key and channel; nobody is charged. Never throws. */
  warm(probe: WarmProbe): Promise<void>;
  /** What would leave for a channel if this request came now; nobody is asked. Throws what the call would be refused with. */
  dryRun(user: UserAccount, channel: Channel, request: DryRunRequest): Promise<DryRun>;
  /** Which channel and key would serve such a call now; nobody is asked. `token`: the key that it would be made with. */
  route(question: RouteQuestion, token: TokenAccount | undefined): Promise<RouteReport>;
  /** Resolves when no call is in flight, also none that is read on without its client. */
  idle(): Promise<void>;
  /** The process has to stop: ends what is in flight, settled and with its failure. Resolves when all of it is. */
  endAll(): Promise<void>;
  /** Calls in flight, also those without a client. */
  inFlight(): number;
  /** What realtime sessions and tasks share with the other calls. */
  readonly parts: RelayParts;
  close(): void;
}

/** An answer about a call that nobody made. */
function counted({ deps }: CallServices, exchange: Exchange, response: Response): Response {
  const { countsAs = exchange.endpoint.name, caller, model = "", requestId, startedMs, record } = exchange;
  tellAnswered(deps, {
    endpoint: countsAs,
    channel: undefined,
    group: caller?.group ?? "",
    model,
    requestId,
    caller,
    startedMs,
    reason: "completed",
    record,
  });
  return response;
}

/** What is read on after the client left: enough to see the usage of a stream that was nearly done. */
const COUNTED_READ_ON_MS = 2000;

export function createRelay(
  deps: Deps,
  visitors: Visitors,
  fetchMedia: MediaFetch,
  countedReadOnMs = COUNTED_READ_ON_MS,
): Relay {
  const services = createServices(deps, visitors, fetchMedia, countedReadOnMs);
  const { inFlight } = services;
  const counting: CountingBodies = { bytes: 0, asked: 0 };
  return {
    parts: services,
    serve: (call) => runExchange(services, call, SERVE.run),
    serveSession: (call, session) =>
      runExchange(services, call, async (_, exchange) =>
        SERVE_RECEIVED.run(services, await receiveInSession(services, exchange, session)),
      ),
    count: (call, encode) =>
      runExchange(services, { ...call, countsAs: "count" }, async (_, exchange) =>
        counted(
          services,
          exchange,
          await countForClient(services, counting, await admitAlone(services, exchange), encode),
        ),
      ),
    quote: (call, surfaceOf) =>
      runExchange(services, { ...call, countsAs: "quote" }, async (_, exchange) =>
        counted(
          services,
          exchange,
          await quoteForClient(services, await admitAlone(services, exchange), surfaceOf),
        ),
      ),
    quoteSession: (call, session) =>
      runExchange(services, { ...call, countsAs: "quote" }, async (_, exchange) =>
        counted(services, exchange, await quoteInSession(services, exchange, session)),
      ),
    probe: (channel, test) => testChannel(services, channel, test),
    warm: (probe) => warmProbe(services, probe),
    dryRun: (user, channel, request) => dryRun(services, user, channel, request),
    route: (question, token) => simulateRoute(services, question, token),
    idle: () => inFlight.idle(),
    endAll: () => inFlight.endAll(),
    inFlight: () => inFlight.size,
    close() {
      services.errorRows.close();
      services.counter.close();
    },
  };
}

function createServices(
  deps: Deps,
  visitors: Visitors,
  fetchMedia: MediaFetch,
  countedReadOnMs: number,
): CallServices {
  const { options, clock, reach, seal, picker } = deps;
  return {
    deps,
    visitors,
    picker,
    limiter: createRateLimiter(),
    counter: createTokenCounter(),
    usual: createUsualOutput(),
    bodies: createBodyBudget(visitors, () => maxBodyBytes(deps)),
    lockstep: createLockstep(),
    inFlight: createInFlightCalls(() => options.get("relay.abandoned_read_seconds") * 1000),
    affinity: createResponseAffinity(deps),
    errorRows: createErrorRows(deps),
    screens: createWordScreens(options),
    plans: { options, clock, reach, seal, fetchMedia, chatOnly: new WeakSet() },
    withoutUsage: new Set(),
    countedReadOnMs,
  };
}
