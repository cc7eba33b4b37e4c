// A configured chat client in a frame, with one of the visitor's keys filled in; another key can be chosen.
// Refuses to open without an enabled key: it says so and goes to the keys, unless that is cancelled.
import { ArrowLeft, ExternalLink } from "lucide-react";
import { useEffect, useState } from "react";
import { useSignals } from "@preact/signals-react/runtime";
import { boot, bootData } from "../lib/boot.ts";
import { chatLinks, fillChatLink } from "../lib/chat-links.ts";
import { useSite } from "../lib/site.ts";
import { maskSecret } from "../lib/format.ts";
import { useT } from "../lib/i18n.ts";
import { leaveFor } from "../lib/leave.ts";
import { numberOf, setQuery, useQuery } from "../lib/url-state.ts";
import { Notice } from "../ui/feedback.tsx";

export interface ChatKey {
  id: number;
  name: string;
  key: string;
}

export interface ChatPageData {
  /** Enabled keys, newest first. */
  keys: ChatKey[];
}

const WAIT_MS = 1500;
const TICK_MS = 500;

export default function ChatScreen() {
  const t = useT();
  useSignals();
  const { keys } = bootData<ChatPageData>();
  const query = useQuery();
  const index = numberOf(boot.value.params.id, 0);
  const link = chatLinks()[index];
  const chosen = keys.find((key) => String(key.id) === query.token) ?? keys[0];
  const site = useSite();
  const filled = link && chosen && site !== "" ? fillChatLink(link.template, chosen.key) : undefined;

  return (
    <section className="flex min-h-[calc(100dvh-93px)] grow flex-col">
      <h1 className="sr-only">{link?.title ?? t("shell.nav.chat")}</h1>
      <header className="flex min-h-11 items-center gap-2 border-b border-base-300 px-3">
        <a
          className="btn btn-ghost btn-square btn-sm"
          href="/token"
          aria-label={t("chat.back")}
          title={t("chat.back")}
        >
          <ArrowLeft aria-hidden size={16} />
        </a>
        <b className="truncate">{link?.title ?? t("shell.nav.chat")}</b>
        <span className="grow" />
        {keys.length > 0 ? (
          <label className="flex min-w-0 items-center gap-2 whitespace-nowrap">
            <span className="text-muted max-sm:hidden">{t("chat.key")}</span>
            <select
              className="select select-sm max-w-[min(260px,48vw)]"
              aria-label={t("chat.key")}
              value={chosen?.id}
              onChange={(event) => setQuery({ token: event.target.value }, { replace: true })}
            >
              {keys.map((key) => (
                <option key={key.id} value={key.id}>
                  {`${key.name} · sk-${maskSecret(key.key)}`}
                </option>
              ))}
            </select>
          </label>
        ) : null}
        {filled && filled.target !== "broken" ? (
          <a
            className="btn btn-ghost btn-square btn-sm"
            href={filled.url}
            target="_blank"
            rel="noreferrer"
            aria-label={t("chat.newTab")}
            title={t("chat.newTab")}
          >
            <ExternalLink aria-hidden size={16} />
          </a>
        ) : null}
      </header>
      {!link ? (
        <Message text={t(chatLinks().length === 0 ? "chat.none" : "chat.broken")} />
      ) : !chosen ? (
        <NoKey />
      ) : site === "" ? null : filled?.target === "frame" ? (
        <iframe
          key={filled.url}
          className="w-full grow border-0"
          src={filled.url}
          title={link.title}
          allow="camera; microphone; clipboard-write"
          referrerPolicy="no-referrer"
        />
      ) : filled?.target === "app" ? (
        <div className="mx-auto mt-[15dvh] w-full max-w-160 px-4">
          <p>{t("chat.app", { name: link.title })}</p>
          <a className="btn btn-primary mt-3" href={filled.url}>
            {t("chat.openApp", { name: link.title })}
          </a>
        </div>
      ) : (
        <Message text={t("chat.broken")} />
      )}
    </section>
  );
}

function Message({ text }: { text: string }) {
  return (
    <div className="mx-auto mt-[15dvh] w-full max-w-160 px-4">
      <Notice tone="error">{text}</Notice>
    </div>
  );
}

/** The specification's wait before the keys are shown; it can be cancelled. */
function NoKey() {
  const t = useT();
  const [leftMs, setLeft] = useState<number | undefined>(WAIT_MS);
  useEffect(() => {
    if (leftMs === undefined) return undefined;
    if (leftMs <= 0) {
      leaveFor("/token");
      return undefined;
    }
    const timer = setTimeout(() => setLeft(leftMs - TICK_MS), TICK_MS);
    return () => clearTimeout(timer);
  }, [leftMs]);
  return (
    <div className="mx-auto mt-[15dvh] w-full max-w-160 px-4">
      <Notice
        tone="error"
        action={
          leftMs === undefined ? (
            <a className="btn btn-sm btn-default" href="/token">
              {t("chat.toKeys")}
            </a>
          ) : (
            <button type="button" className="btn btn-sm btn-default" onClick={() => setLeft(undefined)}>
              {t("common.cancel")}
            </button>
          )
        }
      >
        <p>{t("chat.noKey")}</p>
        {leftMs === undefined ? null : (
          <p className="text-muted tabular-nums">
            {t("chat.leaving", { seconds: (leftMs / 1000).toFixed(1) })}
          </p>
        )}
      </Notice>
    </div>
  );
}
