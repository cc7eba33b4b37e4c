// What ties a data directory to its database: the database's own number noted in it, and the node's name.
// Refuses to begin anew where a product has been, which would hide lost books behind the setup screen, and on half a site.
import { randomBytes } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { eq } from "drizzle-orm";
import { SQLITE_FILE } from "../../db/connect.ts";
import type { Database } from "../../db/database.ts";
import { writeAtomically } from "./journal/files.ts";
import { JOURNAL_NAME } from "./journal/journal.ts";
import { databaseNumber, findStorePosition, NUMBER_KEY } from "./node-lease.ts";

export const NODE_FILE = "node.id";
const NOTE_FILE = "database.id";
const KEY_FILE = "encryption.key";

/** The start is stopped with this sentence. */
export class WouldStartNew extends Error {}

/** The start is stopped with this sentence. */
export class NodeIdUnusable extends Error {
  constructor(path: string, found: string) {
    super(
      `${path} holds ${found === "" ? "nothing" : `"${found.slice(0, 40)}"`}, which is no node id: put the file of this directory back. ` +
        "Delete it only when the journal-*.log files beside it are not needed any more.",
    );
  }
}

/** The start is stopped with this sentence. */
export class TransferUnfinished extends Error {
  constructor() {
    super(
      "a whole site is being brought into this database, and not all of it is there and proved: run the same weir move or " +
        "weir import again, which goes on where it stopped",
    );
  }
}

/** Mark of a database that an export goes into (src/transfer): how many of its lines are there. */
export const TRANSFER_KEY = "transfer:lines";

/** Throws TransferUnfinished. */
async function refuseUnfinished(db: Database): Promise<void> {
  const { marks } = db.t;
  const [row] = await db.orm.select({ key: marks.key }).from(marks).where(eq(marks.key, TRANSFER_KEY));
  if (row) throw new TransferUnfinished();
}

/** What a running product leaves in its directory, besides its database. */
function tracesIn(dataDir: string, databaseUrl: string): string[] {
  const names = readdirSync(dataDir).filter(
    (name) => name === NODE_FILE || name === NOTE_FILE || name === KEY_FILE || JOURNAL_NAME.test(name),
  );
  const file = statSync(join(dataDir, SQLITE_FILE), { throwIfNoEntry: false });
  return databaseUrl !== "" && file && file.size > 0 ? [SQLITE_FILE, ...names] : names;
}

function wouldStartNew(dataDir: string, what: string, traces: readonly string[]): WouldStartNew {
  return new WouldStartNew(
    `${what}, but ${dataDir} belongs to an installation (${traces.slice(0, 4).join(", ")}): put its database back or ` +
      "set DATABASE_URL to it, or set WEIR_NEW=1 to begin a new installation here.",
  );
}

/** A site that is not whole lies beside its later name, and which command goes on with it. */
const DRAFTS: readonly [ending: string, command: string][] = [
  ["importing", "weir import, with the same source,"],
  ["moving", "the same weir move or weir import"],
  ["restoring", "weir restore"],
];

function refuseDraft(dataDir: string): void {
  for (const [ending, command] of DRAFTS) {
    const draft = join(dataDir, `${SQLITE_FILE}.${ending}`);
    if (existsSync(draft))
      throw new WouldStartNew(
        `${draft} is a site that has not come in whole: run ${command} again, which goes on where it stopped; or set WEIR_NEW=1 ` +
          "to begin a new installation here.",
      );
  }
}

/** Before the database is opened, which would make the file. */
export function refuseLostFile(dataDir: string, databaseUrl: string, startsNew: boolean): void {
  if (startsNew || databaseUrl !== "") return;
  const file = statSync(join(dataDir, SQLITE_FILE), { throwIfNoEntry: false });
  if (file && file.size > 0) return;
  refuseDraft(dataDir);
  const traces = existsSync(dataDir) ? tracesIn(dataDir, databaseUrl) : [];
  if (traces.length > 0)
    throw wouldStartNew(dataDir, `the database file ${SQLITE_FILE} is missing or empty`, traces);
}

/** Ties the directory to the database; both get to know the database's number. Call before the directory gets a name. */
export async function settleIn(db: Database, dataDir: string, startsNew: boolean): Promise<void> {
  const { marks, nodes } = db.t;
  await refuseUnfinished(db);
  const note = join(dataDir, NOTE_FILE);
  const noted = existsSync(note) ? readFileSync(note, "utf8").trim() : "";
  const isKnown = await knowsNode(db, dataDir);
  let number = await databaseNumber(db);
  if (number === undefined) {
    const [node] = await db.orm.select({ nodeId: nodes.nodeId }).from(nodes).limit(1);
    const traces = tracesIn(dataDir, db.kind === "postgres" ? "postgres" : "");
    if (!node && traces.length > 0 && !startsNew)
      throw wouldStartNew(dataDir, "the database is empty", traces);
    // An older state than the number, put back, is the same database still. 48 bits: a whole number on every way.
    const value = isKnown && isNumber(noted) ? Number(noted) : randomBytes(6).readUIntBE(0, 6);
    await db.orm.insert(marks).values({ key: NUMBER_KEY, value }).onConflictDoNothing();
    number = await databaseNumber(db);
  }
  const own = String(number);
  if (noted === own) return;
  // A torn note says nothing; and a database that knows this node is one that the directory belonged to before.
  if (isNumber(noted) && !startsNew && !isKnown)
    throw wouldStartNew(dataDir, "the database is another one", [NOTE_FILE]);
  writeAtomically(dataDir, NOTE_FILE, `${own}\n`);
}

const isNumber = (text: string) => /^\d{1,15}$/.test(text);

async function knowsNode(db: Database, dataDir: string): Promise<boolean> {
  const nodeId = findNodeId(dataDir);
  if (nodeId === undefined) return false;
  return (await findStorePosition(db, nodeId)) !== undefined;
}

/** The name of this data directory, if it has one. */
export function findNodeId(dataDir: string): string | undefined {
  const path = join(dataDir, NODE_FILE);
  if (!existsSync(path)) return undefined;
  const id = readFileSync(path, "utf8").trim();
  if (!/^[0-9a-f]{16}$/.test(id)) throw new NodeIdUnusable(path, id);
  return id;
}

/** The same, made at random where there is none: the journal's position in the tables hangs on it. */
export function readNodeId(dataDir: string): string {
  const found = findNodeId(dataDir);
  if (found !== undefined) return found;
  const id = randomBytes(8).toString("hex");
  // After a power cut another name, or none, would make the journal a stranger's.
  writeAtomically(dataDir, NODE_FILE, `${id}\n`);
  return id;
}
