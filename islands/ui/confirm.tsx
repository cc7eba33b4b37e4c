// Questions before what cannot be undone, and the manual-copy dialog: `await confirm({...})` from anywhere.
// Refuses vague questions: title names object and number, the button repeats the verb.
import { signal } from "@preact/signals-react";
import { useSignals } from "@preact/signals-react/runtime";
import { useEffect, useRef, useState } from "react";
import { useT } from "../lib/i18n.ts";
import { toast, toastFailure } from "../lib/toasts.ts";

export interface ConfirmQuestion {
  kind: "confirm";
  /** "Delete 3 channels?" */
  title: string;
  /** The consequence. */
  text?: string;
  /** The verb again: "Delete 3 channels". */
  action: string;
  isDanger?: boolean;
  /** Has to be typed before the button works: account deletion, log clearing, more than 20 rows. */
  typed?: string;
}

interface CopyQuestion {
  kind: "copy";
  text: string;
}

type Question = ConfirmQuestion | CopyQuestion;

interface OpenQuestion {
  question: Question;
  answer: (yes: boolean) => void;
}

const openQuestion = signal<OpenQuestion | undefined>(undefined);

/** Resolves when the dialog closes; true only for the primary button. A second question answers the first with no. */
export function showQuestion(question: Question): Promise<boolean> {
  openQuestion.peek()?.answer(false);
  return new Promise((resolve) => {
    openQuestion.value = {
      question,
      answer: (yes) => {
        openQuestion.value = undefined;
        resolve(yes);
      },
    };
  });
}

export function confirm(question: Omit<ConfirmQuestion, "kind">): Promise<boolean> {
  return showQuestion({ kind: "confirm", ...question });
}

/** More rows than this are confirmed by typing their number. */
const MOST_WITHOUT_TYPING = 20;

export interface Deletion extends Pick<ConfirmQuestion, "title" | "text" | "action"> {
  /** How many rows go. */
  count: number;
  /** Deletes, and gives the sentence to say. */
  run: () => Promise<string>;
  /** Reads the list anew, whatever came of it. */
  refresh: () => Promise<void>;
  /** Drops the selection, once the rows are gone. */
  clear?: (() => void) | undefined;
}

/** Asks, deletes, says what came of it, and reads the list anew. */
export async function deleteRows({ count, run, refresh, clear, ...question }: Deletion): Promise<void> {
  const isConfirmed = await confirm({
    ...question,
    isDanger: true,
    ...(count > MOST_WITHOUT_TYPING ? { typed: String(count) } : {}),
  });
  if (!isConfirmed) return;
  try {
    toast({ text: await run() });
    clear?.();
  } catch (error) {
    toastFailure(error);
  }
  await refresh();
}

/** Answers an open question with no. */
export function dismissQuestion(): void {
  openQuestion.peek()?.answer(false);
}

export function ConfirmHost() {
  useSignals();
  const current = openQuestion.value;
  return current ? <QuestionDialog key={questionKey(current.question)} openQuestion={current} /> : null;
}

function questionKey(question: Question): string {
  return question.kind === "copy" ? `copy ${question.text}` : question.title;
}

function QuestionDialog({ openQuestion: { question, answer } }: { openQuestion: OpenQuestion }) {
  const t = useT();
  const dialog = useRef<HTMLDialogElement>(null);
  const [typed, setTyped] = useState("");
  useEffect(() => {
    const opener = document.activeElement;
    dialog.current?.showModal();
    return () => {
      if (opener instanceof HTMLElement && opener.isConnected) opener.focus();
    };
  }, []);
  const close = (yes: boolean) => {
    dialog.current?.close();
    answer(yes);
  };
  const title = question.kind === "copy" ? t("common.copyByHand") : question.title;
  return (
    <dialog
      ref={dialog}
      className="modal"
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault();
        close(false);
      }}
      onClick={(event) => {
        if (event.target === dialog.current) close(false);
      }}
    >
      <form
        className="modal-box max-w-110 p-5"
        onSubmit={(event) => {
          event.preventDefault();
          if (question.kind === "confirm" && question.typed !== undefined && typed !== question.typed) return;
          close(true);
        }}
      >
        <h2>{title}</h2>
        {question.kind === "copy" ? (
          <textarea
            className="textarea mono mt-3"
            rows={4}
            readOnly
            value={question.text}
            onFocus={(event) => event.target.select()}
          />
        ) : (
          <>
            {question.text ? <p className="mt-2 text-muted">{question.text}</p> : null}
            {question.typed === undefined ? null : (
              <label className="mt-3 block">
                <span className="text-dense font-semibold">
                  {t("common.typeToConfirm", { text: question.typed })}
                </span>
                <input
                  className="input"
                  autoComplete="off"
                  value={typed}
                  onChange={(event) => setTyped(event.target.value)}
                />
              </label>
            )}
          </>
        )}
        <div className="mt-5 flex flex-wrap justify-end gap-2">
          <button type="button" className="btn btn-default" onClick={() => close(false)}>
            {t(question.kind === "copy" ? "common.close" : "common.cancel")}
          </button>
          {question.kind === "confirm" ? (
            <button
              type="submit"
              className={`btn ${question.isDanger ? "btn-error" : "btn-primary"}`}
              disabled={question.typed !== undefined && typed !== question.typed}
            >
              {question.action}
            </button>
          ) : null}
        </div>
      </form>
    </dialog>
  );
}
