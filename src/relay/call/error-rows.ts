// Error rows of failed attempts and refused calls: ten a minute for each key and reason, then one that says how many more there were.
// Refuses to let a key fill the log for nothing: failed calls cost it no balance.
import { moreErrors } from "../../core/logs/sentences.ts";
import type { Deps, LogEntry } from "../../core/deps.ts";

const MINUTE_MS = 60_000;
const ROWS_A_MINUTE = 10;
/** Keys times reasons that are watched at once; where there are more, the oldest minute ends early. */
const MAX_WATCHED = 4096;

/** Whose key it is: without one (the playground) the user's calls count together. */
interface ErrorSource {
  userId: number;
  tokenId: number;
  /** Code of the failure. */
  reason: string;
}

export interface ErrorRows {
  /** Writes the row, or counts it; `entry` is only made for a row that is written. */
  add(source: ErrorSource, entry: () => LogEntry): void;
  /** Ends the minutes that are over. Runs by timer; tests call it. */
  sweep(): void;
  /** Ends every minute: what was counted is written. */
  close(): void;
}

interface Minute {
  startedMs: number;
  rows: number;
  more: number;
  /** What the row that counts the rest takes from the first one. */
  sample: LogEntry;
}

/** Long texts of upstreams are not kept for a minute. */
const MAX_CONTENT_CHARACTERS = 500;

function upstreamTextOf(other: LogEntry["other"]): string {
  const admin = other?.["admin_info"] as { upstream_text?: string } | undefined;
  return admin?.upstream_text ?? "";
}

/** What administrators read in place of the content. */
function adminPart(upstreamText: string): { admin_info?: { upstream_text: string } } {
  return upstreamText === ""
    ? {}
    : { admin_info: { upstream_text: upstreamText.slice(0, MAX_CONTENT_CHARACTERS) } };
}

/** The parts of a row that hold for all of its minute. */
function sampleOf(entry: LogEntry): LogEntry {
  const { type, userId, username, content, tokenId = 0, tokenName = "", group = "", other } = entry;
  const reported = ["error_type", "error_code", "status_code"].map((name) => [name, other?.[name]]);
  return {
    type,
    userId,
    username,
    content: content.slice(0, MAX_CONTENT_CHARACTERS),
    tokenId,
    tokenName,
    group,
    other: { ...Object.fromEntries(reported), ...adminPart(upstreamTextOf(other)) },
  };
}

/** The row that says how many more there were. */
function countRow({ sample, more }: Minute): LogEntry {
  const upstreamText = upstreamTextOf(sample.other);
  return {
    ...sample,
    content: moreErrors(more, sample.content),
    other: {
      ...sample.other,
      ...(upstreamText === "" ? {} : adminPart(moreErrors(more, upstreamText))),
      // For readers of another language.
      more_errors: more,
    },
  };
}

/** `nowMs` is a monotonic clock. */
export function createErrorRows(
  { ledger, logger }: { ledger: Pick<Deps["ledger"], "log">; logger: Deps["logger"] },
  nowMs: () => number = () => performance.now(),
): ErrorRows {
  /** In the order in which their minutes began. */
  const minutes = new Map<string, Minute>();
  let timer: ReturnType<typeof setTimeout> | undefined;

  function write(entry: LogEntry): void {
    ledger.log(entry).catch((error: unknown) => {
      logger.warn("error row could not be written", { request_id: entry.requestId, error: String(error) });
    });
  }

  function end(key: string, minute: Minute): void {
    minutes.delete(key);
    if (minute.more === 0) return;
    write(countRow(minute));
  }

  function sweep(): void {
    clearTimeout(timer);
    timer = undefined;
    const now = nowMs();
    for (const [key, minute] of minutes) {
      const leftMs = minute.startedMs + MINUTE_MS - now;
      if (leftMs > 0) {
        timer = setTimeout(sweep, leftMs);
        timer.unref();
        return;
      }
      end(key, minute);
    }
  }

  return {
    add({ userId, tokenId, reason }, entry) {
      const key = tokenId > 0 ? `${tokenId} ${reason}` : `user ${userId} ${reason}`;
      const now = nowMs();
      let minute = minutes.get(key);
      if (minute && now - minute.startedMs >= MINUTE_MS) {
        end(key, minute);
        minute = undefined;
      }
      if (minute && minute.rows >= ROWS_A_MINUTE) {
        minute.more++;
        return;
      }
      const row = entry();
      write(row);
      if (minute) {
        minute.rows++;
        return;
      }
      if (minutes.size >= MAX_WATCHED)
        for (const [oldest, ended] of minutes) {
          end(oldest, ended);
          break;
        }
      minutes.set(key, { startedMs: now, rows: 1, more: 0, sample: sampleOf(row) });
      if (timer === undefined) sweep();
    },
    sweep,
    close() {
      clearTimeout(timer);
      timer = undefined;
      for (const [key, minute] of minutes) end(key, minute);
    },
  };
}
