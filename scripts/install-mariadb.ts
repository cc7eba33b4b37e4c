// Finds the MariaDB server programs that tests of imports start, and gets them when the machine has none.
// Refuses to start a server or to touch one that runs: only files are its business.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { installSystemPackage } from "./install-postgres.ts";

export interface MariadbPrograms {
  server: string;
  /** Makes an empty data directory. */
  install: string;
}

/** Beside PATH: servers lie where only root's PATH leads. */
const PLACES = ["/usr/sbin", "/usr/bin", "/usr/libexec", "/usr/local/bin", "/opt/homebrew/bin"];

function find(...names: string[]): string | undefined {
  for (const name of names) {
    const found =
      Bun.which(name) ?? PLACES.map((place) => join(place, name)).find((path) => existsSync(path));
    if (found) return found;
  }
  return undefined;
}

/** Undefined where one of them is missing. */
export function findMariadb(): MariadbPrograms | undefined {
  const server = find("mariadbd", "mysqld");
  const install = find("mariadb-install-db", "mysql_install_db");
  return server && install ? { server, install } : undefined;
}

/** As `findMariadb`, and installs the system package when nothing is there. Throws a sentence that says what to do. */
export function ensureMariadb(): MariadbPrograms {
  const found = findMariadb();
  if (found) return found;
  installSystemPackage("mariadb-server", "the tests of imports need MariaDB (mariadbd, mariadb-install-db)");
  const installed = findMariadb();
  if (installed) return installed;
  throw new Error("MariaDB was installed, but its programs are not there; see the messages above");
}

if (import.meta.main) {
  try {
    console.log(ensureMariadb().server);
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exit(1);
  }
}
