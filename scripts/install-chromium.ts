// Finds the Chromium that end-to-end tests drive, and gets it when the machine has none. The headless shell comes first:
// the same engine without windows, measured at half the processor time of the whole browser for the same tests.
// Refuses to download a browser on its own: the system's package manager does, else the person is told.

import { existsSync, readdirSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { installSystemPackage } from "./install-postgres.ts";

const SHELL = "chromium-headless-shell";
const SYSTEM_NAMES = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"];
const SYSTEM_PATHS = ["/usr/bin/chromium", "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"];

/** Builds of one kind that `playwright install` keeps in its cache, newest first. */
function playwrightBuilds(kind: "chromium" | "chromium_headless_shell", programs: string[]): string[] {
  const cacheDirs = [
    Bun.env.PLAYWRIGHT_BROWSERS_PATH,
    join(homedir(), ".cache/ms-playwright"),
    join(homedir(), "Library/Caches/ms-playwright"),
  ];
  const prefix = `${kind}-`;
  const found: string[] = [];
  for (const cacheDir of cacheDirs) {
    if (!cacheDir || !existsSync(cacheDir)) continue;
    const revision = (name: string) => Number(name.slice(prefix.length));
    const builds = readdirSync(cacheDir).filter((name) => name.startsWith(prefix) && revision(name) > 0);
    builds.sort((a, b) => revision(b) - revision(a));
    for (const build of builds) found.push(...programs.map((program) => join(cacheDir, build, program)));
  }
  return found;
}

function firstThere(candidates: readonly (string | null | undefined)[]): string | undefined {
  return candidates.find((path): path is string => Boolean(path && existsSync(path)));
}

function findShell(): string | undefined {
  const packaged = playwrightBuilds("chromium_headless_shell", [
    "chrome-headless-shell-linux64/chrome-headless-shell",
    "chrome-linux/headless_shell",
  ]);
  return firstThere([Bun.which(SHELL), ...packaged]);
}

function findBrowser(): string | undefined {
  const onPath = SYSTEM_NAMES.map((name) => Bun.which(name));
  const packaged = playwrightBuilds("chromium", ["chrome-linux64/chrome", "chrome-linux/chrome"]);
  return firstThere([...SYSTEM_PATHS, ...onPath, ...packaged]);
}

/** Path of a Chromium to start: CHROMIUM_PATH, a headless shell, a whole browser; undefined when there is none. */
export function findChromium(): string | undefined {
  return firstThere([Bun.env.CHROMIUM_PATH]) ?? findShell() ?? findBrowser();
}

/**
 * As `findChromium`, and installs the system's package when there is no headless shell; where that fails, a whole
 * browser does as well. Throws a sentence that says what to do when there is neither.
 */
export function ensureChromium(): string {
  const found = firstThere([Bun.env.CHROMIUM_PATH]) ?? findShell();
  if (found) return found;
  try {
    installSystemPackage(SHELL, "the end-to-end tests are twice as fast with Chromium's headless shell");
  } catch {
    // Not every distribution has that package, and not everybody may install one.
    const browser = findBrowser();
    if (browser) return browser;
    installSystemPackage("chromium", "the end-to-end tests need Chromium");
  }
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
