// The row of the page table for the status page of users: states and days as the words and tones that the view lays out.
// Refuses to be there while the operator has not opened it, and to strangers where it is for users alone.
import { formatDateTime, formatDuration } from "../../islands/lib/format.ts";
import { namesText } from "../../islands/lib/model-names.ts";
import { ModelStatusView } from "../../views/model-status.tsx";
import type { DayRun, ModelLine } from "../../views/model-status.tsx";
import type { StatusTone } from "../../views/node.tsx";
import type { Translate } from "../../views/document.tsx";
import { buyerOf } from "../core/channels/catalogue.ts";
import { noticesInForce } from "../core/site/model-notices.ts";
import type { NoticeInForce } from "../core/site/model-notices.ts";
import { modelStatus } from "../core/site/model-status.ts";
import type { DayState, ModelState, ModelStatus } from "../core/site/model-status.ts";
import { refuse } from "../shared/failures.ts";
import { shortText } from "../shared/short-text.ts";
import type { LoaderContext, Page } from "./page.ts";

const SHORT = 40;
const MOST_TEXT = 500;

interface StatusData extends ModelStatus {
  notices: NoticeInForce[];
  nowMs: number;
  vendorTitle: (id: string) => string;
}

async function loadStatus({ deps, user, language }: LoaderContext): Promise<StatusData> {
  const shown = deps.options.get("site.status_page");
  if (shown === "off" || (shown === "users" && !user)) throw refuse("record_missing");
  const buyer = buyerOf(deps, user);
  return {
    ...(await modelStatus(deps, buyer)),
    notices: noticesInForce(deps, Object.keys(buyer.groups)),
    nowMs: deps.clock.nowMs(),
    vendorTitle: (id) => deps.vendors.title(id, language),
  };
}

const TONE_OF_DAY: Readonly<Record<DayState, StatusTone>> = {
  none: "off",
  good: "success",
  some: "warning",
  bad: "error",
};
const TONE_OF_STATE: Readonly<Record<ModelState["state"], StatusTone>> = {
  answers: "success",
  partly: "warning",
  rests: "error",
};

function runsOf(days: readonly DayState[]): DayRun[] {
  const runs: DayRun[] = [];
  for (const [from, day] of days.entries()) {
    const tone = TONE_OF_DAY[day];
    const last = runs.at(-1);
    if (last?.tone === tone) last.length++;
    else runs.push({ tone, from, length: 1 });
  }
  return runs;
}

function lineOf(t: Translate, model: ModelState): ModelLine {
  const { name, state, firstTokenSeconds, days, answeredShare } = model;
  const count = (wanted: DayState): number => days.filter((day) => day === wanted).length;
  return {
    name: shortText(name, SHORT),
    state: t(`status.model.${state}`),
    tone: TONE_OF_STATE[state],
    firstToken:
      firstTokenSeconds === undefined
        ? ""
        : t("status.firstToken", { time: formatDuration(firstTokenSeconds * 1000) }),
    share:
      answeredShare === undefined
        ? t("status.notAsked")
        : t("status.answered", { share: (Math.floor(answeredShare * 1000) / 10).toFixed(1) }),
    runs: runsOf(days),
    said: t("status.daysText", {
      days: days.length,
      good: count("good"),
      some: count("some"),
      bad: count("bad"),
      none: count("none"),
    }),
  };
}

function makersOf(t: Translate, { models, vendorTitle }: StatusData) {
  const makers = Map.groupBy(models, ({ vendor }) => vendor);
  return [...makers].map(([vendor, found]) => ({
    title: vendor === "" ? t("status.otherMakers") : vendorTitle(vendor),
    models: found.map((model) => lineOf(t, model)),
  }));
}

export const statusPage: Page = {
  path: "/status",
  shell: "either",
  access: "public",
  title: "status.pageTitle",
  current: "status",
  loader: loadStatus,
  view({ t, data, title, context: { timeZone } }) {
    const found = data as StatusData;
    const { models, notices, nowMs, more } = found;
    const ill = models.filter(({ state }) => state === "rests").length;
    const days = models[0]?.days.length ?? 0;
    return ModelStatusView({
      t,
      title,
      summary: ill === 0 ? t("status.allAnswer") : t("status.someRest", { count: ill }),
      tone: models.length === 0 ? "off" : ill === 0 ? "success" : ill < models.length ? "warning" : "error",
      at: t("status.at", { at: formatDateTime(nowMs, timeZone) }),
      notices: notices.map(({ models: names, text, until }) => ({
        names: namesText(
          t,
          names.map((name) => shortText(name, SHORT)),
        ),
        text: shortText(text, MOST_TEXT),
        until: until === 0 ? "" : t("status.until", { at: formatDateTime(until * 1000, timeZone) }),
      })),
      makers: makersOf(t, found),
      days,
      more: more > 0 ? t("status.moreModels", { count: more }) : "",
    });
  },
};
