// The import that the setup screen may begin, loaded when it does: few processes ever move a site in.
import type { Deps } from "./core/deps.ts";
import { importSign } from "./core/site/import-sign.ts";
import { setupState } from "./core/site/setup.ts";
import type { SetupImport, SetupImportState } from "./core/site/setup.ts";

export interface Moving extends SetupImport {
  /** What begins the process anew once a site is there; whoever serves says how. */
  restart: () => void;
}

export function createMoving(
  deps: Pick<Deps, "db" | "seal" | "clock" | "logger" | "options" | "version">,
): Moving {
  let job: SetupImport | undefined;
  let isHeard = false;

  /** Another process of the site is at it: the one that is asked when it is done has its report, and all begin anew. */
  async function elsewhere(): Promise<SetupImportState> {
    const { done } = await setupState(deps);
    if (done) return isHeard ? { state: "running" } : { state: "none" };
    const sign = await importSign(deps);
    isHeard = sign !== undefined;
    return sign ? { state: sign.error === undefined ? "running" : "failed", ...sign } : { state: "none" };
  }

  const moving: Moving = {
    restart: () => undefined,
    async begin(address) {
      const { createSetupImport } = await import("./import/setup-job.ts");
      job ??= createSetupImport({ ...deps, restart: () => moving.restart() });
      await job.begin(address);
    },
    async state(language) {
      const own = await job?.state(language);
      if (own?.state === "running" || own?.state === "done") return own;
      const other = await elsewhere();
      return own && other.state === "none" ? own : other;
    },
  };
  return moving;
}
