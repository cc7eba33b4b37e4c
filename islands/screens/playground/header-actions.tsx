// The buttons of the playground's header: settings on a phone, the call as code, a new conversation, the stored ones.
import { Check, Code, Download, History, MessageSquare, Plus, SlidersHorizontal, Trash2 } from "lucide-react";
import { useT } from "../../lib/i18n.ts";
import { toast } from "../../lib/toasts.ts";
import { Menu } from "../../ui/menu.tsx";
import type { MenuGroups } from "../../ui/menu.tsx";
import { conversationTitle } from "./conversation.ts";
import type { Conversation } from "./conversation.ts";
import type { Playground } from "./use-playground.ts";

async function download(conversation: Conversation): Promise<void> {
  const { downloadText } = await import("../../lib/csv.ts");
  const text = JSON.stringify(conversation, null, 2);
  downloadText(`conversation-${conversation.id}.json`, text, "application/json");
}

export interface HeaderActionsProps {
  playground: Playground;
  onSettings: () => void;
  onCode: () => void;
  onCreate: () => void;
}

export function HeaderActions({ playground, onSettings, onCode, onCreate }: HeaderActionsProps) {
  const t = useT();
  return (
    <>
      <button
        type="button"
        className="btn btn-default btn-square lg:hidden"
        aria-label={t("playground.settings")}
        title={t("playground.settings")}
        onClick={onSettings}
      >
        <SlidersHorizontal aria-hidden size={16} />
      </button>
      <button
        type="button"
        className="btn btn-default max-sm:btn-square"
        aria-label={t("playground.viewCode")}
        onClick={onCode}
      >
        <Code aria-hidden size={16} />
        <span className="max-sm:hidden">{t("playground.viewCode")}</span>
      </button>
      <button
        type="button"
        className="btn btn-default max-sm:btn-square"
        aria-label={t("playground.new")}
        disabled={playground.isRunning}
        onClick={onCreate}
      >
        <Plus aria-hidden size={16} />
        <span className="max-sm:hidden">{t("playground.new")}</span>
      </button>
      <ConversationMenu playground={playground} />
    </>
  );
}

function ConversationMenu({ playground }: { playground: Playground }) {
  const t = useT();
  const { conversation, conversations, isRunning } = playground;
  const stored = conversations.map((each) => ({
    id: each.id,
    label: conversationTitle(each) || t("playground.untitled"),
    icon: each.id === conversation.id ? Check : MessageSquare,
    onSelect: () => playground.open(each.id),
  }));
  const groups: MenuGroups = [
    isRunning ? [] : stored,
    [
      {
        id: "export",
        label: t("playground.export"),
        icon: Download,
        onSelect: () => void download(conversation),
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
  ];
  return (
    <Menu label={t("playground.conversations")} className="btn btn-default btn-square" groups={groups}>
      <History aria-hidden size={16} />
    </Menu>
  );
}
