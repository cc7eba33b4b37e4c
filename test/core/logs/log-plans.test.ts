// The log at 300,000 rows, on both databases: every question of the console is asked, every statement of it is explained by
// the database's own planner, and none reads the log or the hourly sums from end to end or sorts them. The larger figures
// are `bun run bench rows`.
import { afterAll, beforeAll, describe, expect, spyOn, test } from "bun:test";
import type { Mock } from "bun:test";
import type { Sql } from "postgres";
import { questions } from "../../../bench/log-queries.ts";
import { fillLog } from "../../../bench/log-rows.ts";
import { searchLogs } from "../../../src/core/logs/list.ts";
import { startTestApp } from "../../support/app.ts";
import type { TestApp } from "../../support/app.ts";
import { DATABASE_KINDS } from "../../support/postgres.ts";

const ROWS = 300_000;
/** What PostgreSQL may read whole or sort: less than this is no table of the log. */
const FEW_ROWS = 20_000;

/** What no sum and no index knows: at most the newest 120,000 rows are read, and told as cut. */
const BOUNDED = new Set(["list no row of the playground's matches"]);

/** What is split by them for one user is read from days: its hours lie on as many pages as there are. */
const SPLIT_BY_DAYS = /^dashboard by (model|key) of a user/;
const DAYS_OF: Readonly<Record<string, string>> = { model: "user_model", key: "token" };

interface Statement {
  text: string;
  params: unknown[];
}

/** A node of PostgreSQL's plan, as far as it matters here. */
interface PlanNode {
  "Node Type": string;
  "Relation Name"?: string;
  "Plan Rows": number;
  "Total Cost": number;
  Plans?: PlanNode[];
}

const isOfLog = (name: string) => /^(logs(_\w+)?|rollups)$/.test(name);

/** The tables that a node's input comes from. */
const relationsOf = (node: PlanNode): string[] => [
  ...(node["Relation Name"] === undefined ? [] : [node["Relation Name"]]),
  ...(node.Plans ?? []).flatMap(relationsOf),
];

/** What a planner means to do that it must not, in its own words. */
function faultsOf(node: PlanNode): string[] {
  const name = node["Relation Name"] ?? "";
  const input = node.Plans?.[0];
  const own: string[] = [];
  if (node["Node Type"] === "Seq Scan" && isOfLog(name) && node["Total Cost"] > FEW_ROWS / 100)
    own.push(`Seq Scan on ${name}`);
  if (
    node["Node Type"] === "Sort" &&
    (input?.["Plan Rows"] ?? 0) > FEW_ROWS &&
    relationsOf(node).some(isOfLog)
  )
    own.push(`Sort of ${relationsOf(node).join(", ")}`);
  return [...own, ...(node.Plans ?? []).flatMap(faultsOf)];
}

/** The same from SQLite's lines: a scan without an index; a sort that no index spares of what is read from the log. */
function faultsIn(lines: readonly string[]): string[] {
  const scans = lines.filter((line) => /^SCAN (logs|rollups)( (AS )?\w+)?$/.test(line));
  // A call writes one row or few, so that there is nothing to sort behind its id.
  const readsMany = lines.some(
    (line) => /^(SCAN|SEARCH) logs\b/.test(line) && !line.includes("(request_id=?)"),
  );
  return [...scans, ...lines.filter((line) => readsMany && line.endsWith("TEMP B-TREE FOR ORDER BY"))];
}

describe.each(DATABASE_KINDS)("the log's statements on %s", (database) => {
  let app: TestApp;
  let spied: Mock<(...args: never[]) => unknown>;
  const asked: Statement[] = [];

  const client = () => (app.deps.db.orm as unknown as { $client: Sql }).$client;

  beforeAll(async () => {
    app = await startTestApp({ database });
    await fillLog(app.deps, ROWS, () => {});
    if (database === "sqlite") {
      // What reads the file for the console goes to a thread, as a message.
      app.deps.db.client?.run("analyze");
      spied = spyOn(Worker.prototype, "postMessage") as unknown as typeof spied;
    } else spied = spyOn(client(), "unsafe") as unknown as typeof spied;
  }, 120_000);
  afterAll(async () => {
    spied.mockRestore();
    await app.close();
  });

  const statements = (): Statement[] =>
    spied.mock.calls.map((args) => {
      const [first, second] = args as unknown as [string | Statement, unknown[] | undefined];
      return typeof first === "string" ? { text: first, params: second ?? [] } : first;
    });

  async function faults({ text, params }: Statement): Promise<string[]> {
    const lite = app.deps.db.client;
    if (!lite) {
      const [row] = await client().unsafe(`explain (format json) ${text}`, params as string[]);
      const plans = (row?.["QUERY PLAN"] ?? []) as { Plan: PlanNode }[];
      return plans.flatMap((each) => faultsOf(each.Plan));
    }
    const steps = lite.prepare<{ detail: string }, (string | number | null)[]>(`explain query plan ${text}`);
    try {
      return faultsIn(steps.all(...(params as (string | number | null)[])).map(({ detail }) => detail));
    } finally {
      steps.finalize();
    }
  }

  test("read no table of the log from end to end and sort none", async () => {
    const found: string[] = [];
    for (const { name, ask } of questions(app.deps, ROWS).filter(({ name }) => !BOUNDED.has(name))) {
      spied.mockClear();
      await ask();
      const own = statements().filter(({ text }) => /\bselect\b/i.test(text));
      asked.push(...own);
      const split = SPLIT_BY_DAYS.exec(name);
      if (split && !own.some(({ text }) => text.includes(`"rollups_by_${DAYS_OF[split[1] ?? ""]}"`)))
        found.push(`${name}: no days of ${split[1]}`);
      for (const each of own)
        for (const fault of await faults(each)) found.push(`${name}: ${fault}: ${each.text.slice(0, 300)}`);
    }
    expect(found).toEqual([]);
    // Every question asks something; a spy that sees nothing would find nothing.
    expect(asked.length).toBeGreaterThan(questions(app.deps, ROWS).length);
  }, 120_000);

  test("a search that ends before the oldest rows says so", async () => {
    expect(await searchLogs(app.deps, "no such text")).toEqual({ items: [], isCut: true });
    expect((await searchLogs(app.deps, "模型", 20)).isCut).toBe(false);
  });

  test("a statement that does so would be found", async () => {
    expect(await faults({ text: "select * from logs where content = 'x'", params: [] })).not.toEqual([]);
    expect(await faults({ text: "select * from logs order by quota desc limit 5", params: [] })).not.toEqual(
      [],
    );
  });
});
