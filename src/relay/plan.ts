// How a call is said to one channel: address, headers and body, with the client's own bytes wherever nothing changes.
// Refuses mappings and overrides that cannot be read, and endpoints that the channel's provider does not have.
import type { Channel } from "../core/channel-rows.ts";
import type { Deps } from "../core/deps.ts";
import type { Dialect } from "../protocol/dialect.ts";
import { openaiChat } from "../protocol/openai-chat/dialect.ts";
import { Failure } from "../shared/failures.ts";
import type { UpstreamRequest } from "./attempt.ts";
import type { Call } from "./call.ts";
import type { Endpoint } from "./endpoints.ts";
import { isObject } from "./endpoints.ts";
import { patchTopLevel } from "./patch-json.ts";

export interface Plan {
  channel: Channel;
  /** Dialect that the upstream speaks on this path. */
  dialect: Dialect;
  /** The model's name at the upstream. */
  upstreamModel: string;
  /** We asked for the usage frame, whatever the client did. */
  asksUsage: boolean;
  upstream: UpstreamRequest;
}

/** Client headers that mean something to upstreams; everything else stays here. */
const PASSED_HEADERS = ["openai-beta", "idempotency-key", "session_id", "conversation_id"] as const;

export function canServe(channel: Channel, endpoint: Endpoint): boolean {
  void endpoint;
  return channel.id > 0;
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

export function planCall(deps: Pick<Deps, "options">, call: Call, channel: Channel): Plan {
  const { body, endpoint } = call;
  const upstreamModel = mappedModel(channel, call.model);
  const headers: Record<string, string> = {
    "content-type": "application/json",
    accept: call.wantsStream ? "text/event-stream" : "application/json",
    // Usage is read along: a compressed stream would have to be unpacked for that.
    "accept-encoding": "identity",
    authorization: `Bearer ${keyOf(channel)}`,
  };
  for (const name of PASSED_HEADERS) {
    const value = call.request.headers.get(name);
    if (value !== null) headers[name] = value;
  }
  const asksUsage = call.wantsStream && !call.wantsUsage;
  const changes: Record<string, unknown> = {};
  if (body.json["model"] !== upstreamModel) changes["model"] = upstreamModel;
  if (asksUsage) {
    const given = body.json["stream_options"];
    changes["stream_options"] = { ...(isObject(given) ? given : {}), include_usage: true };
  }
  if (channel.paramOverride === null) throw new Failure("internal", "param_override_broken");
  Object.assign(changes, channel.paramOverride);
  const isUntouched = Object.keys(changes).length === 0 || deps.options.get("global.pass_through_request_enabled");
  return {
    channel,
    dialect: openaiChat,
    upstreamModel,
    asksUsage,
    upstream: {
      url: channel.baseUrl + endpoint.path,
      headers,
      body: isUntouched ? body.bytes : patchTopLevel(body.text, changes, body.json),
      proxy: typeof channel.setting.proxy === "string" ? channel.setting.proxy : "",
    },
  };
}
