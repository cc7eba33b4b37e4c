// One message of a conversation: a question with its pictures, or an answer as Markdown, thinking folded, figures, actions.
// Refuses to take what a model wrote as markup of the page: markdown.tsx makes elements of what it knows, the rest is text.
import { Braces, GitBranch, Pencil, RotateCcw, Square, Trash2 } from "lucide-react";
import { memo, useRef, useState } from "react";
import type { ComponentType } from "react";
import { useT } from "../../lib/i18n.ts";
import { lazyPart } from "../../lib/lazy-part.tsx";
import { CopyButton } from "../../ui/copy-button.tsx";
import type { Message } from "./conversation.ts";
import { Figures } from "./figures.tsx";
import { PlainText } from "./plain-text.tsx";
import { rawEventsOf } from "./raw-events.ts";
import type { Draft } from "./use-playground.ts";

export interface MessageActions {
  onDelete: (id: string) => void;
  onRegenerate: (id: string) => void;
  onResend: (id: string, draft: Draft) => void;
  onBranch: (id: string) => void;
  onStop: (id: string) => void;
  onRaw: (id: string) => void;
}

export interface MessageViewProps {
  message: Message;
  /** Regenerating is offered on the last answers only: what follows an answer was said because of it. */
  isLast: boolean;
  /** Some answer is running. */
  isRunning: boolean;
  /** This one is. */
  isGrowing: boolean;
  /** Above the cut: shown, no longer sent. */
  isMuted: boolean;
  actions: MessageActions;
}

const Markdown = lazyPart<{ text: string; isGrowing: boolean }>(() => import("./markdown.tsx"), PlainText);
const EditQuestion = lazyPart(() => import("./edit.tsx"));

/** Rendered again only when its own message changed: an answer that streams leaves the others alone. */
export const MessageView = memo(function MessageView(props: MessageViewProps) {
  const { message, isRunning, isGrowing, isMuted, actions } = props;
  const t = useT();
  const [isEditing, setEditing] = useState(false);
  const editButton = useRef<HTMLButtonElement>(null);
  const isUser = message.role === "user";
  const speaker = isUser ? t("playground.you") : (message.model ?? t("playground.assistant"));
  return (
    <div
      className={`flex min-w-0 flex-col ${isUser ? "items-end" : "items-start"} ${isMuted ? "text-muted" : ""}`}
      aria-busy={isGrowing}
      data-status={message.status}
      data-message={message.id}
    >
      <p className={isUser ? "sr-only" : "mb-1 text-xs break-all text-muted"}>{speaker}</p>
      <div
        className={`min-w-0 ${isUser && !isEditing ? "max-w-[min(100%,76ch)] rounded-box bg-primary/10 px-3 py-2" : "w-full max-w-[76ch]"}`}
      >
        {isEditing ? (
          <EditQuestion
            isOff={isRunning}
            draft={{ text: message.content, images: message.images ?? [] }}
            onCancel={() => {
              setEditing(false);
              requestAnimationFrame(() => editButton.current?.focus());
            }}
            onSend={(draft) => {
              setEditing(false);
              actions.onResend(message.id, draft);
            }}
          />
        ) : (
          <Body message={message} isGrowing={isGrowing} />
        )}
      </div>
      {message.isGreeting || isEditing ? null : (
        <div className="mt-1 flex min-h-6 flex-wrap items-center gap-x-3 gap-y-1 text-xs text-muted">
          {isGrowing ? (
            <Action
              icon={Square}
              label={t("playground.stopOne")}
              onClick={() => actions.onStop(message.id)}
            />
          ) : (
            <>
              {message.status === "incomplete" && !isUser ? <span>{t("playground.stopped")}</span> : null}
              {isUser ? null : <Figures message={message} />}
              <Buttons {...props} editButton={editButton} onEdit={() => setEditing(true)} />
            </>
          )}
        </div>
      )}
    </div>
  );
});

interface ButtonsProps extends MessageViewProps {
  editButton: React.RefObject<HTMLButtonElement | null>;
  onEdit: () => void;
}

function Buttons({ message, isLast, isRunning, actions, editButton, onEdit }: ButtonsProps) {
  const t = useT();
  const { id } = message;
  const isUser = message.role === "user";
  const isOffered = !isRunning;
  return (
    <span className="flex flex-wrap items-center">
      {message.content === "" ? null : (
        <CopyButton text={message.content} label={t("playground.copyMessage")} />
      )}
      {isUser ? (
        <Action
          button={editButton}
          icon={Pencil}
          label={t("playground.edit")}
          isOff={!isOffered}
          onClick={onEdit}
        />
      ) : null}
      {isLast && !isUser ? (
        <Action
          icon={RotateCcw}
          label={t("playground.regenerate")}
          isOff={!isOffered}
          onClick={() => actions.onRegenerate(id)}
        />
      ) : null}
      {isUser || message.content === "" ? null : (
        <Action
          icon={GitBranch}
          label={t("playground.branch")}
          isOff={!isOffered}
          onClick={() => actions.onBranch(id)}
        />
      )}
      {rawEventsOf(id).length > 0 ? (
        <Action icon={Braces} label={t("playground.raw")} onClick={() => actions.onRaw(id)} />
      ) : null}
      <Action
        icon={Trash2}
        label={t("playground.deleteMessage")}
        isOff={!isOffered}
        onClick={() => actions.onDelete(id)}
      />
    </span>
  );
}

interface ActionProps {
  icon: ComponentType<{ "aria-hidden"?: boolean; size?: number }>;
  label: string;
  isOff?: boolean;
  onClick: () => void;
  button?: React.RefObject<HTMLButtonElement | null>;
}

function Action({ icon: Icon, label, isOff = false, onClick, button }: ActionProps) {
  return (
    <button
      ref={button}
      type="button"
      className="btn btn-ghost btn-square btn-xs"
      aria-label={label}
      title={label}
      disabled={isOff}
      onClick={onClick}
    >
      <Icon aria-hidden size={14} />
    </button>
  );
}

function Body({ message, isGrowing }: { message: Message; isGrowing: boolean }) {
  const t = useT();
  const isUser = message.role === "user";
  // Greetings follow the language; nobody wrote them.
  const content = message.isGreeting
    ? t(isUser ? "playground.greetingUser" : "playground.greeting")
    : message.content;
  const isWaiting = isGrowing && message.status === "loading";
  return (
    <>
      {message.thinking ? (
        <details className="mb-2 text-muted">
          <summary className="min-h-6 cursor-pointer text-[13px]">{t("playground.thinking")}</summary>
          <p className="border-l-2 border-base-300 pl-3 text-[13px] break-words whitespace-pre-wrap">
            {message.thinking}
          </p>
        </details>
      ) : null}
      <Pictures message={message} />
      {isWaiting ? (
        <p className="flex items-center gap-2 text-muted">
          <span className="loading loading-xs" aria-hidden />
          {t("playground.waiting")}
        </p>
      ) : content === "" ? null : isUser || message.isGreeting ? (
        <PlainText text={content} />
      ) : (
        <Markdown text={content} isGrowing={isGrowing} />
      )}
      {message.error === undefined ? null : (
        <p className="mt-1 break-words whitespace-pre-wrap text-error" role="alert">
          {message.error}
          {message.errorCode ? <code className="ml-2 text-xs text-muted">{message.errorCode}</code> : null}
        </p>
      )}
    </>
  );
}

function Pictures({ message: { role, images = [], lostImages = 0 } }: { message: Message }) {
  const t = useT();
  return (
    <>
      {images.length > 0 ? (
        <ul className={`mb-1 flex flex-wrap gap-2 ${role === "user" ? "justify-end" : ""}`}>
          {images.map((url, index) => (
            <li key={index}>
              <img
                className={`${role === "user" ? "max-h-48" : "max-h-96"} max-w-full rounded-field border border-base-300`}
                src={url}
                alt={t("playground.pictureNo", { number: index + 1 })}
              />
            </li>
          ))}
        </ul>
      ) : null}
      {lostImages > 0 ? (
        <p className="mb-1 text-xs text-muted">{t("playground.picturesLost", { count: lostImages })}</p>
      ) : null}
    </>
  );
}
