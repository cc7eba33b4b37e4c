// Where a question is written: Enter sends, Shift Enter breaks the line, one button that sends or stops.
// Refuses to send while an input method is composing, an answer is running, or nothing is written.
import { ArrowUp, Square } from "lucide-react";
import { useId } from "react";
import { useT } from "../../lib/i18n.ts";

export interface ComposerProps {
  text: string;
  onText: (text: string) => void;
  isRunning: boolean;
  canSend: boolean;
  onSend: () => void;
  onStop: () => void;
  input: React.RefObject<HTMLTextAreaElement | null>;
}

export function Composer({ text, onText, isRunning, canSend, onSend, onStop, input }: ComposerProps) {
  const t = useT();
  const id = useId();
  const isReady = canSend && !isRunning && text.trim() !== "";
  return (
    <form
      className="flex items-end gap-2 rounded-box border border-field bg-base-100 p-1.5 focus-within:border-primary"
      onSubmit={(event) => {
        event.preventDefault();
        if (isReady) onSend();
      }}
    >
      <label htmlFor={id} className="sr-only">
        {t("playground.prompt")}
      </label>
      <textarea
        ref={input}
        id={id}
        rows={1}
        className="field-sizing-content max-h-48 min-h-8 min-w-0 grow resize-none bg-transparent px-2 py-1.5 outline-none placeholder:text-muted max-sm:text-base"
        placeholder={t("playground.promptHint")}
        enterKeyHint="send"
        value={text}
        onChange={(event) => onText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || event.shiftKey) return;
          // 229: some browsers end the composition before they send its Enter.
          if (event.nativeEvent.isComposing || event.nativeEvent.keyCode === 229) return;
          event.preventDefault();
          if (isReady) onSend();
        }}
      />
      <button
        type={isRunning ? "button" : "submit"}
        className="btn btn-primary btn-square btn-sm flex-none"
        aria-label={t(isRunning ? "playground.stop" : "playground.send")}
        title={t(isRunning ? "playground.stop" : "playground.send")}
        // Stays reachable when it cannot send, so that the focus is not lost the moment an answer ends.
        aria-disabled={!isRunning && !isReady}
        onClick={(event) => {
          if (!isRunning) return;
          event.preventDefault();
          onStop();
        }}
      >
        {isRunning ? <Square aria-hidden size={12} fill="currentColor" /> : <ArrowUp aria-hidden size={16} />}
      </button>
    </form>
  );
}
