// Maintenance mode: whether the site is closed to all but root, and the refusal in the operator's words.
// The switch is kept as a plain boolean: every call of the gateway looks at it.
import { Role } from "../../shared/enums.ts";
import { Failure } from "../../shared/failures.ts";
import type { OptionStore } from "../options/store.ts";

export interface Maintenance {
  /** In force on this node. */
  readonly isOn: boolean;
  /** What everybody but root gets: status 503, the operator's words or, without any, the dictionary's. */
  refusal(): Failure;
}

const SWITCH = "site.maintenance_enabled";

export function createMaintenance(options: Pick<OptionStore, "get" | "onChange">): Maintenance {
  const state = {
    isOn: options.get(SWITCH),
    refusal(): Failure {
      const text = options.get("site.maintenance_message").trim();
      return new Failure("no-channel", "maintenance", { status: 503, ...(text === "" ? {} : { text }) });
    },
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
