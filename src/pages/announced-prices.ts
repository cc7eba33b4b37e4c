// Announced prices as pages tell them: to whom they matter, and the sentences of the price list.
// Refuses names that the visitor could not call, and groups that are not theirs.
import { formatDateTime, formatNumber } from "../../islands/lib/format.ts";
import { namesText } from "../../islands/lib/model-names.ts";
import type { Translate } from "../../views/document.tsx";
import type { PricingNotice } from "../../views/pricing.tsx";
import { isVisibleTo } from "../core/channels/catalogue.ts";
import type { Buyer } from "../core/channels/catalogue.ts";
import type { Deps } from "../core/deps.ts";
import { announcedPrices } from "../core/prices/announced.ts";
import type { Announced, AnnouncedLine } from "../core/prices/announced.ts";
import { tellingSteps } from "../shared/price-steps.ts";
import type { PricesToCome } from "../shared/prices-to-come.ts";
import { shortText } from "../shared/short-text.ts";

/** Announced changes of what the buyer may call. */
export async function announcedFor(deps: Deps, buyer: Buyer): Promise<Announced> {
  const { models, groups } = await announcedPrices(deps);
  return {
    models: models.filter(({ model: name }) => {
      const model = deps.catalogue.model(name);
      return model !== undefined && isVisibleTo(model, buyer);
    }),
    groups: groups.filter(({ group }) => Object.hasOwn(buyer.groups, group)),
  };
}

const MOST_NAMES = 1000;

/** By moment, the earliest first. */
export function pricesToCome({ models, groups }: Announced): PricesToCome[] {
  const moments = [...new Set([...models, ...groups].map(({ effectiveAt }) => effectiveAt))];
  return moments
    .sort((a, b) => a - b)
    .map((moment) => ({
      effective_at: moment,
      models: models
        .filter(({ effectiveAt }) => effectiveAt === moment)
        .map(({ model }) => model)
        .slice(0, MOST_NAMES),
      groups: groups
        .filter(({ effectiveAt }) => effectiveAt === moment)
        .map(({ group, before, after }) => ({ group, before, after })),
    }));
}

/** How the price list writes a price, and in which zone it tells moments. */
export interface AnnouncedTexts {
  t: Translate;
  timeZone: string;
  priceText: (dollars: number) => string;
  perText: (per: AnnouncedLine["per"], price: string) => string;
}

const LONGEST_NAME = 40;

const momentText = ({ timeZone }: AnnouncedTexts, seconds: number): string =>
  `${formatDateTime(seconds * 1000, timeZone).slice(0, 16)} (${timeZone})`;

/** A line for each moment: names, and the new ratios of groups. */
export function announcedNotices(texts: AnnouncedTexts, announced: Announced): PricingNotice[] {
  const { t } = texts;
  return pricesToCome(announced).flatMap(({ effective_at: moment, models, groups }): PricingNotice[] => {
    const time = momentText(texts, moment);
    const ofModels =
      models.length === 0
        ? []
        : [
            {
              names: namesText(
                t,
                models.map((name) => shortText(name, LONGEST_NAME)),
              ),
              text: t("pricing.announced", { time }),
              until: "",
            },
          ];
    return [...ofModels, ...groups.map((group) => groupNotice(t, group, time))];
  });
}

function groupNotice(t: Translate, { group, before, after }: PricesToCome["groups"][number], time: string) {
  const text = t("pricing.announcedGroup", {
    time,
    before: formatNumber(before),
    after: formatNumber(after),
  });
  return { names: shortText(group, LONGEST_NAME), text, until: "" };
}

/** Old and new prices of one model in a group, a line for each moment. */
export function announcedPricesOf(
  texts: AnnouncedTexts,
  { models, groups }: Announced,
  of: { model: string; group: string; groupRatio: number },
): PricingNotice[] {
  const { t, priceText, perText } = texts;
  const price = (dollars: number | null) =>
    dollars === null ? t("pricing.announcedNone") : priceText(dollars * of.groupRatio);
  const ofModel = models
    .filter(({ model }) => model === of.model)
    .map(({ lines, effectiveAt }) => ({
      names: shortText(of.model, LONGEST_NAME),
      text: t("pricing.announcedPrices", {
        time: momentText(texts, effectiveAt),
        prices: tellingSteps(lines)
          .told.map(
            ({ kind, per, before, after }) =>
              `${t(`log.line.${kind}`)} ${price(before)} → ${after === null ? price(after) : perText(per, price(after))}`,
          )
          .join(t("pricing.announcedComma")),
      }),
      until: "",
    }));
  const ofGroup = groups
    .filter(({ group }) => group === of.group)
    .map((group) => groupNotice(t, group, momentText(texts, group.effectiveAt)));
  return [...ofModel, ...ofGroup];
}
