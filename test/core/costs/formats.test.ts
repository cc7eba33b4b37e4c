// Each provider's export, recorded in its documented shape, as lines of one: dollars, cents and units to the nano, tokens by
// kind, days of UTC; what cannot be read is named by its place and never counted.
import { describe, expect, test } from "bun:test";
import { decimalNanos, momentOf } from "../../../src/core/costs/bill-lines.ts";
import type { ReadBill } from "../../../src/core/costs/bill-lines.ts";
import { readBill } from "../../../src/core/costs/formats.ts";
import type { CsvColumns } from "../../../src/core/costs/formats.ts";
import type { BillSource } from "../../../src/shared/bill-sources.ts";
import { Failure } from "../../../src/shared/failures.ts";

const DAY = Date.UTC(2026, 10, 19) / 1000;
const NOW = Date.UTC(2026, 10, 20, 12) / 1000;
const OPTIONS = { quotaPerUnit: 500_000, now: NOW };

const recorded = (name: string) => Bun.file(`${import.meta.dir}/recorded/${name}.json`).text();
const read = async (source: BillSource) => readBill(source, await recorded(source), OPTIONS);

const short = ({ lines }: ReadBill) =>
  lines.map(({ day, model, kind, requests, tokens, amountNanos }) => ({
    day: (day - DAY) / 86_400,
    model,
    kind,
    ...(requests === null ? {} : { requests }),
    ...(tokens === null ? {} : { tokens }),
    ...(amountNanos === null ? {} : { amountNanos }),
  }));

test.each([
  ["0.06", 0, 60_000_000],
  ["123.45", -2, 1_234_500_000],
  [1e-7, 0, 100],
  ["0.0000000005", 0, 1],
  ["0.0000000004", 0, 0],
  ["-1.5", 0, -1_500_000_000],
  ["12345678.123456789", 0, undefined],
  ["1e99", 0, undefined],
  ["", 0, undefined],
  ["1,5", 0, undefined],
  [Number.NaN, 0, undefined],
  [null, 0, undefined],
])("%p at 10^%p dollars", (value, scale, nanos) => {
  expect(decimalNanos(value, scale)).toBe(nanos);
});

test.each([
  ["2026-11-19", DAY],
  ["2026-11-19 23:59:59", DAY + 86_399],
  ["2026/11/19", DAY],
  ["2026-11-19T08:00:00+08:00", DAY],
  [DAY, DAY],
  [DAY * 1000, DAY],
  ["2026-02-31", undefined],
  ["19.11.2026", undefined],
  ["", undefined],
])("the moment %p", (value, moment) => {
  expect(momentOf(value)).toBe(moment);
});

describe("recorded exports", () => {
  test("OpenAI's costs are dollars by line item; another currency is refused, pages are named", async () => {
    const bill = await read("openai-costs");
    expect(short(bill)).toEqual([
      { day: 0, model: "gpt-4o-2024-08-06", kind: "in", amountNanos: 250_000_000 },
      { day: 0, model: "gpt-4o-2024-08-06", kind: "cache_read", amountNanos: 125_000_000 },
      { day: 0, model: "gpt-4o-2024-08-06", kind: "out", amountNanos: 1_000_000_000 },
      { day: 0, model: "web search tool calls", kind: "", amountNanos: 30_000_000 },
    ]);
    expect(bill.refused).toEqual([{ line: 5, problem: "currency" }]);
    expect(bill.nextPage).toBe("page_AAAA");
  });

  test("OpenAI's usage: cached input is part of the input, and counted once", async () => {
    expect(short(await read("openai-usage"))).toEqual([
      { day: 0, model: "gpt-4o-2024-08-06", kind: "", requests: 5 },
      { day: 0, model: "gpt-4o-2024-08-06", kind: "in", tokens: 100_000 },
      { day: 0, model: "gpt-4o-2024-08-06", kind: "cache_read", tokens: 100_000 },
      { day: 0, model: "gpt-4o-2024-08-06", kind: "out", tokens: 100_000 },
    ]);
  });

  test("Anthropic's cost report is in cents, as text", async () => {
    const bill = await read("anthropic-cost");
    expect(short(bill)).toEqual([
      { day: 0, model: "claude-sonnet-4-5", kind: "in", amountNanos: 1_237_891_200 },
      { day: 0, model: "claude-sonnet-4-5", kind: "cache_write_1h", amountNanos: 60_000_000 },
      { day: 0, model: "", kind: "", amountNanos: 10_000_000 },
    ]);
  });

  test("Anthropic's usage has every kind of input by itself", async () => {
    expect(short(await read("anthropic-usage"))).toEqual([
      { day: 0, model: "claude-sonnet-4-5", kind: "in", tokens: 1500 },
      { day: 0, model: "claude-sonnet-4-5", kind: "cache_read", tokens: 200 },
      { day: 0, model: "claude-sonnet-4-5", kind: "cache_write", tokens: 500 },
      { day: 0, model: "claude-sonnet-4-5", kind: "cache_write_1h", tokens: 1000 },
      { day: 0, model: "claude-sonnet-4-5", kind: "out", tokens: 500 },
    ]);
  });

  test("OpenRouter's activity: complete days only", async () => {
    const bill = await read("openrouter");
    expect(short(bill)).toEqual([
      { day: 0, model: "openai/gpt-4.1", kind: "", requests: 5, amountNanos: 15_000_000 },
      { day: 0, model: "openai/gpt-4.1", kind: "in", tokens: 50 },
      { day: 0, model: "openai/gpt-4.1", kind: "out", tokens: 125 },
    ]);
    expect(bill.refused).toEqual([{ line: 2, problem: "unfinished" }]);
  });

  test("another instance's log: units over its own unit, charges only, two equal calls are two", async () => {
    const bill = await read("instance");
    const amounts = bill.lines.filter(({ kind }) => kind === "");
    expect(amounts.map(({ requestId, amountNanos }) => [requestId, amountNanos])).toEqual([
      ["2026111908000000000001", 2_000_000],
      ["", 4_000_000],
      ["", 4_000_000],
    ]);
    expect(new Set(bill.lines.map(({ bucket }) => bucket)).size).toBe(bill.lines.length);
    expect(bill.refused).toEqual([{ line: 5, problem: "amount" }]);
  });
});

const CSV = `\uFEFFWhen;Name;Cost;Prompt;Cached;Answer;Id
2026-11-19 10:00;gpt-4o;"$1,234.50";1000;400;50;req_1
2026-11-19;gpt-4o;0.5;;;;
31.12.2026;gpt-4o;1;1;0;1;
2026-11-19;gpt-4o;zwei;1;0;1;
2026-11-19;gpt-4o;1;10;11;1;

`;
const COLUMNS: CsvColumns = {
  date: "When",
  model: "Name",
  amount: "Cost",
  input: "Prompt",
  cached: "Cached",
  output: "Answer",
  request_id: "Id",
};

test("any CSV by the columns that somebody named", () => {
  const bill = readBill("csv", CSV, { ...OPTIONS, columns: COLUMNS });
  expect(short(bill).slice(0, 4)).toEqual([
    { day: 0, model: "gpt-4o", kind: "", amountNanos: 1_234_500_000_000 },
    { day: 0, model: "gpt-4o", kind: "in", tokens: 600 },
    { day: 0, model: "gpt-4o", kind: "cache_read", tokens: 400 },
    { day: 0, model: "gpt-4o", kind: "out", tokens: 50 },
  ]);
  expect(bill.refused).toEqual([
    { line: 4, problem: "day" },
    { line: 5, problem: "amount" },
    { line: 6, problem: "tokens" },
  ]);
  const cents = readBill("csv", CSV, { ...OPTIONS, columns: { ...COLUMNS, unit: "cent" } });
  expect(cents.lines[0]?.amountNanos).toBe(12_345_000_000);
});

test.each([
  ["openai-costs", "", "price_source_empty"],
  ["openai-costs", "{", "price_source_broken"],
  ["openai-costs", "<html>", "price_source_broken"],
  ["anthropic-cost", '{"error":{"message":"no"}}', "bill_form"],
  ["csv", "", "price_source_empty"],
  ["csv", "a,b\n1,2", "bill_columns"],
] as const)("%s of %p is refused: %s", (source, text, code) => {
  let failure: unknown;
  try {
    readBill(source, text, OPTIONS);
  } catch (error) {
    failure = error;
  }
  expect(failure).toBeInstanceOf(Failure);
  expect((failure as Failure).code).toBe(code);
});

test("a column that the file does not have is named", () => {
  expect(() => readBill("csv", CSV, { ...OPTIONS, columns: { ...COLUMNS, amount: "Price" } })).toThrow(
    "bill_column",
  );
});
