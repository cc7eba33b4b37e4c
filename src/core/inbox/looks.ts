// Looks at what nobody reports by itself, on every node: the disk, the ledger and its files, the database, channels and
// prices as they are. Refuses to be right once only: an item closes as soon as a look finds its cause gone.
import { readdir, statfs } from "node:fs/promises";
import { join } from "node:path";
import { inArray } from "drizzle-orm";
import { lookEvery } from "../../db/look-around.ts";
import { ChannelStatus } from "../../shared/enums.ts";
import { jsonObject } from "../../shared/json-object.ts";
import { BACKUP_LATE_SECONDS, backupAge, backupState } from "../backup/state.ts";
import type { Deps } from "../deps.ts";
import type { LossReason } from "../ledger/node-lease.ts";
import type { InboxService } from "./inbox.ts";
import { closedTimes } from "./items.ts";
import { nodeName as nameOf, stoppedCause } from "./ledger-causes.ts";
import { createMarginLook } from "./margin-look.ts";
import { closeForGone, lookAtNodes } from "./node-look.ts";

/** Space on the disk that holds a path: as node:fs tells it. */
type DiskSpace = (path: string) => Promise<{ bsize: number; blocks: number; bavail: number }>;

/** How the ledger of this process is. */
interface LedgerCondition {
  /** Calls can be recorded, so they are answered. */
  canRecord: boolean;
  /** Settlements that could not be written down since the start. */
  lost: number;
  /** For how long the shared database has not answered; 0 for the embedded one. */
  silentMs: number;
  /** Why nothing is answered until the next start; undefined: it is. */
  stoppedBy: LossReason | undefined;
}

export interface LookDeps extends Pick<
  Deps,
  "db" | "clock" | "logger" | "options" | "routing" | "prices" | "costs" | "dataDir" | "nodeId" | "startedAt"
> {
  inbox: InboxService;
  condition: () => LedgerCondition;
  /** node:fs where absent. */
  diskSpace?: DiskSpace;
  /** Backups are made by themselves (BACKUP_DIR). */
  makesBackups?: boolean;
  /** From which silence on the database counts as away. */
  awayMs?: number;
}

export interface Looks {
  /** Looks at everything; never rejects. */
  look(): Promise<void>;
  stop(): Promise<void>;
}

const LOOK_MS = 15_000;
/** A restart of the database is shorter. */
const AWAY_MS = 10_000;
/** Free space must come back by so much more than the threshold: an item must not flicker. */
const HYSTERESIS = 1.2;
const HOUR_SECONDS = 3600;
const GIB = 1024 ** 3;
const MIB = 1024 ** 2;
/** What the journal leaves beside itself (ledger/journal). */
const REFUSED_FILE = "refused-settlements.jsonl";
const PUT_AWAY = ".foreign-";
const MOST_AT_ONCE = 200;
const MOST_READ_BYTES = 16 * MIB;

export function startLooks(deps: LookDeps): Looks {
  const { inbox, routing, options, logger } = deps;
  let lostBefore = 0;
  let looking: Promise<void> | undefined;

  const looks: readonly (() => void | Promise<void>)[] = [
    () => lookAtDatabase(deps),
    () => {
      lostBefore = lookAtLedger(deps, lostBefore);
    },
    () => lookAtDisk(deps),
    () => lookAtFiles(deps),
    () => lookAtNodes(deps),
    () => closeForGone(deps),
    () => lookAtBackups(deps),
    () => lookAtPrices(deps),
    () => lookAtChannels(deps),
    createMarginLook(deps),
  ];

  function look(): Promise<void> {
    looking ??= (async () => {
      for (const each of looks) {
        try {
          await each();
        } catch (error) {
          logger.debug("a look of the inbox failed", { error: String(error) });
        }
      }
      await inbox.settle();
    })().finally(() => (looking = undefined));
    return looking;
  }

  routing.onChange((ids) => {
    for (const id of ids) closeForChannel(deps, String(id));
  });
  options.onChange((key) => {
    if (inbox.subjects("price").length > 0 && isAboutPrices(key)) lookAtPrices(deps);
  });
  const stopLooking = lookEvery(LOOK_MS, () => void look());
  return {
    look,
    async stop() {
      stopLooking();
      await looking;
    },
  };
}

const isAboutPrices = (key: string): boolean => /^Model(Ratio|Price)$|^SelfUseModeEnabled$/.test(key);

const nodeName = ({ nodeId }: Pick<Deps, "nodeId">): string => nameOf(nodeId);

function lookAtDatabase({ inbox, nodeId, condition, awayMs = AWAY_MS }: LookDeps): void {
  if (condition().silentMs >= awayMs)
    inbox.keep({ kind: "database", subject: nodeId, params: { node: nodeName({ nodeId }) } });
  else inbox.gone("database", nodeId);
}

/** Answers how many were lost until now. */
function lookAtLedger({ inbox, nodeId, condition }: LookDeps, lostBefore: number): number {
  const { canRecord, lost, stoppedBy } = condition();
  if (stoppedBy) inbox.keep(stoppedCause(nodeId, stoppedBy));
  else inbox.gone("node_stopped", nodeId);
  const cause = {
    kind: "settlement_lost",
    subject: nodeId,
    params: { node: nodeName({ nodeId }), lost },
  } as const;
  if (lost > lostBefore) inbox.raise(cause, lost - lostBefore);
  else if (!canRecord && !stoppedBy) inbox.keep(cause);
  else inbox.gone("settlement_lost", nodeId);
  return lost;
}

async function lookAtDisk({ inbox, nodeId, dataDir, options, diskSpace = statfs }: LookDeps): Promise<void> {
  const least = options.get("inbox.disk_free_share");
  const { bsize, blocks, bavail } = await diskSpace(dataDir);
  const share = blocks > 0 ? bavail / blocks : 1;
  const isOpen = inbox.subjects("disk").includes(nodeId);
  if (least === 0 || share >= (isOpen ? least * HYSTERESIS : least)) return inbox.gone("disk", nodeId);
  const params = {
    node: nodeName({ nodeId }),
    free: sizeText(bavail * bsize),
    percent: Math.floor(share * 100),
  };
  inbox.keep({ kind: "disk", subject: nodeId, params });
}

function sizeText(bytes: number): string {
  return bytes >= GIB ? `${(bytes / GIB).toFixed(1)} GiB` : `${Math.floor(bytes / MIB)} MiB`;
}

/** What the journal put beside itself waits for a person; whoever has dealt with it moves it away. */
async function lookAtFiles({ inbox, nodeId, dataDir }: LookDeps): Promise<void> {
  const names = await readdir(dataDir);
  const node = nodeName({ nodeId });
  const refused = names.includes(REFUSED_FILE) ? await linesOf(join(dataDir, REFUSED_FILE)) : 0;
  if (refused > 0)
    inbox.keep({ kind: "settlement_refused", subject: nodeId, params: { node, count: refused } });
  else inbox.gone("settlement_refused", nodeId);
  const putAway = names.filter((name) => name.startsWith("journal-") && name.includes(PUT_AWAY)).length;
  if (putAway > 0)
    inbox.keep({ kind: "journal_put_away", subject: nodeId, params: { node, count: putAway } });
  else inbox.gone("journal_put_away", nodeId);
}

/**
 * Why one failed is told by who made it; here it is seen that a later one went well, or that none came. The marks alone say that it is
 * over: a node that makes none, or has just begun, knows nothing of those that failed elsewhere.
 */
async function lookAtBackups({ db, clock, inbox, startedAt, makesBackups = false }: LookDeps): Promise<void> {
  if (!makesBackups && inbox.subjects("backup_failed").length + inbox.subjects("backup_late").length === 0)
    return;
  const { lastAt, failedAt } = await backupState(db);
  if (failedAt === 0) inbox.gone("backup_failed");
  const age = backupAge({ lastAt: lastAt || startedAt }, Math.floor(clock.nowMs() / 1000)) ?? 0;
  if (age <= BACKUP_LATE_SECONDS) {
    if (lastAt > 0) inbox.gone("backup_late");
  } else if (makesBackups)
    inbox.keep({ kind: "backup_late", params: { hours: Math.floor(age / HOUR_SECONDS) } });
}

/** Of a huge file the first lines: so many are a catastrophe whatever their number is. */
async function linesOf(path: string): Promise<number> {
  const text = await Bun.file(path).slice(0, MOST_READ_BYTES).text();
  return text.split("\n").filter((line) => line.trim() !== "").length;
}

/** A model has its price, calls need none, or nobody can ask for it any more. */
function lookAtPrices({ inbox, options, prices, routing }: LookDeps): void {
  const waiting = inbox.subjects("price");
  if (waiting.length === 0) return;
  const isSelfUse = options.get("SelfUseModeEnabled");
  const offered = new Set(routing.enabledModels());
  for (const model of waiting)
    if (isSelfUse || !offered.has(model) || prices.pricing(model) !== undefined) inbox.gone("price", model);
}

function closeForChannel({ inbox, routing }: LookDeps, subject: string): void {
  const channel = routing.channel(Number(subject));
  if (channel?.status === ChannelStatus.autoDisabled) return;
  // Whoever deleted it or switched it off knows.
  inbox.gone("channel", subject, channel?.status === ChannelStatus.enabled);
}

/** Also what happened while nobody could write it down: a channel that was disabled after its item was last closed. */
async function lookAtChannels(deps: LookDeps): Promise<void> {
  const { db, inbox, routing } = deps;
  const open = inbox.subjects("channel");
  for (const subject of open) closeForChannel(deps, subject);
  const missing = [...routing.channels()]
    .filter(({ id, status }) => status === ChannelStatus.autoDisabled && !open.includes(String(id)))
    .slice(0, MOST_AT_ONCE);
  if (missing.length === 0) return;
  const ids = missing.map(({ id }) => id);
  const closedAt = await closedTimes(db, "channel", ids.map(String));
  const { channels } = db.t;
  const rows = await db.orm
    .select({ id: channels.id, name: channels.name, otherInfo: channels.otherInfo })
    .from(channels)
    .where(inArray(channels.id, ids));
  for (const { id, name, otherInfo } of rows) {
    const info = jsonObject(otherInfo) ?? {};
    const disabledAt = Number(info["status_time"] ?? 0);
    if ((closedAt.get(String(id)) ?? -1) >= disabledAt) continue;
    const why = info["status_reason"];
    const reason = typeof why === "string" ? why : "";
    inbox.keep({ kind: "channel", subject: String(id), params: { name, reason } });
  }
}
