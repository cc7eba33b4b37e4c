// Another connection, or another process, that writes the embedded database: nobody else can until it lets go.
// Refuses to change anything itself.
import { Database } from "bun:sqlite";

/** Waits for whoever is writing just now, then holds the file until released. */
export function lockFile(path: string): { release(): void } {
  const other = new Database(path);
  other.run("pragma busy_timeout = 5000");
  other.run("begin immediate");
  return {
    release() {
      other.run("rollback");
      other.close();
    },
  };
}

/** The same by a process of its own, which lets go when its input ends, also when the test's process is gone. */
export async function lockElsewhere(path: string): Promise<{ release(): Promise<void> }> {
  const script = `const { lockFile } = await import(${JSON.stringify(import.meta.path)});
    const lock = lockFile(${JSON.stringify(path)});
    console.log("held");
    await Bun.stdin.text();
    lock.release();`;
  const holder = Bun.spawn([process.execPath, "-e", script], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  const { value } = await holder.stdout.getReader().read();
  if (value === undefined) throw new Error("the file could not be held");
  return {
    async release() {
      await holder.stdin.end();
      await holder.exited;
    },
  };
}
