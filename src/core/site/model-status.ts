// The status page for users: which of the models that they may call answer now, and how it was in the last 90 days.
// Refuses to tell of channels, providers, volumes: shares and times are all that users learn.
import { isVisibleTo } from "../channels/catalogue.ts";
import type { Buyer, CatalogueModel } from "../channels/catalogue.ts";
import type { Deps } from "../deps.ts";
import { quantileOf } from "../../observe/tally.ts";
import { KEPT_DAYS, recentModelDays } from "./model-days.ts";
import type { ModelHistory } from "./model-days.ts";

const DAY_SECONDS = 86_400;
/** So many models travel with one page. */
const MOST_MODELS = 200;

/** "none": nobody asked; else how large the share of failures was. */
export type DayState = "none" | "good" | "some" | "bad";

export interface ModelState {
  name: string;
  vendor: string;
  /** "partly": some of its channels rest. */
  state: "answers" | "partly" | "rests";
  /** Median of the last seven days; undefined: nobody streamed it. */
  firstTokenSeconds: number | undefined;
  /** The oldest first, the last one is today. */
  days: DayState[];
  /** Share of requests that were answered in these days; undefined: nobody asked. */
  answeredShare: number | undefined;
}

type StatusDeps = Pick<Deps, "db" | "clock" | "catalogue" | "routing" | "picker" | "keyring">;

/** From these shares of failures on. */
const SOME = 0.005;
const BAD = 0.05;

function dayState({ answered, failed }: { answered: number; failed: number }): DayState {
  if (answered + failed === 0) return "none";
  const share = failed / (answered + failed);
  return share >= BAD ? "bad" : share >= SOME ? "some" : "good";
}

function stateNow(deps: StatusDeps, groups: readonly string[], model: string): ModelState["state"] {
  const { routing, picker, keyring, clock } = deps;
  const nowMs = clock.monotonicMs();
  if (picker.isCalm(nowMs) && keyring.isCalm(nowMs)) return "answers";
  const channels = groups.flatMap((group) =>
    routing.tiers(group, model).flatMap(({ entries }) => entries.map(({ channel }) => channel)),
  );
  const awake = channels.filter(
    (channel) => picker.restsUntil(channel, model) <= nowMs && keyring.fitAtMs(channel, model, nowMs) === 0,
  );
  return awake.length === 0 ? "rests" : awake.length < channels.length ? "partly" : "answers";
}

function stateOf(
  deps: StatusDeps,
  groups: readonly string[],
  { name, vendor }: CatalogueModel,
  history: ModelHistory | undefined,
): ModelState {
  const nowSeconds = Math.floor(deps.clock.nowMs() / 1000);
  const today = nowSeconds - (nowSeconds % DAY_SECONDS);
  const days = Array.from({ length: KEPT_DAYS }, (_, index) => {
    const day = history?.days.get(today - (KEPT_DAYS - 1 - index) * DAY_SECONDS);
    return day ? dayState(day) : "none";
  });
  const all = [...(history?.days.values() ?? [])];
  const answered = all.reduce((sum, day) => sum + day.answered, 0);
  const asked = answered + all.reduce((sum, day) => sum + day.failed, 0);
  return {
    name,
    vendor,
    state: stateNow(deps, groups, name),
    firstTokenSeconds: history && quantileOf(history.firstToken, 0.5),
    days,
    answeredShare: asked === 0 ? undefined : answered / asked,
  };
}

export interface ModelStatus {
  models: ModelState[];
  /** Models that are not among them. */
  more: number;
}

/** Of what the visitor may call, in the catalogue's order. */
export async function modelStatus(deps: StatusDeps, buyer: Buyer): Promise<ModelStatus> {
  const found = await recentModelDays(deps);
  const groups = Object.keys(buyer.groups);
  const visible = deps.catalogue.models().filter((model) => isVisibleTo(model, buyer));
  return {
    models: visible.slice(0, MOST_MODELS).map((model) => stateOf(deps, groups, model, found.get(model.name))),
    more: Math.max(0, visible.length - MOST_MODELS),
  };
}
