// What the API key screen knows of a key, and the drawer's values made from it and back.
import { localText, secondsOf } from "../../lib/date-field.ts";
import { NO_LIMITS } from "../../lib/limit-values.ts";
import type { LimitValues } from "../../lib/limit-values.ts";
import { AUTO_GROUP } from "../../../src/shared/auto-group.ts";
import { MAX_TOKEN_NAME } from "../../../src/shared/name-limits.ts";
import type { PricesToCome } from "../../../src/shared/prices-to-come.ts";
import type { GroupMap, ListPageData, ModelNotice, TokenRow } from "../../lib/wire.ts";

export interface TokenPageData extends ListPageData<TokenRow> {
  groups: GroupMap;
  /** Groups of the site's automatic choice that the user may use, in their order. */
  auto: readonly string[];
  models: string[];
  /** There are more groups or models than these. */
  isCut?: boolean;
  /** What administrators tell about the models. */
  notices?: ModelNotice[];
  /** Announced changes of their prices. */
  pricesToCome?: PricesToCome[];
}

export interface TokenValues extends LimitValues {
  name: string;
  unlimited: boolean;
  quota: number | undefined;
  /** `datetime-local` text; empty = never. */
  expires: string;
  group: string;
  /** Of the group `auto`, in their order, separated by commas; empty: the site's. */
  autoGroups: string;
  limitModels: boolean;
  models: string;
  ips: string;
  /** Units that one call may cost; empty = no cap. */
  maxQuota: number | undefined;
  count: number | undefined;
}

const DEFAULT_QUOTA = 500_000;

/** Quota presets of the specification, in dollars. */
export const QUOTA_PRESETS = [1, 10, 50, 100, 500, 1000] as const;
export const COUNT_PRESETS = [10, 20, 30, 100] as const;

export const NEW_TOKEN: TokenValues = {
  name: "",
  unlimited: false,
  quota: DEFAULT_QUOTA,
  expires: "",
  group: "",
  autoGroups: "",
  limitModels: false,
  models: "",
  ips: "",
  maxQuota: undefined,
  ...NO_LIMITS,
  count: 1,
};

export function valuesOf(row: TokenRow): TokenValues {
  return {
    name: row.name,
    unlimited: row.unlimited_quota,
    quota: row.remain_quota,
    expires: localText(row.expired_time),
    group: row.group,
    autoGroups: row.auto_groups,
    limitModels: row.model_limits_enabled,
    models: row.model_limits,
    ips: row.allow_ips ?? "",
    maxQuota: row.max_quota || undefined,
    budget: row.budget_quota || undefined,
    budgetPeriod: row.budget_period,
    rpm: row.rpm_limit || undefined,
    tpm: row.tpm_limit || undefined,
    atOnce: row.max_concurrency || undefined,
    count: 1,
  };
}

/** Names between commas or line breaks: a name may hold a blank. */
export function modelNamesOf(text: string): string[] {
  const names = text.split(/[,，\r\n]+/).map((name) => name.trim());
  return names.filter((name) => name !== "");
}

export function bodyOf(values: TokenValues) {
  return {
    name: values.name.trim(),
    remain_quota: values.quota ?? 0,
    unlimited_quota: values.unlimited,
    expired_time: secondsOf(values.expires) ?? -1,
    model_limits_enabled: values.limitModels,
    model_limits: modelNamesOf(values.models).join(","),
    allow_ips: values.ips.trim(),
    max_quota: values.maxQuota ?? 0,
    budget_quota: values.budget ?? 0,
    budget_period: values.budgetPeriod,
    rpm_limit: values.rpm ?? 0,
    tpm_limit: values.tpm ?? 0,
    max_concurrency: values.atOnce ?? 0,
    group: values.group,
    ...(values.group === AUTO_GROUP ? { auto_groups: values.autoGroups } : {}),
  };
}

/** The state that a call would find now: a key whose time or quota has run out is not enabled. */
export function stateOf(row: TokenRow, nowMs: number): number {
  if (row.status !== 1) return row.status;
  if (row.expired_time !== -1 && row.expired_time * 1000 <= nowMs) return 3;
  return !row.unlimited_quota && row.remain_quota <= 0 ? 4 : 1;
}

/** What a batch adds to the further names. */
const SUFFIX_CHARACTERS = 7;

/** Characters that a name may have, for one key or for several that are told apart by what is added. */
export function nameLimit(count: number): number {
  return MAX_TOKEN_NAME - (count > 1 ? SUFFIX_CHARACTERS : 0);
}

/** The first line that is no address and no range; the server looks closer. */
export function wrongIpLine(text: string): string | undefined {
  return text
    .split(/\r?\n/)
    .map((line) => line.replaceAll(/[\s,]/g, ""))
    .find((line) => line !== "" && !/^[\da-f:.]+(\/\d{1,3})?$/i.test(line));
}

const ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789";

/** The further keys of a batch differ by six random characters. */
export function batchName(name: string, index: number): string {
  if (index === 0) return name;
  const bytes = crypto.getRandomValues(new Uint8Array(6));
  return `${name}-${[...bytes].map((byte) => ALPHABET[byte % ALPHABET.length]).join("")}`;
}
