// An import from beginning to end: the log by pages, then the small tables, then the books; the same steps for a dry run.
// Refuses a target that somebody uses, another source than the one it began with, and one that changes while it is read.
import { createSealer } from "../core/kit/seal.ts";
import type { Sealer } from "../core/kit/seal.ts";
import type { Database } from "../db/database.ts";
import type { ImportContext, ImportSettings, Progress } from "./context.ts";
import { SourceRefused } from "./dsn.ts";
import { familyOf } from "./family.ts";
import { finishImport } from "./finish.ts";
import { fingerprintOf, identityOf } from "./fingerprint.ts";
import { COUNTED, lookAround } from "./known.ts";
import { createNotes, withoutNames } from "./report.ts";
import type { ImportReport } from "./report.ts";
import type { SourceDatabase } from "./source.ts";
import { beginTables, isEmptyTarget, readMark, readState } from "./state.ts";
import type { ImportState } from "./state.ts";
import { importAccounts } from "./steps/accounts.ts";
import { importChannels } from "./steps/channels.ts";
import { createDrySums, importLogs, importQuotaData, LOG_STEP } from "./steps/log-rows.ts";
import { importOrders, importTasks } from "./steps/records.ts";
import { importSettings } from "./steps/settings.ts";
import { createTarget, readSums } from "./target.ts";

export interface ImportInput {
  source: SourceDatabase;
  /** The old program's database of logs, where it had one of its own. */
  logs?: SourceDatabase | undefined;
  /** Undefined: a dry run. */
  into: { db: Database; seal: Sealer; version: string } | undefined;
  settings: ImportSettings;
  clock: { nowMs(): number; monotonicMs(): number };
  onProgress: (progress: Progress) => void;
}

/** Rows that a target takes in a second, measured on two shared cores; a dry run tells by it what the real one will take. */
const ROWS_PER_SECOND = 50_000;

async function openState(
  { into, settings, clock }: ImportInput,
  fresh: Pick<ImportState, "family" | "identity">,
): Promise<ImportState> {
  const found = into ? await readState(into.db) : undefined;
  if (found) {
    if (found.stage === "done")
      throw new SourceRefused("this site has been imported already; an import goes into an empty database");
    if (found.identity !== fresh.identity)
      throw new SourceRefused(
        "an import into this database has begun from another source, or its tables have changed: finish it from that one, or begin with an empty database",
      );
    return found;
  }
  if (settings.part === "rest")
    throw new SourceRefused("--finish goes on behind --logs-first, which has not run on this database");
  if (into && !(await isEmptyTarget(into.db)))
    throw new SourceRefused(
      "the target has accounts or a log of its own: an import goes into an empty database, and nothing is merged",
    );
  return {
    ...fresh,
    fingerprint: "",
    startedAt: Math.floor(clock.nowMs() / 1000),
    stage: "logs",
    logNotes: { tables: {}, findings: [] },
    firstCall: 0,
  };
}

/** Counts all rows first; from then on it can tell how long the rest will take. */
async function createMeter(input: ImportInput, logs: SourceDatabase): Promise<ImportContext["advance"]> {
  const { source, clock, onProgress } = input;
  let total = 0;
  for (const table of COUNTED) total += await (table === "logs" ? logs : source).count(table);
  const startedMs = clock.monotonicMs();
  let done = 0;
  return (step, rows) => {
    done += rows;
    const seconds = (clock.monotonicMs() - startedMs) / 1000;
    const leftSeconds =
      done === 0 || seconds < 1 ? undefined : Math.ceil((seconds / done) * Math.max(0, total - done));
    onProgress({ step, done, total, leftSeconds });
  };
}

/** Throws SourceRefused with a sentence for the operator. */
export async function runImport(input: ImportInput): Promise<ImportReport> {
  const { source, into, settings, clock } = input;
  const logs = input.logs ?? source;
  const startedMs = clock.monotonicMs();
  const family = familyOf(source);
  if (!logs.has("logs", "id")) throw new SourceRefused("the source of the log has no table `logs`");
  const mark = into ? await readMark(into.db, LOG_STEP) : 0;
  const state = await openState(input, { family, identity: await identityOf(source, logs, family) });
  const advance = await createMeter(input, logs);
  const target = createTarget(into?.db);
  const common = {
    source,
    family,
    target,
    seal: into?.seal ?? createSealer("a dry run keeps nothing"),
    now: state.startedAt,
    settings,
    openingSums: {},
    advance,
  };
  const logNotes = createNotes(state.logNotes);
  const dry = into ? undefined : createDrySums();
  await importLogs(
    { ...common, notes: logNotes },
    { logs, state, dry, until: settings.part === "logs" ? clock.nowMs() : undefined, mark },
  );
  const notes = createNotes();
  const report: ImportReport = {
    family,
    engine: source.engine,
    isDry: !into,
    tables: {},
    findings: [],
    dropped: {},
    openings: common.openingSums,
    seconds: 0,
  };
  const seal = (): ImportReport => {
    report.tables = { ...logNotes.tables, ...notes.tables };
    report.findings = [...notes.findings, ...logNotes.findings];
    report.seconds = Math.round((clock.monotonicMs() - startedMs) / 100) / 10;
    return report;
  };
  if (settings.part === "logs") return seal();
  if (input.logs) notes.add("logs", "log_main_unread", await source.count("logs"));
  report.dropped = await lookAround(source, notes);
  await importTables(input, { ...common, notes }, { state, dry });
  seal();
  if (into) await finishImport(into.db, { ...into, clock }, { state, report: withoutNames(report) });
  else
    report.expectedSeconds = Math.ceil(
      report.seconds +
        Object.values(report.tables).reduce((sum, { read }) => sum + read, 0) / ROWS_PER_SECOND,
    );
  return seal();
}

async function importTables(
  { source, into, settings }: ImportInput,
  context: ImportContext,
  { state, dry }: { state: ImportState; dry: ReturnType<typeof createDrySums> | undefined },
): Promise<void> {
  const fingerprint = await fingerprintOf(source, settings);
  if (state.fingerprint !== "" && state.fingerprint !== fingerprint)
    throw new SourceRefused(
      "the source has changed since this import began, or was asked for otherwise: begin anew with an empty database",
    );
  state.fingerprint = fingerprint;
  state.stage = "tables";
  if (into) await into.db.atomic((tx) => beginTables(into.db, tx, state));
  await importQuotaData(context, { firstCall: state.firstCall, dry });
  const sums = dry ?? (await readSums((into as NonNullable<typeof into>).db));
  const tables = { ...context, sums };
  const site = await importSettings(context);
  const accounts = await importAccounts(tables, site);
  await importChannels(tables);
  await importOrders(tables, accounts, site);
  await importTasks(tables, accounts);
  if ((await fingerprintOf(source, settings)) !== fingerprint)
    throw new SourceRefused(
      "the source changed while it was read: stop the old program first, then begin anew with an empty database",
    );
}
