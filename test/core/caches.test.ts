// Every cache of a process, kind by kind: what is changed on one node is in force on the other within a second, while
// announcements are heard, while none is, after connections were lost, and when the writer is killed before it announces.
// Refuses to look into the caches: each is asked as a call asks it.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { TokenStatus, UserStatus } from "../../src/shared/enums.ts";
import type { Deps } from "../../src/core/deps.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp } from "../support/app.ts";
import { createTestDatabase } from "../support/postgres.ts";
import type { TestDatabase } from "../support/postgres.ts";
import { startStretch } from "../support/stretch.ts";
import { startSwitchTo } from "../support/tcp-switch.ts";
import type { TcpSwitch } from "../support/tcp-switch.ts";
import { nextLook } from "../support/turns.ts";

/** A second on a machine that has nothing else to do; the tests' own shares its two cores with other parts of the run. */
const LIMIT_MS = 2000;

let database: TestDatabase;
let here: TestApp;
let there: TestApp;
/** What the other node listens by, and what it asks by. */
let listening: TcpSwitch;
let asking: TcpSwitch;

beforeAll(async () => {
  database = await createTestDatabase("postgres");
  const url = database.databaseUrl ?? "";
  const cables = await Promise.all([startSwitchTo(url), startSwitchTo(url)]);
  [listening, asking] = cables;
  const ENCRYPTION_KEY = "one key for both nodes";
  here = await startTestApp({ env: { DATABASE_URL: url, ENCRYPTION_KEY } });
  const urls = { DATABASE_URL: cables[1].url, DATABASE_DIRECT_URL: cables[0].url };
  there = await startTestApp({ env: { ...urls, ENCRYPTION_KEY } });
}, 60_000);
afterAll(async () => {
  await Promise.all([here.close(), there.close()]);
  await listening.stop();
  await asking.stop();
  await database.drop();
}, 30_000);

/** What one test changes: made new for each, and known to both nodes before. */
interface Subject {
  userId: number;
  token: { id: number; key: string };
  channelId: number;
  costChannelId: number;
  sessionId: string;
  model: string;
  group: string;
}

let serial = 0;

async function subject(): Promise<Subject> {
  const no = ++serial;
  const user = await here.createUser({ quota: 1_000_000 });
  const token = await here.createToken(user.id);
  const channelId = await here.createChannel({ name: `before ${no}`, models: `m${no}` });
  const session = { userId: user.id, sessionVersion: 1, method: "password", ip: "", userAgent: "" } as const;
  const sessionId = await here.deps.sessions.open(session);
  const { accounts, sessions } = there.deps;
  // Kept in memory there from now on.
  await accounts.tokenByKey(token.key.slice(3));
  await sessions.find(sessionId);
  const costChannelId = await here.createChannel({ name: `costs ${no}` });
  return {
    userId: user.id,
    token,
    channelId,
    costChannelId,
    sessionId,
    model: `m${no}`,
    group: `g${no}`,
  };
}

interface Case {
  kind: string;
  /** On the first node, as the product does it. */
  change(deps: Deps, on: Subject): Promise<unknown>;
  /** The same written without an announcement, as by one who is killed behind the commit. Absent where both are one step. */
  write?(deps: Deps, on: Subject): Promise<unknown>;
  /** On the other node. */
  isInForce(deps: Deps, on: Subject): boolean | Promise<boolean>;
}

const withEntry = (text: string, name: string, value: number) =>
  JSON.stringify({ ...(JSON.parse(text || "{}") as Record<string, number>), [name]: value });

const writeUser = ({ db }: Deps, { userId }: Subject) =>
  db.orm.update(db.t.users).set({ status: UserStatus.disabled }).where(eq(db.t.users.id, userId));
const writeToken = ({ db }: Deps, { token }: Subject) =>
  db.orm
    .update(db.t.tokens)
    .set({ status: TokenStatus.disabled, rpmLimit: 7 })
    .where(eq(db.t.tokens.id, token.id));
const writeChannel = ({ db }: Deps, { channelId }: Subject) =>
  db.orm.update(db.t.channels).set({ name: "after" }).where(eq(db.t.channels.id, channelId));
const writeCost = ({ db }: Deps, { costChannelId }: Subject) =>
  db.orm
    .insert(db.t.channelCosts)
    .values({ channelId: costChannelId, model: "*", validFrom: 1, createdAt: 1 });

const CASES: readonly Case[] = [
  {
    kind: "users: status",
    async change(deps, on) {
      await writeUser(deps, on);
      await deps.accounts.userChanged(on.userId);
    },
    write: writeUser,
    isInForce: async (deps, { userId }) => (await deps.accounts.user(userId))?.status === UserStatus.disabled,
  },
  {
    kind: "users: balance, which nobody announces",
    change: ({ db }, { userId }) =>
      db.orm.update(db.t.users).set({ quota: 77 }).where(eq(db.t.users.id, userId)),
    isInForce: async (deps, { userId }) => (await deps.accounts.user(userId))?.quota === 77,
  },
  {
    kind: "tokens: status and limits",
    async change(deps, on) {
      await writeToken(deps, on);
      await deps.accounts.tokenChanged(on.token.id);
    },
    write: writeToken,
    async isInForce(deps, { token }) {
      const found = await deps.accounts.tokenByKey(token.key.slice(3));
      return found?.status === TokenStatus.disabled && found.keyLimits?.rpmLimit === 7;
    },
  },
  {
    kind: "channels: the row",
    async change(deps, on) {
      await writeChannel(deps, on);
      await deps.routing.refresh([on.channelId]);
    },
    write: writeChannel,
    isInForce: (deps, { channelId }) => deps.routing.channel(channelId)?.name === "after",
  },
  {
    kind: "channels: what the catalogue makes of one that went",
    async change(deps, { channelId }) {
      await deps.db.orm.delete(deps.db.t.channels).where(eq(deps.db.t.channels.id, channelId));
      await deps.routing.refresh([channelId]);
    },
    isInForce: (deps, { channelId, model }) =>
      deps.routing.channel(channelId) === undefined && !deps.routing.enabledModels().includes(model),
  },
  {
    kind: "costs",
    async change(deps, on) {
      await writeCost(deps, on);
      await deps.costs.refresh([on.costChannelId]);
    },
    write: writeCost,
    isInForce: (deps, { costChannelId }) => deps.costs.has(costChannelId),
  },
  {
    kind: "options: a text",
    change: ({ options }, { model }) => options.set("SystemName", model),
    isInForce: ({ options }, { model }) => options.get("SystemName") === model,
  },
  {
    kind: "options: prices of models",
    change: ({ options }, { model }) =>
      options.set("ModelRatio", withEntry(options.text("ModelRatio"), model, 3)),
    isInForce: ({ prices }, { model }) => prices.pricing(model) !== undefined,
  },
  {
    kind: "options: groups and what they cost",
    change: ({ options }, { group }) =>
      options.set("GroupRatio", withEntry(options.text("GroupRatio"), group, 5)),
    isInForce: ({ prices }, { group }) => prices.groupRatio(group, "default") === 5,
  },
  {
    kind: "sessions",
    change: ({ sessions }, { sessionId }) => sessions.end(sessionId, "revoked"),
    isInForce: async ({ sessions }, { sessionId }) => (await sessions.find(sessionId)) === undefined,
  },
  {
    kind: "inbox",
    async change({ inbox }, { model }) {
      inbox.raise({ kind: "price", subject: model });
      await Promise.resolve();
    },
    isInForce: ({ inbox }, { model }) => inbox.subjects("price").includes(model),
  },
];

/** Looks on the other node until it is so; how many milliseconds that took. */
async function inForce({ kind, isInForce }: Case, on: Subject): Promise<number> {
  const startedMs = performance.now();
  const stretch = startStretch();
  for (let looks = 0; ; looks++) {
    if (await isInForce(there.deps, on)) return performance.now() - startedMs;
    if (performance.now() - startedMs > LIMIT_MS * stretch())
      throw new Error(`${kind}: not in force after ${LIMIT_MS} ms`);
    await nextLook(looks);
  }
}

describe.each(CASES.map((each) => [each.kind, each] as const))("%s", (_, each) => {
  async function prepared(): Promise<Subject> {
    const on = await subject();
    // The subject has arrived.
    await inForce(
      {
        kind: "the subject",
        change: async () => undefined,
        isInForce: ({ routing }) => routing.channel(on.costChannelId) !== undefined,
      },
      on,
    );
    expect(await each.isInForce(there.deps, on)).toBe(false);
    return on;
  }

  test("heard", async () => {
    const on = await prepared();
    await each.change(here.deps, on);
    await inForce(each, on);
  });

  test("where nothing is heard, by what the tables say", async () => {
    const on = await prepared();
    await listening.silence();
    try {
      await each.change(here.deps, on);
      await inForce(each, on);
    } finally {
      await listening.restore();
    }
  });

  test("after every connection was lost", async () => {
    const on = await prepared();
    await listening.cut();
    await asking.cut();
    await each.change(here.deps, on);
    await listening.restore();
    await asking.restore();
    await inForce(each, on);
  });

  if (each.write)
    test("where its writer was killed before it announced it", async () => {
      const on = await prepared();
      await each.write?.(here.deps, on);
      await inForce(each, on);
    });
});
