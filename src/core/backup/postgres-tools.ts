// PostgreSQL's own tools: the lines that an operator runs, and the same run from here where they are installed.
// Refuses to put a password on a command line, where every account of the machine reads it.
import { BackupRefused } from "./refusal.ts";

export const DUMP_FILE = "weir.dump";

/** The table of what signs sessions: whoever gets hold of a copy and its key must not sign with it; people sign in again. */
export const SESSION_SECRETS = "session_secrets";

/** Custom format: compressed, and pg_restore takes it apart. Owners differ from server to server. */
const DUMP_FLAGS = [
  "-Fc",
  "--no-owner",
  "--no-privileges",
  `--exclude-table-data=*.${SESSION_SECRETS}`,
] as const;
/** All of it or nothing. */
const RESTORE_FLAGS = ["--exit-on-error", "--single-transaction", "--no-owner", "--no-privileges"] as const;

/** What an operator types in a shell in which DATABASE_URL is set. */
export const dumpLine = (file: string): string =>
  `pg_dump ${DUMP_FLAGS.map((flag) => (flag.includes("*") ? `'${flag}'` : flag)).join(" ")} -d "\${DATABASE_DIRECT_URL:-$DATABASE_URL}" -f "${file}"`;

export const restoreLine = (file: string): string =>
  `pg_restore ${RESTORE_FLAGS.join(" ")} -d "\${DATABASE_DIRECT_URL:-$DATABASE_URL}" "${file}"`;

export function hasTool(name: "pg_dump" | "pg_restore"): boolean {
  return Bun.which(name) !== null;
}

export const dumpTo = (databaseUrl: string, file: string): Promise<void> =>
  runTool("pg_dump", databaseUrl, (url) => [...DUMP_FLAGS, "-d", url, "-f", file]);

export const restoreFrom = (databaseUrl: string, file: string): Promise<void> =>
  runTool("pg_restore", databaseUrl, (url) => [...RESTORE_FLAGS, "-d", url, file]);

/** Reads the table of contents of a dump: a file of another kind is refused. */
export const listDump = (file: string): Promise<void> => runTool("pg_restore", "", () => ["--list", file]);

async function runTool(
  tool: "pg_dump" | "pg_restore",
  databaseUrl: string,
  argsOf: (url: string) => string[],
): Promise<void> {
  const path = Bun.which(tool);
  if (path === null) throw new BackupRefused("no_tool", { tool });
  const { url, password } = withoutPassword(databaseUrl);
  const child = Bun.spawn([path, ...argsOf(url)], {
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
    // PATH is for its own libraries' sake; what else is set here is none of its business.
    env: { PATH: path.slice(0, path.lastIndexOf("/")), ...(password ? { PGPASSWORD: password } : {}) },
  });
  const [problems, code] = await Promise.all([new Response(child.stderr).text(), child.exited]);
  if (code === 0) return;
  const reason = problems.trim().split("\n")[0] ?? "";
  throw new BackupRefused("tool_failed", { tool, reason: reason || `exit ${code}` });
}

function withoutPassword(databaseUrl: string): { url: string; password: string } {
  if (databaseUrl === "") return { url: "", password: "" };
  const url = new URL(databaseUrl);
  const password = decodeURIComponent(url.password);
  url.password = "";
  return { url: url.href, password };
}
