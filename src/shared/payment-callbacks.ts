// Where providers of payment call. They are no visitors: they come from few addresses, repeat what failed for a while only, and
// bring money that has left the buyer already.

const KNOWN: ReadonlySet<string> = new Set(["/api/user/epay/notify", "/api/stripe/webhook"]);
const ANY_RAIL = /^\/api\/payment\/[^/]+$/;

/** Whether a path is a rail's own address: such a call is in no visitor's count, and taken also while the site is closed or shown. */
export function isPaymentCallback(pathname: string): boolean {
  const path = pathname.replace(/\/$/, "");
  return KNOWN.has(path) || ANY_RAIL.test(path);
}
