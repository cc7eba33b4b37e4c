// What live calls were asked for lately, and when each channel's model last had word from one: probes go by it (warm-probes.ts).
// Refuses to know calls that are made on purpose: tests and probes are no traffic.
import { upstreamModel } from "./rows.ts";
import type { Channel } from "./rows.ts";

/** Of one channel and one of its models at the upstream. */
interface CellTraffic {
  /** Findings of live calls so far: it changes with each. */
  results: number;
  /** Of the last one (steady clock). */
  lastMs: number;
}

/** Of a model, by the name that is asked for; on the steady clock. */
interface ModelTraffic {
  firstMs: number;
  lastMs: number;
}

export interface Traffic {
  /** A live call found out about the channel's model, whichever way. */
  told(channel: Channel, model: string, nowMs: number): void;
  /** Undefined: no live call since the process began, or none that is remembered. */
  cell(channel: Channel, model: string): Readonly<CellTraffic> | undefined;
  models(): ReadonlyMap<string, Readonly<ModelTraffic>>;
}

/** Whoever names channels may ask for models that are on no list: beyond these everything is forgotten. */
const MAX_MODELS = 5000;
/** Those that were deleted are among them. */
const MAX_CHANNELS = 5000;

export function createTraffic(): Traffic {
  const models = new Map<string, ModelTraffic>();
  const cells = new Map<number, Map<string, CellTraffic>>();
  return {
    told(channel, model, nowMs) {
      const known = models.get(model);
      if (known) known.lastMs = nowMs;
      else {
        if (models.size >= MAX_MODELS) models.clear();
        models.set(model, { firstMs: nowMs, lastMs: nowMs });
      }
      let ofChannel = cells.get(channel.id);
      if (!ofChannel) {
        if (cells.size >= MAX_CHANNELS) cells.clear();
        cells.set(channel.id, (ofChannel = new Map()));
      }
      const name = upstreamModel(channel, model);
      const cell = ofChannel.get(name);
      if (cell) {
        cell.results++;
        cell.lastMs = nowMs;
        return;
      }
      if (ofChannel.size >= MAX_MODELS) ofChannel.clear();
      ofChannel.set(name, { results: 1, lastMs: nowMs });
    },
    cell: (channel, model) => cells.get(channel.id)?.get(upstreamModel(channel, model)),
    models: () => models,
  };
}
