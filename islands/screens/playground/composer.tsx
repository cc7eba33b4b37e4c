// Where a question is written: Enter sends, Shift Enter breaks the line, Escape stops; pictures by button, drop or paste.
// Refuses to send while an input method is composing, an answer is running, or nothing is written.
import { ArrowUp, ImagePlus, Square } from "lucide-react";
import { useId, useRef } from "react";
import { useT } from "../../lib/i18n.ts";
import { lazyPart } from "../../lib/lazy-part.tsx";
import type { Refusal } from "./pictures.ts";
import { PICTURE_TYPES } from "./pictures.ts";

const Previews = lazyPart(() => import("./previews.tsx"));

export interface ComposerProps {
  text: string;
  onText: (text: string) => void;
  images: readonly string[];
  onFiles: (files: File[]) => void;
  onRemoveImage: (index: number) => void;
  /** Files that did not become pictures. */
  refused: readonly Refusal[];
  mostBodyMb: number | undefined;
  isRunning: boolean;
  canSend: boolean;
  onSend: () => void;
  onStop: () => void;
  input: React.RefObject<HTMLTextAreaElement | null>;
}

export function Composer(props: ComposerProps) {
  const { text, onText, images, onFiles, isRunning, canSend, onSend, onStop, input } = props;
  const t = useT();
  const id = useId();
  const isReady = canSend && !isRunning && (text.trim() !== "" || images.length > 0);
  return (
    <form
      className="rounded-box border border-field bg-base-100 p-1.5 focus-within:border-primary"
      onSubmit={(event) => {
        event.preventDefault();
        if (isReady) onSend();
      }}
    >
      {images.length > 0 || props.refused.length > 0 ? <Previews {...props} /> : null}
      <div className="flex items-end gap-1">
        <AttachButton onFiles={onFiles} />
        <label htmlFor={id} className="sr-only">
          {t("playground.prompt")}
        </label>
        <textarea
          ref={input}
          id={id}
          rows={1}
          className="field-sizing-content max-h-48 min-h-8 min-w-0 grow resize-none bg-transparent px-1 py-1.5 outline-none placeholder:text-muted max-sm:text-base"
          placeholder={t("playground.promptHint")}
          enterKeyHint="send"
          value={text}
          onChange={(event) => onText(event.target.value)}
          onPaste={(event) => {
            const files = [...event.clipboardData.files].filter(({ type }) => type.startsWith("image/"));
            // Some programs put a picture beside the text that was copied: then the text is meant.
            if (files.length === 0 || event.clipboardData.getData("text/plain") !== "") return;
            event.preventDefault();
            onFiles(files);
          }}
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
          {isRunning ? (
            <Square aria-hidden size={12} fill="currentColor" />
          ) : (
            <ArrowUp aria-hidden size={16} />
          )}
        </button>
      </div>
    </form>
  );
}

function AttachButton({ onFiles }: { onFiles: (files: File[]) => void }) {
  const t = useT();
  const field = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={field}
        type="file"
        hidden
        multiple
        accept={PICTURE_TYPES.join(",")}
        aria-label={t("playground.attach")}
        onChange={(event) => {
          onFiles([...(event.target.files ?? [])]);
          // The same file may be chosen again after it was taken away.
          event.target.value = "";
        }}
      />
      <button
        type="button"
        className="btn btn-ghost btn-square btn-sm flex-none text-muted"
        aria-label={t("playground.attach")}
        title={t("playground.attach")}
        onClick={() => field.current?.click()}
      >
        <ImagePlus aria-hidden size={16} />
      </button>
    </>
  );
}
