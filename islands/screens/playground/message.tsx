// One message of a conversation: text with code blocks, thinking folded, its figures and its actions.
// Refuses to render what a model wrote as anything but text.
import { RotateCcw, Trash2 } from "lucide-react";
import { memo } from "react";
import { formatDuration, formatNumber } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import { CopyButton } from "../../ui/copy-button.tsx";
import type { Message } from "./conversation.ts";
import { splitFences } from "./fences.ts";

interface MessageActions {
  onDelete: (id: string) => void;
  onRegenerate: (id: string) => void;
}

interface MessageViewProps extends MessageActions {
  message: Message;
  /** Regenerating is offered on the last answer only: what follows an answer was said because of it. */
  isLast: boolean;
  isRunning: boolean;
  /** Above the cut: shown, no longer sent. */
  isMuted: boolean;
}

/** Rendered again only when its own message changed: an answer that streams leaves the others alone. */
export const MessageView = memo(function MessageView(props: MessageViewProps) {
  const { message, isLast, isRunning, isMuted } = props;
  const t = useT();
  const isUser = message.role === "user";
  // Greetings follow the language; nobody wrote them.
  const content = message.isGreeting
    ? t(isUser ? "playground.greetingUser" : "playground.greeting")
    : message.content;
  const isOver = !isRunning || !isLast;
  const speaker = isUser ? t("playground.you") : (message.model ?? t("playground.assistant"));
  return (
    <li
      className={`group flex flex-col ${isUser ? "items-end" : "items-start"} ${isMuted ? "text-muted" : ""}`}
      aria-busy={!isOver && !isUser}
      data-status={message.status}
    >
      <p className={isUser ? "sr-only" : "mb-1 text-xs text-muted"}>{speaker}</p>
      <div
        className={`max-w-[min(100%,76ch)] min-w-0 ${isUser ? "rounded-box bg-primary/10 px-3 py-2" : "w-full"}`}
      >
        {message.thinking ? (
          <details className="mb-2 text-muted">
            <summary className="min-h-6 cursor-pointer text-[13px]">{t("playground.thinking")}</summary>
            <p className="border-l-2 border-base-300 pl-3 text-[13px] break-words whitespace-pre-wrap">
              {message.thinking}
            </p>
          </details>
        ) : null}
        {message.status === "loading" && !isOver ? (
          <p className="flex items-center gap-2 text-muted">
            <span className="loading loading-xs" aria-hidden />
            {t("playground.waiting")}
          </p>
        ) : (
          <Content text={content} />
        )}
        {message.error === undefined ? null : (
          <p className="mt-1 break-words whitespace-pre-wrap text-error" role="alert">
            {message.error}
            {message.errorCode ? <code className="ml-2 text-xs text-muted">{message.errorCode}</code> : null}
          </p>
        )}
      </div>
      {(isOver || isUser) && !message.isGreeting ? (
        <div className="mt-1 flex min-h-6 flex-wrap items-center gap-x-3 gap-y-1 text-xs text-muted">
          {message.status === "incomplete" && !isUser ? <span>{t("playground.stopped")}</span> : null}
          <Figures message={message} />
          <span className="flex items-center">
            <CopyButton text={message.content} label={t("playground.copyMessage")} />
            {isLast && !isUser ? (
              <button
                type="button"
                className="btn btn-ghost btn-square btn-xs"
                aria-label={t("playground.regenerate")}
                title={t("playground.regenerate")}
                onClick={() => props.onRegenerate(message.id)}
              >
                <RotateCcw aria-hidden size={14} />
              </button>
            ) : null}
            <button
              type="button"
              className="btn btn-ghost btn-square btn-xs"
              aria-label={t("playground.deleteMessage")}
              title={t("playground.deleteMessage")}
              disabled={isRunning}
              onClick={() => props.onDelete(message.id)}
            >
              <Trash2 aria-hidden size={14} />
            </button>
          </span>
        </div>
      ) : null}
    </li>
  );
});

function Content({ text }: { text: string }) {
  const t = useT();
  if (text === "") return null;
  return (
    <div className="flex flex-col gap-2">
      {splitFences(text).map((part, index) =>
        part.isCode ? (
          <div key={index} className="min-w-0 overflow-hidden rounded-box border border-base-300">
            <div className="flex min-h-7 items-center justify-between gap-2 bg-base-200 pr-1 pl-3 text-xs text-muted">
              <span>{part.language}</span>
              <CopyButton text={part.text} label={t("playground.copyCode")} />
            </div>
            <pre className="overflow-x-auto p-3 text-[13px] leading-5" tabIndex={0}>
              <code>{part.text}</code>
            </pre>
          </div>
        ) : (
          <p key={index} className="break-words whitespace-pre-wrap">
            {part.text}
          </p>
        ),
      )}
    </div>
  );
}

function Figures({ message }: { message: Message }) {
  const t = useT();
  const { firstTokenMs, totalMs, promptTokens, completionTokens } = message;
  return (
    <>
      {firstTokenMs === undefined ? null : (
        <span className="tabular-nums">
          {t("playground.firstToken", { time: formatDuration(firstTokenMs) })}
        </span>
      )}
      {totalMs === undefined ? null : (
        <span className="tabular-nums">{t("playground.totalTime", { time: formatDuration(totalMs) })}</span>
      )}
      {promptTokens === undefined || completionTokens === undefined ? null : (
        <span className="tabular-nums">
          {t("playground.tokens", {
            prompt: formatNumber(promptTokens),
            completion: formatNumber(completionTokens),
          })}
        </span>
      )}
    </>
  );
}
