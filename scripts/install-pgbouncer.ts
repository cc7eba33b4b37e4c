// Finds the pgbouncer that tests put before PostgreSQL, and gets it when the machine has none.
// Refuses to start one or to touch one that runs: only files are its business.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { installSystemPackage } from "./install-postgres.ts";

/** Beside PATH: servers lie where only root's PATH leads. */
const PLACES = ["/usr/sbin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"];

/** Path of the program; undefined where there is none. */
export function findPgbouncer(): string | undefined {
  return (
    Bun.which("pgbouncer") ?? PLACES.map((place) => join(place, "pgbouncer")).find((path) => existsSync(path))
  );
}

/** As `findPgbouncer`, and installs the system package when nothing is there. Throws a sentence that says what to do. */
export function ensurePgbouncer(): string {
  const found = findPgbouncer();
  if (found) return found;
  installSystemPackage("pgbouncer", "the tests of poolers need pgbouncer");
  const installed = findPgbouncer();
  if (installed) return installed;
  throw new Error("pgbouncer was installed, but it is not there; see the messages above");
}

if (import.meta.main) {
  try {
    console.log(ensurePgbouncer());
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exit(1);
  }
}
