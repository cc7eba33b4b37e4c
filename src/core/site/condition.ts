// How the whole site is, as root reads it: its nodes, its database, its channels, what waits, when the last backup was.
// Refuses to stand for a database that is away: then this node tells of itself alone.
import { desc, gt, inArray, isNull, or, sql } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import { countRows } from "../../db/database.ts";
import { backupState } from "../backup/state.ts";
import type { BackupState } from "../backup/state.ts";
import type { Deps } from "../deps.ts";
import { within } from "../kit/deadline.ts";
import { readFigures } from "./node-figures.ts";
import type { NodeFigures } from "./node-figures.ts";
import { auditDifferences, readChannels, readDatabase } from "./node-reading.ts";
import type { ChannelReading, DatabaseReading } from "./node-reading.ts";

const DATABASE_MS = 2000;
/** A node says every fifteen seconds how it is. */
const SILENT_SECONDS = 45;
/** One that has been silent for longer is gone for good, or was never meant to stay. */
const SHOWN_SECONDS = 86_400;
const MOST_NODES = 100;

export interface NodeCondition {
  id: string;
  /** The one that answers. */
  isHere: boolean;
  isLive: boolean;
  /** It ended without having stopped in order, and nobody entered its journal or gave it up. */
  isLost: boolean;
  /** Unix seconds of its last word. */
  seenAt: number;
  /** Undefined: it has told nothing yet. */
  figures: NodeFigures | undefined;
}

export interface SiteCondition {
  nodes: NodeCondition[];
  database: DatabaseReading & { kind: "sqlite" | "postgres" };
  channels: ChannelReading[];
  /** Differences that the last audit found. */
  differences: number;
  /** Undefined: the database does not say. */
  backup: BackupState | undefined;
  /** Letters that have not left yet. */
  letters: number | undefined;
}

type ConditionDeps = Pick<
  Deps,
  "db" | "clock" | "nodeId" | "inbox" | "routing" | "picker" | "keyring" | "ownFigures"
>;

/** Rows of nodes are dated by the clock that all of them share. */
const databaseSeconds = (deps: Pick<Deps, "db" | "clock">): SQL<number> =>
  deps.db.kind === "postgres" ? sql`floor(extract(epoch from now()))::bigint` : sql`${nowSeconds(deps)}`;

const nowSeconds = ({ clock }: Pick<Deps, "clock">): number => Math.floor(clock.nowMs() / 1000);

async function otherNodes(deps: ConditionDeps): Promise<NodeCondition[]> {
  const { db, nodeId } = deps;
  const { nodes } = db.t;
  const now = databaseSeconds(deps);
  const lost = deps.inbox.subjects("node_lost");
  const rows = await db.orm
    .select({
      id: nodes.nodeId,
      seenAt: nodes.updatedAt,
      leaseUntil: nodes.leaseUntil,
      figures: nodes.figures,
      now: now.mapWith(Number),
    })
    .from(nodes)
    .where(
      or(
        gt(nodes.updatedAt, sql`${now} - ${SHOWN_SECONDS}`),
        gt(nodes.leaseUntil, now),
        inArray(nodes.nodeId, lost),
      ),
    )
    .orderBy(desc(nodes.updatedAt))
    .limit(MOST_NODES);
  return rows
    .filter(({ id }) => id !== nodeId)
    .map(({ id, seenAt, leaseUntil, figures, now: atSeconds }) => ({
      id,
      isHere: false,
      isLive: leaseUntil > 0 && atSeconds - seenAt <= SILENT_SECONDS,
      isLost: lost.includes(id),
      seenAt,
      figures: readFigures(figures),
    }));
}

async function countLetters({ db }: Pick<Deps, "db">): Promise<number> {
  const { outbox } = db.t;
  const [row] = await db.orm.select({ waiting: countRows() }).from(outbox).where(isNull(outbox.deadAt));
  return row?.waiting ?? 0;
}

/** Nothing of the database is waited for longer than two seconds. */
export async function siteCondition(deps: ConditionDeps): Promise<SiteCondition> {
  const { db, nodeId } = deps;
  const asked = <T>(work: () => Promise<T>): Promise<T | undefined> =>
    within(DATABASE_MS, work()).catch(() => undefined);
  const [figures, database, others, backup, letters] = await Promise.all([
    deps.ownFigures(),
    readDatabase(deps),
    asked(() => otherNodes(deps)),
    asked(() => backupState(db)),
    asked(() => countLetters(deps)),
  ]);
  const here = { id: nodeId, isHere: true, isLive: true, isLost: false, seenAt: nowSeconds(deps), figures };
  return {
    nodes: [here, ...(others ?? [])],
    database: { ...database, kind: db.kind },
    channels: readChannels(deps),
    differences: auditDifferences(deps),
    backup,
    letters,
  };
}
