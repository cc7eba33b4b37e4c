// What must hold after a fault of the wide test: callers, the upstream and the books tell the same story.
// Refuses to explain away: a call may be missing only where the process that served it was killed before it answered.
import type { Call } from "./wide-load.ts";
import { ownMs } from "./wide-load.ts";
import type { WideSite } from "./wide-site.ts";
import { INPUT_PRICE, OUTPUT_PRICE } from "./site.ts";

/** What waits in journals is in the tables within ten seconds. */
const ENTERED_LIMIT_MS = 10_000;
/** Work of the machine until everything is entered and seen, where nothing else wants it. */
const ENTERED_WORK_MS = 1000;
const LOOK_MS = 100;
/** Longer than the longest stream of the load. */
const READ_ON_MS = 3000;
/** A stream that was left in the middle is read on for so long, for its usage. */
const COUNTED_READ_ON_MS = 2000;
/** Work of the machine on the end of a stream that is read on, where nothing else wants it. */
const LEFT_WORK_MS = 50;
/** So long a hold waits for its row before the caller is refused. */
const HOLD_WAIT_MS = 10_000;
/** A call waits for a hold, and once more for one that is lengthened or given back. */
const MOST_WAITS = 2;
/** Work of the machine on the slowest call, where nothing else wants it. */
const CALL_WORK_MS = 1000;
/** Findings of one kind that are printed. */
const MOST_TOLD = 3;

/** A row of the log of what was charged. */
interface Row {
  requestId: string;
  tokenId: number;
  input: number;
  output: number;
  quota: number;
  /** How the call ended for the gateway. */
  reason: string;
}

/** When processes of a node were killed, so that what they were serving broke off. */
interface Kill {
  node: number;
  atMs: number;
}

/** When a node's processes stood still. */
interface Still {
  node: number;
  fromMs: number;
  toMs: number;
}

/** What was done to processes so far. */
export interface Harm {
  kills: Kill[];
  stills: Still[];
  /** How many times longer than alone work has taken on this machine, at most. */
  stretch: number;
}

/** Answered: the last byte arrived, so the charge must be durable. */
const isAnswered = ({ key, outcome }: Call): boolean =>
  key !== undefined && outcome.status === 200 && outcome.isWhole;

async function rowsOf(wide: WideSite): Promise<Row[]> {
  const text = `select request_id, token_id, prompt_tokens, completion_tokens, quota,
    other::json->>'end_reason' as reason from logs where type = 2`;
  const rows = await wide.withBooks((books) => books.ask(text));
  return rows.map((row) => ({
    requestId: String(row["request_id"]),
    tokenId: Number(row["token_id"]),
    input: Number(row["prompt_tokens"]),
    output: Number(row["completion_tokens"]),
    quota: Number(row["quota"]),
    reason: String(row["reason"]),
  }));
}

/** What the upstream billed, by the id of the call. */
function billedOf(wide: WideSite): Map<string, Usage> {
  const billed = new Map<string, Usage>();
  for (const { id, reported, reportedAtMs: atMs } of wide.site.upstream.calls)
    if (reported) billed.set(id, { ...reported, atMs });
  return billed;
}

function wasKilled({ kind, node, outcome, beganMs, endedMs }: Call, kills: readonly Kill[]): boolean {
  if (outcome.isWhole) return false;
  // What a client has left is read on.
  const untilMs = endedMs + (kind === "left" ? READ_ON_MS : 0);
  return kills.some((kill) => kill.node === node && beganMs <= kill.atMs && untilMs >= kill.atMs);
}

interface Usage {
  input: number;
  output: number;
  /** When the upstream said so. */
  atMs: number;
}

/**
 * Who has hardly anything left, and whoever has left while the process stood still, or longer before the end than a stream is
 * read on, pays for what came through: the upstream may have had more under way.
 */
function agree(row: Row, usage: Usage, call: Call, { stills, stretch }: Harm): boolean {
  if (row.input === usage.input && row.output === usage.output) return true;
  if (row.reason === "completed" || row.output > usage.output) return false;
  const { kind, key, node, beganMs, endedMs } = call;
  const readOnMs = COUNTED_READ_ON_MS - LEFT_WORK_MS * stretch;
  if (kind === "left" && row.reason === "client-gone" && usage.atMs - endedMs > readOnMs) return true;
  const wasStill = stills.some(
    (still) => still.node === node && beganMs <= still.toMs && endedMs >= still.fromMs,
  );
  return key?.isPoor === true || wasStill;
}

/** Ends of calls whose client had left, and whose upstream was not heard out. */
const UNHEARD: ReadonlySet<string> = new Set(["abandoned", "draining", "client-gone"]);

/** Compares callers and upstream with the rows; what is not right, in words. */
function compare(wide: WideSite, rows: readonly Row[], harm: Harm): string[] {
  const { kills } = harm;
  const findings: string[] = [];
  const byRequest = new Map<string, Row>();
  for (const row of rows) {
    if (byRequest.has(row.requestId)) findings.push(`charged twice: ${row.requestId}`);
    byRequest.set(row.requestId, row);
    if (row.quota !== row.input * INPUT_PRICE + row.output * OUTPUT_PRICE)
      findings.push(`charged ${row.quota} for ${row.input} and ${row.output} tokens: ${row.requestId}`);
  }
  const billed = billedOf(wide);
  const unexplained = new Set(byRequest.keys());
  const nameless: { call: Call; usage: Usage }[] = [];
  for (const call of wide.load.calls) {
    const row = byRequest.get(call.outcome.requestId);
    const usage = billed.get(call.id);
    if (row) unexplained.delete(row.requestId);
    if (!row && isAnswered(call))
      findings.push(`answered and in no book: ${call.id}, ${call.outcome.requestId}`);
    else if (row && usage && !agree(row, usage, call, harm))
      findings.push(
        `the upstream billed ${JSON.stringify(usage)}, the book has ${JSON.stringify(row)}: ${call.id} (${call.kind}, ` +
          `node ${call.node}, ${Math.round(call.beganMs)} to ${Math.round(call.endedMs)} ms)`,
      );
    else if (!row && usage) nameless.push({ call, usage });
  }
  // Whoever left before the first byte knows no request id: key and usage must do. Equal usage first, for all of them: what
  // merely agrees with one call may be another's own row.
  const matched = new Set<Call>();
  const isSame = ({ input, output }: Row, usage: Usage): boolean =>
    input === usage.input && output === usage.output;
  for (const fits of [isSame, agree])
    for (const { call, usage } of nameless) {
      if (matched.has(call)) continue;
      const own = [...unexplained]
        .flatMap((id) => byRequest.get(id) ?? [])
        .filter(({ tokenId }) => tokenId === call.key?.tokenId);
      const found = own.find((row) => fits(row, usage, call, harm))?.requestId;
      if (found === undefined) continue;
      unexplained.delete(found);
      matched.add(call);
    }
  for (const { call } of nameless)
    if (!matched.has(call) && !wasKilled(call, kills))
      findings.push(
        `billed by the upstream and in no book: ${call.id} (${call.kind}, node ${call.node}, status ${call.outcome.status})`,
      );
  // Whoever left before the first byte, and whose upstream was hung up on before it billed, pays for the prompt all the same.
  for (const call of wide.load.calls.filter(
    ({ kind, outcome }) => kind === "left" && outcome.requestId === "",
  )) {
    if (matched.has(call) || billed.has(call.id)) continue;
    const found = [...unexplained].find((id) => {
      const row = byRequest.get(id);
      return row?.tokenId === call.key?.tokenId && UNHEARD.has(row?.reason ?? "");
    });
    if (found !== undefined) unexplained.delete(found);
  }
  // A process that was killed between the charge and the answer: its caller knows no request id, its upstream a broken socket.
  for (const call of wide.load.calls.filter((each) => each.key && wasKilled(each, kills))) {
    if (byRequest.has(call.outcome.requestId) || matched.has(call)) continue;
    const found = [...unexplained].find((id) => byRequest.get(id)?.tokenId === call.key?.tokenId);
    if (found !== undefined) unexplained.delete(found);
  }
  return findings.concat(
    [...unexplained].map((id) => `in the book, and nobody called: ${JSON.stringify(byRequest.get(id))}`),
  );
}

/** Figures of a node that /metrics tells, summed over its workers. */
async function metricOf(url: string, name: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`, { keepalive: false })).text();
  const lines = text.split("\n").filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`));
  if (lines.length === 0) throw new Error(`no ${name} among the metrics`);
  return lines.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
}

async function waitingOf(wide: WideSite): Promise<number> {
  const counts = wide.nodes.map(({ server }) => metricOf(server.url, "weir_ledger_waiting"));
  return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
}

export interface Judgement {
  findings: string[];
  /** From the end of the load until everything was entered. */
  enteredMs: number;
}

/** Call with the load paused. Waits until everything is entered, then looks at all of it. */
export async function judgeBooks(wide: WideSite, harm: Harm): Promise<Judgement> {
  const limitMs = ENTERED_LIMIT_MS + ENTERED_WORK_MS * harm.stretch;
  const beganMs = performance.now();
  let findings: string[];
  let waiting: number;
  for (;;) {
    waiting = await waitingOf(wide);
    findings = compare(wide, await rowsOf(wide), harm);
    const isOver = performance.now() - beganMs > limitMs;
    if ((findings.length === 0 && waiting === 0) || isOver) break;
    await Bun.sleep(LOOK_MS);
  }
  const enteredMs = performance.now() - beganMs;
  if (waiting > 0) findings.push(`${waiting} settlements still wait in journals`);
  const below = await wide.withBooks((books) => books.ask("select id, quota from users where quota < 0"));
  for (const row of below) findings.push(`user ${String(row["id"])} is at ${String(row["quota"])}`);
  const audited = await wide.audit();
  if (audited.code !== 0) findings.push(`weir audit: ${audited.text}`);
  return { findings, enteredMs };
}

/** What callers may see while a fault lasts, beside what they always may. */
export interface Tolerance {
  /** Nodes whose callers may notice anything at all. */
  hits: readonly number[];
  /** Statuses that these may be refused with. */
  refusals: readonly number[];
  /** Connections to these may break. */
  breaks: boolean;
  /**
   * A node's sessions stand still within transactions: PostgreSQL ends each after eight seconds, and whoever waits for the
   * rows of those who have hardly anything left may find no turn in time, at any node.
   */
  holdsRows?: boolean;
}

/** The connection broke, or the stream ended before its end. */
const isCutShort = ({ outcome: { status, isBroken, isWhole } }: Call): boolean =>
  isBroken || (status === 200 && !isWhole);

/** What is said to those who have too little left, or whose call was planned to fail. */
function isUsual(call: Call): boolean {
  const { kind, key, outcome } = call;
  const { status } = outcome;
  if (isCutShort(call)) return kind === "left";
  if (status === 200) return true;
  if (kind === "failing") return [429, 500, 502, 503].includes(status);
  if (kind === "export") return status === 429;
  return key?.isPoor === true && [403, 429].includes(status);
}

/**
 * Rows of those who have hardly anything left are waited for, one after the other: of a thousand of their calls so many may find
 * no turn in time, the more the longer everything takes on this machine.
 */
const MOST_LATE = 0.005;

function isLate({ key, outcome, beganMs, endedMs }: Call): boolean {
  return key?.isPoor === true && outcome.status === 503 && endedMs - beganMs >= HOLD_WAIT_MS;
}

/** Calls that ended as none of these may, in words; the first few with what they were told. */
export function strange(calls: readonly Call[], tolerance: Tolerance, stretch: number): string[] {
  const isBorne = (call: Call): boolean => {
    if (isUsual(call)) return true;
    if (!tolerance.hits.includes(call.node)) return false;
    // What an export has begun to say it cannot take back.
    if (call.kind === "export" && call.outcome.status === 200)
      return tolerance.breaks || tolerance.refusals.length > 0;
    return isCutShort(call) ? tolerance.breaks : tolerance.refusals.includes(call.outcome.status);
  };
  const poor = calls.filter(({ key }) => key?.isPoor === true);
  const late = poor.filter(isLate);
  const isFew = tolerance.holdsRows === true || late.length <= Math.ceil(poor.length * MOST_LATE * stretch);
  const found = calls.filter((call) => !isBorne(call) && !(isFew && isLate(call)));
  const told = found.slice(0, MOST_TOLD).map(({ id, kind, node, key, outcome, beganMs, endedMs }) => {
    const who = key ? (key.isPoor ? "poor" : "rich") : "root";
    const how = `${outcome.failure ?? ""} status ${outcome.status}`;
    return `${id} (${kind}, ${who}, node ${node}): ${how} after ${Math.round(endedMs - beganMs)} ms, ${outcome.text.slice(0, 200)}`;
  });
  return found.length === 0 ? [] : [`${found.length} calls of ${calls.length} ended strangely`, ...told];
}

/** Calls that took longer than anybody may be kept waiting, answered or not, in words; not those of nodes that stood still. */
export function slow(calls: readonly Call[], except: readonly number[], stretch: number): string[] {
  const limitMs = MOST_WAITS * HOLD_WAIT_MS + CALL_WORK_MS * stretch;
  const tookMs = ({ beganMs, endedMs }: Call) => endedMs - beganMs;
  return calls
    .filter((call) => tookMs(call) > limitMs + ownMs(call.kind) && !except.includes(call.node))
    .map((call) => {
      const { id, kind, key, node, outcome } = call;
      const who = key?.isPoor ? "poor" : "rich";
      return `${id} (${kind}, ${who}, node ${node}, status ${outcome.status}) took ${Math.round(tookMs(call))} ms`;
    })
    .slice(0, MOST_TOLD);
}
