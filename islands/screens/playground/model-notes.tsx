// Above the composer: what is told about the chosen models, and which of them are refused for want of a price.
// Refuses to ask while the page comes up: whoever is going to send something has pressed or typed before.
import { useSignals } from "@preact/signals-react/runtime";
import { useEffect, useState } from "react";
import { user } from "../../lib/boot.ts";
import { useT } from "../../lib/i18n.ts";
import { namesText } from "../../lib/model-names.ts";
import { useOwnUnpriced } from "../../lib/own-unpriced.ts";
import type { ModelNotice } from "../../lib/wire.ts";
import { Notice } from "../../ui/feedback.tsx";
import ModelNotices from "../../ui/model-notices.tsx";
import { mayPrice, PriceAction } from "../../ui/price-action.tsx";

interface UnpricedModelsProps {
  /** Chosen ones for which the page knows no price; the server says which of them are refused. */
  models: readonly string[];
}

interface ModelNotesProps {
  chosen: readonly string[];
  perhapsUnpriced: readonly string[];
  notices: readonly ModelNotice[];
}

export default function ModelNotes({ chosen, perhapsUnpriced, notices }: ModelNotesProps) {
  return (
    <>
      <ModelNotices notices={notices} models={chosen} />
      {perhapsUnpriced.length > 0 ? <UnpricedModels models={perhapsUnpriced} /> : null}
    </>
  );
}

function UnpricedModels({ models }: UnpricedModelsProps) {
  // This part comes late: the very key that chose the model may have been pressed before it was here.
  const [isUsed, setUsed] = useState(() => navigator.userActivation?.hasBeenActive ?? false);
  useEffect(() => {
    if (isUsed) return;
    const use = () => setUsed(true);
    const events = ["pointerdown", "keydown"] as const;
    for (const name of events) document.addEventListener(name, use, { once: true });
    return () => {
      for (const name of events) document.removeEventListener(name, use);
    };
  }, [isUsed]);
  return isUsed ? <Told models={models} /> : null;
}

function Told({ models }: UnpricedModelsProps) {
  useSignals();
  const t = useT();
  const { unpriced, refresh } = useOwnUnpriced();
  const refused = models.filter((model) => unpriced.has(model));
  if (refused.length === 0) return null;
  return (
    <Notice tone="warning" action={<PriceAction models={refused} onPriced={refresh} />}>
      <p role="status" className="wrap-anywhere">
        {t("price.unpriced", { count: refused.length, names: namesText(t, refused) })}
        {mayPrice(user.value) ? null : ` ${t("price.askAdmin")}`}
      </p>
    </Notice>
  );
}
