// Keys pasted into a channel that has some: they join those before, and equal ones count once.
// Refuses to keep what was pasted once it is saved.
import { useEffect, useRef, useState } from "react";
import { splitsKeysByLine } from "../../../../src/shared/provider-forms.ts";
import { useT } from "../../../lib/i18n.ts";
import { BusyButton } from "../../../ui/busy-button.tsx";
import { Labelled } from "../labelled.tsx";

export interface AddKeysProps {
  /** The channel's type says whether keys may have lines of their own. */
  type: number;
  isBusy: boolean;
  onAdd: (text: string) => Promise<boolean>;
  onClose: () => void;
}

/** How many keys a text holds; of types whose keys have lines, elements of a JSON array. */
export function countKeys(text: string, type: number): number {
  if (splitsKeysByLine(type)) {
    const lines = text.split("\n").map((line) => line.trim());
    return new Set(lines.filter((line) => line !== "")).size;
  }
  try {
    const list: unknown = JSON.parse(text);
    return Array.isArray(list) ? list.length : 1;
  } catch {
    return text.trim() === "" ? 0 : 1;
  }
}

export function AddKeys({ type, isBusy, onAdd, onClose }: AddKeysProps) {
  const t = useT();
  const [text, setText] = useState("");
  const first = useRef<HTMLTextAreaElement>(null);
  useEffect(() => first.current?.focus(), []);
  const count = countKeys(text, type);
  const add = async () => {
    if (count > 0 && (await onAdd(text.trim()))) onClose();
  };
  return (
    <div
      className="mb-3 grid gap-3 rounded-box border border-base-300 bg-base-200 p-3"
      role="group"
      aria-label={t("channel.keys.add")}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        event.preventDefault();
        event.stopPropagation();
        onClose();
      }}
    >
      <Labelled label={t(splitsKeysByLine(type) ? "channel.keys.pasteLines" : "channel.keys.pasteArray")}>
        {(id) => (
          <textarea
            id={id}
            ref={first}
            rows={4}
            className="textarea mono"
            autoComplete="off"
            spellCheck={false}
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
        )}
      </Labelled>
      <div className="flex gap-2">
        <BusyButton className="btn-sm btn-primary" isBusy={isBusy} onPress={() => void add()}>
          {t("channel.keys.addCount", { count })}
        </BusyButton>
        <button type="button" className="btn btn-sm btn-ghost" onClick={onClose}>
          {t("common.cancel")}
        </button>
      </div>
    </div>
  );
}
