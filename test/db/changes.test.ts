// The change feed of nodes on one PostgreSQL: ids are told, everything is re-read only after a gap, within a second.
// Refuses fixed waits: it asks again and again until the second is over.
import { afterEach, beforeEach, expect, jest, test } from "bun:test";
import { eq, sql } from "drizzle-orm";
import type { Sql } from "postgres";
import { createChangeFeed } from "../../src/db/changes.ts";
import { createLookAround } from "../../src/db/look-around.ts";
import { migratePostgres } from "../../src/db/migrate.ts";
import { openPostgres, postgresDatabase } from "../../src/db/postgres.ts";
import type { Database } from "../../src/db/database.ts";
import { createTestDatabase } from "../support/postgres.ts";
import type { TestDatabase } from "../support/postgres.ts";
import { handTurned } from "../support/rest.ts";
import { nextLook } from "../support/turns.ts";
import { startStretch } from "../support/stretch.ts";

interface Node {
  db: Database;
  ids: string[];
  lost: number;
}

let database: TestDatabase;
let nodes: Node[];

async function startNode(): Promise<Node> {
  const node: Node = {
    db: postgresDatabase(openPostgres(database.databaseUrl ?? "", 4)),
    ids: [],
    lost: 0,
  };
  await node.db.onChange("channels", {
    changed: (ids) => void node.ids.push(...ids),
    lost: () => void node.lost++,
  });
  return node;
}

async function soon(isSo: () => boolean, limitMs = 1000): Promise<void> {
  const startedMs = performance.now();
  const stretch = startStretch();
  for (let looks = 0; !isSo(); looks++) {
    // The database answers beside other lanes; what this process waits for a processor says how slow that is.
    if (performance.now() - startedMs > limitMs * (1 + stretch()))
      throw new Error(`not so after ${limitMs} ms`);
    await nextLook(looks);
  }
}

beforeEach(async () => {
  database = await createTestDatabase("postgres");
  const client = openPostgres(database.databaseUrl ?? "", 1);
  await migratePostgres(client);
  await client.end();
  nodes = await Promise.all([startNode(), startNode()]);
});
afterEach(async () => {
  await Promise.all(nodes.map(({ db }) => db.close()));
  await database.drop();
});

test("each change is told to the other node by its id, once, and to the one that made it only where its transaction may stand unheard", async () => {
  const [here, there] = nodes as [Node, Node];
  await here.db.announce("channels", [7, 8]);
  await here.db.announce("channels", [9]);
  await soon(() => there.ids.length === 3);
  expect([there.ids, there.lost]).toEqual([["7", "8", "9"], 0]);
  expect([here.ids, here.lost]).toEqual([[], 0]);
  await here.db.atomic((tx) => here.db.announceSteps(tx, "channels", [10]));
  await soon(() => there.ids.length === 4 && here.ids.length === 1);
  expect([here.ids, here.lost, there.lost]).toEqual([["10"], 0, 0]);
});

test("two busy nodes tell each other all changes, and nobody ever re-reads everything", async () => {
  const [here, there] = nodes as [Node, Node];
  await Promise.all(
    nodes.flatMap(({ db }, node) =>
      Array.from({ length: 150 }, (_, i) => db.announce("channels", [node * 1000 + i])),
    ),
  );
  await soon(() => here.ids.length === 150 && there.ids.length === 150, 5000);
  expect(new Set(here.ids).size + new Set(there.ids).size).toBe(300);
  // Two more rounds of comparing versions find nothing either.
  const until = performance.now() + 800;
  await soon(() => performance.now() > until);
  expect([here.lost, there.lost]).toEqual([0, 0]);
}, 20_000);

test("an announcement that is lost is noticed within a second by every node, and the next ones are told by id again", async () => {
  const [here, there] = nodes as [Node, Node];
  await here.db.announce("channels", [1]);
  await soon(() => there.ids.length === 1);
  const { marks } = here.db.t;
  await here.db.orm
    .update(marks)
    .set({ value: sql`${marks.value} + 1` })
    .where(eq(marks.key, "version:channels"));
  await soon(() => here.lost === 1 && there.lost === 1);
  await here.db.announce("channels", [2]);
  await soon(() => there.ids.includes("2"));
  expect([here.lost, there.lost]).toEqual([1, 1]);
});

test("a version that follows a missing one has everything re-read at once", async () => {
  const [here, there] = nodes as [Node, Node];
  await here.db.announce("channels", [1]);
  await soon(() => there.ids.length === 1);
  const { marks } = here.db.t;
  await here.db.orm
    .update(marks)
    .set({ value: sql`${marks.value} + 1` })
    .where(eq(marks.key, "version:channels"));
  await here.db.announce("channels", [3]);
  await soon(() => there.lost === 1);
  expect(there.ids).toEqual(["1"]);
});

test("a node whose listening connection is cut hears of everything within a second, by id or by the gap", async () => {
  const [here, there] = nodes as [Node, Node];
  for (let i = 0; i < 3; i++) {
    const before = there.ids.length + there.lost;
    // The connections that listen, whichever node's they are.
    await here.db.orm
      .select({ isCut: sql`pg_terminate_backend(pid)` })
      .from(sql`pg_stat_activity`)
      .where(sql`query ilike 'listen%' and datname = current_database() and pid <> pg_backend_pid()`);
    await here.db.announce("channels", [i]);
    await soon(() => there.ids.length + there.lost > before);
  }
});

test("a database that was set back has everything re-read, and the next changes are told by id again", async () => {
  const [here, there] = nodes as [Node, Node];
  for (const id of [1, 2, 3]) await here.db.announce("channels", [id]);
  await soon(() => there.ids.length === 3);
  const { marks } = here.db.t;
  await here.db.orm.update(marks).set({ value: 1 }).where(eq(marks.key, "version:channels"));
  await soon(() => here.lost === 1 && there.lost === 1);
  await here.db.announce("channels", [4]);
  await soon(() => there.ids.includes("4"));
  expect([here.lost, there.lost]).toEqual([1, 1]);
});

test("what could not be re-read is read anew in the next round, and again until it is", async () => {
  const [here] = nodes as [Node, Node];
  const db = postgresDatabase(openPostgres(database.databaseUrl ?? "", 4));
  nodes.push({ db, ids: [], lost: 0 });
  const tried: string[] = [];
  await db.onChange("options", {
    async changed(ids) {
      tried.push(ids.join());
      throw new Error("the database is away");
    },
    async lost() {
      tried.push("everything");
      if (tried.length < 4) throw new Error("the database is away");
    },
  });
  await here.db.announce("options", ["SystemName"]);
  await soon(() => tried.length === 4, 5000);
  expect(tried).toEqual(["SystemName", "everything", "everything", "everything"]);
  await here.db.announce("options", ["Notice"]);
  await soon(() => tried.length === 6, 5000);
  expect(tried.slice(4)).toEqual(["Notice", "everything"]);
});

test("a writer who is killed before it announces is no gap: what it wrote is told within a second", async () => {
  const [here, there] = nodes as [Node, Node];
  const { channels, channelKeys } = here.db.t;
  await here.db.orm.insert(channels).values({ id: 41, name: "one" });
  await soon(() => there.ids.length === 1);
  await here.db.orm.insert(channelKeys).values({ channelId: 41, pos: 0, keyHash: "h" });
  await soon(() => there.ids.length === 2);
  await here.db.orm.update(channels).set({ usedQuota: 7, testTime: 7 });
  await here.db.orm.update(channels).set({ status: 2 });
  await soon(() => there.ids.length === 3);
  await here.db.orm.delete(channels);
  await soon(() => there.ids.length === 4);
  expect([there.ids, there.lost]).toEqual([["41", "41", "41", "41"], 0]);
});

test("whoever wakes a node that rested waits until it has re-read what nobody told it, and nobody else waits", async () => {
  const [here] = nodes as [Node, Node];
  const hand = handTurned();
  const client = openPostgres(database.databaseUrl ?? "", 4);
  const db = postgresDatabase(client, client, hand.around);
  const { channels, marks } = here.db.t;
  const reread: string[] = [];
  const isReread = Promise.withResolvers<undefined>();
  await db.onChange("channels", {
    async changed(ids) {
      await isReread.promise;
      reread.push(...ids);
    },
    lost: () => void reread.push("everything"),
  });
  expect(db.use()).toBeUndefined();
  hand.rest();
  // By hand, and an announcement that got lost.
  await here.db.orm.insert(channels).values({ id: 41, name: "one" });
  const version = { key: "version:channels", value: 1 };
  await here.db.orm
    .insert(marks)
    .values(version)
    .onConflictDoUpdate({ target: marks.key, set: { value: sql`${marks.value} + 1` } });
  const [first, second] = [db.use(), db.use()];
  expect(second).toBe(first);
  expect(first).toBeInstanceOf(Promise);
  isReread.resolve(undefined);
  await first;
  expect(reread.sort()).toEqual(["41", "everything"]);
  expect(db.use()).toBeUndefined();
  await db.close();
});

test("a node that rests hears of what is announced as any other, and asks 24 times a minute", async () => {
  jest.useFakeTimers();
  let looks = 0;
  let hear = (_payload: string): void => {};
  const ids: string[] = [];
  const none = { told: { channels: [], costs: [], inbox: [] }, marks: new Map<string, number>() };
  const around = createLookAround();
  const listen = (_channel: string, heard: typeof hear) => {
    hear = heard;
    return Promise.resolve();
  };
  const feed = createChangeFeed({
    client: {} as unknown as Sql,
    session: { listen } as unknown as Sql,
    rows: { look: () => (looks++, Promise.resolve(none)), next: () => Promise.resolve(none.told) },
    answered() {},
    around,
  });
  try {
    await feed.onChange("channels", { changed: (each) => void ids.push(...each), lost() {} });
    const pass = async (seconds: number): Promise<number> => {
      const before = looks;
      for (let half = 0; half < 2 * seconds; half++) {
        jest.advanceTimersByTime(500);
        for (let turns = 0; turns < 20; turns++) await Promise.resolve();
      }
      return looks - before;
    };
    expect(await pass(20)).toBe(40);
    expect(await pass(60)).toBe(24);
    hear("channels 1 other 7");
    expect(ids).toEqual(["7"]);
    around.use();
    expect(feed.catchingUp()).toBeInstanceOf(Promise);
    // The first look of the half seconds shares the round that the use began.
    expect(await pass(10)).toBe(20);
  } finally {
    feed.close();
    jest.useRealTimers();
  }
});

test("whoever wakes a node waits for a round that began behind them, not for one that was under way", async () => {
  const hand = handTurned();
  const none = { told: { channels: [], costs: [], inbox: [] }, marks: new Map<string, number>() };
  const answers: PromiseWithResolvers<typeof none>[] = [];
  let isSlow = false;
  const look = () => {
    if (!isSlow) return Promise.resolve(none);
    const answer = Promise.withResolvers<typeof none>();
    answers.push(answer);
    return answer.promise;
  };
  const ids: string[] = [];
  const feed = createChangeFeed({
    client: {} as unknown as Sql,
    session: { listen: () => Promise.resolve() } as unknown as Sql,
    rows: { look, next: async () => (await look()).told },
    answered() {},
    around: hand.around,
  });
  await feed.onChange("channels", { changed: (each) => void ids.push(...each), lost() {} });
  isSlow = true;
  hand.look(2500);
  await soon(() => answers.length === 1);
  hand.rest();
  hand.around.use();
  const caughtUp = feed.catchingUp();
  // Asked before the commit.
  answers[0]?.resolve(none);
  await soon(() => answers.length === 2);
  answers[1]?.resolve({ ...none, told: { ...none.told, channels: [7] as never[] } });
  await caughtUp;
  expect(ids).toEqual(["7"]);
  feed.close();
});

test("a connection that is open and silent is given up, and what it may have told is read anew", async () => {
  const silent = new Promise<never>(() => {});
  let isSilent = false;
  let rounds = 0;
  let lost = 0;
  const found = { told: { channels: [], costs: [], inbox: [] }, marks: new Map<string, number>() };
  const look = () => (isSilent ? silent : Promise.resolve(found));
  const feed = createChangeFeed({
    client: {} as unknown as Sql,
    session: { listen: () => Promise.resolve() } as unknown as Sql,
    rows: { look, next: async () => (await look()).told },
    answered: () => void rounds++,
    answerMs: 10,
  });
  let gap = () => {};
  feed.carryBy({
    publish() {},
    subscribe(_channel, _heard, onGap) {
      gap = onGap;
      return () => {};
    },
  });
  await feed.onChange("channels", { changed() {}, lost: () => void lost++ });
  isSilent = true;
  gap();
  await nextLook(0);
  isSilent = false;
  const before = rounds;
  // Where the silent round stood for ever, no other would begin.
  await soon(() => (gap(), rounds > before));
  expect(lost).toBe(1);
  feed.close();
});

test("a long list is told by its ids, in parts that each have a version: by announcement, in a transaction, and carried", async () => {
  const bus = createBus();
  const [here, there] = nodes as [Node, Node];
  here.db.carryChanges(bus.carrier);
  const ids = Array.from({ length: 5000 }, (_, i) => String(i));
  await here.db.announce("channels", ids);
  await soon(() => there.ids.length === ids.length);
  expect(bus.waiting.length).toBeGreaterThan(1);
  await here.db.atomic(function* (tx) {
    yield* here.db.announceSteps(tx, "channels", ids);
  });
  await here.db.announce("channels", ["last"]);
  const all = [...ids, ...ids, "last"];
  await soon(() => there.ids.length >= all.length);
  expect([there.ids, there.lost]).toEqual([all, 0]);
  const carried = bus.waiting.map((text) => text.split(" "));
  expect(carried.flatMap(([, , , list]) => list?.split(","))).toEqual(all);
  const versions = carried.map(([, version]) => Number(version));
  expect(versions).toEqual(versions.map((_, nth) => (versions[0] ?? 0) + nth));
  // An id that no payload can carry.
  await here.db.announce("channels", ["x".repeat(7001)]);
  await soon(() => there.lost === 1);
});

/** A quick way between nodes that a test holds in its hands: what is published waits until it is handed on. */
function createBus() {
  const heard: ((text: string) => void)[] = [];
  const gaps: (() => void)[] = [];
  const waiting: string[] = [];
  return {
    waiting,
    gap: () => gaps.forEach((onGap) => onGap()),
    deliver(text: string): void {
      for (const listener of heard) listener(text);
    },
    carrier: {
      publish: (_: string, text: string) => void waiting.push(text),
      subscribe(_: string, listener: (text: string) => void, onGap: () => void) {
        heard.push(listener);
        gaps.push(onGap);
        return () => void heard.splice(heard.indexOf(listener), 1);
      },
    },
  };
}

/** The connections that listen are gone for as long as `action` runs, and announcements with them. */
async function withoutListening(db: Database, action: () => Promise<void>): Promise<void> {
  let isOver = false;
  const cutting = (async () => {
    while (!isOver)
      await db.orm
        .select({ isCut: sql`pg_terminate_backend(pid)`, waited: sql`pg_sleep(0.002)` })
        .from(
          sql`(select pid from pg_stat_activity where query ilike 'listen%' and datname = current_database()) as s`,
        );
  })();
  await action();
  isOver = true;
  await cutting;
}

test("what is carried the quick way is in force without PostgreSQL's word, and what comes both ways is told once", async () => {
  const bus = createBus();
  const [here, there] = nodes as [Node, Node];
  for (const { db } of nodes) db.carryChanges(bus.carrier);
  await withoutListening(here.db, async () => {
    await here.db.announce("channels", [4, 5]);
    bus.deliver(bus.waiting[0] ?? "");
    expect([there.ids, there.lost]).toEqual([["4", "5"], 0]);
    // The node itself has read already; and a copy that comes late is none.
    bus.deliver(bus.waiting[0] ?? "");
    expect([there.ids.length, here.ids.length]).toEqual([2, 0]);
  });
  // Two more looks at the table find nothing that was missed.
  const until = performance.now() + 1300;
  await soon(() => performance.now() > until, 2000);
  expect([there.ids, there.lost, here.lost]).toEqual([["4", "5"], 0, 0]);
  await here.db.announce("channels", [6]);
  bus.deliver(bus.waiting[1] ?? "");
  await soon(() => there.ids.includes("6"));
  await here.db.announce("channels", [7]);
  await soon(() => there.ids.includes("7"));
  bus.deliver(bus.waiting[2] ?? "");
  expect([there.ids, there.lost]).toEqual([["4", "5", "6", "7"], 0]);
});

test("one that overtakes another on the quick way is in force at once, and has nothing re-read for it", async () => {
  const bus = createBus();
  const [here, there] = nodes as [Node, Node];
  const third = await startNode();
  nodes.push(third);
  there.db.carryChanges(bus.carrier);
  const { marks } = here.db.t;
  const [before] = await here.db.orm.select().from(marks).where(eq(marks.key, "version:channels"));
  const next = (before?.value ?? 0) + 1;
  bus.deliver(`channels ${next + 1} somebody 21`);
  expect([there.ids, there.lost]).toEqual([["21"], 0]);
  await here.db.announce("channels", [20]);
  await third.db.announce("channels", [21]);
  await soon(() => there.ids.filter((id) => id === "21").length === 2);
  expect([there.ids, there.lost]).toEqual([["21", "20", "21"], 0]);
});

test("a transaction's announcement is carried after its commit, and never where it is rolled back", async () => {
  const bus = createBus();
  const [here] = nodes as [Node, Node];
  here.db.carryChanges(bus.carrier);
  let during = -1;
  const change = (fails: boolean) =>
    here.db.atomic(function* (tx) {
      yield* here.db.announceSteps(tx, "channels", [1]);
      yield* here.db.announceSteps(tx, "users", [2]);
      during = bus.waiting.length;
      if (fails) throw new Error("rolled back");
    });
  const failure = await change(true).then(
    () => "",
    (error: unknown) => String(error),
  );
  expect([failure, bus.waiting]).toEqual(["Error: rolled back", []]);
  await change(false);
  expect(during).toBe(0);
  expect(bus.waiting.map((text) => text.split(" ")[0])).toEqual(["channels", "users"]);
});

test("after a gap of the quick way the versions are read anew, without waiting for the next round", async () => {
  const bus = createBus();
  const [here, there] = nodes as [Node, Node];
  there.db.carryChanges(bus.carrier);
  await here.db.announce("channels", [1]);
  await soon(() => there.ids.length === 1);
  let answers = 0;
  there.db.onAnswer(() => void answers++);
  const startedMs = performance.now();
  for (let gaps = 0; gaps < 5; gaps++) {
    const before = answers;
    bus.gap();
    await soon(() => answers > before);
  }
  // By themselves five rounds take 2.5 seconds.
  expect(performance.now() - startedMs).toBeLessThan(2000);
});
