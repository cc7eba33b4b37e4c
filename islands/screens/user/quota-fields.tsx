// The change of a balance: add, take or set, with the balance before and after it in plain sight.
import { status } from "../../lib/boot.ts";
import type { Form } from "../../lib/form.ts";
import { formatQuota } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import { MoneyField } from "../../ui/money-field.tsx";
import { DEFAULT_QUOTA_PER_UNIT } from "../../../src/shared/money.ts";
import { balanceAfter, MODES } from "./row.ts";
import type { QuotaValues } from "./row.ts";

const PRESET_DOLLARS = [1, 10, 50, 100] as const;

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
        label={t(mode === "set" ? "user.newBalance" : "user.amount")}
        presets={PRESET_DOLLARS.map((dollars) => dollars * perUnit)}
        presetsLabel={t("user.amountPresets")}
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
      </dl>
    </>
  );
}
