// `bun run start`: installs packages when they are missing or stale, builds what changed, then serves.
// Refuses to start on a failed install or build.
import { dirname, join } from "node:path";
import { becomes, ensurePackages } from "./packages.ts";

await ensurePackages();
// Imported only now: it needs the packages.
const { buildFrontEnd } = await import("./build.ts");
await buildFrontEnd();
const main = join(dirname(import.meta.dir), "src/main.ts");
await becomes([process.execPath, main, ...process.argv.slice(2)], { NODE_ENV: "production" });
