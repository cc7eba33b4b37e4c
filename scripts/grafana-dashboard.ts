// `bun scripts/grafana-dashboard.ts`: writes deploy/grafana/weir.json from rows, a panel each.
// Refuses to be edited in its output: 300 lines of positions say what twenty rows say.
import { join } from "node:path";

interface Panel {
  title: string;
  unit: string;
  /** Query and legend. */
  targets: readonly (readonly [expr: string, legend: string])[];
  kind?: "timeseries" | "stat";
  description?: string;
}

const OF = 'instance=~"$instance"';
const quantile = (share: number, name: string, by = ""): string =>
  `histogram_quantile(${share}, sum by (le${by}) (rate(${name}_bucket{${OF}}[$__rate_interval])))`;
const rate = (name: string, by: string): string => `sum by (${by}) (rate(${name}{${OF}}[$__rate_interval]))`;

const PANELS: readonly Panel[] = [
  {
    title: "Requests",
    unit: "reqps",
    targets: [[rate("weir_requests_total", "outcome"), "{{outcome}}"]],
  },
  {
    title: "In flight",
    unit: "short",
    targets: [[`sum by (instance) (weir_inflight{${OF}})`, "{{instance}}"]],
  },
  {
    title: "Added by the gateway",
    unit: "s",
    description: "Time of a call that was not spent at an upstream.",
    targets: [0.5, 0.95, 0.99].map((share) => [quantile(share, "weir_added_seconds"), `p${share * 100}`]),
  },
  {
    title: "Time to first token",
    unit: "s",
    targets: [
      [
        quantile(0.5, "gen_ai_server_time_to_first_token_seconds", ", gen_ai_request_model"),
        "{{gen_ai_request_model}}",
      ],
    ],
  },
  {
    title: "Time per output token",
    unit: "s",
    targets: [
      [
        quantile(0.5, "gen_ai_server_time_per_output_token_seconds", ", gen_ai_request_model"),
        "{{gen_ai_request_model}}",
      ],
    ],
  },
  {
    title: "Duration of requests",
    unit: "s",
    targets: [0.5, 0.95].map((share) => [
      quantile(share, "gen_ai_server_request_duration_seconds"),
      `p${share * 100}`,
    ]),
  },
  {
    title: "Tokens",
    unit: "short",
    targets: [[rate("weir_tokens_total", "type"), "{{type}}"]],
  },
  {
    title: "Tokens a call",
    unit: "short",
    targets: [[quantile(0.5, "gen_ai_client_token_usage", ", gen_ai_token_type"), "{{gen_ai_token_type}}"]],
  },
  {
    title: "Attempts by channel",
    unit: "reqps",
    targets: [[rate("weir_channel_attempts_total", "channel, outcome"), "{{channel}} {{outcome}}"]],
  },
  {
    title: "Upstream errors",
    unit: "reqps",
    targets: [
      [
        `sum by (gen_ai_provider_name, error_type) (rate(gen_ai_client_operation_duration_seconds_count{${OF}, error_type!=""}[$__rate_interval]))`,
        "{{gen_ai_provider_name}} {{error_type}}",
      ],
    ],
  },
  {
    title: "Channels down",
    unit: "short",
    kind: "stat",
    targets: [[`count(max by (channel) (weir_channel_up{${OF}}) == 0) or vector(0)`, "down"]],
  },
  {
    title: "Resting keys and models",
    unit: "short",
    targets: [
      [`sum(weir_channel_key_rests{${OF}})`, "keys"],
      [`sum(weir_channel_cells_open{${OF}})`, "models of channels"],
    ],
  },
  {
    title: "Settlements that wait",
    unit: "short",
    targets: [[`sum by (instance) (weir_ledger_waiting{${OF}})`, "{{instance}}"]],
  },
  {
    title: "Oldest settlement",
    unit: "s",
    targets: [[`max by (instance) (weir_ledger_oldest_seconds{${OF}})`, "{{instance}}"]],
  },
  {
    title: "Durable writes of the journal",
    unit: "s",
    targets: [0.5, 0.99].map((share) => [quantile(share, "weir_journal_sync_seconds"), `p${share * 100}`]),
  },
  {
    title: "Differences of the last audit",
    unit: "short",
    kind: "stat",
    targets: [[`max(weir_audit_differences{${OF}})`, "differences"]],
  },
  {
    title: "Event loop, p99 late",
    unit: "s",
    targets: [[quantile(0.99, "weir_eventloop_delay_seconds", ", instance"), "{{instance}}"]],
  },
  {
    title: "Processor and memory",
    unit: "short",
    targets: [
      [`rate(process_cpu_seconds_total{${OF}}[$__rate_interval])`, "{{instance}} cores"],
      [`process_resident_memory_bytes{${OF}} / 1e9`, "{{instance}} GB"],
    ],
  },
  {
    title: "Database, clock, disk",
    unit: "short",
    targets: [
      [`min by (instance) (weir_database_up{${OF}})`, "{{instance}} database"],
      [`min by (instance) (weir_valkey_up{${OF}})`, "{{instance}} Valkey"],
      [`weir_clock_skew_seconds{${OF}}`, "{{instance}} clock, s"],
      [`weir_disk_free_ratio{${OF}}`, "{{instance}} free disk"],
    ],
  },
  {
    title: "Age of the last backup",
    unit: "s",
    kind: "stat",
    targets: [[`min(weir_backup_age_seconds{${OF}})`, "backup"]],
  },
];

const WIDTH = 8;
const HEIGHT = 8;
const IN_A_ROW = 24 / WIDTH;
const SOURCE = { type: "prometheus", uid: "${datasource}" };

export function dashboard(): object {
  return {
    title: "Weir",
    uid: "weir",
    tags: ["weir"],
    timezone: "browser",
    schemaVersion: 39,
    refresh: "30s",
    time: { from: "now-6h", to: "now" },
    templating: {
      list: [
        { name: "datasource", type: "datasource", query: "prometheus" },
        {
          name: "instance",
          type: "query",
          datasource: SOURCE,
          query: "label_values(weir_build_info, instance)",
          includeAll: true,
          multi: true,
          current: { text: "All", value: "$__all" },
          refresh: 2,
        },
      ],
    },
    panels: PANELS.map(({ title, unit, targets, kind = "timeseries", description }, index) => ({
      id: index + 1,
      type: kind,
      title,
      ...(description === undefined ? {} : { description }),
      datasource: SOURCE,
      gridPos: {
        h: HEIGHT,
        w: WIDTH,
        x: (index % IN_A_ROW) * WIDTH,
        y: Math.floor(index / IN_A_ROW) * HEIGHT,
      },
      fieldConfig: {
        defaults: { unit, min: unit === "short" && kind === "timeseries" ? null : 0 },
        overrides: [],
      },
      targets: targets.map(([expr, legendFormat], place) => ({
        refId: String.fromCharCode(65 + place),
        datasource: SOURCE,
        expr,
        legendFormat,
      })),
    })),
  };
}

export const DASHBOARD_FILE = join(import.meta.dir, "../deploy/grafana/weir.json");

if (import.meta.main) await Bun.write(DASHBOARD_FILE, `${JSON.stringify(dashboard(), undefined, 2)}\n`);
