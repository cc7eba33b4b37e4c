// The health of a channel as administrators read it: each cell with its state, why and until when, and how its last calls ended;
// of this node and this run. Refuses to name anything that never had trouble.
import type { Deps } from "../deps.ts";
import { wallTimeOf } from "../kit/clock.ts";
import type { CellReport } from "./health.ts";
import type { Channel } from "./rows.ts";

/** Times are Unix seconds. */
export interface CellJson {
  /** At the upstream; "": the channel as a whole, or its proxy. */
  model: string;
  /** Which of the channel's keys it is about, from 0; -1: all of them. */
  key_index: number;
  scope: "model" | "channel" | "proxy" | "key";
  state: "closed" | "open" | "half_open";
  /** "down", "rejected" or "limited". */
  reason: string;
  /** What the upstream, or the gateway about it, said of the last failure. */
  detail: string;
  /** End of its rest; 0: it is closed. */
  until: number;
  /** In a row. */
  failures: number;
  /** The oldest first. */
  outcomes: { at: number; verdict: string }[];
}

type CellDeps = Pick<Deps, "picker" | "keyring" | "clock">;

export function cellStates({ picker, keyring, clock }: CellDeps, channel: Channel): CellJson[] {
  const nowMs = clock.monotonicMs();
  const atSeconds = (steadyMs: number): number => Math.ceil(wallTimeOf(clock, steadyMs) / 1000);
  const cellJson = (cell: CellReport): CellJson => ({
    model: cell.model ?? "",
    key_index: -1,
    scope: cell.isProxy ? "proxy" : cell.model === undefined ? "channel" : "model",
    state: cell.state,
    reason: cell.reason,
    detail: cell.detail,
    until: cell.untilMs === 0 ? 0 : atSeconds(cell.untilMs),
    failures: cell.failures,
    outcomes: cell.outcomes.map(({ atMs, verdict }) => ({ at: atSeconds(atMs), verdict })),
  });
  const ofKeys = keyring.states(channel, nowMs).flatMap(({ index, models }) =>
    [...models].flatMap(([model, rest]): CellJson[] =>
      rest.reason === "down" && rest.restsUntilMs > nowMs
        ? [
            {
              model,
              key_index: index,
              scope: "key",
              state: "open",
              reason: rest.reason,
              detail: rest.detail,
              until: atSeconds(rest.restsUntilMs),
              failures: 0,
              outcomes: [],
            },
          ]
        : [],
    ),
  );
  return [...picker.cells(channel, nowMs).map(cellJson), ...ofKeys];
}

/** How many cells of the channel nobody is sent to now. */
export function restingCells({ picker, clock }: Omit<CellDeps, "keyring">, channel: Channel): number {
  const nowMs = clock.monotonicMs();
  return picker.isCalm(nowMs)
    ? 0
    : picker.cells(channel, nowMs).filter(({ state }) => state === "open").length;
}

/**
 * Calls go there again, and the next failures count anew: for the upstream's model, for one key of the channel, or, where neither
 * is named, for the whole channel and its proxy.
 */
export function closeCell(
  { picker, keyring }: Omit<CellDeps, "clock">,
  channel: Channel,
  { model, keyIndex }: { model: string | undefined; keyIndex: number | undefined },
): void {
  if (keyIndex === undefined) picker.close(channel, model);
  else keyring.wakeWhole(channel, keyIndex);
}
