// The drawer that makes a plan or changes one.
// Refuses a plan without a price, a title or a quota; the rest is the server's to judge.
import {
  MAX_PLAN_DESCRIPTION,
  MAX_PLAN_TITLE,
  PLAN_RESETS,
  PLAN_UNITS,
} from "../../../src/shared/plan-terms.ts";
import type { PlanReset, PlanStack, PlanUnit } from "../../../src/shared/plan-terms.ts";
import { minorOf } from "../../../src/shared/currencies.ts";
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
}

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
    };
  const { id: _, created_at: __, updated_at: ___, sold: ____, running: _____, ...terms } = row;
  return {
    ...terms,
    currency: row.currency || currency,
    wallet_price: row.wallet_price === 0 ? undefined : row.wallet_price,
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
  };
}

export default function PlanDrawer({ row, groups, currency, onClose, onSaved }: PlanDrawerProps) {
  const t = useT();
  const form = useForm<PlanValues>({
    initial: valuesOf(row, currency),
    ...(row ? {} : { draftKey: "plan" }),
    validate: ({ title, price, currency: code, wallet_price: units, quota }) => {
      const minor = price.trim() === "" ? 0 : minorOf(price.trim(), code.trim());
      return {
        ...(title.trim() === "" ? { title: t("plan.noTitle") } : {}),
        ...(minor === undefined || (price.trim() !== "" && minor === 0) ? { price: t("plan.badPrice") } : {}),
        ...(minor === 0 && !units ? { price: t("plan.noPrice") } : {}),
        ...(units !== undefined && !(units > 0) ? { wallet_price: t("plan.badQuota") } : {}),
        ...(quota === undefined || !(quota > 0) ? { quota: t("plan.badQuota") } : {}),
      };
    },
  });
  const body = bodyOf(form.values);
  return (
    <DrawerForm
      form={form}
      isOpen
      isNew={row === undefined}
      title={row ? t("plan.editNamed", { title: row.title }) : t("plan.new")}
      saveLabel={row ? t("common.save") : t("common.create")}
      onClose={onClose}
      onSave={async (saved) => {
        if (row) await call(api.plan({ id: row.id }).put(bodyOf(saved)));
        else await call(api.plan.post(bodyOf(saved)));
        onSaved();
      }}
      curl={() => ({
        method: row ? "PUT" : "POST",
        path: row ? `/api/plan/${row.id}` : "/api/plan/",
        body,
      })}
    >
      {row && row.running > 0 ? (
        <p className="mb-4 text-dense text-muted">{t("plan.keepsTerms", { count: row.running })}</p>
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
        label={t("plan.name")}
        isRequired
        limit={MAX_PLAN_TITLE}
        input={{ autoFocus: true, autoComplete: "off" }}
      />
      <TextAreaField
        form={form}
        name="description"
        label={t("plan.description")}
        limit={MAX_PLAN_DESCRIPTION}
      />
      <div className="grid gap-x-4 sm:grid-cols-2">
        <TextField
          form={form}
          name="price"
          label={t("plan.price")}
          hint={t("plan.priceHint")}
          input={{ inputMode: "decimal", autoComplete: "off" }}
        />
        <TextField
          form={form}
          name="currency"
          label={t("plan.currency")}
          hint={t("plan.currencyHint")}
          input={{ autoComplete: "off" }}
        />
      </div>
      <MoneyField
        form={form}
        name="wallet_price"
        label={t("plan.walletPrice")}
        hint={t("plan.walletPriceHint")}
      />
      <div className="grid gap-x-4 sm:grid-cols-2">
        <NumberField form={form} name="duration_count" label={t("plan.lasts")} isRequired min={1} step={1} />
        <SelectField
          form={form}
          name="duration_unit"
          label={t("plan.unit")}
          choices={PLAN_UNITS.map((unit) => ({ value: unit, label: t(`plan.unitName.${unit}`) }))}
        />
      </div>
      <SelectField
        form={form}
        name="reset"
        label={t("plan.reset")}
        hint={t("plan.resetHint")}
        choices={PLAN_RESETS.map((reset) => ({ value: reset, label: t(`plan.resetName.${reset}`) }))}
      />
      <MoneyField form={form} name="quota" label={t("plan.quota")} isRequired />
      <SwitchField form={form} name="overflow" label={t("plan.overflow")} hint={t("plan.overflowHint")} />
      <SelectField
        form={form}
        name="group"
        label={t("plan.group")}
        hint={t("plan.groupHint")}
        choices={[
          { value: "", label: t("plan.noGroup") },
          ...[...new Set([...groups, values.group])]
            .filter((name) => name !== "")
            .map((name) => ({ value: name, label: name })),
        ]}
      />
      <SelectField
        form={form}
        name="stack"
        label={t("plan.stack")}
        choices={[
          { value: "extend", label: t("plan.stackExtend") },
          { value: "parallel", label: t("plan.stackParallel") },
        ]}
      />
      <NumberField
        form={form}
        name="max_per_user"
        label={t("plan.most")}
        hint={t("plan.mostHint")}
        min={0}
        step={1}
      />
      <SwitchField form={form} name="enabled" label={t("plan.on")} hint={t("plan.onHint")} />
    </>
  );
}
