// Two nodes of two workers each on one PostgreSQL under mixed load, and everything that can go wrong beneath them, one after
// the other: nothing answered is lost, nobody spends what they have not got, the books agree. The ordinary run plays a minute
// of it, WEIR_LONG all of it for ten.
// Refuses to look at one fault alone: the site is the same from the first to the last, and what one leaves the next one meets.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { needsOf } from "../support/processes.ts";
import { MOST_STRETCH, startSlowness } from "../support/stretch.ts";
import { IS_LONG } from "./site.ts";
import { judgeBooks, slow, strange } from "./wide-books.ts";
import type { Harm } from "./wide-books.ts";
import { FAULTS } from "./wide-faults.ts";
import type { Fault, Stage } from "./wide-faults.ts";
import type { Call } from "./wide-load.ts";
import { WORSE } from "./wide-worse.ts";
import { startWideSite } from "./wide-site.ts";
import type { WideSite } from "./wide-site.ts";

const SEED = Number(Bun.env["WEIR_SEED"] ?? 21);
/** What the poor have at the beginning of a fault: some thirty calls each. */
const POOR_BALANCE = 3000;
/** In a row at each node, so that every worker is met. */
const SERVED_IN_A_ROW = 6;
/** Both nodes serve again two seconds after a fault, and what the dozen calls of the look at it need. */
const RECOVERY_LIMIT_MS = 2000;
const RECOVERY_WORK_MS = 1000;
/** A key that is switched off is served nowhere after a second, and what the call that sees it needs. */
const REVOCATION_LIMIT_MS = 1000;
const REVOCATION_WORK_MS = 300;
/** Ends a hang; what is promised is judged by what was measured. */
const GIVE_UP_MS = 120_000;
const FAULT_LIMIT_MS = 600_000;
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
  stretch: number;
  times: "judged" | "not measured";
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
const harm: Harm = { kills: [], stills: [], stretch: 1 };
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
    }, GIVE_UP_MS);
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
    }, GIVE_UP_MS);
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
  await wide.site.until(() => served(load.calls.slice(from)) >= WARM_CALLS, GIVE_UP_MS);
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
  const measureSlowness = startSlowness();
  let recoveryMs: number;
  let revokedMs: number;
  try {
    await fault.act(stage);
    for (const still of harm.stills.slice(stillBefore)) still.toMs = performance.now();
    recoveryMs = await recovered();
    revokedMs = await revoked();
  } finally {
    // What this fault has broken is its own: the next one begins in silence.
    await load.pause();
  }
  const stills = harm.stills.slice(stillBefore);
  const calls = load.calls.slice(from).filter(({ key }) => key !== wide.spare.key);
  const stretch = measureSlowness();
  // A machine so slow tells nothing of the nodes' times: they are printed, and only what came out is judged.
  const isMeasured = stretch <= MOST_STRETCH;
  harm.stretch = Math.max(harm.stretch, stretch);
  const { findings, enteredMs } = await judgeBooks(wide, harm);
  await fault.mend?.(wide);
  const { megabytes, sockets, files } = needsOf(nodes.flatMap((node) => node.pids()));
  lines.push({
    fault: fault.name,
    stretch: Math.round(stretch * 10) / 10,
    times: isMeasured ? "judged" : "not measured",
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
  const atMost = (what: string, tookMs: number, limitMs: number) =>
    tookMs > limitMs ? [`${what} ${Math.round(tookMs)} ms, and ${Math.round(limitMs)} are allowed`] : [];
  const recoveryLimitMs = RECOVERY_LIMIT_MS + RECOVERY_WORK_MS * stretch;
  const revocationLimitMs = REVOCATION_LIMIT_MS + REVOCATION_WORK_MS * stretch;
  const outcomes = [...findings, ...strange(calls, fault, stretch)];
  if (!isMeasured) return outcomes;
  return [
    ...outcomes,
    ...atMost("the nodes served again after", recoveryMs, recoveryLimitMs),
    ...atMost("a key that was switched off was served for", revokedMs, revocationLimitMs),
    ...slow(
      calls,
      stills.map(({ node }) => node),
      stretch,
    ),
  ];
}

test.each(
  [...FAULTS, ...WORSE]
    .filter(({ isSampled }) => IS_LONG || isSampled)
    .map((fault) => [fault.name, fault] as const),
)(
  "%s",
  async (_, fault) => {
    expect(await play(fault)).toEqual([]);
  },
  FAULT_LIMIT_MS,
);

test("after all of it the nodes need what they needed at the beginning, and stop in order", async () => {
  expect(lines.length).toBeGreaterThan(1);
  const [first, last] = [lines[0], lines.at(-1)];
  expect(last?.files ?? 0).toBeLessThanOrEqual((first?.files ?? 0) * 1.2);
  expect(last?.megabytes ?? 0).toBeLessThanOrEqual((first?.megabytes ?? 0) * 1.5);
  const codes = await Promise.all(wide.nodes.map(({ server }) => server.stop()));
  expect(codes).toEqual([0, 0]);
  expect(await wide.audit()).toMatchObject({ code: 0 });
}, 60_000);
