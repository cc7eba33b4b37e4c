// One line per event on standard error, as JSON, from the level the operator chose.
// Refuses to serialise bodies or secrets: callers pass small, named fields only.
import type { Logger } from "./deps.ts";

const ORDER = ["debug", "info", "warn", "error", "silent"] as const;
export type LogLevel = (typeof ORDER)[number];

export function createLogger(
  level: LogLevel,
  write: (line: string) => void = (line) => console.error(line),
): Logger {
  const threshold = ORDER.indexOf(level);
  const at =
    (name: LogLevel) =>
    (message: string, fields: Record<string, unknown> = {}) => {
      if (ORDER.indexOf(name) < threshold) return;
      write(JSON.stringify({ time: new Date().toISOString(), level: name, message, ...fields }));
    };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}
