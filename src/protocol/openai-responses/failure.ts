// Errors of the Responses API: the OpenAI envelope outside of a stream, code and message inside.
// Refuses to show upstream text that classify.ts did not clear.
import type { Failure } from "../../shared/failures.ts";

export { decodeFailure, encodeFailure } from "../openai-chat/failure.ts";

/** Code and message of a failed response; clients know these codes, and retry on all but the context's and the prompt's. */
export function errorFields(failure: Failure, text: string): { code: string; message: string } {
  const limited = failure.kind === "limit" || failure.kind === "upstream-limit";
  if (failure.kind === "context-length") return { code: "context_length_exceeded", message: text };
  if (limited) return { code: "rate_limit_exceeded", message: text };
  if (
    failure.kind === "upstream-request" ||
    failure.kind === "upstream-refusal" ||
    failure.kind === "client"
  ) {
    return { code: "invalid_prompt", message: text };
  }
  return { code: "server_error", message: text };
}
