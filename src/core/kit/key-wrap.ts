// The encryption key under a passphrase, for files that leave the house: scrypt makes a key of the passphrase, AES-256-GCM wraps.
// Refuses short passphrases, another passphrase, and a wrapping in which anything was changed.
import { createCipheriv, createDecipheriv, randomBytes, scrypt } from "node:crypto";
import { keyFingerprint } from "./seal.ts";

/** What a file carries of the key; JSON. Bytes are base64url. */
export interface WrappedKey {
  wrap: "weir-key-1";
  /** RFC 7914, by which the passphrase becomes 32 bytes. */
  scrypt: { n: number; r: number; p: number; salt: string };
  iv: string;
  /** Ciphertext, then the tag of 16 bytes. */
  sealed: string;
  /** Of the key inside (`keyFingerprint`), so that people see which one it is without opening it. */
  fingerprint: string;
}

/** Refused with this sentence. */
export class KeyWrapError extends Error {
  constructor(
    readonly reason: "short" | "damaged" | "passphrase",
    message: string,
  ) {
    super(message);
  }
}

export const MIN_PASSPHRASE = 12;

/** 128 MB and some 0.4 s a try: OWASP's first choice for scrypt. */
const COST = { n: 2 ** 17, r: 8, p: 1 };
/** A file from elsewhere must not ask for all the memory there is. */
const MOST_BYTES = 1024 ** 3;
const SALT_BYTES = 16;
const IV_BYTES = 12;
const TAG_BYTES = 16;
const KEY_BYTES = 32;

const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64url");

function stretch(passphrase: string, { n, r, p, salt }: WrappedKey["scrypt"]): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  // One passphrase typed on two systems may come as two texts.
  const text = passphrase.normalize("NFKC");
  const options = { N: n, r, p, maxmem: 2 * 128 * n * r };
  scrypt(text, Buffer.from(salt, "base64url"), KEY_BYTES, options, (error, key) =>
    error ? reject(error) : resolve(key),
  );
  return promise;
}

/** Everything beside the ciphertext is bound into it. */
function boundText({
  wrap,
  scrypt: { n, r, p, salt },
  fingerprint,
}: Omit<WrappedKey, "iv" | "sealed">): Buffer {
  return Buffer.from([wrap, n, r, p, salt, fingerprint].join(" "));
}

/** Wraps the encryption secret (the text of ENCRYPTION_KEY or of the key file). Throws KeyWrapError "short". */
export async function wrapKey(secret: string, passphrase: string): Promise<WrappedKey> {
  if (passphrase.length < MIN_PASSPHRASE)
    throw new KeyWrapError("short", `the passphrase must have at least ${MIN_PASSPHRASE} characters`);
  const head = {
    wrap: "weir-key-1",
    scrypt: { ...COST, salt: base64(randomBytes(SALT_BYTES)) },
    fingerprint: keyFingerprint(secret),
  } as const;
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv("aes-256-gcm", await stretch(passphrase, head.scrypt), iv);
  cipher.setAAD(boundText(head));
  const body = Buffer.concat([cipher.update(secret, "utf8"), cipher.final(), cipher.getAuthTag()]);
  return { ...head, iv: base64(iv), sealed: base64(body) };
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 1;

function isWrappedKey(value: unknown): value is WrappedKey {
  const { wrap, scrypt: cost, iv, sealed, fingerprint } = (value ?? {}) as Partial<WrappedKey>;
  const texts = [iv, sealed, fingerprint, cost?.salt];
  if (wrap !== "weir-key-1" || !texts.every((text) => typeof text === "string" && text !== "")) return false;
  if (!cost || !isCount(cost.n) || !isCount(cost.r) || !isCount(cost.p)) return false;
  return (
    cost.n > 1 && Number.isInteger(Math.log2(cost.n)) && cost.p <= 16 && 128 * cost.n * cost.r <= MOST_BYTES
  );
}

/** The secret again. Throws KeyWrapError: "damaged" where it is no such wrapping, "passphrase" where it does not open. */
export async function unwrapKey(wrapped: unknown, passphrase: string): Promise<string> {
  if (!isWrappedKey(wrapped))
    throw new KeyWrapError("damaged", "this is no wrapped key of weir, or it is damaged");
  const bytes = Buffer.from(wrapped.sealed, "base64url");
  const iv = Buffer.from(wrapped.iv, "base64url");
  if (bytes.length <= TAG_BYTES || iv.length !== IV_BYTES)
    throw new KeyWrapError("damaged", "the wrapped key is cut short");
  const decipher = createDecipheriv("aes-256-gcm", await stretch(passphrase, wrapped.scrypt), iv);
  decipher.setAAD(boundText(wrapped));
  decipher.setAuthTag(bytes.subarray(bytes.length - TAG_BYTES));
  try {
    const body = decipher.update(bytes.subarray(0, bytes.length - TAG_BYTES));
    return Buffer.concat([body, decipher.final()]).toString("utf8");
  } catch {
    throw new KeyWrapError(
      "passphrase",
      "the passphrase does not open the wrapped key, or the key was changed",
    );
  }
}
