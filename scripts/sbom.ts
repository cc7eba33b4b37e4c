// The bill of materials as CycloneDX 1.6: every package that the lockfile holds for running, with its checksum.
// Refuses to list what only tests and builds use.
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** `[name@version, registry, { dependencies… }, integrity]`. */
type LockedPackage = [
  string,
  string?,
  { dependencies?: Record<string, string>; optionalDependencies?: Record<string, string> }?,
  string?,
];

interface Lockfile {
  workspaces: { "": { dependencies: Record<string, string> } };
  packages: Record<string, LockedPackage>;
}

interface Component {
  type: "library";
  "bom-ref": string;
  name: string;
  version: string;
  purl: string;
  /** "required": in the binary; "optional": installed beside it, and not taken in. */
  scope: "required" | "optional";
  hashes: { alg: "SHA-512"; content: string }[];
  licenses: { expression: string }[];
}

export interface Bom {
  bomFormat: "CycloneDX";
  specVersion: "1.6";
  version: 1;
  metadata: { timestamp: string; component: { type: "application"; name: string; version: string } };
  components: Component[];
  dependencies: { ref: string; dependsOn: string[] }[];
}

/** JSON with commas before brackets. */
export function readLockfile(projectDir: string): Lockfile {
  const text = readFileSync(join(projectDir, "bun.lock"), "utf8");
  return JSON.parse(text.replaceAll(/,(\s*[}\]])/g, "$1")) as Lockfile;
}

/** The key under which a package of the lockfile finds what it depends on: its own copy, its parents', the common one. */
function resolved({ packages }: Lockfile, from: string, name: string): string | undefined {
  for (let at = from; at !== ""; at = at.slice(0, Math.max(0, at.lastIndexOf("/")))) {
    const own = `${at}/${name}`;
    if (own in packages) return own;
  }
  return name in packages ? name : undefined;
}

/** Keys of everything that the program needs to run, with what each depends on. */
function closure(lock: Lockfile): Map<string, string[]> {
  const found = new Map<string, string[]>();
  const waiting = Object.keys(lock.workspaces[""].dependencies).flatMap(
    (name) => resolved(lock, "", name) ?? [],
  );
  for (let key = waiting.pop(); key !== undefined; key = waiting.pop()) {
    if (found.has(key)) continue;
    const [, , needs] = lock.packages[key] ?? [""];
    const at = key;
    const next = Object.keys(needs?.dependencies ?? {}).flatMap((name) => resolved(lock, at, name) ?? []);
    found.set(key, next);
    waiting.push(...next);
  }
  return found;
}

/** `licenseOf`: by `name@version`; undefined for what is not in the binary. */
export function billOfMaterials(
  lock: Lockfile,
  product: { name: string; version: string; timestamp: string },
  licenseOf: (id: string) => string | undefined,
): Bom {
  const all = closure(lock);
  const idOf = (key: string): string => lock.packages[key]?.[0] ?? key;
  const refOf = (key: string): string => {
    const id = idOf(key);
    const at = id.lastIndexOf("@");
    return `pkg:npm/${id.slice(0, at).replace("@", "%40")}@${id.slice(at + 1)}`;
  };
  const components = new Map<string, Component>();
  for (const key of all.keys()) {
    const id = idOf(key);
    const at = id.lastIndexOf("@");
    const integrity = lock.packages[key]?.[3] ?? "";
    const license = licenseOf(id);
    components.set(refOf(key), {
      type: "library",
      "bom-ref": refOf(key),
      name: id.slice(0, at),
      version: id.slice(at + 1),
      purl: refOf(key),
      scope: license === undefined ? "optional" : "required",
      hashes: integrity.startsWith("sha512-")
        ? [{ alg: "SHA-512", content: Buffer.from(integrity.slice(7), "base64").toString("hex") }]
        : [],
      licenses: license === undefined ? [] : [{ expression: license }],
    });
  }
  const dependsOn = new Map<string, Set<string>>();
  for (const [key, needs] of all) {
    const known = dependsOn.get(refOf(key)) ?? new Set<string>();
    for (const need of needs) known.add(refOf(need));
    dependsOn.set(refOf(key), known);
  }
  const { name, version, timestamp } = product;
  return {
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: { timestamp, component: { type: "application", name, version } },
    components: [...components.values()].toSorted((a, b) => (a.purl < b.purl ? -1 : 1)),
    dependencies: [...dependsOn].map(([ref, needs]) => ({ ref, dependsOn: [...needs].toSorted() })),
  };
}
