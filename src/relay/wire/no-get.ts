// What a GET of the Responses address is answered: Codex tries a WebSocket there first, and only an answer of 426 on a
// closed connection sends it to HTTP at once; everything else is told that the address takes POST.
import { relayLanguageOf } from "../../http/messages.ts";
import { newRequestId } from "../../http/request-id.ts";
import type { Deps } from "../../core/deps.ts";
import { Failure } from "../../shared/failures.ts";
import { corsHeaders } from "./cors.ts";
import { renderFailure } from "./render-failure.ts";

export function refuseGet(request: Request, options: Deps["options"]): Response {
  const isUpgrade = request.headers.get("upgrade")?.toLowerCase() === "websocket";
  const failure = isUpgrade
    ? new Failure("client", "websocket_unsupported", { status: 426 })
    : new Failure("client", "method_not_allowed", { status: 405, params: { method: "POST" } });
  const headers = corsHeaders(request);
  if (isUpgrade) headers["connection"] = "close";
  // RFC 9110, 15.5.22 and 15.5.6: what is missing, and what is there.
  headers[isUpgrade ? "upgrade" : "allow"] = isUpgrade ? "TLS/1.3, HTTP/1.1" : "POST";
  const view = {
    dialect: "openai-responses",
    language: relayLanguageOf(request, options),
    requestId: newRequestId(),
  } as const;
  return renderFailure(failure, view, headers);
}
