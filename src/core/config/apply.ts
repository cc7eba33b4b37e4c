// Applies a settings file: options, prices and channels in one atomic block, or nothing of it.
// Refuses a plan that is not the one that was asked for, guards that nobody accepted, and a site that moved meanwhile.
import { inArray, eq } from "drizzle-orm";
import { q } from "../../db/database.ts";
import type { Orm, Steps } from "../../db/database.ts";
import { dropOrphans, rebuildAbilities } from "../channels/abilities.ts";
import { followKeys, isAnyOn, keyRowsOf, lockChannel, writeKeys } from "../channels/key-rows.ts";
import type { ChannelRow } from "../channels/rows.ts";
import { noKeyReason } from "../channels/no-key-reason.ts";
import type { OptionAuthor } from "../options/store.ts";
import type { ChannelPlan } from "./channels.ts";
import { writePlans } from "./plans.ts";
import { isOneOf, judgeConfig, standsInTheWay } from "./plan.ts";
import type { ConfigPlan, ConfigRequest } from "./plan.ts";
import { refuseMoved } from "./state.ts";
import type { ConfigDeps } from "./state.ts";

export interface ApplyRequest extends ConfigRequest {
  /** The plan that somebody looked at; undefined: whatever it is now. */
  planHash?: string | undefined;
  acceptsGuards: boolean;
}

/** `nothing`: there was nothing to do. All but that and `applied` changed nothing. */
type ConfigStatus = "nothing" | "differences" | "guarded" | "invalid" | "mismatch" | "moved" | "applied";

export interface ConfigOutcome {
  status: ConfigStatus;
  plan: ConfigPlan;
}

function statusOf({ problems, changes, guards }: ConfigPlan, acceptsGuards: boolean): ConfigStatus {
  if (problems.length > 0) return "invalid";
  if (changes.length === 0) return "nothing";
  return standsInTheWay(guards, acceptsGuards).length > 0 ? "guarded" : "differences";
}

export async function planConfig(
  deps: ConfigDeps,
  request: ConfigRequest & Pick<ApplyRequest, "acceptsGuards">,
): Promise<ConfigOutcome> {
  const { plan } = await judgeConfig(deps, request);
  return { status: statusOf(plan, request.acceptsGuards), plan };
}

export async function applyConfig(
  deps: ConfigDeps,
  request: ApplyRequest,
  author: OptionAuthor,
): Promise<ConfigOutcome> {
  const { plan, judge, writes } = await judgeConfig(deps, request);
  const status = statusOf(plan, request.acceptsGuards);
  // Also where a plan was named: it has been applied before.
  if (status === "invalid" || status === "nothing") return { status, plan };
  if (request.planHash !== undefined && request.planHash !== plan.hash) return { status: "mismatch", plan };
  if (status !== "differences") return { status, plan };
  const touched = judge.channels.flatMap(({ before }) => (before ? [before.id] : []));
  try {
    const ids = await deps.options.write(function* (tx) {
      yield* refuseMoved(deps, tx, judge.state, touched);
      const beside = yield* writePlans(deps, tx, judge);
      const changed = yield* writeChannels(deps, tx, judge.channels);
      return { writes, beside, value: changed };
    }, author);
    if (ids.length > 0) await deps.routing.refresh(ids);
  } catch (error) {
    if (isOneOf(error, "config_moved", "price_plan_stale")) return { status: "moved", plan };
    throw error;
  }
  return { status: "applied", plan };
}

/** Answers the ids of all channels that came, changed or went. */
function* writeChannels(deps: ConfigDeps, tx: Orm, plans: readonly ChannelPlan[]): Steps<number[]> {
  const { db, clock, seal } = deps;
  const { channels } = db.t;
  const written: ChannelRow[] = [];
  const gone: number[] = [];
  const nowS = Math.floor(clock.nowMs() / 1000);
  for (const { before, changes, keys: texts } of plans) {
    if (!changes) {
      if (before) gone.push(before.id);
      continue;
    }
    let row = before && (yield* lockChannel(db, tx, before.id));
    const keysBefore = row ? yield* keyRowsOf(db, tx, row.id) : [];
    if (!row)
      [row] = yield* q(
        tx
          .insert(channels)
          .values({ ...changes, createdTime: nowS })
          .returning(),
      );
    else if (Object.keys(changes).length > 0)
      [row] = yield* q(tx.update(channels).set(changes).where(eq(channels.id, row.id)).returning());
    if (!row) continue;
    const keys = texts?.map((text) => ({ text }));
    if (keys) yield* writeKeys(db, tx, seal, { channelId: row.id, keys, how: "replace" });
    yield* rebuildAbilities(db, tx, [row]);
    const reason = noKeyReason(deps);
    written.push(yield* followKeys(db, tx, row, { wereOff: !isAnyOn(keysBefore), reason, nowS }));
  }
  if (gone.length > 0) {
    yield* q(tx.delete(channels).where(inArray(channels.id, gone)).returning({ id: channels.id }));
    yield* dropOrphans(db, tx);
  }
  return [...written.map(({ id }) => id), ...gone];
}
