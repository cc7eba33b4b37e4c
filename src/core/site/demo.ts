// Demonstration mode: everything may be looked at and tried, and nothing is changed by anybody but root.
import { Role } from "../../shared/enums.ts";
import { Failure } from "../../shared/failures.ts";
import { isPaymentCallback } from "../../shared/payment-callbacks.ts";
import type { OptionStore } from "../options/store.ts";

/** Reads that leave something behind: a new access token, an invitation code, a channel's test and what it costs. */
const WRITING_READS =
  /^\/api\/(?:user\/(?:token|aff)|channel\/(?:test|update_balance|fetch_models)(?:\/\d+)?)\/?$/;

/** Visitors come and go, and the site is set up. */
const OPEN_WRITES: ReadonlySet<string> = new Set([
  "/api/user/login",
  "/api/user/login/2fa",
  "/api/user/passkey/login/begin",
  "/api/user/passkey/login/finish",
  "/api/user/rescue",
  "/api/setup",
]);

/** Whether a console call changes anything, by its method and its address. */
function isWrite(method: string, pathname: string): boolean {
  if (OPEN_WRITES.has(pathname.replace(/\/$/, "")) || isPaymentCallback(pathname)) return false;
  if (method === "OPTIONS") return false;
  return (method !== "GET" && method !== "HEAD") || WRITING_READS.test(pathname);
}

/** Throws for a console write of everybody but root while the site is a demonstration. Calls of the relay are no writes. */
export function refuseInDemo(
  options: Pick<OptionStore, "get">,
  role: number,
  { method, url }: Request,
): void {
  if (!options.get("DemoSiteEnabled") || role >= Role.root) return;
  const { pathname } = new URL(url);
  if (pathname.startsWith("/api/") && isWrite(method, pathname))
    throw new Failure("client", "demo_read_only");
}
