// weir licenses: what of others is in this binary, its versions and terms, and their texts.
// Refuses to know anything that the build has not written down (scripts/build-licenses.ts).
import { existsSync, readFileSync } from "node:fs";
import { embeddedPath } from "../http/assets.ts";

export interface LicenseEntry {
  name: string;
  version: string;
  /** SPDX expression, as the package tells it. */
  license: string;
  /** Names of the package's licence texts. */
  files: string[];
  text: string;
}

export interface LicenseList {
  packages: LicenseEntry[];
  /** Of data: prices. */
  notice: string;
}

const USAGE = "usage: weir licenses [--texts | --json]";

/** Answers the exit code: 0, 1 where this program was not built, 2 called wrongly. */
export function licensesCommand(
  args: readonly string[],
  { say, complain }: { say: (text: string) => void; complain: (text: string) => void },
): number {
  const [how, ...more] = args;
  if (more.length > 0 || (how !== undefined && how !== "--texts" && how !== "--json")) {
    complain(USAGE);
    return 2;
  }
  const path = embeddedPath("licenses.json");
  if (!existsSync(path)) {
    complain("The list is made with the binary: bun run build.");
    return 1;
  }
  const text = readFileSync(path, "utf8");
  const { packages, notice } = JSON.parse(text) as LicenseList;
  if (how === "--json") say(text);
  else if (how === "--texts") {
    for (const { name, version, license, text: terms } of packages)
      say(
        `${"=".repeat(72)}\n${name} ${version} (${license})\n${"=".repeat(72)}\n\n${terms || `(${license}; the package carries no text)`}\n`,
      );
    say(notice);
  } else {
    const width = Math.max(...packages.map(({ name }) => name.length));
    for (const { name, version, license, files } of packages)
      say(
        `${name.padEnd(width)}  ${version.padEnd(12)} ${license}${files.length > 0 ? `  (${files.join(", ")})` : ""}`,
      );
    say(`\n${packages.length} packages. Their texts, and what the data is under: weir licenses --texts.`);
  }
  return 0;
}
