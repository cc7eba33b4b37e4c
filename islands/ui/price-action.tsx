// The button that opens the dialog for prices, for those who may set them; for everybody else nothing.
import { useSignals } from "@preact/signals-react/runtime";
import { useState } from "react";
import { Role } from "../../src/shared/enums.ts";
import { user } from "../lib/boot.ts";
import type { BootUser } from "../lib/boot.ts";
import { useT } from "../lib/i18n.ts";
import { lazyPart } from "../lib/lazy-part.tsx";

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
  if (!mayPrice(user.value)) return null;
  return (
    <>
      <button
        type="button"
        className={`btn btn-sm ${isPrimary ? "btn-primary" : "btn-default"}`}
        onClick={() => setOpen(true)}
      >
        {t("price.set")}
      </button>
      {isOpen ? <PriceDialog models={models} onClose={() => setOpen(false)} onPriced={onPriced} /> : null}
    </>
  );
}
