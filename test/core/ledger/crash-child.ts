// The process that ledger-crash.test.ts kills: settles without pause and tells each settlement that it was promised.
// Refuses to work on books that do not add up after the last kill.
import { writeSync } from "node:fs";
import { openBooks, settlement } from "./support.ts";

const [dataDir = "", databaseUrl = "", run = "", ...userIds] = process.argv.slice(2);
const books = await openBooks({ dataDir, databaseUrl: databaseUrl === "-" ? undefined : databaseUrl });
await books.expectBalanced();
writeSync(1, "balanced\n");

let count = 0;
async function work(userId: number): Promise<never> {
  const user = await books.user(userId);
  for (;;) {
    const requestId = `run${run}-${count++}`;
    const held = await books.ledger.reserve({ requestId, user, token: undefined, amount: 3 });
    if (count % 7 === 0) await held.release();
    else {
      await held.settle(settlement(1 + (count % 5)));
      writeSync(1, `${requestId}\n`);
    }
    await new Promise((resolve) => setImmediate(resolve));
  }
}
await Promise.all(userIds.flatMap((id) => Array.from({ length: 8 }, () => work(Number(id)))));
