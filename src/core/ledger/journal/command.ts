// `weir journal show | check | enter FILE | skip 101-150`: what the journal has and the tables do not, for an operator.
// Refuses to run beside a server (the caller holds the directory's lock), to guess, and to give anything up unwritten.
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { eq, like } from "drizzle-orm";
import type { Database } from "../../../db/database.ts";
import { systemClock } from "../../kit/clock.ts";
import { findNodeId } from "../installation.ts";
import { readFrame, syncDirectory } from "./files.ts";
import { frameOf, TAIL_BYTES } from "./frames.ts";
import { lastOf, nameOf, recover, span, surveyFile } from "./recovery.ts";
import type { StorePosition, Placement, Recovery, SurveyedFile } from "./recovery.ts";
import { JOURNAL_NAME, surveyAll } from "./journal.ts";
import { MAX_BATCH } from "../group-commit.ts";
import type { LedgerItem } from "../items.ts";
import { takeLease } from "../node-lease.ts";

export const SKIPPED_FILE = "skipped-settlements.jsonl";
const USAGE = "usage: weir journal show | check | enter FILE | skip 101-150";

export interface JournalCommandDeps {
  db: Database;
  dataDir: string;
  say: (line: string) => void;
  nowMs?: () => number;
}

interface Situation {
  nodeId: string;
  stored: StorePosition;
  files: SurveyedFile[];
  found: Recovery;
}

/** The exit code: 0 all is there, 1 findings, 2 called wrongly. */
export async function journalCommand(deps: JournalCommandDeps, args: readonly string[]): Promise<number> {
  const [name = "", argument = ""] = args;
  const wanted = name === "enter" || name === "skip" ? 2 : 1;
  if (!["show", "check", "enter", "skip"].includes(name) || args.length !== wanted) {
    deps.say(USAGE);
    return 2;
  }
  const situation = await look(deps);
  if (!situation) {
    deps.say(
      `${deps.dataDir} has no node.id, or the database does not know it: there is no journal to look at.`,
    );
    return 0;
  }
  if (name === "show") await show(deps, situation);
  if (name === "enter") return enter(deps, situation, argument);
  if (name === "skip") return skip(deps, situation, argument);
  return report(deps, situation);
}

async function look({ db, dataDir }: JournalCommandDeps): Promise<Situation | undefined> {
  const nodeId = findNodeId(dataDir);
  if (nodeId === undefined) return undefined;
  const { nodes } = db.t;
  const [node] = await db.orm.select({ nodeId: nodes.nodeId }).from(nodes).where(eq(nodes.nodeId, nodeId));
  if (!node) return undefined;
  // Taken as a start takes it: a process elsewhere that lives under this id is not worked against.
  const logger = { debug() {}, info() {}, warn() {}, error() {} };
  const lease = await takeLease({ db, logger, clock: systemClock, nodeId, dataDir });
  const files = surveyAll(dataDir, lease.position);
  const found = recover(files, lease.position);
  // A journal that was only looked at is not entered: its node stays lost for the others.
  await lease.release(found.end === lease.position.mark && found.findings.length === 0);
  return { nodeId, stored: lease.position, files, found };
}

function report({ say }: JournalCommandDeps, { stored, found }: Situation): number {
  for (const warning of found.warnings) say(`Note: ${warning}.`);
  for (const { from, to, sentence } of found.findings)
    say(`${sentence}. To give them up: weir journal skip ${from}-${to}`);
  if (found.findings.length > 0) return 1;
  const waiting = found.end - stored.mark;
  say(
    waiting > 0
      ? `${span(stored.mark + 1, found.end)} wait and are all there; the next start enters them.`
      : "The books have everything that is in the journal.",
  );
  return 0;
}

async function show({ db, say }: JournalCommandDeps, { nodeId, files }: Situation): Promise<void> {
  const { nodes, marks } = db.t;
  const [row] = await db.orm.select().from(nodes).where(eq(nodes.nodeId, nodeId));
  if (row) {
    say(
      `Node ${nodeId}: the books end with position ${row.mark} (${row.entered} entered, ${row.setAside} set aside, ` +
        `${row.skipped} skipped); durable in the journal up to ${Math.max(row.journaled, ...files.map((file) => file.last))}.`,
    );
  }
  const holes = await db.orm
    .select()
    .from(marks)
    .where(like(marks.key, `hole:${nodeId}:%`));
  for (const { key } of holes) say(`Given up: positions ${key.slice(`hole:${nodeId}:`.length)}.`);
  for (const file of [...files].sort((a, b) => a.last - b.last)) {
    const waiting = file.frames.length > 0 ? `, waiting: ${ranges(file.frames)}` : "";
    const foreign =
      file.foreign > 0
        ? `, ${file.foreign} writes of another journal up to position ${file.foreignLast}`
        : "";
    const own = file.last > 0 ? `up to position ${file.last}` : "nothing of this journal";
    say(`${nameOf(file.path)}: ${own}${waiting}${foreign}`);
  }
}

/** `101-150, 161-170`. */
function ranges(frames: readonly Placement[]): string {
  const parts: { from: number; to: number }[] = [];
  for (const frame of [...frames].sort((a, b) => a.first - b.first)) {
    const part = parts.at(-1);
    if (part && frame.first <= part.to + 1) part.to = Math.max(part.to, lastOf(frame));
    else parts.push({ from: frame.first, to: lastOf(frame) });
  }
  return parts.map(({ from, to }) => `${from}-${to}`).join(", ");
}

/** Puts the file among the others when it has what is missing; the next start enters it in its order. */
function enter(deps: JournalCommandDeps, situation: Situation, path: string): number {
  const { dataDir, say } = deps;
  const { stored, files, found } = situation;
  if (!existsSync(path)) {
    say(`${path} does not exist.`);
    return 2;
  }
  const bytes = readFileSync(path);
  const added = surveyFile(path, bytes, stored);
  const known = new Set(
    files.flatMap((file) => file.frames).map(({ first, checksum }) => `${first} ${checksum}`),
  );
  const fresh = added.frames.filter(({ first, checksum }) => !known.has(`${first} ${checksum}`));
  if (fresh.length === 0) {
    const foreign = added.foreign > 0 ? `; ${added.foreign} writes in it are of another journal` : "";
    say(`${path} has nothing that the books and the journal lack${foreign}.`);
    return found.findings.length > 0 ? 1 : 0;
  }
  const together = recover([...files, added], stored);
  const isInTwoVersions = together.findings.some(({ sentence }) => sentence.includes("two versions"));
  if (isInTwoVersions) {
    report(deps, { ...situation, found: together });
    say("Nothing was brought in.");
    return 1;
  }
  addFile(dataDir, bytes);
  say(`Brought in from ${path}: ${ranges(fresh)}.`);
  return report(deps, { ...situation, found: together });
}

/** Writes what can still be read of the positions to a file, and puts entries in their place that charge nobody. */
async function skip(deps: JournalCommandDeps, situation: Situation, range: string): Promise<number> {
  const { db, dataDir, say, nowMs = Date.now } = deps;
  const { nodeId, stored, files } = situation;
  const match = /^(\d{1,15})(?:-(\d{1,15}))?$/.exec(range);
  const [from, to] = [Number(match?.[1]), Number(match?.[2] ?? match?.[1])];
  const highest = Math.max(stored.journaled, ...files.map((file) => file.last));
  if (!match || from <= stored.mark || to < from || to > highest) {
    say(
      highest > stored.mark
        ? `Only positions from ${stored.mark + 1} to ${highest} can be given up, as in ${stored.mark + 1}-${highest}.`
        : "The books have everything that is in the journal: there is nothing to give up.",
    );
    return 2;
  }
  const touched = files
    .flatMap((file) => file.frames)
    .filter((frame) => frame.first <= to && lastOf(frame) >= from);
  const over = touched.find((frame) => Math.max(frame.first, stored.mark + 1) < from || lastOf(frame) > to);
  if (over) {
    say(
      `${span(over.first, lastOf(over))} stand in one write: give up ${Math.max(over.first, stored.mark + 1)}-${lastOf(over)} as a whole.`,
    );
    return 2;
  }
  // First the record, then the tables' note, then the change: cut short, the command is given again.
  const at = Math.floor(nowMs() / 1000);
  const lines: unknown[] = [{ nodeId, from, to, at }];
  for (const frame of touched) {
    const items = readFrame<LedgerItem>(frame.path, frame.begin, frame.end);
    for (const [index, item] of items.entries())
      if (frame.first + index > stored.mark) lines.push({ nodeId, position: frame.first + index, item });
  }
  writeDurably(
    join(dataDir, SKIPPED_FILE),
    "a",
    Buffer.from(lines.map((line) => `${JSON.stringify(line)}\n`).join("")),
  );
  await db.orm
    .insert(db.t.marks)
    .values({ key: `hole:${nodeId}:${from}-${to}`, value: to - from + 1 })
    .onConflictDoNothing();
  for (const { path, begin, end } of touched)
    writeDurably(path, "r+", Buffer.alloc(Math.min(TAIL_BYTES, end - begin)), begin);
  const frames: Buffer[] = [];
  for (let first = from; first <= to; first += MAX_BATCH) {
    const count = Math.min(MAX_BATCH, to - first + 1);
    const items = Array.from({ length: count }, (): LedgerItem => ({ skipped: true }));
    const frame = frameOf(stored.history, first, items);
    frames.push(first + count > to ? frame : frame.subarray(0, frame.length - TAIL_BYTES));
  }
  addFile(dataDir, Buffer.concat(frames));
  say(`Given up: ${span(from, to)}. What could be read of them stands in ${SKIPPED_FILE}.`);
  const after = surveyAll(dataDir, stored);
  return report(deps, { ...situation, files: after, found: recover(after, stored) });
}

/** A further journal file, whole or not at all. */
function addFile(dataDir: string, bytes: Buffer): void {
  const numbers = readdirSync(dataDir).map((name) => Number(/^journal-(\d+)\.log/.exec(name)?.[1] ?? 0));
  const name = `journal-${Math.max(0, ...numbers) + 1}.log`;
  if (!JOURNAL_NAME.test(name)) throw new Error(`${name} is no journal file`);
  const draft = join(dataDir, `${name}.draft`);
  writeDurably(draft, "w", bytes);
  renameSync(draft, join(dataDir, name));
  syncDirectory(dataDir);
}

function writeDurably(path: string, flags: string, bytes: Buffer, position?: number): void {
  const file = openSync(path, flags, 0o600);
  try {
    for (let done = 0; done < bytes.length;)
      done += writeSync(
        file,
        bytes,
        done,
        bytes.length - done,
        position === undefined ? null : position + done,
      );
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
