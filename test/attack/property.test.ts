// The property: whatever calls, faults, hang-ups, kills, edits and clock jumps come in whatever order over two nodes on
// PostgreSQL, or one on SQLite, afterwards these agree, to the unit:
//   1. A call that its client received to the end is in the log, once, under the id that the client was told.
//   2. No call is charged twice, and none that its upstream refused is charged.
//   3. What the upstream reported at the end is what is charged, when the client stayed to the end; when it left, the
//      charge is that or an estimate that says so.
//   4. An estimate lies between what the client received and what the upstream gave, each by at most EDGE_TOKENS.
//   5. A charge is its tokens at one of the prices that were in force: never a mixture.
//   6. A call whose node was not killed meanwhile and whose upstream gave something is charged.
//   7. Balances: credits less the log's charges; sums, roll-ups and holds as `weir audit` computes them.
//   8. Nobody's balance is below zero: the mock never bills input beyond its count or output beyond the limit it was sent,
//      so money.md's overspend (reported − counted) is 0 here.
//   9. An order that was paid, by whichever rail, however often and on whichever node it was told, is credited once; what was
//      refunded of it is taken back once, a won dispute leaves nothing, and a code is worth its value once.
// What a killed node had not answered is at nobody's charge: 0 or 1 rows. Refuses a fixed order: WEIR_SEED repeats one.
import { expect, test } from "bun:test";
import type { BookRow } from "../support/books.ts";
import { IS_LONG } from "./site.ts";
import { OUTPUT_TIMES, PRICES, randomOf, startWorld } from "./property-world.ts";
import type { Call, World } from "./property-world.ts";

const RUN_MS = IS_LONG ? 10 * 60_000 : 12_000;
const KEYS_EACH = IS_LONG ? 40_000 : 2000;
const EDGE_TOKENS = 8;
/** What is read on after a client left may take its upstream's whole time. */
const READ_ON_MS = 40_000;
const SEED = Number(Bun.env["WEIR_SEED"] ?? Math.floor(Math.random() * 1e9));

/** What is wrong about one call; undefined when all agree. */
function judge(world: World, call: Call, rows: readonly BookRow[]): string | undefined {
  const { outcome, plan } = call;
  const [given] = world.site.upstream.of(call.id);
  const charges = rows.filter(({ quota }) => quota > 0);
  const [row] = rows;
  if (rows.length > 1) return `${rows.length} rows`;
  if (plan.status !== undefined) return charges.length > 0 ? "an upstream's refusal was charged" : undefined;
  if (!given) return charges.length > 0 ? "charged without an upstream" : undefined;
  const isAnswered = outcome.status === 200 && outcome.isWhole;
  const isLeft = call.options.leaveAfterMs !== undefined || call.options.leaveAfterWords !== undefined;
  const node = world.nodes[call.node];
  const untilMs = isLeft ? call.endedMs + READ_ON_MS : call.endedMs;
  const isShaken = (node?.kills ?? []).some(
    ({ fromMs, toMs }) => toMs >= call.beganMs - 50 && fromMs <= untilMs,
  );
  if (!row) {
    // A reset may throw away what was on its way: the gateway saw nothing, and told its client so.
    if (plan.cut !== undefined && outcome.words === 0) return undefined;
    if (isAnswered) return "answered to the end, and in no book";
    return isShaken || given.given === 0 ? undefined : `free: the upstream gave ${given.given} words`;
  }
  if (isAnswered && row.requestId !== outcome.requestId) return "in the log under another id";
  const isEstimated = row.other["estimated"] === true;
  const units = row.input + row.output * OUTPUT_TIMES;
  if (!PRICES.some((price) => row.quota === units * price))
    return `${row.quota} units are no price of ${units}`;
  if (!isEstimated) {
    const { reported } = given;
    if (!reported) return "charged as reported, and nothing was";
    if (row.input !== reported.input || row.output !== reported.output)
      return `charged ${row.input}+${row.output}, reported ${reported.input}+${reported.output}`;
    return undefined;
  }
  const isCutByBalance = row.other["stopped"] === "balance";
  if (isAnswered && given.reported && !isCutByBalance) return "estimated although the upstream reported";
  if (row.output < outcome.words - EDGE_TOKENS) return `charged ${row.output} of ${outcome.words} received`;
  if (row.output > given.given + EDGE_TOKENS) return `charged ${row.output} of ${given.given} given`;
  return undefined;
}

/** The last charges of somebody who owes. */
function debtOf(userId: number, log: readonly BookRow[]): string {
  const rows = log.filter((row) => row.userId === userId).slice(-6);
  return rows
    .map(({ quota, input, output, model, other }) => {
      const flags = ["estimated", "stopped", "limited", "end_reason"].map(
        (name) => `${name} ${String(other[name])}`,
      );
      return `${model}: ${quota} = ${input} + ${output} (${flags.join(", ")})`;
    })
    .join("\n");
}

/** The warnings and errors at the end of a log. */
function lastWords(log: string): string {
  const lines = log.split("\n").filter((line) => /"level":"(warn|error)"/.test(line));
  return lines
    .slice(-12)
    .map((line) => line.slice(0, 400))
    .join("\n");
}

test.each(["sqlite", "postgres"] as const)(
  `on %s everybody's books agree after anything (seed ${SEED})`,
  async (kind) => {
    const world = await startWorld(kind, randomOf(SEED), KEYS_EACH);
    try {
      await world.run(RUN_MS);
      const codes = await world.stop();
      const log = await world.site.books.log(2);
      const byToken = Map.groupBy(log, ({ tokenId }) => tokenId);
      const wrong = world.calls.flatMap((call) => {
        const found = judge(world, call, byToken.get(call.tokenId) ?? []);
        if (found === undefined) return [];
        const { dialect, stream, leaveAfterMs, leaveAfterWords } = call.options;
        const left = leaveAfterMs === undefined && leaveAfterWords === undefined ? "" : " left";
        const { status, words, isBroken } = call.outcome;
        const seen = `${status}${isBroken ? " broken" : ""}, ${words} words`;
        return [`${call.id} ${dialect}${stream === true ? " stream" : ""}${left} (${seen}): ${found}`];
      });
      const ids = log.map(({ requestId }) => requestId);
      const credits = new Map(
        (
          await world.site.books.ask("select user_id, sum(amount) as amount from credits group by user_id")
        ).map((row) => [Number(row["user_id"]), Number(row["amount"])]),
      );
      const sums = [];
      for (const { id } of world.people) {
        const charged = log.filter(({ userId }) => userId === id).reduce((sum, { quota }) => sum + quota, 0);
        const { quota, used } = await world.site.books.balance(id);
        if (used !== charged || quota !== (credits.get(id) ?? 0) - charged)
          sums.push(`user ${id}: charged ${charged}, used ${used}, balance ${quota}`);
        if (quota < 0) console.log(debtOf(id, log));
        if (quota < 0)
          sums.push(`user ${id} owes ${-quota}${world.poor.has(id) ? ", one with a small balance" : ""}`);
      }
      const money = await world.money.judge();
      const audit = world.site.server.audit();
      const served = world.calls.filter(({ outcome }) => outcome.status === 200).length;
      console.log(
        `${kind}, seed ${SEED}: ${world.calls.length} calls, ${served} served, ${world.faults.length} faults, ${wrong.length} wrong, money ${JSON.stringify(world.money.counts())}`,
      );
      if (wrong.length + sums.length > 0 || codes.some((code) => code !== 0)) {
        console.log(world.faults.join("; "));
        for (const { server } of world.nodes) console.log(lastWords(server.log()));
      }
      expect({
        wrong: wrong.slice(0, 20),
        sums,
        money,
        audit: audit.code === 0 ? "" : audit.text.slice(0, 600),
        died: world.faults.filter((each) => each.startsWith("DIED")),
        codes,
        isEachOnce: new Set(ids).size === ids.length,
      }).toEqual({
        wrong: [],
        sums: [],
        money: [],
        audit: "",
        died: [],
        codes: codes.map(() => 0),
        isEachOnce: true,
      });
      expect(served).toBeGreaterThan(50);
      expect(world.money.counts().paid).toBeGreaterThan(2);
    } finally {
      await world.remove();
    }
  },
  RUN_MS + 180_000,
);
