// What the headers of every relay answer begin with: no browser guesses its type, and every page may read it that called
// with a key of its own, no page with somebody's cookie.
// Refuses credentials: keys travel in headers, cookies have no business here.

export function corsHeaders(request: Request): Record<string, string> {
  if (!request.headers.has("origin")) return { "x-content-type-options": "nosniff" };
  return {
    "x-content-type-options": "nosniff",
    "access-control-allow-origin": "*",
    "access-control-expose-headers": "*",
  };
}

/** Answers a preflight: every header a client may invent (x-stainless-* and the like) is allowed. */
export function preflight(request: Request): Response {
  const requested = request.headers.get("access-control-request-headers");
  return new Response(null, {
    status: 204,
    headers: {
      "access-control-allow-origin": "*",
      "access-control-allow-methods": "GET, POST, PUT, DELETE, OPTIONS",
      // "*" does not cover Authorization in browsers, the echoed list does.
      "access-control-allow-headers": requested ?? "*, Authorization",
      "access-control-max-age": "86400",
      vary: "Access-Control-Request-Headers",
    },
  });
}
