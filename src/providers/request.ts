// A whole upstream request for rows that need no adapter: route, body, address and headers in one go.
// Refuses to send anything, and to convert between dialects: the body must already be in the route's own.
import { Failure } from "../shared/failures.ts";
import { applyModelRules } from "./apply-rules.ts";
import type { Ruled } from "./apply-rules.ts";
import { deploymentName, requireServed, routeFor, upstreamUrl } from "./address.ts";
import type { UpstreamAddress } from "./address.ts";
import type { Operation, ProviderRow, Route, UpstreamChannel } from "./define.ts";
import { upstreamHeaders } from "./headers.ts";
import type { UpstreamHead } from "./headers.ts";
import { patchBody } from "./quirks.ts";
import type { JsonBody, Patched } from "./quirks.ts";

export interface ProviderCall
  extends Omit<UpstreamAddress, "operation">, Omit<UpstreamHead, "operation" | "organization" | "other"> {
  /** What the client asked for. */
  operation: Operation;
  /** The operation that the upstream shall perform in its place, where the row could do either. */
  via?: Operation;
  /** In the dialect of the route, its model already mapped; absent for multipart bodies. */
  body?: JsonBody;
  forceStreamUsage?: boolean;
  /** The rules of the model apply; absent: the body goes as it is, whatever the model refuses. */
  ruled?: Ruled;
}

export interface ProviderRequest {
  /** What the upstream performs; differs from the call's when the conversation was converted. */
  operation: Operation;
  route: Route;
  /** Name the upstream gets: suffixes that were instructions are cut off. */
  model: string;
  url: string;
  headers: Record<string, string>;
  body: JsonBody | undefined;
  /** Top-level keys of the body that the provider's patches changed or removed. */
  changed: string[];
  /** What the provider's patches and the rules of the model left out or changed, as a log row tells it. */
  dropped: readonly string[];
}

const NOTHING: readonly string[] = [];

/**
 * Throws provider_retired, provider_unserved, endpoint_unsupported, provider_base_url or channel_key_unusable,
 * all of them reasons to try another channel; unsupported_field where the request demands what the model cannot do.
 */
export function buildUpstreamRequest(
  row: ProviderRow,
  channel: UpstreamChannel,
  call: ProviderCall,
): ProviderRequest {
  requireServed(row);
  const found = routeFor(row, call.via ?? call.operation, call.model);
  if (!found)
    throw new Failure("no-channel", "endpoint_unsupported", {
      params: { model: call.model, group: "" },
      retryable: true,
    });
  const { operation, route } = found;
  const patchContext = { operation, forceStreamUsage: call.forceStreamUsage ?? true };
  const patched: Partial<Patched> = call.body ? patchBody(row, call.body, patchContext) : {};
  const changed = patched.changed ?? [];
  const named = patched.body?.["model"];
  const model = typeof named === "string" && changed.includes("model") ? named : call.model;
  let { body } = patched;
  let dropped = patched.dropped ?? NOTHING;
  if (body && call.ruled) {
    const ruling = applyModelRules(row, operation, model, body, call.ruled);
    if (ruling) {
      for (const key of ruling.changed) if (!changed.includes(key)) changed.push(key);
      ({ body } = ruling);
      dropped = [...dropped, ...ruling.dropped];
    }
  }
  const deployment = deploymentName(row, channel, model);
  // Where the address names no deployment, the body does.
  if (body && operation === "responses" && deployment !== model) {
    body = { ...body, model: deployment };
    if (!changed.includes("model")) changed.push("model");
  }
  let address: UpstreamAddress = call;
  if (operation !== call.operation || model !== call.model) address = { ...call, operation, model };
  // The path and query of another operation mean nothing to this one.
  if (operation !== call.operation) {
    delete address.path;
    delete address.query;
  }
  return {
    operation,
    route,
    model,
    url: upstreamUrl(row, channel, address),
    headers: upstreamHeaders(row, {
      ...call,
      operation,
      organization: channel.organization,
      other: channel.other,
    }),
    body,
    changed,
    dropped,
  };
}
