// What will be saved, side by side with what is stored; each change can be taken back by itself.
// Refuses to show secrets: of those it says that they are new or emptied.
import { useSignals } from "@preact/signals-react/runtime";
import { Undo2 } from "lucide-react";
import { useT } from "../../lib/i18n.ts";
import { Drawer } from "../../ui/drawer.tsx";
import type { OptionRow } from "./editor-props.ts";
import { shownValue, titleOf, unitOf } from "./names.ts";
import type { Settings } from "./state.ts";

export interface ReviewProps {
  settings: Settings;
  onClose: () => void;
}

const LONGEST_WHOLE = 600;
const CONTEXT = 120;

/** Of long values only what differs, with a little around it. */
export function differing(before: string, after: string): [string, string] {
  if (before.length <= LONGEST_WHOLE && after.length <= LONGEST_WHOLE) return [before, after];
  let head = 0;
  while (head < before.length && head < after.length && before[head] === after[head]) head++;
  let tail = 0;
  const most = Math.min(before.length, after.length) - head;
  while (tail < most && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail++;
  const cut = (text: string): string => {
    const from = Math.max(0, head - CONTEXT);
    const to = Math.min(text.length, text.length - tail + CONTEXT);
    const middle = text.slice(from, Math.min(to, from + LONGEST_WHOLE));
    return `${from > 0 ? "… " : ""}${middle}${from + middle.length < text.length ? " …" : ""}`;
  };
  return [cut(before), cut(after)];
}

const withUnit = (row: OptionRow, value: string): string =>
  row.unit === undefined ? shownValue(row, value) : `${shownValue(row, value)} ${unitOf(row)}`;

export default function Review({ settings, onClose }: ReviewProps) {
  useSignals();
  const t = useT();
  const { rows, drafts, failures, isSaving } = settings;
  const changes = [...drafts.value].flatMap(([key, to]): { row: OptionRow; to: string }[] => {
    const row = rows.value.get(key);
    return row ? [{ row, to }] : [];
  });
  const save = () => void settings.save().then(onClose);
  return (
    <Drawer
      isOpen
      title={t("setting.reviewTitle", { count: changes.length })}
      onClose={onClose}
      footer={
        <>
          <button type="button" className="btn btn-default" onClick={onClose}>
            {t("common.close")}
          </button>
          <button
            type="button"
            className="btn btn-primary"
            disabled={isSaving.value}
            aria-busy={isSaving.value}
            onClick={save}
          >
            {t("common.save")}
          </button>
        </>
      }
    >
      {/* Ctrl Enter in a drawer submits its form. */}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          save();
        }}
      >
        <ul className="flex flex-col gap-3">
          {changes.map(({ row, to }) => {
            const [before, after] = row.secret ? ["", to] : differing(row.value, to);
            const failure = failures.value.get(row.key);
            const name = titleOf(row);
            return (
              <li key={row.key} className="rounded-box border border-base-300 p-3">
                <div className="flex items-start gap-2">
                  <div className="min-w-0 grow">
                    <h3 className="font-medium">{name}</h3>
                    <p className="mono text-xs break-all text-muted">{row.key}</p>
                  </div>
                  <button
                    type="button"
                    className="btn btn-ghost btn-square btn-sm"
                    aria-label={t("form.revert", { field: name })}
                    title={t("form.revert", { field: name })}
                    onClick={() => settings.revert(row.key)}
                  >
                    <Undo2 aria-hidden size={14} />
                  </button>
                </div>
                <dl className="mt-2 grid gap-2 sm:grid-cols-2">
                  <div className="min-w-0">
                    <dt className="text-xs text-muted">{t("setting.before")}</dt>
                    <dd className="whitespace-pre-wrap wrap-anywhere">
                      {row.secret
                        ? t(row.isSet ? "setting.secret.set" : "setting.secret.notSet")
                        : withUnit(row, before)}
                    </dd>
                  </div>
                  <div className="min-w-0">
                    <dt className="text-xs text-muted">{t("setting.after")}</dt>
                    <dd className="font-medium whitespace-pre-wrap wrap-anywhere">{withUnit(row, after)}</dd>
                  </div>
                </dl>
                {failure === undefined ? null : <p className="mt-1 text-xs text-error">{failure}</p>}
              </li>
            );
          })}
        </ul>
      </form>
    </Drawer>
  );
}
