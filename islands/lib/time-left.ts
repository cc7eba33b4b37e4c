// How long work still takes, by what it has done so far.
// Refuses to guess before anything is done.
import { formatDuration } from "./format.ts";
import { t } from "./i18n.ts";

/** "about 12 s left"; empty where nothing can be said. `total` below zero: nobody knows. */
export function timeLeftText(done: number, total: number, elapsedMs: number): string {
  if (done <= 0 || total <= done) return "";
  const seconds = Math.max(1, Math.round(((elapsedMs / done) * (total - done)) / 1000));
  return t("common.timeLeft", { time: seconds < 60 ? `${seconds} s` : formatDuration(seconds * 1000) });
}
