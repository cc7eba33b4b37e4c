// `bun run test:clients [filter…] [--record]`: the real clients against the built product, each as its users start it.
// Installs what it needs outside the project, names loudly what cannot be had, and fails when a client's user would be let down.
import { join } from "node:path";
import { BINARY_VARIABLE } from "../test/support/server.ts";
import { ensurePackages } from "./packages.ts";

await ensurePackages();
const ROOT = join(import.meta.dir, "..");
const build = Bun.spawnSync([process.execPath, "scripts/build.ts", "--binary"], {
  cwd: ROOT,
  stdin: "ignore",
  stdout: "ignore",
  stderr: "inherit",
});
if (build.exitCode !== 0) process.exit(build.exitCode || 1);
Bun.env[BINARY_VARIABLE] = join(ROOT, "dist/weir");
// Imported only now: it needs the packages.
const { testClients } = await import("../test/clients/command.ts");
const words = process.argv.slice(2);
const failed = await testClients({
  filters: words.filter((word) => !word.startsWith("--")),
  isRecording: words.includes("--record"),
});
process.exit(failed ? 1 : 0);
