// The steps of one call on a shared axis, as far as its row tells them.
// Refuses to invent: without attempts (old rows, users' rows) only first token and rest are known.
import { ERROR } from "./row.ts";
import type { LogOther } from "./row.ts";
import type { LogRow } from "../../lib/wire.ts";

type StepKind = "checks" | "attempt" | "answer" | "stream" | "firstToken" | "rest" | "whole";

export interface Step {
  kind: StepKind;
  startMs: number;
  ms: number;
  isFailed: boolean;
  /** Of attempts. */
  number?: number;
  channel?: number;
  code?: string;
  status?: number;
}

function isFailedCode(code: string | undefined): boolean {
  return code !== undefined && code !== "" && code !== "ok";
}

export function stepsOf(row: Pick<LogRow, "use_time_ms" | "is_stream" | "type">, other: LogOther): Step[] {
  const attempts = other.attempts ?? [];
  const first = typeof other.frt === "number" && other.frt >= 0 ? other.frt : undefined;
  const totalMs = Math.max(row.use_time_ms, first ?? 0);
  const steps: Step[] = [];
  // Whatever the call was doing when it ended has failed with it.
  const isFailed = row.type === ERROR;
  if (attempts.length === 0) {
    if (first === undefined) return [{ kind: "whole", startMs: 0, ms: totalMs, isFailed }];
    steps.push({ kind: "firstToken", startMs: 0, ms: first, isFailed: isFailed && totalMs <= first });
    if (totalMs > first) steps.push({ kind: "rest", startMs: first, ms: totalMs - first, isFailed });
    return steps;
  }
  const tried = attempts.reduce((sum, attempt) => sum + attempt.ms, 0);
  // The first token comes at the end of the last attempt: what is left before the attempts are our own checks.
  const checks = first === undefined ? 0 : Math.max(0, first - tried);
  if (checks > 0) steps.push({ kind: "checks", startMs: 0, ms: checks, isFailed: false });
  let at = checks;
  attempts.forEach((attempt, index) => {
    const isRefused = isFailedCode(attempt.code);
    steps.push({
      kind: isRefused ? "attempt" : "answer",
      startMs: at,
      ms: attempt.ms,
      isFailed: isRefused,
      number: index + 1,
      channel: attempt.channel,
      ...(attempt.code === undefined ? {} : { code: attempt.code }),
      ...(attempt.status === undefined ? {} : { status: attempt.status }),
    });
    at += attempt.ms;
  });
  const rest = totalMs - at;
  if (rest > 0 && !isFailedCode(attempts.at(-1)?.code)) {
    steps.push({ kind: row.is_stream ? "stream" : "rest", startMs: at, ms: rest, isFailed });
  }
  return steps;
}
