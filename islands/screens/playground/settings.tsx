// The settings beside a conversation: group, model, system prompt, temperature, output limit, streaming.
// Refuses models that no channel of the chosen group serves.
import { useId } from "react";
import { shortText } from "../../../src/shared/short-text.ts";
import { groupText } from "../../lib/group-text.ts";
import { useT } from "../../lib/i18n.ts";
import { lazyPart } from "../../lib/lazy-part.tsx";
import type { GroupMap } from "../../lib/wire.ts";
import { RatioBadge } from "../../ui/badges.tsx";
import type { Settings } from "./conversation.ts";
import { ModelPicker } from "./model-picker.tsx";
import { priceText } from "./price-text.ts";
import type { BriefPrice } from "./use-stored.ts";

const FurtherSettings = lazyPart(() => import("./further-settings.tsx"));

/** A group that the visitor may call with. */
export type Group = GroupMap[string] & { name: string };

/** Names that begin with "gpt" come first, as the specification says; otherwise the given order stays. */
export function gptFirst(names: readonly string[]): string[] {
  const isGpt = (name: string) => Number(name.startsWith("gpt"));
  return names.toSorted((a, b) => isGpt(b) - isGpt(a));
}

/** Longer names and descriptions are cut in the list. */
const MOST_LABEL = 60;

/** What stands beside a model first: another one, where there is one. */
function secondOf(models: readonly string[], first: string): string {
  return models.find((name) => name !== first) ?? first;
}

export interface SettingsPanelProps {
  settings: Settings;
  groups: readonly Group[];
  models: readonly string[];
  prices: ReadonlyMap<string, BriefPrice>;
  onChange: (patch: Partial<Settings>) => void;
  onReset: () => void;
}

export function SettingsPanel(props: SettingsPanelProps) {
  const { settings, groups, onChange, onReset } = props;
  const t = useT();
  const id = useId();
  const chosen = groups.find(({ name }) => name === settings.group);
  return (
    <>
      <div className="mb-4">
        <div className="mb-0.5 flex min-h-6 items-center gap-1">
          <label className="text-dense font-semibold" htmlFor={`${id}-group`}>
            {t("playground.group")}
          </label>
          {chosen ? (
            <span className="ml-auto">
              <RatioBadge ratio={chosen.ratio} />
            </span>
          ) : null}
        </div>
        <select
          id={`${id}-group`}
          className="select"
          value={settings.group}
          onChange={(event) => onChange({ group: event.target.value })}
        >
          {groups.map(({ name, desc, ratio }) => (
            <option key={name} value={name}>
              {`${shortText(name, MOST_LABEL)}${desc === "" || desc === name ? "" : ` · ${shortText(groupText(t, desc), MOST_LABEL)}`} · ${ratio}×`}
            </option>
          ))}
        </select>
      </div>
      <Models {...props} groupRatio={chosen?.ratio ?? 1} />
      <div className="mb-4">
        <div className="mb-0.5 flex min-h-6 items-center gap-1">
          <label className="text-dense font-semibold" htmlFor={`${id}-system`}>
            {t("playground.system")}
          </label>
        </div>
        <textarea
          id={`${id}-system`}
          className="textarea"
          rows={4}
          aria-describedby={`${id}-system-hint`}
          value={settings.system}
          onChange={(event) => onChange({ system: event.target.value })}
        />
        <p id={`${id}-system-hint`} className="mt-1 text-xs text-muted">
          {t("playground.systemHint")}
        </p>
      </div>
      <div className="mb-4">
        <div className="mb-0.5 flex min-h-6 items-center gap-1">
          <label className="text-dense font-semibold" htmlFor={`${id}-temperature`}>
            {t("playground.temperature")}
          </label>
          <output htmlFor={`${id}-temperature`} className="ml-auto text-[13px] tabular-nums">
            {settings.temperature}
          </output>
        </div>
        <input
          id={`${id}-temperature`}
          type="range"
          className="w-full accent-primary"
          min={0.1}
          max={1}
          step={0.1}
          value={settings.temperature}
          aria-valuetext={String(settings.temperature)}
          onChange={(event) => onChange({ temperature: Math.round(Number(event.target.value) * 10) / 10 })}
        />
      </div>
      <div className="mb-4">
        <div className="mb-0.5 flex min-h-6 items-center gap-1">
          <label className="text-dense font-semibold" htmlFor={`${id}-max`}>
            {t("playground.maxTokens")}
          </label>
        </div>
        <div className="input">
          <input
            id={`${id}-max`}
            type="number"
            className="grow tabular-nums"
            min={0}
            step={1}
            inputMode="numeric"
            aria-describedby={`${id}-max-hint`}
            value={settings.max_tokens}
            onFocus={(event) => event.target.select()}
            onChange={(event) =>
              onChange({ max_tokens: Math.max(0, Number.parseInt(event.target.value, 10) || 0) })
            }
          />
        </div>
        <p id={`${id}-max-hint`} className="mt-1 text-xs text-muted">
          {t("playground.maxTokensHint")}
        </p>
      </div>
      <label className="flex min-h-8 cursor-pointer items-center gap-4">
        <span className="grow text-dense font-semibold">{t("playground.stream")}</span>
        <input
          type="checkbox"
          role="switch"
          className="toggle"
          checked={settings.isStream}
          onChange={(event) => onChange({ isStream: event.target.checked })}
        />
      </label>
      <FurtherSettings settings={settings} onChange={onChange} />
      <button type="button" className="btn btn-sm btn-ghost mt-3 -ml-3 text-muted" onClick={onReset}>
        {t("playground.reset")}
      </button>
    </>
  );
}

interface ModelsProps extends SettingsPanelProps {
  groupRatio: number;
}

/** The model, and beside it a second one where two are compared; both with what they cost in the group. */
function Models({ settings, models, prices, groupRatio, onChange }: ModelsProps) {
  const t = useT();
  const priceOf = (model: string) => priceText(t, prices.get(model), groupRatio);
  return (
    <>
      <ModelPicker
        models={models}
        value={settings.model}
        priceOf={priceOf}
        onChange={(model) => onChange({ model })}
      />
      <label className="mb-4 flex min-h-8 cursor-pointer items-center gap-4">
        <span className="grow text-dense font-semibold">{t("playground.compare")}</span>
        <input
          type="checkbox"
          role="switch"
          className="toggle"
          checked={settings.other !== ""}
          disabled={settings.model === ""}
          onChange={(event) =>
            onChange({ other: event.target.checked ? secondOf(models, settings.model) : "" })
          }
        />
      </label>
      {settings.other === "" ? null : (
        <ModelPicker
          models={models}
          value={settings.other}
          label={t("playground.secondModel")}
          priceOf={priceOf}
          onChange={(other) => onChange({ other })}
        />
      )}
    </>
  );
}
