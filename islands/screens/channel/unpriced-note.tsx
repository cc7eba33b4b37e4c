// Below the models of a channel: which of them have no price and are refused, and the way to set one.
import { useT } from "../../lib/i18n.ts";
import { namesText } from "../../lib/model-names.ts";
import { PriceAction } from "../../ui/price-action.tsx";
import { Notice } from "../../ui/feedback.tsx";
import { usePricedModels } from "./priced-models.ts";

export function UnpricedNote({ models }: { models: readonly string[] }) {
  const t = useT();
  const { unpricedOf, ask, refresh } = usePricedModels();
  const unpriced = unpricedOf(models);
  if (unpriced.length === 0) return null;
  return (
    <div className="mb-4">
      <Notice tone="warning" action={<PriceAction models={unpriced} onPriced={refresh} />}>
        <p className="wrap-anywhere">
          {t("price.unpriced", { count: unpriced.length, names: namesText(t, unpriced) })}
          {ask === "" ? null : ` ${t("price.askName", { name: ask })}`}
        </p>
      </Notice>
    </div>
  );
}
