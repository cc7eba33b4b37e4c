// What supervisors and balancers ask: /healthz, whether the event loop answers; /readyz, whether calls should come here.
// Refuses to count, log or look up who asks: probes come every second, without cookies, by address.
import { Elysia } from "elysia";
import type { Readiness } from "../core/site/readiness.ts";
import { checkedBy } from "../http/session.ts";

const open = checkedBy("nobody: probe");

function answer(status: string, code: number): Response {
  return Response.json({ status }, { status: code, headers: { "cache-control": "no-store" } });
}

export function probes(readiness: Readiness) {
  return new Elysia()
    .get("/healthz", async () => answer("ok", 200), open)
    .get(
      "/readyz",
      async () => {
        const { isReady, status } = readiness.look();
        return answer(status, isReady ? 200 : 503);
      },
      open,
    );
}
