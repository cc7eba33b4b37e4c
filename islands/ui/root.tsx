// What every island is wrapped in, equal on the server and in the browser: the screen, toasts, questions, palette.
// Refuses to let a crash of the screen blank the page: it shows message, code, Retry and Copy instead.
import { useSignals } from "@preact/signals-react/runtime";
import { Component, useEffect, useState } from "react";
import type { ComponentType, ErrorInfo, ReactNode } from "react";
import { ConfirmHost } from "./confirm.tsx";
import { CopyButton } from "./copy-button.tsx";
import { Toasts } from "./feedback.tsx";
import { t, useT } from "../lib/i18n.ts";
import { registerShortcut } from "../lib/keys.ts";
import { lazyPart } from "../lib/lazy-part.tsx";
import { PALETTE_EVENT } from "../lib/shell.ts";
import { proofQuestion } from "../lib/step-up.ts";

const CommandMenu = lazyPart(() => import("./command-menu.tsx"));
const ShortcutSheet = lazyPart(() => import("./shortcut-sheet.tsx"));
const StepUpDialog = lazyPart(() => import("./step-up.tsx"));

interface CrashState {
  error: Error | undefined;
}

class CrashBox extends Component<{ children: ReactNode }, CrashState> {
  override state: CrashState = { error: undefined };

  static getDerivedStateFromError(error: unknown): CrashState {
    return { error: error instanceof Error ? error : new Error(String(error)) };
  }

  override componentDidCatch(error: unknown, info: ErrorInfo): void {
    console.error(error, info.componentStack);
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (!error) return this.props.children;
    return (
      <section role="alert" className="alert alert-soft" data-tone="error">
        <div className="grow">
          <h2>{t("common.crash.title")}</h2>
          <p className="text-muted mt-1">{t("common.crash.text")}</p>
          <p className="mono mt-2 break-all">{error.message}</p>
          <div className="mt-3 flex gap-2">
            <button
              type="button"
              className="btn btn-sm btn-primary"
              onClick={() => this.setState({ error: undefined })}
            >
              {t("common.retry")}
            </button>
            <CopyButton
              text={`${error.message}\n${error.stack ?? ""}`}
              label={t("common.copyDetails")}
              withText
            />
          </div>
        </div>
      </section>
    );
  }
}

/** Palette and shortcut sheet: own chunks, fetched when the page is idle. */
function LayerHost() {
  const [open, setOpen] = useState<"palette" | "shortcuts">();
  useEffect(() => {
    const openPalette = () => setOpen("palette");
    document.addEventListener(PALETTE_EVENT, openPalette);
    const ends = [
      registerShortcut({ keys: "mod+k", label: "shell.palette", run: openPalette, everywhere: true }),
      registerShortcut({ keys: "?", label: "shell.shortcuts", run: () => setOpen("shortcuts") }),
      () => document.removeEventListener(PALETTE_EVENT, openPalette),
    ];
    return () => ends.forEach((end) => end());
  }, []);
  if (open === undefined) return null;
  const close = () => setOpen(undefined);
  return open === "palette" ? <CommandMenu onClose={close} /> : <ShortcutSheet onClose={close} />;
}

/** A call waits for fresh proof. */
function StepUpHost() {
  useSignals();
  const question = proofQuestion.value;
  return question ? <StepUpDialog question={question} /> : null;
}

/** Says that the connection is gone, for as long as it is. */
function OfflineBar() {
  const t = useT();
  const [isOffline, setOffline] = useState(false);
  useEffect(() => {
    const follow = (event: Event) => setOffline(event.type === "offline");
    window.addEventListener("offline", follow);
    window.addEventListener("online", follow);
    return () => {
      window.removeEventListener("offline", follow);
      window.removeEventListener("online", follow);
    };
  }, []);
  if (!isOffline) return null;
  return (
    <p role="status" className="offline-bar">
      {t("common.offline")}
    </p>
  );
}

export interface IslandRootProps {
  screen: ComponentType | undefined;
  /** After hydration. */
  onReady?: () => void;
}

export function IslandRoot({ screen: Screen, onReady }: IslandRootProps) {
  useEffect(() => onReady?.(), [onReady]);
  return (
    <>
      <CrashBox>{Screen ? <Screen /> : null}</CrashBox>
      <OfflineBar />
      <Toasts />
      <ConfirmHost />
      <LayerHost />
      <StepUpHost />
    </>
  );
}
