// Thinking signatures on their way through a foreign client: packed into the client protocol's own signature field
// as `dialect.payload`, opened when they come back. Refuses nothing: a value without a known prefix is native.
import { DIALECT_NAMES } from "./canonical.ts";
import type { DialectName, Signature } from "./canonical.ts";

/** The text for a signature field of dialect `field`: native values as they are, foreign ones with their origin. */
export function packSignature(signature: Signature, field: DialectName): string {
  return signature.dialect === field ? signature.value : `${signature.dialect}.${signature.value}`;
}

/** Reads a signature field of dialect `field`. */
export function openSignature(text: string, field: DialectName): Signature {
  for (const dialect of DIALECT_NAMES) {
    if (text.startsWith(`${dialect}.`)) return { dialect, value: text.slice(dialect.length + 1) };
  }
  return { dialect: field, value: text };
}
