// An amount as people think of it: typed in the currency that the site shows, kept in whole quota units, the other figure below.
// Refuses to guess: what is no amount becomes NaN, and the form says what is wrong.
import { useState } from "react";
import type { ReactNode } from "react";
import { displayOf, shownAmount } from "../../src/shared/quota-display.ts";
import { quotaOfTyped } from "../../src/shared/quota-typed.ts";
import { status } from "../lib/boot.ts";
import { formatNumber, siteDisplay } from "../lib/format.ts";
import type { Values } from "../lib/form.ts";
import { useT } from "../lib/i18n.ts";
import { typedDigits } from "../lib/typed-number.ts";
import { Field, NO_HINT } from "./form.tsx";
import type { FieldProps } from "./form.tsx";

/** Six decimals name every single unit at the default price of a unit. */
const DECIMALS = 6;

/** Dollars without a trailing zero: 0.2, 1, 12.5. Of exports and of what keeps dollars, whatever the site shows. */
export function dollarsText(quota: number): string {
  return String(Number((quota / siteDisplay().quotaPerUnit).toFixed(DECIMALS)));
}

/** Whole units are never parted by a comma: there it can only stand between thousands. */
const GROUPED_UNITS = /^\d{1,3}(?:[,，]\d{3})+$/;

/** Another currency's sign or code: the same digits are another amount there. */
const OTHER_CURRENCY = /[\p{Sc}元]|[a-z]{3}/iu;

/** What was typed without its sign and symbol, as lib/typed-number.ts reads it. */
function readTyped(text: string) {
  const display = displayOf(status.peek());
  const trimmed = text.trim().replace(/^[$＄]/, "");
  const amount = (trimmed.startsWith(display.symbol) ? trimmed.slice(display.symbol.length) : trimmed).trim();
  const sign = /^[+-]/.exec(amount)?.[0] ?? "";
  const plain = amount.slice(sign.length);
  if (OTHER_CURRENCY.test(plain)) return { display, sign, problem: "number" as const };
  const isGrouped = display.type === "TOKENS" && GROUPED_UNITS.test(plain);
  return {
    display,
    sign,
    ...(isGrouped ? { digits: plain.replaceAll(/[,，]/g, "") } : typedDigits(plain)),
  };
}

/** Whole units of what was typed; undefined when it is no finite number, or may be read as two: "1,234". */
export function quotaOf(text: string): number | undefined {
  const read = readTyped(text);
  return "digits" in read ? quotaOfTyped(read.sign + read.digits, read.display) : undefined;
}

/** What the form has of a text: undefined when empty, NaN when it is no amount. */
const valueOfText = (text: string): number | undefined =>
  text.trim() === "" ? undefined : (quotaOf(text) ?? Number.NaN);

/** The amount as this site has it typed, without its symbol. */
export function amountText(quota: number): string {
  return String(Number(shownAmount(quota, displayOf(status.peek())).toFixed(DECIMALS)));
}

function isAmount(value: number | undefined): value is number {
  return value !== undefined && Number.isFinite(value);
}

/** The same amount in the other unit: "100,000 quota" below money, "$0.2" below quota. */
function useOtherUnit(): (quota: number) => string {
  const t = useT();
  return (quota) =>
    siteDisplay().isUnits
      ? `= $${dollarsText(quota)}`
      : t("form.money.quota", { quota: formatNumber(quota) });
}

export interface MoneyFieldProps<V extends Values> extends Omit<FieldProps<V>, "children" | "isGroup"> {
  /** Whole units to choose from. */
  presets?: readonly number[];
  /** Names the group of presets. */
  presetsLabel?: string;
  hint?: ReactNode;
  /** The first thing to fill in. */
  hasFocus?: boolean;
}

/** The form's value is a whole number of units; undefined when empty, NaN when it is no amount. */
export function MoneyField<V extends Values>({
  presets = [],
  presetsLabel,
  hint,
  hasFocus = false,
  ...field
}: MoneyFieldProps<V>) {
  const { form, name } = field;
  const value = form.values[name] as number | undefined;
  const t = useT();
  const otherUnit = useOtherUnit();
  const [text, setText] = useState<string>();
  // What was typed stands as long as it means the value; a preset or a revert replaces it.
  const shown =
    text !== undefined && Object.is(valueOfText(text), value)
      ? text
      : isAmount(value)
        ? amountText(value)
        : "";
  const { isUnits, symbol } = siteDisplay();
  const read = readTyped(shown);
  const isAmbiguous = "problem" in read && read.problem === "ambiguous";
  const note = isAmount(value)
    ? otherUnit(value)
    : isAmbiguous
      ? t("form.money.ambiguous", { text: shown })
      : NO_HINT;
  const set = (quota: number | undefined) => form.set(name, quota as V[typeof name]);
  return (
    <>
      <Field {...field} hint={isAmbiguous ? note : (hint ?? note)}>
        {(control) => (
          <div className="input" aria-invalid={control["aria-invalid"]}>
            {isUnits ? null : (
              <span className="text-muted" aria-hidden>
                {symbol}
              </span>
            )}
            <input
              {...control}
              name={name}
              className="grow tabular-nums"
              inputMode="decimal"
              autoComplete="off"
              disabled={field.isDisabled}
              data-autofocus={hasFocus ? "" : undefined}
              value={shown}
              onChange={(event) => {
                setText(event.target.value);
                set(valueOfText(event.target.value));
              }}
            />
          </div>
        )}
      </Field>
      {presets.length > 0 ? (
        <div className="flex flex-wrap gap-2 -mt-2 mb-4" role="group" aria-label={presetsLabel}>
          {presets.map((quota) => (
            <button
              key={quota}
              type="button"
              className="btn btn-sm btn-default"
              aria-pressed={quota === value}
              onClick={() => set(quota)}
            >
              {isUnits ? formatNumber(quota) : symbol + amountText(quota)}
            </button>
          ))}
        </div>
      ) : null}
    </>
  );
}
