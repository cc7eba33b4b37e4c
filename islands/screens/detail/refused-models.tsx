// The dashboard's line on calls that were refused because their model has no price.
import { useSignals } from "@preact/signals-react/runtime";
import { user } from "../../lib/boot.ts";
import { useT } from "../../lib/i18n.ts";
import { namesText } from "../../lib/model-names.ts";
import { Notice } from "../../ui/feedback.tsx";
import { mayPrice, PriceAction } from "../../ui/price-action.tsx";

export interface RefusedModelsProps {
  models: readonly string[];
  onPriced: () => Promise<void>;
}

export default function RefusedModels({ models, onPriced }: RefusedModelsProps) {
  useSignals();
  const t = useT();
  return (
    <Notice tone="warning" action={<PriceAction models={models} onPriced={onPriced} />}>
      <p className="wrap-anywhere">
        {t("price.refused", { count: models.length, names: namesText(t, models) })}
        {mayPrice(user.value) ? null : ` ${t("price.askAdmin")}`}
      </p>
    </Notice>
  );
}
