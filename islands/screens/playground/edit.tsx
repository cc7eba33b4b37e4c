// A question being rewritten in its place: sending it asks again from there.
// Refuses to send nothing; Escape leaves it as it was.
import { useEffect, useId, useRef, useState } from "react";
import { useT } from "../../lib/i18n.ts";
import type { Draft } from "./use-playground.ts";

export interface EditQuestionProps {
  draft: Draft;
  /** An answer runs: what is typed stays, and is sent after it. */
  isOff: boolean;
  onCancel: () => void;
  onSend: (draft: Draft) => void;
}

export default function EditQuestion({ draft, isOff, onCancel, onSend }: EditQuestionProps) {
  const t = useT();
  const id = useId();
  const field = useRef<HTMLTextAreaElement>(null);
  const [text, setText] = useState(draft.text);
  const canSend = !isOff && (text.trim() !== "" || draft.images.length > 0);
  const send = () => {
    if (canSend) onSend({ ...draft, text: text.trim() });
  };
  useEffect(() => {
    field.current?.focus();
    field.current?.setSelectionRange(draft.text.length, draft.text.length);
  }, []);
  return (
    <form
      className="w-full"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <label htmlFor={id} className="sr-only">
        {t("playground.editLabel")}
      </label>
      <textarea
        ref={field}
        id={id}
        rows={2}
        className="textarea field-sizing-content max-h-72 w-full"
        aria-describedby={`${id}-hint`}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.nativeEvent.isComposing || event.nativeEvent.keyCode === 229) return;
          if (event.key === "Escape") {
            event.preventDefault();
            onCancel();
          } else if (event.key === "Enter" && !event.shiftKey) {
            event.preventDefault();
            send();
          }
        }}
      />
      <div className="mt-1 flex flex-wrap items-center justify-end gap-2">
        <p id={`${id}-hint`} className="mr-auto text-xs text-muted">
          {t("playground.editHint")}
        </p>
        <button type="button" className="btn btn-sm btn-default" onClick={onCancel}>
          {t("common.cancel")}
        </button>
        <button type="submit" className="btn btn-sm btn-primary" aria-disabled={!canSend}>
          {t("playground.resend")}
        </button>
      </div>
    </form>
  );
}
