// Keys that went off by themselves are tried again, one at a time and ever more rarely, until one works: then it is on, and its
// channel with it. A list of models shows that a key is known, and no more: whoever fails again after it waits longer still.
// Refuses what somebody switched off by hand, and to try anything unless the operator wants channels back.
import { and, asc, eq, exists, gt, lte, or, sql } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import { ChannelStatus, KeyStatus } from "../../shared/enums.ts";
import type { Deps } from "../deps.ts";
import { NOW } from "../../db/moments.ts";
import type { Moment } from "../../db/moments.ts";
import { LONGEST_PROBE_SECONDS, probeWaitSeconds, reviveKey } from "./state.ts";
import type { StateDeps } from "./state.ts";
import type { Channel } from "./rows.ts";
import type { ChannelProbe } from "./watch.ts";

/** What upstreams say of an account without money, kept as the reason of a key that went off. */
const USED_UP = /quota|balance|billing|credit|payment|arrear|402|余额|额度|欠费|配额/i;
/** In one round: the next one is a minute later. */
const MOST_PROBES = 20;

function isDue({ db }: Pick<Deps, "db">, now: Moment): SQL | undefined {
  const { channelKeys: t } = db.t;
  // Further ahead than anything waits: it was written by a clock that was ahead itself.
  const isAhead = gt(sql`${t.nextProbe} - ${sql.raw(String(LONGEST_PROBE_SECONDS))}`, now);
  return and(eq(t.status, KeyStatus.autoOff), or(lte(t.nextProbe, now), isAhead));
}

/** Condition: a key that went off by itself is to be tried again. */
export function probesWait(deps: Pick<Deps, "db">): SQL {
  const some = deps.db.orm.select({ one: sql`1` }).from(deps.db.t.channelKeys);
  return exists(some.where(isDue(deps, NOW)));
}

export async function probeOffKeys(
  deps: StateDeps & Pick<Deps, "clock">,
  probe: Pick<ChannelProbe, "key" | "listsModelsFor">,
): Promise<void> {
  if (!deps.options.get("AutomaticEnableChannelEnabled")) return;
  const { channelKeys: t } = deps.db.t;
  const nowS = Math.floor(deps.clock.nowMs() / 1000);
  const due = await deps.db.orm
    .select({ id: t.id, channelId: t.channelId, probes: t.probes })
    .from(t)
    .where(isDue(deps, nowS))
    .orderBy(asc(t.nextProbe), asc(t.id))
    .limit(MOST_PROBES);
  for (const { id, channelId, probes } of due) {
    const channel = deps.routing.channel(channelId);
    const index = channel?.keyRows.findIndex((key) => key.id === id) ?? -1;
    const isOurs = channel && index !== -1 && channel.status !== ChannelStatus.disabled;
    const found = isOurs ? await tried(probe, channel, index) : "refused";
    if (isOurs && found !== "refused") {
      await reviveKey(deps, channel, index, { served: found === "served" });
      continue;
    }
    await deps.db.orm
      .update(t)
      .set({ probes: probes + 1, nextProbe: nowS + probeWaitSeconds(probes + 1) })
      .where(and(eq(t.id, id), eq(t.status, KeyStatus.autoOff)));
  }
}

/**
 * By the provider's free list of models where it has one; by a call where it has none, and where the account behind the key was
 * used up: that shows in no list.
 */
async function tried(
  probe: Pick<ChannelProbe, "key" | "listsModelsFor">,
  channel: Channel,
  index: number,
): Promise<"served" | "listed" | "refused"> {
  const isUsedUp = USED_UP.test(channel.keyRows[index]?.reason ?? "");
  const listing = isUsedUp ? "unknown" : await probe.listsModelsFor(channel, index);
  if (listing !== "unknown") return listing;
  return (await probe.key(channel, index)).failure ? "refused" : "served";
}
