// What the price desk shows: its sections, and the prices, groups and uses that its sheets are made of.
// Holds types only, and the names of the sections.

export const DESK_SECTIONS = [
  "models",
  "groups",
  "overrides",
  "special",
  "auto",
  "sync",
  "drafts",
  "history",
] as const;
/** What the address may name; "plan" is what the changes at hand would do. */
export type DeskSection = (typeof DESK_SECTIONS)[number] | "plan";

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
}

/** First state of the page: enough for the head and the first paint. */
export interface DeskPageData {
  section: DeskSection;
  /** Root: may apply, undo and fetch. */
  canApply: boolean;
}
