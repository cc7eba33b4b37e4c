// Import from a text: maps of ratios or rows in dollars as JSON, or lines of a spreadsheet; what it changes is shown first.
// Refuses to remove anything: models that the text does not name keep their price.
import { useId, useState } from "react";
import { PRICE_MAPS } from "../../../../src/shared/row-maps.ts";
import { useT } from "../../../lib/i18n.ts";
import { toast } from "../../../lib/toasts.ts";
import { Drawer } from "../../drawer.tsx";
import type { Desk } from "../desk.ts";
import { previewOf } from "./batch-edits.ts";
import { readImport } from "./import-text.ts";
import type { SingleMap } from "./import-text.ts";
import { PreviewList } from "./preview.tsx";

/** Problems that are named; the rest is counted. */
const MOST_PROBLEMS = 5;

export function ImportDrawer({
  desk,
  onClose,
  onDone,
}: {
  desk: Desk;
  onClose: () => void;
  onDone: () => void;
}) {
  const t = useT();
  const id = useId();
  const [text, setText] = useState("");
  const [single, setSingle] = useState<SingleMap>("ModelRatio");
  const { edits, problems, isSingle, isUnknown } = readImport(desk, text, single);
  const preview = previewOf(t, desk, edits);
  const apply = () => {
    if (preview.count === 0) return;
    desk.write(edits, t("desk.models.step.import", { count: preview.count }));
    toast({ key: "import", text: t("desk.models.importDone", { count: preview.count }) });
    onDone();
  };
  return (
    <Drawer
      isOpen
      width="wide"
      title={t("desk.models.import")}
      isDirty={text.trim() !== ""}
      onClose={onClose}
      footer={
        <>
          <button
            type="button"
            className="btn btn-default ml-auto"
            onClick={(event) =>
              event.currentTarget.closest("dialog")?.dispatchEvent(new Event("cancel", { cancelable: true }))
            }
          >
            {t("common.cancel")}
          </button>
          <button type="button" className="btn btn-primary" disabled={preview.count === 0} onClick={apply}>
            {t("desk.models.importApply", { count: preview.count })}
          </button>
        </>
      }
    >
      <label className="mb-1 block font-medium" htmlFor={id}>
        {t("desk.models.importText")}
      </label>
      <textarea
        id={id}
        className="textarea mono min-h-48"
        spellCheck={false}
        aria-describedby={`${id}hint`}
        aria-invalid={isUnknown || undefined}
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      {isUnknown ? (
        <p id={`${id}hint`} className="mt-1 text-xs text-error" role="alert">
          {t("desk.models.importUnknown")}
        </p>
      ) : (
        <p id={`${id}hint`} className="mt-1 text-xs text-muted">
          {t("desk.models.importHint")}
        </p>
      )}
      {isSingle ? (
        <label className="mt-3 block">
          <span className="mb-1 block font-medium">{t("desk.models.importAs")}</span>
          <select
            className="select"
            value={single}
            onChange={(event) => setSingle(event.target.value as SingleMap)}
          >
            {PRICE_MAPS.map((key) => (
              <option key={key} value={key}>
                {t(`option.title.${key}`)}
              </option>
            ))}
          </select>
        </label>
      ) : null}
      {problems.length > 0 ? (
        <div role="alert" className="mt-3 text-dense text-error">
          <p>{t("desk.models.importProblems", { count: problems.length })}</p>
          <ul className="list-disc pl-5">
            {problems.slice(0, MOST_PROBLEMS).map(({ place, reason }) => (
              <li key={`${place} ${reason}`} className="wrap-anywhere">
                {t(`desk.models.importProblem.${reason}`, { place })}
              </li>
            ))}
          </ul>
        </div>
      ) : null}
      {text.trim() === "" || isUnknown ? null : <PreviewList preview={preview} />}
    </Drawer>
  );
}
