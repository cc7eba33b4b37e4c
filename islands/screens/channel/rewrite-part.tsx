// How a channel rewrites calls: model names, parameters, statuses, and its own settings; fields in place of JSON.
import { FlaskConical } from "lucide-react";
import { useState } from "react";
import type { Form } from "../../lib/form.ts";
import { useT } from "../../lib/i18n.ts";
import { SelectField, SwitchField, TextAreaField, TextField } from "../../ui/form.tsx";
import { MapField } from "../../ui/map-editor.tsx";
import { RulesField } from "./rules/rules-field.tsx";
import { TryPart } from "./rules/try-part.tsx";
import type { TryPartProps } from "./rules/try-part.tsx";
import type { ChannelValues } from "./values.ts";

/** Fields of requests that only leave where they are switched on. */
const GATES = [
  "allowInferenceGeo",
  "allowSpeed",
  "allowSafetyIdentifier",
  "allowIncludeObfuscation",
  "disableStore",
  "claudeBetaQuery",
  "sessionHint",
  "sendTraceparent",
] as const;

export interface RewritePartProps {
  form: Form<ChannelValues>;
  /** undefined: it is not saved yet. */
  channelId: number | undefined;
  models: readonly string[];
  upstreamModels: readonly string[];
}

/** Rules of body and headers, and what they make of a request. */
function RulesPart({ form, channelId, model }: TryPartProps) {
  const t = useT();
  const [isTrying, setTrying] = useState(false);
  return (
    <>
      <RulesField form={form} />
      <MapField
        form={form}
        name="headerOverride"
        label={t("channel.headerOverride")}
        hint={t("channel.headerOverrideHint")}
        kind="text"
        keyLabel={t("channel.headerName")}
        valueLabel={t("channel.headerValue")}
        keySuggestions={["anthropic-beta", "user-agent", "x-request-id", "*", "re:^x-trace-"]}
        keyPlaceholder="anthropic-beta"
        valuePlaceholder="{client_header:x-team}"
      />
      {isTrying ? (
        <TryPart form={form} channelId={channelId} model={model} />
      ) : (
        <button type="button" className="btn btn-sm btn-default mb-6" onClick={() => setTrying(true)}>
          <FlaskConical aria-hidden size={14} />
          {t("channel.try.open")}
        </button>
      )}
    </>
  );
}

export default function RewritePart({ form, channelId, models, upstreamModels }: RewritePartProps) {
  const t = useT();
  return (
    <>
      <MapField
        form={form}
        name="modelMapping"
        label={t("channel.modelMapping")}
        hint={t("channel.modelMappingHint")}
        kind="text"
        keyLabel={t("channel.mappingFrom")}
        valueLabel={t("channel.mappingTo")}
        keySuggestions={models}
        valueSuggestions={upstreamModels}
        keyPlaceholder="gpt-4o"
        valuePlaceholder="gpt-4o-2024-11-20"
      />
      <RulesPart form={form} channelId={channelId} model={models[0] ?? ""} />
      <TextAreaField
        form={form}
        name="systemPrompt"
        label={t("channel.systemPrompt")}
        hint={t("channel.systemPromptHint")}
        rows={3}
      />
      <SwitchField
        form={form}
        name="systemPromptFirst"
        label={t("channel.systemPromptFirst")}
        hint={t("channel.systemPromptFirstHint")}
      />
      <SwitchField
        form={form}
        name="passThrough"
        label={t("channel.passThrough")}
        hint={t("channel.passThroughHint")}
      />
      <MapField
        form={form}
        name="statusCodeMapping"
        label={t("channel.statusMapping")}
        hint={t("channel.statusMappingHint")}
        kind="text"
        keyLabel={t("channel.statusFrom")}
        valueLabel={t("channel.statusTo")}
        keySuggestions={["400", "401", "403", "404", "429", "500", "502", "503", "529"]}
        valueSuggestions={["429", "500", "503"]}
        keyPlaceholder="400"
        valuePlaceholder="500"
      />
      <SwitchField
        form={form}
        name="forceFormat"
        label={t("channel.forceFormat")}
        hint={t("channel.forceFormatHint")}
      />
      <SwitchField
        form={form}
        name="thinkingToContent"
        label={t("channel.thinkingToContent")}
        hint={t("channel.thinkingToContentHint")}
      />
      <SwitchField
        form={form}
        name="allowServiceTier"
        label={t("channel.allowServiceTier")}
        hint={t("channel.allowServiceTierHint")}
      />
      {GATES.map((name) => (
        <SwitchField
          key={name}
          form={form}
          name={name}
          label={t(`channel.${name}`)}
          hint={t(`channel.${name}Hint`)}
        />
      ))}
      <SelectField
        form={form}
        name="responses"
        label={t("channel.responses")}
        hint={t("channel.responsesHint")}
        choices={[
          { value: "", label: t("channel.responsesAuto") },
          { value: "native", label: t("channel.responsesNative") },
          { value: "convert", label: t("channel.responsesConvert") },
        ]}
      />
      <TextField
        form={form}
        name="proxy"
        label={t("channel.proxy")}
        hint={t("channel.proxyHint")}
        isMono
        input={{ placeholder: "socks5://127.0.0.1:1080", autoComplete: "off", spellCheck: false }}
      />
      <TextAreaField
        form={form}
        name="allowNetworks"
        label={t("channel.allowNetworks")}
        hint={t("channel.allowNetworksHint")}
        rows={2}
        isMono
        placeholder={"10.0.0.0/8"}
      />
      <MapField
        form={form}
        name="otherSettings"
        label={t("channel.otherSettings")}
        hint={t("channel.otherSettingsHint")}
        kind="json"
        keyLabel={t("channel.paramName")}
        valueLabel={t("channel.paramValue")}
      />
    </>
  );
}
