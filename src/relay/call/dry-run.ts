// What would leave for a channel if a request came now: planned by the code that plans every attempt, and sent to nobody.
// Refuses what the call itself would be refused with before it is sent; nothing is held, charged or logged.
import type { Channel } from "../../core/channels/rows.ts";
import type { DryRun, DryRunRequest } from "../../core/channels/watch.ts";
import type { UserAccount } from "../../core/deps.ts";
import { forRequest } from "../../core/prices/prices.ts";
import { newRequestId } from "../../http/request-id.ts";
import { asObject, parseJson } from "../../protocol/json.ts";
import { Failure } from "../../shared/failures.ts";
import { checkedName, familyName } from "../endpoints/model-name.ts";
import { requestFacts } from "../endpoints/service-tier.ts";
import type { RuleAct } from "../wire/run-rules.ts";
import type { Call } from "./call.ts";
import { freeCall } from "./channel-test.ts";
import { canServe, planCall } from "./plan.ts";
import { quotedTarget } from "./quote-paths.ts";
import type { CallServices } from "./services.ts";

function invalid(field: string): Failure {
  return new Failure("client", "invalid_field", { params: { field, reason: "" }, param: field });
}

/** The request as a call, of the administrator's own. */
function dryCall(services: CallServices, user: UserAccount, channel: Channel, request: DryRunRequest): Call {
  const { deps } = services;
  const target = quotedTarget(request.path);
  if (!target)
    throw new Failure("client", "quote_path_unknown", { params: { path: request.path }, param: "path" });
  const json = asObject(parseJson(request.body));
  if (!json) throw invalid("body");
  const { endpoint, pathModel, pathStream } = target;
  const named = pathModel ?? json["model"] ?? endpoint.defaultModel;
  const model = familyName(checkedName(typeof named === "string" ? named : "", endpoint.refusalCode));
  let headers: Headers;
  try {
    headers = new Headers(request.headers);
  } catch {
    throw invalid("headers");
  }
  const group = channel.groups[0] ?? user.group;
  const price =
    deps.prices.callPrice(model, group, user.group) ?? deps.prices.missingCallPrice(model, group, user.group);
  const call = freeCall(deps, {
    user,
    channel,
    endpoint,
    model,
    body: { json, text: request.body, bytes: new TextEncoder().encode(request.body) },
    request: new Request(`http://localhost${request.path}`, { headers }),
    requestId: newRequestId(deps.clock.nowMs()),
  });
  const wantsStream = endpoint.canStream && (pathStream ? pathStream !== "none" : json["stream"] === true);
  const earlier = request.lastStatus;
  return {
    ...call,
    group,
    wantsStream,
    isTest: false,
    price: forRequest(price, () => requestFacts(endpoint.dialect, json)),
    attempts: earlier === undefined ? [] : [{ channel: 0, ms: 0, code: "upstream_down", status: earlier }],
    lastFailure:
      earlier === undefined
        ? undefined
        : new Failure("upstream-down", "upstream_down", { upstreamStatus: earlier }),
  };
}

const shown = (acts: readonly RuleAct[]): string[] => acts.map(({ mode, path }) => `${mode} ${path}`);

/** Throws the failure that the call would have before anybody is asked. */
export async function dryRun(
  services: CallServices,
  user: UserAccount,
  channel: Channel,
  request: DryRunRequest,
): Promise<DryRun> {
  const call = dryCall(services, user, channel, request);
  if (!canServe(channel, call.endpoint, call.model))
    throw new Failure("no-channel", "endpoint_unsupported", {
      params: { group: call.group, model: call.model },
    });
  const plan = await planCall(services.plans, call, { channel, key: channel.keys[0] ?? "", keyIndex: 0 });
  const { rules, upstream } = plan;
  const sent = typeof upstream.body === "string" ? upstream.body : "";
  const bytes = upstream.body instanceof Uint8Array ? new TextDecoder().decode(upstream.body) : sent;
  return {
    url: upstream.url,
    headers: upstream.headers,
    body: bytes === "" ? JSON.stringify(plan.sentJson()) : bytes,
    model: plan.upstreamModel,
    dialect: plan.dialect.name,
    is_converted: plan.isConverted,
    rules: shown([...(rules?.acts ?? []), ...(rules?.headerActs ?? [])]),
    dropped: [...plan.dropped],
    system_prompt_tokens: rules?.promptTokens ?? 0,
    is_repriced: rules?.repriced !== undefined,
  };
}
