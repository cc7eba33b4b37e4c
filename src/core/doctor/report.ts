// What `weir doctor` says: one line a check with its figures, and a sentence what to do; the same as JSON.
// Refuses secrets: a check prints names, hosts and figures, never a value that opens something.

type CheckStatus = "ok" | "warn" | "fail";

export interface Finding {
  status: CheckStatus;
  /** What was found, with its figures. */
  text: string;
  /** What to do; absent where nothing is. */
  advice?: string;
  /** For programs: milliseconds, bytes, counts. */
  figures?: Readonly<Record<string, number | string | boolean>>;
}

interface Check extends Finding {
  /** Stable: programs look for it. */
  id: string;
}

/** A check by its name; several findings of one name are told one by one. */
export interface CheckRow {
  id: string;
  look: () => Promise<Finding | Finding[]> | Finding | Finding[];
}

export interface DoctorReport {
  weir: string;
  at: string;
  /** No check failed. */
  ok: boolean;
  checks: Check[];
}

const CHECK_LIMIT_MS = 20_000;
const ID_WIDTH = 12;

/** Runs every check, one after another, and never throws: what breaks is a failed check. */
export async function examine(
  version: string,
  nowMs: number,
  rows: readonly CheckRow[],
): Promise<DoctorReport> {
  const checks: Check[] = [];
  for (const { id, look } of rows) {
    const found = await within(look).catch((error: unknown): Finding => {
      const text = error instanceof Error ? error.message : String(error);
      return {
        status: "fail",
        text,
        advice: "This check could not be made; the sentence is what stopped it.",
      };
    });
    for (const finding of Array.isArray(found) ? found : [found]) checks.push({ id, ...finding });
  }
  return {
    weir: version,
    at: new Date(nowMs).toISOString(),
    ok: checks.every(({ status }) => status !== "fail"),
    checks,
  };
}

async function within(look: CheckRow["look"]): Promise<Finding | Finding[]> {
  const limit = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => limit.reject(new Error(`no answer within ${CHECK_LIMIT_MS / 1000} seconds`)),
    CHECK_LIMIT_MS,
  );
  try {
    return await Promise.race([Promise.resolve().then(look), limit.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** One page for a terminal. */
export function formatReport({ weir, at, checks }: DoctorReport): string {
  const lines = checks.flatMap(({ id, status, text, advice }) => [
    `${status.padEnd(5)} ${id.padEnd(ID_WIDTH)} ${text}`,
    ...(advice === undefined || status === "ok" ? [] : [`${" ".repeat(ID_WIDTH + 7)}-> ${advice}`]),
  ]);
  const count = (wanted: CheckStatus) => checks.filter(({ status }) => status === wanted).length;
  const [warnings, failures] = [count("warn"), count("fail")];
  const plural = (number: number, word: string) => `${number} ${word}${number === 1 ? "" : "s"}`;
  return [
    `weir ${weir} doctor, ${at}`,
    "",
    ...lines,
    "",
    `${count("ok")} ok, ${plural(warnings, "warning")}, ${plural(failures, "failure")}`,
  ].join("\n");
}
