// The cookie `device`: a random id, signed, by which an account knows the browsers it was signed in to.
// Refuses ids that this site did not sign: as good as none.
import { randomBytes } from "node:crypto";
import { cookieLine, cookieOf } from "./session.ts";
import { isSigned, signatureOf } from "./signing.ts";

const NAME = "device";
const YEAR_SECONDS = 365 * 24 * 3600;

/** The browser's id, or the empty text. */
export function deviceOf(request: Request, secret: string): string {
  const [, id = "", signed = ""] = /^([0-9a-f]{32})\.([\w-]{43})$/.exec(cookieOf(request, NAME)) ?? [];
  return isSigned(secret, `device|${id}`, Buffer.from(signed, "base64url")) ? id : "";
}

export function newDeviceId(): string {
  return randomBytes(16).toString("hex");
}

/** The Set-Cookie line; renewed with each sign-in. */
export function deviceCookie(id: string, secret: string, request: Request): string {
  return cookieLine(
    NAME,
    `${id}.${signatureOf(secret, `device|${id}`).toString("base64url")}`,
    YEAR_SECONDS,
    request,
  );
}
