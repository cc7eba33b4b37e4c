// Closed loops are wrk's: so many connections, each with its next request as soon as the last is answered.
// Everything else stands in load.ts, because no generator at hand does it: wrk and ab know no steady rate, oha (which does)
// is in neither npm nor Debian, and none reads a stream's events, leaves in mid-stream, or reads slowly.
import { join } from "node:path";
import { installSystemPackage } from "../scripts/install-postgres.ts";
import { origin } from "./gateway.ts";
import { type Ask, type LoadResult, type Target, chatBody } from "./load.ts";
import { runForJson } from "./processes.ts";

const SCRIPT = join(import.meta.dir, "wrk.lua");

/** Path of wrk, which is installed where it is missing; throws a sentence that says what to do. */
export function ensureWrk(): string {
  const found = Bun.which("wrk");
  if (found) return found;
  installSystemPackage("wrk", "the bench loads with wrk");
  const installed = Bun.which("wrk");
  if (!installed) throw new Error("wrk was installed but is not on PATH");
  return installed;
}

/** Seconds are rounded up: wrk knows whole ones only. `pauseMs`: what each connection waits between calls, on average. */
export function closedLoop(
  target: Target,
  {
    concurrency,
    seconds,
    ask,
    pauseMs,
  }: { concurrency: number; seconds: number; ask?: Ask | undefined; pauseMs?: number | undefined },
): Promise<LoadResult> {
  const command = [
    ensureWrk(),
    "-t1",
    `-c${concurrency}`,
    `-d${Math.ceil(seconds)}s`,
    "--timeout",
    "10s",
    "-s",
    SCRIPT,
    "-H",
    "Content-Type: application/json",
    "-H",
    `Authorization: Bearer ${target.key}`,
    `${origin(target.port)}${ask?.path ?? "/v1/chat/completions"}`,
  ];
  return runForJson<LoadResult>(command, {
    BENCH_BODY: ask?.body ?? chatBody(),
    ...(pauseMs === undefined ? {} : { BENCH_PAUSE_MS: String(pauseMs) }),
  });
}
