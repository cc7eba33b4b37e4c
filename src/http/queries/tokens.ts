// What a list of API keys is narrowed by: the query string of /api/token and the address of /token.
import type { TokenQuery } from "../../core/users/tokens.ts";
import { idOf } from "../paging.ts";
import { queryText } from "./sent.ts";
import type { Sent } from "./sent.ts";

export const tokenListFields = { status: queryText(20) };

export const tokenSearchFields = { ...tokenListFields, keyword: queryText(255), token: queryText(255) };

export function tokenFilterOf(
  sent: Sent<typeof tokenSearchFields>,
): Pick<TokenQuery, "keyword" | "token" | "status"> {
  return { keyword: sent.keyword, token: sent.token, status: idOf(sent.status ?? "") };
}
