// What the statements of an audit answer: lines of differences and, under names with a colon, lines of figures. A database whose
// sums were lost has millions of differences: so many as anybody reads are brought over, and all of them counted.
// Refuses to let them into memory: the database counts them, in the statement that finds them.
import { sql } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import type { AuditDifference } from "./audit.ts";
import type { AuditedDatabase } from "./audit-months.ts";

/** As many as a report lists. */
export const MOST_DIFFERENCES = 1000;

/** Differences as they are found: the first `most`, and how many there are. */
export class Differences {
  readonly list: AuditDifference[] = [];
  total = 0;

  constructor(readonly most = MOST_DIFFERENCES) {}

  add(difference: AuditDifference): void {
    this.total++;
    if (this.list.length < this.most) this.list.push(difference);
  }
}

/** Adds what a statement of such lines finds to the differences, and answers its figures. One statement sees one snapshot. */
export async function readLines(
  { bulkReader }: Pick<AuditedDatabase, "bulkReader">,
  statement: SQL,
  differences: Differences,
): Promise<AuditDifference[]> {
  // One at least, which brings the count along.
  const wanted = Math.max(1, differences.most - differences.list.length);
  const marked = sql`select what, id, expected, found, case when what like '%:%' then 0 else 1 end as differs
    from (${statement}) as d`;
  const counted = sql`select what, id, expected, found, differs, sum(differs) over () as total,
    sum(differs) over (rows between unbounded preceding and current row) as nth from (${marked}) as m`;
  const lines = await bulkReader
    .select({
      what: sql<string>`c.what`,
      id: sql<string>`c.id`,
      expected: sql`c.expected`.mapWith(Number),
      found: sql`c.found`.mapWith(Number),
      differs: sql`c.differs`.mapWith(Number),
      total: sql`c.total`.mapWith(Number),
    })
    .from(sql`(${counted}) as c`)
    .where(sql`c.differs = 0 or c.nth <= ${wanted}`);
  const before = differences.total;
  const figures: AuditDifference[] = [];
  for (const { differs, total, ...line } of lines) {
    if (differs === 0) figures.push(line);
    else differences.add(line);
    differences.total = before + total;
  }
  return figures;
}
