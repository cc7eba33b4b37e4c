// What the sheets of groups share: a head with the way back, a group to choose, a text that is one step however it was typed.
import { Plus } from "lucide-react";
import { useId, useState } from "react";
import type { ReactNode } from "react";
import { language } from "../../lib/i18n.ts";
import type { Desk } from "../../ui/price-sheet/desk.ts";
import { UndoButtons } from "../../ui/price-sheet/undo-buttons.tsx";

const inEnglish = new Intl.ListFormat("en", { type: "conjunction" });

/** Names as a list of the language: "a, b, and c", in Chinese between its own commas. */
export const joinNames = (names: readonly string[]): string =>
  language.value === "zh" ? names.join("、") : inEnglish.format(names);

/** A section of sheets: what it is for, and the way back. */
export function GroupSection({ desk, intro, children }: { desk: Desk; intro: string; children: ReactNode }) {
  return (
    <div className="pt-4">
      <div className="mb-3 flex items-start justify-between gap-3">
        <p className="max-w-[76ch] text-dense text-muted">{intro}</p>
        <div className="flex-none">
          <UndoButtons desk={desk} />
        </div>
      </div>
      {children}
    </div>
  );
}

/** One of the groups there are, added by its button: arrows in a list alone must not add anything. */
export function GroupPicker({
  label,
  action,
  groups,
  onPick,
}: {
  label: string;
  action: string;
  groups: readonly string[];
  onPick: (group: string) => void;
}) {
  const id = useId();
  const [chosen, setChosen] = useState("");
  const group = groups.includes(chosen) ? chosen : (groups[0] ?? "");
  if (groups.length === 0) return null;
  return (
    <form
      className="flex min-w-0 items-center gap-2"
      onSubmit={(event) => {
        event.preventDefault();
        setChosen("");
        onPick(group);
      }}
    >
      <label htmlFor={id} className="sr-only">
        {label}
      </label>
      <select
        id={id}
        className="select w-40 min-w-0"
        value={group}
        onChange={(event) => setChosen(event.target.value)}
      >
        {groups.map((each) => (
          <option key={each} value={each}>
            {each}
          </option>
        ))}
      </select>
      <button type="submit" className="btn btn-default btn-sm">
        <Plus aria-hidden size={14} />
        {action}
      </button>
    </form>
  );
}

/** A text that is written when its field is left, or by Enter; Escape takes back what was typed. */
export function CommitText({
  value,
  label,
  placeholder,
  part,
  onCommit,
}: {
  value: string;
  label: string;
  placeholder?: string;
  part?: string;
  onCommit: (text: string) => void;
}) {
  const [typed, setTyped] = useState<string>();
  const commit = () => {
    const text = typed?.trim();
    setTyped(undefined);
    if (text !== undefined && text !== value) onCommit(text);
  };
  return (
    <input
      type="text"
      className="input"
      aria-label={label}
      placeholder={placeholder}
      data-part={part}
      autoComplete="off"
      value={typed ?? value}
      onChange={(event) => setTyped(event.target.value)}
      onBlur={commit}
      onKeyDown={(event) => {
        if (event.nativeEvent.isComposing || event.altKey) return;
        if (event.key === "Enter") {
          event.preventDefault();
          commit();
        } else if (event.key === "Escape" && typed !== undefined) {
          event.preventDefault();
          event.stopPropagation();
          setTyped(undefined);
        }
      }}
    />
  );
}

/** What a thing was before it was changed, under it. */
export function Was({ children }: { children: ReactNode }) {
  return (
    <span className="mt-1 flex items-baseline gap-1.5 text-xs text-muted">
      <span className="status status-primary flex-none self-center" aria-hidden />
      <span className="min-w-0 wrap-anywhere">{children}</span>
    </span>
  );
}
