// Parts of the API key's drawer: quota, expiry, group, and how many are made.
import { AUTO_GROUP } from "../../../src/shared/auto-group.ts";
import { shortText } from "../../../src/shared/short-text.ts";
import { api, call } from "../../lib/api.ts";
import { status } from "../../lib/boot.ts";
import { useCompleteChoices } from "../../lib/complete-choices.ts";
import { localText } from "../../lib/date-field.ts";
import type { Form } from "../../lib/form.ts";
import { formatDollars, formatMoney, siteDisplay } from "../../lib/format.ts";
import { groupText } from "../../lib/group-text.ts";
import { useT } from "../../lib/i18n.ts";
import type { GroupMap } from "../../lib/wire.ts";
import { Field, NO_HINT, NumberField, SelectField, SwitchField } from "../../ui/form.tsx";
import { AutoPart } from "./auto-part.tsx";
import { COUNT_PRESETS, QUOTA_PRESETS } from "./row.ts";
import type { TokenPageData, TokenValues } from "./row.ts";

const HOUR = 3600;
/** Longer names and descriptions are cut in lists of choices. */
const MOST_LABEL = 80;
const EXPIRY_PICKS = [
  ["never", 0],
  ["hour", HOUR],
  ["day", 24 * HOUR],
  ["month", 30 * 24 * HOUR],
] as const;

export type TokenForm = Form<TokenValues>;

interface Preset {
  label: string;
  onPick: () => void;
}

/** Values that are offered below a field. */
function Presets({ label, presets }: { label: string; presets: readonly Preset[] }) {
  return (
    <div className="flex flex-wrap gap-2 -mt-2 mb-4" role="group" aria-label={label}>
      {presets.map((preset) => (
        <button key={preset.label} type="button" className="btn btn-sm btn-default" onClick={preset.onPick}>
          {preset.label}
        </button>
      ))}
    </div>
  );
}

export function QuotaPart({ form }: { form: TokenForm }) {
  const t = useT();
  const perUnit = status.peek().quota_per_unit || 500_000;
  const { quota, unlimited } = form.values;
  return (
    <>
      <SwitchField
        form={form}
        name="unlimited"
        label={t("token.unlimited")}
        hint={t("token.unlimitedHint")}
      />
      {unlimited ? null : (
        <>
          <NumberField
            form={form}
            name="quota"
            label={t("token.quota")}
            min={0}
            step={1}
            hint={quota === undefined ? NO_HINT : `= ${formatDollars(quota / perUnit, siteDisplay())}`}
          />
          <Presets
            label={t("token.quotaPresets")}
            presets={QUOTA_PRESETS.map((dollars) => ({
              label: formatMoney(dollars).replace(/\.00$/, ""),
              onPick: () => form.set("quota", dollars * perUnit),
            }))}
          />
        </>
      )}
    </>
  );
}

export function ExpiryPart({ form, onBadDate }: { form: TokenForm; onBadDate: (isBad: boolean) => void }) {
  const t = useT();
  const { expires } = form.values;
  const inSeconds = (seconds: number) =>
    seconds === 0 ? "" : localText(Math.floor(Date.now() / 1000) + seconds);
  return (
    <>
      <Field
        form={form}
        name="expires"
        label={t("token.expires")}
        hint={expires === "" ? t("common.never") : NO_HINT}
      >
        {(control) => (
          <input
            {...control}
            type="datetime-local"
            className="input"
            value={expires}
            onChange={(event) => {
              onBadDate(event.target.validity.badInput);
              form.set("expires", event.target.value);
            }}
            // A date that was typed in part reads as empty, which would mean "never".
            onInput={(event) => onBadDate(event.currentTarget.validity.badInput)}
          />
        )}
      </Field>
      <Presets
        label={t("token.expiryPicks")}
        presets={EXPIRY_PICKS.map(([name, seconds]) => ({
          label: t(`token.expiry.${name}`),
          onPick: () => {
            onBadDate(false);
            form.set("expires", inSeconds(seconds));
          },
        }))}
      />
    </>
  );
}

export function GroupPart({ form, data }: { form: TokenForm; data: TokenPageData }) {
  const t = useT();
  const { group } = form.values;
  const { all: groups } = useCompleteChoices<GroupMap>(data.groups, data.isCut === true, () =>
    call(api.user.self.groups.get()),
  );
  const isAuto = group === AUTO_GROUP;
  // With one group there is nothing to choose from.
  const offersAuto = isAuto || data.auto.length > 0 || Object.keys(groups).length > 1;
  const select = (
    <SelectField
      form={form}
      name="group"
      label={t("token.group")}
      hint={isAuto ? t("token.groupAutoHint") : t("token.groupHint")}
      choices={[
        { value: "", label: t("token.groupOwn") },
        ...(offersAuto ? [{ value: AUTO_GROUP, label: t("token.groupAuto") }] : []),
        ...(group === "" || isAuto || Object.hasOwn(groups, group) ? [] : [{ value: group, label: group }]),
        ...Object.entries(groups).map(([name, { desc, ratio }]) => ({
          value: name,
          label: `${shortText(name, MOST_LABEL)} · ${shortText(groupText(t, desc), MOST_LABEL)} · ${ratio}×`,
        })),
      ]}
    />
  );
  return (
    <>
      {select}
      {isAuto ? <AutoPart form={form} groups={groups} site={data.auto} /> : null}
    </>
  );
}

/** How many keys of these values are made. */
export function CountPart({ form }: { form: TokenForm }) {
  const t = useT();
  return (
    <>
      <NumberField
        form={form}
        name="count"
        label={t("token.count")}
        hint={t("token.countHint")}
        min={1}
        max={100}
        step={1}
      />
      <Presets
        label={t("token.countPresets")}
        presets={COUNT_PRESETS.map((count) => ({
          label: String(count),
          onPick: () => form.set("count", count),
        }))}
      />
    </>
  );
}
