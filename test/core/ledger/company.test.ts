// When a batch that answers wait for begins: at once for a lone caller, a part of a commit's time later where others are usual.
import { expect, test } from "bun:test";
import { createCompany } from "../../../src/core/ledger/company.ts";

test("a lone caller never waits; who usually travels in company waits a part of a commit, until the usual company is there", () => {
  const company = createCompany();
  expect(company.waitMs(1)).toBe(0);
  for (let batch = 0; batch < 20; batch++) company.committed(1, 8);
  expect(company.waitMs(1)).toBe(0);
  for (let batch = 0; batch < 20; batch++) company.committed(8, 8);
  expect(company.waitMs(1)).toBeGreaterThan(1);
  expect(company.waitMs(1)).toBeLessThanOrEqual(4);
  expect(company.waitMs(8)).toBe(0);
  // However slow the commits are, and soon no more when the others have gone.
  for (let batch = 0; batch < 20; batch++) company.committed(8, 1000);
  expect(company.waitMs(1)).toBe(5);
  for (let batch = 0; batch < 10; batch++) company.committed(1, 1000);
  expect(company.waitMs(1)).toBe(0);
});

test("a charge that comes alone is in the tables as soon as ever; where batches follow each other they are fewer, and within a second of other nodes", () => {
  const [feedMs, commitMs] = [500, 100];
  let nowMs = 0;
  const company = createCompany(() => nowMs);
  expect(company.gatherMs()).toBe(200);
  company.committed(1, commitMs);
  expect(company.gatherMs()).toBeGreaterThan(200);
  expect(company.gatherMs() + commitMs + feedMs).toBeLessThan(1000);
  nowMs = 1500;
  expect(company.gatherMs()).toBe(200);
});
