// `bun run routes`: every route with its method, path, permission and the file that serves it.
import { readFileSync } from "node:fs";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createApp, createServices } from "../src/app.ts";
import { readEnv } from "../src/env.ts";
import { accessOf } from "../src/http/session.ts";

const dataDir = mkdtempSync(join(tmpdir(), "weir-routes-"));
const services = await createServices(readEnv({ DATA_DIR: dataDir, LOG_LEVEL: "silent" }));
const app = await createApp(services);

/** The controller files: a route is served by the one that spells its path below the controller's prefix. */
const files = [...new Bun.Glob("src/{api,relay,pages,http}/*.{ts,tsx}").scanSync(".")].map((file) => ({
  file,
  text: readFileSync(file, "utf8"),
}));

function fileOf(method: string, path: string): string {
  for (const { file, text } of files) {
    const prefix = /prefix:\s*"([^"]*)"/.exec(text)?.[1] ?? "";
    if (!path.startsWith(prefix)) continue;
    const rest = path.slice(prefix.length) || "/";
    for (const spelled of new Set([rest, rest.replace(/\/$/, ""), path])) {
      const call = new RegExp(
        `\\.${method.toLowerCase()}\\(\\s*"${spelled.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}"`,
      );
      if (call.test(text)) return file;
    }
  }
  return "src/pages/pages.ts";
}

const rows = app.routes.map((route) => [
  route.method,
  route.path,
  accessOf(route),
  fileOf(route.method, route.path),
]);
rows.sort((a, b) => `${a[1]} ${a[0]}`.localeCompare(`${b[1]} ${b[0]}`));
for (const [method, path, access, file] of rows) {
  console.log(`${method?.padEnd(8)}${path?.padEnd(46)}${access?.padEnd(14)}${file}`);
}
await services.close();
rmSync(dataDir, { recursive: true, force: true });
process.exit(0);
