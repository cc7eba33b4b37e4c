// Thinking signatures on their way through a foreign client: packed into the client protocol's own signature field
// as `dialect.payload`, opened when they come back. Refuses nothing: a value without a known prefix is native.
import { DIALECT_NAMES } from "./canonical.ts";
import type { DialectName, Signature } from "./canonical.ts";

/**
 * The text for a signature field of dialect `field`: native values as they are, foreign ones as `dialect.payload`.
 * Gemini's field holds bytes, which typed clients decode as base64: there the whole is wrapped once more.
 */
export function packSignature(signature: Signature, field: DialectName): string {
  if (signature.dialect === field) return signature.value;
  const packed = `${signature.dialect}.${signature.value}`;
  return field === "gemini" ? Buffer.from(packed).toString("base64") : packed;
}

/** Reads a signature field of dialect `field`. */
export function openSignature(text: string, field: DialectName): Signature {
  const direct = split(text);
  if (direct) return direct;
  if (field === "gemini") {
    const inner = split(Buffer.from(text, "base64").toString("latin1"));
    if (inner) return inner;
  }
  return { dialect: field, value: text };
}

function split(text: string): Signature | undefined {
  for (const dialect of DIALECT_NAMES) {
    if (text.startsWith(`${dialect}.`)) return { dialect, value: text.slice(dialect.length + 1) };
  }
  return undefined;
}
