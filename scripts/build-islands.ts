// Bundles the islands: one entry per screen plus mount and lite, shared chunks, names by content.
// Refuses to go on when the bundler reports an error.
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { basename, join, relative } from "node:path";
import type { Entry } from "./build.ts";

export interface IslandsBuild {
  entries: Record<string, Entry>;
  /** Every file written, as names below dist/a. */
  files: string[];
}

/** A screen's entry is called like its file; mount and lite keep their own names. */
function entryName(path: string): string {
  return basename(path).replace(/\.tsx?$/, "");
}

export async function buildIslands(
  projectDir: string,
  outDir: string,
  minify: boolean,
): Promise<IslandsBuild> {
  const islandsDir = join(projectDir, "islands");
  const screensDir = join(islandsDir, "screens");
  const screens = existsSync(screensDir)
    ? readdirSync(screensDir).filter((name) => name.endsWith(".tsx"))
    : [];
  const entrypoints = [
    join(islandsDir, "mount.ts"),
    join(islandsDir, "lite.ts"),
    ...screens.sort().map((name) => join(screensDir, name)),
  ];
  const result = await Bun.build({
    entrypoints,
    root: islandsDir,
    target: "browser",
    format: "esm",
    splitting: true,
    minChunkSize: 16_384,
    minify,
    metafile: true,
    sourcemap: minify ? "none" : "inline",
    publicPath: "/a/",
    naming: { entry: "[name]-[hash].[ext]", chunk: "chunk-[hash].[ext]" },
    define: { "process.env.NODE_ENV": JSON.stringify(minify ? "production" : "development") },
  });
  if (!result.success) {
    throw new Error(`the islands do not build:\n${result.logs.map(String).join("\n")}`);
  }
  const files: string[] = [];
  for (const output of result.outputs) {
    const name = basename(output.path);
    writeFileSync(join(outDir, name), new Uint8Array(await output.arrayBuffer()));
    files.push(name);
  }
  const outputs = result.metafile?.outputs ?? {};
  const imported = new Map<string, string[]>();
  const requested = new Map<string, string[]>();
  const entries: Record<string, Entry> = {};
  for (const [path, meta] of Object.entries(outputs)) {
    const of = (kind: string) =>
      meta.imports.filter((each) => each.kind === kind).map((each) => basename(each.path));
    imported.set(basename(path), of("import-statement"));
    requested.set(basename(path), of("dynamic-import"));
  }
  for (const [path, meta] of Object.entries(outputs)) {
    if (!meta.entryPoint) continue;
    const source = join(projectDir, meta.entryPoint);
    const isEntry = entrypoints.some(
      (each) => relative(each, source) === "" || each.endsWith(meta.entryPoint ?? ""),
    );
    if (!isEntry) continue;
    const file = basename(path);
    const imports = staticImports(file, imported);
    const parts = new Set([file, ...imports].flatMap((name) => requested.get(name) ?? []));
    entries[entryName(meta.entryPoint)] = { file, imports, parts: [...parts], keys: [] };
  }
  return { entries, files };
}

/** All static imports below a file, each once, in the order in which the browser will need them. */
function staticImports(file: string, imported: ReadonlyMap<string, string[]>): string[] {
  const seen = new Set<string>();
  const visit = (name: string) => {
    for (const next of imported.get(name) ?? []) {
      if (seen.has(next) || next === file) continue;
      seen.add(next);
      visit(next);
    }
  };
  visit(file);
  return [...seen];
}
