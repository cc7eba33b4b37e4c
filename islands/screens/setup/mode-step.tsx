// Third step: three usage modes as cards, each saying what it turns on or off.
// Refuses none of them: the first is chosen from the start.
import { useId } from "react";
import type { Form } from "../../lib/form.ts";
import { useT } from "../../lib/i18n.ts";
import type { SetupValues } from "./values.ts";
import { MODES } from "./values.ts";

export function ModeStep({ form }: { form: Form<SetupValues> }) {
  const t = useT();
  const id = useId();
  return (
    <fieldset>
      <legend className="sr-only">{t("setup.mode.legend")}</legend>
      <div className="flex flex-col gap-2">
        {MODES.map((mode) => (
          <label
            key={mode}
            className="flex cursor-pointer gap-3 rounded-box border border-base-300 p-3 hover:bg-base-200 has-checked:border-primary has-checked:bg-primary/5"
          >
            <input
              type="radio"
              className="radio mt-0.5 flex-none"
              name="mode"
              value={mode}
              checked={form.values.mode === mode}
              aria-labelledby={`${id}-${mode}`}
              aria-describedby={`${id}-${mode}-text`}
              onChange={() => form.set("mode", mode)}
            />
            <span className="min-w-0">
              <span id={`${id}-${mode}`} className="block font-semibold">
                {t(`setup.mode.${mode}`)}
              </span>
              <span id={`${id}-${mode}-text`} className="block">
                <span className="block">{t(`setup.mode.${mode}Text`)}</span>
                <span className="mt-1 block text-xs text-muted">{t(`setup.mode.${mode}On`)}</span>
              </span>
            </span>
          </label>
        ))}
      </div>
      <p className="mt-1 text-xs text-muted mt-2">{t("setup.mode.changeable")}</p>
    </fieldset>
  );
}
