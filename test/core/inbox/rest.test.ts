// The inbox of a process that nobody uses lets it rest.
// Refuses letters: causes.test.ts tells whom they reach.
import { expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { createInbox } from "../../../src/core/inbox/inbox.ts";
import type { InboxDeps } from "../../../src/core/inbox/inbox.ts";
import { Role } from "../../../src/shared/enums.ts";
import { silent, startBooks } from "../ledger/support.ts";

test("looking for what is to be told is no use of the process, minute by minute", async () => {
  let uses = 0;
  const books = await startBooks("sqlite", { wrap: (db) => ({ ...db, use: () => void uses++ }) });
  const { db, accounts, options, clock } = books;
  const { id } = await books.addUser(0);
  await db.orm.update(db.t.users).set({ role: Role.root }).where(eq(db.t.users.id, id));
  const deps = { db, accounts, options, clock, logger: silent } as unknown as InboxDeps;
  const inbox = await createInbox(deps);
  await inbox.settle();
  uses = 0;
  for (let minutes = 0; minutes < 5; minutes++) {
    clock.advance(61_000);
    await inbox.settle();
  }
  expect(uses).toBe(0);
  await inbox.close();
  await books.close();
});
