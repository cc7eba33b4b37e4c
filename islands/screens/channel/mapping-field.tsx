// The model mapping of the tag editor, a part of its own: the map editor is fetched beside the drawer.
import type { Form } from "../../lib/form.ts";
import { useT } from "../../lib/i18n.ts";
import { MapField } from "../../ui/map-editor.tsx";
import { namesOf } from "./row.ts";
import type { TagValues } from "./tag-drawer.tsx";

export default function MappingField({ form, isDisabled }: { form: Form<TagValues>; isDisabled: boolean }) {
  const t = useT();
  return (
    <MapField
      form={form}
      name="modelMapping"
      label={t("channel.modelMapping")}
      kind="text"
      keyLabel={t("channel.mappingFrom")}
      valueLabel={t("channel.mappingTo")}
      keySuggestions={namesOf(form.values.models)}
      isDisabled={isDisabled}
    />
  );
}
