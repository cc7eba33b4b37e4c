// Sends the visitor to the operator's chat with key and address in the link: an old entry point that others still link to.
// Refuses to leave without a key or a link: it says what is missing.
import { useEffect } from "react";
import { useSignals } from "@preact/signals-react/runtime";
import { bootData, status } from "../lib/boot.ts";
import { serverAddress } from "../lib/chat-links.ts";
import { useT } from "../lib/i18n.ts";
import { leaveFor } from "../lib/leave.ts";
import { Notice } from "../ui/feedback.tsx";
import type { ChatPageData } from "./chat.tsx";

export default function ChatToLink() {
  const t = useT();
  useSignals();
  const [first] = bootData<ChatPageData>().keys;
  const base = status.value.chat_link ?? "";
  const isWeb = /^https?:\/\//i.test(base);
  const settings = first && JSON.stringify({ key: `sk-${first.key}`, url: serverAddress() });
  const target = isWeb && settings ? `${base}/#/?settings=${encodeURIComponent(settings)}` : undefined;
  useEffect(() => {
    if (target) leaveFor(target);
  }, [target]);
  return (
    <section className="mx-auto mt-[15dvh] w-full max-w-160 px-4">
      <h1 className="sr-only">{t("shell.nav.chat")}</h1>
      {target ? (
        <p role="status">{t("common.loading")}</p>
      ) : (
        <Notice
          tone="error"
          action={
            first ? undefined : (
              <a className="btn btn-sm btn-default" href="/token">
                {t("chat.toKeys")}
              </a>
            )
          }
        >
          {t(first ? "chat.none" : "chat.noKey")}
        </Notice>
      )}
    </section>
  );
}
