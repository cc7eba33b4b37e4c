// Holds the house in order: who may import whom, how large a file may be, who alone may do certain things.
// Prints the offending line and the rule it breaks.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { dirname, join, normalize, relative } from "node:path";

const ROOT = join(import.meta.dir, "..");

interface Import {
  file: string;
  line: number;
  text: string;
  /** Path of the imported file from the root, or the package's name. */
  target: string;
  isTypeOnly: boolean;
}

/** What each room may import besides itself and packages; a prefix stands for everything below it. */
const RULES: Record<string, readonly string[]> = {
  "src/shared": [],
  "src/protocol": ["src/shared"],
  "src/providers": ["src/protocol", "src/shared"],
  "src/db": ["drizzle"],
  "src/core": ["src/shared", "src/db", "drizzle"],
  "src/http": ["src/core", "src/shared", "locales"],
  "src/relay": ["src/core", "src/providers", "src/protocol", "src/http", "src/shared", "src/db", "drizzle"],
  "src/api": ["src/core", "src/http", "src/shared"],
  "src/jobs": ["src/core", "src/relay/probe.ts", "src/providers/adapters", "src/shared"],
  views: ["src/shared"],
  "src/pages": ["src/core", "src/http", "views", "islands", "src/shared", "locales"],
  islands: ["src/shared", "locales"],
  drizzle: [],
};

/** Additions to the rules, each with its reason. */
const EXCEPTIONS: readonly { from: string; to: string; why: string }[] = [
  { from: "src/api/channel-ops.ts", to: "src/relay/probe.ts", why: "testing a channel is a relayed call" },
];

/** Files that are tables: long by nature, one row per line. */
const TABLES = new Set([
  "src/providers/preset-models.ts",
  "src/core/option-definitions.ts",
  "src/core/default-prices.ts",
  "drizzle/schema.ts",
]);

const MAX_LINES = 500;

function sources(): string[] {
  const found: string[] = [];
  for (const pattern of [
    "src/**/*.{ts,tsx}",
    "islands/**/*.{ts,tsx}",
    "views/**/*.{ts,tsx}",
    "drizzle/**/*.ts",
  ]) {
    for (const file of new Bun.Glob(pattern).scanSync({ cwd: ROOT })) found.push(file);
  }
  return found.toSorted();
}

const STATEMENT = /^\s*(?:import|export)\s+(type\s+)?(?:[^"';]*?\sfrom\s+)?["']([^"']+)["']/gm;

function importsOf(file: string): Import[] {
  const text = readFileSync(join(ROOT, file), "utf8");
  const found: Import[] = [];
  for (const match of text.matchAll(STATEMENT)) {
    const specifier = match[2] ?? "";
    const target = specifier.startsWith(".")
      ? relative(ROOT, normalize(join(ROOT, dirname(file), specifier)))
      : specifier;
    found.push({
      file,
      line: text.slice(0, match.index).split("\n").length,
      text: match[0].trim().split("\n")[0] ?? "",
      target,
      isTypeOnly: match[1] !== undefined,
    });
  }
  return found;
}

function roomOf(path: string): string | undefined {
  return Object.keys(RULES)
    .filter((room) => path === room || path.startsWith(`${room}/`))
    .sort((a, b) => b.length - a.length)[0];
}

function offence(each: Import): string | undefined {
  const room = roomOf(each.file);
  if (room === undefined) return undefined;
  const isOurs = /^(src|islands|views|drizzle|locales|test|bench|scripts)\//.test(each.target);
  if (!isOurs || each.target.startsWith(`${room}/`)) return undefined;
  const allowed = RULES[room] ?? [];
  if (allowed.some((prefix) => each.target === prefix || each.target.startsWith(`${prefix}/`)))
    return undefined;
  if (EXCEPTIONS.some((rule) => rule.from === each.file && rule.to === each.target)) return undefined;
  if (room === "islands" && each.isTypeOnly && each.target === "src/routes.ts") return undefined;
  return `${each.file}:${each.line}: ${each.text}\n    ${room} may import only: ${allowed.join(", ") || "nothing"}`;
}

test("every import follows the rooms", () => {
  const files = sources();
  expect(files.length).toBeGreaterThan(30);
  const offences = files.flatMap((file) => importsOf(file).map(offence)).filter((each) => each !== undefined);
  expect(offences).toEqual([]);
});

test("the scan sees a forbidden import", () => {
  const forbidden: Import = {
    file: "src/core/x.ts",
    line: 1,
    text: "import …",
    target: "src/providers/catalog.ts",
    isTypeOnly: false,
  };
  expect(offence(forbidden)).toContain("src/core may import only");
  expect(offence({ ...forbidden, file: "islands/screens/x.tsx", target: "src/routes.ts" })).toContain(
    "islands",
  );
  expect(
    offence({ ...forbidden, file: "islands/screens/x.tsx", target: "src/routes.ts", isTypeOnly: true }),
  ).toBeUndefined();
});

test("screens never import each other", () => {
  const offences = sources()
    .filter((file) => file.startsWith("islands/screens/"))
    .flatMap(importsOf)
    .filter((each) => each.target.startsWith("islands/screens/") && !each.isTypeOnly)
    // A screen may own parts in a folder of its own name.
    .filter(
      (each) =>
        !each.target.startsWith(each.file.replace(/\.tsx?$/, "/")) &&
        dirname(each.target) !== dirname(each.file),
    )
    .map((each) => `${each.file}:${each.line}: ${each.text}`);
  expect(offences).toEqual([]);
});

test(`no file but the tables has more than ${MAX_LINES} lines, and every file says what it is for`, () => {
  const offences: string[] = [];
  for (const file of sources()) {
    const text = readFileSync(join(ROOT, file), "utf8");
    const lines = text.split("\n").length - 1;
    if (lines > MAX_LINES && !TABLES.has(file)) offences.push(`${file} has ${lines} lines`);
    if (!text.startsWith("//") && !text.startsWith("/*"))
      offences.push(`${file} does not start with its purpose`);
  }
  expect(offences).toEqual([]);
});

/** A thing that only certain files may do, as a pattern over source lines. */
const PRIVILEGES: readonly { what: string; pattern: RegExp; rooms: RegExp; allowed: RegExp }[] = [
  {
    what: "only src/env.ts reads the environment",
    pattern: /\bprocess\.env\b|\bBun\.env\b/,
    rooms: /^(src|islands|views)\//,
    allowed: /^src\/env\.ts$/,
  },
  {
    what: "only src/core/ledger*.ts writes quota columns",
    pattern: /\.set\(\{[^}]*\b(quota|usedQuota|remainQuota|quotaBase|requestCount)\b\s*:/,
    rooms: /^src\//,
    allowed: /^src\/core\/ledger[\w-]*\.ts$/,
  },
  {
    what: "only src/db opens transactions",
    pattern: /\.transaction\(/,
    rooms: /^src\//,
    allowed: /^src\/db\//,
  },
  {
    what: "no streams of type direct and no tee: they ignore a slow client",
    pattern: /type:\s*["']direct["']|\.tee\(\)/,
    rooms: /^src\//,
    allowed: /^$/,
  },
  {
    what: "only src/relay/attempt.ts, src/providers and src/core/guard.ts fetch from elsewhere",
    pattern: /(?<![.\w])fetch\(/,
    rooms: /^src\//,
    allowed: /^src\/(relay\/attempt\.ts|providers\/|core\/guard[\w-]*\.ts)/,
  },
];

for (const { what, pattern, rooms, allowed } of PRIVILEGES) {
  test(what, () => {
    const offences: string[] = [];
    for (const file of sources().filter((each) => rooms.test(each) && !allowed.test(each))) {
      const lines = readFileSync(join(ROOT, file), "utf8").split("\n");
      lines.forEach((line, index) => {
        if (pattern.test(line) && !/^\s*(\/\/|\*)/.test(line))
          offences.push(`${file}:${index + 1}: ${line.trim()}`);
      });
    }
    expect(offences).toEqual([]);
  });
}
