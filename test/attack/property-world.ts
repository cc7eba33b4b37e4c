// A world for the property test: nodes that are killed, stopped, and set in time, people rich and poor, a key for each call.
// Refuses to judge: it makes calls and faults at random and writes down what everybody saw.
import { createHash, randomBytes } from "node:crypto";
import { Database } from "bun:sqlite";
import { join } from "node:path";
import postgres from "postgres";
import type { DialectName } from "../../src/protocol/canonical.ts";
import { hasCompiler, makeClock } from "../support/process-clock.ts";
import type { TestClock } from "../support/process-clock.ts";
import { lockFile } from "../support/lock-file.ts";
import type { CallPlan } from "../support/mock-upstream.ts";
import { startOwnPostgres } from "../support/own-postgres.ts";
import type { OwnPostgres } from "../support/own-postgres.ts";
import type { ServerProcess } from "../support/server.ts";
import { startMoney } from "./property-money.ts";
import type { Money } from "./property-money.ts";
import { callPlan, DIALECTS, MODELS, startSite } from "./site.ts";
import type { CallOptions, Outcome, Person, Site } from "./site.ts";

export type Random = () => number;

/** Numbers that come again with their seed. */
export function randomOf(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

interface Node {
  server: ServerProcess;
  clock: TestClock | undefined;
  /** When it was killed, or between which looks it died by itself. */
  kills: { fromMs: number; toMs: number }[];
  isServing: Promise<unknown>;
}

export interface Call {
  id: string;
  userId: number;
  tokenId: number;
  node: number;
  plan: CallPlan;
  options: CallOptions;
  outcome: Outcome;
  beganMs: number;
  endedMs: number;
}

export interface World {
  site: Site;
  money: Money;
  nodes: Node[];
  people: Person[];
  /** Ids of those whose balance is small. */
  poor: Set<number>;
  calls: Call[];
  faults: string[];
  /** Calls and faults until the time is over; then every node serves again and nothing is under way. */
  run(ms: number): Promise<void>;
  /** Ends every node in order; their exit codes. */
  stop(): Promise<(number | null)[]>;
  remove(): Promise<void>;
}

const WORKERS = 10;
const POOR_BALANCES = [3000, 20_000, 60_000];
const RICH_BALANCE = 1_000_000_000;
/** Prices that an edit may set: units an input token; output costs four times as much. */
export const PRICES = [1, 2] as const;
export const OUTPUT_TIMES = 4;

/** Keys as somebody with the database in hand would make them: thousands at once. */
async function makeKeys(site: Site, userId: number, count: number): Promise<{ id: number; key: string }[]> {
  const keys = Array.from({ length: count }, () => randomBytes(24).toString("hex"));
  const hash = (key: string) => createHash("sha256").update(key).digest("hex");
  const values = keys.map(
    (key) => `(${userId}, '${hash(key)}', '', 'aaaa', 'zzzz', 'one call', true, 1, -1)`,
  );
  const statement = `insert into tokens (user_id, key_hash, key_sealed, key_head, key_tail, name, unlimited_quota, status, expired_time) values ${values.join(", ")}`;
  if (site.databaseUrl) {
    const sql = postgres(site.databaseUrl, { max: 1, onnotice: () => {} });
    await sql.unsafe(statement);
    await sql.end();
  } else {
    const file = new Database(join(site.server.dataDir, "weir.sqlite"));
    file.run("pragma busy_timeout = 5000");
    file.run(statement);
    file.close();
  }
  const rows = await site.books.ask(`select id, key_hash from tokens where user_id = ${userId}`);
  const ids = new Map(rows.map((row) => [String(row["key_hash"]), Number(row["id"])]));
  return keys.map((key) => ({ id: ids.get(hash(key)) ?? 0, key: `sk-${key}` }));
}

function planOf(random: Random, id: string): { plan: CallPlan; options: CallOptions } {
  const whole = (limit: number) => Math.floor(random() * limit);
  const chance = (share: number) => random() < share;
  const dialect = DIALECTS[whole(DIALECTS.length)] as DialectName;
  const stream = chance(0.6);
  const words = chance(0.1) ? 1500 + whole(1500) : 1 + whole(300);
  const plan: CallPlan = { id, words, per: 1 + whole(20), input: 5 };
  if (chance(0.3)) plan.usage = chance(0.7) ? "none" : "each";
  if (chance(0.2)) plan.paceMs = 1 + whole(10);
  if (chance(0.3)) plan.firstMs = whole(400);
  if (stream && chance(0.08)) plan.cut = 1 + whole(words);
  if (chance(0.04)) plan.status = [400, 429, 500, 503][whole(4)] ?? 500;
  const options: CallOptions = { dialect, stream };
  if (dialect === "openai-chat" && chance(0.3)) options.fields = { max_tokens: 16 + whole(2000) };
  if (stream && chance(0.12)) options.leaveAfterWords = whole(words);
  else if (chance(0.08)) options.leaveAfterMs = whole(400);
  return { plan, options };
}

export async function startWorld(
  kind: "sqlite" | "postgres",
  random: Random,
  keysEach: number,
): Promise<World> {
  const own: OwnPostgres | undefined = kind === "postgres" ? await startOwnPostgres() : undefined;
  const clocks = hasCompiler ? [makeClock(), makeClock()] : [];
  const env = (clock: TestClock | undefined) => ({ DRAIN_SECONDS: "5", ...clock?.env });
  const site = await startSite({
    ...(own ? { databaseUrl: own.url } : { kind: "sqlite" as const }),
    env: env(clocks[0]),
  });
  const node = (server: ServerProcess, clock: TestClock | undefined): Node => ({
    server,
    clock,
    kills: [],
    isServing: Promise.resolve(),
  });
  const nodes = [node(site.server, clocks[0])];
  if (own) nodes.push(node(await site.join(env(clocks[1])), clocks[1]));

  const people: Person[] = [];
  const poor = new Set<number>();
  const keys: { person: Person; token: { id: number; key: string } }[] = [];
  for (const balance of [...POOR_BALANCES, RICH_BALANCE, RICH_BALANCE]) {
    const person = await site.person(balance);
    people.push(person);
    if (balance < RICH_BALANCE) poor.add(person.id);
    const made = await makeKeys(site, person.id, balance < RICH_BALANCE ? Math.ceil(keysEach / 4) : keysEach);
    keys.push(...made.map((token) => ({ person, token })));
  }
  // Mixed, so that everybody calls all the time.
  for (let index = keys.length - 1; index > 0; index--) {
    const other = Math.floor(random() * (index + 1));
    [keys[index], keys[other]] = [keys[other] as (typeof keys)[0], keys[index] as (typeof keys)[0]];
  }

  const money = await startMoney(site, {
    random,
    people,
    rich: people.filter(({ id }) => !poor.has(id)),
    urls: () => nodes.map(({ server }) => server.url),
  });
  const calls: Call[] = [];
  const faults: string[] = [];
  let isOver = false;

  /** Pays, beside those who call. */
  async function payer(): Promise<void> {
    while (!isOver) {
      await nodes[0]?.isServing;
      await money.act();
      await Bun.sleep(50 + random() * 150);
    }
  }

  async function worker(): Promise<void> {
    while (!isOver) {
      const next = keys.pop();
      if (!next) return;
      const number = Math.floor(random() * nodes.length);
      const at = nodes[number] as Node;
      await at.isServing;
      const id = `call-${calls.length}-${Math.floor(random() * 1e9)}`;
      const { plan, options } = planOf(random, id);
      const beganMs = performance.now();
      const call: Call = {
        id,
        userId: next.person.id,
        tokenId: next.token.id,
        node: number,
        plan,
        options,
        outcome: { status: 0, requestId: "", words: 0, text: "", isWhole: false, isBroken: true },
        beganMs,
        endedMs: Number.POSITIVE_INFINITY,
      };
      calls.push(call);
      call.outcome = await callPlan(at.server.url, next.token.key, plan, options);
      call.endedMs = performance.now();
      if (call.outcome.status !== 200) await Bun.sleep(20);
    }
  }

  const priceMap = (ratio: number) =>
    JSON.stringify(Object.fromEntries(Object.values(MODELS).map((model) => [model, ratio])));

  /** Ends a node one way or the other, and waits until it serves again. */
  async function again(at: Node, end: "kill" | "stop"): Promise<void> {
    const nowMs = performance.now();
    if (end === "kill") at.kills.push({ fromMs: nowMs, toMs: nowMs });
    const done = at.server[end]().then(() => {
      // A start beside PostgreSQL refuses a clock that is far off, as it should.
      at.clock?.set(0);
      return at.server.restart();
    });
    at.isServing = done;
    await done;
  }

  const edits: readonly (() => Promise<unknown>)[] = [
    () => site.set("ModelRatio", priceMap(PRICES[Math.floor(random() * PRICES.length)] ?? 1)),
    () => site.set("SystemName", `Weir ${Math.floor(random() * 1e6)}`),
    () =>
      site.root.send("PUT", "/api/user/", {
        id: people.at(-1)?.id ?? 0,
        quota: RICH_BALANCE + Math.floor(random() * 1000),
      }),
    () => site.channel({ name: "idle", models: `idle-${Math.floor(random() * 1e6)}` }),
  ];

  async function fault(): Promise<void> {
    const at = nodes[Math.floor(random() * nodes.length)] as Node;
    const choice = random();
    const told = (what: string) => faults.push(`${what} at ${calls.length}`);
    if (choice < 0.25) {
      told("kill");
      await again(at, "kill");
    } else if (choice < 0.35) {
      told("stop");
      await again(at, "stop");
    } else if (choice < 0.55) {
      const seconds = Math.floor((random() - 0.5) * 4 * 3600);
      told(`clock ${seconds}`);
      at.clock?.set(seconds);
      await Bun.sleep(300);
      if (random() < 0.7) at.clock?.set(0);
    } else if (choice < 0.75) {
      told("edit");
      const edit = edits[Math.floor(random() * edits.length)];
      await edit?.().catch((error: unknown) => told(`edit refused: ${String(error).slice(0, 80)}`));
    } else if (own) {
      told("PostgreSQL away");
      await own.stop(random() < 0.5 ? "fast" : "immediate");
      await Bun.sleep(300 + random() * 1200);
      await own.start();
    } else {
      told("database locked");
      const lock = lockFile(join(site.server.dataDir, "weir.sqlite"));
      await Bun.sleep(300 + random() * 1200);
      lock.release();
    }
  }

  /** A process that died by itself is a finding; it is started again so that the rest can be judged. */
  async function revive(lookedMs: number): Promise<void> {
    for (const at of nodes) {
      if (at.server.pid !== undefined) continue;
      faults.push(`DIED at ${calls.length}`);
      at.kills.push({ fromMs: lookedMs, toMs: performance.now() });
      at.isServing = at.server.restart();
      await at.isServing;
    }
  }

  return {
    site,
    money,
    nodes,
    people,
    poor,
    calls,
    faults,
    async run(ms) {
      const startedMs = performance.now();
      let lookedMs = startedMs;
      const workers = [...Array.from({ length: WORKERS }, worker), payer(), payer()];
      while (performance.now() - startedMs < ms) {
        await Bun.sleep(200 + random() * 600);
        await revive(lookedMs);
        lookedMs = performance.now();
        await fault();
      }
      isOver = true;
      await Promise.all(workers);
      await revive(lookedMs);
      for (const at of nodes) at.clock?.set(0);
      await money.settle();
      // What clients have left is read on; every plan of an upstream ends within seconds.
      await Bun.sleep(1500);
    },
    async stop() {
      const codes: (number | null)[] = [];
      for (const at of nodes) {
        await at.isServing;
        await at.server.stop();
        codes.push(await at.server.exited());
      }
      return codes;
    },
    async remove() {
      await site.remove();
      await money.stop();
      for (const clock of clocks) clock.remove();
      await own?.remove();
    },
  };
}
