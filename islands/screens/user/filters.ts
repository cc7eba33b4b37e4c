// What a list of accounts is narrowed by, in the API's own names: fields, the screen's views, and the choice of a bulk run.
import { formatQuota } from "../../lib/format.ts";
import type { Translate } from "../../lib/i18n.ts";
import type { Query } from "../../lib/url-state.ts";
import type { FilterField } from "../../ui/filter-bar.tsx";
import { quotaOf } from "../../ui/money-field.tsx";
import type { UserPageData } from "./row.ts";

/** Parameters that narrow the list. */
const FILTERS = ["keyword", "group", "quota_min", "quota_max", "unseen", "flagged", "status"] as const;
/** With these, what a saved view keeps. */
export const VIEW_FIELDS = [...FILTERS, "sort"];
export type UserFilters = Record<(typeof FILTERS)[number], string>;

const UNSEEN_DAYS = "90";

export function filtersOf(query: Query): UserFilters {
  return Object.fromEntries(FILTERS.map((name) => [name, query[name] ?? ""])) as UserFilters;
}

/** Those that are set, as a call takes them. */
export function setFilters(filters: UserFilters): Partial<UserFilters> {
  return Object.fromEntries(Object.entries(filters).filter(([, value]) => value !== ""));
}

const money = {
  show: (value: string) => formatQuota(Number(value)),
  read: (typed: string) => quotaOf(typed)?.toString(),
};

export function filterFields(t: Translate, { groups }: Pick<UserPageData, "groups">): FilterField[] {
  const status = (value: number, key: string) => ({ value: String(value), label: t(`user.status.${key}`) });
  return [
    { name: "group", label: t("user.group"), choices: groups.map((name) => ({ value: name, label: name })) },
    { name: "quota_min", label: t("user.filter.quotaMin"), inputMode: "decimal", written: money },
    { name: "quota_max", label: t("user.filter.quotaMax"), inputMode: "decimal", written: money },
    {
      name: "unseen",
      label: t("user.filter.unseen"),
      inputMode: "numeric",
      placeholder: UNSEEN_DAYS,
      written: {
        show: (value) => t("user.filter.days", { count: Number(value) }),
        read: (typed) => /\d+/.exec(typed)?.[0],
      },
    },
    { name: "flagged", label: t("user.filter.flag"), choices: [{ value: "true", label: t("common.yes") }] },
    { name: "status", label: t("user.status"), choices: [status(1, "enabled"), status(2, "disabled")] },
  ];
}

/** `lowQuota`: the balance below which the site warns; 0: it warns nobody. */
export function builtInViews(t: Translate, { lowQuota }: Pick<UserPageData, "lowQuota">) {
  const view = (id: string, query: Partial<UserFilters>) => ({ id, label: t(`user.view.${id}`), query });
  return [
    view("all", {}),
    ...(lowQuota > 0 ? [view("low", { quota_max: String(lowQuota - 1), status: "1" })] : []),
    view("unseen", { unseen: UNSEEN_DAYS }),
    view("flagged", { flagged: "true" }),
    view("disabled", { status: "2" }),
  ] as { id: string; label: string; query: Record<string, string> }[];
}
