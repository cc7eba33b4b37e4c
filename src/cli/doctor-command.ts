// weir doctor: settings, machine, books and ways out on one page, or as JSON; beside a running server, and without its database.
// Refuses to change anything, and to print what opens something.
import { bookChecks, openDatabase } from "../core/doctor/books.ts";
import type { BookSettings } from "../core/doctor/books.ts";
import { machineChecks } from "../core/doctor/machine.ts";
import { networkChecks } from "../core/doctor/network.ts";
import type { NetworkSettings } from "../core/doctor/network.ts";
import { examine, formatReport } from "../core/doctor/report.ts";
import type { CheckRow, Finding } from "../core/doctor/report.ts";
import { valkeyChecks } from "../core/doctor/valkey.ts";
import type { ValkeyAddress } from "../db/valkey-url.ts";
import { createSealer, keySecret } from "../core/kit/seal.ts";
import { createOptions } from "../core/options/store.ts";

export interface DoctorContext extends Omit<BookSettings, "nowMs">, Omit<NetworkSettings, "nowMs"> {
  port: number;
  workers: number;
  durability: "journal" | "database";
  valkey: ValkeyAddress | undefined;
  version: string;
  nowMs: () => number;
  say: (text: string) => void;
  complain: (text: string) => void;
}

/** Settings that the start would refuse: the sentence that it would end with. */
interface Refused {
  sentence: string;
  version: string;
  nowMs: () => number;
  say: (text: string) => void;
  complain: (text: string) => void;
}

const USAGE = "usage: weir doctor [--json]";

/** Answers the exit code: 0 nothing failed (warnings are no failure), 1 something did, 2 called wrongly. */
export async function doctorCommand(
  context: DoctorContext | Refused,
  args: readonly string[],
): Promise<number> {
  const { version, nowMs, say, complain } = context;
  if (args.some((arg) => arg !== "--json")) {
    complain(USAGE);
    return 2;
  }
  const report =
    "sentence" in context
      ? await examine(version, nowMs(), [{ id: "settings", look: () => refusal(context.sentence) }])
      : await examineAll(context);
  say(args.includes("--json") ? JSON.stringify(report) : formatReport(report));
  return report.ok ? 0 : 1;
}

const refusal = (sentence: string): Finding => ({
  status: "fail",
  text: sentence,
  advice: "The start refuses this, too: correct the variable. Nothing else was looked at.",
});

async function examineAll(context: DoctorContext) {
  const { version, nowMs, dataDir, databaseUrl } = context;
  const opened = await openDatabase(context);
  const first: CheckRow[] = [
    { id: "settings", look: () => settingsOf(context) },
    ...machineChecks(dataDir, databaseUrl),
    ...valkeyChecks(context.valkey),
  ];
  if (!("db" in opened))
    return examine(version, nowMs(), [...first, { id: "database", look: () => opened.finding }]);
  const { db, pooler } = opened;
  try {
    const books = bookChecks(db, context);
    if (pooler) books.push({ id: "pooler", look: () => pooler });
    const ways = await waysOut(context, opened.db);
    return await examine(version, nowMs(), [...first, ...books, ...ways]);
  } finally {
    await db.close();
  }
}

/** Options are sealed in part: without the key, or without tables, there is nothing to look for outside. */
async function waysOut(context: DoctorContext, db: Parameters<typeof bookChecks>[0]): Promise<CheckRow[]> {
  const secret = keySecret(context.encryptionKey, context.dataDir);
  try {
    return networkChecks(db, await createOptions(db, createSealer(secret)), context);
  } catch {
    const text = "the settings of the site cannot be read: mail, names and upstreams were not looked at";
    return [{ id: "options", look: () => ({ status: "warn", text, advice: "See schema and key above." }) }];
  }
}

function settingsOf({
  port,
  workers,
  durability,
  databaseUrl,
  trustedProxies,
  upstreamNetworks,
}: DoctorContext): Finding {
  const place = databaseUrl === "" ? "embedded database" : `PostgreSQL at ${placeOf(databaseUrl)}`;
  const parts = [
    `port ${port}`,
    place,
    ...(workers > 1 ? [`${workers} workers`] : []),
    databaseUrl === "" || durability === "journal"
      ? "answers wait for the journal"
      : "answers wait for PostgreSQL's commit (DURABILITY=database)",
    `${trustedProxies.length} trusted proxies`,
    `${upstreamNetworks.length} networks open to upstreams`,
  ];
  return {
    status: "ok",
    text: parts.join(", "),
    figures: { port, workers, durability: databaseUrl === "" ? "journal" : durability },
  };
}

/** Host and name, without who signs in by what. */
function placeOf(databaseUrl: string): string {
  const url = URL.parse(databaseUrl);
  return url ? `${url.host}${url.pathname}` : "an address that cannot be read";
}
