// Where workers keep what is theirs: DATA_DIR/w0, w1, … each a data directory of its own (node id, lock, journal).
// Refuses other names: what an operator puts beside them is no worker's.
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

const NAME = /^w(0|[1-9]\d?)$/;

export const workerDirOf = (dataDir: string, index: number): string => join(dataDir, `w${index}`);

/** Those that exist, also of workers that there are no longer. */
export function workerDirsIn(dataDir: string): string[] {
  if (!existsSync(dataDir)) return [];
  return readdirSync(dataDir, { withFileTypes: true })
    .filter((each) => each.isDirectory() && NAME.test(each.name))
    .map(({ name }) => join(dataDir, name))
    .toSorted();
}
