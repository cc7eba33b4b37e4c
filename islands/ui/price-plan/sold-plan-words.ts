// Plans that the site sells, in changes of prices: what they are called, and their terms from what to what.
// Refuses to list terms that stay.
import type { Translate } from "../../lib/i18n.ts";
import { formatNumber } from "../../lib/format.ts";
import { SOLD_PLANS } from "../../../src/shared/price-desk.ts";

/** Term -> what the plan's form calls it, in the form's order. */
const TITLES: Readonly<Record<string, string>> = {
  title: "plans.name",
  description: "plans.description",
  price: "plans.price",
  currency: "plans.currency",
  wallet_price: "plans.walletPrice",
  duration_count: "plans.lasts",
  duration_unit: "plans.unit",
  reset: "plans.reset",
  quota: "plans.quota",
  overflow: "plans.overflow",
  group: "plans.group",
  stack: "plans.stack",
  max_per_user: "plans.most",
  enabled: "plans.on",
};

interface Change {
  key: string;
  name: string;
  before: unknown;
  after: unknown;
}

type Term = string | number | boolean;
type Terms = Readonly<Record<string, Term>>;

const termsOf = (value: unknown): Terms | undefined =>
  typeof value === "object" && value !== null ? (value as Terms) : undefined;

/** What heads changes of an option: its title; of plans, that they are on sale. */
export const placeTitle = (t: Translate, key: string): string =>
  key === SOLD_PLANS ? t("plans.onSale") : t(`option.title.${key}`);

/** A plan goes by its title, everything else by its name. */
export function placeName({ key, name, before, after }: Change): string {
  const title = key === SOLD_PLANS ? (termsOf(after) ?? termsOf(before))?.["title"] : undefined;
  return typeof title === "string" ? title : name;
}

function termText(t: Translate, term: string, value: Term | undefined): string {
  if (typeof value === "boolean") return t(value ? "common.yes" : "common.no");
  if (typeof value === "number") return formatNumber(value);
  if (value === undefined) return t("plan.none");
  if (value === "") return t("plan.empty");
  if (term === "duration_unit") return t(`plans.unitName.${value}`);
  if (term === "reset") return t(`plans.resetName.${value}`);
  if (term === "stack") return t(`plans.stackName.${value}`);
  return value;
}

export interface TermLine {
  key: string;
  title: string;
  before: string;
  after: string;
}

/** The terms that differ; of a plan that is new or goes all that say something. */
export function termLines(t: Translate, change: Change): TermLine[] {
  const [before, after] = [termsOf(change.before), termsOf(change.after)];
  return Object.entries(TITLES).flatMap(([term, title]) =>
    before?.[term] === after?.[term] || (!(before && after) && (before ?? after)?.[term] === "")
      ? []
      : [
          {
            key: term,
            title: t(title),
            before: termText(t, term, before?.[term]),
            after: termText(t, term, after?.[term]),
          },
        ],
  );
}

/** The same in one line: "Price: 9.90 → 12.00; On sale: Yes → No"; a plan that is new or goes by its terms alone. */
export function termsText(t: Translate, change: Change): string {
  const isKept = termsOf(change.before) !== undefined && termsOf(change.after) !== undefined;
  const texts = termLines(t, change).map(({ title, before, after }) => {
    const value = isKept ? `${before} → ${after}` : change.after === null ? before : after;
    return `${title}: ${value}`;
  });
  return texts.join(t("plan.semicolon"));
}
