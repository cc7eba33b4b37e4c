// Bills of providers, read in: each line once, whatever is handed in twice or overlaps; a bucket that says something else
// than before takes the place of what it said. Refuses to charge anybody: bills change no balance and no settled call.
import { and, desc, eq, inArray } from "drizzle-orm";
import { q } from "../../db/database.ts";
import type { Deps } from "../deps.ts";
import { auditSteps } from "../logs/audit.ts";
import type { AuditActor } from "../logs/audit.ts";
import { refuse } from "../../shared/failures.ts";
import { fetchBill } from "./fetch-bill.ts";
import type { BillAddress } from "./fetch-bill.ts";
import { MOST_LINES } from "./bill-lines.ts";
import type { BillLine, ReadBill } from "./bill-lines.ts";
import { csvBlock, readBill } from "./formats.ts";
import type { CsvColumns, ReadOptions } from "./formats.ts";
import type { BillSource } from "../../shared/bill-sources.ts";

type BillDeps = Pick<Deps, "db" | "clock" | "routing" | "ledger" | "guard" | "reach" | "options">;

export interface BillRequest {
  channelId: number;
  source: BillSource;
  /** What was pasted or is in a file. */
  text?: string | undefined;
  /** Or where it is; then page after page. */
  from?: BillAddress | undefined;
  columns?: CsvColumns | undefined;
  /** Of the other instance; 500,000 where absent. */
  quotaPerUnit?: number | undefined;
  /** Only says what it would do. */
  isDry?: boolean | undefined;
}

export interface BillResult {
  import_id: number;
  lines: number;
  added: number;
  /** Read before, and the same. */
  known: number;
  /** Read before, and different now. */
  replaced: number;
  refused: { line: number; problem: string }[];
  refused_count: number;
  /** First and last day, start in UTC; 0 = none. */
  first_day: number;
  last_day: number;
  /** Of all lines that have an amount. */
  amount_nanos: number;
}

const MOST_TOLD = 50;
/** Lines of one transaction: all streams of an embedded database stand still meanwhile. */
const CHUNK = 200;
const DEFAULT_QUOTA_PER_UNIT = 500_000;

function sha256(text: string): string {
  return new Bun.CryptoHasher("sha256").update(text).digest("hex");
}

function hashOf({ model, kind, day, requestId, requests, tokens, amountNanos }: BillLine): string {
  return sha256(JSON.stringify([model, kind, day, requestId, requests, tokens, amountNanos])).slice(0, 32);
}

/** Heads and first lines of a CSV, for whoever says which column is what. */
export function previewCsv(text: string): { heads: string[]; rows: string[][] } {
  const [heads = [], ...rows] = csvBlock(text);
  if (heads.every((head) => head.trim() === "")) throw refuse("price_source_empty");
  return { heads: heads.map((head) => head.trim()), rows: rows.slice(0, 5) };
}

interface WholeBill extends ReadBill {
  text: string;
}

/** All pages of it. */
async function readAll(deps: BillDeps, request: BillRequest): Promise<WholeBill> {
  const options: ReadOptions = {
    columns: request.columns,
    quotaPerUnit: request.quotaPerUnit ?? DEFAULT_QUOTA_PER_UNIT,
    now: Math.floor(deps.clock.nowMs() / 1000),
  };
  if (request.text !== undefined)
    return { ...readBill(request.source, request.text, options), text: request.text };
  if (!request.from) throw refuse("price_source_missing");
  const whole: WholeBill = { lines: [], refused: [], nextPage: undefined, text: "" };
  // A page that comes twice says the same of the same buckets.
  const lines = new Map<string, BillLine>();
  let page: string | undefined;
  do {
    const text = await fetchBill(deps, request.from, page);
    const read = readBill(request.source, text, options);
    for (const line of read.lines) lines.set(line.bucket, line);
    whole.refused.push(...read.refused);
    whole.text += text;
    if (lines.size > MOST_LINES) throw refuse("bill_lines_many", { max: MOST_LINES });
    if (read.nextPage === page) break;
    page = read.nextPage;
  } while (page !== undefined);
  return { ...whole, lines: [...lines.values()] };
}

/**
 * Reads a bill in. Doing it again, or a part of it, changes nothing; after a crash it is simply done again. Throws what
 * readBill and fetchBill throw, record_missing, and bill_empty where there is nothing in it.
 */
export async function importBill(deps: BillDeps, request: BillRequest, by: AuditActor): Promise<BillResult> {
  const { channelId, isDry = false } = request;
  const channel = deps.routing.channel(channelId);
  if (!channel) throw refuse("record_missing");
  const bill = await readAll(deps, request);
  if (bill.lines.length === 0 && bill.refused.length === 0) throw refuse("bill_empty");
  const days = bill.lines.map(({ day }) => day);
  const result: BillResult = {
    import_id: 0,
    lines: bill.lines.length,
    added: 0,
    known: 0,
    replaced: 0,
    refused: bill.refused.slice(0, MOST_TOLD),
    refused_count: bill.refused.length,
    first_day: days.reduce((least, day) => Math.min(least, day), days[0] ?? 0),
    last_day: days.reduce((most, day) => Math.max(most, day), 0),
    amount_nanos: bill.lines.reduce((sum, { amountNanos }) => sum + (amountNanos ?? 0), 0),
  };
  if (!isDry) result.import_id = await beginImport(deps, request, { bill, result }, by);
  for (let at = 0; at < bill.lines.length; at += CHUNK)
    await writeChunk(deps, request, bill.lines.slice(at, at + CHUNK), result);
  if (!isDry) await endImport(deps, result);
  return result;
}

async function beginImport(
  deps: BillDeps,
  { channelId, source }: BillRequest,
  { bill, result }: { bill: WholeBill; result: BillResult },
  by: AuditActor,
): Promise<number> {
  const { costImports } = deps.db.t;
  const name = deps.routing.channel(channelId)?.name ?? "";
  return deps.db.atomic(function* (tx) {
    const [row] = yield* q(
      tx
        .insert(costImports)
        .values({
          channelId,
          source,
          hash: sha256(bill.text),
          createdAt: Math.floor(deps.clock.nowMs() / 1000),
          userId: by.id,
          username: by.username,
          refused: result.refused_count,
          firstDay: result.first_day,
          lastDay: result.last_day,
        })
        .returning({ id: costImports.id }),
    );
    const params = { channel: channelId, name, source, count: result.lines };
    yield* auditSteps(tx, deps, { user: by, action: "cost.import", params, by });
    return row?.id ?? 0;
  });
}

/** Adds to the counts of `result`; writes unless it has no number. */
async function writeChunk(
  deps: BillDeps,
  { channelId, source, isDry = false }: BillRequest,
  lines: readonly BillLine[],
  result: BillResult,
): Promise<void> {
  const { costBills } = deps.db.t;
  const buckets = lines.map(({ bucket }) => bucket);
  const counts = await deps.db.atomic(function* (tx) {
    const before = yield* q(
      tx
        .select({ id: costBills.id, bucket: costBills.bucket, hash: costBills.hash })
        .from(costBills)
        .where(
          and(
            eq(costBills.channelId, channelId),
            eq(costBills.source, source),
            inArray(costBills.bucket, buckets),
          ),
        ),
    );
    const known = new Map(before.map((row) => [row.bucket, row]));
    const done = { added: 0, known: 0, replaced: 0 };
    const fresh: (typeof costBills.$inferInsert)[] = [];
    for (const line of lines) {
      const hash = hashOf(line);
      const met = known.get(line.bucket);
      if (met?.hash === hash) {
        done.known++;
        continue;
      }
      const row = { ...line, importId: result.import_id, channelId, source, hash };
      if (!met) {
        done.added++;
        fresh.push(row);
        continue;
      }
      done.replaced++;
      if (isDry) continue;
      yield* q(tx.update(costBills).set(row).where(eq(costBills.id, met.id)).returning({ id: costBills.id }));
    }
    if (!isDry && fresh.length > 0)
      yield* q(tx.insert(costBills).values(fresh).returning({ id: costBills.id }));
    return done;
  });
  result.added += counts.added;
  result.known += counts.known;
  result.replaced += counts.replaced;
}

async function endImport(
  { db }: BillDeps,
  { import_id: id, added, known, replaced }: BillResult,
): Promise<void> {
  const { costImports } = db.t;
  await db.orm.update(costImports).set({ added, known, replaced }).where(eq(costImports.id, id));
}

const MOST_IMPORTS = 50;

/** What was read in, the latest first. */
export async function listImports({ db }: Pick<Deps, "db">, channelId: number) {
  const { costImports } = db.t;
  const rows = await db.orm
    .select()
    .from(costImports)
    .where(eq(costImports.channelId, channelId))
    .orderBy(desc(costImports.id))
    .limit(MOST_IMPORTS);
  return rows.map((row) => ({
    id: row.id,
    source: row.source,
    created_at: row.createdAt,
    username: row.username,
    added: row.added,
    known: row.known,
    replaced: row.replaced,
    refused: row.refused,
    first_day: row.firstDay,
    last_day: row.lastDay,
  }));
}
