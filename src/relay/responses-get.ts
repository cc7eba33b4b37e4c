// What a GET of the Responses address is answered, once the caller is known: Codex tries a WebSocket there first, and only
// an answer of 426 on a closed connection sends it to HTTP at once; everything else is told that the address takes POST.
import type { Deps } from "../core/deps.ts";
import { relayLanguageOf } from "../http/messages.ts";
import { newRequestId } from "../http/request-id.ts";
import type { SessionSettings } from "../http/session.ts";
import { Failure } from "../shared/failures.ts";
import { admitCaller } from "./call/admission.ts";
import { corsHeaders } from "./wire/cors.ts";
import { asFailure, renderFailure } from "./wire/render-failure.ts";

export async function refuseGet(
  deps: Deps,
  { visitors }: Pick<SessionSettings, "visitors">,
  request: Request,
): Promise<Response> {
  const headers = corsHeaders(request);
  const view = {
    dialect: "openai-responses" as const,
    language: relayLanguageOf(request, deps.options),
    requestId: newRequestId(),
  };
  try {
    await admitCaller(deps, request, visitors);
  } catch (error) {
    return renderFailure(asFailure(error), view, headers);
  }
  if (request.headers.get("upgrade")?.toLowerCase() !== "websocket") {
    headers["allow"] = "POST";
    const failure = new Failure("client", "method_not_allowed", { status: 405, params: { method: "POST" } });
    return renderFailure(failure, view, headers);
  }
  headers["connection"] = "close";
  // RFC 9110, 15.5.22: what would have to be spoken.
  headers["upgrade"] = "TLS/1.3, HTTP/1.1";
  return renderFailure(new Failure("client", "websocket_unsupported", { status: 426 }), view, headers);
}
