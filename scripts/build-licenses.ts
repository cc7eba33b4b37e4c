// What is in the binary of others, and under which terms: read out of the bundler's own account of what it took in.
// Refuses to guess: a package whose licence is not told stops the build.
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LicenseEntry, LicenseList } from "../src/cli/licenses-command.ts";

/** In dist/, from where the binary takes it. */
export const LICENSES_FILE = "licenses.json";

/** Their rules are in the style sheet; the bundler does not see where they come from. */
const STYLES = ["tailwindcss", "daisyui"];

/** The runtime is part of each binary; its own list of what it contains is too long to repeat. */
const runtime = (): LicenseEntry => ({
  name: "bun",
  version: Bun.version,
  license: "MIT",
  files: [],
  text: "The runtime, with JavaScriptCore (LGPL-2.1) and other libraries: https://bun.com/docs/project/licensing",
});

/** Texts that name nobody: the same for every package under them. */
const GENERAL = new Set(["Apache-2.0"]);

const textOf = (entries: readonly LicenseEntry[], license: string): string =>
  entries.find((entry) => entry.license === license && entry.text !== "")?.text ?? "";

interface Metafile {
  inputs: Record<string, unknown>;
}

/** Directories of the packages that a bundle took in. */
function packageDirs({ inputs }: Metafile): string[] {
  return Object.keys(inputs).flatMap((path) => {
    const at = path.lastIndexOf("node_modules/");
    if (at < 0) return [];
    const [first = "", second = ""] = path.slice(at + "node_modules/".length).split("/");
    return [
      path.slice(path.indexOf("node_modules/"), at) +
        `node_modules/${first.startsWith("@") ? `${first}/${second}` : first}`,
    ];
  });
}

/** What the bundler takes in for these entries; the bundle itself is thrown away. */
function metafileOf(projectDir: string, target: "bun" | "browser", entries: readonly string[]): Metafile {
  const dir = mkdtempSync(join(tmpdir(), "weir-bundle-"));
  try {
    const file = join(dir, "meta.json");
    const command = [
      process.execPath,
      "build",
      `--target=${target}`,
      "--splitting",
      "--format=esm",
      "--minify",
    ];
    const where = ["--conditions=module", `--outdir=${join(dir, "out")}`, `--metafile=${file}`];
    const built = Bun.spawnSync([...command, ...where, ...entries], { cwd: projectDir, stderr: "pipe" });
    if (built.exitCode !== 0)
      throw new Error(`the list of licences cannot be made:\n${built.stderr.toString()}`);
    return JSON.parse(readFileSync(file, "utf8")) as Metafile;
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function entryOf(dir: string): LicenseEntry {
  const { name, version, license, licenses } = JSON.parse(
    readFileSync(join(dir, "package.json"), "utf8"),
  ) as {
    name: string;
    version: string;
    license?: string | { type?: string };
    licenses?: { type?: string }[];
  };
  const told =
    typeof license === "string" ? license : (license?.type ?? licenses?.map(({ type }) => type).join(" OR "));
  if (!told)
    throw new Error(
      `${name} ${version} tells no licence: look at it, and name it in scripts/build-licenses.ts`,
    );
  const files = readdirSync(dir).filter((file) => /^((un)?licen[cs]e|copying|notice)([.-]|$)/i.test(file));
  const text = files.map((file) => readFileSync(join(dir, file), "utf8").trim()).join("\n\n");
  return { name, version, license: told, files, text };
}

/** Writes dist/licenses.json; answers the names of the packages in it. */
export function buildLicenses(projectDir: string, programs: readonly string[]): string[] {
  const islands = ["mount.ts", "lite.ts"].map((file) => `./islands/${file}`);
  const screens = readdirSync(join(projectDir, "islands/screens")).filter((file) => file.endsWith(".tsx"));
  const browser = [...islands, ...screens.map((file) => `./islands/screens/${file}`)];
  const dirs = new Set([
    ...packageDirs(metafileOf(projectDir, "bun", programs)),
    ...packageDirs(metafileOf(projectDir, "browser", browser)),
    ...STYLES.map((name) => `node_modules/${name}`),
  ]);
  const found = [...dirs]
    .map((dir) => join(projectDir, dir))
    .filter((dir) => existsSync(join(dir, "package.json")))
    .map(entryOf);
  // One package may lie in several places; and some name their terms without a text, which another one carries.
  const entries = [...new Map(found.map((entry) => [`${entry.name}@${entry.version}`, entry])).values()];
  const whole = entries.map((entry) => ({
    ...entry,
    text: entry.text || (GENERAL.has(entry.license) ? textOf(entries, entry.license) : ""),
  }));
  const list: LicenseList = {
    packages: [runtime(), ...whole].toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    notice: readFileSync(join(projectDir, "NOTICE"), "utf8"),
  };
  writeFileSync(join(projectDir, "dist", LICENSES_FILE), JSON.stringify(list));
  return list.packages.map(({ name }) => name);
}
