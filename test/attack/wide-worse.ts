// Worse faults of the wide test: a full disk, two at once, a node cut off from one of both stores, what is lost in silence for
// long, a drain with streams open. Rows of the same table as wide-faults.ts, in which they follow.
// Refuses what the ordinary run has the time for: these are the long run's.
import { killNode, NOBODY, OUTAGE, signalAll } from "./wide-faults.ts";
import type { Fault, Stage } from "./wide-faults.ts";
import type { WideNode, WideSite } from "./wide-site.ts";

/** Longer than any wait in the product, and than what TCP itself takes to notice. */
const LONGER_THAN_A_MINUTE_SECONDS = 75;
const STREAMS = 8;
const HEAVY_CALLS = 64;

/**
 * Fills the second node's disk and sends it long rows until it serves none of a round any more: the room that was made in
 * advance is used up.
 */
async function useUpDisk({ wide: { disk, site, load } }: Stage): Promise<void> {
  await site.until(async () => {
    disk.fill();
    return (await load.heavy(1, HEAVY_CALLS)).every(({ outcome }) => outcome.status !== 200);
  }, 120_000);
}

/** Both workers of a node are others than before. */
async function replacedBoth({ site }: WideSite, node: WideNode, before: ReadonlyMap<string, number>) {
  await site.until(() => {
    const now = node.workers();
    return ["0", "1"].every((index) => ![undefined, before.get(index)].includes(now.get(index)));
  }, 60_000);
}

/** Streams of a node that their upstream has begun to answer. */
const begunStreams = ({ load, site }: WideSite, node: number): number =>
  load.calls.filter(
    ({ id, kind, node: at, endedMs }) =>
      at === node &&
      (kind === "long" || kind === "endless") &&
      endedMs === Number.POSITIVE_INFINITY &&
      site.upstream.of(id).some(({ given }) => given > 0),
  ).length;

export const WORSE: readonly Fault[] = [
  {
    name: "the disk of a node is full",
    isSampled: false,
    hits: [1],
    refusals: [503],
    breaks: false,
    async act({ wide, lasts }) {
      wide.disk.fill();
      // Files whose entries the tables have are written to anew, so that it may go on.
      for (let round = 0; round < 10; round++) {
        await wide.load.heavy(1, HEAVY_CALLS);
        await lasts(1);
        wide.disk.fill();
      }
      wide.disk.empty();
    },
  },
  {
    name: "the disk of a node is full, and PostgreSQL out of its reach",
    isSampled: false,
    hits: [1],
    refusals: [429, 503],
    breaks: false,
    async act(stage) {
      const { wide, lasts } = stage;
      await wide.nodes[1].cable.cut();
      await useUpDisk(stage);
      await lasts(5);
      wide.disk.empty();
      await lasts(3);
      await wide.nodes[1].cable.restore();
    },
  },
  {
    name: "the disk of a node is full, it is killed and starts on the full disk, which is freed then",
    isSampled: false,
    hits: [1],
    refusals: [429, 503],
    breaks: true,
    async act(stage) {
      const { wide, lasts } = stage;
      const { cable } = wide.nodes[1];
      await cable.cut();
      await useUpDisk(stage);
      const { server } = await killNode(stage, 1);
      await cable.restore();
      // It serves, or says why it does not.
      const reason = await server.restart().then(
        () => undefined,
        (error: unknown) => String(error),
      );
      if (reason !== undefined && !/ENOSPC|no (?:room|space)/i.test(reason)) throw new Error(reason);
      await lasts(3);
      wide.disk.empty();
      if (reason !== undefined) await server.restart();
      await lasts(3);
    },
  },
  {
    name: "Redis stands still while PostgreSQL restarts",
    isSampled: false,
    ...OUTAGE,
    async act({ wide, lasts }) {
      wide.redis.pause();
      await wide.postgres.stop("fast");
      await lasts(4);
      await wide.postgres.start();
      await lasts(3);
      wide.redis.resume();
    },
  },
  {
    name: "a worker is killed while the workers of its node are replaced",
    isSampled: false,
    hits: [0],
    refusals: [],
    breaks: true,
    async act({ wide, kill, lasts }) {
      const [node] = wide.nodes;
      const before = node.workers();
      process.kill(node.server.pid ?? 0, "SIGHUP");
      await wide.site.until(() => node.workers().get("0") !== before.get("0"), 40_000);
      await kill(0, [before.get("1") ?? 0]);
      await replacedBoth(wide, node, before);
      await lasts(3);
    },
  },
  {
    name: "a standby is promoted while a node stands still",
    isSampled: false,
    ...OUTAGE,
    holdsRows: true,
    async act({ wide, lasts, stands }) {
      const standby = await wide.postgres.standby();
      await lasts(2);
      signalAll(wide.nodes[1], "SIGSTOP");
      stands(1);
      await lasts(3);
      await wide.postgres.stop("immediate");
      await standby.promote();
      await wide.follow(standby);
      await lasts(6);
      signalAll(wide.nodes[1], "SIGCONT");
      await lasts(3);
    },
  },
  {
    name: "a node is cut off from Redis",
    isSampled: false,
    ...NOBODY,
    async act({ wide: { nodes }, lasts }) {
      await nodes[0].redisCable.cut();
      await lasts(6);
      await nodes[0].redisCable.restore();
    },
  },
  {
    name: "every packet between a node and Redis is lost",
    isSampled: false,
    ...NOBODY,
    async act({ wide: { nodes }, lasts }) {
      await nodes[1].redisCable.silence();
      await lasts(6);
      await nodes[1].redisCable.restore();
    },
  },
  {
    name: "a node with open streams is told to stop: those end that may, the others are told",
    isSampled: false,
    hits: [0],
    refusals: [],
    breaks: true,
    async act({ wide, lasts }) {
      const { load, site, nodes } = wide;
      const within = load.lasting("long", 0, STREAMS);
      const beyond = load.lasting("endless", 0, STREAMS);
      await site.until(() => begunStreams(wide, 0) === 2 * STREAMS, 20_000);
      const code = await nodes[0].server.stop();
      await nodes[0].server.restart();
      if (code !== 0) throw new Error(`the node ended with ${code}`);
      const cut = (await within).filter(({ outcome }) => !outcome.isWhole);
      if (cut.length > 0) throw new Error(`${cut.length} streams were cut that had the time to end`);
      const silent = (await beyond).filter(({ outcome }) => !/"error"/.test(outcome.text));
      if (silent.length > 0) throw new Error(`${silent.length} streams were cut and not told why`);
      await lasts(3);
    },
  },
  {
    name: "every packet between a node and PostgreSQL is lost for longer than a minute",
    isSampled: false,
    ...OUTAGE,
    hits: [0],
    holdsRows: true,
    async act({ wide: { nodes }, lasts }) {
      await nodes[0].cable.silence();
      await lasts(LONGER_THAN_A_MINUTE_SECONDS);
      await nodes[0].cable.restore();
    },
  },
  {
    name: "a firewall has forgotten the connections of a node to PostgreSQL, and lets new ones through",
    isSampled: false,
    ...OUTAGE,
    hits: [0],
    holdsRows: true,
    async act({ wide: { nodes }, lasts }) {
      await nodes[0].cable.forget();
      await lasts(25);
    },
    mend: ({ nodes }) => nodes[0].cable.restore(),
  },
];
