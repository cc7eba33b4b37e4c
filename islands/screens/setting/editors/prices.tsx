// The specification's three price panels as views of the price desk: its sheet of all models, the same of those without a price,
// and the raw JSON of the maps with its reset. Refuses to save by itself: what is changed here, the reset too, waits for the
// save bar, and becomes a plan.
import { useState } from "react";
import type { ReactNode } from "react";
import { PRICE_MAPS } from "../../../../src/shared/row-maps.ts";
import { useT } from "../../../lib/i18n.ts";
import { entriesOf } from "../../../lib/price-entries.ts";
import { toast } from "../../../lib/toasts.ts";
import type { OptionPanelProps } from "./panel-props.ts";
import { JsonText, Parts } from "./json-beside.tsx";
import { FailureLine, PanelBlock } from "./panel-block.tsx";
import { PriceSheet } from "./price-sheet.tsx";

type View = "visual" | "unset" | "json";

/** Whether the sheet can show the map: numbers by name, and rules as objects. What is neither is mended as JSON. */
function isReadable(key: string, text: string): boolean {
  const entries = entriesOf(key, text);
  const kind = key === "PriceRules" ? "object" : "number";
  return (
    entries !== undefined && [...entries.values()].every((each) => typeof each === kind && each !== null)
  );
}

export default function PricesPanel(panel: OptionPanelProps) {
  const t = useT();
  const { rows, value, failureOf } = panel;
  const [view, setView] = useState<View>("visual");
  if (rows.some(({ key, isLong }) => isLong && PRICE_MAPS.some((each) => each === key)))
    return <div className="skeleton h-40" aria-hidden />;
  const isWhole = PRICE_MAPS.every((key) => isReadable(key, value(key)));
  const open = isWhole ? view : "json";
  return (
    <div className="setting-line">
      <p className="mb-2 text-dense text-muted">
        {t("editor.price.deskText")}{" "}
        <a className="link" href={open === "unset" ? "/prices?view=unpriced" : "/prices"}>
          {t("editor.price.desk")}
        </a>
      </p>
      <Parts
        label={t("editor.price.title")}
        parts={(["visual", "json", "unset"] as const).map((id) => ({
          id,
          label: t(`editor.price.view.${id}`),
          isDisabled: id !== "json" && !isWhole,
        }))}
        open={open}
        onOpen={(id) => setView(id as View)}
      >
        {open === "json" ? (
          <RawMaps {...panel} isBroken={!isWhole} />
        ) : (
          anchored(<PriceSheet key={open} {...panel} view={open === "visual" ? "all" : "unpriced"} />)
        )}
      </Parts>
      {open === "json"
        ? null
        : PRICE_MAPS.map((key) => {
            const failure = failureOf(key);
            return failure === undefined ? null : (
              <FailureLine key={key} text={`${t(`option.title.${key}`)}: ${failure}`} />
            );
          })}
    </div>
  );
}

/** Whoever looks for one of the maps by its key is led to the sheet that shows them all. */
function anchored(view: ReactNode): ReactNode {
  return PRICE_MAPS.reduce<ReactNode>(
    (inner, key) => (
      <div id={key} data-option={key}>
        {inner}
      </div>
    ),
    view,
  );
}

function RawMaps(panel: OptionPanelProps & { isBroken: boolean }) {
  const t = useT();
  const { rows, onChange, isBroken } = panel;
  // Typed, not stored: what it would do is seen in the plan that saving makes.
  const reset = () => {
    for (const { key, default: shipped } of rows)
      if (PRICE_MAPS.some((each) => each === key)) onChange(key, shipped);
    toast({ key: "prices", tone: "info", text: t("editor.price.resetDone") });
  };
  return (
    <>
      {isBroken ? <p className="mb-2 text-dense text-muted">{t("editor.price.broken")}</p> : null}
      {PRICE_MAPS.map((key) => {
        const row = rows.find((each) => each.key === key);
        return row ? (
          <PanelBlock key={key} row={row} panel={panel}>
            {(about) => (
              <JsonText
                label={t(`option.title.${key}`)}
                value={about.value}
                onChange={about.onChange}
                isInvalid={about.failure !== undefined}
              />
            )}
          </PanelBlock>
        ) : null;
      })}
      <button type="button" className="btn btn-default text-error" onClick={reset}>
        {t("editor.price.reset")}
      </button>
    </>
  );
}
