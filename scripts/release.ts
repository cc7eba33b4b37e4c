// `bun run release [--only=linux-x64]`: what is handed out, in dist/release: a binary for each kind of machine, the bill of
// materials, the licences, and a checksum of each.
// Refuses a binary that is not of the machine that its name says.
import {
  copyFileSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import packageJson from "../package.json" with { type: "json" };
import type { LicenseList } from "../src/cli/licenses-command.ts";
import { buildFrontEnd, PROJECT_DIR } from "./build.ts";
import { buildBinary } from "./build-binary.ts";
import { LICENSES_FILE } from "./build-licenses.ts";
import { ensurePackages } from "./packages.ts";
import { billOfMaterials, readLockfile } from "./sbom.ts";

/** Machine numbers of ELF headers. */
export const MACHINES: Readonly<Record<string, number>> = { "linux-x64": 62, "linux-arm64": 183 };

/** The machine that an ELF file is for; undefined for anything else. */
export function machineOf(path: string): number | undefined {
  const head = readFileSync(path).subarray(0, 20);
  return head.toString("latin1", 0, 4) === "\u007fELF" ? head.readUInt16LE(18) : undefined;
}

/** `<hash>  <name>` a line, as sha256sum writes and checks it. */
export function checksums(dir: string): string {
  return readdirSync(dir)
    .filter((name) => name !== "SHA256SUMS")
    .toSorted()
    .map((name) => `${Bun.SHA256.hash(readFileSync(join(dir, name)), "hex")}  ${name}\n`)
    .join("");
}

/** The bill of materials of this checkout, once its list of licences is built. */
export function productBom() {
  const list = JSON.parse(readFileSync(join(PROJECT_DIR, "dist", LICENSES_FILE), "utf8")) as LicenseList;
  const licenses = new Map(
    list.packages.map(({ name, version, license }) => [`${name}@${version}`, license]),
  );
  const product = { name: "weir", version: packageJson.version, timestamp: new Date().toISOString() };
  return billOfMaterials(readLockfile(PROJECT_DIR), product, (id) => licenses.get(id));
}

async function release(targets: readonly string[]): Promise<void> {
  const dir = join(PROJECT_DIR, "dist/release");
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir, { recursive: true });
  await ensurePackages();
  await buildFrontEnd();
  for (const target of targets) {
    const built = await buildBinary(PROJECT_DIR, `bun-${target}`);
    if (machineOf(built) !== MACHINES[target]) throw new Error(`${built} is not for ${target}`);
    renameSync(built, join(dir, `weir-${target}`));
  }
  writeFileSync(
    join(dir, `weir-${packageJson.version}.cdx.json`),
    `${JSON.stringify(productBom(), null, 2)}\n`,
  );
  copyFileSync(join(PROJECT_DIR, "dist", LICENSES_FILE), join(dir, LICENSES_FILE));
  copyFileSync(join(PROJECT_DIR, "NOTICE"), join(dir, "NOTICE"));
  writeFileSync(join(dir, "SHA256SUMS"), checksums(dir));
  console.log(readFileSync(join(dir, "SHA256SUMS"), "utf8").trim());
}

if (import.meta.main) {
  const only = process.argv.find((arg) => arg.startsWith("--only="))?.slice("--only=".length);
  if (only !== undefined && !(only in MACHINES))
    throw new Error(`--only takes one of ${Object.keys(MACHINES).join(", ")}`);
  await release(only === undefined ? Object.keys(MACHINES) : [only]);
}
