// The price list's address: what a form sends is read, what is nonsense counts as not sent, and links lead to what they say.
import { expect, test } from "bun:test";
import fc from "fast-check";
import { pricingAddress, pricingFields, pricingQueryOf, tokensOf } from "../../src/http/queries/pricing.ts";
import type { PricingQuery } from "../../src/http/queries/pricing.ts";
import { sentBy } from "../../src/http/queries/sent.ts";

const read = (address: string) =>
  pricingQueryOf(sentBy(pricingFields, new URL(address, "http://localhost").searchParams));

test.each([
  ["1000000", 1_000_000],
  ["1,000,000", 1_000_000],
  ["1，000", 1000],
  ["200k", 200_000],
  ["1.5M", 1_500_000],
  ["0", 0],
  ["99999999999999999999", 1e10],
  ["", undefined],
  ["-5", undefined],
  ["NaN", undefined],
  ["1e9", undefined],
  ["ten", undefined],
])("tokens written as %p are %p", (text, tokens) => expect(tokensOf(text)).toBe(tokens));

test("an empty form is the plain list; nonsense counts as not sent", () => {
  expect(pricingAddress(read("/pricing?keyword=&vendor=&quota_type=&group=&input=&output="))).toBe(
    "/pricing",
  );
  expect(pricingAddress(read("/pricing?quota_type=7&unit=euro&available=maybe&input=x&p=1"))).toBe(
    "/pricing",
  );
  expect(pricingAddress(read(`/pricing?vendor=${"v".repeat(500)}&keyword=%00`))).toBe("/pricing");
});

const word = fc.string({ maxLength: 60 }).map((text) => text.replaceAll("\0", "").trim());
const tokens = fc.option(fc.integer({ min: 0, max: 1e10 }), { nil: undefined });

test("an address leads to the query that it was made of", () => {
  fc.assert(
    fc.property(
      fc.record({
        keyword: word,
        vendor: word,
        kind: fc.constantFrom("tokens" as const, "call" as const, undefined),
        group: word,
        onlyAvailable: fc.boolean(),
        unit: fc.constantFrom("price" as const, "ratio" as const),
        input: tokens,
        output: tokens,
        cached: tokens,
        model: word,
        page: fc.constantFrom(undefined, "2", "17"),
        pageSize: fc.constantFrom(undefined, "50"),
      }),
      (query: PricingQuery) => {
        expect(read(pricingAddress(query))).toEqual(query);
      },
    ),
  );
});
