// What a list of users is narrowed by: the query string of /api/user/search and the address of /user.
import type { UserQuery } from "../../core/users/users.ts";
import { queryText } from "./sent.ts";
import type { Sent } from "./sent.ts";

export const userSearchFields = { keyword: queryText(255), group: queryText(64) };

export function userFilterOf(sent: Sent<typeof userSearchFields>): Pick<UserQuery, "keyword" | "group"> {
  return { keyword: sent.keyword, group: sent.group };
}
