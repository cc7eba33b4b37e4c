// The way back in for root when every other is lost: a link that `weir rescue` prints, good once and for ten minutes.
// Refuses to keep the link's secret anywhere: a hash of it waits, in a file beside SQLite (whose only writer is the server),
// in a row on PostgreSQL.
import { randomBytes } from "node:crypto";
import { chownSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { and, asc, eq, isNull } from "drizzle-orm";
import { SQLITE_FILE } from "../../db/connect.ts";
import { q } from "../../db/database.ts";
import type { Orm, Steps } from "../../db/database.ts";
import { Role } from "../../shared/enums.ts";
import { refuse } from "../../shared/failures.ts";
import type { Deps } from "../deps.ts";
import { sha256Hex } from "../kit/seal.ts";
import { auditSteps } from "../logs/audit.ts";
import type { AuditActor } from "../logs/audit.ts";
import { ROOT_RESCUED } from "../logs/sentences.ts";
import { consumeSteps, FLOW_SECONDS } from "./auth-flows.ts";
import { forgiveWrongTries } from "./forgiven.ts";
import type { UserRow } from "./users.ts";

const FILE = "rescue.link";
const SUBJECT = "root";

interface Waiting {
  hash: string;
  userId: number;
  /** Unix seconds. */
  expiresAt: number;
}

/** Of several the first that was made. */
async function rootId({ t, orm }: Deps["db"]): Promise<number | undefined> {
  const [root] = await orm
    .select({ id: t.users.id })
    .from(t.users)
    .where(and(eq(t.users.role, Role.root), isNull(t.users.deletedAt)))
    .orderBy(asc(t.users.id))
    .limit(1);
  return root?.id;
}

/** The link's secret; undefined: there is no root account yet. A link from before is good no more. */
export async function prepareRescue(
  db: Deps["db"],
  { dataDir, nowSeconds }: { dataDir: string; nowSeconds: number },
): Promise<string | undefined> {
  const userId = await rootId(db);
  if (userId === undefined) return undefined;
  const token = randomBytes(32).toString("hex");
  const waiting: Waiting = { hash: sha256Hex(token), userId, expiresAt: nowSeconds + FLOW_SECONDS };
  if (db.kind === "sqlite") {
    const draft = join(dataDir, `${FILE}.draft`);
    rmSync(draft, { force: true });
    writeFileSync(draft, JSON.stringify(waiting), { mode: 0o600, flush: true, flag: "wx" });
    ownAs(join(dataDir, SQLITE_FILE), draft);
    renameSync(draft, join(dataDir, FILE));
  } else
    await db.orm.insert(db.t.authFlows).values({
      kind: "rescue",
      secretHash: waiting.hash,
      subjectKey: SUBJECT,
      userId,
      createdAt: nowSeconds,
      expiresAt: waiting.expiresAt,
    });
  return token;
}

/** Run by an administrator of the machine, beside a server with an account of its own: that one has to read it. */
function ownAs(model: string, path: string): void {
  const owner = statSync(model, { throwIfNoEntry: false });
  if (owner && process.getuid?.() === 0) chownSync(path, owner.uid, owner.gid);
}

function readWaiting(path: string): Waiting | undefined {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as Waiting;
  } catch {
    return undefined;
  }
}

/** Uses the file up. A wrong secret leaves it: nobody can burn the link of another. */
function consumeFile(dataDir: string, hash: string, now: number): { userId: number } | undefined {
  const path = join(dataDir, FILE);
  const waiting = readWaiting(path);
  if (waiting?.hash !== hash) return undefined;
  const taken = `${path}.${randomBytes(8).toString("hex")}`;
  try {
    // Of two at once one has the file.
    renameSync(path, taken);
  } catch {
    return undefined;
  }
  const own = readWaiting(taken);
  rmSync(taken, { force: true });
  return own?.hash === hash && own.expiresAt > now ? own : undefined;
}

/** The factor's lock ends, the factor stays. */
function* liftSteps(tx: Orm, { t }: Deps["db"], userId: number): Steps<void> {
  yield* q(
    tx
      .update(t.totps)
      .set({ wrong: 0, wrongSince: 0, locks: 0, lockedUntil: 0 })
      .where(eq(t.totps.userId, userId)),
  );
}

/** Root's row, for whoever holds the link; lifts what wrong tries have locked. Throws Failure `rescue_link_wrong`. */
export async function rescue(
  deps: Deps,
  token: string,
  from: Pick<AuditActor, "address" | "userAgent">,
): Promise<UserRow> {
  const { db, dataDir } = deps;
  const hash = sha256Hex(token);
  const now = Math.floor(deps.clock.nowMs() / 1000);
  const found = db.kind === "sqlite" ? consumeFile(dataDir, hash, now) : undefined;
  if (db.kind === "sqlite" && !found) throw refuse("rescue_link_wrong");
  const row = await db.atomic(function* (tx) {
    const flow = found ?? (yield* consumeSteps(tx, deps, { kind: "rescue", subjectKey: SUBJECT, hash }));
    if (!flow) throw refuse("rescue_link_wrong");
    const { users } = db.t;
    const [root] = yield* q(
      tx
        .select()
        .from(users)
        .where(and(eq(users.id, flow.userId), eq(users.role, Role.root), isNull(users.deletedAt))),
    );
    if (!root) throw refuse("rescue_link_wrong");
    yield* liftSteps(tx, db, root.id);
    const { id, username, role } = root;
    yield* auditSteps(tx, deps, {
      user: { id, username },
      action: "login.rescue",
      by: { id, username, role, ...from, authMethod: "none" },
      content: ROOT_RESCUED,
    });
    return root;
  });
  forgiveWrongTries(deps, row.id);
  deps.logger.warn("root came in by weir rescue", { user: row.id, address: from.address });
  return row;
}
