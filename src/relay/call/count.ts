// Counts the tokens of a prompt for a client: free, and no upstream is called.
import { asObject } from "../../protocol/json.ts";
import { REQUEST_ID_HEADER } from "../../http/request-id.ts";
import { aliasedModel } from "../endpoints/agent-models.ts";
import { familyName, requestedModel } from "../endpoints/model-name.ts";
import { countBusy, countPrompt } from "../meter/meter.ts";
import { corsHeaders } from "../wire/cors.ts";
import { parseBody, readBytes } from "../wire/read-body.ts";
import { checkModel } from "./admission.ts";
import type { Admitted } from "./admission.ts";
import { maxBodyBytes } from "./prepare.ts";
import type { CallServices } from "./services.ts";

/** Counting is free: nothing but this keeps a wave of large bodies from being parsed at once. */
const MAX_COUNTING_BYTES = 32 * 1024 * 1024;

/** Bodies of calls that only count, from their last byte to their answer. */
export interface CountingBodies {
  bytes: number;
}

/** `encode` writes the number in the client's dialect. */
export async function countForClient(
  services: CallServices,
  counting: CountingBodies,
  { exchange, caller }: Admitted,
  encode: (tokens: number) => unknown,
): Promise<Response> {
  const { deps, bodies, visitors } = services;
  const { request, requestId } = exchange;
  const bytes = await readBytes(request, maxBodyBytes(deps), bodies, caller.user.id);
  exchange.work = visitors.working(request);
  if (counting.bytes > 0 && counting.bytes + bytes.length > MAX_COUNTING_BYTES) throw countBusy();
  counting.bytes += bytes.length;
  try {
    const tokens = await countBody(services, { exchange, caller }, bytes);
    const headers = {
      ...corsHeaders(request),
      "cache-control": "no-store",
      [REQUEST_ID_HEADER]: requestId,
    };
    return Response.json(encode(tokens), { headers });
  } finally {
    counting.bytes -= bytes.length;
  }
}

async function countBody(
  { deps, counter }: CallServices,
  { exchange, caller }: Admitted,
  bytes: Uint8Array<ArrayBuffer>,
): Promise<number> {
  const { request, endpoint, pathModel } = exchange;
  const body = parseBody(bytes);
  const asked = familyName(requestedModel(body, endpoint.refusalCode, pathModel));
  const model = aliasedModel(deps.routing, caller.group, asked);
  checkModel(caller, model);
  // Google's clients may wrap the complete request they are about to make.
  const json = asObject(body.json["generateContentRequest"]) ?? body.json;
  endpoint.check(json);
  return countPrompt(counter, { endpoint, body: json, model, signal: request.signal });
}
