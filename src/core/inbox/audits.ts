// The audit of the books as a cause: what it finds waits for a person until a later one finds nothing.
import type { Deps } from "../deps.ts";
import { audit } from "../ledger/audit.ts";

/** Once something was found, it is looked again this often whatever the option says. */
const AGAIN_HOURS = 1;

/** Hours until the next audit; 0 = none. */
export function auditHours({ options, inbox }: Pick<Deps, "options" | "inbox">): number {
  const hours = options.get("inbox.audit_hours");
  return inbox.subjects("audit").length > 0 ? Math.min(AGAIN_HOURS, hours || AGAIN_HOURS) : hours;
}

/** Recomputes every sum of the books and says in the inbox what is off. */
export async function auditForInbox({
  db,
  clock,
  inbox,
}: Pick<Deps, "db" | "clock" | "inbox">): Promise<void> {
  const { differences, total } = await audit(db, { nowMs: clock.nowMs() });
  const [first] = differences;
  if (!first) return inbox.gone("audit");
  const { what, id, expected, found } = first;
  inbox.keep({ kind: "audit", params: { count: total, what, id, expected, found } });
}
