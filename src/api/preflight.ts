// OPTIONS below /api: which methods there are, and a browser's question before a call from a page of another site.
// Refuses such pages everything but what a key tells of itself, which they ask for with the key alone.
import { Elysia } from "elysia";
import { ANY_SITE } from "../http/key-reader.ts";
import { policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";

function answered(headers: Record<string, string>): Response {
  return new Response(null, { status: 204, headers });
}

/** Without Access-Control-Allow-Origin the browser itself refuses the page. */
const everyMethod = () => answered({ allow: "GET, POST, PUT, DELETE, OPTIONS" });

function forAnySite({ request }: { request: Request }): Response {
  return answered({
    ...ANY_SITE,
    allow: "GET, OPTIONS",
    "access-control-allow-methods": "GET, OPTIONS",
    "access-control-allow-headers":
      request.headers.get("access-control-request-headers") ?? "*, Authorization",
    "access-control-max-age": "86400",
    vary: "Access-Control-Request-Headers",
  });
}

export function preflight(session: SessionSettings) {
  return new Elysia({ prefix: "/api" })
    .use(policy(session))
    .options("/log/token", ({ request }) => forAnySite({ request }), { open: "public" })
    .options("/usage/token", ({ request }) => forAnySite({ request }), { open: "public" })
    .options("/", everyMethod, { open: "public" })
    .options("/*", everyMethod, { open: "public" });
}
