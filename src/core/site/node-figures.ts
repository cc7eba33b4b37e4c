// What a node tells of itself: how busy, how late, how much waits. Each keeps it in its row, so that any of them can show all.
// Refuses figures of long ago: they are of the last stretch of some seconds.
import { between, copyOf, quantileOf } from "../../observe/tally.ts";
import type { Tally } from "../../observe/tally.ts";
import { OUTCOMES } from "../../observe/names.ts";
import type { Deps } from "../deps.ts";
import { jsonObject } from "../../shared/json-object.ts";
import { journalBytes, readDisk } from "./node-reading.ts";

/** Times are Unix seconds, the others what their names say. */
export interface NodeFigures {
  version: string;
  /** What answers of the node wait for; empty where it does not say. */
  durability: "journal" | "database" | "";
  /** Whether the Valkey of REDIS_URL is asked; empty where there is none. */
  valkey: "up" | "away" | "";
  startedAt: number;
  /** Requests of clients since the start, and those of them that upstreams or the gateway failed. */
  requests: number;
  failed: number;
  inFlight: number;
  /** In 99 of 100 looks the event loop was at most so late. */
  loopMs: number;
  /** Of one core, since the look before: 1 = all of it. */
  processorShare: number;
  residentBytes: number;
  journalBytes: number;
  /** Settlements that wait for the tables, and the oldest of them. */
  waiting: number;
  oldestSeconds: number;
  diskFreeBytes: number;
  /** 0 to 1. */
  diskFreeShare: number;
}

export interface FigureSources extends Pick<
  Deps,
  "observer" | "valkey" | "clock" | "dataDir" | "startedAt" | "version"
> {
  durability: "journal" | "database";
  lag: () => { waiting: number; oldestMs: number };
  inFlight: () => number;
  /** Of the event loop. */
  delays: Tally;
}

/** A stretch is told once it is so long; a shorter one begins with the look before. */
const STRETCH_MS = 5000;

interface Look {
  atMs: number;
  delays: Tally;
  processorUs: number;
}

const FAILED = ["upstream", "internal"] as const;

function countRequests({ observer }: Pick<Deps, "observer">): { requests: number; failed: number } {
  let requests = 0;
  let failed = 0;
  for (const counts of observer.figures.requests.values())
    for (const [place, count] of counts.entries()) {
      requests += count;
      if (FAILED.some((outcome) => outcome === OUTCOMES[place])) failed += count;
    }
  return { requests, failed };
}

function valkeyState({ valkey }: Pick<Deps, "valkey">): NodeFigures["valkey"] {
  if (!valkey) return "";
  return valkey.isUp() ? "up" : "away";
}

export function createNodeFigures(sources: FigureSources): () => Promise<NodeFigures> {
  const { clock, delays, dataDir, startedAt, version, durability } = sources;
  const look = (): Look => {
    const { user, system } = process.cpuUsage();
    return { atMs: clock.monotonicMs(), delays: copyOf(delays), processorUs: user + system };
  };
  let before = look();
  let last = before;

  return async () => {
    const now = look();
    if (now.atMs - last.atMs >= STRETCH_MS) {
      before = last;
      last = now;
    }
    const ms = Math.max(1, now.atMs - before.atMs);
    const { waiting, oldestMs } = sources.lag();
    const disk = await readDisk(dataDir);
    return {
      version,
      durability,
      valkey: valkeyState(sources),
      startedAt,
      ...countRequests(sources),
      inFlight: sources.inFlight(),
      loopMs: Math.round((quantileOf(between(before.delays, now.delays), 0.99) ?? 0) * 1000),
      processorShare: Math.round(((now.processorUs - before.processorUs) / 1000 / ms) * 1000) / 1000,
      residentBytes: process.memoryUsage.rss(),
      journalBytes: await journalBytes(dataDir),
      waiting,
      oldestSeconds: Math.round(oldestMs / 1000),
      diskFreeBytes: disk.freeBytes,
      diskFreeShare: disk.freeShare,
    };
  };
}

/** Of a row that another node, perhaps of another version, has written; undefined: there is nothing to show. */
export function readFigures(text: string): NodeFigures | undefined {
  const found = text === "" ? undefined : jsonObject(text);
  if (!found) return undefined;
  const number = (name: keyof NodeFigures): number => {
    const value = found[name];
    return typeof value === "number" && Number.isFinite(value) ? value : 0;
  };
  const { version, durability, valkey } = found;
  return {
    version: typeof version === "string" ? version : "",
    durability: durability === "journal" || durability === "database" ? durability : "",
    valkey: valkey === "up" || valkey === "away" ? valkey : "",
    startedAt: number("startedAt"),
    requests: number("requests"),
    failed: number("failed"),
    inFlight: number("inFlight"),
    loopMs: number("loopMs"),
    processorShare: number("processorShare"),
    residentBytes: number("residentBytes"),
    journalBytes: number("journalBytes"),
    waiting: number("waiting"),
    oldestSeconds: number("oldestSeconds"),
    diskFreeBytes: number("diskFreeBytes"),
    diskFreeShare: number("diskFreeShare"),
  };
}
