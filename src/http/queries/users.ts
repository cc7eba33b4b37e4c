// What a list of users is narrowed by: the query string of /api/user/search and the address of /user.
import { USER_SORTS } from "../../core/users/user-list.ts";
import type { UserQuery } from "../../core/users/user-list.ts";
import { isOn, positive, present, queryText } from "./sent.ts";
import type { Sent } from "./sent.ts";

export const userSearchFields = {
  keyword: queryText(255),
  group: queryText(64),
  /** Quota units, both included. */
  quota_min: queryText(20),
  quota_max: queryText(20),
  /** Days. */
  unseen: queryText(20),
  flagged: queryText(5),
  status: queryText(20),
  sort: queryText(20),
};

/** A whole number, below zero too; everything else counts as not sent. */
function whole(text: string | undefined): number | undefined {
  return /^-?\d{1,15}$/.test(text ?? "") ? Number(text) : undefined;
}

/** A century: an account that nobody can have forgotten for longer. */
const MOST_DAYS = 36_500;

export function userFilterOf(sent: Sent<typeof userSearchFields>): Omit<UserQuery, "page" | "pageSize"> {
  const { sort: order = "", status: wanted } = sent;
  const isDescending = order.startsWith("-");
  const sort = USER_SORTS.find((name) => name === (isDescending ? order.slice(1) : order));
  const status = positive(wanted);
  const unseen = positive(sent.unseen);
  return present({
    keyword: sent.keyword,
    group: sent.group,
    quotaMin: whole(sent.quota_min),
    quotaMax: whole(sent.quota_max),
    unseenDays: unseen === undefined ? undefined : Math.min(unseen, MOST_DAYS),
    flagged: isOn(sent.flagged) ? true : undefined,
    status: status !== undefined && status <= 3 ? status : undefined,
    ...(sort === undefined ? {} : { sort, isDescending }),
  });
}
