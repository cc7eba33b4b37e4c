// What administrators do to items by hand: close, put off, take up again; and the list as the console reads it.
// Refuses to close what lasts as long as somebody looks after it: it would be back with the next look; and to administrators what tells root of one of them.
import { Failure, refuse } from "../../shared/failures.ts";
import { Role } from "../../shared/enums.ts";
import { closesItself, inboxKinds } from "../../shared/inbox.ts";
import type { Deps, UserAccount } from "../deps.ts";
import { changeItem, findItem, listItems } from "./items.ts";
import type { InboxItem, InboxQuery, InboxState } from "./items.ts";

type HandDeps = Pick<Deps, "db" | "clock" | "inbox">;

const nowSeconds = ({ clock }: Pick<Deps, "clock">): number => Math.floor(clock.nowMs() / 1000);

/** An item on the wire; times in Unix seconds, 0 = never. */
function itemJson(item: InboxItem) {
  return {
    id: item.id,
    kind: item.kind,
    subject: item.subject,
    params: item.params,
    count: item.count,
    opened_at: item.openedAt,
    last_seen_at: item.lastSeenAt,
    told_at: item.toldAt,
    snoozed_until: item.snoozedUntil,
    closed_at: item.closedAt,
    /** Id of whoever closed it; 0 = it closed itself. */
    closed_by: item.closedBy,
  };
}

export type InboxItemJson = ReturnType<typeof itemJson>;

export async function listInbox(
  deps: HandDeps,
  query: Omit<InboxQuery, "nowSeconds">,
): Promise<{ items: InboxItemJson[]; total: number }> {
  const { items, total } = await listItems(deps.db, { ...query, nowSeconds: nowSeconds(deps) });
  return { items: items.map(itemJson), total };
}

export interface InboxChange {
  id: number;
  /** "open" ends a snooze. */
  state: InboxState;
  /** Of a snooze. */
  hours: number;
}

/**
 * Answers the item as it stands then. Throws Failures: `record_missing` also for what is closed already, `inbox_lasting`,
 * `inbox_root`.
 */
export async function changeInboxItem(
  deps: HandDeps,
  actor: Pick<UserAccount, "id" | "role">,
  { id, state, hours }: InboxChange,
): Promise<InboxItemJson> {
  const found = await findItem(deps.db, id);
  if (!found || found.closedAt !== 0) throw refuse("record_missing");
  if (inboxKinds[found.kind].isRootsToClose === true && actor.role < Role.root)
    throw new Failure("forbidden", "inbox_root");
  const now = nowSeconds(deps);
  if (state === "closed" && closesItself(found.kind, found.lastSeenAt, now))
    throw new Failure("client", "inbox_lasting", { param: "state" });
  const changed = await changeItem(
    deps.db,
    id,
    state === "closed"
      ? { closedAt: now, closedBy: actor.id }
      : { snoozedUntil: state === "snoozed" ? now + hours * 3600 : 0 },
  );
  if (!changed) throw refuse("record_missing");
  await deps.inbox.changed([id]);
  return itemJson(changed);
}
