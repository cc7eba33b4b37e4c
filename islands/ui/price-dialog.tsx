// Sets prices of models that have none: dollars per million tokens, or per call, written into the site's price options.
// Refuses to touch models that have a price, and to guess: what is left empty stays without one.
import { useEffect, useId, useRef, useState } from "react";
import type { KeyboardEvent } from "react";
import { failureMessage } from "../lib/api.ts";
import { giveFocusBack } from "../lib/focus.ts";
import { useT } from "../lib/i18n.ts";
import { isBlank, problemOf, savePrices } from "../lib/price-options.ts";
import type { TypedPrice } from "../lib/price-options.ts";
import { namesText } from "../lib/model-names.ts";
import { useTablePrices } from "../lib/table-prices.ts";
import { toast } from "../lib/toasts.ts";
import { Notice } from "./feedback.tsx";

export interface PriceDialogProps {
  models: readonly string[];
  onClose: () => void;
  onPriced: () => Promise<void>;
}

const NOTHING: TypedPrice = { isPerCall: false, input: "", output: "" };

function useDialog() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const opener = document.activeElement;
    const box = dialog.current;
    box?.showModal();
    box?.querySelector("input")?.focus();
    return () => {
      box?.close();
      giveFocusBack(opener);
    };
  }, []);
  return dialog;
}

export default function PriceDialog({ models, onClose, onPriced }: PriceDialogProps) {
  const t = useT();
  const id = useId();
  const dialog = useDialog();
  // Those of the moment it was opened: a model that has just got its price does not vanish from under the hand.
  const [names, setNames] = useState(models);
  const [prices, setPrices] = useState<ReadonlyMap<string, TypedPrice>>(new Map());
  const [isTold, setTold] = useState(false);
  const [failure, setFailure] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const priceOf = (name: string) => prices.get(name) ?? NOTHING;
  const set = (name: string, price: Partial<TypedPrice>) =>
    setPrices(new Map(prices).set(name, { ...priceOf(name), ...price }));
  const typed = names.filter((name) => !isBlank(priceOf(name)));
  const [first] = typed;
  const takeOut = (set: readonly string[]) => {
    const rest = names.filter((name) => !set.includes(name));
    if (rest.length === 0) onClose();
    else setNames(rest);
  };
  const fillRest = () => {
    const same = first === undefined ? NOTHING : priceOf(first);
    setPrices(new Map(names.map((name) => [name, isBlank(priceOf(name)) ? same : priceOf(name)])));
  };
  const save = async () => {
    const wrong = names.findIndex((name) => problemOf(priceOf(name)) !== undefined);
    setTold(true);
    setFailure(typed.length === 0 ? t("price.nothing") : undefined);
    if (wrong !== -1 || typed.length === 0) {
      dialog.current?.querySelectorAll<HTMLElement>("[data-first]")[Math.max(0, wrong)]?.focus();
      return;
    }
    setBusy(true);
    try {
      const count = await savePrices(new Map(typed.map((name) => [name, priceOf(name)])));
      toast({ key: "prices", text: t("price.saved", { count }) });
      await onPriced();
      onClose();
    } catch (error) {
      setFailure(failureMessage(error));
      setBusy(false);
    }
  };
  const onKeyDown = (event: KeyboardEvent) => {
    // It may stand inside a form of the page, whose keys it must not press.
    event.stopPropagation();
    if (event.key !== "Enter" || !(event.target instanceof HTMLInputElement)) return;
    event.preventDefault();
    if (!event.nativeEvent.isComposing) void save();
  };
  return (
    <dialog
      ref={dialog}
      className="modal modal-middle"
      aria-labelledby={`${id}-title`}
      onKeyDown={onKeyDown}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
    >
      <div className="modal-box max-w-160 p-5">
        <h2 id={`${id}-title`}>{t("price.title")}</h2>
        <p className="mt-1 text-muted">{t("price.text")}</p>
        <TableOffer models={names} onSet={takeOut} onPriced={onPriced} />
        <div className="mt-3 flex flex-col">
          {names.map((name, index) => (
            <PriceRow
              key={name}
              id={`${id}-${index}`}
              name={name}
              price={priceOf(name)}
              isTold={isTold}
              onChange={(price) => set(name, price)}
            />
          ))}
        </div>
        {failure === undefined ? null : (
          <p className="mt-2 text-xs text-error" role="alert">
            {failure}
          </p>
        )}
        <div className="mt-5 flex flex-wrap justify-end gap-2">
          {names.length > 1 ? (
            <button
              type="button"
              className="btn btn-ghost mr-auto text-primary"
              disabled={first === undefined}
              onClick={fillRest}
            >
              {t("price.sameForRest")}
            </button>
          ) : null}
          <button type="button" className="btn btn-default" onClick={onClose}>
            {t("common.cancel")}
          </button>
          <button
            type="button"
            className="btn btn-primary"
            disabled={isBusy}
            aria-busy={isBusy}
            onClick={() => void save()}
          >
            {t("price.set")}
          </button>
        </div>
      </div>
    </dialog>
  );
}

interface TableOfferProps {
  models: readonly string[];
  /** Told of those that have a price now. */
  onSet: (models: readonly string[]) => void;
  onPriced: () => Promise<void>;
}

function TableOffer({ models, onSet, onPriced }: TableOfferProps) {
  const t = useT();
  const { found, date, isBusy, take } = useTablePrices(models, true, onPriced);
  if (found.length === 0) return null;
  const count = found.length;
  const action = (
    <button
      type="button"
      className="btn btn-sm btn-default"
      disabled={isBusy}
      aria-busy={isBusy}
      onClick={() => void take().then(onSet)}
    >
      {t("price.useTable", { count })}
    </button>
  );
  return (
    <div className="mt-3">
      <Notice tone="info" action={action}>
        <p className="wrap-anywhere">{t("price.inTable", { date, count, names: namesText(t, found) })}</p>
      </Notice>
    </div>
  );
}

interface PriceRowProps {
  id: string;
  name: string;
  price: TypedPrice;
  /** Saving was tried: what is wrong is said. */
  isTold: boolean;
  onChange: (price: Partial<TypedPrice>) => void;
}

function PriceRow({ id, name, price, isTold, onChange }: PriceRowProps) {
  const t = useT();
  const problem = isTold ? problemOf(price) : undefined;
  const fields = price.isPerCall
    ? ([["input", "price.call"]] as const)
    : ([
        ["input", "price.input"],
        ["output", "price.output"],
      ] as const);
  return (
    <div
      className="grid grid-cols-2 items-end gap-x-3 border-b border-base-300 py-3 sm:grid-cols-[minmax(0,1fr)_8rem_7rem_7rem]"
      role="group"
      aria-label={name}
    >
      <span className="col-span-2 self-center pb-1 mono break-all sm:col-span-1">{name}</span>
      <select
        className="select max-sm:col-span-2 max-sm:mb-2"
        aria-label={t("price.billing")}
        value={price.isPerCall ? "call" : "tokens"}
        onChange={(event) => onChange({ isPerCall: event.target.value === "call", output: "" })}
      >
        <option value="tokens">{t("price.perToken")}</option>
        <option value="call">{t("price.perCall")}</option>
      </select>
      {fields.map(([field, label], index) => (
        <label key={field}>
          <span className="text-xs text-muted">{t(label)}</span>
          <span className="input" aria-invalid={problem !== undefined}>
            <span className="text-muted" aria-hidden>
              $
            </span>
            <input
              className="grow min-w-0 tabular-nums"
              data-first={index === 0 ? "" : undefined}
              inputMode="decimal"
              autoComplete="off"
              aria-invalid={problem !== undefined}
              aria-describedby={problem === undefined ? undefined : `${id}-problem`}
              value={price[field]}
              onChange={(event) => onChange({ [field]: event.target.value })}
            />
          </span>
        </label>
      ))}
      <span id={`${id}-problem`} className="col-span-full min-h-4 text-xs text-error" role="status">
        {problem === undefined ? null : t(problem)}
      </span>
    </div>
  );
}
