// The small column dialect in which the one schema source is written; PostgreSQL's types are the master.
// Refuses nothing: whatever both databases cannot express alike is simply not offered here.
import * as pg from "drizzle-orm/pg-core";
import * as lite from "drizzle-orm/sqlite-core";

/** Column and table builders for PostgreSQL. Its types are what the whole program sees. */
export const postgresDialect = {
  table: pg.pgTable,
  /** Auto-increment 64-bit key. */
  id: () => pg.bigint({ mode: "number" }).primaryKey().generatedByDefaultAsIdentity(),
  text: () => pg.text(),
  int: () => pg.integer(),
  /** 64-bit whole number, read as a JavaScript number: quota, times, counts. */
  big: () => pg.bigint({ mode: "number" }),
  real: () => pg.doublePrecision(),
  bool: () => pg.boolean(),
  index: pg.index,
  uniqueIndex: pg.uniqueIndex,
  primaryKey: pg.primaryKey,
};

export type Dialect = typeof postgresDialect;

const sqliteBuilders = {
  table: lite.sqliteTable,
  id: () => lite.integer({ mode: "number" }).primaryKey({ autoIncrement: true }),
  text: () => lite.text(),
  int: () => lite.integer({ mode: "number" }),
  big: () => lite.integer({ mode: "number" }),
  real: () => lite.real(),
  bool: () => lite.integer({ mode: "boolean" }),
  index: lite.index,
  uniqueIndex: lite.uniqueIndex,
  primaryKey: lite.primaryKey,
};

/** The SQLite twin, cast once: both build the same JavaScript values for the same columns. */
export const sqliteDialect = sqliteBuilders as unknown as Dialect;
