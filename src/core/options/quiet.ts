// Whether the site keeps quiet: in maintenance mode with `site.maintenance_quiet`, as an import leaves a site, nothing leaves it
// by itself. Refuses nothing that somebody asks for: root's own calls, tests and sign-ins go out as always.
import { Failure } from "../../shared/failures.ts";
import type { OptionStore } from "./store.ts";

type Reader = Pick<OptionStore, "get">;

/** Letters wait, notices and webhooks are not sent, what comes round and asks elsewhere does not run. */
export function isQuiet(options: Reader): boolean {
  return options.get("site.maintenance_enabled") && options.get("site.maintenance_quiet");
}

/** What everybody but root gets in maintenance mode: status 503, the operator's words or, without any, the dictionary's. */
export function maintenanceRefusal(options: Reader): Failure {
  const text = options.get("site.maintenance_message").trim();
  return new Failure("no-channel", "maintenance", { status: 503, ...(text === "" ? {} : { text }) });
}

/** Throws what the mode answers where a letter or webhook would leave a quiet site. */
export function refuseWhenQuiet(options: Reader): void {
  if (isQuiet(options)) throw maintenanceRefusal(options);
}
