// What the store of toasts holds, shown: toasts with undo, polite announcements; inline bars and empty states.
// Refuses to let failures vanish: they stay until closed, with their code and a way to copy the details.
import { useSignals } from "@preact/signals-react/runtime";
import { CircleAlert, CircleCheck, Info, TriangleAlert, X } from "lucide-react";
import { useEffect, useRef } from "react";
import { createPortal } from "react-dom";
import type { ReactNode } from "react";
import { useT } from "../lib/i18n.ts";
import { keysText, useShortcut } from "../lib/keys.ts";
import { dismissToast, layers, shown, spoken, toastFailure } from "../lib/toasts.ts";
import type { Toast, Tone } from "../lib/toasts.ts";
import { CopyButton } from "./copy-button.tsx";

const SHORT_MS = 4000;
const WITH_UNDO_MS = 8000;
const UNDO_KEYS = "mod+z";

const ICONS = { success: CircleCheck, info: Info, warning: TriangleAlert, error: CircleAlert } as const;

function undo(entry: Toast): void {
  dismissToast(entry.key);
  void Promise.resolve(entry.undo?.()).catch((error: unknown) => toastFailure(error));
}

export function Toasts() {
  useSignals();
  // The button goes after seconds and lies at the end of the page: too far for Tab.
  const shortcut = {
    keys: UNDO_KEYS,
    label: "common.undo",
    run: () => {
      const entry = shown.peek().findLast((each) => each.undo);
      if (entry) undo(entry);
    },
  };
  useShortcut(shortcut);
  // While something offers to be taken back the keys are its own, whatever screen took them over since.
  useShortcut(shown.value.some((each) => each.undo) ? shortcut : undefined);
  const told = (
    <>
      <div className="toast toast-end">
        {shown.value.map((each) => (
          <ToastBox key={each.key} entry={each} />
        ))}
      </div>
      <div className="sr-only top-0 left-0" role="status" aria-live="polite">
        {spoken.value}
      </div>
    </>
  );
  const over = layers.value.at(-1);
  // Behind a modal dialog nothing can be seen, pressed or heard.
  return over ? createPortal(told, over) : told;
}

function ToastBox({ entry }: { entry: Toast }) {
  const t = useT();
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const isLasting = entry.tone === "error" || entry.stays === true;
  const start = () => {
    clearTimeout(timer.current);
    if (!isLasting)
      timer.current = setTimeout(() => dismissToast(entry.key), entry.undo ? WITH_UNDO_MS : SHORT_MS);
  };
  const hold = () => clearTimeout(timer.current);
  const cameFrom = useRef<EventTarget>(null);
  const goBack = () => {
    if (cameFrom.current instanceof HTMLElement && cameFrom.current.isConnected) cameFrom.current.focus();
  };
  // Starts again when the same key brings a new text.
  useEffect(() => {
    start();
    return hold;
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [entry]);
  const Icon = ICONS[entry.tone];
  return (
    <div
      className="toast-box alert floating"
      data-tone={entry.tone}
      role={entry.tone === "error" ? "alert" : "status"}
      onMouseEnter={hold}
      onMouseLeave={start}
      onFocus={(event) => {
        hold();
        if (!event.currentTarget.contains(event.relatedTarget)) cameFrom.current = event.relatedTarget;
      }}
      onBlur={start}
    >
      <Icon aria-hidden size={16} />
      <div className="min-w-0 grow wrap-anywhere">
        {entry.text.split("\n").map((line, index) => (
          <p key={index}>{line}</p>
        ))}
        {entry.code ? (
          <p className="mt-1 flex items-center gap-1 text-xs text-muted">
            <code>{entry.code}</code>
            <CopyButton
              text={[entry.text, entry.code, entry.requestId].filter(Boolean).join("\n")}
              label={t("common.copyDetails")}
            />
          </p>
        ) : null}
      </div>
      {entry.undo ? (
        <button
          type="button"
          className="btn btn-sm btn-ghost text-primary"
          title={keysText(UNDO_KEYS)}
          onClick={() => {
            goBack();
            undo(entry);
          }}
        >
          {t("common.undo")}
        </button>
      ) : null}
      <button
        type="button"
        className="btn btn-ghost btn-square btn-xs"
        aria-label={t("common.close")}
        onClick={() => {
          goBack();
          dismissToast(entry.key);
        }}
      >
        <X aria-hidden />
      </button>
    </div>
  );
}

export interface NoticeProps {
  tone: Tone;
  children: ReactNode;
  /** Buttons at the end. */
  action?: ReactNode;
  onClose?: () => void;
}

/** A bar inside the page: an information, a warning, a failure with Retry. */
export function Notice({ tone, children, action, onClose }: NoticeProps) {
  const t = useT();
  const Icon = ICONS[tone];
  return (
    <div className="alert alert-soft" data-tone={tone} role={tone === "error" ? "alert" : undefined}>
      <Icon aria-hidden size={16} />
      <div className="min-w-0 grow">{children}</div>
      {action}
      {onClose ? (
        <button
          type="button"
          className="btn btn-ghost btn-square btn-xs"
          aria-label={t("common.close")}
          onClick={onClose}
        >
          <X aria-hidden />
        </button>
      ) : null}
    </div>
  );
}

export interface EmptyProps {
  /** What belongs here. */
  title: string;
  /** Why it is empty and what to do. */
  text?: string;
  action?: ReactNode;
}

export function Empty({ title, text, action }: EmptyProps) {
  return (
    <div className="flex flex-col items-center gap-2 px-6 py-14 text-center text-sm">
      <p className="font-semibold">{title}</p>
      {text ? <p className="text-muted max-w-[60ch]">{text}</p> : null}
      {action ? <div className="mt-2 flex flex-wrap justify-center gap-2">{action}</div> : null}
    </div>
  );
}

/** Why something could not be fetched, with a way to fetch it again; what was there before stays. */
export function FailureNotice({ text, onRetry }: { text: string | undefined; onRetry: () => Promise<void> }) {
  const t = useT();
  return (
    <Notice
      tone="error"
      action={
        <button type="button" className="btn btn-sm btn-default" onClick={() => void onRetry()}>
          {t("common.retry")}
        </button>
      }
    >
      {text}
    </Notice>
  );
}
