// Proofs that only the account that made them can read (encrypted reasoning, signatures of thinking): when they are left out of a
// request, and how an upstream says that it cannot read them. The turn itself always stays.
import type { CanonicalRequest, DialectName, Part, Signature } from "../../protocol/canonical.ts";
import { AttemptFailure } from "./attempt.ts";
import type { Call } from "./call.ts";

/** As the log tells that they were left out, in the words of the upstream's dialect. */
export const PROOF_NAMES: Readonly<Record<DialectName, string>> = {
  "openai-chat": "reasoning_details",
  "openai-responses": "reasoning.encrypted_content",
  anthropic: "thinking.signature",
  gemini: "thoughtSignature",
};

/** Proofs travel in these fields; one look for all, a search for each takes ten times as long. */
const FIELDS = /ignature|encrypted_content|redacted_thinking/;

/** Most bodies have none of them. */
export function mayHoldProof(text: string): boolean {
  return FIELDS.test(text);
}

/**
 * What upstreams answer to a proof that is not theirs: OpenAI's code and sentence, Anthropic's, Google's (as their clients' issue
 * lists show them).
 */
const REJECTED =
  /invalid_encrypted_content|encrypted[ _]content\b.{0,200}\b(?:verif|decrypt|pars|invalid)|invalid\W{1,3}(?:signature|data)\W{1,3}(?:in|for)\b.{0,40}thinking|thought[ _]?signature\W.{0,60}\b(?:valid|invalid|corrupt)|corrupted thought[ _]?signature/i;

/** Whether the upstream refused the call for a proof in it. */
export function rejectsProofs(thrown: unknown, call: Pick<Call, "endpoint" | "body">): boolean {
  if (!(thrown instanceof AttemptFailure) || !call.endpoint.isConversation) return false;
  const { refusal } = thrown;
  if (refusal?.status !== 400 || !mayHoldProof(call.body.text)) return false;
  return REJECTED.test(`${refusal.code} ${refusal.message}`);
}

/** The conversation with its proofs as nobody's: whoever writes it in `dialect` leaves out what it cannot prove. */
export function disowned(request: CanonicalRequest, dialect: DialectName): CanonicalRequest {
  const other: DialectName = dialect === "gemini" ? "anthropic" : "gemini";
  const strip = (part: Part): Part => {
    const signature: Signature | undefined = "signature" in part ? part.signature : undefined;
    return signature?.dialect === dialect
      ? ({ ...part, signature: { ...signature, dialect: other } } as Part)
      : part;
  };
  const messages = request.messages.map((message) => ({ ...message, parts: message.parts.map(strip) }));
  return { ...request, messages };
}
