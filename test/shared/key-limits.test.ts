// Periods of budgets: they follow each other without gap or overlap in every zone, and which limits are in force.
import { describe, expect, test } from "bun:test";
import { budgetPeriodAt, limitsInForce, readLimitFields } from "../../src/shared/key-limits.ts";
import type { BudgetPeriod } from "../../src/shared/key-limits.ts";

const at = (text: string) => Date.parse(text);
const seconds = (text: string) => at(text) / 1000;

describe("periods", () => {
  test.each<[BudgetPeriod, string, string, string, string]>([
    ["day", "UTC", "2026-11-27T12:00:00Z", "2026-11-27T00:00:00Z", "2026-11-28T00:00:00Z"],
    ["day", "Asia/Kolkata", "2026-11-27T12:00:00Z", "2026-11-26T18:30:00Z", "2026-11-27T18:30:00Z"],
    // 25 and 23 hours.
    ["day", "Europe/Berlin", "2026-10-25T12:00:00Z", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"],
    ["day", "Europe/Berlin", "2026-03-29T12:00:00Z", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"],
    // A day that begins at one o'clock.
    ["day", "Asia/Beirut", "2026-03-29T12:00:00Z", "2026-03-28T22:00:00Z", "2026-03-29T21:00:00Z"],
    ["week", "UTC", "2026-11-29T23:59:59Z", "2026-11-23T00:00:00Z", "2026-11-30T00:00:00Z"],
    ["week", "Asia/Shanghai", "2026-11-29T16:00:00Z", "2026-11-29T16:00:00Z", "2026-12-06T16:00:00Z"],
    ["week", "Europe/Berlin", "2026-10-25T12:00:00Z", "2026-10-18T22:00:00Z", "2026-10-25T23:00:00Z"],
    ["month", "UTC", "2026-02-28T23:59:59Z", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z"],
    ["month", "America/New_York", "2026-11-01T04:30:00Z", "2026-11-01T04:00:00Z", "2026-12-01T05:00:00Z"],
    ["month", "Pacific/Auckland", "2026-12-31T11:00:00Z", "2026-12-31T11:00:00Z", "2027-01-31T11:00:00Z"],
  ])("%s in %s at %s", (period, zone, moment, start, end) => {
    expect(budgetPeriodAt(at(moment), period, zone)).toEqual({ start: seconds(start), end: seconds(end) });
  });

  test.each(["UTC", "Europe/Berlin", "America/Santiago", "Asia/Beirut", "Asia/Kathmandu", "Pacific/Apia"])(
    "in %s each period ends where the next begins, for two years",
    (zone) => {
      for (const period of ["day", "week", "month"] as const) {
        const end = seconds("2028-01-05T00:00:00Z");
        let current = budgetPeriodAt(at("2026-01-05T12:00:00Z"), period, zone);
        while (current.start < end) {
          const next = budgetPeriodAt(current.end * 1000, period, zone);
          expect(next.start).toBe(current.end);
          expect(budgetPeriodAt(current.end * 1000 - 1, period, zone)).toEqual(current);
          current = next;
        }
      }
    },
  );
});

test("the nearest source that names a number decides it, a budget with its period", () => {
  const inForce = limitsInForce([
    { rpm_limit: 0, max_concurrency: 3 },
    { rpm_limit: 60, budget_quota: 500, budget_period: "week" },
    { budget_quota: 900, budget_period: "day", tpm_limit: 1000 },
  ]);
  expect(inForce).toEqual({
    budgetQuota: 500,
    budgetPeriod: "week",
    rpmLimit: 0,
    tpmLimit: 1000,
    maxConcurrency: 3,
  });
  expect(limitsInForce([undefined, {}, { rpm_limit: 0 }])).toBeUndefined();
});

test("what cannot be a limit is named", () => {
  for (const [value, wrong] of [
    [{ rpm_limit: -1 }, "rpm_limit"],
    [{ tpm_limit: "5" }, "tpm_limit"],
    [{ max_concurrency: 1.5 }, "max_concurrency"],
    [{ budget_quota: Number.MAX_SAFE_INTEGER }, "budget_quota"],
    [{ budget_period: "year" }, "budget_period"],
    [{ per_day: 5 }, "per_day"],
    [[], ""],
  ] as const)
    expect(readLimitFields(value)).toEqual({ wrong });
});
