// Readiness: a process says no where calls would be refused or lost, and stays in service without its database.
import { expect, test } from "bun:test";
import { createReadiness } from "../../../src/core/site/readiness.ts";

test("without its database a process is ready and says degraded; with a journal it cannot write it is not ready", () => {
  const well = { canRecord: true, silentMs: 0, stoppedBy: undefined };
  let condition: typeof well | { canRecord: boolean; silentMs: number; stoppedBy: string } = {
    ...well,
    silentMs: 900,
  };
  const readiness = createReadiness(() => condition);
  expect(readiness.look()).toEqual({ isReady: true, status: "ready" });
  condition = { ...well, silentMs: 5000 };
  expect(readiness.look()).toEqual({ isReady: true, status: "degraded" });
  condition = { ...well, canRecord: false, silentMs: 5000 };
  expect(readiness.look()).toEqual({ isReady: false, status: "journal" });
  condition = { ...well, canRecord: false, stoppedBy: "missing" };
  expect(readiness.look()).toEqual({ isReady: false, status: "stopped" });
  condition = well;
  expect(readiness.look()).toEqual({ isReady: true, status: "ready" });
});

test("from the drain on it is not ready, however well it is", () => {
  const readiness = createReadiness(() => ({ canRecord: true, silentMs: 0, stoppedBy: undefined }));
  readiness.drain();
  expect(readiness.look()).toEqual({ isReady: false, status: "draining" });
});
