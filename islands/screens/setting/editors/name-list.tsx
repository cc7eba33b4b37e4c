// A JSON list of names as lines of text, raw JSON beside it.
import { useState } from "react";
import { useT } from "../../../lib/i18n.ts";
import type { OptionEditorProps } from "../editor-props.ts";
import { besideOf, JsonBeside } from "./json-beside.tsx";

function read(text: string): string[] | undefined {
  try {
    const list = JSON.parse(text.trim() === "" ? "[]" : text) as unknown;
    return Array.isArray(list) && list.every((each) => typeof each === "string") ? list : undefined;
  } catch {
    return undefined;
  }
}

function namesIn(text: string): string[] {
  const names = text.split(/[\n,，]/).map((line) => line.trim());
  return [...new Set(names.filter((line) => line !== ""))];
}

export function NameList(props: OptionEditorProps) {
  const t = useT();
  const { value, onChange, labelledBy, describedBy, disabled, failure } = props;
  // An unfinished last line is no name yet, and must not vanish from under the hand.
  const [typed, setTyped] = useState<{ text: string; of: string }>();
  const names = read(value);
  const shown = typed?.of === value ? typed.text : (names?.join("\n") ?? "");
  return (
    <JsonBeside
      {...besideOf(props)}
      label={t(`option.title.${props.option.key}`)}
      isReadable={names !== undefined}
    >
      <textarea
        className="textarea mono"
        rows={Math.min(12, Math.max(3, shown.split("\n").length + 1))}
        aria-labelledby={labelledBy}
        aria-describedby={describedBy}
        aria-invalid={failure === undefined ? undefined : true}
        spellCheck={false}
        disabled={disabled}
        placeholder={t("editor.oneALine")}
        value={shown}
        onChange={(event) => {
          const next = JSON.stringify(namesIn(event.target.value));
          setTyped({ text: event.target.value, of: next });
          onChange(next);
        }}
      />
    </JsonBeside>
  );
}
