// The history of prices: every write of a price, ratio, group or plan is a revision, made in the same atomic block as the rows. Refuses to apply what was planned on an older revision, and to apply a part of a plan.
import { and, desc, eq, gt, inArray, or, sql } from "drizzle-orm";
import { contains, countRows, q } from "../../db/database.ts";
import type { Database, Orm, Steps } from "../../db/database.ts";
import { refuse } from "../../shared/failures.ts";
import { SOLD_PLANS } from "../../shared/price-desk.ts";
import type { Deps } from "../deps.ts";
import type { OptionKey } from "../options/definitions.ts";
import type { OptionAuthor, OptionRecorder, OptionWrite } from "../options/store.ts";
import {
  changesAgainst,
  differences,
  isPriceKey,
  isPriceOption,
  isSame,
  namesOf,
  placesText,
  PRICE_OPTIONS,
  tablesIn,
  textOf,
  textsWith,
  valueAt,
  writesOf,
} from "./changes.ts";
import type { PriceChange, PriceKey, PriceTexts, SentChange } from "./changes.ts";
import { fingerprintOf } from "./price-book.ts";
import { lockPrices, PRICE_MARK } from "./price-lock.ts";
import { refuseUsedGroups } from "./group-use.ts";
import { plansOnSale, plansText, planWritesOf, writePlanSteps } from "./sold-plans.ts";
import { rememberTaken, takenOf } from "./taken.ts";

/** Prices as the database has them, and the revision that made them so; 0: nobody has changed one yet. */
export interface PriceState {
  revision: number;
  texts: PriceTexts;
}

type Row = Database["t"]["priceRevisions"]["$inferSelect"];

export interface Revision extends Omit<Row, "changes"> {
  /** The revision that undid this one; 0 = none has. */
  undoneBy: number;
  /** The first names that it touched. */
  names: string[];
}

export interface RevisionDetail extends Revision {
  changes: PriceChange[];
}

const MOST_NAMES = 8;

export function* textsInside(db: Database, tx: Orm, keys: readonly OptionKey[]): Steps<PriceTexts> {
  const { options } = db.t;
  const rows = yield* q(
    tx
      .select()
      .from(options)
      .where(inArray(options.key, [...keys])),
  );
  return new Map(rows.map(({ key, value }) => [key as OptionKey, value]));
}

/** All that a change of prices can touch, as it stands inside the block. */
export function* pricesInside(db: Database, tx: Orm): Steps<PriceTexts> {
  const texts = yield* textsInside(db, tx, PRICE_OPTIONS);
  return new Map([...texts, [SOLD_PLANS, plansText(yield* q(plansOnSale(db, tx)))]]);
}

/** Makes a revision of every write that changes a price, whoever makes it and by whichever call. */
export function priceRecorder({ db, clock }: Pick<Deps, "db" | "clock">): OptionRecorder {
  return function* (tx, writes, author, beside = []) {
    const ofPrices = writes.filter(({ key }) => isPriceOption(key));
    const ofPlans = beside.filter((each): each is PriceChange => each.key === SOLD_PLANS);
    if (ofPrices.length + ofPlans.length === 0) return;
    const parent = yield* lockPrices(db, tx);
    const texts = yield* textsInside(db, tx, PRICE_OPTIONS);
    const found = ofPrices.flatMap(({ key, text }) => differences(key, textOf(texts, key), text));
    if (found.length + ofPlans.length === 0) return;
    const createdAt = Math.floor(clock.nowMs() / 1000);
    const after = tablesIn(textsWith(texts, ofPrices));
    const ofOptions = yield* rememberTaken({ db, tx, takenAt: createdAt }, found, {
      before: tablesIn(texts),
      after,
      taken: author?.taken ?? new Map(),
    });
    const changes = [...ofOptions, ...ofPlans];
    const { marks, priceRevisions } = db.t;
    yield* q(
      tx
        .update(marks)
        .set({ value: parent + 1 })
        .where(eq(marks.key, PRICE_MARK))
        .returning({ key: marks.key }),
    );
    yield* q(
      tx
        .insert(priceRevisions)
        .values({
          id: parent + 1,
          kind: author?.kind ?? "write",
          userId: author?.userId ?? 0,
          username: author?.username ?? "",
          createdAt,
          note: author?.note ?? "",
          changes: JSON.stringify(changes),
          changeCount: changes.length,
          fingerprint: fingerprintOf(after),
          undoOf: author?.undoOf ?? 0,
          draftId: author?.draftId ?? 0,
        })
        .returning({ id: priceRevisions.id }),
    );
  };
}

export async function latestRevision(db: Database): Promise<number> {
  const { marks } = db.t;
  const [row] = await db.orm.select({ value: marks.value }).from(marks).where(eq(marks.key, PRICE_MARK));
  return row?.value ?? 0;
}

/** From the database, not from memory: another node's change counts from its commit on. */
export async function priceState(db: Database): Promise<PriceState> {
  const { options } = db.t;
  for (;;) {
    const revision = await latestRevision(db);
    const rows = await db.orm
      .select()
      .from(options)
      .where(inArray(options.key, [...PRICE_OPTIONS]));
    const plans = plansText(await plansOnSale(db, db.orm));
    // Read in between two revisions the texts would be those of neither.
    if (revision === (await latestRevision(db))) {
      const texts = rows.map(({ key, value }) => [key as PriceKey, value] as const);
      return { revision, texts: new Map([...texts, [SOLD_PLANS, plans]]) };
    }
  }
}

/** A plan by its name: the same changes against the same prices on the same revision, and nothing else. */
export function planHash(parent: number, changes: readonly PriceChange[]): string {
  const content = changes.map(({ key, name, before, after }) => [key, name, before, after]);
  return new Bun.CryptoHasher("sha256").update(JSON.stringify([parent, content])).digest("hex");
}

function* stalePlan(db: Database, tx: Orm, parent: number, revision: number): Steps<Error> {
  const { priceRevisions } = db.t;
  const rows = yield* q(
    tx
      .select({ changes: priceRevisions.changes })
      .from(priceRevisions)
      .where(gt(priceRevisions.id, parent))
      .orderBy(priceRevisions.id)
      .limit(MOST_STALE),
  );
  const changes = rows.flatMap((row) => JSON.parse(row.changes) as PriceChange[]);
  const places = [...new Map(changes.map((each) => [`${each.key} ${each.name}`, each])).values()];
  return refuse("price_plan_stale", { parent, revision, names: placesText(places) });
}

/** Revisions that are looked into for what changed since a plan. */
const MOST_STALE = 100;

/** Throws what has changed, where the revision is not the one that was planned on. */
export async function refuseStale(db: Database, parent: number): Promise<void> {
  const failure = await db.atomic(function* (tx) {
    const revision = yield* lockPrices(db, tx);
    return revision === parent ? undefined : yield* stalePlan(db, tx, parent, revision);
  });
  if (failure) throw failure;
}

export interface PlanToApply {
  planHash: string;
  parent: number;
  changes: readonly SentChange[];
  note: string;
  /** The draft whose changes these are. */
  draftId?: number | undefined;
  /** As it was read: where somebody changed it since, nothing is applied. */
  draftVersion?: number | undefined;
}

/** What the changes write: the options, for whoever runs the block, and the plans, which are written here. */
export function* writeSteps(
  deps: Pick<Deps, "db" | "clock">,
  tx: Orm,
  { texts, changes }: { texts: PriceTexts; changes: readonly PriceChange[] },
): Steps<{ writes: OptionWrite[]; beside: PriceChange[] }> {
  const writes = writesOf(texts, changes);
  return { writes, beside: yield* writePlanSteps(deps, tx, planWritesOf(changes)) };
}

type Author = Pick<OptionAuthor, "userId" | "username" | "origin">;

/** Applies a plan: all of it, as one revision, or nothing. Answers the revision. */
export async function applyPlan(
  deps: Pick<Deps, "db" | "options" | "clock" | "inbox">,
  plan: PlanToApply,
  author: Author,
): Promise<{ revision: number; changes: number }> {
  const { db } = deps;
  const state = await priceState(db);
  if (state.revision === plan.parent)
    await refuseUsedGroups(db, state.texts, changesAgainst(state.texts, plan.changes));
  const applied = await deps.options.write(
    function* (tx) {
      const revision = yield* lockPrices(db, tx);
      if (revision !== plan.parent) throw yield* stalePlan(db, tx, plan.parent, revision);
      const texts = yield* pricesInside(db, tx);
      const changes = changesAgainst(texts, plan.changes);
      if (changes.length === 0) throw refuse("price_plan_empty");
      if (planHash(revision, changes) !== plan.planHash) throw refuse("price_plan_mismatch");
      if (plan.draftId !== undefined) yield* closeDraft(deps, tx, plan, revision + 1);
      const value = { revision: revision + 1, changes: changes.length };
      return { ...(yield* writeSteps(deps, tx, { texts, changes })), value };
    },
    {
      ...author,
      kind: "apply",
      note: plan.note,
      taken: takenOf(plan.changes),
      ...(plan.draftId === undefined ? {} : { draftId: plan.draftId }),
    },
  );
  if (plan.draftId !== undefined) deps.inbox.gone("price_draft", String(plan.draftId));
  return applied;
}

/**
 * The draft is done with the revision that applies it; one that was applied or discarded meanwhile, or changed since it was
 * read, stops the block.
 */
function* closeDraft(
  { db, clock }: Pick<Deps, "db" | "clock">,
  tx: Orm,
  { draftId = 0, draftVersion }: PlanToApply,
  revisionId: number,
): Steps<void> {
  const { priceDrafts } = db.t;
  const isOpen = inArray(priceDrafts.state, ["open", "scheduled", "failed"]);
  const [closed] = yield* q(
    tx
      .update(priceDrafts)
      .set({
        state: "applied",
        revisionId,
        effectiveAt: 0,
        failure: "",
        version: sql`${priceDrafts.version} + 1`,
        updatedAt: Math.floor(clock.nowMs() / 1000),
      })
      .where(
        and(
          eq(priceDrafts.id, draftId),
          isOpen,
          draftVersion === undefined ? undefined : eq(priceDrafts.version, draftVersion),
        ),
      )
      .returning({ id: priceDrafts.id }),
  );
  if (closed) return;
  const [changed] = yield* q(
    tx
      .select({ id: priceDrafts.id })
      .from(priceDrafts)
      .where(and(eq(priceDrafts.id, draftId), isOpen)),
  );
  throw refuse(changed ? "price_draft_changed" : "price_draft_closed");
}

/** A place of a price. */
export interface Place {
  key: string;
  name: string;
}

/** What an undo would do: the inverse of what still stands as the revision left it, and what has changed since. */
export interface Undo {
  revision: number;
  parent: number;
  changes: PriceChange[];
  /** Changed since; `before` is what the revision replaced, `after` what stands there now. */
  skipped: PriceChange[];
}

const placeKey = ({ key, name }: Place): string => `${key} ${name}`;

function inverse(
  texts: PriceTexts,
  changes: readonly PriceChange[],
  included: ReadonlySet<string>,
): Pick<Undo, "changes" | "skipped"> {
  const undone: PriceChange[] = [];
  const skipped: PriceChange[] = [];
  for (const change of changes) {
    const { key, name, before, after } = change;
    if (!isPriceKey(key)) continue;
    const now = valueAt(texts, key, name);
    if (isSame(now, before)) continue;
    if (isSame(now, after) || included.has(placeKey(change)))
      undone.push({ key, name, before: now, after: before });
    else skipped.push({ key, name, before, after: now });
  }
  return { changes: undone, skipped };
}

async function rowOf(db: Database, id: number): Promise<Row> {
  const { priceRevisions } = db.t;
  const [row] = await db.orm.select().from(priceRevisions).where(eq(priceRevisions.id, id));
  if (!row) throw refuse("record_missing");
  return row;
}

/** What undoing the revision would do now. */
export async function previewUndo(db: Database, id: number): Promise<Undo> {
  const row = await rowOf(db, id);
  const { revision, texts } = await priceState(db);
  return {
    revision: id,
    parent: revision,
    ...inverse(texts, JSON.parse(row.changes) as PriceChange[], new Set()),
  };
}

/**
 * Undoes a revision by a new one. Names that were changed since stay as they are, unless they are among `include`; nothing is
 * left to do: `price_undo_empty`.
 */
export async function undoRevision(
  deps: Pick<Deps, "db" | "options" | "clock">,
  undo: { id: number; note: string; include: readonly Place[] },
  author: Author,
): Promise<{ revision: number; changes: number; skipped: PriceChange[] }> {
  const { db } = deps;
  const row = await rowOf(db, undo.id);
  const written = JSON.parse(row.changes) as PriceChange[];
  const included = new Set(undo.include.map(placeKey));
  const state = await priceState(db);
  await refuseUsedGroups(db, state.texts, inverse(state.texts, written, included).changes);
  return deps.options.write(
    function* (tx) {
      const revision = yield* lockPrices(db, tx);
      const texts = yield* pricesInside(db, tx);
      const { changes, skipped } = inverse(texts, written, included);
      if (changes.length === 0)
        throw refuse("price_undo_empty", { names: skipped.length === 0 ? "–" : placesText(skipped) });
      const value = { revision: revision + 1, changes: changes.length, skipped };
      return { ...(yield* writeSteps(deps, tx, { texts, changes })), value };
    },
    { ...author, kind: "undo", note: undo.note, undoOf: undo.id },
  );
}

export interface RevisionQuery {
  page: number;
  pageSize: number;
  /** Only later ones than this. */
  after?: number | undefined;
  /** Only those that touched this name, or the plan of this title, whole, in small or capital letters. */
  name?: string | undefined;
}

function shown(row: Row, undoneBy: number): Revision {
  const { changes, ...rest } = row;
  const names = namesOf(JSON.parse(changes) as PriceChange[]);
  return { ...rest, undoneBy, names: names.slice(0, MOST_NAMES) };
}

/** The latest first. */
export async function listRevisions(
  db: Database,
  { page, pageSize, after, name }: RevisionQuery,
): Promise<{ items: Revision[]; total: number; revision: number }> {
  const { priceRevisions } = db.t;
  const where = and(
    after === undefined ? undefined : gt(priceRevisions.id, after),
    name === undefined
      ? undefined
      : or(
          ...["name", "title"].map((field) =>
            contains(priceRevisions.changes, `"${field}":${JSON.stringify(name)},`),
          ),
        ),
  );
  const rows = await db.reader
    .select()
    .from(priceRevisions)
    .where(where)
    .orderBy(desc(priceRevisions.id))
    .limit(pageSize)
    .offset((page - 1) * pageSize);
  const [counted] = await db.reader.select({ total: countRows() }).from(priceRevisions).where(where);
  const undone = await undoneBy(
    db,
    rows.map(({ id }) => id),
  );
  return {
    items: rows.map((row) => shown(row, undone.get(row.id) ?? 0)),
    total: counted?.total ?? 0,
    revision: await latestRevision(db),
  };
}

async function undoneBy(db: Database, ids: readonly number[]): Promise<Map<number, number>> {
  if (ids.length === 0) return new Map();
  const { priceRevisions } = db.t;
  const rows = await db.reader
    .select({ id: priceRevisions.id, undoOf: priceRevisions.undoOf })
    .from(priceRevisions)
    .where(inArray(priceRevisions.undoOf, [...ids]))
    .orderBy(priceRevisions.id);
  return new Map(rows.map(({ id, undoOf }) => [undoOf, id]));
}

export async function revisionDetail(db: Database, id: number): Promise<RevisionDetail> {
  const row = await rowOf(db, id);
  const undone = await undoneBy(db, [id]);
  return { ...shown(row, undone.get(id) ?? 0), changes: JSON.parse(row.changes) as PriceChange[] };
}

/** What of a scheduled draft was changed since it was scheduled. */
export function touchedSince(texts: PriceTexts, changes: readonly PriceChange[]): PriceChange[] {
  return changes.filter(({ key, name, before }) => !isSame(valueAt(texts, key, name), before));
}
