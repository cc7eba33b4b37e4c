// What happened: orders of credit and of plans, drawings, songs.
// Refuses to credit anything: balances have come with their accounts.
import type { TablesContext } from "../context.ts";
import { rowsFor } from "../insert.ts";
import { mapPlanOrder, mapTopUp } from "../mapping/orders.ts";
import type { OrderFacts } from "../mapping/orders.ts";
import { mapDrawing, mapTask } from "../mapping/tasks.ts";
import { textOf, wholeOf } from "../values.ts";
import type { ImportedAccounts, SiteFacts } from "./accounts.ts";

export async function importOrders(
  context: TablesContext,
  accounts: ImportedAccounts,
  { quotaPerUnit }: SiteFacts,
): Promise<void> {
  const { source, notes, now, target } = context;
  const mirrored = new Set<string>();
  for await (const page of source.pages("subscription_orders", { columns: ["id", "trade_no"] }))
    for (const row of page) mirrored.add(textOf(row, "trade_no").trim());
  const facts: OrderFacts = {
    notes,
    now,
    quotaPerUnit,
    tradeNos: new Set(),
    hasUser: accounts.has,
    termsOf: accounts.termsOf,
  };
  const step = await target.begin("orders");
  let last = 0;
  for await (const page of source.pages("top_ups")) {
    await step.write([
      rowsFor(
        "orders",
        page.flatMap((row) => mapTopUp(row, facts, mirrored) ?? []),
      ),
    ]);
    last = Math.max(last, ...page.map((row) => wholeOf(row, "id")));
    context.advance("top_ups", page.length);
  }
  for await (const page of source.pages("subscription_orders")) {
    const orders = page.flatMap((row) => mapPlanOrder(row, facts, last + wholeOf(row, "id")) ?? []);
    await step.write([rowsFor("orders", orders)]);
    context.advance("subscription_orders", page.length);
  }
}

export async function importTasks(context: TablesContext, accounts: ImportedAccounts): Promise<void> {
  const { source, notes, target } = context;
  const facts = { notes, hasUser: accounts.has };
  const step = await target.begin("tasks");
  for await (const page of source.pages("midjourneys")) {
    await step.write([
      rowsFor(
        "drawings",
        page.flatMap((row) => mapDrawing(row, facts) ?? []),
      ),
    ]);
    context.advance("midjourneys", page.length);
  }
  for await (const page of source.pages("tasks")) {
    await step.write([
      rowsFor(
        "tasks",
        page.flatMap((row) => mapTask(row, facts) ?? []),
      ),
    ]);
    context.advance("tasks", page.length);
  }
}
