// Sealing of what must be readable again (API keys, channel keys, secret options): AES-256-GCM at rest.
// Refuses text that was sealed under another key or for another purpose.
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** What a sealed text is for; bound into it, so that one kind of secret cannot be passed off as another. */
export const SEAL_PURPOSES = [
  "token",
  "channel",
  "option",
  "redemption",
  "user",
  "check",
  "turn",
  "item",
  "flow",
  "letter",
  "quote",
] as const;

type SealPurpose = (typeof SEAL_PURPOSES)[number];

/** Clients carry these, and bring them back after the key has changed. */
const CARRIED: ReadonlySet<SealPurpose> = new Set<SealPurpose>(["turn", "item", "quote"]);

export interface Sealer {
  seal(purpose: SealPurpose, text: string): string;
  /** Throws SealError when the key or the purpose is wrong. */
  open(purpose: SealPurpose, sealed: string): string;
  /** The same for bytes, as bytes. */
  sealBytes(purpose: SealPurpose, bytes: Uint8Array): Buffer;
  openBytes(purpose: SealPurpose, sealed: Buffer): Buffer;
  /** Keyed hash (HMAC-SHA256) of what outsiders may see but not link: the same on every node of an installation. */
  mac(text: string): Buffer;
}

class SealError extends Error {}

const VERSION = "s1.";
const IV_BYTES = 12;
const TAG_BYTES = 16;

/** What an installation whose key has changed keeps of the keys before. */
export interface SealHeritage {
  /** Of the first key: hashes cannot be made anew. */
  macKey?: Buffer;
  /** The sealing key before: it opens what clients carry, and nothing else. */
  carriedKey?: Buffer;
}

export function sealKeyOf(secret: string): Buffer {
  return Buffer.from(hkdfSync("sha256", secret, "weir", "seal", 32));
}

export function macKeyOf(secret: string): Buffer {
  return Buffer.from(hkdfSync("sha256", secret, "weir", "mac", 32));
}

/** Which key it is, for people to compare and files to name: eight bytes in hex, from which nothing is opened. */
export function keyFingerprint(secret: string): string {
  return Buffer.from(hkdfSync("sha256", secret, "weir", "fingerprint", 8)).toString("hex");
}

export function createSealer(secret: string, heritage: SealHeritage = {}): Sealer {
  const key = sealKeyOf(secret);
  const macKey = heritage.macKey ?? macKeyOf(secret);
  const { carriedKey } = heritage;
  function sealBytes(purpose: SealPurpose, bytes: Uint8Array): Buffer {
    const iv = randomBytes(IV_BYTES);
    const cipher = createCipheriv("aes-256-gcm", key, iv);
    cipher.setAAD(Buffer.from(purpose));
    const body = Buffer.concat([cipher.update(bytes), cipher.final()]);
    return Buffer.concat([iv, body, cipher.getAuthTag()]);
  }
  function openUnder(under: Buffer, purpose: SealPurpose, bytes: Buffer): Buffer {
    const decipher = createDecipheriv("aes-256-gcm", under, bytes.subarray(0, IV_BYTES));
    decipher.setAAD(Buffer.from(purpose));
    decipher.setAuthTag(bytes.subarray(bytes.length - TAG_BYTES));
    const body = decipher.update(bytes.subarray(IV_BYTES, bytes.length - TAG_BYTES));
    return Buffer.concat([body, decipher.final()]);
  }
  function openBytes(purpose: SealPurpose, bytes: Buffer): Buffer {
    if (bytes.length < IV_BYTES + TAG_BYTES) throw new SealError("sealed text is cut short");
    try {
      return openUnder(key, purpose, bytes);
    } catch (error) {
      if (carriedKey && CARRIED.has(purpose)) {
        try {
          return openUnder(carriedKey, purpose, bytes);
        } catch {
          // Nor under that one.
        }
      }
      throw new SealError("sealed under another key", { cause: error });
    }
  }
  return {
    mac: (text) => createHmac("sha256", macKey).update(text).digest(),
    sealBytes,
    openBytes,
    seal: (purpose, text) =>
      text === "" ? "" : VERSION + sealBytes(purpose, Buffer.from(text, "utf8")).toString("base64url"),
    open(purpose, sealed) {
      if (sealed === "") return "";
      if (!sealed.startsWith(VERSION)) throw new SealError("not a sealed text");
      return openBytes(purpose, Buffer.from(sealed.slice(VERSION.length), "base64url")).toString("utf8");
    },
  };
}

export const KEY_FILE = "encryption.key";

/** The operator's ENCRYPTION_KEY, or the key file of the data directory; empty where there is neither. */
export function keySecret(fromEnv: string, dataDir: string): string {
  if (fromEnv !== "") return fromEnv;
  const path = join(dataDir, KEY_FILE);
  return existsSync(path) ? readFileSync(path, "utf8").trim() : "";
}

/** The same; a key file is made (mode 0600) where there is neither. */
export function encryptionSecret(fromEnv: string, dataDir: string): string {
  const found = keySecret(fromEnv, dataDir);
  if (found !== "") return found;
  const path = join(dataDir, KEY_FILE);
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const secret = randomBytes(32).toString("base64url");
  // Whole or not at all: a power cut must not leave an empty key, with which everything would be sealed.
  writeFileSync(`${path}.draft`, `${secret}\n`, { mode: 0o600, flush: true });
  chmodSync(`${path}.draft`, 0o600);
  renameSync(`${path}.draft`, path);
  return secret;
}

/** SHA-256 in hex: how keys and codes are looked up without being stored in clear. */
export function sha256Hex(text: string): string {
  return Bun.SHA256.hash(text, "hex");
}
