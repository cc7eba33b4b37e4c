// What stands around one option of a panel: its name, its explanation, why it was refused, and the way back to its default.
import { RotateCcw } from "lucide-react";
import type { ReactNode } from "react";
import { useT } from "../../../lib/i18n.ts";
import type { OptionRow } from "../editor-props.ts";
import type { OptionPanelProps } from "./panel-props.ts";

export interface PanelBlockProps {
  row: OptionRow;
  panel: OptionPanelProps;
  /** Given what names and describes it. */
  children: (about: {
    labelledBy: string;
    describedBy: string;
    failure: string | undefined;
    value: string;
    onChange: (text: string) => void;
  }) => ReactNode;
}

export function PanelBlock({ row, panel, children }: PanelBlockProps) {
  const t = useT();
  const { key } = row;
  const value = panel.value(key);
  const failure = panel.failureOf(key);
  const title = t(`option.title.${key}`);
  const onChange = (text: string) => panel.onChange(key, text);
  return (
    <div id={key} data-option={key} className="setting-line">
      <div className="flex flex-wrap items-center gap-x-2">
        <p className="font-medium" id={`${key}-name`}>
          {title}
        </p>
        {value === row.default || row.isLong === true ? null : (
          <button
            type="button"
            className="btn btn-ghost btn-xs"
            aria-label={t("editor.resetNamed", { name: title })}
            onClick={() => onChange(row.default)}
          >
            <RotateCcw aria-hidden size={12} />
            {t("editor.reset")}
          </button>
        )}
      </div>
      <p className="setting-help mb-2 text-dense text-muted" id={`${key}-help`}>
        {t(`option.help.${key}`)}
      </p>
      {row.isLong === true ? (
        <div className="skeleton h-24" aria-hidden />
      ) : (
        children({ labelledBy: `${key}-name`, describedBy: `${key}-help`, failure, value, onChange })
      )}
      <FailureLine text={failure} />
    </div>
  );
}

export function FailureLine({ text }: { text: string | undefined }) {
  return text === undefined ? null : (
    <p className="mt-1 text-xs text-error" role="alert">
      {text}
    </p>
  );
}
