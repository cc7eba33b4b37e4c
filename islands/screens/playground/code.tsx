// View code: the call that the playground would make now, in three languages.
// Refuses to show a key; it links to where one is made.
import { useState } from "react";
import { status } from "../../lib/boot.ts";
import { useT } from "../../lib/i18n.ts";
import { CopyButton } from "../../ui/copy-button.tsx";
import { Drawer } from "../../ui/drawer.tsx";
import { Segments } from "../../ui/segments.tsx";
import type { Conversation, Settings } from "./conversation.ts";
import type { CodeLanguage } from "./samples.ts";
import { CODE_LANGUAGES, sampleOf } from "./samples.ts";
import { bodyToShow } from "./shown-body.ts";

export interface CodeDrawerProps {
  settings: Settings;
  conversation: Conversation;
  /** What is being written. */
  draft: string;
  onClose: () => void;
}

export default function CodeDrawer({ settings, conversation, draft, onClose }: CodeDrawerProps) {
  const t = useT();
  const body = bodyToShow(settings, conversation, draft);
  const [language, setLanguage] = useState<CodeLanguage>("curl");
  const code = sampleOf(language, status.peek().server_address || location.origin, body);
  return (
    <Drawer isOpen title={t("playground.codeTitle")} onClose={onClose}>
      <div className="flex flex-wrap items-center gap-2">
        <Segments
          label={t("playground.codeLanguage")}
          of={CODE_LANGUAGES}
          chosen={language}
          textOf={(each) => each}
          onChoose={setLanguage}
        />
        <span className="ml-auto">
          <CopyButton text={code} label={t("common.copy")} withText />
        </span>
      </div>
      <pre
        className="mt-3 overflow-x-auto rounded-box border border-base-300 bg-base-200 p-3 text-[13px] leading-5"
        tabIndex={0}
      >
        <code>{code}</code>
      </pre>
      <p className="mt-3 text-muted">
        {t("playground.codeText")}{" "}
        <a className="text-primary underline underline-offset-2" href="/token">
          {t("playground.codeKeys")}
        </a>
      </p>
    </Drawer>
  );
}
