// Finds the Chromium that end-to-end tests drive, and gets it when the machine has none.
// Refuses to download a browser on its own: the system's package manager does, else the person is told.

import { existsSync, readdirSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { installSystemPackage } from "./install-postgres.ts";

const SYSTEM_NAMES = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"];
const SYSTEM_PATHS = ["/usr/bin/chromium", "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"];

/** Builds that `playwright install chromium` keeps in its cache, newest first. */
function playwrightBuilds(): string[] {
  const cacheDirs = [
    Bun.env.PLAYWRIGHT_BROWSERS_PATH,
    join(homedir(), ".cache/ms-playwright"),
    join(homedir(), "Library/Caches/ms-playwright"),
  ];
  const found: string[] = [];
  for (const cacheDir of cacheDirs) {
    if (!cacheDir || !existsSync(cacheDir)) continue;
    const builds = readdirSync(cacheDir).filter((name) => /^chromium-\d+$/.test(name));
    builds.sort((a, b) => Number(b.slice(9)) - Number(a.slice(9)));
    for (const build of builds) {
      for (const inner of ["chrome-linux64/chrome", "chrome-linux/chrome"])
        found.push(join(cacheDir, build, inner));
    }
  }
  return found;
}

/** Path of a Chromium to start: CHROMIUM_PATH, the system's, Playwright's own; undefined when there is none. */
export function findChromium(): string | undefined {
  const onPath = SYSTEM_NAMES.map((name) => Bun.which(name));
  const candidates = [Bun.env.CHROMIUM_PATH, ...SYSTEM_PATHS, ...onPath, ...playwrightBuilds()];
  return candidates.find((path): path is string => Boolean(path && existsSync(path)));
}

/** As `findChromium`, and installs the system package when nothing is there. Throws a sentence that says what to do. */
export function ensureChromium(): string {
  const found = findChromium();
  if (found) return found;
  installSystemPackage("chromium", "the end-to-end tests need Chromium");
  const installed = findChromium();
  if (installed) return installed;
  throw new Error("Chromium was installed but is not on PATH; name it in CHROMIUM_PATH");
}

if (import.meta.main) {
  try {
    console.log(ensureChromium());
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exit(1);
  }
}
