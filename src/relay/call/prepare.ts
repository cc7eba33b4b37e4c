// From an admitted request to a call: its body, its model, what it costs, and what is held back for it.
import type { Channel } from "../../core/channels/rows.ts";
import type { UserAccount } from "../../core/deps.ts";
import { forRequest } from "../../core/prices/prices.ts";
import type { CallPrice } from "../../core/prices/prices.ts";
import { asObject } from "../../protocol/json.ts";
import { Failure } from "../../shared/failures.ts";
import { aliasedModel } from "../endpoints/agent-models.ts";
import { assertCountable } from "../endpoints/call-units.ts";
import { checkedName, familyName, requestedModel } from "../endpoints/model-name.ts";
import { checkOnce } from "../endpoints/once.ts";
import { withoutZeroLimits } from "../endpoints/output-limit.ts";
import { requestFacts } from "../endpoints/service-tier.ts";
import { measurePrompt } from "../meter/meter.ts";
import { readBody, readForm } from "../wire/read-body.ts";
import type { RelayBody } from "../wire/read-body.ts";
import { checkModel, pinnedChannel, unserved } from "./admission.ts";
import type { Admitted, Caller } from "./admission.ts";
import { callerFor, callerIn, dearestIn, pricesIn } from "./auto-group.ts";
import type { Call } from "./call.ts";
import { capOf } from "./cap.ts";
import type { Exchange } from "./exchange.ts";
import { holdCall } from "./hold.ts";
import type { Held, HoldRequest } from "./hold.ts";
import { fitInput } from "./input-limit.ts";
import { quotedPrices } from "./quote-id.ts";
import type { ResponseHome } from "./response-affinity.ts";
import type { CallServices } from "./services.ts";
import { callerAfter, isSlow } from "./slow-body.ts";

/** A request whose body is there. */
export interface Received extends Admitted {
  body: RelayBody;
}

/** The playground's caller is known by its session; it decides its group from the body. */
export interface SessionCaller {
  user: UserAccount;
  /** The body as its upstream may have it: without what only the console means by it. */
  bodyOf: (body: RelayBody) => RelayBody;
  callerOf: (body: RelayBody, user: UserAccount) => Caller;
  /** The user as of now; throws what a call of the session that began now would be refused with. */
  again: () => Promise<UserAccount>;
}

const BYTES_PER_MIB = 1024 * 1024;

/** The largest body that the operator allows. */
export function maxBodyBytes({ options }: CallServices["deps"]): number {
  return options.get("relay.max_body_mb") * BYTES_PER_MIB;
}

/** The body, read once. */
export async function receive(
  { deps, bodies, visitors }: CallServices,
  { exchange, caller: admitted }: Admitted,
): Promise<Received> {
  const { request, endpoint } = exchange;
  const maxBytes = maxBodyBytes(deps);
  const userId = admitted.user.id;
  const beganMs = deps.clock.monotonicMs();
  const body = await (endpoint.form
    ? readForm(request, maxBytes, endpoint.refusalCode, bodies, userId)
    : readBody(request, maxBytes, bodies, userId));
  exchange.work = visitors.working(request);
  const current = callerAfter(deps, visitors, { request, caller: admitted, beganMs });
  const caller = current instanceof Promise ? await current : current;
  exchange.caller = caller;
  return {
    exchange,
    caller,
    body: withoutZeroLimits(endpoint.dialect, endpoint.translate?.(body) ?? body),
  };
}

/** As `receive`, in the playground. */
export async function receiveInSession(
  { deps, bodies, visitors }: CallServices,
  exchange: Exchange,
  session: SessionCaller,
): Promise<Received> {
  const { user } = session;
  exchange.omitsId = true;
  // Until the body says which group.
  exchange.caller = {
    user,
    token: undefined,
    tokenName: "playground",
    group: user.group,
    auto: undefined,
    pinned: undefined,
  };
  const beganMs = deps.clock.monotonicMs();
  const sent = await readBody(exchange.request, maxBodyBytes(deps), bodies, user.id);
  exchange.work = visitors.working(exchange.request);
  const current = isSlow(deps, beganMs) ? await session.again() : user;
  const body = withoutZeroLimits(exchange.endpoint.dialect, session.bodyOf(sent));
  const caller = session.callerOf(body, current);
  exchange.caller = caller;
  exchange.omitsId = false;
  return { exchange, caller, body };
}

/** What the hold of a call is worked out from, and the account that alone can serve it. */
export interface CallRequest extends HoldRequest {
  pinnedKey: number | undefined;
}

/** Checks what only reads, works out the price as the last of it, and holds back what the call may cost. */
export function prepare(services: CallServices, received: Received): Call | Promise<Call> {
  const request = requestOf(services, received);
  return request instanceof Promise
    ? request.then((known) => hold(services, received, known))
    : hold(services, received, request);
}

/** What the hold is worked out from: everything that is checked before, and the price. */
export function requestOf(services: CallServices, received: Received): CallRequest | Promise<CallRequest> {
  const { exchange, body } = received;
  const { requestId, endpoint, pathStream } = exchange;
  const asked = modelOf(received);
  const model =
    endpoint.name === "messages" ? aliasedModel(services.deps.routing, received.caller, asked) : asked;
  exchange.model = model;
  checkModel(received.caller, model);
  const pinned = channelFor(services, received.caller, model);
  const caller = callerFor(services.deps, received.caller, model, pinned);
  exchange.caller = caller;
  endpoint.check(body.json, body.form);
  const screen = services.screens.prompt(endpoint);
  checkOnce(endpoint, body, screen !== undefined);
  const measured = measurePrompt(endpoint, body.json, screen);
  const quoted = quotedPrices(services.deps, exchange.request.headers, caller, model);
  const priceIn = (group: string) =>
    forRequest(quoted?.get(group) ?? priceFor(services, caller.user, group, model), () =>
      requestFacts(endpoint.dialect, body.json),
    );
  const groupPrices = pricesIn(caller, priceIn);
  const price = (groupPrices && dearestIn(groupPrices)) ?? priceIn(caller.group);
  assertCountable(endpoint, price, model);
  const wantsStream =
    endpoint.canStream && (pathStream ? pathStream !== "none" : body.json["stream"] === true);
  const request: CallRequest = {
    requestId,
    caller,
    endpoint,
    body,
    model,
    price,
    groupPrices,
    prompt: measured,
    wantsStream,
    pinned,
    pinnedKey: undefined,
    earlierTokens: 0,
    cap: capOf(exchange.request.headers, caller, price.quotaPerUnit),
    rate: exchange.rate,
  };
  const home = endpoint.name === "responses" ? services.affinity.home(request) : undefined;
  if (home === undefined) return request;
  return home instanceof Promise ? home.then((found) => homedAt(request, found)) : homedAt(request, home);
}

function homedAt(request: CallRequest, { channel, keyIndex, tokens }: ResponseHome): CallRequest {
  request.pinned = channel;
  const { groupPrices } = request;
  // An automatic key is served in the first group of the account that holds the response.
  const first = groupPrices?.find(({ group }) => channel.groups.includes(group)) ?? groupPrices?.[0];
  if (first) {
    request.caller = callerIn(request.caller, first.group);
    request.price = first.price;
    request.groupPrices = [first];
  }
  request.pinnedKey = keyIndex;
  request.earlierTokens = tokens;
  return request;
}

function hold(services: CallServices, received: Received, request: CallRequest): Call | Promise<Call> {
  const { endpoint, body, model } = request;
  // Whatever may fail comes before the hold: from there on the call gives back what it holds.
  const sent = endpoint.rewrite ? bodyOf(endpoint.rewrite(body.json, model)) : body;
  const fitting = fitInput(services, request);
  const held = fitting ? fitting.then(() => holdCall(services, request)) : holdCall(services, request);
  return held instanceof Promise
    ? held.then((known) => callOf(received, request, sent, known))
    : callOf(received, request, sent, held);
}

function callOf(
  received: Received,
  request: CallRequest,
  sent: RelayBody,
  { reservation, hold, prompt, groups }: Held,
): Call {
  const { exchange, body } = received;
  const { endpoint } = exchange;
  const { caller } = request;
  const terms = groups?.find(({ group }) => group === caller.group);
  return {
    request: exchange.request,
    requestId: exchange.requestId,
    options: exchange.options,
    endpoint,
    caller,
    body,
    sent,
    model: request.model,
    prompt,
    groups,
    group: caller.group,
    price: terms?.price ?? request.price,
    asked: request,
    unruled: undefined,
    billed: undefined,
    lastFailure: undefined,
    reservation,
    hold: terms?.hold ?? hold,
    wantsStream: request.wantsStream,
    wantsArray: exchange.pathStream === "array",
    wantsUsage: wantsUsage(received),
    startedMs: exchange.startedMs,
    record: exchange.record,
    charged: undefined,
    attempts: [],
    pinned: request.pinned,
    pinnedKey: request.pinnedKey,
    affinity: undefined,
    isTest: false,
    hangUp: undefined,
    isBegun: false,
    release: undefined,
    index: -1,
  };
}

/** A body of the gateway's own. */
export function bodyOf(json: Record<string, unknown>): RelayBody {
  const text = JSON.stringify(json);
  return { json, text, bytes: new TextEncoder().encode(text) };
}

/** By the address alone where the dialect is Gemini's. */
function modelOf({ exchange, body }: Received): string {
  const { endpoint, pathModel } = exchange;
  const { refusalCode } = endpoint;
  return familyName(
    endpoint.dialect === "gemini"
      ? checkedName(pathModel, refusalCode)
      : requestedModel(body, refusalCode, pathModel ?? endpoint.defaultModel),
  );
}

/** The channel that the key names; where it names none, some channel must serve the model. */
function channelFor({ deps }: CallServices, caller: Caller, model: string): Channel | undefined {
  const { pinned, group, auto } = caller;
  if (pinned !== undefined) return pinnedChannel(deps, pinned);
  // Of several groups `callerFor` finds those that do.
  if (auto || deps.routing.tiers(group, model).length > 0) return undefined;
  throw unserved(deps, caller, model);
}

/** A model without a price is refused where calls are sold, unless the caller agreed to the stated default. */
function priceFor({ deps }: CallServices, user: UserAccount, group: string, model: string): CallPrice {
  const price = deps.prices.callPrice(model, group, user.group);
  if (price) return price;
  const isAccepted =
    deps.options.get("SelfUseModeEnabled") || user.setting.accept_unset_model_ratio_model === true;
  if (!isAccepted) {
    deps.inbox.raise({ kind: "price", subject: model });
    throw new Failure("client", "model_not_priced", { params: { model } });
  }
  return deps.prices.missingCallPrice(model, group, user.group);
}

/** Only clients of chat completions and its elder choose. */
function wantsUsage({ exchange, body }: Received): boolean {
  if (exchange.endpoint.dialect !== "openai-chat") return true;
  return asObject(body.json["stream_options"])?.["include_usage"] === true;
}
