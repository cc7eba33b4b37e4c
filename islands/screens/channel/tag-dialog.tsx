// Asks for the tag that a selection of channels shall have.
// Refuses an empty one: taking tags away is done in the tag editor, where it says so.
import { useEffect, useId, useRef, useState } from "react";
import { failureMessage } from "../../lib/api.ts";
import { useT } from "../../lib/i18n.ts";

export interface TagDialogProps {
  /** How many channels. */
  count: number;
  /** Tags in use, offered while typing. */
  tags: readonly string[];
  onSave: (tag: string) => Promise<void>;
  onClose: () => void;
}

export default function TagDialog({ count, tags, onSave, onClose }: TagDialogProps) {
  const t = useT();
  const id = useId();
  const dialog = useRef<HTMLDialogElement>(null);
  const [tag, setTag] = useState("");
  const [failure, setFailure] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  useEffect(() => {
    const opener = document.activeElement;
    const box = dialog.current;
    box?.showModal();
    box?.querySelector("input")?.focus();
    return () => {
      box?.close();
      if (opener instanceof HTMLElement && opener.isConnected) opener.focus();
    };
  }, []);
  const save = async () => {
    if (tag.trim() === "") {
      setFailure(t("channel.tagMissing"));
      dialog.current?.querySelector("input")?.focus();
      return;
    }
    setBusy(true);
    try {
      await onSave(tag.trim());
      onClose();
    } catch (error) {
      setFailure(failureMessage(error));
      setBusy(false);
    }
  };
  return (
    <dialog
      ref={dialog}
      className="modal"
      aria-labelledby={`${id}-title`}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
    >
      <form
        className="modal-box max-w-110 p-5"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        <h2 id={`${id}-title`}>{t("channel.setTagTitle", { count })}</h2>
        <div className="mb-4 mt-3">
          <label className="text-dense font-semibold" htmlFor={id}>
            {t("channel.tag")}
          </label>
          <input
            id={id}
            className="input"
            list={`${id}-tags`}
            autoComplete="off"
            maxLength={64}
            aria-invalid={failure === undefined ? undefined : true}
            aria-describedby={failure === undefined ? undefined : `${id}-below`}
            value={tag}
            onChange={(event) => {
              setTag(event.target.value);
              setFailure(undefined);
            }}
          />
          <datalist id={`${id}-tags`}>
            {tags.map((each) => (
              <option key={each} value={each} />
            ))}
          </datalist>
          {failure === undefined ? null : (
            <p id={`${id}-below`} className="mt-1 text-xs text-error" role="alert">
              {failure}
            </p>
          )}
        </div>
        <div className="mt-5 flex flex-wrap justify-end gap-2">
          <button type="button" className="btn btn-default" onClick={onClose}>
            {t("common.cancel")}
          </button>
          <button type="submit" className="btn btn-primary" disabled={isBusy} aria-busy={isBusy}>
            {t("channel.setTag")}
          </button>
        </div>
      </form>
    </dialog>
  );
}
