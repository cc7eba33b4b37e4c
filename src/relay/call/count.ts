// Counts the tokens of a prompt for a client, for nothing: the model's upstream is asked where it can count, and the
// gateway counts for itself where none can or none does.
import { asObject } from "../../protocol/json.ts";
import { REQUEST_ID_HEADER } from "../../http/request-id.ts";
import { aliasedModel } from "../endpoints/agent-models.ts";
import { familyName, requestedModel } from "../endpoints/model-name.ts";
import { countBusy, countPrompt } from "../meter/meter.ts";
import { corsHeaders } from "../wire/cors.ts";
import { parseBody, readBytes } from "../wire/read-body.ts";
import { checkModel } from "./admission.ts";
import type { Admitted } from "./admission.ts";
import { countUpstream } from "./count-upstream.ts";
import type { UpstreamCount } from "./count-upstream.ts";
import { maxBodyBytes } from "./prepare.ts";
import type { CallServices } from "./services.ts";
import { callerAfter } from "./slow-body.ts";

/** Counting is free: nothing but this keeps a wave of large bodies from being parsed at once. */
const MAX_COUNTING_BYTES = 32 * 1024 * 1024;

/** A wave of counts must not become one of upstream calls. */
const MAX_ASKED = 64;

/** Bodies of calls that only count, from their last byte to their answer. */
export interface CountingBodies {
  bytes: number;
  /** Upstreams that count at the moment. */
  asked: number;
}

/** `encode` writes the number in the client's dialect. */
export async function countForClient(
  services: CallServices,
  counting: CountingBodies,
  { exchange, caller: admitted }: Admitted,
  encode: (tokens: number) => Record<string, unknown>,
): Promise<Response> {
  const { deps, bodies, visitors } = services;
  const { request, requestId } = exchange;
  const beganMs = deps.clock.monotonicMs();
  const bytes = await readBytes(request, maxBodyBytes(deps), bodies, admitted.user.id);
  exchange.work = visitors.working(request);
  const caller = await callerAfter(deps, visitors, { request, caller: admitted, beganMs });
  exchange.caller = caller;
  if (counting.bytes > 0 && counting.bytes + bytes.length > MAX_COUNTING_BYTES) throw countBusy();
  counting.bytes += bytes.length;
  try {
    const { tokens, details } = await countBody(services, counting, { exchange, caller, bytes });
    const headers = {
      ...corsHeaders(request),
      "cache-control": "no-store",
      [REQUEST_ID_HEADER]: requestId,
    };
    return Response.json({ ...encode(tokens), ...details }, { headers });
  } finally {
    counting.bytes -= bytes.length;
  }
}

async function countBody(
  services: CallServices,
  counting: CountingBodies,
  { exchange, caller, bytes }: Admitted & { bytes: Uint8Array<ArrayBuffer> },
): Promise<UpstreamCount> {
  const { request, endpoint, pathModel } = exchange;
  const body = parseBody(bytes);
  const asked = familyName(requestedModel(body, endpoint.refusalCode, pathModel));
  const model = aliasedModel(services.deps.routing, caller, asked);
  exchange.model = model;
  checkModel(caller, model);
  // Google's clients may wrap the complete request they are about to make.
  const json = asObject(body.json["generateContentRequest"]) ?? body.json;
  endpoint.check(json);
  if (counting.asked < MAX_ASKED) {
    counting.asked += 1;
    const counted = await countUpstream(services, { exchange, caller, body, json, model });
    counting.asked -= 1;
    if (counted) return counted;
  }
  const tokens = await countPrompt(services.counter, {
    endpoint,
    body: json,
    model,
    signal: request.signal,
  });
  return { tokens, details: {} };
}
