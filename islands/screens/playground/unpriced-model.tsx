// Above the composer: that the chosen model is refused because it has no price, and the way to set one.
// Refuses to ask while the page comes up: whoever is going to send something has pressed or typed before.
import { useSignals } from "@preact/signals-react/runtime";
import { useEffect, useState } from "react";
import { user } from "../../lib/boot.ts";
import { useT } from "../../lib/i18n.ts";
import { useOwnUnpriced } from "../../lib/own-unpriced.ts";
import { Notice } from "../../ui/feedback.tsx";
import { mayPrice, PriceAction } from "../../ui/price-action.tsx";

export default function UnpricedModel({ model }: { model: string }) {
  const [isUsed, setUsed] = useState(false);
  useEffect(() => {
    const use = () => setUsed(true);
    const events = ["pointerdown", "keydown"] as const;
    for (const name of events) document.addEventListener(name, use, { once: true });
    return () => {
      for (const name of events) document.removeEventListener(name, use);
    };
  }, []);
  return isUsed ? <Told model={model} /> : null;
}

function Told({ model }: { model: string }) {
  useSignals();
  const t = useT();
  const { unpriced, refresh } = useOwnUnpriced();
  if (!unpriced.has(model)) return null;
  return (
    <Notice tone="warning" action={<PriceAction models={[model]} onPriced={refresh} />}>
      <p role="status" className="wrap-anywhere">
        {t("price.unpriced", { count: 1, names: model })}
        {mayPrice(user.value) ? null : ` ${t("price.askAdmin")}`}
      </p>
    </Notice>
  );
}
