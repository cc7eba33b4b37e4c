// Readiness: a process says no where calls would be refused or lost, and stays in service without its database.
import { expect, test } from "bun:test";
import { createReadiness } from "../../../src/core/site/readiness.ts";

test("without its database a process is ready and says degraded; with a journal it cannot write it is not ready", () => {
  let condition = { canRecord: true, silentMs: 900 };
  const readiness = createReadiness(() => condition);
  expect(readiness.look()).toEqual({ isReady: true, status: "ready" });
  condition = { canRecord: true, silentMs: 5000 };
  expect(readiness.look()).toEqual({ isReady: true, status: "degraded" });
  condition = { canRecord: false, silentMs: 5000 };
  expect(readiness.look()).toEqual({ isReady: false, status: "journal" });
  condition = { canRecord: true, silentMs: 0 };
  expect(readiness.look()).toEqual({ isReady: true, status: "ready" });
});

test("from the drain on it is not ready, however well it is", () => {
  const readiness = createReadiness(() => ({ canRecord: true, silentMs: 0 }));
  readiness.drain();
  expect(readiness.look()).toEqual({ isReady: false, status: "draining" });
});
