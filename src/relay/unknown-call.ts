// What clients of Google's and Anthropic's dialects get at an address that the gateway does not have (uploads, files, caches):
// the refusal in their own envelope. Leaves every other address to the shape that OpenAI's clients read.
import type { Deps } from "../core/deps.ts";
import { relayLanguageOf } from "../http/messages.ts";
import { newRequestId } from "../http/request-id.ts";
import type { DialectName } from "../protocol/canonical.ts";
import { Failure } from "../shared/failures.ts";
import { listDialect } from "./models.ts";
import { corsHeaders } from "./wire/cors.ts";
import { renderFailure } from "./wire/render-failure.ts";

/** Google's versions, with the prefix of its uploads (ai.google.dev, "Files API") or without. */
const GOOGLE = /^\/(?:upload\/|v1(?:beta|alpha)\d*\/)/;

function dialectAt(path: string, request: Request): DialectName {
  if (GOOGLE.test(path)) return "gemini";
  if (path.startsWith("/v1/messages")) return "anthropic";
  // The console's own calls name no dialect.
  return path.startsWith("/v1/") ? listDialect(request) : "openai-chat";
}

/** Undefined for callers of OpenAI's dialect and of everything that is no inference. */
export function unknownCall({ options }: Pick<Deps, "options">, request: Request): Response | undefined {
  const path = URL.parse(request.url, "http://localhost")?.pathname ?? "";
  const dialect = dialectAt(path, request);
  if (dialect === "openai-chat") return undefined;
  const failure = new Failure("client", "unknown_path", {
    status: 404,
    params: { method: request.method, path },
  });
  const view = { dialect, language: relayLanguageOf(request, options), requestId: newRequestId() };
  const headers = { ...corsHeaders(request), "x-content-type-options": "nosniff" };
  return renderFailure(failure, view, headers);
}
