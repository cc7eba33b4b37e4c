// The controls of the plain kinds: number with its unit, text, address, several lines, a choice of few.
// Refuses to correct what is typed: it stays as it is until it is saved, with what is wrong said below.
import { status } from "../../lib/boot.ts";
import { formatQuota, siteDisplay } from "../../lib/format.ts";
import { t } from "../../lib/i18n.ts";
import type { OptionEditorProps } from "./editor-props.ts";
import { choiceName, unitOf } from "./names.ts";

const SHORTEST_LINES = 3;
const MOST_LINES = 12;

/** What an input takes over from the row around it. */
export function fieldProps({ failure, labelledBy, describedBy, disabled }: OptionEditorProps) {
  return {
    "aria-labelledby": labelledBy,
    "aria-describedby": describedBy,
    "aria-invalid": failure === undefined ? undefined : true,
    disabled,
  };
}

/** Kinds whose control is here from the start; the others come with late-control.tsx. */
export const PLAIN_KINDS = new Set(["number", "choice", "text", "url", "long_text", "lines"]);

export function PlainControl(props: OptionEditorProps) {
  const { option, value, onChange, failure } = props;
  const field = fieldProps(props);
  switch (option.kind) {
    case "number":
      return (
        <div className="input" aria-invalid={failure === undefined ? undefined : true}>
          <input
            {...field}
            className="grow tabular-nums"
            inputMode={option.isWhole ? "numeric" : "decimal"}
            autoComplete="off"
            value={value}
            onChange={(event) => onChange(event.target.value)}
          />
          {option.unit === undefined ? null : (
            <span className="whitespace-nowrap text-muted">{unitOf(option)}</span>
          )}
        </div>
      );
    case "choice":
      return (
        <select
          {...field}
          className="select"
          value={value}
          onChange={(event) => onChange(event.target.value)}
        >
          {option.values?.map((each) => (
            <option key={each} value={each}>
              {choiceName(each)}
            </option>
          ))}
        </select>
      );
    case "long_text":
    case "lines":
      return (
        <textarea
          {...field}
          className={option.kind === "lines" ? "textarea mono" : "textarea"}
          rows={Math.min(MOST_LINES, Math.max(SHORTEST_LINES, value.split("\n").length))}
          spellCheck={option.kind === "long_text"}
          value={value}
          onChange={(event) => onChange(event.target.value)}
        />
      );
    default:
      return (
        <input
          {...field}
          className="input"
          type={option.kind === "url" ? "url" : "text"}
          autoComplete="off"
          spellCheck={false}
          value={value}
          onChange={(event) => onChange(event.target.value)}
        />
      );
  }
}

/** What an amount of quota is worth, where the site shows money. */
export function worthOf({ unit }: OptionEditorProps["option"], value: string): string | undefined {
  const site = status.value;
  if (unit !== "quota" || siteDisplay(site).isUnits) return undefined;
  return /^\d+$/.test(value) ? t("setting.worth", { amount: formatQuota(Number(value), site) }) : undefined;
}
