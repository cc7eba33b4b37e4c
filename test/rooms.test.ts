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

/**
 * What each room may import besides itself and packages; a prefix stands for everything below it. A wing of a room is a
 * room of its own: its arrows run one way, so that a reader who goes down never has to come back up.
 */
const RULES: Record<string, readonly string[]> = {
  "src/shared": [],
  "src/protocol": ["src/shared"],
  "src/providers": ["src/protocol", "src/shared"],
  "src/db": ["drizzle"],
  "src/net": ["src/shared"],
  /** Everybody may report to it; it knows nobody. */
  "src/observe": [],
  /** Workers and their parent. */
  "src/cluster": ["src/observe"],
  "src/core/kit": ["src/core/deps.ts", "src/db", "src/shared"],
  "src/core/logs": ["src/core/deps.ts", "src/core/kit", "src/db", "src/shared", "drizzle"],
  "src/core/options": ["src/core/kit", "src/db", "src/shared", "drizzle"],
  "src/core/prices": [
    "src/core/deps.ts",
    "src/core/kit",
    "src/core/logs",
    "src/core/options",
    "src/core/plans",
    "src/db",
    "src/shared",
  ],
  /** What upstreams charge, their bills, and what is earned. */
  "src/core/costs": [
    "src/core/deps.ts",
    "src/core/channels",
    "src/core/logs",
    "src/core/prices",
    "src/db",
    "src/shared",
    "drizzle",
  ],
  /** Budgets and limits of keys and users, which the ledger asks before it holds anything. */
  "src/core/limits": ["src/core/deps.ts", "src/core/kit", "src/core/options", "src/db", "src/shared"],
  "src/core/ledger": [
    "src/core/deps.ts",
    "src/core/kit",
    "src/core/limits",
    "src/core/logs",
    "src/core/options",
    "src/db",
    "src/shared",
  ],
  /** Copies of the books, and what is known of the last one. */
  "src/core/backup": [
    "src/core/deps.ts",
    "src/core/kit",
    "src/core/ledger",
    "src/core/options",
    "src/db",
    "src/shared",
    "locales",
  ],
  /** What `weir doctor` looks at. */
  "src/core/doctor": [
    "src/core/backup",
    "src/core/kit",
    "src/core/ledger",
    "src/core/options",
    "src/core/users",
    "src/db",
    "src/net",
    "src/shared",
  ],
  "src/core/users": [
    "src/core/deps.ts",
    "src/core/kit",
    "src/core/limits",
    "src/core/logs",
    "src/core/options",
    "src/net",
    "src/db",
    "src/shared",
    "drizzle",
  ],
  "src/core/inbox": [
    "src/core/deps.ts",
    "src/core/kit",
    "src/core/backup",
    "src/core/costs",
    "src/core/ledger",
    "src/core/users",
    "src/net",
    "src/db",
    "src/shared",
    "locales",
  ],
  "src/core/channels": [
    "src/core/deps.ts",
    "src/core/kit",
    "src/core/logs",
    "src/core/prices",
    "src/core/users",
    "src/db",
    "src/shared",
    "drizzle",
  ],
  /** Settings as a document: everything that an operator sets. */
  "src/core/config": [
    "src/core/deps.ts",
    "src/core/kit",
    "src/core/options",
    "src/core/prices",
    "src/core/channels",
    "src/core/plans",
    "src/db",
    "src/shared",
  ],
  "src/core/tasks": [
    "src/core/deps.ts",
    "src/core/kit",
    "src/core/logs",
    "src/core/options",
    "src/core/ledger",
    "src/db",
    "src/shared",
    "drizzle",
  ],
  "src/core/plans": [
    "src/core/deps.ts",
    "src/core/logs",
    "src/core/options",
    "src/core/users",
    "src/db",
    "src/shared",
    "drizzle",
  ],
  "src/core/payments": [
    "src/core/deps.ts",
    "src/core/kit",
    "src/core/logs",
    "src/core/plans",
    "src/core/options",
    "src/db",
    "src/shared",
    "drizzle",
  ],
  "src/core/site": [
    "src/core/deps.ts",
    "src/core/backup",
    "src/core/channels",
    "src/core/kit",
    "src/core/payments",
    "src/core/logs",
    "src/core/options",
    "src/core/users",
    "src/db",
    "src/observe",
    "src/shared",
  ],
  "src/http": ["src/core", "src/observe", "src/openapi", "src/shared", "locales"],
  /** The document of all calls: tables and what is made of them. */
  "src/openapi": [],
  "src/relay/wire": ["src/core", "src/net", "src/protocol", "src/http", "src/shared"],
  "src/relay/endpoints": ["src/relay/wire", "src/core", "src/providers", "src/protocol", "src/shared"],
  "src/relay/meter": ["src/relay/endpoints", "src/protocol", "src/shared"],
  "src/relay/call": [
    "src/relay/meter",
    "src/relay/endpoints",
    "src/relay/wire",
    "src/core",
    "src/net",
    "src/observe",
    "src/providers",
    "src/protocol",
    "src/http",
    "src/shared",
  ],
  "src/relay/realtime": [
    "src/relay/call",
    "src/relay/meter",
    "src/relay/endpoints",
    "src/relay/wire",
    "src/core",
    "src/providers",
    "src/protocol",
    "src/http",
    "src/shared",
  ],
  "src/relay/tasks": [
    "src/relay/call",
    "src/relay/wire",
    "src/core",
    "src/providers",
    "src/protocol",
    "src/http",
    "src/shared",
  ],
  /** The routes: on top of everything that they need. */
  "src/relay": ["src/core", "src/providers", "src/protocol", "src/http", "src/shared"],
  "src/api": ["src/core", "src/http", "src/observe", "src/shared"],
  /** What single subcommands of the binary do. */
  "src/cli": ["src/core", "src/db", "src/http", "src/import", "src/shared", "src/transfer"],
  /** The whole site as lines, and over to the other database. */
  "src/transfer": ["src/core", "src/db", "src/import", "drizzle"],
  /** Moving a site of another product in. */
  "src/import": ["src/core", "src/db", "src/shared", "drizzle", "locales"],
  /** Marks, and the moments that conditions name. */
  "src/jobs": ["src/core", "src/db"],
  views: ["src/shared"],
  "src/pages": ["src/core", "src/http", "views", "islands", "src/shared"],
  "islands/lib": ["src/shared", "locales"],
  "islands/ui": ["islands/lib", "src/shared"],
  "islands/screens": ["islands/lib", "islands/ui", "src/shared"],
  islands: [],
  drizzle: [],
};

/** Holds types only: named by every wing, and naming what any wing offers. */
const TYPES_ONLY = "src/core/deps.ts";

/** Files that are tables: long by nature, one row per line. */
const TABLES = new Set([
  "src/providers/preset-models.ts",
  "src/core/options/definitions.ts",
  "src/core/options/default-prices.ts",
  "drizzle/schema.ts",
  "src/shared/failure-codes.ts",
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

/** `import`/`export … from`, and `import()` of a literal: the second is a value like the first. */
const STATEMENT =
  /^[ \t]*(?:import|export)\s+(type\s+)?(?:[^"';]*?\sfrom\s+)?["']([^"']+)["']|(?<!typeof )\bimport\(\s*["']([^"']+)["']/gm;

function importsIn(file: string, text: string): Import[] {
  return [...text.matchAll(STATEMENT)].map((match) => {
    const specifier = match[2] ?? match[3] ?? "";
    const target = specifier.startsWith(".")
      ? relative(ROOT, normalize(join(ROOT, dirname(file), specifier)))
      : specifier;
    return {
      file,
      line: text.slice(0, match.index).split("\n").length,
      text: match[0].trim().split("\n")[0] ?? "",
      target,
      isTypeOnly: match[1] !== undefined,
    };
  });
}

function importsOf(file: string): Import[] {
  return importsIn(file, readFileSync(join(ROOT, file), "utf8"));
}

function roomOf(path: string): string | undefined {
  return Object.keys(RULES)
    .filter((room) => path === room || path.startsWith(`${room}/`))
    .sort((a, b) => b.length - a.length)[0];
}

const isBelow = (path: string, prefix: string): boolean => path === prefix || path.startsWith(`${prefix}/`);

/** The grant that an import uses; undefined: none is needed, because it stays in its room or leaves the house. */
function grantFor(each: Import): { room: string; grant: string | undefined } | undefined {
  const room = roomOf(each.file);
  if (room === undefined || each.file === TYPES_ONLY) return undefined;
  const isOurs = /^(src|islands|views|drizzle|locales|test|bench|scripts)\//.test(each.target);
  if (!isOurs || roomOf(each.target) === room) return undefined;
  if (room === "islands/lib" && each.isTypeOnly && each.target === "src/routes.ts") return undefined;
  // Wings of the own room stand below it: what is on top may use them.
  const granted = (RULES[room] ?? []).find((prefix) => isBelow(each.target, prefix));
  return { room, grant: granted ?? (each.target.startsWith(`${room}/`) ? room : undefined) };
}

function offence(each: Import): string | undefined {
  const needed = grantFor(each);
  if (!needed || needed.grant !== undefined) return undefined;
  const allowed = RULES[needed.room] ?? [];
  return `${each.file}:${each.line}: ${each.text}\n    ${needed.room} may import only: ${allowed.join(", ") || "nothing"}`;
}

/** Groups of files that import each other's values, each written as one line; none where all arrows run one way. */
function circles(edges: ReadonlyMap<string, readonly string[]>): string[] {
  const order = new Map<string, number>();
  const lowest = new Map<string, number>();
  const path: string[] = [];
  const found: string[] = [];
  // Tarjan, "Depth-first search and linear graph algorithms" (1972).
  const visit = (file: string): void => {
    order.set(file, order.size);
    lowest.set(file, order.size - 1);
    path.push(file);
    for (const next of edges.get(file) ?? []) {
      if (!order.has(next)) visit(next);
      if (path.includes(next)) lowest.set(file, Math.min(lowest.get(file) ?? 0, lowest.get(next) ?? 0));
    }
    if (lowest.get(file) !== order.get(file)) return;
    const group = path.splice(path.indexOf(file));
    if (group.length > 1 || (edges.get(file) ?? []).includes(file))
      found.push(group.toSorted().join(" <-> "));
  };
  for (const file of edges.keys()) if (!order.has(file)) visit(file);
  return found;
}

test("every import follows the rooms", () => {
  const files = sources();
  expect(files.length).toBeGreaterThan(30);
  const offences = files.flatMap((file) => importsOf(file).map(offence)).filter((each) => each !== undefined);
  expect(offences).toEqual([]);
});

test("every grant is used: what nobody needs is not allowed", () => {
  const imports = sources().flatMap(importsOf);
  const used = new Set(
    imports.map(grantFor).flatMap((needed) => (needed ? [`${needed.room} -> ${needed.grant}`] : [])),
  );
  const granted = Object.entries(RULES).flatMap(([room, grants]) =>
    grants.map((grant) => `${room} -> ${grant}`),
  );
  expect(granted.filter((each) => !used.has(each))).toEqual([]);
});

test("no values run in circles, also not by import()", () => {
  const edges = new Map(
    sources().map((file) => [
      file,
      importsOf(file)
        .filter((each) => !each.isTypeOnly)
        .map(({ target }) => target),
    ]),
  );
  expect(circles(edges)).toEqual([]);
  const [a, b, c] = ["src/a.ts", "src/b.ts", "src/c.ts"] as const;
  const graph = (text: string) => importsIn(a, text).map(({ target }) => target);
  expect(
    circles(
      new Map([
        [a, graph('const b = await import("./b.ts");')],
        [b, [c]],
        [c, [a]],
      ]),
    ),
  ).toEqual([`${a} <-> ${b} <-> ${c}`]);
});

test(`${TYPES_ONLY} holds types only`, () => {
  expect(importsOf(TYPES_ONLY).filter((each) => !each.isTypeOnly)).toEqual([]);
  expect(readFileSync(join(ROOT, TYPES_ONLY), "utf8")).not.toMatch(
    /^export (?:async )?(?:const|let|function|class)\b/m,
  );
});

test("the scan sees a forbidden import", () => {
  const seen = (file: string, text: string) => importsIn(file, text).map(offence);
  const catalog = 'import { catalog } from "../../providers/catalog.ts";';
  expect(seen("src/core/prices/x.ts", catalog)).toEqual([
    expect.stringContaining("src/core/prices may import only"),
  ]);
  expect(seen("src/core/prices/x.ts", 'import { a } from "../ledger/ledger.ts";')).toEqual([
    expect.any(String),
  ]);
  expect(seen("src/relay/wire/x.ts", 'const a = await import("../call/plan.ts");')).toEqual([
    expect.any(String),
  ]);
  expect(seen("src/relay/call/x.ts", 'import { a } from "../wire/cors.ts";')).toEqual([undefined]);
  expect(seen("islands/lib/x.ts", 'import { a } from "../ui/b.tsx";')).toEqual([expect.any(String)]);
  expect(seen("islands/lib/x.ts", 'import { Routes } from "../../src/routes.ts";')).toEqual([
    expect.any(String),
  ]);
  expect(seen("islands/lib/x.ts", 'import type { Routes } from "../../src/routes.ts";')).toEqual([undefined]);
});

test("screens never import each other", () => {
  // A screen may own parts in a folder of its own name, and in folders of that one.
  const screenOf = (file: string) => file.split("/")[2]?.replace(/\.tsx?$/, "");
  const offences = sources()
    .filter((file) => file.startsWith("islands/screens/"))
    .flatMap(importsOf)
    .filter((each) => each.target.startsWith("islands/screens/") && !each.isTypeOnly)
    .filter((each) => screenOf(each.target) !== screenOf(each.file))
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
    what: "only src/core/ledger/ writes quota columns",
    pattern: /\.set\(\{[^}]*\b(quota|usedQuota|remainQuota|quotaBase|requestCount)\b\s*:/,
    rooms: /^src\//,
    allowed: /^src\/core\/ledger\//,
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
    what: "only src/relay/call/attempt.ts, src/providers and src/net/guard.ts fetch from elsewhere",
    pattern: /(?<![.\w])fetch\(/,
    rooms: /^src\//,
    allowed: /^src\/(relay\/call\/attempt\.ts|providers\/|net\/guard\.ts)/,
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
