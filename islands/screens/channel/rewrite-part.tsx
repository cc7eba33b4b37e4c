// How a channel rewrites calls: model names, parameters, statuses, and its own settings; fields in place of JSON.
import type { Form } from "../../lib/form.ts";
import { useT } from "../../lib/i18n.ts";
import { SelectField, SwitchField, TextAreaField, TextField } from "../../ui/form.tsx";
import { MapField } from "../../ui/map-editor.tsx";
import type { ChannelValues } from "./values.ts";

export interface RewritePartProps {
  form: Form<ChannelValues>;
  models: readonly string[];
  upstreamModels: readonly string[];
}

export default function RewritePart({ form, models, upstreamModels }: RewritePartProps) {
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
      <MapField
        form={form}
        name="paramOverride"
        label={t("channel.paramOverride")}
        hint={t("channel.paramOverrideHint")}
        kind="json"
        keyLabel={t("channel.paramName")}
        valueLabel={t("channel.paramValue")}
        keySuggestions={["temperature", "top_p", "max_tokens", "stream_options", "reasoning_effort", "stop"]}
        keyPlaceholder="temperature"
        valuePlaceholder="0"
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
