// The inbox's rows: opened, met again, closed, put off, claimed for a letter; each in one statement that several nodes may run.
// Refuses a second row for the same cause: kind and subject are unique.
import { and, asc, desc, eq, exists, gt, inArray, lt, lte, not, or, sql } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import { countRows, q } from "../../db/database.ts";
import type { Database, Orm, Steps } from "../../db/database.ts";
import { ChannelStatus } from "../../shared/enums.ts";
import { INBOX_KINDS, inboxKinds, isInboxKind } from "../../shared/inbox.ts";
import type { InboxKind, InboxParams } from "../../shared/inbox.ts";
import { jsonObject } from "../../shared/json-object.ts";

/** An item is told of at most this often. */
export const TOLD_SECONDS = 3600;
/** What lasts is told of again so much later. */
const REMIND_SECONDS = 86_400;
/** A cause that comes back within this time goes on with its count. */
const SAME_SECONDS = 86_400;
/** A told time further ahead than this was written before somebody set the clock back. */
const AHEAD_SECONDS = 300;
const KEPT_SECONDS = 30 * 86_400;
/** More are not kept in memory, and new causes are left out until some are closed, but for those of calls and money at stake. */
export const MOST_OPEN = 1000;
const BROKEN = INBOX_KINDS.filter((kind) => inboxKinds[kind].tone === "broken");

type Row = Database["t"]["inboxItems"]["$inferSelect"];

/** An item as the program reads it: its kind is known, its params are parsed. */
export interface InboxItem extends Omit<Row, "kind" | "params"> {
  kind: InboxKind;
  params: InboxParams;
}

/** What is written of a cause. */
export interface MetCause {
  kind: InboxKind;
  subject: string;
  params: InboxParams;
  /** How often it was met; 0: it merely lasts. */
  count: number;
  /** Unix seconds. */
  firstAt: number;
  lastAt: number;
  /** A letter of it went out already, at this time; 0 = none did. */
  toldAt: number;
}

function itemsOf(rows: readonly Row[]): InboxItem[] {
  return rows.flatMap((row) =>
    // A kind of another build has no sentence here.
    isInboxKind(row.kind)
      ? [{ ...row, kind: row.kind, params: (jsonObject(row.params) ?? {}) as InboxParams }]
      : [],
  );
}

/** Opens the item or meets it again; yields the row as it stands then. */
export function* meetSteps(
  tx: Orm,
  { inboxItems: t }: Database["t"],
  met: MetCause,
): Steps<InboxItem | undefined> {
  const { kind, subject, count, firstAt, lastAt, toldAt } = met;
  const isOpen = sql`${t.closedAt} = 0`;
  const owed = toldAt > 0 ? 0 : lastAt;
  // What merely lasts owes a letter when it begins, and a day after the last one.
  const owedAgain =
    count > 0 || toldAt > 0
      ? sql`${owed}`
      : sql`case when ${t.closedAt} <> 0 or (${t.toldAt} > 0 and ${t.toldAt} <= ${lastAt - REMIND_SECONDS})
          then ${owed} else ${t.owedAt} end`;
  const rows = yield* q(
    tx
      .insert(t)
      .values({
        kind,
        subject,
        params: JSON.stringify(met.params),
        openedAt: firstAt,
        lastSeenAt: lastAt,
        count: Math.max(1, count),
        toldAt,
        owedAt: owed,
      })
      .onConflictDoUpdate({
        target: [t.kind, t.subject],
        set: {
          params: sql`excluded.params`,
          openedAt: sql`case when ${isOpen} then ${t.openedAt} else excluded.opened_at end`,
          lastSeenAt: sql`excluded.last_seen_at`,
          count: sql`case when ${isOpen} then ${t.count} + ${count}
            when ${t.closedAt} > ${lastAt - SAME_SECONDS} then ${t.count} + excluded.count else excluded.count end`,
          ...(toldAt > 0 ? { toldAt } : {}),
          owedAt: owedAgain,
          closedAt: 0,
          closedBy: 0,
        },
      })
      .returning(),
  );
  return itemsOf(rows)[0];
}

/** Closes what is open of the cause; yields it to the one who did. */
export function* closeSteps(
  tx: Orm,
  { inboxItems: t }: Database["t"],
  { kind, subject, atSeconds }: { kind: InboxKind; subject: string; atSeconds: number },
): Steps<InboxItem | undefined> {
  const rows = yield* q(
    tx
      .update(t)
      .set({ closedAt: atSeconds, closedBy: 0, owedAt: 0 })
      .where(and(eq(t.kind, kind), eq(t.subject, subject), eq(t.closedAt, 0)))
      .returning(),
  );
  return itemsOf(rows)[0];
}

/** What is open, the newest first; where it is too much, what puts calls or money at stake is there. */
export async function openItems({ orm, t }: Database): Promise<InboxItem[]> {
  const { inboxItems: items } = t;
  const rows = await orm
    .select()
    .from(items)
    .where(eq(items.closedAt, 0))
    .orderBy(
      asc(sql`case when ${inArray(items.kind, BROKEN)} then 0 else 1 end`),
      desc(items.openedAt),
      desc(items.id),
    )
    .limit(MOST_OPEN);
  return itemsOf(rows.toSorted((a, b) => b.openedAt - a.openedAt || b.id - a.id));
}

/** Of these subjects of a kind, when each was last closed; open ones say 0, unknown ones are left out. */
export async function closedTimes(
  { orm, t }: Database,
  kind: InboxKind,
  subjects: readonly string[],
): Promise<Map<string, number>> {
  if (subjects.length === 0) return new Map();
  const { inboxItems: items } = t;
  const rows = await orm
    .select({ subject: items.subject, closedAt: items.closedAt })
    .from(items)
    .where(and(eq(items.kind, kind), inArray(items.subject, [...subjects])));
  return new Map(rows.map(({ subject, closedAt }) => [subject, closedAt]));
}

/** Whether a letter of the item may go out now. */
export function isDue({ owedAt, toldAt, snoozedUntil }: InboxItem, nowSeconds: number): boolean {
  const isRested = toldAt <= nowSeconds - TOLD_SECONDS || toldAt > nowSeconds + AHEAD_SECONDS;
  return owedAt > 0 && snoozedUntil <= nowSeconds && isRested;
}

/** Takes the item's letter upon this node; false where another one has. */
export async function claimLetter(
  { orm, t }: Database,
  item: InboxItem,
  nowSeconds: number,
): Promise<boolean> {
  const { inboxItems: items } = t;
  const claimed = await orm
    .update(items)
    .set({ toldAt: nowSeconds, owedAt: 0 })
    .where(
      and(eq(items.id, item.id), eq(items.closedAt, 0), gt(items.owedAt, 0), eq(items.toldAt, item.toldAt)),
    )
    .returning({ id: items.id });
  return claimed.length > 0;
}

/** The letter did not arrive: it is due again after `afterSeconds`. */
export async function giveBackLetter(
  { orm, t }: Database,
  { item, claimedAt, afterSeconds }: { item: InboxItem; claimedAt: number; afterSeconds: number },
): Promise<void> {
  const { inboxItems: items } = t;
  await orm
    .update(items)
    .set({ toldAt: claimedAt - TOLD_SECONDS + afterSeconds, owedAt: item.owedAt })
    .where(and(eq(items.id, item.id), eq(items.toldAt, claimedAt), eq(items.closedAt, 0)))
    .returning({ id: items.id });
}

/** Nobody wants the letter that is due. */
export async function dropLetter({ orm, t }: Database, { id, owedAt }: InboxItem): Promise<void> {
  const { inboxItems: items } = t;
  await orm
    .update(items)
    .set({ owedAt: 0 })
    .where(and(eq(items.id, id), eq(items.owedAt, owedAt)));
}

/**
 * Deletes what was closed long ago. Where a look asks `closedTimes` of a cause that still stands, the row says that somebody knows: without
 * it the item would be back.
 */
export async function purgeItems({ orm, t }: Database, nowSeconds: number): Promise<void> {
  const { inboxItems: items, channels, nodes } = t;
  const isOff = orm
    .select({ one: sql`1` })
    .from(channels)
    .where(
      and(
        eq(sql`cast(${channels.id} as text)`, items.subject),
        eq(channels.status, ChannelStatus.autoDisabled),
      ),
    );
  const isLost = orm
    .select({ one: sql`1` })
    .from(nodes)
    .where(and(eq(nodes.nodeId, items.subject), gt(nodes.leaseUntil, 0), lt(nodes.leaseUntil, nowSeconds)));
  const lasts = or(
    and(eq(items.kind, "channel"), exists(isOff)),
    and(eq(items.kind, "node_lost"), exists(isLost)),
  );
  const isOld = and(gt(items.closedAt, 0), lt(items.closedAt, nowSeconds - KEPT_SECONDS));
  await orm.delete(items).where(and(isOld, lasts && not(lasts)));
}

export const INBOX_STATES = ["open", "snoozed", "closed"] as const;
export type InboxState = (typeof INBOX_STATES)[number];

export interface InboxQuery {
  /** Absent: all of them. */
  state?: InboxState | undefined;
  kind?: InboxKind | undefined;
  offset: number;
  limit: number;
  nowSeconds: number;
}

function stateFilter(
  { inboxItems: items }: Database["t"],
  state: InboxState,
  nowSeconds: number,
): SQL | undefined {
  if (state === "closed") return gt(items.closedAt, 0);
  const snooze =
    state === "snoozed" ? gt(items.snoozedUntil, nowSeconds) : lte(items.snoozedUntil, nowSeconds);
  return and(eq(items.closedAt, 0), snooze);
}

/** A page of the list: what is open first, then what was closed last. */
export async function listItems(
  { orm, t }: Database,
  { state, kind, offset, limit, nowSeconds }: InboxQuery,
): Promise<{ items: InboxItem[]; total: number }> {
  const { inboxItems: items } = t;
  const where = and(
    state && stateFilter(t, state, nowSeconds),
    kind === undefined ? undefined : eq(items.kind, kind),
  );
  const rows = await orm
    .select()
    .from(items)
    .where(where)
    .orderBy(
      asc(sql`case when ${items.closedAt} = 0 then 0 else 1 end`),
      desc(items.closedAt),
      desc(items.openedAt),
      desc(items.id),
    )
    .limit(limit)
    .offset(offset);
  const [count] = await orm.select({ total: countRows() }).from(items).where(where);
  return { items: itemsOf(rows), total: count?.total ?? 0 };
}

/** The item of this id, in any state. */
export async function findItem({ orm, t }: Database, id: number): Promise<InboxItem | undefined> {
  const { inboxItems: items } = t;
  return itemsOf(await orm.select().from(items).where(eq(items.id, id)))[0];
}

/** What a person does to an open item; the row as it stands then, undefined where it was not open. */
export async function changeItem(
  { orm, t }: Database,
  id: number,
  change: { closedAt: number; closedBy: number } | { snoozedUntil: number },
): Promise<InboxItem | undefined> {
  const { inboxItems: items } = t;
  const set = "closedAt" in change ? { ...change, owedAt: 0 } : change;
  const rows = await orm
    .update(items)
    .set(set)
    .where(and(eq(items.id, id), eq(items.closedAt, 0)))
    .returning();
  return itemsOf(rows)[0];
}
