// Paying online: how much, by which method, what it costs by the server's word, and on to the provider once that is confirmed.
// Refuses to reckon a price by itself, and to send anybody on who has not seen what they pay and get.
import { useSignals } from "@preact/signals-react/runtime";
import { useEffect, useId, useState } from "react";
import { Role } from "../../../src/shared/enums.ts";
import { displayOf } from "../../../src/shared/quota-display.ts";
import { api, call, failureMessage } from "../../lib/api.ts";
import { status, user } from "../../lib/boot.ts";
import { formatNumber, formatQuota, siteDisplay } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import { leaveFor, postTo } from "../../lib/leave.ts";
import { moneyText } from "../../lib/order-words.ts";
import { toastFailure } from "../../lib/toasts.ts";
import type { PayCost, PayOffers } from "../../lib/wire.ts";
import { confirm } from "../../ui/confirm.tsx";
import { amountText, quotaOf } from "../../ui/money-field.tsx";

type PayMethod = PayOffers["methods"][number];

/** So long a price is not asked for while somebody types. */
const TYPING_MS = 250;

/** Quota units of an amount as the calls take it. */
const unitsOf = (amount: number, { unit }: PayOffers): number =>
  unit === "quota" ? amount : Math.round(amount * siteDisplay().quotaPerUnit);

/** The site shows a currency of its own: amounts in it are what they are, not whole dollars. */
function isOwnCurrency(): boolean {
  const { type } = displayOf(status.peek());
  return type === "CNY" || type === "CUSTOM";
}

/**
 * Units that were typed in what the site shows: of a currency of its own as typed, else whole dollars or units, half up. Never
 * below the smallest amount there is; undefined for what is no number.
 */
function unitsTyped(text: string, offers: PayOffers): number | undefined {
  // An offered amount may have more decimals than a field shows.
  const offered = [offers.min_topup, ...offers.amounts, ...offers.methods.map((each) => each.min_topup)];
  const same = offered
    .map((each) => unitsOf(each, offers))
    .find((units) => amountText(units) === text.trim());
  if (same !== undefined && same > 0) return same;
  const quota = quotaOf(text);
  if (quota === undefined) return undefined;
  const least = isOwnCurrency() ? 1 : unitsOf(1, offers);
  return Math.max(1, Math.floor(quota / least + 0.5)) * least;
}

/** What the calls are told of so many units. */
const askedOf = (units: number, offers: PayOffers): Pick<Wish, "amount" | "quota"> =>
  isOwnCurrency() ? { quota: units } : { amount: Math.round(units / unitsOf(1, offers)) };

const shortQuota = (quota: number): string => formatQuota(quota).replace(/\.00$/, "");

interface Wish {
  rail: string;
  method: string;
  amount?: number;
  quota?: number;
}

interface Payable {
  cost?: PayCost;
  /** Why there is none. */
  failure?: string;
}

/** What a wish costs, asked for once nobody types any more; empty while the answer is under way. */
function usePayable(wish: Wish | undefined): Payable {
  const key = JSON.stringify(wish);
  const [payable, setPayable] = useState<Payable & { key?: string | undefined }>({});
  useEffect(() => {
    if (!wish) return undefined;
    let isGone = false;
    const timer = setTimeout(() => {
      call(api.user.topup.amount.post(wish)).then(
        (cost) => isGone || setPayable({ key, cost }),
        (error: unknown) => isGone || setPayable({ key, failure: failureMessage(error) }),
      );
    }, TYPING_MS);
    return () => {
      isGone = true;
      clearTimeout(timer);
    };
  }, [key]);
  return wish && payable.key === key ? payable : {};
}

/** The part that so many units get off, by the steps of the site: `5%`; "" for none. */
function discountText(units: number, offers: PayOffers): string {
  const dollars = units / siteDisplay().quotaPerUnit;
  const reached = offers.discounts
    .filter(({ from }) => from <= dollars)
    .toSorted((a, b) => b.from - a.from)[0];
  if (!reached || reached.part >= 1) return "";
  return `${formatNumber(Number(((1 - reached.part) * 100).toFixed(2)))}%`;
}

export function PayPanel({ offers }: { offers: PayOffers }) {
  const t = useT();
  const id = useId();
  const isOpen = offers.open && offers.methods.length > 0;
  // Where nothing can be bought a phone keeps its height for the history: the sentence alone says it.
  return (
    <section
      className={`rounded-box border border-base-300 bg-base-100 px-5 py-4 ${isOpen ? "" : "max-sm:border-0 max-sm:bg-transparent max-sm:px-1 max-sm:py-0"}`}
      aria-labelledby={`${id}-title`}
    >
      <h2 id={`${id}-title`} className={isOpen ? "" : "max-sm:sr-only"}>
        {t("topup.pay")}
      </h2>
      {isOpen ? <PayForm offers={offers} /> : <Closed />}
    </section>
  );
}

/** No rail is set up: everybody reads so, and root where to change it. */
function Closed() {
  const t = useT();
  useSignals();
  return (
    <p className="mt-2 text-muted max-sm:mt-0">
      {t("topup.payClosed")}{" "}
      {(user.value?.role ?? 0) >= Role.root ? (
        <a className="link" href="/setting?tab=payment">
          {t("topup.paySetUp")}
        </a>
      ) : null}
    </p>
  );
}

function PayForm({ offers }: { offers: PayOffers }) {
  const t = useT();
  const [text, setText] = useState(() => amountText(unitsOf(Math.max(1, offers.min_topup), offers)));
  const [method, setMethod] = useState<PayMethod>(offers.methods[0] as PayMethod);
  const [isBusy, setBusy] = useState(false);
  const units = unitsTyped(text, offers);
  const minimum = unitsOf(Math.max(1, offers.min_topup, method.min_topup), offers);
  const problem = problemOf(units, minimum);
  const wish =
    units === undefined || problem !== ""
      ? undefined
      : { rail: method.rail, method: method.type, ...askedOf(units, offers) };
  const { cost, failure } = usePayable(wish);

  function problemOf(asked: number | undefined, least: number): string {
    if (asked === undefined) return t("topup.payAmountWrong");
    if (asked < least) return t("topup.payLow", { minimum: shortQuota(least) });
    const most = unitsOf(offers.max_topup, offers);
    return asked > most ? t("topup.payHigh", { maximum: shortQuota(most) }) : "";
  }

  const pay = async () => {
    if (!wish || !cost || isBusy) return;
    const money = moneyText(cost.money, cost.currency);
    const isSure = await confirm({
      title: t("topup.payConfirm", { money, method: method.name }),
      text: t("topup.payCredit", { amount: formatQuota(cost.quota) }),
      action: t("topup.payAction", { money }),
    });
    if (!isSure) return;
    setBusy(true);
    try {
      const { url, fields } = await call(api.user.topup.pay.post(wish));
      if (fields) postTo(url, fields);
      else leaveFor(url);
    } catch (error) {
      toastFailure(error, "pay");
      setBusy(false);
    }
  };

  return (
    <form
      className="mt-2"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        void pay();
      }}
    >
      <AmountPart {...{ offers, text, setText, minimum }} problem={problem || failure || ""} />
      <MethodPart {...{ offers, method, setMethod }} />
      <div className="mt-4 flex flex-wrap items-center justify-between gap-3">
        <p aria-live="polite">
          <span className="text-muted">{t("topup.payable")}</span>{" "}
          <strong className="text-base tabular-nums" data-testid="payable">
            {cost ? moneyText(cost.money, cost.currency) : "–"}
          </strong>
        </p>
        <button type="submit" className="btn btn-primary" aria-busy={isBusy} aria-disabled={isBusy || !cost}>
          {isBusy ? <span className="loading loading-spinner loading-xs" aria-hidden /> : null}
          {t("topup.payNow")}
        </button>
      </div>
    </form>
  );
}

interface AmountPartProps {
  offers: PayOffers;
  text: string;
  setText: (text: string) => void;
  /** Least units of the chosen method. */
  minimum: number;
  /** What is wrong with the amount; "" for nothing. */
  problem: string;
}

/** The amount as a field in what the site shows, and the offered ones as buttons. */
function AmountPart({ offers, text, setText, minimum, problem: shown }: AmountPartProps) {
  const t = useT();
  const id = useId();
  const { isUnits, symbol } = siteDisplay();
  const typed = unitsTyped(text, offers);
  return (
    <>
      <label className="text-dense font-semibold" htmlFor={id}>
        {t("topup.payAmount")}
      </label>
      <div className="input mt-1 w-full" aria-invalid={shown !== "" || undefined}>
        {isUnits ? null : (
          <span className="text-muted" aria-hidden>
            {symbol}
          </span>
        )}
        <input
          id={id}
          className="grow tabular-nums"
          inputMode="decimal"
          autoComplete="off"
          value={text}
          aria-invalid={shown !== "" || undefined}
          aria-describedby={`${id}-hint`}
          onChange={(event) => setText(event.target.value)}
          onBlur={() => typed === undefined || isOwnCurrency() || setText(amountText(typed))}
        />
      </div>
      <p
        id={`${id}-hint`}
        className={`mt-1 text-xs ${shown === "" ? "text-muted" : "text-error"}`}
        role={shown === "" ? undefined : "alert"}
      >
        {shown === "" && typed !== undefined
          ? t("topup.payHint", {
              amount: formatQuota(typed),
              quota: formatNumber(typed),
              minimum: shortQuota(minimum),
            })
          : shown}
      </p>
      <div className="mt-2 flex flex-wrap gap-2" role="group" aria-label={t("topup.payAmounts")}>
        {offers.amounts.map((each) => {
          const units = unitsOf(each, offers);
          const off = discountText(units, offers);
          return (
            <button
              key={each}
              type="button"
              className="btn btn-sm btn-default tabular-nums"
              aria-pressed={units === typed}
              onClick={() => setText(amountText(units))}
            >
              {shortQuota(units)}
              {off === "" ? null : <span className="text-xs text-success">−{off}</span>}
            </button>
          );
        })}
      </div>
    </>
  );
}

interface MethodPartProps {
  offers: PayOffers;
  method: PayMethod;
  setMethod: (method: PayMethod) => void;
}

function MethodPart({ offers, method, setMethod }: MethodPartProps) {
  const t = useT();
  const id = useId();
  return (
    <fieldset className="mt-4">
      <legend className="text-dense font-semibold">{t("topup.payMethod")}</legend>
      <div className="mt-1 flex flex-wrap gap-2">
        {offers.methods.map((each) => (
          <label
            key={`${each.rail} ${each.type}`}
            className="flex min-h-9 cursor-pointer items-center gap-2 rounded-field border border-base-300 px-3 has-checked:border-primary pointer-coarse:min-h-11"
          >
            <input
              type="radio"
              className="radio radio-sm"
              name={`${id}-method`}
              checked={each === method}
              onChange={() => setMethod(each)}
            />
            <span className="wrap-anywhere">{each.name}</span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}
