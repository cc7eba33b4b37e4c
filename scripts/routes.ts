// `bun run routes`: every route with its method, path, permission and the file that serves it.
import { readFileSync } from "node:fs";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createApp, createServices } from "../src/app.ts";
import { readEnv } from "../src/env.ts";
import { DOCUMENT_PATH } from "../src/http/document.ts";
import { accessOf } from "../src/http/session.ts";

const dataDir = mkdtempSync(join(tmpdir(), "weir-routes-"));
const services = await createServices(readEnv({ DATA_DIR: dataDir, LOG_LEVEL: "silent" }));
const app = await createApp(services);

/** The controller files: a route is served by the one that spells its path below one of the controller's prefixes. */
const files = [...new Bun.Glob("src/{api,relay,pages,http}/**/*.{ts,tsx}").scanSync(".")]
  .sort()
  .map((file) => {
    const text = readFileSync(file, "utf8");
    const mounts = [...text.matchAll(/prefix:\s*"([^"]*)"|mounted\("([^"]*)"\)/g)];
    return {
      file,
      text,
      // A file may also hold calls that stand below no prefix.
      prefixes: [...mounts.map((found) => found[1] ?? found[2] ?? ""), ""],
    };
  });

/** Pages are rows of a table; everything else stands as a call with its path in some file. */
function fileOf(method: string, path: string, access: string): string {
  if (access === "page table") return path === "/*" ? "src/pages/serve-pages.ts" : "src/pages/pages.ts";
  const call = `\\.${method.toLowerCase()}\\(\\s*`;
  for (const { file, text, prefixes } of files) {
    for (const prefix of prefixes) {
      if (!path.startsWith(prefix)) continue;
      const rest = path.slice(prefix.length) || "/";
      for (const spelled of new Set([rest, rest.replace(/\/$/, "")])) {
        const escaped = spelled.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
        if (new RegExp(`${call}["\`](?:\\$\\{prefix\\})?${escaped}["\`]`).test(text)) return file;
      }
    }
  }
  if (path === DOCUMENT_PATH) return "src/http/document.ts";
  return access.startsWith("nobody: public file") ? "src/http/assets.ts" : "?";
}

const rows = app.routes.map((route) => {
  const access = accessOf(route);
  return { method: route.method, path: route.path, access, file: fileOf(route.method, route.path, access) };
});
rows.sort((a, b) => `${a.path} ${a.method}`.localeCompare(`${b.path} ${b.method}`));
for (const { method, path, access, file } of rows) {
  console.log(`${method.padEnd(8)}${path.padEnd(46)}${access.padEnd(30)}${file}`);
}
await services.close();
rmSync(dataDir, { recursive: true, force: true });
process.exit(0);
