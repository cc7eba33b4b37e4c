// A component that reads a signal's value renders again only if it began with useSignals().
// Scans the islands: there is no compiler step that would see to it.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dir, "../../islands");
/** Signals that modules share, and the local ones of a file. */
const SHARED = ["boot", "status", "user", "theme", "address", "timeZone", "nowMs", "language"];

interface Reading {
  component: string;
  line: string;
}

/** Components and hooks of a file that read `.value` of a signal without useSignals (or useT, which calls it). */
function unsafeReadings(source: string): Reading[] {
  const local = [...source.matchAll(/const (\w+) = signal[<(]/g)].map((match) => match[1] ?? "");
  const names = [...new Set([...SHARED, ...local])].join("|");
  const reads = new RegExp(`(?<![\\w.])(?:${names})\\.value(?!\\s*=[^=])`);
  const found: Reading[] = [];
  const starts = [
    ...source.matchAll(/^(?:export )?(?:default )?(?:async )?function ([A-Z]\w*|use[A-Z]\w*)/gm),
  ];
  starts.forEach((start, index) => {
    const end = source.slice(start.index).search(/^\}/m);
    const body = source.slice(
      start.index,
      end < 0 ? (starts[index + 1]?.index ?? source.length) : start.index + end,
    );
    const isTracked = /\buseSignals\(\)/.test(body) || /\buseT\(\)/.test(body) || /\buseQuery\(\)/.test(body);
    const line = body.split("\n").find((each) => reads.test(each) && !/^\s*(\/\/|\*)/.test(each));
    if (line && !isTracked) found.push({ component: start[1] ?? "", line: line.trim() });
  });
  return found;
}

test("every component that reads a signal's value subscribes to it", () => {
  const offences: string[] = [];
  let scanned = 0;
  for (const file of new Bun.Glob("**/*.{ts,tsx}").scanSync({ cwd: ROOT })) {
    scanned++;
    for (const { component, line } of unsafeReadings(readFileSync(join(ROOT, file), "utf8"))) {
      offences.push(`${file}: ${component} reads "${line}" without useSignals()`);
    }
  }
  expect(offences).toEqual([]);
  expect(scanned).toBeGreaterThan(20);
});

test("the scan sees a component that forgot", () => {
  const forgot = `export function Balance() {\n  return user.value?.quota;\n}\n`;
  expect(unsafeReadings(forgot)).toEqual([{ component: "Balance", line: "return user.value?.quota;" }]);
  expect(unsafeReadings(forgot.replace("  return", "  useSignals();\n  return"))).toEqual([]);
  expect(unsafeReadings(`export function set() {\n  user.value = null;\n}\n`)).toEqual([]);
});
