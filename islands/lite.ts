// htmx-lite, the one script that every page runs: server-rendered HTML that acts by its attributes, without React.
// It is as small as what the pages use: buttons and menus of the frame, and parts replaced from a fresh render.
import { startLateIsland } from "./lib/late-island.ts";
import { startShell } from "./lib/shell.ts";

startShell();
startLateIsland((url) => import(url));
// Few pages have such forms and links; they lead where they lead until it is there.
if (document.querySelector("[data-get]"))
  void import("./lib/parts.ts").then(({ startParts }) => startParts());
