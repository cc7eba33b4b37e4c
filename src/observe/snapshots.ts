// Figures of several processes on their way to one text: what those that have ended counted is kept, so that no sum goes back.
// Refuses to keep states: what a process that is gone held or knew is no longer so.
import type { MetricSnapshot } from "./metrics.ts";

const GROWS: ReadonlySet<string> = new Set(["counter", "histogram"]);

type Value = MetricSnapshot["values"][number];

const keyOf = ({ metricName = "", labels }: Value): string => `${metricName} ${JSON.stringify(labels)}`;

function summed(values: readonly Value[]): Value[] {
  const byKey = new Map<string, Value>();
  for (const each of values) {
    const key = keyOf(each);
    const found = byKey.get(key);
    if (found) found.value += each.value;
    else byKey.set(key, { ...each });
  }
  return [...byKey.values()];
}

/** What was counted by a process that has ended, added to what others before it counted. */
export function keepCounted(
  kept: readonly MetricSnapshot[],
  ended: readonly MetricSnapshot[],
): MetricSnapshot[] {
  const counted = ended.filter(({ type, aggregator }) => GROWS.has(type) && aggregator === "sum");
  const byName = Map.groupBy([...kept, ...counted], ({ name }) => name);
  return [...byName.values()].flatMap((families) => {
    const [first] = families;
    return first ? [{ ...first, values: summed(families.flatMap(({ values }) => values)) }] : [];
  });
}
