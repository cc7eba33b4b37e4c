// Begins to listen, with the limits every connection has, and tells the visitors' book which server it is.
// Refuses connections without an end: no timeout is ever zero, since Bun never closes a connection that had one.
import type { AnyElysia } from "elysia";
import { IDLE_SECONDS } from "./visitors.ts";
import type { Visitors } from "./visitors.ts";

/** Above the largest body an operator may allow (option relay.max_body_mb): the relay refuses by itself, with 413. */
const MAX_BODY_BYTES = 1100 * 1024 * 1024;

/** Throws when the machine cannot listen there. `isShared`: other workers listen on the same port. */
export function listen(
  app: AnyElysia,
  visitors: Visitors,
  { isShared = false, ...at }: { port: number; hostname: string; isShared?: boolean },
): void {
  app.listen({
    ...at,
    idleTimeout: IDLE_SECONDS,
    // Bun keeps nothing of a body that nobody reads, and waits with reading it.
    maxRequestBodySize: MAX_BODY_BYTES,
    reusePort: isShared,
  });
  if (!app.server) throw new Error("the server does not listen");
  visitors.attach(app.server);
}
