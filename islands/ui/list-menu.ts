// Items that the menus of several screens share: refresh, export, the page's call as a curl command.
import { Download, FileTerminal, RotateCw } from "lucide-react";
import type { CurlRequest } from "../lib/curl.ts";
import type { Translate } from "../lib/i18n.ts";
import { toastFailure } from "../lib/toasts.ts";
import { whenIdle } from "../lib/when-idle.ts";
import { copyText } from "./copy-button.tsx";
import type { MenuItem } from "./menu.tsx";

type CurlOf = (request: CurlRequest) => string;

let curlOf: CurlOf | undefined;

/** Fetched when the page is idle: whoever presses has the text at once, as clipboards want it. */
async function loadCurl(): Promise<CurlOf> {
  return (curlOf ??= (await import("../lib/curl.ts")).curlOf);
}
whenIdle(() => void loadCurl().catch(() => undefined));

export function refreshItem(t: Translate, refresh: () => Promise<void>): MenuItem {
  return { id: "refresh", label: t("common.refresh"), icon: RotateCw, onSelect: () => void refresh() };
}

export function exportItem(t: Translate, start: () => void): MenuItem {
  return { id: "export", label: t("table.exportCsv"), icon: Download, onSelect: start };
}

/** `request` is made when the item is pressed: relative ranges of time end then. */
export function curlItem(t: Translate, request: () => CurlRequest): MenuItem {
  return {
    id: "curl",
    label: t("table.copyCurl"),
    icon: FileTerminal,
    onSelect: () => {
      if (curlOf) void copyText(curlOf(request()));
      else void loadCurl().then((make) => copyText(make(request())), toastFailure);
    },
  };
}
