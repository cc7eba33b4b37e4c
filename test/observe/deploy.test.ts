// What is shipped for Prometheus and Grafana asks for metrics that there are, with labels that they have, and is as it was made.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DASHBOARD_FILE, dashboard } from "../../scripts/grafana-dashboard.ts";
import { METRICS } from "../../src/observe/names.ts";
import type { MetricRow } from "../../src/observe/names.ts";

const ALERTS_FILE = join(import.meta.dir, "../../deploy/prometheus/alerts.yml");
const ROWS: Readonly<Record<string, MetricRow>> = METRICS;

const alerts = (
  Bun.YAML.parse(readFileSync(ALERTS_FILE, "utf8")) as {
    groups: { rules: { alert: string; expr: string; annotations: Record<string, string> }[] }[];
  }
).groups.flatMap(({ rules }) => rules);

const panels = (
  JSON.parse(readFileSync(DASHBOARD_FILE, "utf8")) as {
    panels: { id: number; targets: { expr: string }[]; gridPos: Record<string, number> }[];
  }
).panels;

const queries = [
  ...alerts.map(({ expr }) => expr),
  ...panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
];

/** The row of a name as queries write it: a histogram is asked for by its parts. */
function rowOf(name: string): MetricRow | undefined {
  const base = name.replace(/_(?:bucket|sum|count)$/, "");
  return ROWS[name] ?? (ROWS[base]?.type === "histogram" ? ROWS[base] : undefined);
}

/** Selectors of a query: a metric's name with the labels that are asked for. */
function selectorsIn(expr: string): { name: string; labels: string[] }[] {
  return [...expr.matchAll(/\b((?:weir|gen_ai|process)_\w+)(?:\{([^}]*)\})?/g)]
    .filter(
      ([, name = ""]) => !/^gen_ai_(?:operation_name|provider_name|request_model|token_type)$/.test(name),
    )
    .map(([, name = "", labels = ""]) => ({
      name,
      labels: [...labels.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)].map(([, label = ""]) => label),
    }));
}

test("every query asks for metrics of the table, and for labels that they have", () => {
  const selectors = queries.flatMap(selectorsIn);
  expect(queries.filter((expr) => selectorsIn(expr).length === 0)).toEqual([]);
  expect(selectors.filter(({ name }) => !rowOf(name)).map(({ name }) => name)).toEqual([]);
  const foreign = selectors.flatMap(({ name, labels }) =>
    labels
      .filter((label) => label !== "instance" && rowOf(name)?.labels.includes(label) !== true)
      .map((label) => `${name}{${label}}`),
  );
  expect(foreign).toEqual([]);
  expect(selectorsIn('rate(weir_made_up{who="x"}[5m])')).toEqual([{ name: "weir_made_up", labels: ["who"] }]);
});

test("whatever is summed by a label sums by one of the metric's", () => {
  const foreign = queries.flatMap((expr) => {
    const known = new Set([
      "instance",
      "le",
      ...selectorsIn(expr).flatMap(({ name }) => rowOf(name)?.labels ?? []),
    ]);
    return [...expr.matchAll(/\bby \(([^)]*)\)/g)]
      .flatMap(([, list = ""]) => list.split(",").map((label) => label.trim()))
      .filter((label) => !known.has(label));
  });
  expect(foreign).toEqual([]);
});

test("an alert for each promise, and each says what to do", () => {
  const asked = alerts.map(({ expr }) => expr).join("\n");
  for (const name of [
    "weir_ledger_oldest_seconds > 30",
    "weir_settlements_refused_total[15m]) > 0",
    "weir_audit_differences != 0",
    "weir_channel_up == 0",
    "> 0.05",
    "> 0.1",
    "weir_disk_free_ratio < 0.1",
    "weir_backup_age_seconds > 26 * 3600",
  ])
    expect(asked).toContain(name);
  expect(alerts.filter(({ annotations }) => !annotations["summary"] || !annotations["description"])).toEqual(
    [],
  );
});

test("the dashboard is what its rows make, and no panel lies on another", () => {
  expect(JSON.parse(readFileSync(DASHBOARD_FILE, "utf8"))).toEqual(JSON.parse(JSON.stringify(dashboard())));
  const places = panels.map(({ gridPos }) => `${gridPos["x"]},${gridPos["y"]}`);
  expect(new Set(places).size).toBe(panels.length);
});

// Debian's package `prometheus` holds it; where it is missing, the tests above read the rules all the same.
test("Prometheus' own tool takes the rules, and every query of the dashboard as one", async () => {
  const tool = Bun.which("promtool");
  expect(alerts.length).toBeGreaterThanOrEqual(8);
  if (!tool) return;
  const check = async (text: string): Promise<string> => {
    const run = Bun.spawn([tool, "check", "rules", "/dev/stdin"], {
      stdin: new Blob([text]),
      stdout: "pipe",
      stderr: "pipe",
    });
    const said = (await new Response(run.stdout).text()) + (await new Response(run.stderr).text());
    return (await run.exited) === 0 ? "" : said;
  };
  expect(await check(readFileSync(ALERTS_FILE, "utf8"))).toBe("");
  const rules = panels
    .flatMap(({ targets }) => targets)
    .map(({ expr }, index) => ({
      record: `panel:${index}`,
      expr: expr.replaceAll("$__rate_interval", "5m"),
    }));
  expect(await check(JSON.stringify({ groups: [{ name: "panels", rules }] }))).toBe("");
  expect(
    await check(JSON.stringify({ groups: [{ name: "x", rules: [{ record: "a:b", expr: "sum(" }] }] })),
  ).not.toBe("");
});
