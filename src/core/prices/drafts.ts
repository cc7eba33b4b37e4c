// Drafts of price changes, and their moments: administrators prepare them, root sets when they come into force.
// Refuses to apply a scheduled draft whose names were changed since it was scheduled, or that takes the ratio of a group in
// use: it fails, and says why.
import { and, asc, desc, eq, exists, inArray, lte, ne, sql } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import { countRows, q } from "../../db/database.ts";
import type { Database, Orm, Steps } from "../../db/database.ts";
import { LogType, Role } from "../../shared/enums.ts";
import { Failure, refuse } from "../../shared/failures.ts";
import { priceDraftFailed } from "../logs/sentences.ts";
import type { Deps } from "../deps.ts";
import { NOW } from "../../db/moments.ts";
import type { Moment } from "../../db/moments.ts";
import type { WriteMade } from "../options/store.ts";
import { changesAgainst, placesText, writesOf } from "./changes.ts";
import type { PriceChange, SentChange } from "./changes.ts";
import { refuseUsedGroups } from "./group-use.ts";
import { lockPrices } from "./price-lock.ts";
import { priceState, pricesInside, refuseStale, touchedSince, writeSteps } from "./revisions.ts";
import { takenOf } from "./taken.ts";

type Row = Database["t"]["priceDrafts"]["$inferSelect"];

export const DRAFT_STATES = ["open", "scheduled", "applied", "failed", "discarded"] as const;
type DraftState = (typeof DRAFT_STATES)[number];

/** Why a draft could not be applied at its moment. */
interface DraftFailure {
  /** `price_plan_stale`, `price_group_in_use`, or what an option refused. */
  code: string;
  /** What was changed since it was scheduled. */
  names: string;
}

export interface Draft extends Omit<Row, "changes" | "state" | "failure"> {
  state: DraftState;
  changes: PriceChange[];
  failure: DraftFailure | null;
}

interface Actor {
  id: number;
  username: string;
  role: number;
}

type DraftDeps = Pick<Deps, "db" | "options" | "clock" | "inbox">;

const shown = (row: Row): Draft => ({
  ...row,
  state: row.state as DraftState,
  changes: JSON.parse(row.changes) as PriceChange[],
  failure: row.failure === "" ? null : (JSON.parse(row.failure) as DraftFailure),
});

const nowSeconds = ({ clock }: Pick<Deps, "clock">): number => Math.floor(clock.nowMs() / 1000);

export interface DraftQuery {
  page: number;
  pageSize: number;
  /** All but discarded ones where absent. */
  state?: DraftState | undefined;
}

/** The latest first. */
export async function listDrafts(
  db: Database,
  { page, pageSize, state }: DraftQuery,
): Promise<{ items: Draft[]; total: number }> {
  const { priceDrafts } = db.t;
  const where = state === undefined ? ne(priceDrafts.state, "discarded") : eq(priceDrafts.state, state);
  const rows = await db.orm
    .select()
    .from(priceDrafts)
    .where(where)
    .orderBy(desc(priceDrafts.id))
    .limit(pageSize)
    .offset((page - 1) * pageSize);
  const [counted] = await db.orm.select({ total: countRows() }).from(priceDrafts).where(where);
  return { items: rows.map(shown), total: counted?.total ?? 0 };
}

export interface DraftInput {
  title: string;
  note: string;
  changes: readonly SentChange[];
  announce?: boolean | undefined;
}

export async function createDraft(deps: DraftDeps, input: DraftInput, actor: Actor): Promise<Draft> {
  const { db } = deps;
  const { revision, texts } = await priceState(db);
  const changes = changesAgainst(texts, input.changes);
  // What the kinds of the options refuse is told now, not when somebody plans it.
  writesOf(texts, changes);
  const now = nowSeconds(deps);
  const [row] = await db.orm
    .insert(db.t.priceDrafts)
    .values({
      title: input.title,
      note: input.note,
      announce: input.announce ?? false,
      changes: JSON.stringify(changes),
      parent: revision,
      userId: actor.id,
      username: actor.username,
      createdAt: now,
      updatedAt: now,
    })
    .returning();
  if (!row) throw refuse("record_missing");
  return shown(row);
}

/** Throws `record_missing`. */
export async function draftOf(db: Database, id: number): Promise<Draft> {
  const { priceDrafts } = db.t;
  const [row] = await db.orm.select().from(priceDrafts).where(eq(priceDrafts.id, id));
  if (!row) throw refuse("record_missing");
  return shown(row);
}

/** Throws where the draft is done with, where somebody changed it meanwhile, and where only root may touch it. */
function assertChangeable(draft: Draft, actor: Actor, version: number | undefined): void {
  if (draft.state === "applied" || draft.state === "discarded") throw refuse("price_draft_closed");
  if (version !== undefined && version !== draft.version) throw refuse("price_draft_changed");
  if (draft.state === "scheduled" && actor.role < Role.root)
    throw new Failure("forbidden", "price_draft_scheduled");
}

export interface DraftEdit {
  id: number;
  /** As it was read. */
  version: number;
  title?: string | undefined;
  note?: string | undefined;
  changes?: readonly SentChange[] | undefined;
  /** Whether users are told of it while it is scheduled. */
  announce?: boolean | undefined;
  /** Unix seconds, for root; 0: by hand again. Its changes are then those against the prices of `parent`. */
  effectiveAt?: number | undefined;
  /** The revision that whoever schedules it has looked at. */
  parent?: number | undefined;
}

/** The changes as edited. A name that stood in the draft keeps what it was drafted against: a plan tells what has moved. */
function edited(draft: Draft, fresh: readonly PriceChange[]): PriceChange[] {
  const known = new Map(draft.changes.map((each) => [`${each.key} ${each.name}`, each]));
  return fresh.map((each) => ({ ...each, before: (known.get(`${each.key} ${each.name}`) ?? each).before }));
}

export async function changeDraft(deps: DraftDeps, edit: DraftEdit, actor: Actor): Promise<Draft> {
  const { db } = deps;
  const draft = await draftOf(db, edit.id);
  assertChangeable(draft, actor, edit.version);
  const isScheduling = edit.effectiveAt !== undefined && edit.effectiveAt > 0;
  if (edit.effectiveAt !== undefined && actor.role < Role.root)
    throw new Failure("forbidden", "price_draft_scheduled");
  if (isScheduling && Number(edit.effectiveAt) <= nowSeconds(deps)) throw refuse("price_moment_past");
  const { revision, texts } = await priceState(db);
  if (isScheduling && revision !== edit.parent) await refuseStale(db, edit.parent ?? 0);
  const sent = edit.changes ?? draft.changes;
  const fresh = changesAgainst(texts, sent);
  writesOf(texts, fresh);
  if (isScheduling && fresh.length === 0) throw refuse("price_plan_empty");
  if (isScheduling) await refuseUsedGroups(db, texts, fresh);
  // What is edited is no longer what was scheduled.
  const state = isScheduling
    ? "scheduled"
    : edit.effectiveAt === undefined && edit.changes === undefined
      ? draft.state
      : "open";
  const isRebased = isScheduling || edit.changes !== undefined;
  const changes = isScheduling ? fresh : edit.changes === undefined ? draft.changes : edited(draft, fresh);
  const saved = await save(deps, draft, {
    title: edit.title ?? draft.title,
    note: edit.note ?? draft.note,
    announce: edit.announce ?? draft.announce,
    changes: JSON.stringify(changes),
    parent: isRebased ? revision : draft.parent,
    state,
    effectiveAt: isScheduling ? Number(edit.effectiveAt) : state === "scheduled" ? draft.effectiveAt : 0,
    ...(state === "failed" ? {} : { failure: "" }),
    ...(isScheduling ? { schedulerId: actor.id, schedulerName: actor.username } : {}),
  });
  if (saved.state !== "failed") handled(deps, saved.id);
  return saved;
}

/** Somebody has seen to a draft that failed. */
function handled({ inbox }: Pick<Deps, "inbox">, id: number): void {
  inbox.gone("price_draft", String(id));
}

/** Where nobody changed it since it was read. */
async function save(deps: DraftDeps, draft: Draft, set: Partial<Row>): Promise<Draft> {
  const { priceDrafts } = deps.db.t;
  const [row] = await deps.db.orm
    .update(priceDrafts)
    .set({ ...set, version: draft.version + 1, updatedAt: nowSeconds(deps) })
    .where(and(eq(priceDrafts.id, draft.id), eq(priceDrafts.version, draft.version)))
    .returning();
  if (!row) throw refuse("price_draft_changed");
  return shown(row);
}

export async function discardDraft(deps: DraftDeps, id: number, actor: Actor): Promise<void> {
  const draft = await draftOf(deps.db, id);
  assertChangeable(draft, actor, undefined);
  await save(deps, draft, { state: "discarded", effectiveAt: 0 });
  handled(deps, id);
}

type DueDeps = Pick<Deps, "db" | "options" | "clock" | "inbox" | "ledger" | "logger">;

/** How a draft's moment went; undefined: another node had it, or it was changed meanwhile. */
type Outcome = { revision: number } | { failure: DraftFailure } | undefined;

function isDue({ db }: Pick<Deps, "db">, now: Moment): SQL | undefined {
  const { priceDrafts } = db.t;
  return and(eq(priceDrafts.state, "scheduled"), lte(priceDrafts.effectiveAt, now));
}

/** Condition: the moment of a draft has come. */
export function draftsWait(deps: Pick<Deps, "db">): SQL {
  const some = deps.db.orm.select({ one: sql`1` }).from(deps.db.t.priceDrafts);
  return exists(some.where(isDue(deps, NOW)));
}

/**
 * Applies the drafts whose moment has come, the earliest first, also those whose moment passed while nothing ran. Each is one
 * atomic block that moves its row from scheduled: of several nodes one does it.
 */
export async function applyDueDrafts(deps: DueDeps): Promise<void> {
  const { priceDrafts } = deps.db.t;
  const due = await deps.db.orm
    .select()
    .from(priceDrafts)
    .where(isDue(deps, nowSeconds(deps)))
    .orderBy(asc(priceDrafts.effectiveAt), asc(priceDrafts.id));
  for (const row of due) {
    const draft = shown(row);
    const outcome = await applyDraft(deps, draft);
    if (outcome === undefined) continue;
    if ("revision" in outcome) {
      deps.logger.info("scheduled prices applied", { draft: draft.id, revision: outcome.revision });
      continue;
    }
    deps.logger.warn("scheduled prices not applied", { draft: draft.id, ...outcome.failure });
    const { code, names } = outcome.failure;
    deps.inbox.raise({
      kind: "price_draft",
      subject: String(draft.id),
      params: { title: draft.title === "" ? `#${draft.id}` : draft.title, why: names === "" ? code : names },
    });
    await deps.ledger.log({
      type: LogType.system,
      userId: draft.schedulerId,
      username: draft.schedulerName,
      content: priceDraftFailed(draft.title === "" ? `#${draft.id}` : draft.title, outcome.failure),
    });
  }
}

async function applyDraft(deps: DueDeps, draft: Draft): Promise<Outcome> {
  const author = {
    userId: draft.schedulerId,
    username: draft.schedulerName,
    kind: "schedule" as const,
    note: draft.note === "" ? draft.title : draft.note,
    draftId: draft.id,
    taken: takenOf(draft.changes),
  };
  try {
    const { texts } = await priceState(deps.db);
    // Who uses a group may have come since it was scheduled. What is stale says so itself.
    if (touchedSince(texts, draft.changes).length === 0)
      await refuseUsedGroups(deps.db, texts, draft.changes);
    return await deps.options.write((tx) => dueSteps(deps, tx, draft), author);
  } catch (error) {
    // An option of this build refuses what an older one took: that will not change by itself.
    if (!(error instanceof Failure) || error.kind !== "client") throw error;
    const failure = { code: error.code, names: "" };
    const set = { state: "failed", effectiveAt: 0, failure: JSON.stringify(failure) };
    const failed = await save(deps, draft, set).catch(() => undefined);
    return failed && { failure };
  }
}

function* dueSteps(deps: DueDeps, tx: Orm, draft: Draft): Steps<WriteMade<Outcome>> {
  const { db } = deps;
  const revision = yield* lockPrices(db, tx);
  const texts = yield* pricesInside(db, tx);
  const touched = touchedSince(texts, draft.changes);
  const failure = touched.length > 0 ? { code: "price_plan_stale", names: placesText(touched) } : undefined;
  const { priceDrafts } = db.t;
  const [moved] = yield* q(
    tx
      .update(priceDrafts)
      .set({
        state: failure ? "failed" : "applied",
        revisionId: failure ? 0 : revision + 1,
        effectiveAt: 0,
        failure: failure ? JSON.stringify(failure) : "",
        version: sql`${priceDrafts.version} + 1`,
        updatedAt: nowSeconds(deps),
      })
      .where(
        and(
          eq(priceDrafts.id, draft.id),
          inArray(priceDrafts.state, ["scheduled"]),
          eq(priceDrafts.version, draft.version),
        ),
      )
      .returning({ id: priceDrafts.id }),
  );
  if (!moved) return { writes: [], value: undefined };
  if (failure) return { writes: [], value: { failure } };
  const made = yield* writeSteps(deps, tx, { texts, changes: draft.changes });
  return { ...made, value: { revision: revision + 1 } };
}
