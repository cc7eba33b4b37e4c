// The import that the setup screen may begin, loaded when it does: few processes ever move a site in.
import type { Deps } from "./core/deps.ts";
import type { SetupImport } from "./core/site/setup.ts";

export interface Moving extends SetupImport {
  /** What begins the process anew once a site is there; whoever serves says how. */
  restart: () => void;
}

export function createMoving(
  deps: Pick<Deps, "db" | "seal" | "clock" | "logger" | "options" | "version">,
): Moving {
  let job: SetupImport | undefined;
  const moving: Moving = {
    restart: () => undefined,
    async begin(address) {
      const { createSetupImport } = await import("./import/setup-job.ts");
      job ??= createSetupImport({ ...deps, restart: () => moving.restart() });
      await job.begin(address);
    },
    state: (language) => job?.state(language) ?? { state: "none" },
  };
  return moving;
}
