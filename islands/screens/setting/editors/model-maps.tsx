// Editors of the maps that Claude and Gemini channels read: tables that know what a value may be, raw JSON beside them.
import { useT } from "../../../lib/i18n.ts";
import type { MapKind } from "../../../lib/json-map.ts";
import { MapEditor } from "../../../ui/map-editor.tsx";
import type { OptionEditorProps } from "../editor-props.ts";

interface MapColumns {
  kind: MapKind;
  keyLabel: string;
  valueLabel: string;
  keySuggestions?: readonly string[];
  valueSuggestions?: readonly string[];
}

/** The key-value editor with heads that say what the two columns are. */
function NamedMap({
  option,
  value,
  onChange,
  failure,
  describedBy,
  disabled,
  ...columns
}: OptionEditorProps & MapColumns) {
  const t = useT();
  return (
    <MapEditor
      {...columns}
      label={t(`option.title.${option.key}`)}
      keyLabel={t(columns.keyLabel)}
      valueLabel={t(columns.valueLabel)}
      value={value.trim() === "{}" ? "" : value}
      // A map with nothing in it is written as one, so that it is told from a field that was never filled in.
      onChange={(text) => onChange(text === "" ? "{}" : text)}
      describedBy={describedBy}
      isInvalid={failure === undefined ? undefined : true}
      isDisabled={disabled}
    />
  );
}

/** What applies to models without a line of their own stands under this name. */
const DEFAULT_NAME = ["default"];

/** model -> tokens. */
export function ClaudeMaxTokens(props: OptionEditorProps) {
  return (
    <NamedMap
      {...props}
      kind="number"
      keyLabel="editor.map.model"
      valueLabel="editor.map.maxTokens"
      keySuggestions={DEFAULT_NAME}
    />
  );
}

/** model -> version of the interface. */
export function GeminiVersions(props: OptionEditorProps) {
  return (
    <NamedMap
      {...props}
      kind="text"
      keyLabel="editor.map.model"
      valueLabel="editor.map.version"
      keySuggestions={DEFAULT_NAME}
      valueSuggestions={["v1", "v1beta", "v1alpha"]}
    />
  );
}
