// Three views of the price maps: the models as a table, the models without a price, and the raw JSON with its reset.
// Refuses to save by itself: what is changed here, the reset too, waits for the save bar, and becomes a plan of the price desk.
import { Plus } from "lucide-react";
import { useCallback, useEffect, useId, useMemo, useState } from "react";
import type { ReactNode } from "react";
import { api, call, failureMessage } from "../../../lib/api.ts";
import { useT } from "../../../lib/i18n.ts";
import { useTablePrices } from "../../../lib/table-prices.ts";
import { toast } from "../../../lib/toasts.ts";
import { FailureNotice } from "../../../ui/feedback.tsx";
import type { OptionPanelProps } from "./panel-props.ts";
import { JsonText, Parts } from "./json-beside.tsx";
import { FailureLine, PanelBlock } from "./panel-block.tsx";
import { PriceList } from "./price-list.tsx";
import { isPriced, PRICE_KEYS, pricedNames, readTables } from "./price-tables.ts";
import type { PriceKey, PriceTables } from "./price-tables.ts";

type View = "visual" | "unset" | "json";
const PAGE_OF_PRICED = 20;
/** The specification's. */
const PAGE_OF_UNSET = 10;

export default function PricesPanel(panel: OptionPanelProps) {
  const t = useT();
  const { rows, value, failureOf } = panel;
  const [view, setView] = useState<View>("visual");
  if (rows.some(({ key, isLong }) => isLong && PRICE_KEYS.some((each) => each === key)))
    return <div className="skeleton h-40" aria-hidden />;
  const tables = readTables(value);
  const open = tables ? view : "json";
  const onTexts = (texts: Partial<Record<PriceKey, string>>) => {
    for (const [key, text] of Object.entries(texts)) panel.onChange(key, text);
  };
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
          isDisabled: id !== "json" && tables === undefined,
        }))}
        open={open}
        onOpen={(id) => setView(id as View)}
      >
        {open === "json" || !tables ? (
          <RawMaps {...panel} isBroken={tables === undefined} />
        ) : (
          anchored(
            open === "visual" ? (
              <Visual tables={tables} onTexts={onTexts} />
            ) : (
              <Unset tables={tables} onTexts={onTexts} onStored={panel.refresh} />
            ),
          )
        )}
      </Parts>
      {open === "json"
        ? null
        : PRICE_KEYS.map((key) => {
            const failure = failureOf(key);
            return failure === undefined ? null : (
              <FailureLine key={key} text={`${t(`option.title.${key}`)}: ${failure}`} />
            );
          })}
    </div>
  );
}

/** Whoever looks for one of the maps by its key is led to the table that shows them all. */
function anchored(view: ReactNode): ReactNode {
  return PRICE_KEYS.reduce<ReactNode>(
    (inner, key) => (
      <div id={key} data-option={key}>
        {inner}
      </div>
    ),
    view,
  );
}

interface ViewProps {
  tables: PriceTables;
  onTexts: (texts: Partial<Record<PriceKey, string>>) => void;
}

function Visual({ tables, onTexts }: ViewProps) {
  const t = useT();
  const [added, setAdded] = useState<readonly string[]>([]);
  const [edited, setEdited] = useState<ReadonlySet<string>>(new Set());
  const { ModelPrice, ModelRatio, CompletionRatio } = tables;
  const priced = useMemo(() => pricedNames(tables), [ModelPrice, ModelRatio, CompletionRatio]);
  const names = useMemo(() => {
    const first = new Set(added);
    const known = new Set(priced);
    const others = [...edited].filter((name) => !known.has(name));
    const all = others.length === 0 ? priced : [...priced, ...others].sort();
    return [...added, ...all.filter((name) => !first.has(name))];
  }, [added, edited, priced]);
  const keep = (model: string, isKept: boolean) => {
    if (isKept && edited.has(model)) return;
    const next = new Set(edited);
    if (isKept) next.add(model);
    else next.delete(model);
    setEdited(next);
    if (!isKept) setAdded(added.filter((name) => name !== model));
  };
  return (
    <>
      <AddModel known={names} onAdd={(name) => setAdded([name, ...added])} />
      <PriceList
        names={names}
        tables={tables}
        onTexts={onTexts}
        pageSize={PAGE_OF_PRICED}
        empty={t("editor.price.noModels")}
        onKeep={keep}
      />
    </>
  );
}

function AddModel({ known, onAdd }: { known: readonly string[]; onAdd: (name: string) => void }) {
  const t = useT();
  const id = useId();
  const [name, setName] = useState("");
  const [problem, setProblem] = useState<string>();
  const add = () => {
    const trimmed = name.trim();
    const wrong =
      trimmed === "" ? "editor.price.noName" : known.includes(trimmed) ? "editor.price.known" : undefined;
    setProblem(wrong);
    if (wrong !== undefined) return;
    setName("");
    onAdd(trimmed);
  };
  return (
    <div className="mb-3">
      <div className="flex gap-2">
        <input
          className="input mono sm:w-64"
          aria-label={t("editor.price.newName")}
          aria-invalid={problem !== undefined || undefined}
          aria-describedby={problem === undefined ? undefined : id}
          placeholder={t("editor.price.newName")}
          autoComplete="off"
          spellCheck={false}
          value={name}
          onChange={(event) => {
            setName(event.target.value);
            setProblem(undefined);
          }}
          onKeyDown={(event) => {
            if (event.key !== "Enter" || event.ctrlKey || event.metaKey || event.nativeEvent.isComposing)
              return;
            event.preventDefault();
            add();
          }}
        />
        <button type="button" className="btn btn-default" onClick={add}>
          <Plus aria-hidden size={14} />
          {t("editor.price.add")}
        </button>
      </div>
      {problem === undefined ? null : (
        <p id={id} className="mt-1 text-xs text-error" role="alert">
          {t(problem)}
        </p>
      )}
    </div>
  );
}

interface UnsetProps extends ViewProps {
  onStored: () => Promise<void>;
}

function Unset({ tables, onTexts, onStored }: UnsetProps) {
  const t = useT();
  // Those of the moment they were asked for: a model that gets its price does not vanish from under the hand.
  const [names, setNames] = useState<readonly string[]>();
  const [failure, setFailure] = useState<string>();
  const refresh = useCallback(async () => {
    try {
      const enabled = await call(api.channel.models_enabled.get());
      setNames([...new Set(enabled)].filter((name) => !isPriced(tables, name)).sort());
      setFailure(undefined);
    } catch (error) {
      setFailure(`${t("editor.price.enabledFailed")}: ${failureMessage(error)}`);
    }
  }, [tables, t]);
  useEffect(() => void refresh(), []);
  const missing = (names ?? []).filter((name) => !isPriced(tables, name));
  const table = useTablePrices(missing, true, onStored);
  if (failure !== undefined) return <FailureNotice text={failure} onRetry={refresh} />;
  if (names === undefined) return <div className="skeleton h-40" aria-hidden />;
  return (
    <>
      <div className="mb-2 flex flex-wrap items-center gap-2">
        <p className="grow text-dense text-muted">{t("editor.price.unsetText", { count: names.length })}</p>
        {table.found.length > 0 ? (
          <button
            type="button"
            className="btn btn-default btn-sm"
            disabled={table.isBusy}
            aria-busy={table.isBusy}
            title={t("price.tableOf", { date: table.date })}
            onClick={() => void table.take()}
          >
            {t("price.useTable", { count: table.found.length })}
          </button>
        ) : null}
        <button type="button" className="btn btn-ghost btn-sm" onClick={() => void refresh()}>
          {t("editor.price.again")}
        </button>
      </div>
      <PriceList
        names={names}
        tables={tables}
        onTexts={onTexts}
        pageSize={PAGE_OF_UNSET}
        empty={t("editor.price.allPriced")}
      />
    </>
  );
}

function RawMaps(panel: OptionPanelProps & { isBroken: boolean }) {
  const t = useT();
  const { rows, onChange, isBroken } = panel;
  const ratio = rows.find(({ key }) => key === "ModelRatio");
  // Typed, not stored: what it would do is seen in the plan that saving makes.
  const reset = () => {
    for (const { key, default: shipped } of rows)
      if (PRICE_KEYS.some((each) => each === key)) onChange(key, shipped);
    toast({ key: "prices", tone: "info", text: t("editor.price.resetDone") });
  };
  return (
    <>
      {isBroken ? <p className="mb-2 text-dense text-muted">{t("editor.price.broken")}</p> : null}
      {PRICE_KEYS.map((key) => {
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
      {ratio ? (
        <button type="button" className="btn btn-default text-error" onClick={reset}>
          {t("editor.price.reset")}
        </button>
      ) : null}
    </>
  );
}
