// A line without axes beside a number: shows the shape, the number says the size.
// Refuses to carry meaning alone: it is hidden from readers, who get the number.
import { sparkPaths } from "../lib/chart.ts";

const HEIGHT = 28;

export function Sparkline({ values }: { values: readonly number[] }) {
  const { line, area } = sparkPaths(values, HEIGHT);
  return (
    <svg
      className="spark"
      viewBox={`0 0 ${Math.max(1, values.length - 1)} ${HEIGHT}`}
      preserveAspectRatio="none"
      aria-hidden
    >
      {line === "" ? null : (
        <>
          <path className="spark-area" d={area} />
          <path className="spark-line" d={line} />
        </>
      )}
    </svg>
  );
}
