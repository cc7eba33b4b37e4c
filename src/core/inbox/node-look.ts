// Nodes that are gone without a word: their lease has ended, they never let go of it, and nobody entered their journal since. Of
// those that said goodbye, what they told of themselves ends with them.
// Refuses to trust this machine's clock: the database says how long ago a lease ended.
import { and, desc, gt, inArray, lt, ne, or, sql } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import { fixedQuery } from "../../db/database.ts";
import type { Deps } from "../deps.ts";
import type { InboxService } from "./inbox.ts";
import { closedTimes } from "./items.ts";
import { lostCause } from "./ledger-causes.ts";

/** A restart takes less; a machine that starts anew as well. */
const LOST_SECONDS = 120;
/** In one look, beside those that are told of already. */
const MOST_LOST = 100;

interface LostNode {
  id: string;
  /** Unix seconds on the database's clock. */
  leaseUntil: number;
  goneSeconds: number;
}

/** Nearly always there is none: asked by a text that nobody has to build. */
const ANY_LOST = `select 1 from nodes
  where lease_until > 0 and lease_until < floor(extract(epoch from now())) - ${LOST_SECONDS} and node_id <> $1 limit 1`;

const now: SQL<number> = sql<number>`floor(extract(epoch from now()))::bigint`;

/**
 * Where nodes share a database: those whose lease ended two minutes ago or earlier and was never given back. A clean stop,
 * a start on the same data, and `weir journal` give it back.
 */
async function lostNodes({ db, nodeId }: Pick<Deps, "db" | "nodeId">, open: string[]): Promise<LostNode[]> {
  if (db.kind !== "postgres") return [];
  if (open.length === 0 && (await fixedQuery(db.orm, ANY_LOST, [nodeId])).length === 0) return [];
  const { nodes } = db.t;
  // No row is ever deleted: those that are told of come first, then the latest losses.
  const isTold = open.length > 0 ? [desc(inArray(nodes.nodeId, open))] : [];
  const rows = await db.orm
    .select({ id: nodes.nodeId, leaseUntil: nodes.leaseUntil, now: now.mapWith(Number) })
    .from(nodes)
    .where(
      and(
        gt(nodes.leaseUntil, 0),
        lt(nodes.leaseUntil, sql`${now} - ${LOST_SECONDS}`),
        ne(nodes.nodeId, nodeId),
      ),
    )
    .orderBy(...isTold, desc(nodes.leaseUntil))
    .limit(open.length + MOST_LOST);
  return rows.map(({ id, leaseUntil, now: at }) => ({ id, leaseUntil, goneSeconds: at - leaseUntil }));
}

/** An item that was closed after the loss stays closed: somebody knows that nothing will come back. */
export async function lookAtNodes(
  deps: Pick<Deps, "db" | "nodeId"> & { inbox: Pick<InboxService, "keep" | "gone" | "subjects"> },
): Promise<void> {
  const { db, inbox } = deps;
  const open = inbox.subjects("node_lost");
  const lost = await lostNodes(deps, open);
  for (const id of open) if (!lost.some((node) => node.id === id)) inbox.gone("node_lost", id);
  if (lost.length === 0) return;
  const ids = lost.map(({ id }) => id);
  const closedAt = await closedTimes(db, "node_lost", ids);
  for (const { id, leaseUntil, goneSeconds } of lost) {
    if (!open.includes(id) && (closedAt.get(id) ?? 0) >= leaseUntil) continue;
    inbox.keep(lostCause(id, goneSeconds));
  }
}

/** What only the node itself sees. Money that may be missing, and files that wait for a person, do not go with it. */
const OWN_KINDS = ["disk", "database", "node_stopped"] as const;
/** A restart is shorter, and the node itself says how it is when it is back. */
const LEFT_SECONDS = 600;

/** Of these nodes those that live, are lost, or may be about to start anew. The embedded database has one process. */
async function stillThere({ db }: Pick<Deps, "db">, ids: readonly string[]): Promise<ReadonlySet<string>> {
  if (db.kind !== "postgres") return new Set();
  const { nodes } = db.t;
  const rows = await db.orm
    .select({ id: nodes.nodeId })
    .from(nodes)
    .where(
      and(
        inArray(nodes.nodeId, [...ids]),
        or(gt(nodes.leaseUntil, 0), gt(nodes.updatedAt, sql`${now} - ${LEFT_SECONDS}`)),
      ),
    );
  return new Set(rows.map(({ id }) => id));
}

/** Closes what a node told of itself that has stopped in order, or that the database does not know. */
export async function closeForGone(
  deps: Pick<Deps, "db" | "nodeId"> & { inbox: Pick<InboxService, "gone" | "subjects"> },
): Promise<void> {
  const { inbox, nodeId } = deps;
  const told = OWN_KINDS.flatMap((kind) =>
    inbox.subjects(kind).flatMap((id) => (id === nodeId ? [] : [{ kind, id }])),
  );
  if (told.length === 0) return;
  const there = await stillThere(
    deps,
    told.map(({ id }) => id),
  );
  for (const { kind, id } of told) if (!there.has(id)) inbox.gone(kind, id);
}
