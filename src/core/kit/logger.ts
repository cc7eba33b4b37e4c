// One line per event on standard error, as JSON, from the level the operator chose.
// Refuses to serialise bodies or secrets: callers pass small, named fields only.
import type { Logger } from "../deps.ts";

const ORDER = ["debug", "info", "warn", "error", "silent"] as const;
export type LogLevel = (typeof ORDER)[number];

/** A failed query's message ends with its values: hashes, sealed keys, people's data. None of them belongs into a log. */
const QUERY_VALUES = /(Failed query: [\s\S]*?)\nparams: [\s\S]*?(?=\n {4}at |$)/g;

function withoutValues(_key: string, value: unknown): unknown {
  return typeof value === "string" && value.includes("Failed query: ")
    ? value.replace(QUERY_VALUES, "$1")
    : value;
}

/** `node`: the name of this one, as soon as it is known. */
export function createLogger(
  level: LogLevel,
  write: (line: string) => void = (line) => console.error(line),
  node: () => string | undefined = () => undefined,
): Logger {
  const threshold = ORDER.indexOf(level);
  const at =
    (name: LogLevel) =>
    (message: string, fields: Record<string, unknown> = {}) => {
      if (ORDER.indexOf(name) < threshold) return;
      const time = new Date().toISOString();
      write(JSON.stringify({ time, level: name, message, node: node(), ...fields }, withoutValues));
    };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}
