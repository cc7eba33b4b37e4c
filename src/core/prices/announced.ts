// What users are told of prices to come: scheduled drafts that are announced, as old and new dollars with their moment.
// Refuses to promise what will not happen: a draft whose names were changed since it was scheduled is not told.
import { and, asc, eq } from "drizzle-orm";
import type { Database } from "../../db/database.ts";
import type { Deps } from "../deps.ts";
import { tablesIn, textsWith, writesOf } from "./changes.ts";
import type { PriceChange, PriceTexts } from "./changes.ts";
import { listDifferences } from "./plan.ts";
import type { LineDifference, ModelDifference } from "./plan.ts";
import { latestRevision, priceState, touchedSince } from "./revisions.ts";

/** A model's prices from a moment on, in dollars before any group's ratio. */
interface AnnouncedModel extends Pick<ModelDifference, "model" | "lines"> {
  /** Unix seconds. */
  effectiveAt: number;
}

/** A group's ratio from a moment on. */
interface AnnouncedGroup {
  group: string;
  effectiveAt: number;
  before: number;
  after: number;
}

export interface Announced {
  models: readonly AnnouncedModel[];
  groups: readonly AnnouncedGroup[];
}

export type AnnouncedLine = LineDifference;

const NOTHING: Announced = { models: [], groups: [] };

/** What was made of the prices and drafts of `key`; each page load asks only whether that is still right. */
const made = new WeakMap<Database, { key: string; announced: Announced }>();

/** Of all models and groups, the earliest moment first. */
export async function announcedPrices({ db }: Pick<Deps, "db">): Promise<Announced> {
  const { priceDrafts } = db.t;
  const rows = await db.reader
    .select({
      id: priceDrafts.id,
      version: priceDrafts.version,
      changes: priceDrafts.changes,
      effectiveAt: priceDrafts.effectiveAt,
    })
    .from(priceDrafts)
    .where(and(eq(priceDrafts.state, "scheduled"), eq(priceDrafts.announce, true)))
    .orderBy(asc(priceDrafts.effectiveAt), asc(priceDrafts.id));
  if (rows.length === 0) return NOTHING;
  const key = JSON.stringify([await latestRevision(db), ...rows.map(({ id, version }) => [id, version])]);
  const known = made.get(db);
  if (known?.key === key) return known.announced;
  const { texts } = await priceState(db);
  const before = tablesIn(texts);
  const drafts = rows.flatMap(({ changes: text, effectiveAt }): Announced[] => {
    const changes = JSON.parse(text) as PriceChange[];
    const writes = writesOrNone(texts, changes);
    if (!writes) return [];
    const after = tablesIn(textsWith(texts, writes));
    const models = listDifferences(changes, before, after);
    return [
      {
        models: models.map((each) => ({ ...each, effectiveAt })),
        groups: changes.flatMap((change) => groupOf(change, effectiveAt)),
      },
    ];
  });
  const announced = {
    models: drafts.flatMap(({ models }) => models),
    groups: drafts.flatMap(({ groups }) => groups),
  };
  made.set(db, { key, announced });
  return announced;
}

/** What an option of this build refuses fails at its moment, as what was changed since does. */
function writesOrNone(texts: PriceTexts, changes: readonly PriceChange[]) {
  if (touchedSince(texts, changes).length > 0) return undefined;
  try {
    return writesOf(texts, changes);
  } catch {
    return undefined;
  }
}

function groupOf({ key, name, before, after }: PriceChange, effectiveAt: number): AnnouncedGroup[] {
  if (key !== "GroupRatio" || typeof before !== "number" || typeof after !== "number") return [];
  return [{ group: name, effectiveAt, before, after }];
}
