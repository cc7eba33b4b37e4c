// The change of a balance: add or take, why, what of the day's ceiling is left, the balance before and after in plain sight.
import { useEffect, useState } from "react";
import { api, call } from "../../lib/api.ts";
import { status } from "../../lib/boot.ts";
import type { Form } from "../../lib/form.ts";
import { formatQuota } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import { TextField } from "../../ui/form.tsx";
import { MoneyField } from "../../ui/money-field.tsx";
import { DEFAULT_QUOTA_PER_UNIT } from "../../../src/shared/money.ts";
import { balanceAfter, MODES } from "./values.ts";
import type { QuotaValues } from "./values.ts";

const MAX_REASON = 200;
const PRESET_DOLLARS = [1, 10, 50, 100] as const;

/** What one may still change today; undefined: as much as one likes, or not known yet. */
function useCeilingLeft(): number | undefined {
  const [left, setLeft] = useState<number>();
  useEffect(() => {
    let isGone = false;
    call(api.user.ceiling.get())
      .then((found) => {
        if (!isGone) setLeft((found as { left: number | null }).left ?? undefined);
      })
      // The call itself refuses what is too much.
      .catch(() => undefined);
    return () => {
      isGone = true;
    };
  }, []);
  return left;
}

export function QuotaFields<V extends QuotaValues>({
  form,
  before,
  hasFocus = false,
}: {
  form: Form<V>;
  before: number;
  hasFocus?: boolean;
}) {
  const t = useT();
  const { mode } = form.values;
  const after = balanceAfter(before, form.values);
  const left = useCeilingLeft();
  const perUnit = status.peek().quota_per_unit || DEFAULT_QUOTA_PER_UNIT;
  return (
    <>
      <fieldset className="mb-4">
        <legend className="text-dense font-semibold">{t("user.quotaMode")}</legend>
        <div className="join mt-1">
          {MODES.map((each) => (
            <input
              key={each}
              type="radio"
              name="mode"
              className="btn btn-sm join-item"
              aria-label={t(`user.mode.${each}`)}
              checked={mode === each}
              onChange={() => form.set("mode", each as V["mode"])}
            />
          ))}
        </div>
      </fieldset>
      <MoneyField
        form={form}
        name="amount"
        hasFocus={hasFocus}
        label={t("user.amount")}
        presets={PRESET_DOLLARS.map((dollars) => dollars * perUnit)}
        presetsLabel={t("user.amountPresets")}
      />
      <TextField
        form={form}
        name="reason"
        label={t("user.reason")}
        hint={t("user.reasonHint")}
        limit={MAX_REASON}
        input={{ autoComplete: "off" }}
      />
      <dl className="facts" aria-live="polite">
        <div>
          <dt>{t("user.balanceBefore")}</dt>
          <dd className="tabular-nums">{formatQuota(before)}</dd>
        </div>
        <div>
          <dt>{t("user.balanceAfter")}</dt>
          <dd className={`tabular-nums font-semibold ${after < 0 ? "text-error" : ""}`}>
            {formatQuota(after)}
          </dd>
        </div>
        {left === undefined ? null : (
          <div>
            <dt>{t("user.ceilingLeft")}</dt>
            <dd className="tabular-nums">{formatQuota(left)}</dd>
          </div>
        )}
      </dl>
    </>
  );
}
