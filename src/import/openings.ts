// What counters of the source have beyond what its log adds up to: written beside the rows, and summed up for the report.
// Refuses to bend either side: the audit proves that counter = opening + sums.
import type { ImportContext } from "./context.ts";
import { rowsFor } from "./insert.ts";
import type { NewRow, RowsFor } from "./insert.ts";
import type { OpeningSum } from "./report.ts";

export interface Openings {
  rows(openings: readonly (NewRow<"openings"> | undefined)[]): RowsFor;
}

export function createOpenings({ openingSums }: Pick<ImportContext, "openingSums">): Openings {
  return {
    rows(openings) {
      const found = openings.filter((each) => each !== undefined);
      for (const { kind, usedQuota = 0, requestCount = 0 } of found) {
        const sum: OpeningSum = (openingSums[kind] ??= { count: 0, usedQuota: 0, requestCount: 0 });
        sum.count++;
        sum.usedQuota += usedQuota;
        sum.requestCount += requestCount;
      }
      return rowsFor("openings", found);
    },
  };
}
