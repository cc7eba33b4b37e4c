// Passwords and secrets that people carry: argon2id hashes, access tokens, codes.
// Refuses to run more than a few hashes at once, since each holds 19 MiB.
import { randomBytes } from "node:crypto";

/** 19 MiB, two passes: 48 ms here, the floor of the current OWASP advice for argon2id. */
const ARGON = { algorithm: "argon2id", memoryCost: 19_456, timeCost: 2 } as const;
const MAX_PARALLEL = 4;

let running = 0;
const queue: (() => void)[] = [];

async function limited<T>(work: () => Promise<T>): Promise<T> {
  if (running >= MAX_PARALLEL) await new Promise<void>((resolve) => queue.push(resolve));
  running++;
  try {
    return await work();
  } finally {
    running--;
    queue.shift()?.();
  }
}

export function hashPassword(password: string): Promise<string> {
  return limited(() => Bun.password.hash(password, ARGON));
}

let decoy: Promise<string> | undefined;

/**
 * Compares in constant time. An empty or unreadable hash is refused after the same work as a real one, so that an
 * unknown account cannot be told from a wrong password. bcrypt hashes are accepted and flagged for an upgrade.
 */
export async function verifyPassword(
  password: string,
  hash: string,
): Promise<{ matches: boolean; needsRehash: boolean }> {
  const known = /^\$(argon2id?|2[aby])\$/.test(hash);
  const against = known ? hash : await (decoy ??= hashPassword(randomBytes(16).toString("hex")));
  const matches = await limited(() => Bun.password.verify(password, against).catch(() => false));
  return { matches: known && matches, needsRehash: known && !hash.startsWith("$argon2id$") };
}

/** A system access token: 32 characters of URL-safe base64. */
export function newAccessToken(): string {
  return randomBytes(24).toString("base64url");
}
