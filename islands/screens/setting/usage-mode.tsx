// The two switches of the usage mode as the one choice that they are: external operation, self-use or demonstration.
import { useSignals } from "@preact/signals-react/runtime";
import { useT } from "../../lib/i18n.ts";
import type { Settings } from "./state.ts";

/** Drawn here in place of their rows. */
export const MODE_KEYS: readonly string[] = ["SelfUseModeEnabled", "DemoSiteEnabled"];
const MODES = ["external", "self", "demo"] as const;

export function UsageMode({ settings }: { settings: Settings }) {
  useSignals();
  const t = useT();
  const typed = settings.drafts.value;
  void settings.rows.value;
  const isDemo = settings.value("DemoSiteEnabled") === "true";
  const isSelf = settings.value("SelfUseModeEnabled") === "true";
  const current = isDemo ? "demo" : isSelf ? "self" : "external";
  const choose = (mode: (typeof MODES)[number]) => {
    settings.set("SelfUseModeEnabled", String(mode === "self"));
    settings.set("DemoSiteEnabled", String(mode === "demo"));
  };
  const failure = MODE_KEYS.flatMap((key) => settings.failures.value.get(key) ?? []).at(0);
  return (
    <fieldset id={MODE_KEYS[0]} data-option={MODE_KEYS.join(" ")} className="setting-line">
      <legend className="contents">
        <span className="font-medium" id={MODE_KEYS[1]}>
          {t("setup.mode.legend")}
          {MODE_KEYS.some((key) => typed.has(key)) ? (
            <span className="badge badge-soft badge-primary badge-sm ml-2">{t("setting.unsaved")}</span>
          ) : null}
        </span>
      </legend>
      <div className="mt-2 grid gap-2 lg:grid-cols-3">
        {MODES.map((mode) => (
          <label
            key={mode}
            className="flex cursor-pointer gap-3 rounded-box border border-base-300 p-3 hover:bg-base-200 has-checked:border-primary has-checked:bg-primary/5"
          >
            <input
              type="radio"
              className="radio mt-0.5 flex-none"
              name="usage-mode"
              checked={mode === current}
              aria-labelledby={`mode-${mode}`}
              aria-describedby={`mode-${mode}-text`}
              onChange={() => choose(mode)}
            />
            <span className="min-w-0">
              <span id={`mode-${mode}`} className="block font-medium">
                {t(`setup.mode.${mode}`)}
              </span>
              <span id={`mode-${mode}-text`} className="mt-0.5 block text-xs text-muted">
                {t(`setup.mode.${mode}Text`)}
              </span>
            </span>
          </label>
        ))}
      </div>
      {failure === undefined ? null : (
        <p className="mt-1 text-xs text-error" role="alert">
          {failure}
        </p>
      )}
    </fieldset>
  );
}
