// What models were to their users, written once a minute: a write that fails in the middle counts nothing twice.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createModelDays } from "../../../src/core/site/model-days.ts";
import type { Database } from "../../../src/db/database.ts";
import { FIRST_TOKEN_BOUNDS } from "../../../src/observe/model-figures.ts";
import type { ModelFigures } from "../../../src/observe/model-figures.ts";
import { createTally } from "../../../src/observe/tally.ts";
import { DATABASE_KINDS } from "../../support/postgres.ts";
import { silent, startBooks } from "../ledger/support.ts";
import type { TestBooks } from "../ledger/support.ts";

/** More rows than one statement takes. */
const MODELS = 250;

describe.each(DATABASE_KINDS)("on %s", (kind) => {
  let books: TestBooks;

  beforeAll(async () => {
    books = await startBooks(kind);
  });
  afterAll(() => books.close());

  test("a write of many rows is all there or not at all, and comes again", async () => {
    const models = new Map<string, ModelFigures>();
    for (let at = 0; at < MODELS; at++)
      models.set(`model-${at}`, { answered: 1, failed: 0, firstToken: createTally(FIRST_TOKEN_BOUNDS) });
    let blocks = 0;
    const atomic: Database["atomic"] = (body) => {
      if (++blocks === 2) throw new Error("the database went away");
      return books.db.atomic(body);
    };
    const db: Database = { ...books.db, atomic };
    const days = createModelDays({ db, clock: books.clock, logger: silent, models });
    await days.write();
    await days.write();
    await days.stop();
    const rows = await books.db.orm.select().from(books.db.t.modelDays);
    expect(rows).toHaveLength(MODELS);
    expect(new Set(rows.map(({ count }) => count))).toEqual(new Set([1]));
  });
});
