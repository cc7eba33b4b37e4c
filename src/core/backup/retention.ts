// Which copies stay: the newest of each of seven days, four weeks and six months; the others make room.
// Refuses to touch what it did not make: other names, other installations, copies that it cannot read, and manifests beside which a person puts a dump.
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { bucketNumber, offsetSeconds } from "../../shared/local-time.ts";
import { BUNDLE_NAME, PARTIAL, readManifest } from "./manifest.ts";

const DAILY = 7;
const WEEKLY = 4;
const MONTHLY = 6;

/** A copy by its name and its moment, Unix seconds. */
interface Kept {
  name: string;
  createdAt: number;
}

/** Names of those that go. Days, weeks (from Monday) and months are those of the zone. */
export function superfluous(copies: readonly Kept[], zone: string): string[] {
  const newestFirst = copies.toSorted((a, b) => b.createdAt - a.createdAt);
  const kept = new Set<string>();
  const keep = (most: number, bucketOf: (seconds: number) => string) => {
    const seen = new Set<string>();
    for (const { name, createdAt } of newestFirst) {
      const bucket = bucketOf(createdAt);
      if (seen.has(bucket)) continue;
      if (seen.size === most) return;
      seen.add(bucket);
      kept.add(name);
    }
  };
  const local = (seconds: number) => seconds + offsetSeconds(zone, seconds * 1000);
  keep(DAILY, (at) => String(bucketNumber(local(at), "day", 0)));
  keep(WEEKLY, (at) => String(bucketNumber(local(at), "week", 0)));
  keep(MONTHLY, (at) => new Date(local(at) * 1000).toISOString().slice(0, 7));
  return newestFirst.filter(({ name }) => !kept.has(name)).map(({ name }) => name);
}

/** Removes the superfluous copies of an installation; answers how many. */
export function removeSuperfluous(dir: string, installation: number, zone: string): number {
  const copies = readdirSync(dir)
    .filter((name) => BUNDLE_NAME.test(name))
    .flatMap((name): Kept[] => {
      try {
        const manifest = readManifest(join(dir, name));
        // One without a file is half a copy, completed by hand or never: it makes no room, and none is made of it.
        const isOurs = manifest.installation === installation && manifest.database.file !== "";
        return isOurs ? [{ name, createdAt: manifest.createdAt }] : [];
      } catch {
        return [];
      }
    });
  const names = superfluous(copies, zone);
  for (const name of names) rmSync(join(dir, name), { recursive: true, force: true });
  return names.length;
}

/** What a backup left that was killed: call while no other can be writing there. */
export function removePartial(dir: string): void {
  for (const name of readdirSync(dir))
    if (name.endsWith(PARTIAL) && BUNDLE_NAME.test(name.slice(0, -PARTIAL.length)))
      rmSync(join(dir, name), { recursive: true, force: true });
}
