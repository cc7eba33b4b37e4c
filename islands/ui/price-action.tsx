// The buttons that give models a price: the shipped table's in one click, or the dialog for typing; only for those who may set
// prices, for everybody else nothing.
import { useSignals } from "@preact/signals-react/runtime";
import { useState } from "react";
import { Role } from "../../src/shared/enums.ts";
import { user } from "../lib/boot.ts";
import type { BootUser } from "../lib/boot.ts";
import { useT } from "../lib/i18n.ts";
import { lazyPart } from "../lib/lazy-part.tsx";
import { useTablePrices } from "../lib/table-prices.ts";

const PriceDialog = lazyPart(() => import("./price-dialog.tsx"));

/** Prices are options of the site. */
export function mayPrice(who: BootUser | null): boolean {
  return (who?.role ?? 0) >= Role.root;
}

export interface PriceActionProps {
  models: readonly string[];
  /** Asks anew for what has a price. */
  onPriced: () => Promise<void>;
  /** It is the next thing to do. */
  isPrimary?: boolean;
}

export function PriceAction({ models, onPriced, isPrimary }: PriceActionProps) {
  const t = useT();
  useSignals();
  const [isOpen, setOpen] = useState(false);
  const isAllowed = mayPrice(user.value);
  const { found, date, isBusy, take } = useTablePrices(models, isAllowed, onPriced);
  if (!isAllowed) return null;
  const hasTable = found.length > 0;
  return (
    <span className="flex flex-wrap gap-2">
      {hasTable ? (
        <button
          type="button"
          className={`btn btn-sm ${isPrimary ? "btn-primary" : "btn-default"}`}
          disabled={isBusy}
          aria-busy={isBusy}
          title={t("price.tableOf", { date })}
          onClick={() => void take()}
        >
          {t("price.useTable", { count: found.length })}
        </button>
      ) : null}
      <button
        type="button"
        className={`btn btn-sm ${isPrimary && !hasTable ? "btn-primary" : "btn-default"}`}
        onClick={() => setOpen(true)}
      >
        {t("price.set")}
      </button>
      {isOpen ? <PriceDialog models={models} onClose={() => setOpen(false)} onPriced={onPriced} /> : null}
    </span>
  );
}
