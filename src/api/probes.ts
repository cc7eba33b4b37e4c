// What supervisors and balancers ask: /healthz, whether the event loop answers; /readyz, whether calls should come here.
// Refuses to count, log or look up who asks: probes come every second, without cookies, by address.
import { Elysia } from "elysia";
import type { Readiness } from "../core/site/readiness.ts";
import { checkedBy } from "../http/session.ts";

const open = checkedBy("nobody: probe");

function answer(told: { status: string; worker?: number; valkey?: string }, code: number): Response {
  return Response.json(told, { status: code, headers: { "cache-control": "no-store" } });
}

/** `worker`: which one of several this process is. */
export function probes(readiness: Readiness, worker: number | undefined) {
  const healthy = { status: "ok", ...(worker === undefined ? {} : { worker }) };
  return new Elysia()
    .get("/healthz", async () => answer(healthy, 200), open)
    .get(
      "/readyz",
      async () => {
        const { isReady, ...told } = readiness.look();
        return answer(told, isReady ? 200 : 503);
      },
      open,
    );
}
