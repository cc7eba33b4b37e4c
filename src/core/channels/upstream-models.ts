// Upstreams' lists of models, looked at from time to time: what differs from a channel's own is proposed, and taken over by an
// administrator, or by itself where the channel allows it. Refuses to add what has no price by itself, and to leave a channel
// without models; the last change can be taken back.
import { eq, gt, lte, or } from "drizzle-orm";
import { q } from "../../db/database.ts";
import { ChannelStatus } from "../../shared/enums.ts";
import { Failure, refuse } from "../../shared/failures.ts";
import type { Deps } from "../deps.ts";
import { databaseFailure } from "../kit/database-failure.ts";
import { modelsChangedNotice } from "../users/notice-texts.ts";
import { notifyRoot } from "../users/notify.ts";
import type { NotifyDeps } from "../users/notify.ts";
import { rebuildAbilities } from "./abilities.ts";
import { compareLists, driftState, withDrift } from "./drift.ts";
import type { DriftFindings, DriftState } from "./drift.ts";
import { lockChannel } from "./key-rows.ts";
import type { Channel, ChannelRow } from "./rows.ts";
import type { ChannelProbe } from "./watch.ts";

export type UpstreamModelDeps = NotifyDeps & Pick<Deps, "routing" | "prices">;

/** What is proposed for one channel. */
export interface ModelProposal {
  channel_id: number;
  channel_name: string;
  add_models: string[];
  remove_models: string[];
  ignored_models: string[];
  /** Unix seconds; 0 = never. */
  last_check_time: number;
  check_enabled: boolean;
  auto_sync_enabled: boolean;
  can_undo: boolean;
  /** Why the last look changed nothing: the upstream failed, or its list is not believed; undefined: it did. */
  failure?: Failure;
}

/** What an administrator decides; what is not named stays as it is. */
export interface ModelChange {
  add: readonly string[];
  remove: readonly string[];
  ignore: readonly string[];
}

/** An upstream is not asked more often. */
const LEAST_SECONDS = 300;
const DAY_SECONDS = 24 * 3600;
/** When root was last told: of all nodes, and across restarts. */
const TOLD = "models-told";

/** Writes what `step` makes of the row, its models and what is kept of looks, as one change; undefined changes nothing. */
async function change(
  { db, routing }: Pick<Deps, "db" | "routing">,
  id: number,
  step: (
    row: ChannelRow,
    state: DriftState,
  ) => { models?: string; state: Partial<DriftFindings> } | undefined,
): Promise<ModelProposal> {
  const { channels } = db.t;
  const { row, isChanged } = await db.atomic(function* (tx) {
    const before = yield* lockChannel(db, tx, id);
    if (!before) throw refuse("record_missing");
    const made = step(before, driftState(before));
    if (!made) return { row: before, isChanged: false };
    const values = {
      modelDrift: withDrift(before.modelDrift, made.state),
      ...(made.models === undefined ? {} : { models: made.models }),
    };
    const [after = before] = yield* q(tx.update(channels).set(values).where(eq(channels.id, id)).returning());
    if (made.models !== undefined) yield* rebuildAbilities(db, tx, [after]);
    return { row: after, isChanged: true };
  });
  if (isChanged) await routing.refresh([id]);
  return proposalOf(row);
}

function proposalOf(row: ChannelRow): ModelProposal {
  const state = driftState(row);
  return {
    channel_id: row.id,
    channel_name: row.name,
    add_models: state.detected,
    remove_models: state.removed,
    ignored_models: state.ignored,
    last_check_time: state.lastCheck,
    check_enabled: state.isChecked,
    auto_sync_enabled: state.isAutomatic,
    can_undo: state.before !== "",
  };
}

const listOf = (text: string): string[] =>
  text
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");

/** The models after a change, and what of the proposals is left; undefined: it would leave none. */
function applied(row: ChannelRow, state: DriftState, { add, remove, ignore }: ModelChange) {
  const gone = new Set(remove);
  const kept = listOf(row.models).filter((name) => !gone.has(name));
  const models = [...new Set([...kept, ...add])].join(",");
  if (models === "") return undefined;
  const done = new Set([...add, ...remove, ...ignore]);
  return {
    ...(models === row.models ? {} : { models }),
    state: {
      detected: state.detected.filter((name) => !done.has(name)),
      removed: state.removed.filter((name) => !done.has(name)),
      ignored: [...new Set([...state.ignored, ...ignore])],
      ...(models === row.models ? {} : { before: row.models }),
    },
  };
}

/** Takes over what is named. Throws `channel_without_models` where none would be left. */
export function applyModels(
  deps: Pick<Deps, "db" | "routing">,
  id: number,
  wanted: ModelChange,
): Promise<ModelProposal> {
  return change(deps, id, (row, state) => {
    const made = applied(row, state, wanted);
    if (!made) throw refuse("channel_without_models");
    return made;
  });
}

/** The models as they were before the last change from here. */
export function undoModels(deps: Pick<Deps, "db" | "routing">, id: number): Promise<ModelProposal> {
  return change(deps, id, (_, state) =>
    state.before === "" ? undefined : { models: state.before, state: { before: "" } },
  );
}

/** Asks the upstream for its list, at most every five minutes; what it says of the channel is kept. Never throws what it failed with. */
export async function detectModels(
  deps: UpstreamModelDeps,
  probe: Pick<ChannelProbe, "models">,
  channel: Channel,
): Promise<ModelProposal> {
  const nowS = Math.floor(deps.clock.nowMs() / 1000);
  // One of the future was written by a clock that was ahead.
  const isDue = ({ lastCheck }: DriftState): boolean => nowS - lastCheck >= LEAST_SECONDS || lastCheck > nowS;
  let isOurs = false;
  // Whoever writes the time of the look is who makes it.
  const known = await change(deps, channel.id, (_, state) => {
    isOurs = isDue(state);
    return isOurs ? { state: { lastCheck: nowS } } : undefined;
  });
  if (!isOurs) return known;
  let list: string[];
  try {
    list = await probe.models(channel);
  } catch (error) {
    if (error instanceof Failure) return { ...known, failure: error };
    throw error;
  }
  let isBelieved = true;
  const proposal = await change(deps, channel.id, (row, state) => {
    const mapping =
      typeof channel.modelMapping === "string" ? new Map<string, string>() : channel.modelMapping;
    const found = compareLists(state, { models: listOf(row.models), mapping, list, nowS });
    isBelieved = found !== undefined;
    if (!found) return undefined;
    if (!state.isAutomatic) return { state: found };
    const add = found.detected.filter((name) => deps.prices.pricing(name) !== undefined);
    const made = applied(row, { ...state, ...found }, { add, remove: found.removed, ignore: [] });
    return made ? { ...made, state: { ...found, ...made.state } } : { state: found };
  });
  const failure = new Failure("upstream-down", "models_implausible", { params: { count: list.length } });
  return isBelieved ? proposal : { ...proposal, failure };
}

/** Whether nobody was told within a day: the one node that moves the mark tells. A mark of the future is a clock's that went back. */
async function takesNotice({ db, clock }: Pick<Deps, "db" | "clock">): Promise<boolean> {
  const { marks } = db.t;
  const nowS = Math.floor(clock.nowMs() / 1000);
  const [taken] = await db.orm
    .insert(marks)
    .values({ key: TOLD, value: nowS })
    .onConflictDoUpdate({
      target: marks.key,
      set: { value: nowS },
      setWhere: or(lte(marks.value, nowS - DAY_SECONDS), gt(marks.value, nowS)),
    })
    .returning({ value: marks.value });
  return taken !== undefined;
}

export interface UpstreamModels {
  /** Looks at every enabled channel that is to be looked at; tells root of what is new, once a day. */
  detectAll(): Promise<ModelProposal[]>;
  /** Takes over all that is proposed and has a price. */
  applyAll(): Promise<ModelProposal[]>;
}

/** `probe` asks upstreams. */
export function createUpstreamModels(
  deps: UpstreamModelDeps,
  probe: Pick<ChannelProbe, "models">,
): UpstreamModels {
  function watched(): Channel[] {
    return [...deps.routing.channels()].filter(
      ({ status, watchesModels }) => status === ChannelStatus.enabled && watchesModels,
    );
  }

  /** One after another; who fails, or was deleted since the round began, is left out of the answer and stops nobody. */
  async function overAll(work: (channel: Channel) => Promise<ModelProposal>): Promise<ModelProposal[]> {
    const proposals: ModelProposal[] = [];
    for (const channel of watched())
      try {
        proposals.push(await work(channel));
      } catch (error) {
        // Without the database there is no round.
        if (databaseFailure(error)) throw error;
        if (error instanceof Failure && error.code === "record_missing") continue;
        deps.logger.warn("upstream models not compared", { channel: channel.id, error: String(error) });
      }
    return proposals;
  }

  return {
    async detectAll() {
      const proposals = await overAll((channel) => detectModels(deps, probe, channel));
      const open = proposals.filter(
        ({ add_models, remove_models }) => add_models.length + remove_models.length > 0,
      );
      if (open.length > 0 && (await takesNotice(deps)))
        await notifyRoot(deps, modelsChangedNotice(open.length));
      return proposals;
    },
    applyAll: () =>
      overAll(({ id }) =>
        change(deps, id, (row, state) => {
          const add = state.detected.filter((name) => deps.prices.pricing(name) !== undefined);
          if (add.length + state.removed.length === 0) return undefined;
          return applied(row, state, { add, remove: state.removed, ignore: [] });
        }),
      ),
  };
}
