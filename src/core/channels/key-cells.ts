// What a model meets with one key of several: a key with which it fails again and again rests for it alone, and is tried by one
// call, while the channel's other keys go on. Refuses to know keys that never had trouble, and channels with a lone key: there the
// channel's own health says the same (health.ts).
import {
  abandoned,
  createBreaker,
  failed,
  isForgotten,
  isReady,
  opened,
  succeeded,
  take,
} from "./breaker.ts";
import type { Breaker } from "./breaker.ts";
import { upstreamModel } from "./rows.ts";
import type { Channel } from "./rows.ts";
import { atMostEachMinute } from "./tidying.ts";

/** A failure, and when its call began: steady clock. */
export interface FailedWithKey {
  nowMs: number;
  beganMs: number;
  /** What was said, scrubbed. */
  detail?: string | undefined;
}

/** Models are those of requests. */
export interface KeyCells {
  isCalm(nowMs: number): boolean;
  /** Until when nobody is sent there (steady clock); 0: it may be asked. `name` is the model's at the upstream. */
  restsUntil(channel: Channel, index: number, name: string, nowMs: number): number;
  /** The key is asked for the model: where its rest is over, this is the call that finds out. */
  take(channel: Channel, index: number, name: string, nowMs: number): void;
  /** A call that began then (steady clock) is being answered; how that ends is told later. */
  opened(channel: Channel, index: number, model: string, beganMs: number): void;
  succeeded(channel: Channel, index: number, model: string, beganMs: number, nowMs: number): void;
  failed(channel: Channel, index: number, model: string, how: FailedWithKey): void;
  /** The call ended without a word on the key. */
  abandoned(channel: Channel, index: number, model: string, beganMs: number): void;
  wake(channel: Channel, index: number): void;
  /** What rests, or is over with it and not tried out yet, by the model's name at the upstream. */
  untried(channel: Channel, index: number, nowMs: number): string[];
  /** End of the last rest (steady clock): another one after each call that found out. 0: it is closed. */
  openUntil(channel: Channel, index: number, model: string): number;
  /** What rests now, by the model's name at the upstream. */
  rests(channel: Channel, index: number, nowMs: number): ReadonlyMap<string, Breaker>;
}

/** Of one key: only whoever names channels may ask for models that are not on their lists. */
const MAX_MODELS = 1000;
const NONE: ReadonlyMap<string, Breaker> = new Map();

export function createKeyCells(): KeyCells {
  /** By the id of the key's row, then by the model's name at the upstream. */
  const cells = new Map<number, Map<string, Breaker>>();
  const tidy = atMostEachMinute((nowMs) => sweep(cells, nowMs));

  function modelsOf(channel: Channel, index: number): Map<string, Breaker> | undefined {
    return cells.size === 0 ? undefined : cells.get(channel.keyRows[index]?.id ?? 0);
  }
  function cellOf(channel: Channel, index: number, model: string): Breaker | undefined {
    return modelsOf(channel, index)?.get(upstreamModel(channel, model));
  }

  return {
    isCalm(nowMs) {
      if (cells.size > 0) tidy(nowMs);
      return cells.size === 0;
    },
    restsUntil(channel, index, name, nowMs) {
      const cell = modelsOf(channel, index)?.get(name);
      return cell ? untilOf(cell, nowMs) : 0;
    },
    take(channel, index, name, nowMs) {
      const cell = modelsOf(channel, index)?.get(name);
      if (cell) take(cell, nowMs);
    },
    opened(channel, index, model, beganMs) {
      const cell = cellOf(channel, index, model);
      if (cell) opened(cell, beganMs);
    },
    succeeded(channel, index, model, beganMs, nowMs) {
      const cell = cellOf(channel, index, model);
      if (!cell || succeeded(cell, beganMs, nowMs)) return;
      const models = modelsOf(channel, index);
      models?.delete(upstreamModel(channel, model));
      if (models?.size === 0) cells.delete(channel.keyRows[index]?.id ?? 0);
    },
    failed(channel, index, model, { nowMs, beganMs, detail }) {
      const id = channel.keyRows[index]?.id ?? 0;
      if (id === 0 || channel.keys.length < 2) return;
      sweep(cells, nowMs);
      let models = cells.get(id);
      if (!models) cells.set(id, (models = new Map()));
      const name = upstreamModel(channel, model);
      let cell = models.get(name);
      if (!cell) {
        const [oldest] = models.keys();
        if (models.size >= MAX_MODELS && oldest !== undefined) models.delete(oldest);
        models.set(name, (cell = createBreaker()));
      }
      failed(cell, "down", nowMs, { detail, beganMs });
    },
    abandoned(channel, index, model, beganMs) {
      const cell = cellOf(channel, index, model);
      if (cell) abandoned(cell, beganMs);
    },
    untried(channel, index, nowMs) {
      const models = modelsOf(channel, index) ?? NONE;
      return [...models].flatMap(([name, { openUntilMs, probeUntilMs }]) =>
        openUntilMs !== 0 && probeUntilMs <= nowMs ? [name] : [],
      );
    },
    openUntil: (channel, index, model) => cellOf(channel, index, model)?.openUntilMs ?? 0,
    wake: (channel, index) => void cells.delete(channel.keyRows[index]?.id ?? 0),
    rests(channel, index, nowMs) {
      const models = modelsOf(channel, index);
      if (!models) return NONE;
      return new Map([...models].filter(([, { openUntilMs }]) => openUntilMs > nowMs));
    },
  };
}

function untilOf(cell: Breaker, nowMs: number): number {
  return isReady(cell, nowMs) ? 0 : Math.max(cell.openUntilMs, cell.probeUntilMs);
}

/** Keys that nobody meets any more leave nothing behind. */
function sweep(cells: Map<number, Map<string, Breaker>>, nowMs: number): void {
  for (const [id, models] of cells) {
    for (const [name, cell] of models) if (isForgotten(cell, nowMs)) models.delete(name);
    if (models.size === 0) cells.delete(id);
  }
}
