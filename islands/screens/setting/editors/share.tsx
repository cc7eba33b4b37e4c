// A share from 10 to 100 percent: a slider beside the number, which stay in step.
import { useT } from "../../../lib/i18n.ts";
import type { OptionEditorProps } from "../editor-props.ts";

const LEAST = 0.1;
const MOST = 1;
const STEP = 0.05;

export function ShareEditor(props: OptionEditorProps) {
  const { value, onChange, failure, labelledBy, describedBy, disabled } = props;
  const t = useT();
  const share = Number(value);
  const isShare = value.trim() !== "" && share >= LEAST && share <= MOST;
  return (
    <div>
      <div className="flex items-center gap-3">
        <input
          type="range"
          className="min-w-0 max-w-80 grow accent-primary"
          min={LEAST}
          max={MOST}
          step={STEP}
          aria-labelledby={labelledBy}
          aria-valuetext={
            isShare ? t("editor.share.percent", { percent: Math.round(share * 100) }) : undefined
          }
          disabled={disabled}
          value={isShare ? share : LEAST}
          onChange={(event) => onChange(String(Number(event.target.value)))}
        />
        <input
          className="input input-sm w-20 text-right tabular-nums"
          inputMode="decimal"
          autoComplete="off"
          aria-labelledby={labelledBy}
          aria-describedby={describedBy}
          aria-invalid={!isShare || failure !== undefined || undefined}
          disabled={disabled}
          value={value}
          onChange={(event) => onChange(event.target.value)}
        />
        <span className="w-12 text-muted tabular-nums">
          {isShare ? t("editor.share.percent", { percent: Math.round(share * 100) }) : ""}
        </span>
      </div>
      {isShare ? null : (
        <p className="mt-1 text-xs text-error" role="alert">
          {t("editor.share.wrong")}
        </p>
      )}
    </div>
  );
}
