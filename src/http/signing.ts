// What the site signs by itself (cookies, sessions): one secret signs, those before it are still taken.
import { createHmac, timingSafeEqual } from "node:crypto";

const MIN_SECRET_CHARACTERS = 16;

/**
 * The secrets of a setting `new,old`: the first signs, each is taken. The whole text is, too: a secret from before this
 * rule may hold a comma, and its sessions go on. Parts that are too short are no list.
 */
export function secretsOf(setting: string): readonly [string, ...string[]] {
  const parts = setting.split(",").map((part) => part.trim());
  const [first, ...others] = parts;
  if (first === undefined || others.length === 0) return [setting];
  if (parts.some((part) => part.length < MIN_SECRET_CHARACTERS)) return [setting];
  return [first, ...others, setting];
}

function signedBy(secret: string, text: string): Buffer {
  return createHmac("sha256", secret).update(text).digest();
}

/** HMAC-SHA-256 under the newest secret. */
export function signatureOf(setting: string, text: string): Buffer {
  return signedBy(secretsOf(setting)[0], text);
}

export function isSigned(setting: string, text: string, given: Buffer): boolean {
  return secretsOf(setting).some((secret) => {
    const right = signedBy(secret, text);
    return given.length === right.length && timingSafeEqual(given, right);
  });
}
