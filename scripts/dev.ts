// `bun run dev`: builds the front end, serves, and does both again when their files change.
// Refuses to minify or compress: a change is in the browser within a second.
import { watch } from "node:fs";
import { dirname, join } from "node:path";
import { ensurePackages } from "./packages.ts";

await ensurePackages();
// Imported only now: it needs the packages.
const { buildFrontEnd } = await import("./build.ts");

const PROJECT_DIR = dirname(import.meta.dir);
const FRONT_END = ["islands", "views"];
const SERVER = ["src", "views", "islands", "locales", "drizzle"];
const SETTLE_MS = 120;

let server: Bun.Subprocess | undefined;

function restart(): void {
  server?.kill("SIGTERM");
  server = Bun.spawn([process.execPath, join(PROJECT_DIR, "src/main.ts"), ...process.argv.slice(2)], {
    cwd: PROJECT_DIR,
    stdin: "ignore",
    stdout: "inherit",
    stderr: "inherit",
    env: { ...Bun.env, NODE_ENV: "development" },
  });
}

let queue = Promise.resolve();
let timer: Timer | undefined;
let frontEndChanged = false;

function changed(dir: string): void {
  frontEndChanged ||= FRONT_END.includes(dir);
  clearTimeout(timer);
  timer = setTimeout(() => {
    const rebuild = frontEndChanged;
    frontEndChanged = false;
    queue = queue.then(async () => {
      try {
        if (rebuild) await buildFrontEnd({ quick: true });
        restart();
      } catch (error) {
        console.error(error instanceof Error ? error.message : error);
      }
    });
  }, SETTLE_MS);
}

await buildFrontEnd({ quick: true });
restart();
for (const dir of new Set([...FRONT_END, ...SERVER])) {
  watch(join(PROJECT_DIR, dir), { recursive: true }, () => changed(dir));
}
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => {
    server?.kill("SIGTERM");
    process.exit(0);
  });
}
