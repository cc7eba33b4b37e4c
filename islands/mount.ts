// Brings the page's island to life: boot data, language, the screen's chunk, hydration.
// Refuses to blank the page when the chunk cannot be loaded: the content stays, with a retry button.
import { effect } from "@preact/signals-react";
import { createElement } from "react";
import type { ComponentType } from "react";
import { hydrateRoot } from "react-dom/client";
import type { Boot, ThemeMode } from "./lib/boot.ts";
import { installBoot, nowMs, readBoot, theme, timeZone, user } from "./lib/boot.ts";
import { loadAllTexts } from "./lib/all-texts.ts";
import { formatQuota } from "./lib/format.ts";
import { addTexts, setLanguage, t } from "./lib/i18n.ts";
import { listenForKeys } from "./lib/keys.ts";
import { registerGoTo } from "./lib/go-to.ts";
import { IslandRoot } from "./ui/root.tsx";
import { LANGUAGE_EVENT, THEME_EVENT } from "./lib/shell.ts";
import { mirrorBoot } from "./lib/storage.ts";
import { followHistory } from "./lib/url-state.ts";

const TICK_MS = 30_000;

function showRetry(element: Element, boot: Boot): void {
  const bar = document.createElement("div");
  bar.className = "alert alert-soft";
  bar.dataset.tone = "error";
  bar.setAttribute("role", "alert");
  const text = document.createElement("p");
  text.className = "grow";
  text.textContent = t("common.failure.chunk");
  const button = document.createElement("button");
  button.type = "button";
  button.className = "btn btn-sm btn-primary";
  button.textContent = t("common.retry");
  button.addEventListener("click", () => {
    bar.remove();
    void mount(element, boot, `${boot.chunk}?again=${Date.now()}`);
  });
  bar.append(text, button);
  element.before(bar);
}

async function mount(element: Element, boot: Boot, chunk: string): Promise<void> {
  let screen: ComponentType | undefined;
  if (chunk !== "") {
    try {
      const loaded = (await import(chunk)) as { default: ComponentType };
      screen = loaded.default;
    } catch (error) {
      console.error(error);
      showRetry(element, boot);
      return;
    }
  }
  // Clock and zone move only after hydration: until then every text must be what the server wrote.
  const onReady = () => {
    element.setAttribute("data-mounted", "");
    timeZone.value = Intl.DateTimeFormat().resolvedOptions().timeZone || boot.timeZone;
    nowMs.value = Date.now();
    setInterval(() => {
      nowMs.value = Date.now();
    }, TICK_MS);
  };
  hydrateRoot(element, createElement(IslandRoot, { screen, onReady }), {
    onRecoverableError: (error) => console.error(error),
  });
}

/** Open parts change along: they need more texts than the page came with. */
async function changeLanguage({ language, texts, allTexts }: Boot): Promise<void> {
  addTexts(language, texts);
  // Without them the open parts would show names of texts; the page itself has what it needs.
  await loadAllTexts(language, allTexts).catch((error: unknown) => console.error(error));
  setLanguage(language);
}

/** Islands change what the frame also shows: the balance in the avatar menu. */
function followSignals(): void {
  effect(() => {
    const quota = user.value?.quota;
    if (quota === undefined) return;
    for (const place of document.querySelectorAll("[data-balance]")) place.textContent = formatQuota(quota);
  });
  document.addEventListener(THEME_EVENT, (event) => {
    theme.value = (event as CustomEvent<ThemeMode>).detail;
  });
  document.addEventListener(LANGUAGE_EVENT, (event) => {
    void changeLanguage((event as CustomEvent<Boot>).detail);
  });
}

export async function start(): Promise<void> {
  const boot = readBoot();
  const element = document.getElementById("island");
  if (!boot || !element) return;
  addTexts(boot.language, boot.texts);
  setLanguage(boot.language);
  installBoot(boot);
  mirrorBoot(boot);
  followHistory();
  listenForKeys();
  registerGoTo();
  followSignals();
  await mount(element, boot, boot.chunk);
}

if (typeof document !== "undefined" && document.getElementById("boot")) void start();
