// `bun scripts/build.ts [--binary] [--force]`: islands, styles, precompressed variants and the manifest into dist/;
// with --binary also the single executable dist/weir. Refuses to redo work when none of its inputs changed.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Language } from "../src/shared/enums.ts";
import { buildBinary } from "./build-binary.ts";
import { buildIslands } from "./build-islands.ts";
import { buildStyles } from "./build-styles.ts";
import { buildTexts } from "./build-texts.ts";
import { compressAll, gzipSize } from "./build-compress.ts";
import { ensurePackages } from "./packages.ts";

export const PROJECT_DIR = dirname(import.meta.dir);
const DIST_DIR = join(PROJECT_DIR, "dist");
const ASSET_DIR = join(DIST_DIR, "a");
const STAMP = join(DIST_DIR, "inputs.txt");

/** What the front end is made from; types of src/routes.ts vanish in the bundle, src/shared does not. */
const INPUT_DIRS = ["islands", "views", "src/pages", "src/shared", "locales", "scripts"];
const INPUT_FILES = ["package.json", "bun.lock", "tsconfig.json"];

export interface Entry {
  /** Path below /a/. */
  file: string;
  /** Static imports of the entry, for modulepreload. */
  imports: string[];
  /** What it fetches later on, when the page is idle or a part is opened. */
  parts: string[];
  /** Names of the texts that it may show before a part is opened. */
  keys: string[];
}

export interface Manifest {
  /** Key: `mount`, `lite`, or the name of a screen. */
  entries: Record<string, Entry>;
  css: string;
  /** Every text of the islands, one file per language: fetched when the page is idle, cached for good. */
  texts: Record<Language, string>;
}

function filesBelow(dir: string): string[] {
  const path = join(PROJECT_DIR, dir);
  if (!existsSync(path)) return [];
  return readdirSync(path, { recursive: true, encoding: "utf8" })
    .map((name) => join(dir, name))
    .filter((name) => statSync(join(PROJECT_DIR, name)).isFile())
    .sort();
}

/** Hash over names and contents: a copied or checked-out tree with new times still counts as unchanged. */
export function inputHash(): string {
  const hasher = new Bun.CryptoHasher("sha256");
  for (const name of [...INPUT_DIRS.flatMap(filesBelow), ...INPUT_FILES]) {
    hasher.update(name);
    hasher.update(readFileSync(join(PROJECT_DIR, name)));
  }
  hasher.update(Bun.version);
  return hasher.digest("hex");
}

/** Returns false when everything was up to date. `quick` leaves out minifying and compressing (development). */
export async function buildFrontEnd(options: { force?: boolean; quick?: boolean } = {}): Promise<boolean> {
  const hash = inputHash() + (options.quick ? " quick" : "");
  const stamped = existsSync(STAMP) ? readFileSync(STAMP, "utf8") : "";
  if (!options.force && stamped === hash && existsSync(join(DIST_DIR, "manifest.json"))) return false;
  const startedMs = performance.now();
  rmSync(STAMP, { force: true });
  // Built beside the old one and swapped file by file, so that a running server keeps finding its files.
  mkdirSync(ASSET_DIR, { recursive: true });
  const [islands, css] = await Promise.all([
    buildIslands(PROJECT_DIR, ASSET_DIR, options.quick !== true),
    buildStyles(PROJECT_DIR, ASSET_DIR),
  ]);
  const texts = buildTexts(PROJECT_DIR, ASSET_DIR, islands.entries, islands.files);
  const manifest: Manifest = { entries: islands.entries, css, texts };
  const kept = new Set([...islands.files, css, ...Object.values(texts)]);
  for (const name of readdirSync(ASSET_DIR)) {
    if (!kept.has(name.replace(/\.(br|zst|gz)$/, ""))) rmSync(join(ASSET_DIR, name));
  }
  if (!options.quick) await compressAll(ASSET_DIR, [...kept]);
  writeFileSync(join(DIST_DIR, "manifest.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  writeFileSync(STAMP, hash);
  report(manifest, islands.files.length, performance.now() - startedMs);
  return true;
}

function report(manifest: Manifest, files: number, ms: number): void {
  const kilobytes = (names: string[]) =>
    (names.reduce((sum, name) => sum + gzipSize(join(ASSET_DIR, name)), 0) / 1024).toFixed(1);
  const mount = manifest.entries.mount;
  const lite = manifest.entries.lite;
  const base = new Set([mount, lite].flatMap((entry) => (entry ? [entry.file, ...entry.imports] : [])));
  console.log(
    `front end: ${files} scripts in ${(ms / 1000).toFixed(1)} s, style ${kilobytes([manifest.css])} KB gz`,
  );
  console.log(`  every page: ${kilobytes([...base])} KB gz`);
  for (const [name, entry] of Object.entries(manifest.entries)) {
    if (entry === mount || entry === lite) continue;
    const own = [entry.file, ...entry.imports].filter((file) => !base.has(file));
    console.log(`  ${name}: + ${kilobytes(own)} KB gz`);
  }
}

if (import.meta.main) {
  await ensurePackages();
  const built = await buildFrontEnd({ force: process.argv.includes("--force") });
  if (!built) console.log("front end: up to date");
  if (process.argv.includes("--binary")) await buildBinary(PROJECT_DIR);
}
