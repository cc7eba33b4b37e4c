// A program of its own: prints, as one JSON object, the code that the framework makes of each route's handler and hooks.
// Refuses to listen: what it tells is decided when a route is compiled, before anybody calls.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createApp, createServices } from "../../src/app.ts";
import { readEnv } from "../../src/env.ts";

const dataDir = mkdtempSync(join(tmpdir(), "weir-routes-"));
const env = readEnv({ PORT: "0", HOST: "127.0.0.1", DATA_DIR: dataDir, LOG_LEVEL: "silent" });
const services = await createServices(env);
const app = await createApp(services);
const code: Record<string, string> = {};
for (const route of app.routes) code[`${route.method} ${route.path}`] = String(route.compile());
// What is asked when no route is found, and what is asked when something was thrown.
code["fetch"] = String(app.fetch);
code["error"] = String(app["handleError"]);
await Bun.write(Bun.stdout, JSON.stringify(code));
await services.close();
rmSync(dataDir, { recursive: true, force: true });
process.exit(0);
