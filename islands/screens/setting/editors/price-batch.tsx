// Sets the same price or ratio for every selected model, after saying what will be set for how many.
import { useId, useState } from "react";
import { useT } from "../../../lib/i18n.ts";
import { toast } from "../../../lib/toasts.ts";
import { batchChanges, batchProblem } from "./price-tables.ts";
import type { BatchMode, ModelCells } from "./price-tables.ts";

const MODES: readonly BatchMode[] = ["both", "ratio", "completion", "price"];

export interface PriceBatchProps {
  selected: ReadonlySet<string>;
  onApply: (changes: ReadonlyMap<string, ModelCells>) => void;
}

export function PriceBatch({ selected, onApply }: PriceBatchProps) {
  const t = useT();
  const id = useId();
  const [isOpen, setOpen] = useState(false);
  const [mode, setMode] = useState<BatchMode>("both");
  const [first, setFirst] = useState("");
  const [second, setSecond] = useState("");
  const [problem, setProblem] = useState<string>();
  if (!isOpen) {
    return (
      <button type="button" className="btn btn-default btn-sm my-2" onClick={() => setOpen(true)}>
        {t("editor.price.batch")}
      </button>
    );
  }
  const apply = () => {
    const wrong = batchProblem(mode, first, second, selected.size);
    setProblem(wrong);
    if (wrong !== undefined) return;
    onApply(batchChanges(selected, { mode, first, second }));
    toast({ key: "batch", text: t("editor.price.batchDone", { count: selected.size }) });
    setOpen(false);
    setFirst("");
    setSecond("");
  };
  const fields =
    mode === "both"
      ? ([
          ["editor.price.ratio.input", first, setFirst],
          ["editor.price.ratio.output", second, setSecond],
        ] as const)
      : ([
          [
            mode === "price"
              ? "editor.price.callDollars"
              : mode === "ratio"
                ? "editor.price.ratio.input"
                : "editor.price.ratio.output",
            first,
            setFirst,
          ],
        ] as const);
  return (
    <div
      className="my-2 rounded-box border border-base-300 bg-base-200 p-3"
      role="group"
      aria-labelledby={`${id}-title`}
      onKeyDown={(event) => {
        if (event.key !== "Enter" || event.ctrlKey || event.metaKey || event.nativeEvent.isComposing) return;
        if (!(event.target instanceof HTMLInputElement)) return;
        event.preventDefault();
        apply();
      }}
    >
      <p id={`${id}-title`} className="font-medium">
        {t("editor.price.batchTitle", { count: selected.size })}
      </p>
      <div className="mt-2 flex flex-wrap items-end gap-3">
        <label className="max-sm:w-full">
          <span className="block text-xs text-muted">{t("editor.price.batchMode")}</span>
          <select
            autoFocus
            className="select sm:w-56"
            value={mode}
            onChange={(event) => {
              setMode(event.target.value as BatchMode);
              setProblem(undefined);
            }}
          >
            {MODES.map((each) => (
              <option key={each} value={each}>
                {t(`editor.price.batchMode.${each}`)}
              </option>
            ))}
          </select>
        </label>
        {fields.map(([label, value, set]) => (
          <label key={label}>
            <span className="block text-xs text-muted">{t(label)}</span>
            <input
              className="input w-32 tabular-nums"
              inputMode="decimal"
              autoComplete="off"
              aria-invalid={problem !== undefined && problem !== "editor.price.batchNone" ? true : undefined}
              aria-describedby={problem === undefined ? undefined : `${id}-problem`}
              value={value}
              onChange={(event) => set(event.target.value)}
            />
          </label>
        ))}
        <span className="flex gap-2">
          <button type="button" className="btn btn-primary" onClick={apply}>
            {t("editor.price.batchApply", { count: selected.size })}
          </button>
          <button
            type="button"
            className="btn btn-default"
            onClick={() => {
              setOpen(false);
              setProblem(undefined);
            }}
          >
            {t("common.cancel")}
          </button>
        </span>
      </div>
      {problem === undefined ? null : (
        <p id={`${id}-problem`} className="mt-2 text-xs text-error" role="alert">
          {t(problem)}
        </p>
      )}
    </div>
  );
}
