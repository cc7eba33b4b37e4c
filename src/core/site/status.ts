// The status payload: what every visitor's console needs to know of the site, secrets never.
import type { Deps } from "../deps.ts";
import { optionRows } from "../options/definitions.ts";
import type { OptionKey, PublicOptions } from "../options/definitions.ts";
import type { OptionStore } from "../options/store.ts";
import { setupState } from "./setup.ts";

const PUBLIC_FIELDS: readonly (readonly [string, OptionKey])[] = optionRows.flatMap((row) =>
  row.public === undefined ? [] : [[row.public, row.key] as const],
);

function publicOptions(options: Pick<OptionStore, "get">): PublicOptions {
  return Object.fromEntries(PUBLIC_FIELDS.map(([name, key]) => [name, options.get(key)])) as PublicOptions;
}

/** The server's address is the operator's word or nothing: a request's Host is anybody's. */
export async function siteStatus(deps: Deps) {
  const { options } = deps;
  const { done } = await setupState(deps);
  return {
    ...publicOptions(options),
    version: deps.version,
    start_time: deps.startedAt,
    setup: done,
    /** The operator's words while maintenance mode is on; "" otherwise, or where there are none. */
    maintenance_message: options.get("site.maintenance_enabled")
      ? options.get("site.maintenance_message").trim()
      : "",
    enable_online_topup:
      options.get("PayAddress") !== "" && options.get("EpayId") !== "" && options.get("EpayKey") !== "",
    // Nothing here collects updates, and chat links have their own list: older clients read both fields.
    enable_batch_update: false,
    chat_link: "",
  };
}

export type SiteStatus = Awaited<ReturnType<typeof siteStatus>>;
