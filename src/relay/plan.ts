// How a call is said to one channel: address, headers and body, with the client's own bytes wherever nothing changes.
// Refuses mappings and overrides that cannot be read, and endpoints that the channel's provider does not have.
import type { Channel } from "../core/channel-rows.ts";
import type { Deps } from "../core/deps.ts";
import type { Dialect } from "../protocol/dialect.ts";
import { openaiChat } from "../protocol/openai-chat/dialect.ts";
import { routeFor } from "../providers/address.ts";
import { providerOf } from "../providers/catalog.ts";
import { buildUpstreamRequest } from "../providers/request.ts";
import { Failure } from "../shared/failures.ts";
import type { UpstreamRequest } from "./attempt.ts";
import type { Call } from "./call.ts";
import type { Endpoint } from "./endpoints.ts";
import { patchTopLevel } from "./patch-json.ts";

export interface Plan {
  channel: Channel;
  /** Dialect that the upstream speaks on this path; equal to the client's, so bytes pass through. */
  dialect: Dialect;
  /** The model's name at the upstream. */
  upstreamModel: string;
  /** The upstream reports usage in its streams when asked, and it was asked. */
  reportsUsage: boolean;
  upstream: UpstreamRequest;
}

/** Client headers that mean something to upstreams; everything else stays here. */
const PASSED_HEADERS = ["openai-beta", "idempotency-key", "session_id", "conversation_id"] as const;

/** Whether the channel's provider offers the endpoint in the client's own dialect: bodies pass through. */
export function canServe(channel: Channel, endpoint: Endpoint, model: string): boolean {
  const row = providerOf(channel.type);
  if (!row || row.status === "retired" || row.status === "later" || row.auth.kind === "adapter") return false;
  if (channel.baseUrl === "" && row.baseUrl === "") return false;
  const { modelMapping } = channel;
  const mapped = typeof modelMapping === "string" ? model : (modelMapping.get(model) ?? model);
  const found = routeFor(row, endpoint.name, mapped);
  return (
    found !== undefined &&
    found.operation === endpoint.name &&
    found.route.dialect === endpoint.dialect &&
    found.route.adapter === undefined
  );
}

/** The name to send upstream; chains were followed when the channel was read. */
export function mappedModel(channel: Channel, model: string): string {
  const { modelMapping } = channel;
  if (typeof modelMapping !== "string") return modelMapping.get(model) ?? model;
  const code = modelMapping === "cycle" ? "model_mapped_cycle" : "model_mapped_json";
  throw new Failure("internal", code, { wireCode: "model_mapped_error" });
}

/** Several keys of one channel take turns. */
let turn = 0;
function keyOf(channel: Channel): string {
  const { keys } = channel;
  if (keys.length === 1) return keys[0] ?? "";
  turn = (turn + 1) % 1_000_000_007;
  return keys[turn % keys.length] ?? "";
}

/** Query of the client's address; credentials in it are left out by the catalogue. */
function queryOf(request: Request): string {
  const at = request.url.indexOf("?");
  return at === -1 ? "" : request.url.slice(at);
}

/** Where an upstream cannot be spoken to, another channel may be: such failures are retryable. */
export function planCall(deps: Pick<Deps, "options">, call: Call, channel: Channel): Plan {
  const { body, endpoint, request } = call;
  const row = providerOf(channel.type);
  if (!row) {
    const params = { group: call.caller.group, model: call.model };
    throw new Failure("no-channel", "endpoint_unsupported", { params, retryable: true });
  }
  const mapped = mappedModel(channel, call.model);
  const isRaw = deps.options.get("global.pass_through_request_enabled");
  const changes: Record<string, unknown> = {};
  if (body.json["model"] !== mapped) changes["model"] = mapped;
  // The playground's own field; an upstream would refuse it.
  if (call.caller.token === undefined && body.json["group"] !== undefined) changes["group"] = undefined;
  const isSame = Object.keys(changes).length === 0;
  const built = buildUpstreamRequest(row, channel, {
    operation: endpoint.name,
    model: mapped,
    path: endpoint.path,
    query: queryOf(request),
    isStream: call.wantsStream,
    body: isSame ? body.json : { ...body.json, ...changes },
    key: keyOf(channel),
    contentType: "application/json",
    accept: call.wantsStream ? "text/event-stream" : "application/json",
    site: deps.options.get("ServerAddress"),
  });
  const { headers } = built;
  // Usage is read along: a compressed stream would have to be unpacked for that.
  headers["accept-encoding"] = "identity";
  for (const name of PASSED_HEADERS) {
    const value = request.headers.get(name);
    if (value !== null) headers[name] = value;
  }
  for (const key of built.changed) changes[key] = built.body?.[key];
  if (channel.paramOverride === null) throw new Failure("internal", "param_override_broken");
  // Operators override last: what they say stands.
  Object.assign(changes, channel.paramOverride);
  const isUntouched = isRaw || Object.keys(changes).length === 0;
  return {
    channel,
    dialect: openaiChat,
    upstreamModel: isRaw ? call.model : built.model,
    reportsUsage: row.asksForStreamUsage && (!isRaw || call.wantsUsage),
    upstream: {
      url: built.url,
      headers,
      body: isUntouched ? body.bytes : patchTopLevel(body.text, changes, body.json),
      proxy: typeof channel.setting.proxy === "string" ? channel.setting.proxy : "",
    },
  };
}
