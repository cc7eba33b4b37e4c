// What the sheet of models is asked to show: in the address at the price desk, beside other things of its own elsewhere.
// Refuses to know where it stands: whoever shows the sheet says so.
import { createContext, useContext } from "react";
import { address } from "../../../lib/boot.ts";
import { patchUrl, setQuery, useQuery } from "../../../lib/url-state.ts";
import type { Query } from "../../../lib/url-state.ts";

type Patch = Parameters<typeof setQuery>[0];

export interface SheetQuery {
  query: Query;
  setQuery: typeof setQuery;
  /** Where a link with the patch leads. */
  hrefOf: (patch: Patch) => string;
}

/** Set where the address is not the sheet's. */
export const SheetQueryContext = createContext<SheetQuery | undefined>(undefined);

export function useSheetQuery(): SheetQuery {
  const own = useQuery();
  const given = useContext(SheetQueryContext);
  return given ?? { query: own, setQuery, hrefOf: (patch) => patchUrl(address.value, patch) };
}

/** A query after a patch: what is undefined or empty goes. */
export function patched(query: Query, patch: Patch): Query {
  const next: Query = { ...query };
  for (const [name, value] of Object.entries(patch)) {
    if (value === undefined || value === null || value === "") delete next[name];
    else next[name] = String(value);
  }
  return next;
}
