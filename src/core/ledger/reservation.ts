// One amount held back for one call, and the rule that exactly one of settle and release takes effect.
// Refuses repeats quietly: they answer with the promise of the first.
import type { Reservation, Settlement, TokenAccount, UserAccount } from "../deps.ts";
import type { LimitLease } from "../limits/limits.ts";
import { beginPending } from "./items.ts";
import type { DurableHold, LedgerItem } from "./items.ts";
import { settlementRow } from "../logs/rows.ts";
import type { Indexed, IndexedSet } from "../../shared/indexed-set.ts";

/** What holds need of their ledger. */
export interface HoldKeeper {
  /** All that are neither settled nor released. */
  readonly open: IndexedSet<Hold>;
  add(item: LedgerItem): Promise<void>;
  /** Lengthens the hold by `extend` or `extendDurably` and answers by how much; never rejects. */
  lengthen(hold: Hold, more: number): number | Promise<number>;
  nowMs(): number;
  monotonicMs(): number;
  /** Whether settled calls leave a log row. */
  consumeLogged(): boolean;
}

const DONE = Promise.resolve();

export class Hold implements Reservation, Indexed {
  index = -1;
  /** On the steady clock. */
  readonly openedAtMs: number;
  #outcome: Promise<void> | undefined;
  /** What memory holds back from user and token; what left the balance durably is not in it. */
  #held: number;
  /** A step that is being written; a second one waits for it, so that both raise the same row. */
  #growing: Promise<number> | undefined;

  constructor(
    private readonly keeper: HoldKeeper,
    readonly requestId: string,
    public amount: number,
    readonly user: UserAccount,
    readonly token: TokenAccount | undefined,
    /** The row in `reservations`, when there is one. */
    public durable: DurableHold | undefined,
    /** Its place under budgets and limits; undefined where there are none. */
    public lease: LimitLease | undefined,
  ) {
    if (lease) lease.change(amount - lease.amount);
    this.openedAtMs = keeper.monotonicMs();
    this.#held = durable ? 0 : amount;
    user.reserved += this.#held;
    user.openCalls++;
    if (token) token.reserved += this.#held;
    keeper.open.add(this);
  }

  get isClosed(): boolean {
    return this.#outcome !== undefined;
  }

  grow(more: number, tokens = 0): number | Promise<number> {
    if (this.#outcome) return 0;
    if (this.#growing) return this.#growing.then(() => this.grow(more, tokens));
    const { lease } = this;
    const wanted = lease ? Math.min(more, Math.max(0, lease.free())) : more;
    if (wanted <= 0) return 0;
    // Taken from the budgets before anybody waits: no other call may have the same units.
    lease?.change(wanted, tokens);
    const shared = lease?.more(wanted, tokens);
    if (!shared) return this.#lengthen(wanted);
    return this.#step(
      shared.then((answer) => {
        const units = answer ?? lease?.unanswered(wanted) ?? wanted;
        lease?.change(units - wanted);
        // Nothing is held any more for a call that has ended meanwhile.
        return this.#outcome || units <= 0 ? 0 : this.#lengthen(units);
      }),
    );
  }

  /** Others wait for it; one that went on inside has taken its place, and another one may have followed that. */
  #step(growing: Promise<number>): Promise<number> {
    const own: Promise<number> = growing.finally(() => {
      if (this.#growing === own) this.#growing = undefined;
    });
    return (this.#growing = own);
  }

  #lengthen(wanted: number): number | Promise<number> {
    const { lease } = this;
    const added = this.keeper.lengthen(this, wanted);
    if (typeof added === "number") {
      lease?.change(added - wanted);
      return added;
    }
    return this.#step(
      added.then((units) => {
        lease?.change(units - wanted);
        return units;
      }),
    );
  }

  /** Holds more back in memory. */
  extend(more: number): void {
    this.amount += more;
    this.#held += more;
    this.user.reserved += more;
    if (this.token) this.token.reserved += more;
  }

  /** `more` has left the balance for this row. */
  extendDurably(row: DurableHold, more: number): void {
    this.amount += more;
    this.durable = { ...row, amount: row.amount + more };
  }

  settle(settlement: Settlement): Promise<void> {
    if (this.#outcome) return this.#outcome;
    const { keeper, user, token } = this;
    const row = settlementRow(this.requestId, user, token, settlement, settlement.atMs ?? keeper.nowMs());
    const item: LedgerItem = { row };
    if (!keeper.consumeLogged()) item.logged = false;
    if (this.durable) item.hold = this.durable;
    if (settlement.keyId) item.keyId = settlement.keyId;
    if (settlement.object) item.object = settlement.object;
    if (settlement.cost) item.cost = settlement.cost;
    if (settlement.cache) item.cache = settlement.cache;
    this.#letGo();
    beginPending(item, user, token);
    this.lease?.end(settlement.promptTokens + settlement.completionTokens, row.quota);
    return (this.#outcome = keeper.add(item));
  }

  release(): Promise<void> {
    return (this.#outcome ??= this.#giveBack());
  }

  /** Gives the amount back without closing: a settlement that still comes is charged in full. */
  abandon(): void {
    if (this.#outcome) return;
    const given = this.#giveBack();
    this.durable = undefined;
    // The queue has already logged it; an amount that stays away is returned by its lease.
    given.catch(() => undefined);
  }

  #letGo(): void {
    this.user.reserved -= this.#held;
    if (this.token) this.token.reserved -= this.#held;
    this.#held = 0;
    // A settlement may still come of what was abandoned.
    if (this.index >= 0) this.user.openCalls--;
    this.keeper.open.delete(this);
  }

  #giveBack(): Promise<void> {
    this.#letGo();
    this.lease?.end(0, 0);
    if (!this.durable) return DONE;
    const item: LedgerItem = { hold: this.durable };
    beginPending(item, this.user, this.token);
    return this.keeper.add(item);
  }
}
