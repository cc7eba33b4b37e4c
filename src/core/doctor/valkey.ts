// The Valkey or Redis that REDIS_URL names: whether it lets this site in, how fast it answers, what it does when it is full.
// Refuses to write to it.
import { probeValkey } from "../../db/valkey-probe.ts";
import type { ValkeyAddress } from "../../db/valkey-url.ts";
import type { CheckRow, Finding } from "./report.ts";

/** Calls go on without an answer from 4 ms on. */
const SLOW_MS = 2;

/** No row where the site has none: nothing is missing then. */
export function valkeyChecks(address: ValkeyAddress | undefined): CheckRow[] {
  return address ? [{ id: "valkey", look: () => look(address) }] : [];
}

async function look(address: ValkeyAddress): Promise<Finding> {
  const place = `${address.host}:${address.port}`;
  const found = await probeValkey(address);
  if (found.kind === "refuses")
    return {
      status: "fail",
      text: `${place} refuses: ${found.reason}`,
      advice: "The start refuses this, too: correct user, password or number in REDIS_URL.",
    };
  if (found.kind === "silent")
    return {
      status: "warn",
      text: `${place} is away: ${found.reason}`,
      advice: "Calls go on; until it is back each process limits by what it knows.",
    };
  const { version, evictionPolicy } = found;
  const tookMs = Number(found.tookMs.toFixed(2));
  const figures = { version, policy: evictionPolicy, ms: tookMs };
  const text = `${place}, version ${version || "unknown"}, maxmemory-policy ${evictionPolicy || "unknown"}, answers in ${tookMs} ms`;
  if (evictionPolicy.startsWith("allkeys"))
    return {
      status: "warn",
      text,
      advice:
        "A full server would forget limits that are in force: set maxmemory-policy noeviction or volatile-ttl.",
      figures,
    };
  return {
    status: tookMs > SLOW_MS ? "warn" : "ok",
    text,
    advice: "Run it near the nodes: what has not answered after 4 ms is decided without it.",
    figures,
  };
}
