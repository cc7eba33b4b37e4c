// The editor's sections on what a channel serves and to whom: models, groups, order, tag, test model, automatic disabling.
import type { Form } from "../../lib/form.ts";
import { useT } from "../../lib/i18n.ts";
import { MAX_TAG } from "../../../src/shared/name-limits.ts";
import { NumberField, Section, SwitchField, TextField } from "../../ui/form.tsx";
import { ModelsPart } from "./models-part.tsx";
import type { ModelsPartProps } from "./models-part.tsx";
import { namesOf } from "./row.ts";
import { TokenField } from "./token-field.tsx";
import type { ChannelValues } from "./values.ts";

export interface RoutingPartProps extends ModelsPartProps {
  form: Form<ChannelValues>;
  groups: readonly string[];
  tags: readonly string[];
}

export default function RoutingPart({ form, row, related, all, groups, tags }: RoutingPartProps) {
  const t = useT();
  return (
    <>
      <Section title={t("channel.section.models")}>
        <ModelsPart form={form} row={row} related={related} all={all} />
      </Section>
      <Section title={t("channel.section.routing")}>
        <TokenField
          form={form}
          name="groups"
          label={t("channel.groups")}
          hint={t("channel.groupsHint")}
          isRequired
          suggestions={groups}
          placeholder={t("channel.addGroup")}
        />
        <div className="grid gap-x-4 sm:grid-cols-2">
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
        <TextField
          form={form}
          name="tag"
          label={t("channel.tag")}
          hint={t("channel.tagHint")}
          limit={MAX_TAG}
          input={{ list: "channel-tags", autoComplete: "off" }}
        />
        <datalist id="channel-tags">
          {tags.map((tag) => (
            <option key={tag} value={tag} />
          ))}
        </datalist>
        <NumberField
          form={form}
          name="maxInputTokens"
          label={t("channel.maxInputTokens")}
          hint={t("channel.maxInputTokensHint")}
          min={0}
          step={1}
        />
        <TextField
          form={form}
          name="testModel"
          label={t("channel.testModel")}
          hint={t("channel.testModelHint")}
          isMono
          input={{ list: "channel-test-models", autoComplete: "off", spellCheck: false }}
        />
        <datalist id="channel-test-models">
          {namesOf(form.values.models)
            .slice(0, 300)
            .map((name) => (
              <option key={name} value={name} />
            ))}
        </datalist>
        <SwitchField
          form={form}
          name="autoBan"
          label={t("channel.autoBan")}
          hint={t("channel.autoBanHint")}
        />
      </Section>
    </>
  );
}
