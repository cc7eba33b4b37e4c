// What of others is in the binary: named, with terms that let us hand it out; and the bill of materials beside it.
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };
import type { LicenseList } from "../../src/cli/licenses-command.ts";
import { checksums, MACHINES, machineOf, productBom } from "../../scripts/release.ts";
import { readLockfile } from "../../scripts/sbom.ts";
import { PROJECT_DIR } from "../../scripts/build.ts";
import { program } from "../support/server.ts";

/** Terms that ask for a text and nothing else. */
const FREE = new Set([
  "MIT",
  "MIT-0",
  "ISC",
  "0BSD",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "Apache-2.0",
  "Unlicense",
]);
/** Types only, or taken in by the bundler under their parts' names. */
const NOT_IN_THE_BINARY = new Set(["@elysiajs/eden"]);

function run(...args: string[]): { code: number; text: string } {
  const ended = Bun.spawnSync([...program(), ...args]);
  return { code: ended.exitCode, text: ended.stdout.toString() + ended.stderr.toString() };
}

test("every package in the binary is named with its version and terms, and its text is there", () => {
  const { packages } = JSON.parse(run("licenses", "--json").text) as LicenseList;
  const names = new Set(packages.map(({ name }) => name));
  const missing = Object.keys(packageJson.dependencies).filter(
    (name) => !names.has(name) && !NOT_IN_THE_BINARY.has(name),
  );
  expect(missing).toEqual([]);
  expect(packages.filter(({ license }) => !FREE.has(license))).toEqual([]);
  // The public domain asks for none.
  const bare = packages.filter(({ text, license }) => text.trim() === "" && license !== "Unlicense");
  expect(bare.map(({ name }) => name)).toEqual([]);
  // What only tests and builds use is not in it.
  expect(
    packages.filter(({ name }) => ["playwright", "typescript", "knip", "openai"].includes(name)),
  ).toEqual([]);
  const list = run("licences");
  expect([list.code, list.text]).toEqual([0, expect.stringContaining(`${packages.length} packages.`)]);
  for (const { name, version } of packages)
    expect(list.text).toMatch(new RegExp(`^${name.replaceAll(/[.]/g, "\\.")} +${version} `, "m"));
  const texts = run("licenses", "--texts").text;
  expect(texts).toContain("Permission is hereby granted");
  expect(texts).toContain("TERMS AND CONDITIONS FOR USE, REPRODUCTION, AND DISTRIBUTION");
  expect(texts).toContain("Weir contains data of others");
  expect(run("licenses", "--all").code).toBe(2);
}, 30_000);

test("the bill of materials has every package of the lockfile that runs, with its checksum and what it needs", () => {
  const bom = productBom();
  expect(bom).toMatchObject({
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    metadata: { component: { name: "weir", version: packageJson.version } },
  });
  const purls = new Set(bom.components.map(({ purl }) => purl));
  expect(purls.size).toBe(bom.components.length);
  for (const [name, version] of Object.entries(packageJson.dependencies))
    expect(purls).toContain(`pkg:npm/${name.replace("@", "%40")}@${version}`);
  expect(bom.components.filter(({ hashes }) => !/^[0-9a-f]{128}$/.test(hashes[0]?.content ?? ""))).toEqual(
    [],
  );
  expect(bom.dependencies.flatMap(({ dependsOn }) => dependsOn).filter((ref) => !purls.has(ref))).toEqual([]);
  const elysia = bom.components.find(({ name }) => name === "elysia");
  expect(elysia).toMatchObject({ scope: "required", licenses: [{ expression: "MIT" }] });
  const integrity = readLockfile(PROJECT_DIR).packages["elysia"]?.[3] ?? "";
  expect(`sha512-${Buffer.from(elysia?.hashes[0]?.content ?? "", "hex").toString("base64")}`).toBe(integrity);
  expect(bom.components.some(({ name }) => name === "playwright")).toBe(false);
});

test("checksums are those that sha256sum checks; the machine of a binary is told by its header", () => {
  const dir = mkdtempSync(join(tmpdir(), "weir-sums-"));
  writeFileSync(join(dir, "a"), "one");
  writeFileSync(join(dir, "b"), "two");
  writeFileSync(join(dir, "SHA256SUMS"), checksums(dir));
  const checked = Bun.spawnSync(["sha256sum", "--check", "--strict", "SHA256SUMS"], { cwd: dir });
  expect([checked.exitCode, checked.stdout.toString()]).toEqual([0, "a: OK\nb: OK\n"]);
  const [binary = ""] = program();
  expect(machineOf(binary)).toBe(process.arch === "arm64" ? MACHINES["linux-arm64"] : MACHINES["linux-x64"]);
  expect(machineOf(join(dir, "a"))).toBeUndefined();
  rmSync(dir, { recursive: true, force: true });
});
