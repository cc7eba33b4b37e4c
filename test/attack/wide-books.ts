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
/** Work of the machine from the upstream's last word to the synced line in the journal, where nothing else wants it. */
const RECORDED_WORK_MS = 300;
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
  /** The call that its upstream says that it is of; "" where its upstream was not heard. */
  callId: string;
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
    other::json->>'end_reason' as reason, coalesce(other::json->'admin_info'->>'upstream_id', '') as call_id from logs where type = 2`;
  const rows = await wide.withBooks((books) => books.ask(text));
  return rows.map((row) => ({
    requestId: String(row["request_id"]),
    callId: String(row["call_id"]),
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

interface Usage {
  input: number;
  output: number;
  /** When the upstream said so. */
  atMs: number;
}

/**
 * Whether the charge may be in no book. What was not answered to its end may be lost with the process that served it, as long as its
 * line in the journal was not synced (operations R2.6): until then it was killed, and not before the call began.
 */
function mayBeLost({ node, outcome, beganMs }: Call, usage: Usage, { kills, stretch }: Harm): boolean {
  if (outcome.isWhole) return false;
  const recordedMs = usage.atMs + RECORDED_WORK_MS * stretch;
  return kills.some((kill) => kill.node === node && beganMs <= kill.atMs && kill.atMs <= recordedMs);
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
const UNHEARD: ReadonlySet<string> = new Set(["abandoned", "draining"]);

/** Compares callers and upstream with the rows; what is not right, in words. */
function compare(wide: WideSite, rows: readonly Row[], harm: Harm): string[] {
  const findings: string[] = [];
  const byRequest = new Map<string, Row>();
  const byCall = new Map<string, Row>();
  for (const row of rows) {
    const { requestId, callId } = row;
    if (byRequest.has(requestId)) findings.push(`charged twice: ${requestId}`);
    if (byCall.has(callId)) findings.push(`charged twice: ${callId}`);
    byRequest.set(requestId, row);
    if (callId !== "") byCall.set(callId, row);
    if (row.quota !== row.input * INPUT_PRICE + row.output * OUTPUT_PRICE)
      findings.push(`charged ${row.quota} for ${row.input} and ${row.output} tokens: ${requestId}`);
  }
  const billed = billedOf(wide);
  const unexplained = new Set(rows);
  const rowless: Call[] = [];
  for (const call of wide.load.calls) {
    // Whoever left before the first byte knows no request id; the upstream knows whose answer it was.
    const row = byCall.get(call.id) ?? byRequest.get(call.outcome.requestId);
    const usage = billed.get(call.id);
    const who = `${call.id} (${call.kind}, node ${call.node}, status ${call.outcome.status}, ${Math.round(call.beganMs)} to ${Math.round(call.endedMs)} ms)`;
    if (row) unexplained.delete(row);
    else rowless.push(call);
    if (row && call.outcome.requestId !== "" && row.requestId !== call.outcome.requestId)
      findings.push(`answered as ${call.outcome.requestId}, charged as ${row.requestId}: ${who}`);
    if (row && call.key && row.tokenId !== call.key.tokenId)
      findings.push(`called with key ${call.key.tokenId}, charged to ${row.tokenId}: ${who}`);
    if (!row && isAnswered(call)) findings.push(`answered and in no book: ${who}, ${call.outcome.requestId}`);
    else if (!row && usage && !mayBeLost(call, usage, harm))
      findings.push(`billed by the upstream and in no book: ${JSON.stringify(usage)}, ${who}`);
    else if (row && usage && !agree(row, usage, call, harm))
      findings.push(
        `the upstream billed ${JSON.stringify(usage)}, the book has ${JSON.stringify(row)}: ${who}`,
      );
  }
  // Whoever left before the first byte, and whose upstream was hung up on before it said a word, pays for the prompt all the same.
  for (const { kind, key, outcome } of rowless) {
    if (kind !== "left" || outcome.requestId !== "") continue;
    const found = [...unexplained].find(
      ({ callId, tokenId, reason }) => callId === "" && tokenId === key?.tokenId && UNHEARD.has(reason),
    );
    if (found) unexplained.delete(found);
  }
  return findings.concat(
    [...unexplained].map((row) => `in the book, and nobody called: ${JSON.stringify(row)}`),
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
