// What a change of prices means before it is made: the difference in dollars, what of it deserves a second look, and what the
// last days would have cost. Refuses nothing that a person may want; it says what they would not have noticed.
import { and, gte, inArray } from "drizzle-orm";
import { sumOf } from "../../db/database.ts";
import type { Database } from "../../db/database.ts";
import { priceLines } from "../../shared/cost.ts";
import type { PriceLine } from "../../shared/cost.ts";
import type { PriceCondition } from "../../shared/price-row.ts";
import type { PriceWarning, PriceWarningCode } from "../../shared/price-warnings.ts";
import type { Deps } from "../deps.ts";
import { changesAgainst, isModelOption, isSame, tablesIn, textsWith, writesOf } from "./changes.ts";
import type { PriceChange, SentChange } from "./changes.ts";
import { pacer } from "../kit/turns.ts";
import { isUsed, usedGroups } from "./group-use.ts";
import { FILE_SEARCH_PRICE, webSearchPrice } from "./piece-prices.ts";
import { entrySteps, isSameUnit, priceSituations } from "./price-steps.ts";
import type { PriceStep } from "./price-steps.ts";
import { groupRatioOf, lookupPrice, MISSING_MODEL_RATIO, priceRowOf, priceRulesOf } from "./prices.ts";
import type { ModelPricing, PriceTables } from "./prices.ts";
import { planHash, priceState, refuseStale } from "./revisions.ts";
import { whatIf } from "./what-if.ts";
import type { WhatIf } from "./what-if.ts";

/** A price of one kind, in dollars; null: it does not apply, or the model has no price. */
export interface LineDifference {
  kind: PriceLine["kind"];
  per: PriceLine["per"];
  before: number | null;
  after: number | null;
}

/** A price under a condition, or of a tool, that does not just follow the list price. */
interface EntryDifference {
  /** null: of a tool, under any. */
  when: PriceCondition | null;
  kind: PriceStep["kind"];
  /** Empty where it is no tool's. */
  tool: string;
  before: number;
  after: number;
}

export interface ModelDifference {
  model: string;
  /** Only the kinds whose list price changes. */
  lines: LineDifference[];
  entries: EntryDifference[];
  /** Calls of the last seven days. */
  calls: number;
}

/** Something that an automatic sync would not do without a tick. */
interface PlanWarning extends PriceWarning {
  /** The change cannot be applied as long as this holds. */
  isBlocking: boolean;
}

interface Plan {
  /** The revision that it was made on. */
  parent: number;
  planHash: string;
  changes: PriceChange[];
  /** The first of those whose price changes, by name. */
  models: ModelDifference[];
  modelCount: number;
  warnings: PlanWarning[];
  effect: WhatIf | null;
}

export interface PlanRequest {
  /** The revision that the caller looks at; the latest where absent. */
  parent?: number | undefined;
  changes: readonly SentChange[];
  /** 0: no replay of the log. */
  days: number;
  signal?: AbortSignal | undefined;
}

const MOST_MODELS = 2000;
const DAY = 86_400;
const HOUR = 3600;
/** Prices that differ by less are the same: other software rounds to six decimals. */
const RELATIVE = 1e-6;

const linesOf = (pricing: ModelPricing | undefined, tables: PriceTables): PriceLine[] =>
  pricing ? priceLines(pricing, 1, tables.quotaPerUnit) : [];

/** Makes a plan and changes nothing. Throws `price_plan_stale` where the parent is not the latest revision. */
export async function planPrices(deps: Pick<Deps, "db" | "clock">, request: PlanRequest): Promise<Plan> {
  const { db, clock } = deps;
  const { revision, texts } = await priceState(db);
  if (request.parent !== undefined && request.parent !== revision) await refuseStale(db, request.parent);
  const changes = changesAgainst(texts, request.changes);
  const before = tablesIn(texts);
  const after = tablesIn(textsWith(texts, writesOf(texts, changes)));
  const compared = await comparedModels(changes, before, after);
  const models = compared.map(({ difference }) => difference);
  const nowMs = clock.nowMs();
  const removed = models.filter(({ model }) => !lookupPrice(after, model)).map(({ model }) => model);
  const calls = await weekCalls(db, removed, nowMs);
  for (const each of models) each.calls = calls.get(each.model) ?? 0;
  return {
    parent: revision,
    planHash: planHash(revision, changes),
    changes,
    models: models.slice(0, MOST_MODELS),
    modelCount: models.length,
    warnings: [
      ...movedSince(request.changes, changes),
      ...compared.flatMap((each) => modelWarnings(each, before, after)),
      ...changes.flatMap(groupWarnings),
      ...changes.flatMap((change) => overrideWarnings(change, before, after)),
      ...(await usedGroups(db, texts, changes))
        .filter(isUsed)
        .map(({ group, users, keys, channels, options }): PlanWarning => ({
          code: "group_in_use",
          key: "GroupRatio",
          name: group,
          isBlocking: true,
          params: { users, keys, channels, options: options.join(", ") },
        })),
    ],
    effect:
      request.days === 0
        ? null
        : await whatIf(db, { before, after, days: request.days, nowMs, signal: request.signal }),
  };
}

/** A model whose price changes, and what of its tiers, times and tools deserves to be asked. */
interface Compared {
  difference: ModelDifference;
  entryWarnings: PlanWarning[];
}

/** Models whose price the changes change, by name. Entries are many, and others want to be served meanwhile. */
async function comparedModels(
  changes: readonly PriceChange[],
  before: PriceTables,
  after: PriceTables,
): Promise<Compared[]> {
  const compared: Compared[] = [];
  const turn = pacer();
  for (const model of modelsOf(changes, before, after)) {
    await turn();
    const lines = lineDifferences(model, before, after);
    const situations = situationsOf(model, before, after);
    const entries = entryDifferences(situations, model, [before, after]);
    if (lines.length + entries.length > 0)
      compared.push({
        difference: { model, lines, entries, calls: 0 },
        entryWarnings: entryWarnings(model, situations),
      });
  }
  return compared;
}

/** Models whose list price the changes change, by name: what users are told. */
export function listDifferences(
  changes: readonly PriceChange[],
  before: PriceTables,
  after: PriceTables,
): Pick<ModelDifference, "model" | "lines">[] {
  return modelsOf(changes, before, after)
    .map((model) => ({ model, lines: lineDifferences(model, before, after) }))
    .filter(({ lines }) => lines.length > 0);
}

/** Models whose price the changes can touch: the names of the maps, and all where units mean other dollars. */
function modelsOf(changes: readonly PriceChange[], before: PriceTables, after: PriceTables): string[] {
  const named = changes.filter(({ key }) => isModelOption(key)).map(({ name }) => name);
  if (before.quotaPerUnit === after.quotaPerUnit) return [...new Set(named)].sort();
  const priced = [before, after].flatMap((tables) => [
    ...Object.keys(tables.modelRatio),
    ...Object.keys(tables.modelPrice),
  ]);
  return [...new Set([...named, ...priced])].sort();
}

const isNear = (a: number, b: number): boolean => Math.abs(a - b) <= Math.max(a, b) * RELATIVE;

function lineDifferences(model: string, before: PriceTables, after: PriceTables): LineDifference[] {
  const old = new Map(linesOf(lookupPrice(before, model), before).map((line) => [line.kind, line]));
  const fresh = new Map(linesOf(lookupPrice(after, model), after).map((line) => [line.kind, line]));
  return [...new Set([...old.keys(), ...fresh.keys()])].flatMap((kind): LineDifference[] => {
    const [was, is] = [old.get(kind), fresh.get(kind)];
    const line = is ?? was;
    if (!line || (was && is && isNear(was.unitPrice, is.unitPrice))) return [];
    return [{ kind, per: line.per, before: was?.unitPrice ?? null, after: is?.unitPrice ?? null }];
  });
}

/** What a hosted tool costs where the model's own price says nothing. */
const toolPriceOf = (tables: PriceTables, model: string) => (tool: string) =>
  Object.hasOwn(tables.toolPrices, tool)
    ? tables.toolPrices[tool]
    : tool === "web_search"
      ? webSearchPrice(model, "medium")
      : tool === "file_search"
        ? FILE_SEARCH_PRICE
        : undefined;

type Situations = ReturnType<typeof priceSituations>;

/** Steps under every condition and of every tool; none where the two prices are of different units. */
function situationsOf(model: string, before: PriceTables, after: PriceTables): Situations {
  const [old, fresh] = [priceRowOf(before, model), priceRowOf(after, model)];
  if (!old || !fresh || !isSameUnit(old, fresh)) return [];
  return priceSituations({
    name: model,
    before: old,
    after: fresh,
    toolBefore: toolPriceOf(before, model),
    toolAfter: toolPriceOf(after, model),
  });
}

/** Two entries at once are for warnings: each of them is told by itself. */
function entryDifferences(
  situations: Situations,
  model: string,
  sides: readonly PriceTables[],
): EntryDifference[] {
  const named = new Set<string>(["in", "call", "tool"]);
  for (const tables of sides)
    for (const { set } of priceRulesOf(tables, model))
      for (const kind of Object.keys(set ?? {})) named.add(kind);
  return entrySteps(situations.filter(({ isPair }) => !isPair))
    .filter(({ kind }) => named.has(kind))
    .map(({ when, ...step }) => ({ when: when ?? null, ...step }));
}

/** Calls of the last seven days, by model. */
async function weekCalls(
  db: Database,
  models: readonly string[],
  nowMs: number,
): Promise<Map<string, number>> {
  if (models.length === 0) return new Map();
  const { rollups } = db.t;
  const from = Math.floor((nowMs / 1000 - 7 * DAY) / HOUR) * HOUR;
  const rows = await db.reader
    .select({ model: rollups.modelName, calls: sumOf(rollups.count) })
    .from(rollups)
    .where(and(gte(rollups.hour, from), inArray(rollups.modelName, models.slice(0, MOST_MODELS))))
    .groupBy(rollups.modelName);
  return new Map(rows.map(({ model, calls }) => [model, calls]));
}

/** What a step from one price to another deserves to be asked. */
function stepWarning(before: number, after: number): PriceWarningCode | undefined {
  if (before === after) return undefined;
  if (after === 0) return "price_free";
  if (before === 0) return "price_no_longer_free";
  if (after > before * 2 * (1 + RELATIVE)) return "price_doubled";
  return after < before * 0.5 * (1 - RELATIVE) ? "price_halved" : undefined;
}

function modelWarnings(
  { difference: { model, lines, calls }, entryWarnings: ofEntries }: Compared,
  before: PriceTables,
  after: PriceTables,
): PlanWarning[] {
  const at = { key: "", name: model, isBlocking: false };
  const [old, fresh] = [lookupPrice(before, model), lookupPrice(after, model)];
  if (!fresh) return [{ ...at, code: "price_removed", params: { calls } }];
  const found: PlanWarning[] = [];
  if (
    fresh.callPrice === undefined &&
    fresh.modelRatio === MISSING_MODEL_RATIO &&
    fresh.completionRatio === 1
  )
    found.push({ ...at, code: "price_looks_unset", params: { ratio: MISSING_MODEL_RATIO } });
  if (!old) return found;
  if ((old.callPrice === undefined) !== (fresh.callPrice === undefined))
    return [...found, { ...at, code: "price_unit_changed", params: {} }];
  if (!isSameUnit(priceRowOf(before, model) ?? {}, priceRowOf(after, model) ?? {}))
    return [...found, { ...at, code: "price_unit_changed", params: {} }];
  // One sentence a model and reason, about the first kind that has it.
  for (const line of lines) {
    if (line.before === null || line.after === null) continue;
    const code = stepWarning(line.before, line.after);
    if (!code || found.some((each) => each.code === code)) continue;
    found.push({ ...at, code, params: { kind: line.kind, before: line.before, after: line.after } });
  }
  return [...found, ...ofEntries];
}

/** The same of tiers, times and tools: the first of each reason, where it does not just follow the list price. */
function entryWarnings(model: string, situations: Situations): PlanWarning[] {
  const found = new Map<PriceWarningCode, PlanWarning>();
  for (const step of entrySteps(situations)) {
    const code = stepWarning(step.before, step.after);
    if (!code || found.has(code)) continue;
    const { kind, tool, when } = step;
    const of: PriceWarning["params"] = tool === "" ? { kind, when: JSON.stringify(when) } : { kind, tool };
    const params = { ...of, before: step.before, after: step.after };
    found.set(code, { code, key: "", name: model, isBlocking: false, params });
  }
  return [...found.values()];
}

const PLAIN_VALUES: ReadonlySet<string> = new Set([
  "GroupRatio",
  "TopupGroupRatio",
  "ToolPrices",
  "Price",
  "QuotaPerUnit",
]);

function groupWarnings({ key, name, before, after }: PriceChange): PlanWarning[] {
  if (!PLAIN_VALUES.has(key)) return [];
  if (before === null || after === null) return [];
  const code = stepWarning(Number(before), Number(after));
  return code
    ? [{ code, key, name, isBlocking: false, params: { before: Number(before), after: Number(after) } }]
    : [];
}

/** Of what users of one group pay in others; a ratio of their own that comes or goes is a step from or to the group's. */
function overrideWarnings(
  { key, name: userGroup, before, after }: PriceChange,
  old: PriceTables,
  fresh: PriceTables,
): PlanWarning[] {
  if (key !== "GroupGroupRatio") return [];
  const used = new Set([before, after].flatMap((ratios) => Object.keys(ratios ?? {})));
  return [...used].sort().flatMap((group): PlanWarning[] => {
    const was = groupRatioOf(old, group, userGroup).groupRatio;
    const is = groupRatioOf(fresh, group, userGroup).groupRatio;
    const code = stepWarning(was, is);
    const name = `${userGroup}: ${group}`;
    return code ? [{ code, key, name, isBlocking: false, params: { before: was, after: is } }] : [];
  });
}

/** Names that were drafted against another value than the one that they would replace. */
function movedSince(sent: readonly SentChange[], changes: readonly PriceChange[]): PlanWarning[] {
  const sentBy = new Map(sent.map((each) => [`${each.key} ${each.name}`, each]));
  return changes.flatMap((change): PlanWarning[] => {
    const drafted = sentBy.get(`${change.key} ${change.name}`);
    if (drafted?.before === undefined || isSame(drafted.before, change.before)) return [];
    const { key, name, before } = change;
    const params = { before: JSON.stringify(drafted.before), after: JSON.stringify(before) };
    return [{ code: "changed_since_draft", key, name, isBlocking: false, params }];
  });
}
