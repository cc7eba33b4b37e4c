// Whether visitors can pay here: the rails of payment that are built, each with what it needs before it may take money.
// Refuses where the site sells nothing: in self-use and demonstration mode.
import type { OptionStore } from "../options/store.ts";

interface PaymentRail {
  /** As its orders name it. */
  name: string;
  /** Everything stands that keeps others from forging a payment. */
  isGuarded: (options: Pick<OptionStore, "get">) => boolean;
}

/** A row per rail whose routes exist. None does yet, and settings alone take no money. */
const RAILS: readonly PaymentRail[] = [];

/** What GET /api/status tells old consoles, which show their pay buttons by it. */
export function isOnlineTopUpOpen(options: Pick<OptionStore, "get">): boolean {
  const isSelling = !options.get("SelfUseModeEnabled") && !options.get("DemoSiteEnabled");
  return isSelling && RAILS.some((rail) => rail.isGuarded(options));
}
