// The playground: a conversation with one model or two through the gateway, its settings, and the same call as code.
// Answers are charged; what each one cost stands below it.
import { Eraser } from "lucide-react";
import { useRef, useState } from "react";
import { bootData } from "../lib/boot.ts";
import { useT } from "../lib/i18n.ts";
import { useShortcut } from "../lib/keys.ts";
import { lazyPart } from "../lib/lazy-part.tsx";
import { useQuery } from "../lib/url-state.ts";
import { Notice } from "../ui/feedback.tsx";
import { PageHeader } from "../ui/page-header.tsx";
import { Composer } from "./playground/composer.tsx";
import { contextOf } from "./playground/conversation.ts";
import { HeaderActions } from "./playground/header-actions.tsx";
import { SettingsPanel } from "./playground/settings.tsx";
import { useDraft } from "./playground/use-draft.ts";
import { usePlayground } from "./playground/use-playground.ts";
import type { Draft, Playground } from "./playground/use-playground.ts";
import type { PlaygroundData } from "./playground/use-stored.ts";

const Messages = lazyPart(
  () => import("./playground/messages.tsx"),
  () => <div className="grow" />,
);
const NoModels = lazyPart(() => import("./playground/no-models.tsx"));
const SettingsSheet = lazyPart(() => import("./playground/settings-sheet.tsx"));
const CodeDrawer = lazyPart(() => import("./playground/code.tsx"));
const QuoteLine = lazyPart(() => import("./playground/quote-line.tsx"));
const ModelNotes = lazyPart(() => import("./playground/model-notes.tsx"));

export default function PlaygroundScreen() {
  const t = useT();
  const query = useQuery();
  const data = bootData<PlaygroundData>();
  const { notices = [] } = data;
  const playground = usePlayground(data);
  const { conversation, settings } = playground;
  const [open, setOpen] = useState<"settings" | "code">();
  const input = useRef<HTMLTextAreaElement>(null);
  const focusInput = () => input.current?.focus();
  const close = () => setOpen(undefined);
  const create = () => {
    if (playground.isRunning) return;
    playground.create();
    focusInput();
  };
  const draft = useDraft(playground);
  const perhapsUnpriced = [settings.model, settings.other].filter(
    (model) => model !== "" && !playground.prices.get(model)?.length,
  );
  useShortcut({ keys: "c", label: "playground.new", run: create });

  const panel = (
    <SettingsPanel
      settings={settings}
      groups={playground.groups}
      models={playground.models}
      prices={playground.prices}
      onChange={playground.setSettings}
      onReset={playground.resetSettings}
    />
  );
  return (
    <div className="flex -mb-3 h-[calc(100dvh-160px)] min-h-[400px] flex-col sm:mb-0 sm:h-[calc(100dvh-104px)] lg:-mb-2 lg:h-[calc(100dvh-108px)]">
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
        <DropArea onFiles={(files) => void draft.addFiles(files)} onEscape={() => playground.stop()}>
          {playground.models.length > 0 ? (
            <Messages playground={playground} onLeave={focusInput} />
          ) : (
            <div className="grow">
              <NoModels />
            </div>
          )}
          <div className="mx-auto w-full max-w-[800px] pt-2">
            {perhapsUnpriced.length + notices.length > 0 ? (
              <ModelNotes
                chosen={[settings.model, settings.other]}
                perhapsUnpriced={perhapsUnpriced}
                notices={notices}
              />
            ) : null}
            <ComposerHead
              playground={playground}
              draft={draft.draft}
              onSettings={() => setOpen("settings")}
            />
            <Composer
              text={draft.draft.text}
              onText={draft.setText}
              images={draft.draft.images}
              onFiles={(files) => void draft.addFiles(files)}
              onRemoveImage={draft.removeImage}
              refused={draft.refused}
              mostBodyMb={playground.mostBodyMb}
              isRunning={playground.isRunning}
              canSend={settings.model !== ""}
              onSend={() => playground.send(draft.take())}
              onStop={() => playground.stop()}
              input={input}
            />
          </div>
        </DropArea>
        <aside
          aria-label={t("playground.settings")}
          className="hidden w-72 flex-none overflow-y-auto border-l border-base-300 pl-5 pr-1 lg:block"
        >
          {panel}
        </aside>
      </div>
      {open === "settings" ? <SettingsSheet onClose={close}>{panel}</SettingsSheet> : null}
      {open === "code" ? (
        <CodeDrawer
          settings={settings}
          conversation={conversation}
          draft={draft.draft.text}
          onClose={close}
        />
      ) : null}
    </div>
  );
}

interface DropAreaProps {
  onFiles: (files: File[]) => void;
  onEscape: () => void;
  children: React.ReactNode;
}

/** Files may be dropped anywhere on the conversation; Escape stops what runs, wherever in it the focus is. */
function DropArea({ onFiles, onEscape, children }: DropAreaProps) {
  const t = useT();
  const [isOver, setOver] = useState(false);
  return (
    <div
      className="relative flex min-w-0 grow flex-col"
      onKeyDown={(event) => {
        if (event.key !== "Escape" || event.defaultPrevented || event.nativeEvent.isComposing) return;
        onEscape();
      }}
      onDragOver={(event) => {
        if (!event.dataTransfer.types.includes("Files")) return;
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={(event) => {
        if (!(event.relatedTarget instanceof Node && event.currentTarget.contains(event.relatedTarget)))
          setOver(false);
      }}
      onDrop={(event) => {
        setOver(false);
        if (event.dataTransfer.files.length === 0) return;
        event.preventDefault();
        onFiles([...event.dataTransfer.files]);
      }}
    >
      {children}
      {isOver ? (
        <p className="pointer-events-none absolute inset-0 z-10 grid place-items-center rounded-box border-2 border-dashed border-primary bg-base-100/90 font-semibold">
          {t("playground.dropHere")}
        </p>
      ) : null}
    </div>
  );
}

interface ComposerHeadProps {
  playground: Playground;
  draft: Draft;
  onSettings: () => void;
}

/** Above the composer: the models on a phone, what the question would cost, else the keys, and the end of the context. */
function ComposerHead({ playground, draft, onSettings }: ComposerHeadProps) {
  const t = useT();
  const { conversation, settings, isRunning } = playground;
  const models = [settings.model, settings.other].filter(Boolean).join(" · ");
  const isWritten =
    !isRunning && settings.model !== "" && (draft.text.trim() !== "" || draft.images.length > 0);
  return (
    <div className="mb-1 flex min-h-7 items-center justify-between gap-x-2 text-xs text-muted max-sm:flex-wrap">
      <button
        type="button"
        className="min-h-6 min-w-0 cursor-pointer truncate hover:text-base-content lg:hidden"
        onClick={onSettings}
      >
        {models || t("playground.pickModel")}
      </button>
      {isWritten ? (
        <QuoteLine settings={settings} conversation={conversation} draft={draft} />
      ) : (
        <span className="max-lg:hidden">{t("playground.keysHint")}</span>
      )}
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
