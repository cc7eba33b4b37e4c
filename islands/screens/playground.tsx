// The playground: a conversation with a model through the gateway, its settings, and the same call as code.
// Refuses nothing that the API allows; answers are charged like any other call.
import {
  ArrowDown,
  Check,
  Code,
  Download,
  Eraser,
  History,
  MessageSquare,
  Plus,
  SlidersHorizontal,
  Trash2,
} from "lucide-react";
import { useCallback, useEffect, useRef, useState } from "react";
import { bootData, user } from "../lib/boot.ts";
import { useT } from "../lib/i18n.ts";
import { useShortcut } from "../lib/keys.ts";
import { lazyPart } from "../lib/lazy-part.tsx";
import { useQuery } from "../lib/url-state.ts";
import { Empty, Notice } from "../ui/feedback.tsx";
import { toast } from "../lib/toasts.ts";
import { Menu } from "../ui/menu.tsx";
import { PageHeader } from "../ui/page-header.tsx";
import { Composer } from "./playground/composer.tsx";
import type { Conversation } from "./playground/conversation.ts";
import { contextOf, conversationTitle } from "./playground/conversation.ts";
import { MessageView } from "./playground/message.tsx";
import { bodyToShow } from "./playground/request.ts";
import { SettingsPanel } from "./playground/settings.tsx";
import type { PlaygroundData } from "./playground/use-playground.ts";
import { usePlayground } from "./playground/use-playground.ts";

const SettingsSheet = lazyPart(() => import("./playground/settings-sheet.tsx"));
const CodeDrawer = lazyPart(() => import("./playground/code.tsx"));

const ADMIN_ROLE = 10;
/** Nearer to the end than this, the view follows the answer. */
const FOLLOW_PX = 80;

function download(conversation: Conversation): void {
  const link = document.createElement("a");
  const blob = new Blob([JSON.stringify(conversation, null, 2)], { type: "application/json" });
  link.href = URL.createObjectURL(blob);
  link.download = `conversation-${conversation.id}.json`;
  link.click();
  URL.revokeObjectURL(link.href);
}

export default function PlaygroundScreen() {
  const t = useT();
  const data = bootData<PlaygroundData>();
  const query = useQuery();
  const playground = usePlayground(data);
  const { conversation, conversations, settings, models, isRunning, isLoaded } = playground;
  const [text, setText] = useState("");
  const [open, setOpen] = useState<"settings" | "code">();
  const input = useRef<HTMLTextAreaElement>(null);
  const close = () => setOpen(undefined);

  const send = () => {
    playground.send(text.trim());
    setText("");
  };
  const latest = useRef(playground);
  latest.current = playground;
  const onDelete = useCallback(
    (id: string) => {
      const undo = latest.current.remove(id);
      toast({ key: "message", text: t("playground.messageDeleted"), undo });
    },
    [t],
  );
  const onRegenerate = useCallback((id: string) => latest.current.regenerate(id), []);
  const create = () => {
    if (isRunning) return;
    playground.create();
    input.current?.focus();
  };
  useShortcut({ keys: "c", label: "playground.new", run: create });

  const panel = (
    <SettingsPanel
      settings={settings}
      groups={playground.groups}
      models={models}
      onChange={playground.setSettings}
      onReset={playground.resetSettings}
    />
  );
  return (
    <div className="flex -mb-5 h-[calc(100dvh-128px)] min-h-[400px] flex-col sm:-mb-6 sm:h-[calc(100dvh-80px)] lg:-mb-8 lg:h-[calc(100dvh-84px)]">
      <PageHeader
        title={t("shell.nav.playground")}
        action={
          <>
            <button
              type="button"
              className="btn btn-default btn-square lg:hidden"
              aria-label={t("playground.settings")}
              title={t("playground.settings")}
              onClick={() => setOpen("settings")}
            >
              <SlidersHorizontal aria-hidden size={16} />
            </button>
            <button
              type="button"
              className="btn btn-default max-sm:btn-square"
              aria-label={t("playground.viewCode")}
              onClick={() => setOpen("code")}
            >
              <Code aria-hidden size={16} />
              <span className="max-sm:hidden">{t("playground.viewCode")}</span>
            </button>
            <button
              type="button"
              className="btn btn-default max-sm:btn-square"
              aria-label={t("playground.new")}
              disabled={isRunning}
              onClick={create}
            >
              <Plus aria-hidden size={16} />
              <span className="max-sm:hidden">{t("playground.new")}</span>
            </button>
            <Menu
              label={t("playground.conversations")}
              className="btn btn-default btn-square"
              groups={[
                isRunning
                  ? []
                  : conversations.map((each) => ({
                      id: each.id,
                      label: conversationTitle(each) || t("playground.untitled"),
                      icon: each.id === conversation.id ? Check : MessageSquare,
                      onSelect: () => playground.open(each.id),
                    })),
                [
                  {
                    id: "export",
                    label: t("playground.export"),
                    icon: Download,
                    onSelect: () => download(conversation),
                  },
                  {
                    id: "delete",
                    label: t("playground.deleteConversation"),
                    icon: Trash2,
                    isDanger: true,
                    isDisabled: isRunning,
                    onSelect: () =>
                      toast({
                        key: "conversation",
                        text: t("playground.conversationDeleted"),
                        undo: playground.removeConversation(),
                      }),
                  },
                ],
              ]}
            >
              <History aria-hidden size={16} />
            </Menu>
          </>
        }
      />
      {query.expired === "true" ? <Notice tone="warning">{t("playground.expired")}</Notice> : null}
      <div className="flex min-h-0 grow gap-6">
        <div className="flex min-w-0 grow flex-col">
          {models.length === 0 ? (
            <div className="grow">
              <NoModels />
            </div>
          ) : (
            <MessageList
              conversation={conversation}
              isShown={isLoaded}
              isRunning={isRunning}
              onRestore={playground.restoreContext}
            >
              {(message, isLast, isMuted) => (
                <MessageView
                  key={message.id}
                  message={message}
                  isLast={isLast}
                  isRunning={isRunning}
                  isMuted={isMuted}
                  onDelete={onDelete}
                  onRegenerate={onRegenerate}
                />
              )}
            </MessageList>
          )}
          <div className="mx-auto w-full max-w-[800px] pt-2">
            <div className="mb-1 flex min-h-7 items-center justify-between gap-2 text-xs text-muted">
              <button
                type="button"
                className="min-h-6 min-w-0 cursor-pointer truncate hover:text-base-content lg:hidden"
                onClick={() => setOpen("settings")}
              >
                {settings.model || t("playground.pickModel")}
              </button>
              <span className="max-lg:hidden">{t("playground.keysHint")}</span>
              <button
                type="button"
                className="btn btn-sm btn-ghost text-muted"
                disabled={isRunning || contextOf(conversation).length === 0}
                onClick={playground.clearContext}
              >
                <Eraser aria-hidden size={14} />
                {t("playground.clearContext")}
              </button>
            </div>
            <Composer
              text={text}
              onText={setText}
              isRunning={isRunning}
              canSend={settings.model !== ""}
              onSend={send}
              onStop={playground.stop}
              input={input}
            />
          </div>
        </div>
        <aside
          aria-label={t("playground.settings")}
          className="hidden w-72 flex-none overflow-y-auto border-l border-base-300 pl-5 pr-1 lg:block"
        >
          {panel}
        </aside>
      </div>
      {open === "settings" ? <SettingsSheet onClose={close}>{panel}</SettingsSheet> : null}
      {open === "code" ? (
        <CodeDrawer body={bodyToShow(settings, conversation, text)} onClose={close} />
      ) : null}
    </div>
  );
}

function NoModels() {
  const t = useT();
  const isAdmin = (user.peek()?.role ?? 0) >= ADMIN_ROLE;
  return (
    <Empty
      title={t("playground.noModels")}
      text={t(isAdmin ? "playground.noModelsAdmin" : "playground.noModelsText")}
      action={
        isAdmin ? (
          <a className="btn btn-sm btn-primary" href="/channel?new=1">
            {t("playground.addChannel")}
          </a>
        ) : undefined
      }
    />
  );
}

/** Follows the end while it is in sight; scrolled up, it stays and offers the way down. */
function MessageList({
  conversation,
  isShown,
  isRunning,
  onRestore,
  children,
}: {
  conversation: Conversation;
  /** False until the stored conversations are known: nothing is drawn that would be replaced at once. */
  isShown: boolean;
  isRunning: boolean;
  onRestore: () => void;
  children: (message: Conversation["messages"][number], isLast: boolean, isMuted: boolean) => React.ReactNode;
}) {
  const t = useT();
  const box = useRef<HTMLDivElement>(null);
  const isFollowing = useRef(true);
  const [isAway, setAway] = useState(false);
  const { messages, clearedAt, id } = conversation;
  const cut = clearedAt === "" ? -1 : messages.findIndex((each) => each.id === clearedAt);
  const toEnd = () => {
    if (box.current) box.current.scrollTop = box.current.scrollHeight;
  };
  useEffect(() => {
    isFollowing.current = true;
    toEnd();
  }, [id, isShown, messages.length]);
  useEffect(() => {
    if (isFollowing.current) toEnd();
  });
  return (
    <div className="relative min-h-0 grow">
      <div
        ref={box}
        role="region"
        aria-label={t("playground.list")}
        tabIndex={0}
        className="h-full overflow-y-auto overscroll-contain focus-visible:-outline-offset-2"
        onScroll={({ currentTarget: at }) => {
          isFollowing.current = at.scrollHeight - at.scrollTop - at.clientHeight < FOLLOW_PX;
          setAway(!isFollowing.current);
        }}
      >
        <ol className="mx-auto flex w-full max-w-[800px] flex-col gap-5 px-0.5 py-1" aria-busy={isRunning}>
          {isShown
            ? messages.flatMap((message, index) => [
                children(message, index === messages.length - 1, index <= cut),
                index === cut ? (
                  <li
                    key="cut"
                    className="flex items-center gap-3 text-xs text-muted before:h-px before:grow before:bg-base-300 after:h-px after:grow after:bg-base-300"
                  >
                    <span>
                      {t("playground.contextCleared")}{" "}
                      <button
                        type="button"
                        className="min-h-6 cursor-pointer text-primary hover:underline"
                        disabled={isRunning}
                        onClick={onRestore}
                      >
                        {t("playground.restoreContext")}
                      </button>
                    </span>
                  </li>
                ) : null,
              ])
            : null}
        </ol>
      </div>
      {isAway ? (
        <button
          type="button"
          className="btn btn-sm btn-default absolute bottom-2 left-1/2 [translate:-50%] floating"
          onClick={toEnd}
        >
          <ArrowDown aria-hidden size={14} />
          {t("playground.toLatest")}
        </button>
      ) : null}
    </div>
  );
}
