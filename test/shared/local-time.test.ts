// Calendar arithmetic: days of 23 and 25 hours, zones off the full hour, and bars that never overlap or leave a gap.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  addDays,
  barsOf,
  bucketNumber,
  isTimeZone,
  offsetSeconds,
  startOfDay,
  stepFor,
  stretchesOf,
} from "../../src/shared/local-time.ts";

const HOUR = 3600;
const DAY = 24 * HOUR;
const ZONES = [
  "UTC",
  "Asia/Shanghai",
  "America/New_York",
  "Europe/Berlin",
  "Asia/Kolkata",
  "Asia/Kathmandu",
  "Australia/Lord_Howe",
  "America/St_Johns",
  "Africa/Cairo",
  "Pacific/Apia",
  // Their clocks change at midnight: it comes twice, or not at all.
  "America/Havana",
  "America/Santiago",
  "Asia/Beirut",
];
const clockOf = (seconds: number, zone: string) =>
  new Date(seconds * 1000).toLocaleString("sv-SE", { timeZone: zone });
const utc = (...parts: [number, number, number, number?, number?]) => Date.UTC(...parts) / 1000;

describe("days", () => {
  test("the day on which clocks change begins at its own midnight, whatever moment of it is asked", () => {
    for (const [zone, day] of [
      ["America/New_York", utc(2025, 2, 9, 5)],
      ["America/New_York", utc(2025, 10, 2, 4)],
      ["Europe/Berlin", utc(2025, 2, 29, 23)],
      ["America/Havana", utc(2026, 10, 1, 4)],
      ["America/Santiago", utc(2026, 8, 6, 4)],
    ] as const) {
      for (const hours of [0, 1, 5, 12, 22]) {
        expect([zone, hours, startOfDay((day + hours * HOUR) * 1000, zone)]).toEqual([zone, hours, day]);
      }
    }
  });

  test("a day's first moment is of that day, and the second before it of the day before", () => {
    const moments = fc.integer({ min: utc(2020, 0, 1), max: utc(2035, 0, 1) });
    fc.assert(
      fc.property(moments, fc.constantFrom(...ZONES), (at, zone) => {
        const start = startOfDay(at * 1000, zone);
        const day = clockOf(at, zone).slice(0, 10);
        expect([start <= at, clockOf(start, zone).slice(0, 10)]).toEqual([true, day]);
        expect(clockOf(start - 1, zone).slice(0, 10) < day).toBe(true);
      }),
      { numRuns: 500 },
    );
  });

  test("moving by days keeps midnight over changed clocks", () => {
    const zone = "America/New_York";
    const from = utc(2025, 9, 31, 4);
    const days = [0, 1, 2, 3].map((count) => clockOf(addDays(from, count, zone), zone));
    expect(days).toEqual([
      "2025-10-31 00:00:00",
      "2025-11-01 00:00:00",
      "2025-11-02 00:00:00",
      "2025-11-03 00:00:00",
    ]);
    expect(clockOf(addDays(utc(2025, 10, 4, 5), -3, zone), zone)).toBe("2025-11-01 00:00:00");
  });

  test("names that no zone has are refused", () => {
    expect(["Asia/Shanghai", "UTC", "Nowhere/Land", "", "../etc", "x".repeat(80)].map(isTimeZone)).toEqual([
      true,
      true,
      false,
      false,
      false,
      false,
    ]);
  });
});

describe("bars", () => {
  test("a week begins on Monday, the first one where the range does", () => {
    const bars = barsOf(utc(2025, 10, 5), utc(2025, 10, 20), "week", "UTC", 120);
    expect(bars?.at).toEqual([utc(2025, 10, 5), utc(2025, 10, 10), utc(2025, 10, 17)]);
  });

  test("more bars than allowed are none", () => {
    expect(barsOf(0, 121 * HOUR, "hour", "UTC", 120)).toBeUndefined();
    expect(barsOf(0, 120 * HOUR, "hour", "UTC", 120)?.at.length).toBe(120);
    expect(barsOf(0, 121 * DAY, "day", "UTC", 120)).toBeUndefined();
    expect(barsOf(0, 120 * DAY, "day", "UTC", 120)?.at.length).toBe(120);
    expect(barsOf(0, 2 ** 40, "week", "UTC", 120)).toBeUndefined();
  });

  test("automatic steps are hours for two days, days for four months, then weeks", () => {
    expect([2 * DAY, 2 * DAY + 1, 120 * DAY, 121 * DAY].map(stepFor)).toEqual(["hour", "day", "day", "week"]);
  });

  test("in every zone each hour of a range lies in the bar that its number says, and bars follow each other", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...ZONES),
        fc.constantFrom("hour" as const, "day" as const, "week" as const),
        fc.oneof(
          fc.integer({ min: utc(2024, 0, 1) / HOUR, max: utc(2026, 5, 1) / HOUR }),
          // Shortly before clocks change somewhere: at midnight (Cairo), by half an hour (Lord Howe), by an hour.
          ...[utc(2025, 3, 24, 22), utc(2025, 3, 5, 15), utc(2025, 9, 4, 15), utc(2025, 10, 2, 6)].map((at) =>
            fc.integer({ min: at / HOUR - 60, max: at / HOUR }),
          ),
        ),
        fc.integer({ min: 1, max: 110 }),
        (zone, step, startHour, length) => {
          const from = startHour * HOUR;
          const to = from + length * HOUR;
          const bars = barsOf(from, to, step, zone, 120);
          if (!bars) throw new Error("no bars");
          expect(bars.at[0]).toBe(from);
          expect(bars.at.every((at, index) => index === 0 || at > (bars.at[index - 1] ?? 0))).toBe(true);
          const stretches = stretchesOf(from, to, zone);
          expect([stretches[0]?.from, stretches.at(-1)?.to]).toEqual([from, to]);
          for (let hour = from; hour < to; hour += HOUR) {
            const stretch = stretches.find((each) => hour >= each.from && hour < each.to);
            expect(stretch?.offset).toBe(offsetSeconds(zone, hour * 1000));
            const number = bucketNumber(hour, step, stretch?.offset ?? 0) - bars.first;
            const shown = bars.at.findLastIndex((at) => at <= hour);
            expect([zone, step, hour, number]).toEqual([zone, step, hour, shown]);
          }
        },
      ),
      { numRuns: 150 },
    );
  });
});
