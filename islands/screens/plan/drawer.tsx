// The drawer that makes a plan or changes one.
// Refuses a plan without a price, a title or a quota; the rest is the server's to judge.
import {
  MAX_PLAN_DESCRIPTION,
  MAX_PLAN_TITLE,
  PLAN_RESETS,
  PLAN_UNITS,
} from "../../../src/shared/plan-terms.ts";
import type { PlanReset, PlanStack, PlanUnit } from "../../../src/shared/plan-terms.ts";
import { payableOf } from "../../../src/shared/currencies.ts";
import { api, call } from "../../lib/api.ts";
import { useForm } from "../../lib/form.ts";
import type { Form } from "../../lib/form.ts";
import { useT } from "../../lib/i18n.ts";
import type { Plan } from "../../lib/wire.ts";
import { DrawerForm } from "../../ui/drawer.tsx";
import { NumberField, SelectField, SwitchField, TextAreaField, TextField } from "../../ui/form.tsx";
import { MoneyField } from "../../ui/money-field.tsx";

interface PlanValues extends Record<string, unknown> {
  title: string;
  description: string;
  price: string;
  currency: string;
  wallet_price: number | undefined;
  duration_unit: PlanUnit;
  duration_count: number | undefined;
  reset: PlanReset;
  quota: number | undefined;
  group: string;
  overflow: boolean;
  max_per_user: number | undefined;
  stack: PlanStack;
  enabled: boolean;
  reason: string;
}

const MOST_REASON = 1000;

export interface PlanDrawerProps {
  /** undefined: a new one. */
  row: Plan | undefined;
  groups: readonly string[];
  /** Proposed for a new one. */
  currency: string;
  onClose: () => void;
  onSaved: () => void;
}

function valuesOf(row: Plan | undefined, currency: string): PlanValues {
  if (!row)
    return {
      title: "",
      description: "",
      price: "",
      currency,
      wallet_price: undefined,
      duration_unit: "month",
      duration_count: 1,
      reset: "none",
      quota: undefined,
      group: "",
      overflow: true,
      max_per_user: 0,
      stack: "extend",
      enabled: true,
      reason: "",
    };
  const { id: _, created_at: __, updated_at: ___, sold: ____, running: _____, ...terms } = row;
  return {
    ...terms,
    currency: row.currency || currency,
    wallet_price: row.wallet_price === 0 ? undefined : row.wallet_price,
    reason: "",
  };
}

/** As the call takes them: an empty price is none. */
function bodyOf(values: PlanValues) {
  const price = values.price.trim();
  return {
    ...values,
    title: values.title.trim(),
    description: values.description.trim(),
    price,
    currency: price === "" ? "" : values.currency.trim(),
    wallet_price: values.wallet_price ?? 0,
    duration_count: values.duration_count ?? 0,
    quota: values.quota ?? 0,
    max_per_user: values.max_per_user ?? 0,
    reason: values.reason.trim(),
  };
}

/** Terms that say something only together: a price is one of a currency. */
const TOGETHER: readonly (readonly (keyof PlanValues)[])[] = [
  ["price", "currency"],
  ["duration_unit", "duration_count"],
];

/** What the call of a change sends: a term that somebody else changed meanwhile stays as it now is. */
function changedBody(before: PlanValues, values: PlanValues): Partial<ReturnType<typeof bodyOf>> {
  const [old, body] = [bodyOf(before), bodyOf(values)];
  const changed = new Set(
    Object.keys(body).filter((name) => body[name as keyof typeof body] !== old[name as keyof typeof old]),
  );
  for (const terms of TOGETHER)
    if (terms.some((name) => changed.has(String(name)))) for (const name of terms) changed.add(String(name));
  return Object.fromEntries(Object.entries(body).filter(([name]) => changed.has(name)));
}

export default function PlanDrawer({ row, groups, currency, onClose, onSaved }: PlanDrawerProps) {
  const t = useT();
  const initial = valuesOf(row, currency);
  const form = useForm<PlanValues>({
    initial,
    ...(row ? { awayKey: `plan ${row.id}` } : { draftKey: "plan" }),
    validate: ({ title, price, currency: code, wallet_price: units, quota }) => {
      const minor = price.trim() === "" ? 0 : payableOf(price.trim(), code.trim());
      return {
        ...(title.trim() === "" ? { title: t("plans.noTitle") } : {}),
        ...(minor === undefined || (price.trim() !== "" && minor === 0)
          ? { price: t("plans.badPrice") }
          : {}),
        ...(minor === 0 && !units ? { price: t("plans.noPrice") } : {}),
        ...(units !== undefined && !(units > 0) ? { wallet_price: t("plans.badQuota") } : {}),
        ...(quota === undefined || !(quota > 0) ? { quota: t("plans.badQuota") } : {}),
      };
    },
  });
  return (
    <DrawerForm
      form={form}
      isOpen
      isNew={row === undefined}
      title={row ? t("plans.editNamed", { title: row.title }) : t("plans.new")}
      saveLabel={row ? t("common.save") : t("common.create")}
      onClose={onClose}
      onSave={async (saved) => {
        if (row) await call(api.plan({ id: row.id }).put(changedBody(initial, saved)));
        else await call(api.plan.post(bodyOf(saved)));
        onSaved();
      }}
      curl={() => ({
        method: row ? "PUT" : "POST",
        path: row ? `/api/plan/${row.id}` : "/api/plan/",
        body: row ? changedBody(initial, form.values) : bodyOf(form.values),
      })}
    >
      {row && row.running > 0 ? (
        <p className="mb-4 text-dense text-muted">{t("plans.keepsTerms", { count: row.running })}</p>
      ) : null}
      <PlanFields form={form} groups={groups} />
    </DrawerForm>
  );
}

/** All terms, in the order in which a buyer asks for them. */
function PlanFields({ form, groups }: { form: Form<PlanValues>; groups: readonly string[] }) {
  const t = useT();
  const { values } = form;
  return (
    <>
      <TextField
        form={form}
        name="title"
        label={t("plans.name")}
        isRequired
        limit={MAX_PLAN_TITLE}
        input={{ autoFocus: true, autoComplete: "off" }}
      />
      <TextAreaField
        form={form}
        name="description"
        label={t("plans.description")}
        limit={MAX_PLAN_DESCRIPTION}
      />
      <div className="grid gap-x-4 sm:grid-cols-2">
        <TextField
          form={form}
          name="price"
          label={t("plans.price")}
          hint={t("plans.priceHint")}
          input={{ inputMode: "decimal", autoComplete: "off" }}
        />
        <TextField
          form={form}
          name="currency"
          label={t("plans.currency")}
          hint={t("plans.currencyHint")}
          input={{ autoComplete: "off" }}
        />
      </div>
      <MoneyField
        form={form}
        name="wallet_price"
        label={t("plans.walletPrice")}
        hint={t("plans.walletPriceHint")}
      />
      <div className="grid gap-x-4 sm:grid-cols-2">
        <NumberField form={form} name="duration_count" label={t("plans.lasts")} isRequired min={1} step={1} />
        <SelectField
          form={form}
          name="duration_unit"
          label={t("plans.unit")}
          choices={PLAN_UNITS.map((unit) => ({ value: unit, label: t(`plans.unitName.${unit}`) }))}
        />
      </div>
      <SelectField
        form={form}
        name="reset"
        label={t("plans.reset")}
        hint={t("plans.resetHint")}
        choices={PLAN_RESETS.map((reset) => ({ value: reset, label: t(`plans.resetName.${reset}`) }))}
      />
      <MoneyField form={form} name="quota" label={t("plans.quota")} isRequired />
      <SwitchField form={form} name="overflow" label={t("plans.overflow")} hint={t("plans.overflowHint")} />
      <SelectField
        form={form}
        name="group"
        label={t("plans.group")}
        hint={t("plans.groupHint")}
        choices={[
          { value: "", label: t("plans.noGroup") },
          ...[...new Set([...groups, values.group])]
            .filter((name) => name !== "")
            .map((name) => ({ value: name, label: name })),
        ]}
      />
      <SelectField
        form={form}
        name="stack"
        label={t("plans.stack")}
        choices={[
          { value: "extend", label: t("plans.stackExtend") },
          { value: "parallel", label: t("plans.stackParallel") },
        ]}
      />
      <NumberField
        form={form}
        name="max_per_user"
        label={t("plans.most")}
        hint={t("plans.mostHint")}
        min={0}
        step={1}
      />
      <SwitchField form={form} name="enabled" label={t("plans.on")} hint={t("plans.onHint")} />
      <TextField
        form={form}
        name="reason"
        label={t("plans.reason")}
        hint={t("plans.whyHint")}
        limit={MOST_REASON}
        input={{ autoComplete: "off" }}
      />
    </>
  );
}
