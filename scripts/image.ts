// `bun run image [--check]`: the file system of the container image without a container engine, in dist/image; with --check it
// is run in a chroot, as the image's user, with the image's settings and health check, all of them read out of the Dockerfile.
// Refuses to call run what was only put together: without root, or off Linux, it says so.
import {
  accessSync,
  chmodSync,
  chownSync,
  constants,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { PROJECT_DIR } from "./build.ts";

export interface ImageSettings {
  user: number;
  group: number;
  env: Record<string, string>;
  entrypoint: string[];
  health: string[];
}

/** What the last stage of the Dockerfile says. */
export function imageSettings(dockerfile: string): ImageSettings {
  const stage = dockerfile.slice(dockerfile.lastIndexOf("\nFROM "));
  const [, user = "", group = ""] = /^USER (\d+):(\d+)$/m.exec(stage) ?? [];
  const [, variables = ""] = /^ENV (.*)$/m.exec(stage) ?? [];
  const list = (pattern: RegExp): string[] => JSON.parse(pattern.exec(stage)?.[1] ?? "[]") as string[];
  return {
    user: Number(user),
    group: Number(group),
    env: Object.fromEntries(variables.split(" ").map((pair) => pair.split("=", 2) as [string, string])),
    entrypoint: list(/^ENTRYPOINT (\[.*\])$/m),
    health: list(/^HEALTHCHECK .*CMD (\[.*\])$/m),
  };
}

const ROOTS = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/** Libraries that a program is linked to, as the loader finds them here. */
function librariesOf(program: string): string[] {
  const told = Bun.spawnSync(["ldd", program]).stdout.toString();
  return [...told.matchAll(/(?:=> |^\s)(\/\S+)/gm)].map(([, path = ""]) => path);
}

/** Binary, its libraries, roots for TLS, an empty data directory of the image's user. Answers the directory. */
export function assemble(binary: string, dir: string, settings: ImageSettings): string {
  rmSync(dir, { recursive: true, force: true });
  const put = (from: string, to: string) => {
    mkdirSync(dirname(join(dir, to)), { recursive: true });
    copyFileSync(from, join(dir, to));
  };
  for (const name of ["proc", "tmp", "dev", "etc/ssl/certs"]) mkdirSync(join(dir, name), { recursive: true });
  put(binary, settings.entrypoint[0] ?? "/usr/local/bin/weir");
  chmodSync(join(dir, settings.entrypoint[0] ?? ""), 0o755);
  for (const library of librariesOf(binary)) put(library, library);
  put(join(PROJECT_DIR, "NOTICE"), "/usr/share/doc/weir/NOTICE");
  const roots = ROOTS.find((path) => existsSync(path));
  if (roots) put(roots, "/etc/ssl/certs/ca-certificates.crt");
  writeFileSync(join(dir, "etc/nsswitch.conf"), "hosts: files dns\n");
  chmodSync(join(dir, "tmp"), 0o1777);
  const data = join(dir, settings.env["DATA_DIR"] ?? "data");
  mkdirSync(data, { recursive: true, mode: 0o700 });
  if (process.getuid?.() === 0) chownSync(data, settings.user, settings.group);
  return dir;
}

/** Words that run a command in it as the image's user; /proc is there as in any container, and nowhere outside. */
export function inChroot(dir: string, { user, group }: ImageSettings, command: readonly string[]): string[] {
  // bash's own words: the first argument is the directory, the second the user.
  const script = 'mount --bind /proc "$0/proc" && exec chroot --userspec="$1" "$0" "${@:2}"';
  return ["unshare", "--mount", "--", "bash", "-c", script, dir, `${user}:${group}`, ...command];
}

/** Why it cannot be run here; undefined where it can. */
export function cannotRun(): string | undefined {
  if (process.platform !== "linux") return "not on Linux";
  if (process.getuid?.() !== 0) return "a chroot needs root";
  const tried = Bun.spawnSync(["unshare", "--mount", "--", "true"], { stdout: "ignore", stderr: "ignore" });
  return tried.exitCode === 0 ? undefined : "mounting is not allowed here";
}

const START_LIMIT_MS = 30_000;

/** Starts it, asks its health check, stops it. Throws what is wrong; answers what was seen. */
export async function checkImage(dir: string, settings: ImageSettings, port: number): Promise<string[]> {
  const env = { ...settings.env, PORT: String(port), HOST: "127.0.0.1", PATH: Bun.env["PATH"] ?? "" };
  const server = Bun.spawn(inChroot(dir, settings, settings.entrypoint), {
    env,
    stdout: "ignore",
    stderr: "pipe",
  });
  const written = new Response(server.stderr).text();
  try {
    const untilMs = performance.now() + START_LIMIT_MS;
    for (;;) {
      const asked = Bun.spawn(inChroot(dir, settings, settings.health), {
        env,
        stdout: "ignore",
        stderr: "ignore",
      });
      if ((await asked.exited) === 0) break;
      if (server.exitCode !== null) throw new Error(`it ended: ${await written}`);
      if (performance.now() > untilMs) throw new Error("its health check does not succeed");
    }
    const status = readFileSync(`/proc/${server.pid}/status`, "utf8");
    const ids = /^Uid:\s+(\d+)\s+(\d+)/m.exec(status)?.slice(1, 3) ?? [];
    if (ids.some((id) => Number(id) !== settings.user)) throw new Error(`it runs as ${ids.join(", ")}`);
    const data = join(dir, settings.env["DATA_DIR"] ?? "");
    if (statSync(join(data, "weir.sqlite")).uid !== settings.user) throw new Error("its data are another's");
  } finally {
    server.kill("SIGTERM");
  }
  const code = await server.exited;
  if (code !== 0) throw new Error(`SIGTERM ended it with ${code}: ${await written}`);
  return [`runs as ${settings.user}:${settings.group}`, "health check succeeds", "SIGTERM ends it with 0"];
}

if (import.meta.main) {
  const settings = imageSettings(readFileSync(join(PROJECT_DIR, "deploy/Dockerfile"), "utf8"));
  const binary = join(PROJECT_DIR, "dist/weir");
  accessSync(binary, constants.X_OK);
  const dir = assemble(binary, join(PROJECT_DIR, "dist/image"), settings);
  console.log(`file system of the image: ${dir.slice(PROJECT_DIR.length + 1)}`);
  const reason = cannotRun();
  if (!process.argv.includes("--check")) process.exit(0);
  if (reason !== undefined) console.log(`put together, not run: ${reason}`);
  else for (const seen of await checkImage(dir, settings, 3999)) console.log(seen);
}
