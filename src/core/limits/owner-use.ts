// What one limited key or user does at the moment: calls that are open, the last minute, and what of its budget is spent.
// Refuses to know a period's sum by itself: it is read once, and follows the account's own counter from there.
import type { TokenAccount, UserAccount } from "../deps.ts";
import type { KeyLimits, Period } from "../../shared/key-limits.ts";
import type { PeriodUse } from "./period-use.ts";
import { createMinute } from "./minute.ts";
import type { Minute } from "./minute.ts";

/** What other nodes told last of the same owner (shared-use.ts); all 0 where there is one node. */
export interface ElsewhereUse {
  held: number;
  calls: number;
  requests: number;
  tokens: number;
}

export const NOTHING_ELSEWHERE: ElsewhereUse = { held: 0, calls: 0, requests: 0, tokens: 0 };

export type OwnerKind = "user" | "token";

export class OwnerUse {
  readonly requests: Minute = createMinute();
  /** Tokens of settled calls. */
  readonly tokens: Minute = createMinute();
  /** Calls that are open here, the units that they hold, and the tokens that they were let in with. */
  calls = 0;
  held = 0;
  openTokens = 0;
  elsewhere = NOTHING_ELSEWHERE;
  /** What the processes' shared limits were told last of its open calls; empty: tell it again. */
  told = "";
  /** On the steady clock: when the tables' counter was read last. */
  seenMs = -Infinity;
  /** Calls may be open that it does not count: they began before it had a limit. */
  hasMissed = true;
  /** On the steady clock: when somebody last asked. */
  askedMs = 0;
  /** The period that `#base` is of; undefined: none was read. */
  period: Period | undefined;
  /** Of the calendar that cut it. */
  cut = "";
  /** On the steady clock: when it was read. */
  readMs = 0;
  reading: Promise<void> | undefined;
  /** Start of the last period of which its owner was warned here. */
  warnedOf = 0;
  /** The account's counter less what was spent in the period: constant until the period ends. */
  #base = 0;
  #isFallen = false;
  /** The counter never falls but by a refund, which may be of an earlier period: then the sum is read anew. */
  #lastUsed = 0;
  /** The counter as the last round of the nodes read it, where memory is older. */
  #usedElsewhere = 0;

  constructor(
    readonly kind: OwnerKind,
    /** The accounts of one key or user may be read anew: the last that was seen counts. */
    public account: UserAccount | TokenAccount,
    public limits: KeyLimits,
    /** All processes are asked about each call: nothing of theirs has to be guessed. */
    private readonly isShared: () => boolean = () => false,
  ) {}

  /** What has to be counted beside this process's own. */
  get beside(): ElsewhereUse {
    return this.isShared() ? NOTHING_ELSEWHERE : this.elsewhere;
  }

  get key(): string {
    return `${this.kind}:${this.account.id}`;
  }

  /** Something of it stands in this process only. */
  isBusy(nowMs: number): boolean {
    return this.calls > 0 || this.requests.sum(nowMs) > 0 || this.tokens.sum(nowMs) > 0;
  }

  #used(): number {
    return Math.max(this.account.usedQuota, this.#usedElsewhere);
  }

  /** Takes over what the tables said of a period. */
  read(period: Period, cut: string, use: PeriodUse, nowMs: number): void {
    this.period = period;
    this.cut = cut;
    this.readMs = nowMs;
    this.#base = use.usedQuota - use.spent;
    this.#lastUsed = this.#used();
    this.#isFallen = false;
  }

  /** The counter as the tables have it by now. */
  sawUsed(usedQuota: number, nowMs: number): void {
    this.#usedElsewhere = usedQuota;
    this.seenMs = nowMs;
  }

  /** True from a charge that was taken back until the sums are read anew: nobody spends by a sum that may be too low. */
  hasFallen(): boolean {
    const used = this.#used();
    if (used < this.#lastUsed) this.#isFallen = true;
    this.#lastUsed = used;
    return this.#isFallen;
  }

  /** Settled in the period, charges on their way to the tables included. */
  spent(): number {
    return Math.max(0, this.#used() + this.account.pending - this.#base);
  }

  /** What open calls hold here and elsewhere. */
  allHeld(): number {
    return this.held + this.beside.held;
  }

  /** What is left of the budget beside all open calls; Infinity without one. */
  free(): number {
    const { budgetQuota } = this.limits;
    return budgetQuota > 0 ? budgetQuota - this.spent() - this.allHeld() : Infinity;
  }

  /** The same by what the others told last, whoever is asked otherwise: for whom no answer came. */
  freeUnanswered(): number {
    const { budgetQuota } = this.limits;
    return budgetQuota > 0 ? budgetQuota - this.spent() - this.held - this.elsewhere.held : Infinity;
  }
}
