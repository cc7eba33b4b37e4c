// Another process that writes the embedded database: nobody else can until it lets go.
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
