// What the price desk shows: its sections, the prices, groups and uses that its sheets are made of, and which models a view holds.
import { priceName } from "./price-name.ts";
import type { PriceRow } from "./price-row.ts";

export const DESK_SECTIONS = [
  "models",
  "groups",
  "overrides",
  "special",
  "auto",
  "sync",
  "costs",
  "drafts",
  "history",
] as const;
/** What the address may name; "plan" is what the changes at hand would do. */
export type DeskSection = (typeof DESK_SECTIONS)[number] | "plan";

/** Where changes of prices name plans that the site sells: entries by id; whatever is no number makes a new one. */
export const SOLD_PLANS = "Plans";

/** A model that an enabled channel serves. */
interface ServedModel {
  name: string;
  /** Id of its maker; "" where the name says nothing. */
  vendor: string;
}

/** Who names a group. */
export interface DeskGroup {
  name: string;
  users: number;
  keys: number;
  channels: number;
  /** Those of the channels that serve it now. */
  enabledChannels: number;
}

/** Most changes of one plan, and how large they may be as they are sent: a request has a limit of its own. */
export const MAX_PLAN_CHANGES = 50_000;
export const MAX_PLAN_BYTES = 7_500_000;

/** Who makes which of the models that have a price or are served. */
export interface DeskMaker {
  zh: string;
  en: string;
  models: string[];
}

export interface DeskPrices {
  /** What the texts are; a plan names it as its parent. */
  revision: number;
  /** Stored text by key, of every option that holds prices; one that is not stored has its default. */
  texts: Record<string, string>;
  served: ServedModel[];
  /** Calls of the last day that were refused for want of a price, by model. */
  refused: Record<string, number>;
  groups: DeskGroup[];
  /** Keys that are made without a group choose theirs by themselves. */
  isAutoDefault: boolean;
  makers: DeskMaker[];
}

/** Views of the sheet of models, as the address names them. */
export const MODEL_VIEWS = ["all", "unpriced", "changed", "used"] as const;
export type ModelView = (typeof MODEL_VIEWS)[number];

/** What a model is billed by; undefined: it has no price. */
export type ModelBilling = "tokens" | "call" | undefined;

/** Which models are shown. */
export interface ModelQuestion {
  view: ModelView;
  /** Words that a name or its maker contains, each of them. */
  search: string;
  billing: ModelBilling;
}

export interface ModelFacts {
  billingOf: (name: string) => ModelBilling;
  isChanged: (name: string) => boolean;
  /** Title of its maker, where the name says it. */
  makerOf: (name: string) => string;
  used: ReadonlySet<string>;
}

/** The question that an address asks. */
export function modelQuestion(query: Readonly<Record<string, string | undefined>>): ModelQuestion {
  const { billing } = query;
  return {
    view: MODEL_VIEWS.find((view) => view === query["view"]) ?? "all",
    search: query["q"] ?? "",
    billing: billing === "tokens" || billing === "call" ? billing : undefined,
  };
}

/** Names that enabled channels serve, as they are priced. */
export function usedNames(served: readonly { name: string }[]): Set<string> {
  return new Set(served.map(({ name }) => priceName(name)));
}

/** Whether a model belongs to a view. */
export function isInView(
  name: string,
  view: ModelView,
  { billingOf, isChanged, used }: Pick<ModelFacts, "billingOf" | "isChanged" | "used">,
): boolean {
  if (view === "unpriced") return used.has(name) && billingOf(name) === undefined;
  if (view === "changed") return isChanged(name);
  return view === "all" || used.has(name);
}

const byName = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** The models of a view: those in use first, each part by name. */
export function modelsShown(
  names: Iterable<string>,
  { view, search, billing }: ModelQuestion,
  facts: ModelFacts,
): string[] {
  const { billingOf, makerOf, used } = facts;
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const isShown = (name: string): boolean => {
    if (!isInView(name, view, facts)) return false;
    if (billing !== undefined && billingOf(name) !== billing) return false;
    if (words.length === 0) return true;
    const text = `${name} ${makerOf(name)}`.toLowerCase();
    return words.every((word) => text.includes(word));
  };
  return [...new Set(names)]
    .filter(isShown)
    .sort((a, b) => Number(used.has(b)) - Number(used.has(a)) || byName(a, b));
}

/** First state of the page: enough for the head and the first paint. */
export interface DeskPageData {
  section: DeskSection;
  /** Root: may apply, undo and fetch. */
  canApply: boolean;
  /** First rows of the sheet of models, where that is the section. */
  first?: FirstModels;
}

export interface FirstModel {
  name: string;
  maker: string;
  row: PriceRow | undefined;
  /** Output costs what the model's name says: nobody set it. */
  isOutputDerived: boolean;
  rules: number;
}

/** What the first paint shows of the sheet of models. */
export interface FirstModels {
  rows: FirstModel[];
  /** How many models each view has; what was changed is not known yet. */
  counts: Record<Exclude<ModelView, "changed">, number>;
}
