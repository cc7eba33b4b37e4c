// The drawer that makes and changes API keys.
// Refuses a key without a name and an expiry that is no date; the rest is the server's to refuse.
import { DrawerForm } from "../../ui/drawer.tsx";
import {
  NumberField,
  Section,
  SelectField,
  SwitchField,
  TextAreaField,
  TextField,
  Field,
} from "../../ui/form.tsx";
import { useState } from "react";
import { shortText } from "../../../src/shared/short-text.ts";
import { ApiFailure, api, call } from "../../lib/api.ts";
import { status } from "../../lib/boot.ts";
import { useForm } from "../../lib/form.ts";
import { formatDollars, formatNumber } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import { useWhole } from "../../lib/whole.ts";
import { toastFailure } from "../../lib/toasts.ts";
import type { GroupMap, TokenPageData, TokenRow, TokenValues } from "./row.ts";
import {
  batchName,
  bodyOf,
  COUNT_PRESETS,
  isNameLong,
  localText,
  NEW_TOKEN,
  QUOTA_PRESETS,
  secondsOf,
  valuesOf,
  wrongIpLine,
} from "./row.ts";

const HOUR = 3600;
/** From so many models on there is a search over them, and no more than these stand there at once. */
const FEW_CHIPS = 20;
const MOST_CHIPS = 100;
/** Longer names and descriptions are cut in lists of choices. */
const MOST_LABEL = 80;
const EXPIRY_PICKS = [
  ["never", 0],
  ["hour", HOUR],
  ["day", 24 * HOUR],
  ["month", 30 * 24 * HOUR],
] as const;

export interface TokenDrawerProps {
  /** undefined: a new key. */
  row: TokenRow | undefined;
  isOpen: boolean;
  onClose: () => void;
  onSaved: (created: TokenRow[]) => void;
  data: TokenPageData;
}

export default function TokenDrawer({ row, isOpen, onClose, onSaved, data }: TokenDrawerProps) {
  const t = useT();
  const perUnit = status.peek().quota_per_unit || 500_000;
  const isNew = row === undefined;
  const [isBadDate, setBadDate] = useState(false);
  const form = useForm<TokenValues>({
    initial: row ? valuesOf(row) : NEW_TOKEN,
    ...(isNew ? { draftKey: "token" } : {}),
    validate: (values) => ({
      ...(values.name.trim() === ""
        ? { name: t("token.nameMissing") }
        : isNameLong(values.name, isNew ? (values.count ?? 1) : 1)
          ? { name: t("token.nameLong") }
          : {}),
      ...(!values.unlimited && values.quota === undefined ? { quota: t("form.required") } : {}),
      ...(!values.unlimited && values.quota !== undefined && !Number.isInteger(values.quota)
        ? { quota: t("token.badQuota") }
        : {}),
      ...(isBadDate || secondsOf(values.expires) === undefined ? { expires: t("token.badExpiry") } : {}),
      ...(wrongIpLine(values.ips) === undefined
        ? {}
        : { ips: t("token.badIp", { line: wrongIpLine(values.ips) ?? "" }) }),
      ...(isNew && (values.count === undefined || values.count < 1 || values.count > 100)
        ? { count: t("token.badCount") }
        : {}),
    }),
  });
  const { values, set } = form;
  const isCut = data.isCut === true;
  const { all: groups } = useWhole<GroupMap>(data.groups, isCut, () => call(api.user.self.groups.get()));
  const { all: models } = useWhole<readonly string[]>(data.models, isCut && values.limitModels, () =>
    call(api.user.models.get({ query: {} })),
  );

  const save = async (_: TokenValues, changed: Partial<TokenValues>) => {
    const body = bodyOf(values);
    if (row) {
      // Only what was changed: calls have gone on spending since the row was loaded.
      await atField(call(api.token.put({ id: row.id, ...pickChanged(body, changed) })));
      onSaved([]);
      return;
    }
    const created: TokenRow[] = [];
    try {
      for (let index = 0; index < (values.count ?? 1); index++) {
        const made = call(api.token.post({ ...body, name: batchName(body.name, index) }));
        created.push((await atField(made)) as TokenRow);
      }
    } catch (error) {
      if (created.length === 0) throw error;
      // Some exist already: they are shown, and the form is not offered once more for the same batch.
      toastFailure(error);
    }
    onSaved(created);
  };

  return (
    <DrawerForm
      form={form}
      isOpen={isOpen}
      isNew={isNew}
      title={row ? t("token.edit", { name: row.name }) : t("token.new")}
      saveLabel={row ? t("common.save") : t("common.create")}
      onClose={onClose}
      onSave={save}
      curl={(now) => ({
        method: row ? "PUT" : "POST",
        path: "/api/token/",
        body: row ? { id: row.id, ...bodyOf(now) } : bodyOf(now),
      })}
    >
      <TextField
        form={form}
        name="name"
        label={t("token.name")}
        isRequired
        input={{ maxLength: 30, autoFocus: true, autoComplete: "off" }}
      />
      <SwitchField
        form={form}
        name="unlimited"
        label={t("token.unlimited")}
        hint={t("token.unlimitedHint")}
      />
      {values.unlimited ? null : (
        <>
          <NumberField
            form={form}
            name="quota"
            label={t("token.quota")}
            min={0}
            step={1}
            hint={values.quota === undefined ? undefined : `= ${formatDollars(values.quota / perUnit)}`}
          />
          <div className="flex flex-wrap gap-2 -mt-2 mb-4" role="group" aria-label={t("token.quotaPresets")}>
            {QUOTA_PRESETS.map((dollars) => (
              <button
                key={dollars}
                type="button"
                className="btn btn-sm btn-default"
                onClick={() => set("quota", dollars * perUnit)}
              >
                ${dollars}
              </button>
            ))}
          </div>
        </>
      )}
      <Field
        form={form}
        name="expires"
        label={t("token.expires")}
        hint={values.expires === "" ? t("common.never") : undefined}
      >
        {(control) => (
          <input
            {...control}
            type="datetime-local"
            className="input"
            value={values.expires}
            onChange={(event) => {
              setBadDate(event.target.validity.badInput);
              set("expires", event.target.value);
            }}
            // A date that was typed in part reads as empty, which would mean "never".
            onInput={(event) => setBadDate(event.currentTarget.validity.badInput)}
          />
        )}
      </Field>
      <div className="flex flex-wrap gap-2 -mt-2 mb-4" role="group" aria-label={t("token.expiryPicks")}>
        {EXPIRY_PICKS.map(([name, seconds]) => (
          <button
            key={name}
            type="button"
            className="btn btn-sm btn-default"
            onClick={() => {
              setBadDate(false);
              set("expires", seconds === 0 ? "" : localText(Math.floor(Date.now() / 1000) + seconds));
            }}
          >
            {t(`token.expiry.${name}`)}
          </button>
        ))}
      </div>
      <SelectField
        form={form}
        name="group"
        label={t("token.group")}
        hint={t("token.groupHint")}
        choices={[
          { value: "", label: t("token.groupOwn") },
          ...(values.group === "" || Object.hasOwn(groups, values.group)
            ? []
            : [{ value: values.group, label: values.group }]),
          ...Object.entries(groups).map(([name, { desc, ratio }]) => ({
            value: name,
            label: `${shortText(name, MOST_LABEL)} · ${shortText(desc, MOST_LABEL)} · ${ratio}×`,
          })),
        ]}
      />
      <Section title={t("token.limits")} isFolded={!values.limitModels && values.ips === ""}>
        <SwitchField
          form={form}
          name="limitModels"
          label={t("token.limitModels")}
          hint={t("token.limitModelsHint")}
        />
        {values.limitModels ? (
          <TextAreaField
            form={form}
            name="models"
            label={t("token.models")}
            hint={t("token.modelsHint")}
            rows={4}
            isMono
          />
        ) : null}
        {values.limitModels && models.length > 0 ? (
          <ModelPicker all={models} text={values.models} onChange={(next) => set("models", next)} />
        ) : null}
        <TextAreaField
          form={form}
          name="ips"
          label={t("token.ips")}
          hint={t("token.ipsHint")}
          rows={3}
          isMono
        />
      </Section>
      {isNew ? (
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
          <div className="flex flex-wrap gap-2 -mt-2 mb-4" role="group" aria-label={t("token.countPresets")}>
            {COUNT_PRESETS.map((count) => (
              <button
                key={count}
                type="button"
                className="btn btn-sm btn-default"
                onClick={() => set("count", count)}
              >
                {count}
              </button>
            ))}
          </div>
        </>
      ) : null}
    </DrawerForm>
  );
}

type TokenBody = ReturnType<typeof bodyOf>;

/** Names of the body's fields by those of the form. */
const FIELD_OF = {
  name: "name",
  unlimited: "unlimited_quota",
  quota: "remain_quota",
  expires: "expired_time",
  group: "group",
  limitModels: "model_limits_enabled",
  models: "model_limits",
  ips: "allow_ips",
} as const satisfies Record<string, keyof TokenBody>;

/** A refused field of the body belongs to the form's field of another name. */
async function atField<T>(running: Promise<T>): Promise<T> {
  try {
    return await running;
  } catch (error) {
    const field = error instanceof ApiFailure ? error.field : undefined;
    const own = Object.entries(FIELD_OF).find(([, wire]) => wire === field)?.[0];
    if (!(error instanceof ApiFailure) || own === undefined) throw error;
    throw new ApiFailure(
      error.code,
      error.status,
      error.message,
      own,
      error.retryAfterSeconds,
      error.requestId,
    );
  }
}

function pickChanged(body: TokenBody, changed: Partial<TokenValues>): Partial<TokenBody> {
  const names = Object.keys(changed).flatMap((name) => FIELD_OF[name as keyof typeof FIELD_OF] ?? []);
  return Object.fromEntries(names.map((name) => [name, body[name]]));
}

/** Adds and removes models of the list by pressing their names. */
function ModelPicker({
  all,
  text,
  onChange,
}: {
  all: readonly string[];
  text: string;
  onChange: (text: string) => void;
}) {
  const t = useT();
  const [term, setTerm] = useState("");
  const chosen = new Set(text.split(/[\s,]+/).filter((name) => name !== ""));
  const found = all.filter((name) => name.toLowerCase().includes(term.trim().toLowerCase()));
  const more = found.length - MOST_CHIPS;
  return (
    <div className="mb-4" role="group" aria-label={t("token.pickModels")}>
      {all.length > FEW_CHIPS ? (
        <input
          type="search"
          className="input input-sm mb-2"
          aria-label={t("common.choices.search")}
          placeholder={t("common.choices.search")}
          value={term}
          onChange={(event) => setTerm(event.target.value)}
          // Enter looks for a model here, it does not save the key.
          onKeyDown={(event) => event.key === "Enter" && event.preventDefault()}
        />
      ) : null}
      <div className="flex flex-wrap gap-1 max-h-40 overflow-auto">
        {found.slice(0, MOST_CHIPS).map((name) => (
          <button
            key={name}
            type="button"
            className="badge badge-ghost badge-sm mono"
            aria-pressed={chosen.has(name)}
            data-tone={chosen.has(name) ? "running" : undefined}
            onClick={() => {
              if (!chosen.delete(name)) chosen.add(name);
              onChange([...chosen].join(","));
            }}
          >
            {name}
          </button>
        ))}
      </div>
      <p className="mt-1 text-xs text-muted" role="status">
        {more > 0 ? t("common.choices.more", { count: more, number: formatNumber(more) }) : null}
      </p>
    </div>
  );
}
