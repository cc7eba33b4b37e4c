// The playground: a conversation with a model through the gateway, its settings, and the same call as code. Answers are charged.
import { Eraser } from "lucide-react";
import { useCallback, useRef, useState } from "react";
import { bootData } from "../lib/boot.ts";
import { useT } from "../lib/i18n.ts";
import { useShortcut } from "../lib/keys.ts";
import { lazyPart } from "../lib/lazy-part.tsx";
import { toast } from "../lib/toasts.ts";
import { useQuery } from "../lib/url-state.ts";
import { Notice } from "../ui/feedback.tsx";
import { PageHeader } from "../ui/page-header.tsx";
import { Composer } from "./playground/composer.tsx";
import { contextOf } from "./playground/conversation.ts";
import { HeaderActions } from "./playground/header-actions.tsx";
import { MessageList, NoModels } from "./playground/message-list.tsx";
import { MessageView } from "./playground/message.tsx";
import { bodyToShow } from "./playground/request.ts";
import { SettingsPanel } from "./playground/settings.tsx";
import { usePlayground } from "./playground/use-playground.ts";
import type { Playground, PlaygroundData } from "./playground/use-playground.ts";

const SettingsSheet = lazyPart(() => import("./playground/settings-sheet.tsx"));
const CodeDrawer = lazyPart(() => import("./playground/code.tsx"));
const UnpricedModel = lazyPart(() => import("./playground/unpriced-model.tsx"));

export default function PlaygroundScreen() {
  const t = useT();
  const query = useQuery();
  const playground = usePlayground(bootData<PlaygroundData>());
  const { conversation, settings } = playground;
  const [text, setText] = useState("");
  const [open, setOpen] = useState<"settings" | "code">();
  const input = useRef<HTMLTextAreaElement>(null);
  const close = () => setOpen(undefined);
  const send = () => {
    playground.send(text.trim());
    setText("");
  };
  const create = () => {
    if (playground.isRunning) return;
    playground.create();
    input.current?.focus();
  };
  useShortcut({ keys: "c", label: "playground.new", run: create });

  const panel = (
    <SettingsPanel
      settings={settings}
      groups={playground.groups}
      models={playground.models}
      onChange={playground.setSettings}
      onReset={playground.resetSettings}
    />
  );
  return (
    <div className="flex -mb-5 h-[calc(100dvh-128px)] min-h-[400px] flex-col sm:-mb-6 sm:h-[calc(100dvh-80px)] lg:-mb-8 lg:h-[calc(100dvh-84px)]">
      <PageHeader
        title={t("shell.nav.playground")}
        action={
          <HeaderActions
            playground={playground}
            onSettings={() => setOpen("settings")}
            onCode={() => setOpen("code")}
            onCreate={create}
          />
        }
      />
      {query.expired === "true" ? <Notice tone="warning">{t("playground.expired")}</Notice> : null}
      <div className="flex min-h-0 grow gap-6">
        <div className="flex min-w-0 grow flex-col">
          <Messages playground={playground} />
          <div className="mx-auto w-full max-w-[800px] pt-2">
            <UnpricedModel model={settings.model} />
            <ComposerHead playground={playground} onSettings={() => setOpen("settings")} />
            <Composer
              text={text}
              onText={setText}
              isRunning={playground.isRunning}
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

function Messages({ playground }: { playground: Playground }) {
  const t = useT();
  const { conversation, isLoaded, isRunning } = playground;
  const latest = useRef(playground);
  latest.current = playground;
  // The same functions with every render: a message that did not change is not drawn anew.
  const onDelete = useCallback(
    (id: string) => {
      const undo = latest.current.remove(id);
      toast({ key: "message", text: t("playground.messageDeleted"), undo });
    },
    [t],
  );
  const onRegenerate = useCallback((id: string) => latest.current.regenerate(id), []);
  if (playground.models.length === 0) {
    return (
      <div className="grow">
        <NoModels />
      </div>
    );
  }
  return (
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
  );
}

/** Above the composer: the model on a phone, the keys, and the end of the context. */
function ComposerHead({ playground, onSettings }: { playground: Playground; onSettings: () => void }) {
  const t = useT();
  const { conversation, settings, isRunning } = playground;
  return (
    <div className="mb-1 flex min-h-7 items-center justify-between gap-2 text-xs text-muted">
      <button
        type="button"
        className="min-h-6 min-w-0 cursor-pointer truncate hover:text-base-content lg:hidden"
        onClick={onSettings}
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
  );
}
