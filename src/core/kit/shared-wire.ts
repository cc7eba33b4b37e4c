// How a process asks and tells about limits that all processes keep together (shared-scripts.ts): numbers in their order, and
// under which name it is known. Refuses to wait: no answer is `undefined`, a word that was lost is the teller's to repeat, and so
// is all that is open once the server has forgotten this process.
import { randomBytes } from "node:crypto";
import type { Valkey } from "../../db/valkey.ts";
import type { Clock } from "../deps.ts";
import { ASK, PROCESSES, SHARED_REFUSALS, TELL } from "./shared-scripts.ts";
import type { AskedOwner, ToldOwner } from "./shared-scripts.ts";

/** What asks: a call that begins, one that wants more units, or a request that counts whatever the limits say. */
const MODES = { more: 0, begin: 1, count: 2 } as const;

/** What is taken of each owner: units, the fewest that serve, tokens. */
interface SharedAmounts {
  units: number;
  least: number;
  tokens: number;
}

/** `moment`: of the server, by which a request can be taken back. `place`: of the owner that refuses. `waitMs` 0: no saying. */
export type WireAnswer =
  | { kind: "granted"; units: number; moment: number }
  | { kind: "refused"; place: number; why: (typeof SHARED_REFUSALS)[number]; waitMs: number };

/** Within this time after the server is asked again all processes have told it what they have open. */
export const SETTLE_MS = 3000;

export interface SharedWire {
  /** It is asked. */
  isUp(): boolean;
  /** It is asked for so long that it knows what all processes have open. */
  isSettled(): boolean;
  /** The server may know nothing of what is open here, since the last time that this was asked. */
  wasForgotten(): boolean;
  ask(
    mode: keyof typeof MODES,
    owners: readonly AskedOwner[],
    amounts: SharedAmounts,
  ): Promise<WireAnswer | undefined> | undefined;
  /** Nobody waits; `missed`: it was not heard. */
  tell(owners: readonly ToldOwner[], missed: () => void): void;
}

/** Of whoever has nothing of the kind. */
export const NO_ASKED = {
  maxRequests: 0,
  maxSuccesses: 0,
  maxTokens: 0,
  maxCalls: 0,
  budget: 0,
  calls: 0,
  held: 0,
  tokens: 0,
  wantedTokens: 0,
  period: 0,
  periodEnd: 0,
  spent: 0,
  isFresh: false,
} as const;

export const NO_TOLD = {
  successes: 0,
  maxSuccesses: 0,
  tokensUsed: 0,
  units: 0,
  calls: 0,
  held: 0,
  tokens: 0,
  undoneMoment: 0,
  maxRequests: 0,
} as const;

function askedArgs(owners: readonly AskedOwner[]): number[] {
  return owners.flatMap((each) => [
    each.windowMs,
    each.maxRequests,
    each.maxSuccesses,
    each.maxTokens,
    each.maxCalls,
    each.budget,
    each.calls,
    each.held,
    each.tokens,
    each.wantedTokens,
    each.period,
    each.periodEnd,
    each.spent,
    each.isFresh ? 1 : 0,
  ]);
}

function toldArgs(owners: readonly ToldOwner[]): number[] {
  return owners.flatMap((each) => [
    each.windowMs,
    each.successes,
    each.maxSuccesses,
    each.tokensUsed,
    each.units,
    each.calls,
    each.held,
    each.tokens,
    each.undoneMoment,
    each.maxRequests,
  ]);
}

function readAnswer(answer: readonly number[] | undefined): WireAnswer | undefined {
  if (!answer) return undefined;
  const [place = 0, second = 0, third = 0] = answer;
  if (place === 0) return { kind: "granted", units: second, moment: third };
  return { kind: "refused", place: place - 1, why: SHARED_REFUSALS[second - 1] ?? "calls", waitMs: third };
}

export function createSharedWire(valkey: Valkey, clock: Pick<Clock, "monotonicMs">): SharedWire {
  /** Another one with each start: places of a process that was killed are not taken for its successor's. */
  const self = randomBytes(8).toString("base64url");
  const keysOf = (owners: readonly { key: string }[]): string[] => [
    PROCESSES,
    ...owners.map(({ key }) => key),
  ];
  let isForgotten = false;
  /** What was on its way when the server fell may have been the word that it had forgotten this process. */
  let seenUpMs = -Infinity;
  const heard = (isNew: number | undefined): void => {
    if (isNew === 1) isForgotten = true;
  };
  return {
    isUp: () => valkey.state().isUp,
    isSettled: () => valkey.state().isUp && clock.monotonicMs() - valkey.upSinceMs() >= SETTLE_MS,
    wasForgotten() {
      const was = isForgotten || seenUpMs !== valkey.upSinceMs();
      seenUpMs = valkey.upSinceMs();
      isForgotten = false;
      return was;
    },
    ask: (mode, owners, { units, least, tokens }) =>
      valkey
        .run<number[]>(
          ASK,
          keysOf(owners),
          [self, MODES[mode], units, least, tokens, ...askedArgs(owners)],
          (late) => heard(late[3]),
        )
        ?.then((answer) => {
          heard(answer?.[3]);
          return readAnswer(answer);
        }),
    tell(owners, missed) {
      const told = valkey.run<number>(TELL, keysOf(owners), [self, ...toldArgs(owners)], heard);
      if (!told) return missed();
      void told.then((answer) => {
        heard(answer);
        if (answer === undefined) missed();
      });
    },
  };
}
