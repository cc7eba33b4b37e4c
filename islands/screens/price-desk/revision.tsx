// One change of prices opened: each name from what to what, and for root the way back, looked at before it is gone.
// Refuses to write over names that were changed since, unless they are ticked.
import { useSignals } from "@preact/signals-react/runtime";
import { useEffect, useId, useRef, useState } from "react";
import { SOLD_PLANS } from "../../../src/shared/price-desk.ts";
import { api, call, failureMessage } from "../../lib/api.ts";
import { siteZone } from "../../lib/boot.ts";
import { formatDateTime } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import type { PriceRevisionDetail, PriceUndo } from "../../lib/wire.ts";
import { Drawer } from "../../ui/drawer.tsx";
import { FailureNotice } from "../../ui/feedback.tsx";
import { changeLines, isModelKey } from "../../ui/price-plan/change-words.ts";
import { placeName, placeTitle, termLines, termsText } from "../../ui/price-plan/sold-plan-words.ts";
import { authorText, UndoMarks, wayText } from "./history-words.tsx";
import { FromTo } from "../../ui/price-plan/from-to.tsx";
import { undoRevision } from "../../ui/price-plan/undo-revision.ts";

export interface RevisionDrawerProps {
  id: number;
  canUndo: boolean;
  onClose: () => void;
  onUndone: () => Promise<void>;
}

type Change = PriceRevisionDetail["changes"][number];

/** More names than these are not drawn at once. */
const MOST_NAMES = 200;

export function RevisionDrawer({ id, canUndo, onClose, onUndone }: RevisionDrawerProps) {
  useSignals();
  const t = useT();
  const [revision, setRevision] = useState<PriceRevisionDetail>();
  const [undo, setUndo] = useState<PriceUndo>();
  const [failure, setFailure] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const at = () => api.price.revisions({ id: String(id) });
  const load = async () => {
    try {
      setRevision(await call(at().get()));
      setFailure(undefined);
    } catch (error) {
      setFailure(failureMessage(error));
    }
  };
  useEffect(() => void load(), [id]);
  const preview = async () => {
    setBusy(true);
    try {
      setUndo(await call(at().undo.get()));
      setFailure(undefined);
    } catch (error) {
      setFailure(failureMessage(error));
    }
    setBusy(false);
  };
  return (
    <Drawer
      isOpen
      title={t("plan.history.title", { id })}
      onClose={onClose}
      footer={
        undo ? undefined : (
          <>
            <button type="button" className="btn btn-default" onClick={onClose}>
              {t("common.close")}
            </button>
            {canUndo && revision ? (
              <button
                type="button"
                className="btn btn-primary"
                disabled={isBusy}
                aria-busy={isBusy}
                onClick={() => void preview()}
              >
                {t("plan.history.undo")}
              </button>
            ) : null}
          </>
        )
      }
    >
      {failure === undefined ? null : <FailureNotice text={failure} onRetry={undo ? preview : load} />}
      {revision === undefined && failure === undefined ? <div className="skeleton h-60" aria-hidden /> : null}
      {undo ? (
        <UndoForm
          undo={undo}
          onBack={() => setUndo(undefined)}
          onDone={async () => {
            await onUndone();
            onClose();
          }}
        />
      ) : revision ? (
        <>
          <p>
            <b className="font-medium">{authorText(t, revision)}</b>{" "}
            <span className="text-muted">{wayText(t, revision)}</span>
          </p>
          <p className="text-dense text-muted">
            {t("plan.history.at", {
              time: formatDateTime(revision.created_at * 1000, siteZone.value),
              zone: siteZone.value,
            })}
          </p>
          {revision.note === "" ? null : (
            <p className="mt-2 whitespace-pre-wrap wrap-anywhere">{revision.note}</p>
          )}
          <UndoMarks revision={revision} />
          <Changes changes={revision.changes} />
        </>
      ) : null}
    </Drawer>
  );
}

/** Changes by the name that they are about: a model with all its maps, a group, or an option that is one value. */
function byName(changes: readonly Change[]): [string, Change[]][] {
  return [
    ...Map.groupBy(changes, ({ key, name }) => (name === "" || !isModelKey(key) ? `${key}\n${name}` : name)),
  ];
}

function Changes({ changes }: { changes: readonly Change[] }) {
  const t = useT();
  const [most, setMost] = useState(MOST_NAMES);
  const all = byName(changes);
  return (
    <>
      <ul className="mt-4 border-t border-base-300">
        {all.slice(0, most).map(([id, own]) => (
          <NameChanges key={id} changes={own} />
        ))}
      </ul>
      {all.length > most ? (
        <button type="button" className="link mt-2" onClick={() => setMost(most + MOST_NAMES)}>
          {t("plan.more", { count: all.length - most })}
        </button>
      ) : null}
    </>
  );
}

function NameChanges({ changes }: { changes: readonly Change[] }) {
  const t = useT();
  const [first] = changes;
  if (!first) return null;
  const isModel = isModelKey(first.key);
  const isPlan = first.key === SOLD_PLANS;
  const lines = isPlan
    ? termLines(t, first)
    : isModel
      ? changeLines(t, changes)
      : changeLines(t, changes).map((line) => ({ ...line, title: placeTitle(t, line.key) }));
  return (
    <li className="border-b border-base-300 px-3 py-2">
      {first.name === "" ? null : (
        <p className="wrap-anywhere">
          <span className="mono font-medium">{placeName(first)}</span>
          {isPlan ? <span className="ml-2 text-dense text-muted">{placeTitle(t, first.key)}</span> : null}
        </p>
      )}
      <dl className="text-dense tabular-nums">
        {lines.map(({ key, title, before, after }) => (
          <div key={key} className="flex flex-wrap items-baseline gap-x-2">
            <dt className="grow text-muted">{title}</dt>
            <dd className="ml-auto min-w-0 text-right wrap-anywhere">
              <FromTo before={before} after={after} />
            </dd>
          </div>
        ))}
      </dl>
    </li>
  );
}

const placeKey = ({ key, name }: { key: string; name: string }): string => `${key}\n${name}`;
const MOST_NOTE = 1000;

interface UndoFormProps {
  undo: PriceUndo;
  onBack: () => void;
  onDone: () => Promise<void>;
}

/** What the way back would do; names that were changed since are listed, to be ticked one by one. */
function UndoForm({ undo, onBack, onDone }: UndoFormProps) {
  const t = useT();
  const id = useId();
  const [ticked, setTicked] = useState<ReadonlySet<string>>(new Set());
  const [note, setNote] = useState("");
  const [failure, setFailure] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  // The button that led here is gone.
  useEffect(() => form.current?.focus(), []);
  const count = undo.changes.length + ticked.size;
  const included = undo.skipped.filter((each) => ticked.has(placeKey(each)));
  const run = async () => {
    setBusy(true);
    try {
      await undoRevision(
        undo.revision,
        note.trim(),
        included.map(({ key, name }) => ({ key, name })),
      );
      await onDone();
    } catch (error) {
      setFailure(failureMessage(error));
      setBusy(false);
    }
  };
  return (
    <form
      ref={form}
      tabIndex={-1}
      className="outline-0"
      aria-label={t("plan.history.undo")}
      onSubmit={(event) => {
        event.preventDefault();
        if (count > 0 && !isBusy) void run();
      }}
    >
      <p>{t("plan.history.undoText")}</p>
      {undo.changes.length === 0 ? (
        <p className="mt-3 text-muted">{t("plan.history.undoNothing")}</p>
      ) : (
        <Changes changes={undo.changes} />
      )}
      {undo.skipped.length === 0 ? null : (
        <fieldset className="mt-4">
          <legend className="font-semibold">
            {t("plan.history.skipped", { count: undo.skipped.length })}
          </legend>
          <p className="text-dense text-muted">{t("plan.history.skippedText")}</p>
          <ul className="mt-2 border-t border-base-300">
            {undo.skipped.map((each) => (
              <SkippedName
                key={placeKey(each)}
                change={each}
                isTicked={ticked.has(placeKey(each))}
                onTick={(isOn) => {
                  const next = new Set(ticked);
                  if (isOn) next.add(placeKey(each));
                  else next.delete(placeKey(each));
                  setTicked(next);
                }}
              />
            ))}
          </ul>
        </fieldset>
      )}
      <label className="mt-4 block" htmlFor={`${id}-note`}>
        <span className="text-dense font-semibold">{t("plan.note")}</span>
      </label>
      <textarea
        id={`${id}-note`}
        className="textarea mt-0.5"
        rows={2}
        maxLength={MOST_NOTE}
        placeholder={t("plan.noteHint")}
        value={note}
        onChange={(event) => setNote(event.target.value)}
      />
      {failure === undefined ? null : (
        <p className="mt-2 text-error" role="alert">
          {failure}
        </p>
      )}
      <div className="mt-4 flex flex-wrap justify-end gap-2">
        <button type="button" className="btn btn-default" onClick={onBack}>
          {t("plan.history.back")}
        </button>
        <button type="submit" className="btn btn-primary" disabled={count === 0 || isBusy} aria-busy={isBusy}>
          {t("plan.history.undoCount", { count })}
        </button>
      </div>
    </form>
  );
}

interface SkippedProps {
  change: Change;
  isTicked: boolean;
  onTick: (isOn: boolean) => void;
}

/** `before` is what the undo would put back, `after` what stands there now. */
function SkippedName({ change, isTicked, onTick }: SkippedProps) {
  const t = useT();
  const [line] = changeLines(t, [change]);
  const title = isModelKey(change.key) ? (line?.title ?? "") : placeTitle(t, change.key);
  const isPlan = change.key === SOLD_PLANS;
  return (
    <li className="border-b border-base-300">
      <label className="flex cursor-pointer items-start gap-3 px-3 py-2">
        <input
          type="checkbox"
          className="checkbox mt-0.5"
          checked={isTicked}
          onChange={(event) => onTick(event.target.checked)}
        />
        <span className="min-w-0 grow text-dense wrap-anywhere">
          <span className="mono font-medium">{placeName(change)}</span>{" "}
          <span className="text-muted">{title}</span>
          <span className="block tabular-nums">
            {isPlan
              ? termsText(t, { ...change, before: change.after, after: change.before })
              : t("plan.history.nowBack", { now: line?.after ?? "", back: line?.before ?? "" })}
          </span>
        </span>
      </label>
    </li>
  );
}
