// What a settings file would do to the site as it is: the difference, what of it a person must accept, and the plan's hash.
// Changes nothing. Guards are those of money.md 1 and 2.3: steps of prices, switches without what they need, groups in use.
import type { FailureCode } from "../../shared/failure-codes.ts";
import { Failure } from "../../shared/failures.ts";
import type { FailureParams } from "../../shared/failures.ts";
import type { SyncGuard } from "../../shared/price-sync.ts";
import { missingNeeds } from "../options/guards.ts";
import type { OptionKey } from "../options/definitions.ts";
import { definitionOf } from "../options/definitions.ts";
import type { OptionWrite } from "../options/store.ts";
import { changesAgainst, differences, isPriceOption, textOf, writesOf } from "../prices/changes.ts";
import type { PriceChange, SentChange } from "../prices/changes.ts";
import { isUsed, usedGroups } from "../prices/group-use.ts";
import { mergePrices } from "../prices/merge.ts";
import { planPrices } from "../prices/plan.ts";
import { shippedPrices } from "../prices/shipped.ts";
import { namesOf } from "../channels/input.ts";
import { judgeDocument } from "./document.ts";
import { checked } from "./judge.ts";
import type { ConfigChange, ConfigProblem, Judge } from "./judge.ts";
import { textsAfter } from "./options.ts";
import { readState } from "./state.ts";
import type { ConfigDeps } from "./state.ts";

/** Something that is not done unless a person says that it is meant. */
export interface ConfigGuard {
  code: FailureCode;
  /** The model, group or option. */
  name: string;
  params: FailureParams;
  /** Nobody can accept it: the site would be forgeable, or charge wrongly unseen. */
  isBlocking: boolean;
}

/** A removed price, with the calls of its last week. */
interface RemovedPrice {
  name: string;
  calls: number;
}

export interface ConfigPlan {
  revision: number;
  hash: string;
  changes: ConfigChange[];
  guards: ConfigGuard[];
  removals: RemovedPrice[];
  problems: ConfigProblem[];
}

/** A plan with what writes it. */
export interface JudgedPlan {
  plan: ConfigPlan;
  judge: Judge;
  writes: OptionWrite[];
}

export interface ConfigRequest {
  document: unknown;
  variables: ReadonlyMap<string, string>;
}

/** The sentences of what an automatic sync would not do either (money.md 2.3). */
const ROW_GUARDS: Record<SyncGuard, FailureCode> = {
  above_double: "config_price_doubled",
  below_half: "config_price_halved",
  free: "config_price_free",
  unpriced_elsewhere: "config_price_looks_unset",
  outlier: "config_price_outlier",
  other_kind: "config_price_unit_changed",
};

type WarningCode = Awaited<ReturnType<typeof planPrices>>["warnings"][number]["code"];

/** The same of ratios of groups and of the units themselves. */
const RATIO_GUARDS: Partial<Record<WarningCode, FailureCode>> = {
  price_doubled: "config_price_doubled",
  price_halved: "config_price_halved",
  price_free: "config_price_free",
  price_no_longer_free: "config_price_free",
};

/** The plan of a document, and how it would be written. */
export async function judgeConfig(deps: ConfigDeps, request: ConfigRequest): Promise<JudgedPlan> {
  const state = await readState(deps);
  const judge = judgeDocument(request.document, state, request.variables);
  const sent = sentPrices(judge);
  const made = judge.problems.length > 0 ? undefined : checked(judge, [], () => madeOf(judge, sent));
  const plan: ConfigPlan = {
    revision: state.revision,
    hash: "",
    changes: judge.changes,
    guards: [],
    removals: [],
    problems: judge.problems,
  };
  if (!made) return { plan: { ...plan, changes: [] }, judge, writes: [] };
  const { changes, writes } = made;
  plan.hash = hashOf(deps, judge, changes);
  plan.guards = [...missingSwitches(judge), ...emptied(judge)];
  if (changes.length > 0) {
    const { warnings } = await planPrices(deps, { parent: state.revision, changes: sent, days: 0 });
    for (const { code, name, key, params } of warnings) {
      const guard = RATIO_GUARDS[code];
      const what = name === "" ? key : `${key} ${name}`;
      if (code === "price_removed") plan.removals.push({ name, calls: Number(params["calls"]) });
      // Models are judged by their whole rows below, entries and tools included.
      else if (guard && key !== "") plan.guards.push(acceptable(guard, what));
    }
    plan.guards.push(...rowGuards(judge));
    plan.guards.push(...(await groupsInUse(deps, judge, changes)));
  }
  return { plan, judge, writes };
}

/** All that changes a price, whichever section says it; options by their entries, as the history tells of them. */
function sentPrices(judge: Judge): SentChange[] {
  const ofOptions = judge.options.filter(({ key }) => isPriceOption(key));
  const changes = ofOptions.flatMap(({ key, text }) =>
    differences(key, textOf(judge.state.prices, key), text),
  );
  return [...judge.prices, ...changes.map(({ key, name, after }) => ({ key, name, after }))];
}

function madeOf(
  judge: Judge,
  sent: readonly SentChange[],
): { changes: PriceChange[]; writes: OptionWrite[] } {
  const { prices } = judge.state;
  const changes = changesAgainst(prices, sent);
  const others = judge.options.filter(({ key }) => !isPriceOption(key));
  return { changes, writes: [...writesOf(prices, changes), ...others] };
}

/** The same file against the same site, and nothing else; secrets count by a keyed hash. */
function hashOf({ seal }: ConfigDeps, judge: Judge, prices: readonly PriceChange[]): string {
  const secret = (text: string): string => seal.mac(text).toString("hex");
  const options = judge.options.map(({ key, text }) => [
    key,
    definitionOf(key).secret === true ? secret(text) : text,
  ]);
  const channels = judge.channels.map(({ name, before, changes, keys }) => [
    name,
    before?.id ?? 0,
    changes === undefined ? null : secret(JSON.stringify(changes)),
    keys === undefined ? null : secret(keys.join("\n")),
  ]);
  const plans = judge.plans.map(({ title, before, columns }) => [title, before?.id ?? 0, columns ?? null]);
  const content = [
    prices.length + plans.length > 0 ? judge.state.revision : 0,
    prices,
    options,
    channels,
    plans,
  ];
  return new Bun.CryptoHasher("sha256").update(JSON.stringify(content)).digest("hex");
}

const acceptable = (code: FailureCode, name: string): ConfigGuard => ({
  code,
  name,
  params: { name },
  isBlocking: false,
});

/** What of the models' new prices is more often a slip than a wish. */
function rowGuards(judge: Judge): ConfigGuard[] {
  const rows = (side: "before" | "after") =>
    new Map(judge.rows.flatMap((each) => (each[side] ? [[each.name, each[side]] as const] : [])));
  const lines = mergePrices({
    base: new Map(),
    ours: rows("before"),
    theirs: rows("after"),
    isServed: () => true,
    others: [shippedPrices().rows],
  });
  return lines.flatMap(({ name, guards }) => guards.map((guard) => acceptable(ROW_GUARDS[guard], name)));
}

/** Switches that would act without what they need: half a sign-in is one that anybody may forge. */
function missingSwitches(judge: Judge): ConfigGuard[] {
  const after = textsAfter(judge);
  const { texts } = judge.state;
  const textOfKey = (of: ReadonlyMap<OptionKey, string>) => (key: OptionKey) => of.get(key) ?? "";
  return missingNeeds(textOfKey(texts), textOfKey(after)).map(({ key, code }) => ({
    code,
    name: key,
    params: {},
    isBlocking: true,
  }));
}

const EMPTIABLE = new Set(["prices", "groups", "channels", "plans"]);

/** A section that loses all that it had and gets nothing: more often a slip than a wish. */
function emptied(judge: Judge): ConfigGuard[] {
  const sections = [...judge.prunes].filter((section) => EMPTIABLE.has(section));
  return sections.flatMap((section): ConfigGuard[] => {
    const own = judge.changes.filter((change) => change.section === section);
    if (own.length === 0 || own.some(({ action }) => action !== "remove") || judge.kept.has(section))
      return [];
    return [acceptable("config_emptied", section)];
  });
}

/** Groups that lose their ratio while somebody names them; channels as the file leaves them. */
async function groupsInUse(
  { db }: ConfigDeps,
  judge: Judge,
  changes: readonly PriceChange[],
): Promise<ConfigGuard[]> {
  const uses = await usedGroups(db, judge.state.prices, changes);
  if (uses.length === 0) return [];
  const touched = new Map(
    judge.channels.flatMap(({ before, changes: to }) => (before ? [[before.id, to]] : [])),
  );
  const added = judge.channels.flatMap(({ before, changes: to }) => (before || !to ? [] : [to.group ?? ""]));
  const kept = judge.state.channels.flatMap((row) =>
    touched.has(row.id) && touched.get(row.id) === undefined ? [] : [touched.get(row.id)?.group ?? row.group],
  );
  const groups = [...kept, ...added].map(namesOf);
  return uses
    .map((use) => ({ ...use, channels: groups.filter((names) => names.includes(use.group)).length }))
    .filter(isUsed)
    .map(({ group, users, keys, channels, options }) => ({
      code: "price_group_in_use",
      name: group,
      params: { group, users, keys, channels, options: options.join(", ") || "–" },
      isBlocking: true,
    }));
}

/** What stands in the way of applying a plan. */
export const standsInTheWay = (guards: readonly ConfigGuard[], acceptsGuards: boolean): ConfigGuard[] =>
  guards.filter(({ isBlocking }) => isBlocking || !acceptsGuards);

export const isOneOf = (error: unknown, ...codes: FailureCode[]): error is Failure =>
  error instanceof Failure && codes.includes(error.code);
