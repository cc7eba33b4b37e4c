// Settings that few calls need, folded: sampling, repetition, seed, effort of thinking. Empty ones are not sent.
import { useId } from "react";
import { useT } from "../../lib/i18n.ts";
import type { Settings } from "./conversation.ts";

const NUMBERS = [
  { name: "top_p", min: 0, max: 1, step: 0.05 },
  { name: "frequency_penalty", min: -2, max: 2, step: 0.1 },
  { name: "presence_penalty", min: -2, max: 2, step: 0.1 },
  { name: "seed", min: 0, max: 2_147_483_647, step: 1 },
] as const;

const EFFORTS = ["minimal", "low", "medium", "high"] as const;

export interface FurtherSettingsProps {
  settings: Settings;
  onChange: (patch: Partial<Settings>) => void;
}

export default function FurtherSettings({ settings, onChange }: FurtherSettingsProps) {
  const t = useT();
  const id = useId();
  const count = [...NUMBERS.map(({ name }) => settings[name]), settings.reasoning_effort].filter(
    Boolean,
  ).length;
  return (
    <details className="mt-2">
      <summary className="min-h-8 cursor-pointer py-1.5 text-dense font-semibold">
        {t("playground.further")}
        {count > 0 ? <span className="badge badge-ghost badge-sm ml-2">{count}</span> : null}
      </summary>
      <p className="mb-2 text-xs text-muted">{t("playground.furtherHint")}</p>
      {NUMBERS.map(({ name, ...range }) => (
        <div key={name} className="mb-2 flex items-center gap-2">
          <label htmlFor={`${id}-${name}`} className="grow text-[13px]">
            {t(`playground.setting.${name}`)}
          </label>
          <div className="input w-28 flex-none">
            <input
              id={`${id}-${name}`}
              type="number"
              className="grow tabular-nums"
              inputMode="decimal"
              {...range}
              value={settings[name]}
              onChange={(event) => onChange({ [name]: event.target.value })}
            />
          </div>
        </div>
      ))}
      <div className="mb-2 flex items-center gap-2">
        <label htmlFor={`${id}-effort`} className="grow text-[13px]">
          {t("playground.setting.reasoning_effort")}
        </label>
        <select
          id={`${id}-effort`}
          className="select w-28 flex-none"
          value={settings.reasoning_effort}
          onChange={(event) => onChange({ reasoning_effort: event.target.value })}
        >
          <option value="">{t("playground.notSent")}</option>
          {EFFORTS.map((effort) => (
            <option key={effort} value={effort}>
              {effort}
            </option>
          ))}
        </select>
      </div>
    </details>
  );
}
