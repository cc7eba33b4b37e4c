// The cookie `flow`: a random id by which a browser that went to a provider is known when it comes back.
// Refuses to mean anything else: it is sent to the calls of providers alone, and says nothing about who somebody is.
import { randomBytes } from "node:crypto";
import { cookieLine, cookieOf } from "./session.ts";

const NAME = "flow";
const SECONDS = 600;
const PATH = "/api/oauth";

/** The browser's id, or the empty text. */
export function flowOf(request: Request): string {
  const value = cookieOf(request, NAME);
  return /^[0-9a-f]{32}$/.test(value) ? value : "";
}

/** The browser's id, a new one where it has none, and the Set-Cookie line that keeps it: one for all its tabs. */
export function keptFlow(request: Request): { id: string; cookie: string } {
  const id = flowOf(request) || randomBytes(16).toString("hex");
  return { id, cookie: cookieLine(NAME, id, SECONDS, request, PATH) };
}
