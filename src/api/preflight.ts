// OPTIONS below /api: which methods there are, and a browser's question before a call from a page of another site.
// Refuses such pages everything but the log of a key, which they ask for with the key alone.
import { Elysia } from "elysia";
import { policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";

/** Without Access-Control-Allow-Origin the browser itself refuses the page. */
function answered(headers: Record<string, string>): Response {
  return new Response(null, { status: 204, headers });
}

const everyMethod = () => answered({ allow: "GET, POST, PUT, DELETE, OPTIONS" });

export function preflight(session: SessionSettings) {
  return new Elysia({ prefix: "/api" })
    .use(policy(session))
    .options(
      "/log/token",
      ({ request }) =>
        answered({
          allow: "GET, OPTIONS",
          "access-control-allow-origin": "*",
          "access-control-allow-methods": "GET, OPTIONS",
          "access-control-allow-headers": request.headers.get("access-control-request-headers") ?? "*",
          "access-control-max-age": "86400",
          vary: "Access-Control-Request-Headers",
        }),
      { open: "public" },
    )
    .options("/", everyMethod, { open: "public" })
    .options("/*", everyMethod, { open: "public" });
}
