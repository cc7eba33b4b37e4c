// Where a channel calls and with which key: name, address, keys, and the fields that only some providers have.
// Refuses to echo keys: they go in and do not come out.
import { useSignals } from "@preact/signals-react/runtime";
import { channelAddress, CUSTOM_TYPE } from "../../../src/shared/channel-address.ts";
import { keyHint, providerForm, splitsKeysByLine } from "../../../src/shared/provider-forms.ts";
import type { Form } from "../../lib/form.ts";
import { language, useT } from "../../lib/i18n.ts";
import { afterPress } from "../../lib/press.ts";
import type { ChannelRow } from "../../lib/wire.ts";
import { MAX_CHANNEL_NAME } from "../../../src/shared/name-limits.ts";
import { Field, SecretField, Section, SwitchField, TextAreaField, TextField } from "../../ui/form.tsx";
import type { ChannelValues } from "./values.ts";

/** What the provider's row says of one of the editor's fields. */
export function providerField(type: number, name: string) {
  return providerForm(type)?.fields?.find((each) => each.name === name);
}

/** Most addresses end before the version: paths are added to them. */
export function endsInVersion({ baseUrl, type }: ChannelValues): boolean {
  return /\/v1\/*$/.test(baseUrl.trim()) && type !== CUSTOM_TYPE;
}

/** How many keys are typed; of types whose keys have lines, one. */
export function keyCount({ key, type }: ChannelValues): number {
  const lines = key.split("\n").filter((line) => line.trim() !== "").length;
  return splitsKeysByLine(type) ? lines : Math.min(lines, 1);
}

export interface ConnectionPartProps {
  form: Form<ChannelValues>;
  /** undefined: a new channel. */
  row: ChannelRow | undefined;
}

export function ConnectionPart({ form, row }: ConnectionPartProps) {
  const t = useT();
  return (
    <Section title={t("channel.section.connection")}>
      <TextField
        form={form}
        name="name"
        label={t("channel.name")}
        isRequired
        limit={MAX_CHANNEL_NAME}
        input={{ autoFocus: true, autoComplete: "off" }}
      />
      <BaseUrlField form={form} />
      <KeyFields form={form} row={row} />
      <ProviderFields form={form} />
    </Section>
  );
}

function BaseUrlField({ form }: { form: Form<ChannelValues> }) {
  const t = useT();
  useSignals();
  const { values, set } = form;
  const base = providerField(values.type, "base_url");
  const to = language.value;
  return (
    <Field
      form={form}
      name="baseUrl"
      label={base?.label[to] ?? t("channel.baseUrl")}
      isRequired={base?.required === true}
      hint={
        endsInVersion(values) ? (
          <span role="status" className="text-warning-text">
            {t("channel.v1Text")}
          </span>
        ) : (
          (base?.hint?.[to] ?? t("channel.baseUrlHint"))
        )
      }
    >
      {(control) => (
        <input
          {...control}
          type="url"
          name="baseUrl"
          className="input mono"
          placeholder={providerForm(values.type)?.baseUrl ?? ""}
          autoComplete="off"
          spellCheck={false}
          value={values.baseUrl}
          onChange={(event) => set("baseUrl", event.target.value)}
          onBlur={() => {
            const trimmed = channelAddress(values.type, values.baseUrl);
            if (values.baseUrl !== trimmed) afterPress(() => set("baseUrl", trimmed));
            control.onBlur();
          }}
        />
      )}
    </Field>
  );
}

function KeyFields({ form, row }: ConnectionPartProps) {
  const t = useT();
  useSignals();
  const { values } = form;
  const isNew = row === undefined;
  const to = language.value;
  const count = keyCount(values);
  const countText = isNew && !values.keysTogether ? "channel.keyCount" : "channel.keyTurns";
  const hints = [
    isNew ? "" : t(row.key_count > 1 ? "channel.keys.keepAll" : "form.secret.keep"),
    keyHint(values.type)[to],
    count > 1 ? t(countText, { count }) : "",
  ];
  return (
    <>
      <SecretField
        form={form}
        name="key"
        label={providerField(values.type, "key")?.label[to] ?? t("channel.key")}
        isSet={!isNew}
        isRequired={isNew}
        rows={isNew ? 3 : 2}
        hint={hints.filter(Boolean).join(" · ")}
      />
      {isNew && count > 1 ? (
        <SwitchField
          form={form}
          name="keysTogether"
          label={t("channel.keysTogether")}
          hint={t("channel.keysTogetherHint")}
        />
      ) : null}
    </>
  );
}

/** Fields that only some providers have. */
function ProviderFields({ form }: { form: Form<ChannelValues> }) {
  useSignals();
  const to = language.value;
  const other = providerField(form.values.type, "other");
  const organization = providerField(form.values.type, "openai_organization");
  const OtherField = other?.multiline ? TextAreaField : TextField;
  return (
    <>
      {other ? (
        <OtherField
          form={form}
          name="other"
          label={other.label[to]}
          hint={other.hint?.[to]}
          isRequired={other.required === true}
          isMono
        />
      ) : null}
      {organization ? (
        <TextField
          form={form}
          name="organization"
          label={organization.label[to]}
          hint={organization.hint?.[to]}
          isMono
        />
      ) : null}
    </>
  );
}
