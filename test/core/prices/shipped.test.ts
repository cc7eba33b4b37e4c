// The committed price table is what its sources make, whole and small, and says what is sold today.
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { shippedText } from "../../../scripts/prices.ts";
import { createPriceBook } from "../../../src/core/prices/price-book.ts";
import { shippedPrices, shippedVersion } from "../../../src/core/prices/shipped.ts";
import { readPriceRow } from "../../../src/shared/price-row.ts";
import type { PriceRow } from "../../../src/shared/price-row.ts";

const FILE = `${import.meta.dir}/../../../src/core/prices/shipped-prices.json`;
const OVERRIDE = `${import.meta.dir}/../../../scripts/prices-override.json`;

describe("the shipped table", () => {
  test("is what the pinned sources give: nobody edits it by hand, nobody forgets to renew it", async () => {
    const committed = readFileSync(FILE, "utf8");
    const { text } = await shippedText(shippedPrices().date);
    expect(text === committed).toBe(true);
  });

  test("carries its provenance, and a fingerprint of what it says", () => {
    const { source, version, date, sha256, rows } = shippedPrices();
    const committed = readFileSync(FILE, "utf8");
    const models = committed.slice(committed.indexOf('"models":') + '"models":'.length, -2);
    expect([source, version, date]).toEqual(["@pydantic/genai-prices", "0.1.8", "2026-11-23"]);
    expect(new Bun.CryptoHasher("sha256").update(models).digest("hex")).toBe(sha256);
    expect(shippedVersion()).toBe(`0.1.8+${sha256.slice(0, 12)}`);
    expect(rows.size).toBeGreaterThan(550);
    expect(committed.length).toBeLessThan(40 * 1024);
  });

  test("every row is one that an operator could have written", () => {
    for (const [name, row] of shippedPrices().rows) {
      expect([name, readPriceRow(row).problem]).toEqual([name, undefined]);
      expect([name, row.call === undefined ? row.in : row.call]).toEqual([name, expect.any(Number)]);
    }
  });

  test("an override names its reason, and wins", () => {
    const { rows, accepted } = JSON.parse(readFileSync(OVERRIDE, "utf8")) as {
      rows: { names: string[]; row: PriceRow; reason: string }[];
      accepted: Record<string, string>;
    };
    for (const { names, row, reason } of rows) {
      expect(reason.length).toBeGreaterThan(20);
      for (const name of names) expect([name, shippedPrices().rows.get(name)]).toEqual([name, row]);
    }
    for (const [name, reason] of Object.entries(accepted))
      expect([name, reason.length > 20, shippedPrices().rows.has(name)]).toEqual([name, true, true]);
  });

  test.each([
    ["gpt-5", { in: 1.25, out: 10, cache_read: 0.125 }],
    ["gpt-5.4", { in: 2.5, out: 15, cache_read: 0.25 }],
    ["claude-opus-5-5", { in: 4, out: 20, cache_read: 0.2 }],
    ["claude-sonnet-4-5-20250929", { in: 3, out: 15, cache_write: 3.75, cache_write_1h: 6 }],
    [
      "gemini-2.5-pro",
      { in: 1.25, out: 10, when: [{ over: 200_000, set: { in: 2.5, out: 15, cache_read: 0.25 } }] },
    ],
    // A discount that ends is the exception, not the base.
    ["gemini-3.6-flash", { in: 1.5, out: 7.5 }],
    // The dearest hours are the base.
    ["deepseek-v4-pro", { in: 1.32, out: 3.96, cache_read: 0.044 }],
    // Early 2025's prices in the source.
    ["deepseek-chat", { in: 0.28, out: 0.42, cache_read: 0.028 }],
    // Makers that the source lacks, with their thresholds.
    ["qwen3-max", { in: 1.2, out: 6 }],
    ["doubao-seed-2-1-pro-260915", { in: 0.8625, out: 4.3125 }],
    ["gpt-audio", { in: 2.5, out: 10, audio_in: 32, audio_out: 64 }],
    // $0.006 a minute, which is 1,000 tokens.
    ["whisper-1", { in: 6 }],
  ])("prices %s", (name, expected) => {
    expect(shippedPrices().rows.get(name)).toMatchObject(expected);
  });

  test("what is billed by things that calls are not counted in has no price", () => {
    for (const name of ["sonar-pro", "mistral-ocr-latest", "whisper-large-v3", "sample_spec"])
      expect([name, shippedPrices().rows.has(name)]).toEqual([name, false]);
  });

  test("tells the longest answer of a model to the holds, by its exact name", () => {
    const book = createPriceBook({ get: () => ({}) as never, onChange: () => undefined });
    expect(book.maxOutput("gpt-5.4")).toBe(128_000);
    expect(book.maxOutput("gpt-5-4-2026-03-05")).toBe(128_000);
    expect(book.maxOutput("claude-sonnet-4-5")).toBe(64_000);
    expect(book.maxOutput("gpt-4o")).toBe(16_384);
    expect(book.maxOutput("gpt-5.4-of-my-own")).toBeUndefined();
    expect(book.maxOutput("constructor")).toBeUndefined();
  });
});
