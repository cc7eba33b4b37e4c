// Maintenance mode: whether the site is closed to all but root, and the refusal in the operator's words.
// The switch is kept as a plain boolean: every call of the gateway looks at it.
import { Role } from "../../shared/enums.ts";
import type { Failure } from "../../shared/failures.ts";
import { maintenanceRefusal } from "../options/quiet.ts";
import type { OptionAuthor, OptionStore, OptionWrite } from "../options/store.ts";

export interface Maintenance {
  /** In force on this node. */
  readonly isOn: boolean;
  /** What everybody but root gets: status 503, the operator's words or, without any, the dictionary's. */
  refusal(): Failure;
}

const SWITCH = "site.maintenance_enabled";
const QUIET = "site.maintenance_quiet";

export function createMaintenance(options: Pick<OptionStore, "get" | "onChange">): Maintenance {
  const state = {
    isOn: options.get(SWITCH),
    refusal: () => maintenanceRefusal(options),
  };
  options.onChange((key) => {
    if (key === SWITCH) state.isOn = options.get(SWITCH);
  });
  return state;
}

/** Throws for everybody but root while the site is closed. */
export function refuseInMaintenance(maintenance: Maintenance, role: number): void {
  if (maintenance.isOn && role < Role.root) throw maintenance.refusal();
}

/** Rows of `options` that an import leaves: closed to all but root, and nothing leaves by itself, until root ends it. */
export const IMPORTED_SITE: Readonly<Record<string, string>> = {
  [SWITCH]: "true",
  [QUIET]: "true",
};

/** Opens the site, and with it what waited; the next maintenance is an ordinary one. */
export async function endMaintenance(
  options: Pick<OptionStore, "write">,
  author: OptionAuthor,
): Promise<void> {
  const writes: OptionWrite[] = [
    { key: SWITCH, text: "false" },
    { key: QUIET, text: "false" },
  ];
  await options.write(function* () {
    yield* [];
    return { writes, value: undefined };
  }, author);
}
