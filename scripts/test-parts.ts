// Which test files run together, in which order, and beside what: groups by folder, parts of groups, lanes that take parts.
// Refuses to run anything.
import { existsSync } from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, join } from "node:path";

const PROJECT_DIR = dirname(import.meta.dir);

export interface Group {
  name: "server" | "attack" | "islands" | "e2e";
  /** Of a part, from 1: what lanes print at the same time is told apart by it. */
  part?: number;
  files: string[];
  flags: string[];
}

/** Files that one process of `bun test` takes at once: small enough that lanes end together, large enough to load once. */
const PART_FILES = { server: 16, attack: 3, islands: 24, e2e: 3 } as const;
/** In the order in which lanes take them: what has less room beside itself begins first. */
const LANE_ORDER = ["e2e", "attack", "server", "islands"] as const;
/**
 * Browsers and attacks fill a machine: so many of each, and of both together, as long as there is something else to run. When
 * nothing else is left, as many as there are cores: more would only make each other late.
 */
const MOST_AT_ONCE = { e2e: 2, attack: 1 } as const;
const MOST_HEAVY = 2;
/**
 * What takes longest, as parts of their own and the longest first: a lane that begins one at the end would be waited for.
 * Nothing but time depends on it; per part the end of a run tells the seconds.
 */
const LONG_FILES = [
  "./test/e2e/axe.test.ts",
  "./test/e2e/hostile.test.ts",
  "./test/e2e/press.test.ts",
  "./test/api/hostile.test.ts",
  "./test/e2e/payments.test.ts",
  "./test/cli/rotate.test.ts",
  "./test/cli/config.test.ts",
  "./test/attack/journal.test.ts",
  "./test/e2e/first-sale.test.ts",
  "./test/core/logs/list.test.ts",
];
/** What waits nearly all its time, many tests of a file at once, with hardly any of a processor: beside everything else. */
const WAITING_FILES = [
  "./test/http/connections-process.test.ts",
  "./test/attack/front.test.ts",
  "./test/attack/charges-ends.test.ts",
];

const isHeavy = ({ name }: Group): boolean => name === "e2e" || name === "attack";
export const isWaiting = ({ files }: Group): boolean => files.every((file) => WAITING_FILES.includes(file));

/**
 * A file belongs to the group of its first folder; everything that has no group of its own is a server test. A test's limit only
 * ends what hangs: it is twice what one has taken on a machine that others filled.
 */
export function groupFiles(files: readonly string[], filters: readonly string[]): Group[] {
  const wanted = files.filter(
    (file) => filters.length === 0 || filters.some((filter) => file.includes(filter)),
  );
  const isIsland = (file: string) => file.startsWith("./test/islands/");
  const isAttack = (file: string) => file.startsWith("./test/attack/");
  // What needs a browser goes where the browser is made sure of.
  const isE2e = (file: string) => file.startsWith("./test/e2e/") || file.endsWith("/browser.test.ts");
  const preload = existsSync(join(PROJECT_DIR, "test/dom.ts")) ? ["--preload", "./test/dom.ts"] : [];
  const groups: Group[] = [
    {
      name: "server",
      files: wanted.filter((file) => !isIsland(file) && !isE2e(file) && !isAttack(file)),
      flags: ["--timeout", "60000"],
    },
    { name: "attack", files: wanted.filter(isAttack), flags: ["--timeout", "120000"] },
    { name: "islands", files: wanted.filter(isIsland), flags: [...preload, "--timeout", "60000"] },
    { name: "e2e", files: wanted.filter(isE2e), flags: ["--timeout", "120000"] },
  ];
  return groups.filter((group) => group.files.length > 0);
}

/** Groups in parts of a few files, in the order in which lanes take them. */
export function partsOf(groups: readonly Group[]): Group[] {
  return LANE_ORDER.flatMap((name) =>
    groups
      .filter((group) => group.name === name)
      .flatMap(({ files, flags }) => {
        const single = [...LONG_FILES, ...WAITING_FILES].filter((file) => files.includes(file));
        const rest = files.filter((file) => !single.includes(file));
        const size = PART_FILES[name];
        const several = Array.from({ length: Math.ceil(rest.length / size) }, (_, at) =>
          rest.slice(at * size, (at + 1) * size),
        );
        return [...single.map((file) => [file]), ...several].map((part, at) => ({
          name,
          part: at + 1,
          files: part,
          flags,
        }));
      }),
  );
}

/**
 * Takes out of the queue what the next free lane runs, beside what runs. The lane for what waits takes nothing else; the
 * others take what waits at the end. Undefined where the lane has nothing more to do: what is left is for those that run.
 */
export function takePart(
  queue: Group[],
  running: readonly Group[],
  lane: "any" | "waiting" = "any",
  cores = availableParallelism(),
): Group | undefined {
  if (lane === "waiting") {
    const at = queue.findIndex(isWaiting);
    return at < 0 ? undefined : queue.splice(at, 1)[0];
  }
  const heavy = running.filter((other) => isHeavy(other) && !isWaiting(other));
  const hasRoom = (part: Group) => {
    if (isWaiting(part)) return false;
    if (part.name !== "e2e" && part.name !== "attack") return true;
    const alike = heavy.filter(({ name }) => name === part.name);
    return alike.length < MOST_AT_ONCE[part.name] && heavy.length < MOST_HEAVY;
  };
  const isLastHeavyFull = heavy.length >= Math.max(MOST_HEAVY, cores);
  let at = queue.findIndex(hasRoom);
  if (at < 0) at = queue.findIndex((part) => isWaiting(part) || !isLastHeavyFull);
  return at < 0 ? undefined : queue.splice(at, 1)[0];
}
