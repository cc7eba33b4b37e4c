// After a channel was added: the dialog for prices of its models that have none, for those who may set them.
// Refuses to stand in the way where nothing is missing, or where somebody else sets the prices: the editor has named them.
import { useSignals } from "@preact/signals-react/runtime";
import { user } from "../../lib/boot.ts";
import { mayPrice } from "../../ui/price-action.tsx";
import PriceDialog from "../../ui/price-dialog.tsx";
import { usePricedModels } from "./priced-models.ts";

/** A provider's whole list is priced at the price desk, not here. */
const MOST_ASKED = 50;

export default function NewPrices({ models, onClose }: { models: readonly string[]; onClose: () => void }) {
  useSignals();
  const { unpricedOf, refresh } = usePricedModels();
  const unpriced = unpricedOf(models);
  if (!mayPrice(user.value) || unpriced.length === 0) return null;
  return <PriceDialog models={unpriced.slice(0, MOST_ASKED)} onClose={onClose} onPriced={refresh} />;
}
