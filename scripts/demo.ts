// `bun run demo`: the product with a make-believe provider, one channel, one user, one key and a day of traffic.
// Refuses to touch the data of a real installation: it keeps its own directory and empties it at each start.
import { rmSync } from "node:fs";
import { join } from "node:path";
import { DEMO_MODELS, startDemoProvider } from "./demo-provider.ts";
import { ensurePackages } from "./packages.ts";

await ensurePackages();
// Imported only now: they need the packages.
const { createApp, createServices } = await import("../src/app.ts");
const { readEnv } = await import("../src/env.ts");
const { serve } = await import("../src/serve.ts");

const HOUR_MS = 3_600_000;
const ROOT = { username: "root", password: "weir-demo-root" };
const USER = { username: "alice", password: "weir-demo-user" };

const build = Bun.spawnSync([process.execPath, "scripts/build.ts"], { stdout: "ignore", stderr: "inherit" });
if (build.exitCode !== 0) process.exit(build.exitCode);

const dataDir = join(import.meta.dir, "..", "data", "demo");
rmSync(dataDir, { recursive: true, force: true });
const env = { ...readEnv(), dataDir, databaseUrl: "", logLevel: "warn" as const };

// The sample traffic is made of real calls; only the clock stands in the past while they run.
let offsetMs = -24 * HOUR_MS;
const services = await createServices(env, { clock: { nowMs: () => Date.now() + offsetMs } });
const running = await serve(env, services, await createApp(services));
const origin = `http://127.0.0.1:${running.port}`;
const provider = startDemoProvider();

interface Session {
  cookie: string;
  id: number;
}

async function call<T>(method: string, path: string, body?: unknown, session?: Session): Promise<T> {
  const answer = await fetch(origin + path, {
    method,
    headers: {
      "content-type": "application/json",
      ...(session ? { cookie: session.cookie, "new-api-user": String(session.id) } : {}),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const parsed = (await answer.json()) as { success: boolean; message: string; data: T };
  if (!parsed.success) throw new Error(`${method} ${path}: ${parsed.message}`);
  return parsed.data;
}

async function signIn(account: { username: string; password: string }): Promise<Session> {
  const answer = await fetch(`${origin}/api/user/login`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(account),
  });
  const { data } = (await answer.json()) as { data: { id: number } };
  return { id: data.id, cookie: (answer.headers.get("set-cookie") ?? "").split(";")[0] ?? "" };
}

await call("POST", "/api/setup", {
  ...ROOT,
  confirmPassword: ROOT.password,
  SelfUseModeEnabled: false,
  // Not the read-only mode: here everything may be tried, and is made anew at each start.
  DemoSiteEnabled: false,
});
const root = await signIn(ROOT);
await call(
  "POST",
  "/api/channel/",
  {
    type: 1,
    name: "demo provider",
    key: "demo",
    base_url: provider.url,
    models: DEMO_MODELS.join(","),
    group: "default,vip",
  },
  root,
);
await call("POST", "/api/user/", { ...USER, display_name: "Alice" }, root);
const alice = await signIn(USER);
await call("PUT", "/api/user/", { id: alice.id, quota: 50_000_000 }, root);
await call(
  "POST",
  "/api/token/",
  {
    name: "demo key",
    expired_time: -1,
    remain_quota: 0,
    unlimited_quota: true,
    model_limits_enabled: false,
    model_limits: "",
    allow_ips: "",
    group: "",
  },
  alice,
);
const keys = await call<{ key: string }[]>("GET", "/api/token/?p=0&size=10", undefined, alice);
const key = `sk-${keys[0]?.key}`;

async function sampleCall(hour: number, index: number): Promise<void> {
  const isEmbedding = index % 5 === 4;
  const answer = await fetch(`${origin}/v1/${isEmbedding ? "embeddings" : "chat/completions"}`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(
      isEmbedding
        ? { model: "text-embedding-3-small", input: `note ${index} of hour ${hour}` }
        : {
            model: index % 3 === 0 ? "gpt-4o" : "gpt-4o-mini",
            messages: [{ role: "user", content: `What does a weir measure? (${hour}:${index})` }],
          },
    ),
  });
  await answer.arrayBuffer();
}

for (let hour = 0; hour < 24; hour++) {
  offsetMs = -(24 - hour) * HOUR_MS;
  // More calls in the afternoon than at night, so that charts have a shape.
  const calls = 4 + Math.round(16 * Math.max(0, Math.sin(((hour - 6) / 24) * 2 * Math.PI)));
  await Promise.all(Array.from({ length: calls }, (_, index) => sampleCall(hour, index)));
}
offsetMs = 0;

console.log(`
Weir demo is running on http://localhost:${running.port}

  administrator   ${ROOT.username} / ${ROOT.password}
  user            ${USER.username} / ${USER.password}
  API key         ${key}

Try it:

  curl http://localhost:${running.port}/v1/chat/completions \\
    -H "Authorization: Bearer ${key}" -H "Content-Type: application/json" \\
    -d '{"model":"gpt-4o-mini","stream":true,"messages":[{"role":"user","content":"What is a weir?"}]}'

Ctrl C ends it; the demo's data lie in data/demo and are made anew at each start.
`);
