// The check of a copy: SQLite's own, the schema, the key, every secret, the sums of the books.
// Refuses what cannot be used; what was wrong in the books already is a finding, and the copy of it is whole.
import { count, max } from "drizzle-orm";
import type { PgTable } from "drizzle-orm/pg-core";
import type { Database } from "../../db/database.ts";
import { knownSchemas, schemaOf } from "../../db/migrate.ts";
import { createSealer, keyFingerprint } from "../kit/seal.ts";
import { audit } from "../ledger/audit.ts";
import { databaseNumber } from "../ledger/node-lease.ts";
import {
  internalRow,
  opensCheck,
  refuseInRotation,
  RotationUnfinished,
  SEAL_CHECK_KEY,
} from "../options/seal-keys.ts";
import { countSecrets } from "../options/seal-rotation.ts";
import type { Manifest } from "./manifest.ts";
import { BackupRefused } from "./refusal.ts";
import type { Refusal } from "./refusal.ts";

/** What the tables of a copy say of it. */
export type Inventory = Pick<Manifest, "installation" | "schema" | "nodes" | "counts" | "newestLogAt">;

/** Throws BackupRefused: this program does not know the schema. */
export function refuseSchema(kind: Database["kind"], { version, hash }: Manifest["schema"]): void {
  const known = knownSchemas(kind);
  const newest = known.at(-1)?.version ?? 0;
  if (version > newest) throw new BackupRefused("newer_schema", { found: version, known: newest });
  if (!known.some((each) => each.version === version && each.hash === hash))
    throw new BackupRefused("other_build");
}

export async function inventoryOf(db: Database): Promise<Inventory> {
  const schema = await schemaOf(db);
  if (!schema) throw new BackupRefused("unreadable", { what: "it has no tables" });
  refuseSchema(db.kind, schema);
  const { users, tokens, channels, logs, credits, nodes } = db.t;
  const rows = async (table: PgTable): Promise<number> => {
    const [row] = await db.orm.select({ rows: count() }).from(table);
    return row?.rows ?? 0;
  };
  const [newest] = await db.orm.select({ at: max(logs.createdAt) }).from(logs);
  return {
    installation: (await databaseNumber(db)) ?? 0,
    schema,
    nodes: await db.orm.select({ id: nodes.nodeId, mark: nodes.mark }).from(nodes).orderBy(nodes.nodeId),
    counts: {
      users: await rows(users),
      tokens: await rows(tokens),
      channels: await rows(channels),
      logs: await rows(logs),
      credits: await rows(credits),
    },
    newestLogAt: Number(newest?.at ?? 0),
  };
}

/** The copy opens with the key; what it finds in the books. Throws BackupRefused where it does not. */
export async function checkBooks(db: Database, secret: string, fingerprint?: string): Promise<Refusal[]> {
  await refuseInRotation(db).catch((error: unknown) => {
    throw error instanceof RotationUnfinished ? new BackupRefused("rotation") : error;
  });
  const seal = createSealer(secret);
  // A database on which no server has run yet was sealed by none.
  const proof = await internalRow(db, SEAL_CHECK_KEY);
  if (proof !== undefined && !opensCheck(seal, proof))
    throw new BackupRefused("other_key", {
      found: keyFingerprint(secret),
      fingerprint: fingerprint ?? "unknown",
    });
  const findings: Refusal[] = [];
  const { lost } = await countSecrets(db, seal);
  if (lost > 0) findings.push({ code: "found_secrets", params: { count: lost } });
  const { total } = await audit(db, { isReadOnly: true });
  if (total > 0) findings.push({ code: "found_audit", params: { count: total } });
  return findings;
}
