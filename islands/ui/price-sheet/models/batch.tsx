// Setting many models together: what to set, to what, and what it changes before it is done.
import { useId, useState } from "react";
import { MAX_DOLLARS } from "../../../../src/shared/price-row.ts";
import { useT } from "../../../lib/i18n.ts";
import { toast } from "../../../lib/toasts.ts";
import { Drawer } from "../../drawer.tsx";
import { parseNumber } from "../../sheet-number.ts";
import type { Desk } from "../desk.ts";
import { BATCH_MODES, batchEdits, FIELDS_OF, previewOf } from "./batch-edits.ts";
import type { BatchMode } from "./batch-edits.ts";
import { PreviewList } from "./preview.tsx";

interface BatchDrawerProps {
  desk: Desk;
  names: readonly string[];
  onClose: () => void;
  onDone: () => void;
}

export function BatchDrawer({ desk, names, onClose, onDone }: BatchDrawerProps) {
  const t = useT();
  const id = useId();
  const [mode, setMode] = useState<BatchMode>("tokens");
  const [texts, setTexts] = useState<Record<string, string>>({});
  const [isAsked, setAsked] = useState(false);
  const fields = FIELDS_OF[mode];
  const read = fields.map((field) => parseNumber(t, texts[field] ?? "", MAX_DOLLARS));
  const values = read.map(({ value }) => value).filter((value) => typeof value === "number");
  const isWhole = values.length === fields.length;
  const isEmpty = read.some(({ value }) => value === null);
  const problem =
    read.find((each) => each.problem !== undefined)?.problem ??
    (isEmpty && isAsked ? t(mode === "both" ? "desk.models.batchBoth" : "desk.models.batchFill") : undefined);
  const edits = isWhole ? batchEdits(desk, names, mode, values) : [];
  const apply = () => {
    setAsked(true);
    if (!isWhole) return;
    desk.write(edits, t("desk.models.step.batch", { count: names.length }));
    toast({ key: "batch", text: t("desk.models.batchDone", { count: names.length }) });
    onDone();
  };
  return (
    <Drawer
      isOpen
      title={t("desk.models.batchTitle", { count: names.length })}
      onClose={onClose}
      footer={
        <>
          <button type="button" className="btn btn-default ml-auto" onClick={onClose}>
            {t("common.cancel")}
          </button>
          <button type="submit" form={id} className="btn btn-primary">
            {t("desk.models.batchApply", { count: names.length })}
          </button>
        </>
      }
    >
      <form
        id={id}
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          apply();
        }}
      >
        <label className="block">
          <span className="mb-1 block font-medium">{t("desk.models.batchMode")}</span>
          <select
            className="select"
            value={mode}
            onChange={(event) => {
              setMode(event.target.value as BatchMode);
              setAsked(false);
            }}
          >
            {BATCH_MODES.map((each) => (
              <option key={each} value={each}>
                {t(`desk.models.mode.${each}`)}
              </option>
            ))}
          </select>
        </label>
        <div className="mt-3 flex flex-wrap gap-3">
          {fields.map((field) => (
            <label key={field} className="grow basis-40">
              <span className="mb-1 block font-medium">{t(`desk.models.field.${field}`)}</span>
              <input
                className="input tabular-nums"
                inputMode="decimal"
                autoComplete="off"
                aria-invalid={problem === undefined ? undefined : true}
                aria-describedby={problem === undefined ? `${id}hint` : `${id}problem`}
                value={texts[field] ?? ""}
                onChange={(event) => setTexts({ ...texts, [field]: event.target.value })}
              />
            </label>
          ))}
        </div>
        {problem === undefined ? (
          <p id={`${id}hint`} className="mt-1 text-xs text-muted">
            {t(`desk.models.modeHint.${mode}`)}
          </p>
        ) : (
          <p id={`${id}problem`} className="mt-1 text-xs text-error" role="alert">
            {problem}
          </p>
        )}
      </form>
      {isWhole ? <PreviewList preview={previewOf(t, desk, edits)} /> : null}
    </Drawer>
  );
}
