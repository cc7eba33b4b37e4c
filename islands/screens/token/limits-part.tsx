// The limits of an API key: which models it may call, and from where.
import { useState } from "react";
import { api, call } from "../../lib/api.ts";
import { useCompleteChoices } from "../../lib/complete-choices.ts";
import { status } from "../../lib/boot.ts";
import { formatDollars, formatNumber, siteDisplay } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import { NumberField, Section, SwitchField, TextAreaField } from "../../ui/form.tsx";
import type { TokenForm } from "./drawer-parts.tsx";
import { modelNamesOf } from "./row.ts";
import type { TokenPageData } from "./row.ts";

/** From so many models on there is a search over them, and no more than these stand there at once. */
const FEW_CHIPS = 20;
const MOST_CHIPS = 100;

export function LimitsPart({ form, data }: { form: TokenForm; data: TokenPageData }) {
  const t = useT();
  const { limitModels, models: text, ips, maxQuota } = form.values;
  const perUnit = status.peek().quota_per_unit || 500_000;
  const { all: models } = useCompleteChoices<readonly string[]>(
    data.models,
    data.isCut === true && limitModels,
    () => call(api.user.models.get({ query: {} })),
  );
  return (
    <Section title={t("token.limits")} isFolded={!limitModels && ips === "" && maxQuota === undefined}>
      <NumberField
        form={form}
        name="maxQuota"
        label={t("token.maxQuota")}
        min={0}
        step={1}
        hint={
          maxQuota === undefined
            ? t("token.maxQuotaHint")
            : t("token.maxQuotaIs", { dollars: formatDollars(maxQuota / perUnit, siteDisplay()) })
        }
      />
      <SwitchField
        form={form}
        name="limitModels"
        label={t("token.limitModels")}
        hint={t("token.limitModelsHint")}
      />
      {limitModels ? (
        <TextAreaField
          form={form}
          name="models"
          label={t("token.models")}
          hint={t("token.modelsHint")}
          rows={4}
          isMono
        />
      ) : null}
      {limitModels && models.length > 0 ? (
        <ModelPicker all={models} text={text} onChange={(next) => form.set("models", next)} />
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
  );
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
  const chosen = new Set(modelNamesOf(text));
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
