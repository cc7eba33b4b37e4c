// The switch that makes new keys automatic: an ordinary option, saved at once, with a way back.
// Refuses to take part in a plan: it moves no price.
import { useSignals } from "@preact/signals-react/runtime";
import { useId, useState } from "react";
import { api, call, failureMessage } from "../../lib/api.ts";
import { useT } from "../../lib/i18n.ts";
import { toast } from "../../lib/toasts.ts";
import type { SectionProps } from "../../ui/price-sheet/section-props.ts";

const KEY = "DefaultUseAutoGroup";

export function AutoDefault({ desk, canApply, reload }: SectionProps) {
  useSignals();
  const t = useT();
  const id = useId();
  const [wanted, setWanted] = useState<boolean>();
  const [failure, setFailure] = useState("");
  const isOn = wanted ?? desk.prices.value?.isAutoDefault === true;
  const name = t(`option.title.${KEY}`);
  const flip = async (to: boolean, isUndo: boolean): Promise<void> => {
    setWanted(to);
    setFailure("");
    try {
      await call(api.option.put({ key: KEY, value: String(to) }));
    } catch (error) {
      setWanted(undefined);
      setFailure(failureMessage(error));
      return;
    }
    toast({
      key: KEY,
      text: t(to ? "desk.sheet.auto.turnedOn" : "desk.sheet.auto.turnedOff", { name }),
      ...(isUndo ? {} : { undo: () => flip(!to, true) }),
    });
    await reload();
    setWanted(undefined);
  };
  return (
    <div className="mt-6 border-t border-base-300 pt-4">
      <label className="flex cursor-pointer items-start justify-between gap-4" htmlFor={id}>
        <span className="font-medium">{name}</span>
        <input
          id={id}
          type="checkbox"
          role="switch"
          className="toggle flex-none"
          checked={isOn}
          disabled={!canApply}
          aria-describedby={`${id}-help`}
          onChange={() => void flip(!isOn, false)}
        />
      </label>
      <p id={`${id}-help`} className="setting-help">
        {t(canApply ? `option.help.${KEY}` : "desk.sheet.auto.switchRoot")}
      </p>
      {failure === "" ? null : (
        <p role="alert" className="mt-1 text-xs text-error">
          {failure}
        </p>
      )}
    </div>
  );
}
