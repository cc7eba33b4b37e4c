// Two nodes of two workers each on one PostgreSQL under mixed load, and everything that can go wrong beneath them, one after
// the other: nothing answered is lost, nobody spends what they have not got, the books agree. The ordinary run plays a minute
// of it, WEIR_LONG all of it for ten.
// Refuses to look at one fault alone: the site is the same from the first to the last, and what one leaves the next one meets.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { needsOf } from "../support/processes.ts";
import { IS_LONG } from "./site.ts";
import { hung, judgeBooks, strange } from "./wide-books.ts";
import type { Harm } from "./wide-books.ts";
import { FAULTS } from "./wide-faults.ts";
import type { Fault, Stage } from "./wide-faults.ts";
import type { Call } from "./wide-load.ts";
import { startWideSite } from "./wide-site.ts";
import type { WideSite } from "./wide-site.ts";

const SEED = Number(Bun.env["WEIR_SEED"] ?? 21);
/** What the poor have at the beginning of a fault: some thirty calls each. */
const POOR_BALANCE = 3000;
/** In a row at each node, so that every worker is met. */
const SERVED_IN_A_ROW = 6;
const RECOVERY_LIMIT_MS = 60_000;
/** Two seconds, on a machine that others use too. */
const REVOCATION_LIMIT_MS = 3000;
const FAULT_LIMIT_MS = 300_000;
/** Calls of which the load has seen the end before a fault begins. */
const WARM_CALLS = 60;

/** The same numbers for the same seed. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

interface Line {
  fault: string;
  calls: number;
  statuses: string;
  p99: number;
  recoveryMs: number;
  revokedMs: number;
  enteredMs: number;
  megabytes: number;
  sockets: number;
  files: number;
}

let wide: WideSite;
const harm: Harm = { kills: [], stills: [] };
const lines: Line[] = [];

beforeAll(async () => {
  wide = await startWideSite(randomFrom(SEED));
}, 90_000);
afterAll(async () => {
  console.table(lines);
  await wide.remove();
}, 60_000);

const served = (calls: readonly Call[]) => calls.filter(({ outcome }) => outcome.status === 200).length;

/** Of answers to those who have enough, in milliseconds. */
function p99Of(calls: readonly Call[]): number {
  const took = calls
    .filter(({ kind, key, outcome }) => kind === "json" && key?.isPoor === false && outcome.status === 200)
    .map(({ beganMs, endedMs }) => endedMs - beganMs)
    .toSorted((a, b) => a - b);
  return Math.round(took[Math.floor(took.length * 0.99)] ?? 0);
}

function statusesOf(calls: readonly Call[]): string {
  const counts = new Map<string, number>();
  for (const { kind, outcome } of calls) {
    const name = outcome.isBroken ? (kind === "left" ? "left" : "broken") : String(outcome.status);
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts]
    .toSorted()
    .map(([name, count]) => `${name}: ${count}`)
    .join(", ");
}

/** How long it takes until both nodes answer several calls in a row, after the fault's end. */
async function recovered(): Promise<number> {
  const beganMs = performance.now();
  for (const node of [0, 1]) {
    let row = 0;
    await wide.site.until(async () => {
      row = (await wide.load.probe(node)).outcome.status === 200 ? row + 1 : 0;
      return row >= SERVED_IN_A_ROW;
    }, RECOVERY_LIMIT_MS);
  }
  return performance.now() - beganMs;
}

/** How long a key is still served at the second node after it was switched off at the first. */
async function revoked(): Promise<number> {
  const { spare, site, load } = wide;
  const turn = (status: number) =>
    spare.person.send("PUT", "/api/token/?status_only=true", { id: spare.key.tokenId, status });
  const inARow = async (status: number) => {
    let row = 0;
    await site.until(async () => {
      const { outcome } = await load.probe(1, spare.key);
      row = outcome.status === status ? row + 1 : 0;
      return row >= SERVED_IN_A_ROW;
    }, RECOVERY_LIMIT_MS);
  };
  await turn(1);
  await inARow(200);
  const beganMs = performance.now();
  await turn(2);
  const from = load.calls.length;
  await inARow(401);
  const lateMs = load.calls
    .slice(from)
    .map(({ key, outcome, beganMs: atMs }) =>
      key === spare.key && outcome.status === 200 ? atMs - beganMs : 0,
    );
  return Math.max(0, ...lateMs);
}

async function play(fault: Fault): Promise<string[]> {
  const { load, nodes } = wide;
  await wide.fillPoor(POOR_BALANCE);
  const from = load.calls.length;
  load.start();
  await wide.site.until(() => served(load.calls.slice(from)) >= WARM_CALLS, RECOVERY_LIMIT_MS);
  const stage: Stage = {
    wide,
    isLong: IS_LONG,
    async lasts(longSeconds, sampleSeconds = longSeconds) {
      const overMs = performance.now() + (IS_LONG ? longSeconds : sampleSeconds) * 1000;
      await wide.site.until(() => performance.now() >= overMs, FAULT_LIMIT_MS);
    },
    async kill(node, pids) {
      harm.kills.push({ node, atMs: performance.now() });
      for (const pid of pids) process.kill(pid, "SIGKILL");
    },
    stands(node) {
      harm.stills.push({ node, fromMs: performance.now(), toMs: Number.POSITIVE_INFINITY });
    },
  };
  const stillBefore = harm.stills.length;
  await fault.act(stage);
  const stills = harm.stills.slice(stillBefore);
  for (const still of stills) still.toMs = performance.now();
  const recoveryMs = await recovered();
  const revokedMs = await revoked();
  await load.pause();
  const calls = load.calls.slice(from).filter(({ key }) => key !== wide.spare.key);
  const { findings, enteredMs } = await judgeBooks(wide, harm);
  const { megabytes, sockets, files } = needsOf(nodes.flatMap((node) => node.pids()));
  lines.push({
    fault: fault.name,
    calls: calls.length,
    statuses: statusesOf(calls),
    p99: p99Of(calls),
    recoveryMs: Math.round(recoveryMs),
    revokedMs: Math.round(revokedMs),
    enteredMs: Math.round(enteredMs),
    megabytes: Math.round(megabytes),
    sockets,
    files,
  });
  return [
    ...findings,
    ...strange(calls, fault),
    ...(revokedMs > REVOCATION_LIMIT_MS
      ? [`a key was served ${revokedMs} ms after it was switched off`]
      : []),
    ...hung(
      calls,
      stills.map(({ node }) => node),
    ),
  ];
}

test.each(
  FAULTS.filter(({ isSampled }) => IS_LONG || isSampled).map((fault) => [fault.name, fault] as const),
)(
  "%s",
  async (_, fault) => {
    expect(await play(fault)).toEqual([]);
  },
  FAULT_LIMIT_MS,
);

test("after all of it the nodes need what they needed at the beginning, and stop in order", async () => {
  const [first, last] = [lines[0], lines.at(-1)];
  expect(last?.files ?? 0).toBeLessThanOrEqual((first?.files ?? 0) * 1.2);
  expect(last?.megabytes ?? 0).toBeLessThanOrEqual((first?.megabytes ?? 0) * 1.3);
  const codes = await Promise.all(wide.nodes.map(({ server }) => server.stop()));
  expect(codes).toEqual([0, 0]);
  expect(await wide.audit()).toMatchObject({ code: 0 });
}, 60_000);
