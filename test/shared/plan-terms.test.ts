// Durations and periods of plans: month ends from the anchor, changed clocks, zones; and how use is shared out.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { momentAfter, periodAt, periodsIn, PLAN_UNITS, shareOut } from "../../src/shared/plan-terms.ts";

const at = (text: string): number => Date.parse(text) / 1000;
const text = (seconds: number): string => new Date(seconds * 1000).toISOString().slice(0, 19);

describe("moments", () => {
  test("months clamp from the anchor and come back to its day", () => {
    const anchor = at("2027-01-31T02:00:00Z"); // 10:00 in Shanghai
    const days = [1, 2, 3, 4, 12, 13].map((count) =>
      text(momentAfter(anchor, "month", count, "Asia/Shanghai")),
    );
    expect(days).toEqual([
      "2027-02-28T02:00:00",
      "2027-03-31T02:00:00",
      "2027-04-30T02:00:00",
      "2027-05-31T02:00:00",
      "2028-01-31T02:00:00",
      "2028-02-29T02:00:00",
    ]);
    expect(text(momentAfter(at("2028-02-29T12:00:00Z"), "year", 1, "UTC"))).toBe("2029-02-28T12:00:00");
  });

  test("the day is that of the zone: the same moment is another day elsewhere", () => {
    const anchor = at("2027-01-30T20:00:00Z"); // 31 January in Shanghai, 30 January in New York
    expect(text(momentAfter(anchor, "month", 1, "Asia/Shanghai"))).toBe("2027-02-27T20:00:00");
    expect(text(momentAfter(anchor, "month", 2, "Asia/Shanghai"))).toBe("2027-03-30T20:00:00");
    expect(text(momentAfter(anchor, "month", 1, "America/New_York"))).toBe("2027-02-28T20:00:00");
    expect(text(momentAfter(anchor, "month", 2, "America/New_York"))).toBe("2027-03-30T19:00:00");
  });

  test("the local time stays where the clock is changed; an hour that is left out is the next", () => {
    const anchor = at("2027-03-13T14:00:00Z"); // 09:00 in New York, the day before summer time
    expect(text(momentAfter(anchor, "day", 1, "America/New_York"))).toBe("2027-03-14T13:00:00");
    const gap = at("2027-03-13T07:30:00Z"); // 02:30, which 14 March does not have
    expect(text(momentAfter(gap, "day", 1, "America/New_York"))).toBe("2027-03-14T07:30:00");
    expect(text(momentAfter(gap, "day", 2, "America/New_York"))).toBe("2027-03-15T06:30:00");
  });

  test("periods follow one another without a gap, and the last ends with the plan", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: at("2026-01-01T00:00:00Z"), max: at("2032-01-01T00:00:00Z") }),
        fc.constantFrom(...PLAN_UNITS),
        fc.integer({ min: 1, max: 14 }),
        fc.constantFrom("none" as const, "day" as const, "week" as const, "month" as const),
        fc.constantFrom("UTC", "Asia/Shanghai", "America/New_York", "Australia/Lord_Howe"),
        (startsAt, unit, count, reset, zone) => {
          const endsAt = momentAfter(startsAt, unit, count, zone);
          const plan = { startsAt, endsAt, reset, zone };
          let from = startsAt;
          let number = 0;
          while (from < endsAt && number < 40) {
            const period = periodAt(plan, from);
            expect(period.startsAt).toBe(from);
            expect(period.endsAt).toBeGreaterThan(from);
            expect(periodAt(plan, period.endsAt - 1)).toEqual(period);
            from = period.endsAt;
            number++;
          }
          if (from >= endsAt)
            expect([from, number]).toEqual([
              endsAt,
              periodsIn({ durationUnit: unit, durationCount: count, reset }, startsAt, zone),
            ]);
        },
      ),
      { numRuns: 150 },
    );
  });
});

describe("shares", () => {
  const periods = [
    { id: 1, endsAt: 30, quota: 100, used: 40 },
    { id: 2, endsAt: 10, quota: 50, used: 0 },
  ];
  test("what lapses first pays first, the rest is the wallet's, refunds go back in reverse", () => {
    expect([...shareOut(70, periods)]).toEqual([
      [2, 50],
      [1, 60],
    ]);
    expect([...shareOut(1000, periods)]).toEqual([
      [2, 50],
      [1, 100],
    ]);
    expect([
      ...shareOut(-50, [
        { ...periods[0]!, used: 60 },
        { ...periods[1]!, used: 50 },
      ]),
    ]).toEqual([[1, 10]]);
    expect([
      ...shareOut(-500, [
        { ...periods[0]!, used: 60 },
        { ...periods[1]!, used: 50 },
      ]),
    ]).toEqual([
      [1, 0],
      [2, 0],
    ]);
    expect([...shareOut(0, periods)]).toEqual([]);
  });
});
