// The human check of a route, and the cookie `human` that remembers a check that was passed for ten minutes.
// Refuses the cookie at any other address than the one that it was given to.
import type { Deps } from "../core/deps.ts";
import { checkHuman } from "../core/users/human-check.ts";
import { addressGroup } from "../core/kit/site-limits.ts";
import { cookieLine, cookieOf } from "./session.ts";
import { isSigned, signatureOf } from "./signing.ts";

const NAME = "human";
const SECONDS = 600;

const textOf = (untilSeconds: number, address: string): string =>
  `human|${untilSeconds}|${addressGroup(address)}`;

function isRemembered(request: Request, address: string, { now, secret }: { now: number; secret: string }) {
  const [, until = "", signed = ""] = /^(\d{1,12})\.([\w-]{43})$/.exec(cookieOf(request, NAME)) ?? [];
  if (until === "" || Number(until) <= now) return false;
  return isSigned(secret, textOf(Number(until), address), Buffer.from(signed, "base64url"));
}

interface Visit {
  request: Request;
  address: string;
  /** What the widget gave; empty where nothing was sent. */
  token: string | undefined;
  action: "register" | "login" | "verification" | "reset" | "wechat";
}

/**
 * Resolves for people, and for everybody while the check is off; answers the Set-Cookie line of a check that was passed
 * just now. Throws Failures `human_check_empty` and `human_check_failed`.
 */
export async function requireHuman(
  deps: Pick<Deps, "options" | "guard" | "reach" | "logger" | "clock">,
  secret: string,
  { request, address, token = "", action }: Visit,
): Promise<string | undefined> {
  if (!deps.options.get("TurnstileCheckEnabled")) return undefined;
  const now = Math.floor(deps.clock.nowMs() / 1000);
  if (isRemembered(request, address, { now, secret })) return undefined;
  await checkHuman(deps, { token, address, action });
  const until = now + SECONDS;
  const value = `${until}.${signatureOf(secret, textOf(until, address)).toString("base64url")}`;
  return cookieLine(NAME, value, SECONDS, request);
}
