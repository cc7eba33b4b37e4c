// GET /metrics: the process as Prometheus reads it.
// Refuses everybody but this machine itself and whoever has METRICS_TOKEN, as an address that is not there.
import { createHash, timingSafeEqual } from "node:crypto";
import { Elysia } from "elysia";
import { inRanges, parseRanges } from "../http/address.ts";
import { unknownPath } from "../http/failures.ts";
import { policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";
import { CONTENT_TYPE } from "../observe/metrics.ts";

export interface MetricsAccess {
  /** In Prometheus' text format; of several processes behind one port the parent's. */
  text(): Promise<string>;
  /** METRICS_TOKEN; "" = nobody comes by one. */
  token: string;
}

const LOOPBACK = parseRanges(["127.0.0.0/8", "::1"]);
/** Whoever sends one of these stands before somebody else. */
const OF_PROXIES = [
  "forwarded",
  "via",
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-proto",
  "x-real-ip",
  "cf-connecting-ip",
  "true-client-ip",
];
const OWN_NAMES = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?$/i;

/** A program on this machine, and no browser's page that had this machine's name resolved to it. */
function isOwnMachine(request: Request, { visitors }: Pick<SessionSettings, "visitors">): boolean {
  const { headers } = request;
  const peer = visitors.server.requestIP(request)?.address ?? "";
  return (
    inRanges(peer, LOOPBACK) &&
    OF_PROXIES.every((name) => !headers.has(name)) &&
    OWN_NAMES.test(headers.get("host") ?? "")
  );
}

function hasToken({ headers }: Request, token: string): boolean {
  const sent = /^Bearer\s+(.+)$/i.exec(headers.get("authorization") ?? "")?.[1]?.trim() ?? "";
  // Of one length, whatever was sent.
  const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
  return token !== "" && timingSafeEqual(digest(sent), digest(token));
}

export function metrics(session: SessionSettings, access: MetricsAccess) {
  return new Elysia().use(policy(session)).get(
    "/metrics",
    async ({ request }) => {
      if (!isOwnMachine(request, session) && !hasToken(request, access.token)) return unknownPath(request);
      return new Response(await access.text(), {
        headers: { "content-type": CONTENT_TYPE, "cache-control": "no-store" },
      });
    },
    { open: "public" },
  );
}
