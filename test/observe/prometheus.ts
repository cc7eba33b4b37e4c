// Metrics for tests, read by a parser that is not ours; single values are looked up in the lines, because the parser drops the
// labels of histograms. Refuses text that it does not understand, by throwing.
import parse from "parse-prometheus-text-format";

interface Line {
  name: string;
  labels: Record<string, string>;
  value: number;
}

export interface Scrape {
  /** Of the families, as the parser found them. */
  names: string[];
  /** All values of a metric with these labels together; a histogram's are its counts. */
  value(name: string, labels?: Record<string, string>): number;
  lines(name: string): Line[];
  /** Lines that are values: what a Prometheus stores. */
  series: number;
}

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;

function lineOf(text: string): Line {
  const [, name = "", labels = "", value = ""] = LINE.exec(text) ?? [];
  if (name === "" || Number.isNaN(Number(value.replace("+Inf", "Infinity"))))
    throw new Error(`no value: ${text}`);
  const pairs = [...labels.matchAll(LABEL)].map(([, key = "", quoted = ""]) => [key, quoted]);
  return { name, labels: Object.fromEntries(pairs) as Record<string, string>, value: Number(value) };
}

export function parseMetrics(text: string): Scrape {
  const families = parse(text) as { name: string; type: string }[];
  if (families.length === 0) throw new Error("no metrics");
  const types = new Map(families.map(({ name, type }) => [name, type]));
  const all = text
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map(lineOf);
  const lines = (name: string): Line[] => {
    const wanted = types.get(name) === "HISTOGRAM" ? `${name}_count` : name;
    return all.filter((each) => each.name === wanted);
  };
  return {
    names: families.map(({ name }) => name),
    lines,
    value: (name, labels = {}) =>
      lines(name)
        .filter((each) => Object.entries(labels).every(([key, value]) => each.labels[key] === value))
        .reduce((sum, each) => sum + each.value, 0),
    series: all.length,
  };
}
