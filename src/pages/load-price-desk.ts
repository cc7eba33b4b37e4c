// First state of the price desk: which section is open, what its visitor may do, and the first rows of the sheet of models.
import { makerTitle } from "../core/prices/desk.ts";
import { DESK_SECTIONS, isInView, modelQuestion, modelsShown, usedNames } from "../shared/price-desk.ts";
import type { DeskPageData, FirstModels, ModelQuestion } from "../shared/price-desk.ts";
import { Role } from "../shared/enums.ts";
import { emptyMaps, pricedNames, rowOf } from "../shared/row-maps.ts";
import type { PriceMaps } from "../shared/row-maps.ts";
import type { Deps } from "../core/deps.ts";
import type { LoaderContext } from "./page.ts";

/** As many as a large window shows. */
const FIRST_ROWS = 24;

export function loadPriceDesk({ deps, url, user, language }: LoaderContext): DeskPageData {
  const asked = url.searchParams.get("section");
  const section = asked === "plan" ? "plan" : (DESK_SECTIONS.find((each) => each === asked) ?? "models");
  const question = modelQuestion(Object.fromEntries(url.searchParams));
  return {
    section,
    canApply: user !== undefined && user.role >= Role.root,
    ...(section === "models" && { first: firstModels(deps, question, language) }),
  };
}

type FirstDeps = Pick<Deps, "catalogue" | "prices" | "vendors">;

/** Out of the tables in force: nothing is asked of the database. */
function firstModels(deps: FirstDeps, question: ModelQuestion, language: "zh" | "en"): FirstModels {
  const tables = deps.prices.tables();
  const maps: PriceMaps = {
    ...emptyMaps(),
    ModelRatio: tables.modelRatio,
    CompletionRatio: tables.completionRatio,
    CacheRatio: tables.cacheRatio,
    CreateCacheRatio: tables.createCacheRatio,
    CreateCache1hRatio: tables.createCache1hRatio,
    ImageRatio: tables.imageRatio,
    AudioRatio: tables.audioRatio,
    AudioCompletionRatio: tables.audioCompletionRatio,
    ModelPrice: tables.modelPrice,
    PriceRules: tables.priceRules,
  };
  const used = usedNames(deps.catalogue.models());
  const facts = {
    billingOf: (name: string) =>
      Object.hasOwn(maps.ModelPrice, name)
        ? ("call" as const)
        : Object.hasOwn(maps.ModelRatio, name)
          ? ("tokens" as const)
          : undefined,
    isChanged: () => false,
    makerOf: (name: string) => makerTitle(deps, name, language),
    used,
  };
  const names = [...pricedNames(maps), ...used];
  const all = [...new Set(names)];
  const count = (view: ModelQuestion["view"]) => all.filter((name) => isInView(name, view, facts)).length;
  const rows = modelsShown(names, question, facts)
    .slice(0, FIRST_ROWS)
    .map((name) => {
      const rules = Object.hasOwn(maps.PriceRules, name) ? maps.PriceRules[name] : undefined;
      return {
        name,
        maker: makerTitle(deps, name, language),
        row: rowOf(maps, name, tables.quotaPerUnit),
        isOutputDerived: !Object.hasOwn(maps.CompletionRatio, name) && rules?.out === undefined,
        rules: rules?.when?.length ?? 0,
      };
    });
  return {
    rows,
    counts: { all: count("all"), unpriced: count("unpriced"), used: count("used") },
  };
}
