// The human check of pages where strangers may do something: its widget, in the page's language and theme.
// Refuses to load anything while the site asks for no check; its place is kept, so that nothing moves when it comes.
import { useSignals } from "@preact/signals-react/runtime";
import { useCallback, useEffect, useRef, useState } from "react";
import { boot, status, theme } from "../lib/boot.ts";
import { useT } from "../lib/i18n.ts";

const SCRIPT = "https://challenges.cloudflare.com/turnstile/v0/api.js?render=explicit";

/** As much of the widget's script as is used here. */
interface Turnstile {
  render(element: HTMLElement, options: Record<string, unknown>): string | undefined;
  reset(id: string): void;
  remove(id: string): void;
}

const widget = () => (window as unknown as { turnstile?: Turnstile }).turnstile;

let loading: Promise<void> | undefined;

function loadScript(): Promise<void> {
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = SCRIPT;
    script.async = true;
    script.addEventListener("load", () => resolve());
    script.addEventListener("error", () => {
      loading = undefined;
      reject(new Error("the human check did not load"));
    });
    document.head.append(script);
  });
  return loading;
}

export interface HumanCheck {
  /** Undefined while the site asks for none: then there is nothing to send. */
  query: { turnstile?: string };
  /** Whether something may be sent: a token is there, or none is asked for. */
  isReady: boolean;
  /** After a call: a token is good once. */
  renew: () => void;
  /** For the component below. */
  take: (token: string) => void;
  round: number;
}

export function useHumanCheck(): HumanCheck {
  useSignals();
  const isAsked = status.value.turnstile_check === true;
  const [token, take] = useState("");
  const [round, setRound] = useState(0);
  const renew = useCallback(() => {
    if (!isAsked) return;
    take("");
    setRound((before) => before + 1);
  }, [isAsked]);
  return {
    query: isAsked && token !== "" ? { turnstile: token } : {},
    isReady: !isAsked || token !== "",
    renew,
    take,
    round,
  };
}

/** `action`: the route's name, as the server compares it. */
export function HumanCheckField({ check, action }: { check: HumanCheck; action: string }) {
  useSignals();
  const t = useT();
  const place = useRef<HTMLDivElement>(null);
  const [isBroken, setBroken] = useState(false);
  const isAsked = status.value.turnstile_check === true;
  const { take, round } = check;
  useEffect(() => {
    const element = place.current;
    if (!isAsked || !element) return undefined;
    let id: string | undefined;
    let isGone = false;
    setBroken(false);
    loadScript().then(
      () => {
        if (isGone) return;
        id = widget()?.render(element, {
          sitekey: status.peek().turnstile_site_key,
          action,
          language: boot.peek().language === "zh" ? "zh-cn" : "en",
          theme: theme.peek() === "system" ? "auto" : theme.peek(),
          size: "flexible",
          callback: take,
          "expired-callback": () => take(""),
          "error-callback": () => setBroken(true),
        });
      },
      () => setBroken(true),
    );
    return () => {
      isGone = true;
      if (id !== undefined) widget()?.remove(id);
    };
  }, [isAsked, action, round, take]);
  if (!isAsked) return null;
  return (
    <div className="mb-4">
      <div ref={place} className="min-h-16.25" />
      {isBroken ? (
        <p role="alert" className="mt-1 text-xs text-error">
          {t("login.check.broken")}
        </p>
      ) : null}
    </div>
  );
}
