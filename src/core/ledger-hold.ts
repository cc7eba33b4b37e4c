// One amount held back for one call, and the rule that exactly one of settle and release takes effect.
// Refuses repeats quietly: they answer with the promise of the first.
import type { Reservation, Settlement, TokenAccount, UserAccount } from "./deps.ts";
import { pendingOfToken, pendingOfUser } from "./ledger-items.ts";
import type { DurableHold, LedgerItem } from "./ledger-items.ts";
import { settlementRow } from "./log-rows.ts";

/** What holds need of their ledger. */
export interface HoldKeeper {
  /** All that are neither settled nor released. */
  readonly open: Set<Hold>;
  add(item: LedgerItem): Promise<void>;
  nowMs(): number;
  /** Whether settled calls leave a log row. */
  consumeLogged(): boolean;
}

const DONE = Promise.resolve();

export class Hold implements Reservation {
  readonly openedAtMs: number;
  #outcome: Promise<void> | undefined;
  /** What memory holds back from user and token; nothing when the amount already left the balance durably. */
  #held: number;

  constructor(
    private readonly keeper: HoldKeeper,
    readonly requestId: string,
    readonly amount: number,
    private readonly user: UserAccount,
    private readonly token: TokenAccount | undefined,
    /** The row in `reservations`, when there is one. */
    public durable: DurableHold | undefined,
  ) {
    this.openedAtMs = keeper.nowMs();
    this.#held = durable ? 0 : amount;
    user.reserved += this.#held;
    if (token) token.reserved += this.#held;
    keeper.open.add(this);
  }

  settle(settlement: Settlement): Promise<void> {
    if (this.#outcome) return this.#outcome;
    const { keeper, user, token } = this;
    const row = settlementRow(this.requestId, user, token, settlement, keeper.nowMs());
    const item: LedgerItem = { row };
    if (!keeper.consumeLogged()) item.logged = false;
    if (this.durable) item.hold = this.durable;
    // From here to the commit memory holds back the charge in place of the amount.
    user.reserved += pendingOfUser(item) - this.#held;
    if (token) token.reserved += pendingOfToken(item) - this.#held;
    this.#held = 0;
    keeper.open.delete(this);
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
    // The queue has already told the log; an amount that stays away is returned by its lease.
    given.catch(() => undefined);
  }

  #giveBack(): Promise<void> {
    this.user.reserved -= this.#held;
    if (this.token) this.token.reserved -= this.#held;
    this.#held = 0;
    this.keeper.open.delete(this);
    return this.durable ? this.keeper.add({ hold: this.durable }) : DONE;
  }
}
