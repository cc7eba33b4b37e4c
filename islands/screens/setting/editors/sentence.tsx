// A sentence with fields in it: the words are the dictionary's, the fields stand where it has placeholders.
import type { ReactNode } from "react";
import { useId, useState } from "react";
import { afterPress } from "../../../lib/press.ts";

export function Sentence({ text, holes }: { text: string; holes: Record<string, ReactNode> }) {
  return (
    <span className="flex flex-wrap items-center gap-x-1.5 gap-y-2">
      {text
        .split(/\{\{(\w+)\}\}/)
        .map((part, at) =>
          at % 2 === 0 ? (
            part.trim() === "" ? null : (
              <span key={at}>{part.trim()}</span>
            )
          ) : (
            <span key={at}>{holes[part]}</span>
          ),
        )}
    </span>
  );
}

export interface NumberHoleProps {
  label: string;
  value: string;
  onChange: (text: string) => void;
  min: number;
  max: number;
  isInvalid?: boolean | undefined;
  disabled?: boolean | undefined;
  /** What is wrong, once the field was left; undefined: nothing. */
  onProblem?: (isWrong: boolean) => void;
  /** Anchor of the option. */
  option?: string | undefined;
}

/** Whether the text is a whole number between the two. */
export function isWholeBetween(text: string, min: number, max: number): boolean {
  return /^\d{1,15}$/.test(text.trim()) && Number(text) >= min && Number(text) <= max;
}

/** A whole number inside a sentence; checked when it is left. */
export function NumberHole(props: NumberHoleProps) {
  const { label, value, onChange, min, max, isInvalid, disabled, onProblem, option } = props;
  const id = useId();
  const [isTold, setTold] = useState(false);
  const isWrong = isTold && !isWholeBetween(value, min, max);
  return (
    <input
      id={option ?? id}
      data-option={option}
      className="input input-sm w-24 text-right tabular-nums"
      inputMode="numeric"
      autoComplete="off"
      aria-label={label}
      aria-invalid={isWrong || isInvalid || undefined}
      disabled={disabled}
      value={value}
      onChange={(event) => {
        onChange(event.target.value);
        if (isTold) onProblem?.(!isWholeBetween(event.target.value, min, max));
      }}
      onBlur={(event) => {
        const isBad = !isWholeBetween(event.target.value, min, max);
        afterPress(() => {
          setTold(true);
          onProblem?.(isBad);
        });
      }}
    />
  );
}
