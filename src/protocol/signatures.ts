// Thinking signatures on their way through a foreign client: packed into the client protocol's own signature field
// as `dialect.payload`, opened when they come back. A value without a known prefix is native.
import { DIALECT_NAMES } from "./canonical.ts";
import type { DialectName, Signature } from "./canonical.ts";

/** Marks encrypted thinking where the field's protocol has no block of its own for it. */
const REDACTED = "redacted~";

export interface OpenedProof {
  signature: Signature;
  /** The value is encrypted thinking itself, not a proof beside readable text. */
  redacted: boolean;
}

/**
 * The text for a signature field of dialect `field`: native values as they are, foreign ones as `dialect.payload`.
 * Gemini's field holds bytes, which typed clients decode as base64: there the whole is wrapped once more.
 */
export function packSignature(signature: Signature, field: DialectName, redacted = false): string {
  if (signature.dialect === field) return signature.value;
  const packed = `${signature.dialect}.${redacted ? REDACTED : ""}${signature.value}`;
  return field === "gemini" ? Buffer.from(packed).toString("base64") : packed;
}

/** Reads a signature field of dialect `field`. */
export function openProof(text: string, field: DialectName): OpenedProof {
  const direct = split(text);
  if (direct) return direct;
  if (field === "gemini") {
    const inner = split(Buffer.from(text, "base64").toString("latin1"));
    if (inner) return inner;
  }
  return { signature: { dialect: field, value: text }, redacted: false };
}

/** The note event payload for what a signature field holds. */
export function proofNote(
  text: string,
  field: DialectName,
): { type: "note"; note: "signature" | "redacted"; dialect: DialectName; value: string } {
  const { signature, redacted } = openProof(text, field);
  return { type: "note", note: redacted ? "redacted" : "signature", ...signature };
}

function split(text: string): OpenedProof | undefined {
  for (const dialect of DIALECT_NAMES) {
    if (!text.startsWith(`${dialect}.`)) continue;
    const value = text.slice(dialect.length + 1);
    const redacted = value.startsWith(REDACTED);
    return { signature: { dialect, value: redacted ? value.slice(REDACTED.length) : value }, redacted };
  }
  return undefined;
}

const FOREIGN =
  /"(?:signature|data|encrypted_content|thoughtSignature|thought_signature)"\s*:\s*"(?:(?:openai-chat|openai-responses|anthropic|gemini)\.|YW50aHJvcGljL|b3BlbmFpL|(?=")(?<="signature"\s*:\s*"))/;

/**
 * Whether a request body (as text) brings back proofs of another provider, or thinking without one: such a body must
 * be converted even when client and upstream speak the same dialect, for its upstream would refuse it.
 */
export function hasForeignProof(body: string): boolean {
  return FOREIGN.test(body);
}
