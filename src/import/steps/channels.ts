// Channels with their keys, and the index of what they serve, made anew.
// Refuses to lose a way to a model silently: what the old index had and the new one lacks is named.
import { rebuildAbilities } from "../../core/channels/abilities.ts";
import { namesOf } from "../../core/channels/input.ts";
import type { ChannelRow } from "../../core/channels/rows.ts";
import { ChannelStatus } from "../../shared/enums.ts";
import type { TablesContext } from "../context.ts";
import { rowsFor } from "../insert.ts";
import { mapChannel } from "../mapping/channels.ts";
import type { MappedChannel } from "../mapping/channels.ts";
import { createOpenings } from "../openings.ts";
import { flagOf, textOf, wholeOf } from "../values.ts";

/** Rows of the index that one batch makes; a channel has its models times its groups. */
const INDEX_PER_BATCH = 50_000;
const CHANNELS_PER_BATCH = 200;

const sizeOf = ({ channel }: MappedChannel): number =>
  namesOf(channel.models).length * namesOf(channel.group).length;

/** So many at once as the index of them allows. */
function batches(mapped: readonly MappedChannel[]): MappedChannel[][] {
  const found: MappedChannel[][] = [];
  let room = 0;
  for (const each of mapped) {
    const size = sizeOf(each);
    const last = found.at(-1);
    if (!last || size > room || last.length >= CHANNELS_PER_BATCH) {
      found.push([each]);
      room = INDEX_PER_BATCH - size;
    } else {
      last.push(each);
      room -= size;
    }
  }
  return found;
}

export async function importChannels(context: TablesContext): Promise<void> {
  const { source, family, notes, seal, sums, target } = context;
  const openings = createOpenings(context);
  const step = await target.begin("channels");
  const served = new Map<number, { models: Set<string>; groups: Set<string> }>();
  for await (const page of source.pages("channels")) {
    const mapped = page.map((row) => mapChannel(row, { family, notes, sums: sums.channel }));
    for (const { channel } of mapped)
      if (channel.status === ChannelStatus.enabled)
        served.set(channel.id, {
          models: new Set(namesOf(channel.models)),
          groups: new Set(namesOf(channel.group)),
        });
    for (const part of batches(mapped)) {
      const channels = part.map(({ channel }) => channel);
      const keys = part.flatMap(({ channel, keys: own }) =>
        own.map(({ text, hash, ...state }, pos) => ({
          ...state,
          id: target.nextId("channelKeys"),
          channelId: channel.id,
          pos,
          keySealed: seal.seal("channel", text),
          keyHash: hash,
        })),
      );
      await step.write(
        [
          rowsFor("channels", channels),
          rowsFor("channelKeys", keys),
          openings.rows(part.map(({ opening }) => opening)),
        ],
        (db, tx) => rebuildAbilities(db, tx, channels as unknown as ChannelRow[]),
      );
    }
    context.advance("channels", page.length);
  }
  for (const row of await source.all("abilities")) {
    const channel = served.get(wholeOf(row, "channel_id"));
    if (!channel || !flagOf(row, "enabled")) continue;
    const [group, model] = [textOf(row, "group"), textOf(row, "model")];
    if (!channel.models.has(model) || !channel.groups.has(group))
      notes.add("abilities", "ability_lost", `${wholeOf(row, "channel_id")}: ${group}/${model}`);
  }
}
