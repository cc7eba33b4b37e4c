// Finds the Redis or Valkey server program that tests of several nodes start, and gets it when the machine has none.
// Refuses to start a server or to touch one that runs: only files are its business.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { installSystemPackage } from "./install-postgres.ts";

/** Both speak one protocol; Redis is what Debian's package brings. */
const PROGRAMS = ["redis-server", "valkey-server"] as const;
/** Beside PATH: servers lie where only root's PATH leads. */
const PLACES = ["/usr/sbin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"];

/** Path of the server program; undefined where there is none. */
export function findRedis(): string | undefined {
  for (const name of PROGRAMS) {
    const found =
      Bun.which(name) ?? PLACES.map((place) => join(place, name)).find((path) => existsSync(path));
    if (found) return found;
  }
  return undefined;
}

/** As `findRedis`, and installs the system package when nothing is there. Throws a sentence that says what to do. */
export function ensureRedis(): string {
  const found = findRedis();
  if (found) return found;
  installSystemPackage("redis-server", "the tests of several nodes need Redis or Valkey (redis-server)");
  const installed = findRedis();
  if (installed) return installed;
  throw new Error("Redis was installed, but its program is not there; see the messages above");
}

if (import.meta.main) {
  try {
    console.log(ensureRedis());
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exit(1);
  }
}
