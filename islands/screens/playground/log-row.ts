// What the usage log says of an answer: its charge and where its row is. Rows may follow the answer by a few seconds.
// Refuses to guess a price: what is shown is what was charged.
import { LogType } from "../../../src/shared/enums.ts";
import { api, call } from "../../lib/api.ts";
import { user } from "../../lib/boot.ts";
import { rowKeyOf } from "../../lib/log-key.ts";
import { patchUrl } from "../../lib/url-state.ts";
import type { Logged, Message } from "./conversation.ts";

const ADMIN_ROLE = 10;
/** The link's range of time around the row. */
const AROUND_SECONDS = 3600;

/** Replaced in tests. A stopped answer is settled when its upstream has ended, so it is waited for longer. */
export const patience = {
  waitsMs: [0, 250, 500, 1000, 2000, 4000, 8000],
  stoppedWaitsMs: [15_000, 30_000, 60_000],
  sleep: (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms)),
};

/** Undefined: the log has no row of the call (yet), or it cannot be read. */
async function lookUp(requestId: string): Promise<Logged | undefined> {
  const isAdmin = (user.peek()?.role ?? 0) >= ADMIN_ROLE;
  const query = { request_id: requestId, page_size: "20" };
  const { items } = await (isAdmin ? call(api.log.get({ query })) : call(api.log.self.get({ query })));
  const charges = items.filter((row) => row.type === LogType.consume);
  const row = charges[0] ?? items[0];
  if (!row) return undefined;
  return {
    quota: charges.reduce((sum, { quota }) => sum + quota, 0),
    at: row.created_at,
    key: rowKeyOf(row, isAdmin),
  };
}

/** Looks again and again until the row is there; gives up quietly: the cost is an extra, the answer is there. */
export async function findLogged({
  requestId,
  status,
}: Pick<Message, "requestId" | "status">): Promise<Logged | undefined> {
  if (requestId === undefined) return undefined;
  const { waitsMs, stoppedWaitsMs, sleep } = patience;
  for (const waitMs of status === "incomplete" ? [...waitsMs, ...stoppedWaitsMs] : waitsMs) {
    if (waitMs > 0) await sleep(waitMs);
    try {
      const logged = await lookUp(requestId);
      if (logged) return logged;
    } catch {
      // The network may be back with the next look.
    }
  }
  return undefined;
}

/** The address of the usage log with the row of the call opened. */
export function logAddress(requestId: string, { at, key }: Logged): string {
  return patchUrl("/log", {
    request_id: requestId,
    start_timestamp: at - AROUND_SECONDS,
    end_timestamp: at + AROUND_SECONDS,
    id: key,
  });
}
