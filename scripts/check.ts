// `bun run check`: types, unused code (knip), format, lint, the page of error codes, rooms and locale parity; stops with the first failing step's code.
import { ensurePackages } from "./packages.ts";

/** This very program: started by npx there may be no other on the path. */
const BUN = process.execPath;

const STEPS: readonly (readonly [string, string[]])[] = [
  ["types", [BUN, "check", "--no-script"]],
  ["unused files, exports and packages", [BUN, "x", "knip", "--no-progress"]],
  [
    "format",
    [
      BUN,
      "fmt",
      "--check",
      "--no-script",
      "src",
      "islands",
      "views",
      "drizzle/*.ts",
      "test",
      "bench",
      "scripts",
    ],
  ],
  [
    "lint",
    [
      BUN,
      "x",
      "oxlint",
      "--type-aware",
      "--deny-warnings",
      "src",
      "islands",
      "views",
      "drizzle",
      "test",
      "bench",
      "scripts",
    ],
  ],
  ["page of error codes", [BUN, "scripts/error-codes.ts", "--check"]],
  [
    "rooms and locales",
    [BUN, "test", "--timeout", "60000", "./test/rooms.test.ts", "./test/locales.test.ts"],
  ],
];

await ensurePackages();
for (const [name, command] of STEPS) {
  const started = performance.now();
  const child = Bun.spawnSync(command, { stdout: "pipe", stderr: "pipe" });
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  if (child.exitCode !== 0) {
    process.stdout.write(child.stdout);
    process.stderr.write(child.stderr);
    console.error(`check: ${name} failed after ${seconds} s`);
    process.exit(child.exitCode || 1);
  }
  console.log(`check: ${name} ok (${seconds} s)`);
}
