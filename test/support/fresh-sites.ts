// Databases as a first start leaves them, made once and copied: schema, and prices of the shipped table.
// Refuses anything that one installation has for itself: its number, its nodes and its secrets are each start's own.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Deps } from "../../src/core/deps.ts";
import { systemClock } from "../../src/core/kit/clock.ts";
import { createSealer } from "../../src/core/kit/seal.ts";
import { createOptions } from "../../src/core/options/store.ts";
import { settleOrigins } from "../../src/core/prices/origins.ts";
import { priceRecorder } from "../../src/core/prices/revisions.ts";
import { connect, SQLITE_FILE } from "../../src/db/connect.ts";
import type { PostgresTemplate } from "./postgres.ts";

/** Seals nothing: a fresh site has no secret option. */
const NO_SECRET = "a template's";

async function settle(dataDir: string, databaseUrl: string): Promise<void> {
  const db = await connect({ dataDir, databaseUrl });
  const options = await createOptions(db, createSealer(NO_SECRET));
  const record = priceRecorder({ db, clock: systemClock });
  options.recordWith(record);
  await settleOrigins({ db, options, clock: systemClock, record });
  await db.close();
}

async function inScratch<T>(work: (dir: string) => Promise<T>): Promise<T> {
  const dir = mkdtempSync(join(tmpdir(), "weir-template-"));
  try {
    return await work(dir);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

export const FRESH_POSTGRES: PostgresTemplate = {
  name: "fresh",
  build: (url) => inScratch((dir) => settle(dir, url)),
};

let file: Promise<Uint8Array> | undefined;

/** Puts the embedded database of a fresh site into an empty data directory. */
export async function placeFreshFile(dataDir: string): Promise<void> {
  file ??= inScratch(async (dir) => {
    await settle(dir, "");
    return new Uint8Array(readFileSync(join(dir, SQLITE_FILE)));
  });
  writeFileSync(join(dataDir, SQLITE_FILE), await file, { mode: 0o600 });
}

/** The first start was now, by the test's clock. */
export async function dateFreshSite({ db, clock }: Pick<Deps, "db" | "clock">): Promise<void> {
  const nowSeconds = Math.floor(clock.nowMs() / 1000);
  await db.orm.update(db.t.priceOrigins).set({ takenAt: nowSeconds });
  await db.orm.update(db.t.priceRevisions).set({ createdAt: nowSeconds });
}
