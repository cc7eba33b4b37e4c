// Reads a settings file (YAML or JSON) into a value, with the line of each of its names.
// Refuses whatever two readers could understand in two ways, each with its line.
import { placeKey, placesOf, scanText } from "./scan.ts";
import type { Path, ScanProblem } from "./scan.ts";

export interface ConfigFile {
  value: unknown;
  problems: ScanProblem[];
  /** The line of a place, or of the nearest one around it; 0 for the file as a whole. */
  lineOf(path: Path): number;
}

const reasonOf = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).replace(/^(?:YAML|JSON) Parse error: /, "");

/** A name that every object of JavaScript's answers to would not be kept as an entry of its own everywhere. */
function reservedNames(value: unknown, path: Path = []): Path[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, each]) => {
    const here = [...path, name];
    const isReserved = !Array.isArray(value) && name in Object.prototype;
    return [...(isReserved ? [here] : []), ...reservedNames(each, here)];
  });
}

export function readConfigText(sent: string, isJson = false): ConfigFile {
  const text = sent.replace(/^\uFEFF/, "").replace(/\r\n?/g, "\n");
  const { lines, problems } = scanText(text);
  const lineOf = (path: Path): number => {
    for (let end = path.length; end > 0; end--) {
      const line = lines.get(placeKey(path.slice(0, end)));
      if (line !== undefined) return line;
    }
    return 0;
  };
  if (problems.length > 0) return { value: undefined, problems, lineOf };
  let value: unknown;
  try {
    value = isJson || /^\s*[{[]/.test(text) ? JSON.parse(text) : Bun.YAML.parse(text);
  } catch (error) {
    return { value: undefined, problems: [{ line: 0, message: reasonOf(error) }], lineOf };
  }
  // The parser and the scan are two readers: where they differ, a third may see yet another file.
  const seen = new Set(lines.keys());
  const places = placesOf(value);
  const strange = places.find((place) => !seen.has(place));
  if (strange !== undefined || places.length !== seen.size) {
    const path = strange === undefined ? [] : (JSON.parse(strange) as string[]);
    problems.push({
      line: lineOf(path),
      message: `${path.join(".") || "the file"} is written in a way that readers disagree about: write it more plainly`,
    });
  }
  for (const path of reservedNames(value))
    problems.push({ line: lineOf(path), message: `"${path.at(-1)}" cannot be a name` });
  return { value, problems, lineOf };
}
