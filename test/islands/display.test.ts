// How money is shown and typed: four displays, typed amounts half up by whole numbers, whatever the rate.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { formatMoney, formatQuota, quotaText } from "../../islands/lib/format.ts";
import { installBoot } from "../../islands/lib/boot.ts";
import type { Boot } from "../../islands/lib/boot.ts";
import { quotaOf } from "../../islands/ui/money-field.tsx";
import { DISPLAY_TYPES } from "../../src/shared/quota-display.ts";
import type { DisplayFields, DisplayType } from "../../src/shared/quota-display.ts";

const BASE: DisplayFields = { quota_per_unit: 500_000, display_in_currency: true };
const YUAN: DisplayFields = { ...BASE, quota_display_type: "CNY", usd_exchange_rate: 7.3 };
const OWN: DisplayFields = {
  ...BASE,
  quota_display_type: "CUSTOM",
  custom_currency_symbol: "◎",
  custom_currency_exchange_rate: 100,
};
const UNITS: DisplayFields = { ...BASE, quota_display_type: "TOKENS" };

const on = (status: DisplayFields): void => installBoot({ status } as unknown as Boot);

describe("money is shown in", () => {
  test.each([
    ["dollars", BASE, "$2.00", "$2.000000 · 1,000,000", "$0.0024"],
    ["yuan by the rate", YUAN, "¥14.60", "¥14.600000 · 1,000,000", "¥0.0175"],
    ["a currency of one's own", OWN, "◎200.00", "◎200.000000 · 1,000,000", "◎0.24"],
    ["units", UNITS, "1,000,000", "$2.000000 · 1,000,000", "1,200"],
    ["units by the older switch", { ...BASE, display_in_currency: false }, "1,000,000", undefined, "1,200"],
  ] as const)("%s", (_, site, amount, exact, price) => {
    expect(formatQuota(1_000_000, site)).toBe(amount);
    expect(formatMoney(0.0024, site)).toBe(price);
    if (exact !== undefined) expect(quotaText(1_000_000, site).exact).toBe(exact);
  });
});

test("each type is shown in a way of its own", () => {
  const shown = (type: DisplayType) => {
    const site: DisplayFields = { ...OWN, usd_exchange_rate: 7, quota_display_type: type };
    return formatQuota(1_000_000, site);
  };
  expect(new Set(DISPLAY_TYPES.map(shown)).size).toBe(DISPLAY_TYPES.length);
});

describe("a typed amount is whole units, half up", () => {
  test.each([
    ["dollars", BASE, "1.5", 750_000],
    ["dollars with their sign and groups", BASE, "＄1,000.00", 500_000_000],
    ["one group alone, which is a fraction to others", BASE, "$1,000", undefined],
    ["full-width digits", BASE, "１２．５", 6_250_000],
    ["a comma for the point", BASE, "12,5", 6_250_000],
    ["units in one group", UNITS, "1,000", 1000],
    ["yuan", YUAN, "¥73", 5_000_000],
    ["a fraction of yuan, rounded up", YUAN, "0.01", 685],
    ["a fraction of yuan, rounded down", YUAN, "0.1", 6_849],
    ["half a unit goes up", BASE, "0.000001", 1],
    ["less than half a unit goes down", BASE, "0.00000099", 0],
    ["half a unit below zero goes away from it", BASE, "-0.000001", -1],
    ["an own currency", OWN, "◎12.5", 62_500],
    ["units", UNITS, "1234", 1234],
    ["words", BASE, "many", undefined],
    ["nothing", BASE, " ", undefined],
    ["more than a balance holds", BASE, "99999999999999", undefined],
    ["another currency's sign", BASE, "¥5", undefined],
    ["another currency's sign behind it", BASE, "5元", undefined],
    ["another currency's code", BASE, "5 RMB", undefined],
  ] as const)("%s", (_, site, typed, quota) => {
    on(site);
    expect(quotaOf(typed)).toBe(quota as number);
  });

  test("what is shown exactly is read as the same units, at any rate", () => {
    fc.assert(
      fc.property(fc.nat(1e12), fc.integer({ min: 1, max: 100_000 }), (quota, cents) => {
        on({ ...YUAN, usd_exchange_rate: cents / 100 });
        // In lowest terms the text has every decimal: units × cents ÷ (units of a dollar × 100).
        const scaled = BigInt(quota) * BigInt(cents) * 2n;
        const text = `${scaled / 10n ** 8n}.${String(scaled % 10n ** 8n).padStart(8, "0")}`;
        return quotaOf(text) === quota;
      }),
    );
  });
});
