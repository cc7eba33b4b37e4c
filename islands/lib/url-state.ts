// The address as state: what a list shows (filter, sort, page, open drawer) is read from and written to the query.
// Refuses to reload: changes go through history, and Back restores them.
import { useSignals } from "@preact/signals-react/runtime";
import { address } from "./boot.ts";

export type Query = Record<string, string>;

function queryOf(url: string): Query {
  const at = url.indexOf("?");
  return at < 0 ? {} : Object.fromEntries(new URLSearchParams(url.slice(at + 1)));
}

/** `/path?a=1` with the patch applied; undefined, null and "" remove a parameter. */
export function patchUrl(
  url: string,
  patch: Record<string, string | number | boolean | null | undefined>,
): string {
  const [path = "/", query = ""] = url.split("?", 2);
  const params = new URLSearchParams(query);
  for (const [name, value] of Object.entries(patch)) {
    if (value === undefined || value === null || value === "") params.delete(name);
    else params.set(name, String(value));
  }
  const text = params.toString();
  return text === "" ? path : `${path}?${text}`;
}

/** Goes to another address of the same page. `replace` for what Back need not undo one by one (typing). */
export function setQuery(
  patch: Record<string, string | number | boolean | null | undefined>,
  options: { replace?: boolean } = {},
): void {
  const next = patchUrl(address.peek(), patch);
  if (next === address.peek()) return;
  if (options.replace) history.replaceState(history.state, "", next);
  else history.pushState(null, "", next);
  address.value = next;
}

/** The current query; the component follows every change, Back and Forward included. */
export function useQuery(): Query {
  useSignals();
  return queryOf(address.value);
}

/** Ask whether what was typed may go; the last one is asked. */
const guards: (() => Promise<boolean>)[] = [];

/** Back and Forward are asked about first, until the guard is taken away again by what this returns. */
export function guardLeaving(ask: () => Promise<boolean>): () => void {
  guards.push(ask);
  return () => void guards.splice(guards.lastIndexOf(ask), 1);
}

/** Keeps the signal in step with Back and Forward; once per page. Returns its end. */
export function followHistory(): () => void {
  let isLetThrough = false;
  const follow = () => {
    address.value = location.pathname + location.search;
  };
  const onPop = () => {
    const ask = guards.at(-1);
    if (ask === undefined || isLetThrough) {
      isLetThrough = false;
      follow();
      return;
    }
    // The browser has gone already: the address comes back until somebody has answered.
    history.pushState(null, "", address.peek());
    void ask().then((yes) => {
      if (!yes) return;
      isLetThrough = true;
      history.back();
    });
  };
  window.addEventListener("popstate", onPop);
  return () => window.removeEventListener("popstate", onPop);
}

/** A whole number of a query within bounds, else the fallback. */
export function numberOf(
  text: string | undefined,
  fallback: number,
  min = 0,
  max = Number.MAX_SAFE_INTEGER,
): number {
  const value = Number(text);
  return text !== undefined && text !== "" && Number.isInteger(value) && value >= min && value <= max
    ? value
    : fallback;
}
