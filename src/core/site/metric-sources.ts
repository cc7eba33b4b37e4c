// What the metrics look up at a scrape, besides what was counted as it happened.
import { one } from "../../observe/metrics.ts";
import type { Source } from "../../observe/metrics.ts";
import { LABEL } from "../../observe/names.ts";
import { backupAge, backupState } from "../backup/state.ts";
import type { Deps } from "../deps.ts";
import { auditDifferences, journalBytes, readChannels, readDatabase, readDisk } from "./node-reading.ts";

export interface SourceDeps extends Pick<
  Deps,
  "db" | "valkey" | "clock" | "routing" | "picker" | "keyring" | "inbox" | "dataDir" | "version"
> {
  /** Settlements on their way into the tables. */
  lag: () => { waiting: number; oldestMs: number; refused: number; early: number; falls: number };
  /** The process answers no calls until it is started again. */
  isStopped: () => boolean;
  /** Calls in flight. */
  inFlight: () => number;
  /** When each job last succeeded on this node, Unix seconds. */
  jobs: () => ReadonlyMap<string, number>;
  /** What the conventions call a channel's provider. */
  providerName: (channelType: number) => string;
}

/** A source each: one that fails or hangs leaves the others' figures alone. */
export function metricSources(deps: SourceDeps): Source[] {
  return [
    () => memoryValues(deps),
    () => channelValues(deps),
    () => valkeyValues(deps),
    async () => {
      const { answers, skewSeconds } = await readDatabase(deps);
      return {
        weir_database_up: [one(answers ? 1 : 0)],
        ...(answers ? { weir_clock_skew_seconds: [one(skewSeconds ?? 0)] } : {}),
      };
    },
    async () => {
      const age = backupAge(await backupState(deps.db), Math.floor(deps.clock.nowMs() / 1000));
      return age === undefined ? {} : { weir_backup_age_seconds: [one(age)] };
    },
    async () => ({ weir_journal_bytes: [one(await journalBytes(deps.dataDir))] }),
    async () => ({ weir_disk_free_ratio: [one((await readDisk(deps.dataDir)).freeShare)] }),
  ];
}

function memoryValues(deps: SourceDeps): ReturnType<Source> {
  const { waiting, oldestMs, refused, early, falls } = deps.lag();
  return {
    weir_inflight: [one(deps.inFlight())],
    weir_ledger_waiting: [one(waiting)],
    weir_ledger_oldest_seconds: [one(oldestMs / 1000)],
    weir_settlements_refused_total: [one(refused)],
    weir_settlements_early_total: [one(early)],
    weir_database_falls_total: [one(falls)],
    weir_node_stopped: [one(deps.isStopped() ? 1 : 0)],
    weir_nodes_lost: [one(deps.inbox.subjects("node_lost").length)],
    weir_audit_differences: [one(auditDifferences(deps))],
    weir_job_last_success_seconds: [...deps.jobs()].map(([job, at]) => one(at, { job })),
    weir_build_info: [one(1, { version: deps.version })],
  };
}

/** No figures where the site has none. */
function valkeyValues({ valkey }: SourceDeps): ReturnType<Source> {
  const state = valkey?.state();
  return state
    ? { weir_valkey_up: [one(state.isUp ? 1 : 0)], weir_valkey_missed_total: [one(state.missed)] }
    : {};
}

function channelValues(deps: SourceDeps): ReturnType<Source> {
  const found = readChannels(deps).map((reading) => ({
    ...reading,
    of: { channel: reading.channel.id },
  }));
  return {
    weir_channel_up: found.map(({ of, isUp }) => one(isUp ? 1 : 0, of)),
    weir_channel_key_rests: found.map(({ of, keyRests }) => one(keyRests, of)),
    weir_channel_cells_open: found.map(({ of, openCells }) => one(openCells, of)),
    weir_channel_info: found.map(({ of, channel }) =>
      one(1, { ...of, name: channel.name, [LABEL.provider]: deps.providerName(channel.type) }),
    ),
  };
}
