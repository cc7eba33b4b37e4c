// The faults of the wide test as a table: what is done, what callers may notice of it, what operations.md section 8 promises.
// Refuses to look at books: what must hold after every fault is judged in one place, wide-books.ts.
import type { Tolerance } from "./wide-books.ts";
import { startSwitch } from "../support/tcp-switch.ts";
import type { WideNode, WideSite } from "./wide-site.ts";

export interface Fault extends Tolerance {
  name: string;
  /** In the ordinary run too. */
  isSampled: boolean;
  act(stage: Stage): Promise<void>;
  /** What of it lasts until its consequences were judged. */
  mend?(wide: WideSite): Promise<void>;
}

export interface Stage {
  wide: WideSite;
  /** All of it, not the sample. */
  isLong: boolean;
  /** The fault lasts, under load, so many seconds of the long run, or of the sample. */
  lasts(longSeconds: number, sampleSeconds?: number): Promise<void>;
  /** Kills processes of a node by SIGKILL, and remembers when: what breaks off by it may be in no book. */
  kill(node: 0 | 1, pids: readonly number[]): Promise<void>;
  /** A node's processes stand still from now on, until the fault is over: who calls it may wait until they give up. */
  stands(node: 0 | 1): void;
}

const EVERYBODY = [0, 1] as const;
export const NOBODY = { hits: [], refusals: [], breaks: false } as const;
/** 429: keys that nobody knows yet wait for the database, of one address not more than so many. */
export const OUTAGE = { hits: EVERYBODY, refusals: [429, 503], breaks: false } as const;
const CLOCK_SECONDS = 900;
/** The lease is half a minute. */
const LONGER_THAN_LEASE_SECONDS = 34;
const KILLS = 8;

export async function killNode({ kill, wide }: Stage, number: 0 | 1): Promise<WideNode> {
  const node = wide.nodes[number];
  await kill(number, node.pids());
  await wide.site.until(() => node.pids().length === 0);
  return node;
}

export const signalAll = (node: WideNode, signal: "SIGSTOP" | "SIGCONT"): void => {
  for (const pid of node.pids()) process.kill(pid, signal);
};

export const FAULTS: readonly Fault[] = [
  {
    name: "a worker of each node is killed",
    isSampled: true,
    hits: EVERYBODY,
    refusals: [],
    breaks: true,
    async act({ wide: { nodes, site }, kill, lasts }) {
      for (const [number, index] of [
        [0, "0"],
        [1, "1"],
      ] as const) {
        const before = nodes[number].workers().get(index) ?? 0;
        await kill(number, [before]);
        await site.until(() => ![undefined, before].includes(nodes[number].workers().get(index)), 20_000);
        await lasts(5, 1);
      }
    },
  },
  {
    name: "a parent is killed: its workers end with it",
    isSampled: false,
    hits: [0],
    refusals: [],
    breaks: true,
    async act({ wide: { nodes, site }, kill, lasts }) {
      await kill(0, [nodes[0].server.pid ?? 0]);
      await site.until(() => nodes[0].workers().size === 0);
      await nodes[0].server.restart();
      await lasts(5);
    },
  },
  {
    name: "a node is killed, again and again",
    isSampled: true,
    hits: EVERYBODY,
    refusals: [],
    breaks: true,
    async act(stage) {
      for (let round = 0; round < (stage.isLong ? KILLS : 1); round++) {
        const node = await killNode(stage, round % 2 === 0 ? 0 : 1);
        await node.server.restart();
        await stage.lasts(2, 1);
      }
    },
  },
  {
    name: "a node stands still for longer than its lease",
    isSampled: false,
    hits: [1],
    // What came meanwhile comes at once, and from one address: too many to be looked up side by side.
    refusals: [429, 503],
    breaks: true,
    holdsRows: true,
    async act({ wide: { nodes }, lasts, stands }) {
      signalAll(nodes[1], "SIGSTOP");
      stands(1);
      await lasts(LONGER_THAN_LEASE_SECONDS);
      signalAll(nodes[1], "SIGCONT");
    },
  },
  {
    name: "PostgreSQL crashes and comes back",
    isSampled: true,
    ...OUTAGE,
    async act({ wide, lasts }) {
      await wide.postgres.stop("immediate");
      await lasts(12, 6);
      await wide.postgres.start();
    },
  },
  {
    name: "PostgreSQL restarts three times in a row",
    isSampled: false,
    ...OUTAGE,
    async act({ wide, lasts }) {
      for (let round = 0; round < 3; round++) {
        await wide.postgres.stop("fast");
        await lasts(1);
        await wide.postgres.start();
        await lasts(2);
      }
    },
  },
  {
    name: "PostgreSQL stands still",
    isSampled: false,
    ...OUTAGE,
    async act({ wide, lasts }) {
      wide.postgres.pause();
      await lasts(15);
      wide.postgres.resume();
    },
  },
  {
    name: "a node is cut off from PostgreSQL",
    isSampled: true,
    ...OUTAGE,
    hits: [1],
    async act({ wide: { nodes }, lasts }) {
      await nodes[1].cable.cut();
      await lasts(15, 6);
      await nodes[1].cable.restore();
    },
  },
  {
    name: "every packet between a node and PostgreSQL is lost",
    isSampled: false,
    ...OUTAGE,
    hits: [0],
    holdsRows: true,
    async act({ wide: { nodes }, lasts }) {
      await nodes[0].cable.silence();
      await lasts(15);
      await nodes[0].cable.restore();
    },
  },
  {
    name: "PostgreSQL is away, both nodes are killed, and start before it is back",
    isSampled: false,
    ...OUTAGE,
    breaks: true,
    async act(stage) {
      const { wide, lasts } = stage;
      await wide.postgres.stop("immediate");
      await lasts(4);
      const nodes = [await killNode(stage, 0), await killNode(stage, 1)];
      const starting = nodes.map((node) => node.server.restart());
      await lasts(3);
      await wide.postgres.start();
      await Promise.all(starting);
    },
  },
  {
    name: "PostgreSQL is away while both nodes are told to stop, and is back before they start",
    isSampled: false,
    ...OUTAGE,
    breaks: true,
    async act({ wide, lasts }) {
      await wide.postgres.stop("immediate");
      await lasts(3);
      await Promise.all(wide.nodes.map(({ server }) => server.stop()));
      await wide.postgres.start();
      await Promise.all(wide.nodes.map(({ server }) => server.restart()));
    },
  },
  {
    name: "the clock of a node jumps a quarter of an hour, forth and back",
    isSampled: false,
    ...NOBODY,
    async act({ wide: { nodes }, lasts }) {
      for (const seconds of [CLOCK_SECONDS, -CLOCK_SECONDS, 0]) {
        nodes[1].clock.set(seconds);
        await lasts(8);
      }
    },
  },
  {
    name: "both nodes replace their workers, one after the other",
    isSampled: false,
    ...NOBODY,
    async act({ wide: { nodes, site } }) {
      const replaced = (node: WideNode) => node.server.log().split("all workers were replaced").length;
      for (const node of nodes) {
        const before = replaced(node);
        process.kill(node.server.pid ?? 0, "SIGHUP");
        await site.until(() => replaced(node) > before, 40_000);
      }
    },
  },
  {
    name: "Redis is killed and comes back",
    isSampled: false,
    ...NOBODY,
    async act({ wide: { redis }, lasts }) {
      await redis.stop();
      await lasts(6);
      await redis.start();
    },
  },
  {
    name: "Redis stands still",
    isSampled: true,
    ...NOBODY,
    async act({ wide: { redis }, lasts }) {
      redis.pause();
      await lasts(6, 2);
      redis.resume();
    },
  },
  {
    name: "Redis is emptied",
    isSampled: false,
    ...NOBODY,
    async act({ wide: { redis }, lasts }) {
      await redis.flush();
      await lasts(3);
    },
  },
  {
    name: "a standby is promoted that lacks the last seconds",
    isSampled: true,
    ...OUTAGE,
    async act({ wide, lasts }) {
      const replication = await startSwitch(wide.postgres.port);
      const standby = await wide.postgres.standby(replication.port);
      await lasts(2, 0.5);
      await replication.cut();
      await lasts(4, 2);
      await wide.postgres.stop("immediate");
      await standby.promote();
      await wide.follow(standby);
      await replication.stop();
    },
  },
  {
    name: "for a while both nodes are led to a standby that only reads, before it is promoted",
    isSampled: false,
    ...OUTAGE,
    async act({ wide, lasts }) {
      const standby = await wide.postgres.standby();
      await lasts(2);
      await wide.postgres.stop("fast");
      await wide.follow(standby);
      await lasts(8);
      await standby.promote();
    },
  },
  {
    name: "PostgreSQL is set back to an older copy under running nodes",
    isSampled: false,
    ...OUTAGE,
    async act({ wide, lasts }) {
      const copy = await wide.postgres.dump();
      await lasts(5);
      for (const { cable } of wide.nodes) await cable.cut();
      await wide.postgres.putBack(copy);
      for (const { cable } of wide.nodes) await cable.restore();
    },
  },
];
