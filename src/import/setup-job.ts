// An import that the setup screen begins, before there is any account: the program of `weir import` on the database that is
// served, as a job. Refuses a second one beside it, and a site that has been set up.
import { inArray } from "drizzle-orm";
import type { Deps } from "../core/deps.ts";
import { giveSigns, isImporting } from "../core/site/import-sign.ts";
import type { ImportSign } from "../core/site/import-sign.ts";
import { IMPORTED_SITE } from "../core/site/maintenance.ts";
import { holdSetup, setupFailure, setupState } from "../core/site/setup.ts";
import type { SetupImport, SetupImportState } from "../core/site/setup.ts";
import { EVERYTHING } from "../db/database.ts";
import type { Language } from "../shared/enums.ts";
import type { Progress } from "./context.ts";
import { parseSource, sourceName, SourceRefused } from "./dsn.ts";
import { familyOf } from "./family.ts";
import { closeSite } from "./finish.ts";
import { reportLines } from "./report-text.ts";
import type { ImportReport } from "./report.ts";
import { runImport } from "./run.ts";
import { openSource } from "./source.ts";
import type { SourceDatabase } from "./source.ts";
import { readState } from "./state.ts";

/** Whoever looks gets the report before the process begins anew; where nobody looks, so long later. */
const LAST_LOOK_MS = 1500;
const NOBODY_MS = 60_000;

export interface SetupJobDeps extends Pick<Deps, "db" | "seal" | "clock" | "logger" | "options" | "version"> {
  /** Begins the process anew: everything that it knows is of the empty site. */
  restart: () => void;
}

interface Job {
  /** Without its password. */
  source: string;
  progress?: Progress;
  report?: ImportReport;
  /** What the import refused, or that it failed. */
  error?: string;
}

function signOf({ source, progress }: Job): ImportSign {
  if (!progress) return { source };
  const { step, done, total, leftSeconds } = progress;
  return { source, step, done, total, ...(leftSeconds === undefined ? {} : { left_seconds: leftSeconds }) };
}

/** Throws a Failure `setup_import_refused` where nothing of the family can be read there. */
async function openedSource(address: string): Promise<{ name: string; source: SourceDatabase }> {
  try {
    const place = parseSource(address);
    const source = await openSource(place);
    try {
      familyOf(source);
    } catch (error) {
      await source.close();
      throw error;
    }
    return { name: sourceName(place), source };
  } catch (error) {
    if (error instanceof SourceRefused) throw setupFailure("setup_import_refused", { reason: error.message });
    throw error;
  }
}

export function createSetupImport(deps: SetupJobDeps): SetupImport {
  const { db, seal, clock, logger, version } = deps;
  let job: Job | undefined;
  let isOpening = false;
  let isLeaving = false;

  /** Before the first row: whoever polls tasks or asks for orders here knows none of the channels that come. */
  async function close(): Promise<void> {
    await db.atomic((tx) => closeSite(db, tx));
    await readOptions();
  }

  /** What stands in `options` is in force here at once, and on other nodes of the site. */
  async function readOptions(): Promise<void> {
    await deps.options.reload();
    await db.announce("options", [EVERYTHING]);
  }

  /** Where nothing has come the site is as it was, to be set up by hand. Half a site stays closed. */
  async function reopen(): Promise<void> {
    if (await readState(db)) return;
    await db.orm.delete(db.t.options).where(inArray(db.t.options.key, Object.keys(IMPORTED_SITE)));
    await readOptions();
  }

  async function run(mine: Job, source: SourceDatabase, leave: () => Promise<void>): Promise<void> {
    try {
      mine.report = await runImport({
        source,
        into: { db, seal, version },
        settings: {
          isDry: false,
          part: "all",
          logDays: 0,
          unlimitedPlanQuota: undefined,
          optionTexts: undefined,
        },
        clock,
        onProgress: (progress) => {
          mine.progress = progress;
        },
      });
      logger.info("a site was moved in", { source: mine.source, seconds: mine.report.seconds });
      // What else this process knows is of the empty site until it begins anew; other nodes read anew what they had of it.
      await readOptions();
      for (const kind of ["channels", "costs"] as const) await db.announce(kind, [EVERYTHING]);
      setTimeout(deps.restart, NOBODY_MS).unref();
    } catch (error) {
      logger.error("a site could not be moved in", { source: mine.source, error: String(error) });
      await reopen().catch((failed: unknown) =>
        logger.error("the site could not be opened again", { error: String(failed) }),
      );
      mine.error = error instanceof SourceRefused ? error.message : "";
    } finally {
      await leave();
      await source.close();
    }
  }

  return {
    async begin(address) {
      if (job?.report || (await setupState(deps)).done) throw setupFailure("setup_done");
      if (isOpening || (job && job.error === undefined)) throw setupFailure("setup_importing");
      isOpening = true;
      try {
        if (await isImporting(deps)) throw setupFailure("setup_importing");
        const { name, source } = await openedSource(address);
        const release = holdSetup(db);
        const mine: Job = { source: name };
        let end: Awaited<ReturnType<typeof giveSigns>>;
        try {
          await close();
          end = await giveSigns(deps, () => signOf(mine));
        } catch (error) {
          release();
          await source.close();
          throw error;
        }
        job = mine;
        void run(mine, source, async () => {
          await end(mine.error).catch(() => undefined);
          if (mine.error !== undefined) release();
        });
      } finally {
        isOpening = false;
      }
    },
    async state(language: Language): Promise<SetupImportState> {
      if (!job) return { state: "none" };
      const { source, report, error } = job;
      if (report) {
        if (!isLeaving) {
          isLeaving = true;
          setTimeout(deps.restart, LAST_LOOK_MS).unref();
        }
        return { state: "done", source, report: reportLines(report, language) };
      }
      if (error !== undefined) return { state: "failed", source, error };
      return { state: "running", ...signOf(job) };
    },
  };
}
