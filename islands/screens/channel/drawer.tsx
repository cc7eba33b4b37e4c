// The channel editor: provider, connection, models, routing, rewrite.
// Refuses a channel without name, key (when new) or models, and texts that are no JSON; keys are never echoed.
import {
  keyHint,
  offeredProviders,
  providerForm,
  splitsKeysByLine,
} from "../../../src/shared/provider-forms.ts";
import { api, call } from "../../lib/api.ts";
import { useForm } from "../../lib/form.ts";
import { language, useT } from "../../lib/i18n.ts";
import { confirm } from "../../ui/confirm.tsx";
import { DrawerForm } from "../../ui/drawer.tsx";
import {
  NumberField,
  SecretField,
  Section,
  SelectField,
  SwitchField,
  TextAreaField,
  TextField,
} from "../../ui/form.tsx";
import type { ChannelPageData, ChannelRow, ChannelValues } from "./row.ts";
import { bodyOf, isJsonObject, namesOf, NEW_CHANNEL, valuesOf } from "./row.ts";

export interface ChannelDrawerProps {
  /** undefined: a new channel. */
  row: ChannelRow | undefined;
  isOpen: boolean;
  onClose: () => void;
  onSaved: () => void;
  data: ChannelPageData;
}

const JSON_FIELDS = ["modelMapping", "statusCodeMapping", "paramOverride", "setting"] as const;

export default function ChannelDrawer({ row, isOpen, onClose, onSaved, data }: ChannelDrawerProps) {
  const t = useT();
  const isNew = row === undefined;
  const form = useForm<ChannelValues>({
    initial: row ? valuesOf(row) : NEW_CHANNEL,
    ...(isNew ? { draftKey: "channel", secrets: ["key"] as const } : {}),
    validate: (values) => ({
      ...(values.name.trim() === "" ? { name: t("channel.nameMissing") } : {}),
      ...(isNew && values.key.trim() === "" ? { key: t("channel.keyMissing") } : {}),
      ...(namesOf(values.models).length === 0 ? { models: t("channel.modelsMissing") } : {}),
      ...(namesOf(values.groups).length === 0 ? { groups: t("form.required") } : {}),
      ...Object.fromEntries(
        JSON_FIELDS.filter((name) => !isJsonObject(values[name])).map((name) => [
          name,
          t(name === "modelMapping" ? "channel.mappingNotJson" : "channel.notJson"),
        ]),
      ),
    }),
  });
  const { values, set } = form;
  const provider = providerForm(values.type);
  const presets = data.presets[String(values.type)] ?? [];
  const fieldOf = (name: string) => provider?.fields?.find((each) => each.name === name);
  const base = fieldOf("base_url");
  const other = fieldOf("other");
  const organization = fieldOf("openai_organization");
  const known = offeredProviders();
  const choices = provider && !known.includes(provider) ? [provider, ...known] : known;
  const count = !splitsKeysByLine(values.type)
    ? 1
    : values.key.split("\n").filter((line) => line.trim() !== "").length;

  const save = async () => {
    if (/\/v1\/?$/.test(values.baseUrl.trim()) && values.type !== 8) {
      const goOn = await confirm({
        title: t("channel.v1Title"),
        text: t("channel.v1Text"),
        action: t("channel.v1Action"),
      });
      if (!goOn) throw new DOMException("kept open", "AbortError");
    }
    const body = bodyOf(values);
    await (row
      ? call(api.channel.put({ id: row.id, ...body }))
      : call(api.channel.post({ key: "", ...body })));
    onSaved();
  };

  const changeType = (type: number) => {
    const preset = providerForm(type)?.fields?.find((each) => each.name === "other")?.defaultValue;
    if (values.other === "" && preset !== undefined) set("other", preset);
    if (isNew && values.models === "") set("models", (data.presets[String(type)] ?? []).join(","));
  };

  return (
    <DrawerForm
      form={form}
      isOpen={isOpen}
      isNew={isNew}
      width="wide"
      title={row ? t("channel.edit", { name: row.name }) : t("channel.new")}
      saveLabel={row ? t("common.save") : t("common.create")}
      onClose={onClose}
      onSave={save}
    >
      <Section title={t("channel.section.provider")}>
        <SelectField
          form={form}
          name="type"
          label={t("channel.type")}
          choices={choices.map((each) => ({ value: each.id, label: each.label[language.peek()] }))}
        />
        <button
          type="button"
          className="btn btn-sm btn-default -mt-2 mb-4"
          onClick={() => changeType(values.type)}
          disabled={presets.length === 0}
        >
          {t("channel.applyPreset")}
        </button>
        <TextField
          form={form}
          name="name"
          label={t("channel.name")}
          isRequired
          input={{ autoFocus: true, autoComplete: "off" }}
        />
      </Section>
      <Section title={t("channel.section.connection")}>
        <TextField
          form={form}
          name="baseUrl"
          label={base?.label[language.peek()] ?? t("channel.baseUrl")}
          isRequired={base?.required === true}
          hint={base?.hint?.[language.peek()] ?? t("channel.baseUrlHint")}
          type="url"
          isMono
          input={{ placeholder: provider?.baseUrl ?? "", autoComplete: "off", spellCheck: false }}
        />
        <SecretField
          form={form}
          name="key"
          label={t("channel.key")}
          isSet={!isNew}
          isRequired={isNew}
          rows={isNew ? 3 : 2}
          hint={
            isNew
              ? count > 1
                ? t("channel.keyCount", { count })
                : keyHint(values.type)[language.peek()]
              : t("form.secret.keep")
          }
        />
        {other ? (
          <TextField
            form={form}
            name="other"
            label={other.label[language.peek()]}
            hint={other.hint?.[language.peek()]}
            isRequired={other.required === true}
            isMono
          />
        ) : null}
        {organization ? (
          <TextField
            form={form}
            name="organization"
            label={organization.label[language.peek()]}
            hint={organization.hint?.[language.peek()]}
            isMono
          />
        ) : null}
      </Section>
      <Section title={t("channel.section.models")}>
        <TextAreaField
          form={form}
          name="models"
          label={t("channel.models", { count: namesOf(values.models).length })}
          hint={t("channel.modelsHint")}
          rows={5}
          isMono
          isRequired
        />
        <div className="flex flex-wrap gap-2 -mt-2 mb-4">
          <button
            type="button"
            className="btn btn-sm btn-default"
            disabled={presets.length === 0}
            onClick={() => set("models", namesOf(`${values.models},${presets.join(",")}`).join(","))}
          >
            {t("channel.fillPreset", { count: presets.length })}
          </button>
          <button
            type="button"
            className="btn btn-sm btn-default"
            disabled={values.models === ""}
            onClick={() => set("models", "")}
          >
            {t("channel.clearModels")}
          </button>
        </div>
      </Section>
      <Section title={t("channel.section.routing")}>
        <TextField
          form={form}
          name="groups"
          label={t("channel.groups")}
          hint={t("channel.groupsHint", { groups: data.groups.join(", ") })}
          isRequired
        />
        <div className="grid gap-4 sm:grid-cols-2">
          <NumberField
            form={form}
            name="priority"
            label={t("channel.priority")}
            hint={t("channel.priorityHint")}
            min={-999}
            step={1}
          />
          <NumberField
            form={form}
            name="weight"
            label={t("channel.weight")}
            hint={t("channel.weightHint")}
            min={0}
            step={1}
          />
        </div>
        <TextField form={form} name="tag" label={t("channel.tag")} hint={t("channel.tagHint")} />
        <SwitchField
          form={form}
          name="autoBan"
          label={t("channel.autoBan")}
          hint={t("channel.autoBanHint")}
        />
        <TextField form={form} name="testModel" label={t("channel.testModel")} isMono />
      </Section>
      <Section
        title={t("channel.section.rewrite")}
        isFolded={JSON_FIELDS.every((name) => values[name] === "")}
        count={JSON_FIELDS.filter((name) => values[name] !== "").length}
      >
        <TextAreaField
          form={form}
          name="modelMapping"
          label={t("channel.modelMapping")}
          hint={t("channel.modelMappingHint")}
          rows={3}
          isMono
          placeholder={'{"gpt-4o": "gpt-4o-2024-11-20"}'}
        />
        <TextAreaField
          form={form}
          name="paramOverride"
          label={t("channel.paramOverride")}
          hint={t("channel.paramOverrideHint")}
          rows={3}
          isMono
          placeholder={'{"temperature": 0}'}
        />
        <TextAreaField
          form={form}
          name="statusCodeMapping"
          label={t("channel.statusMapping")}
          hint={t("channel.statusMappingHint")}
          rows={2}
          isMono
          placeholder={'{"400": "500"}'}
        />
        <TextAreaField
          form={form}
          name="setting"
          label={t("channel.setting")}
          hint={t("channel.settingHint")}
          rows={2}
          isMono
        />
      </Section>
    </DrawerForm>
  );
}
