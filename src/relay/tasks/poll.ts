// One round of polling the upstreams of open tasks, family by family, and what their answers do to the rows.
// Refuses to end a task twice: a failure gives its charge back together with its new status.
import type { Channel } from "../../core/channels/rows.ts";
import type { Deps } from "../../core/deps.ts";
import { taskAgeMs } from "../../core/tasks/ages.ts";
import {
  channelGoneReason,
  DONE,
  lostReason,
  NO_ID_REASON,
  SILENT_PATIENCE_MS,
} from "../../core/tasks/families.ts";
import type { TaskRow } from "../../core/tasks/families.ts";
import { nextPoll } from "../../core/tasks/polling.ts";
import { dueTasks, failTask, moveTask, postponeTasks } from "../../core/tasks/store.ts";
import type { TaskChanges } from "../../core/tasks/store.ts";
import { parseJson } from "../../protocol/json.ts";
import { askInTurn, isRefusedKey, keysInOrder, NO_MODEL } from "../call/channel-keys.ts";
import { restKey } from "../call/findings.ts";
import { MIDJOURNEY } from "./midjourney-wire.ts";
import { SUNO } from "./suno-wire.ts";
import { askTaskUpstream, statusFailure } from "./task-wire.ts";
import type { Json, TaskWire } from "./task-wire.ts";

const TIMEOUT_MS = 15_000;
const MAX_ROWS = 500;
/** Answers of a channel that are neither an answer nor a refusal of the key, before any other: its upstream is broken. */
const BROKEN_ANSWERS = 2;
/** Channels that are polled at the same time. */
const AT_ONCE = 8;
/** Settlements are in the tables within seconds; an outage of the database ends the rounds, too. */
const UNCHARGED_MS = 2 * 3_600_000;

/** What a round found out about one row; "ended" needs no further poll. */
type Judgement = "news" | "quiet" | "ended";

/** One family's round. */
interface Round<Row extends TaskRow> {
  deps: Deps;
  wire: TaskWire<Row>;
}

const FAMILIES: readonly ((deps: Deps) => Promise<void>)[] = [
  (deps) => pollFamily({ deps, wire: MIDJOURNEY }),
  (deps) => pollFamily({ deps, wire: SUNO }),
];

/** Every family, one after the other; what throws is logged and tried again in the next round. */
export async function pollTasks(deps: Deps): Promise<void> {
  for (const poll of FAMILIES) {
    try {
      await poll(deps);
    } catch (error) {
      deps.logger.warn("tasks could not be polled", { error: String(error) });
    }
  }
}

/** Several channels at once: one that does not answer holds up its own tasks only. */
async function pollFamily<Row extends TaskRow>(round: Round<Row>): Promise<void> {
  const { deps, wire } = round;
  const rows = await dueTasks(deps, wire.family, MAX_ROWS);
  const queue = [...Map.groupBy(rows, ({ channelId }) => channelId)];
  const worker = async (): Promise<void> => {
    for (let next = queue.shift(); next; next = queue.shift()) {
      const [channelId, own] = next;
      try {
        await pollChannel(round, channelId, own);
      } catch (error) {
        deps.logger.warn("tasks of a channel could not be polled", { channelId, error: String(error) });
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, queue.length) }, worker));
}

async function pollChannel<Row extends TaskRow>(
  round: Round<Row>,
  channelId: number,
  rows: readonly Row[],
): Promise<void> {
  const { deps, wire } = round;
  const { family } = wire;
  const [nameless, waiting] = parted(rows, (row) => family.upstreamIdOf(row) === "");
  await failAll(round, nameless, NO_ID_REASON);
  if (waiting.length === 0) return;
  const channel = deps.routing.channel(channelId);
  if (!channel) return failAll(round, waiting, channelGoneReason(channelId));
  const { tasks, answered } = await askFor(
    round,
    channel,
    waiting.map((row) => family.upstreamIdOf(row)),
  );
  const quiet = await quietRows(round, waiting, (row) =>
    judge(round, row, {
      task: tasks?.get(family.upstreamIdOf(row)),
      isForgotten: knowsBest(channel, row, answered),
    }),
  );
  await postponeTasks(deps, family, quiet, tasks ? "quiet" : "unreachable");
}

/** Whether the account that took the task has answered; of a row that does not name it, whether all accounts have. */
function knowsBest({ keys, keyRows }: Channel, { keyId }: TaskRow, answered: ReadonlySet<string>): boolean {
  const own = keyRows.findIndex(({ id }) => id === keyId);
  if (own !== -1) return answered.has(keys[own] ?? "");
  return keyId === 0 && keys.every((key) => answered.has(key));
}

/** What a round's poll of a channel brought. */
interface Polled {
  /** By their ids; undefined = no answer, poll again next round. */
  tasks: Map<string, Json> | undefined;
  /** Keys whose accounts have answered. */
  answered: ReadonlySet<string>;
}

function parted<T>(items: readonly T[], isFirst: (item: T) => boolean): [T[], T[]] {
  return [items.filter(isFirst), items.filter((item) => !isFirst(item))];
}

/**
 * The tasks that the channel's upstream answers with. An account knows the tasks that were submitted with its key: what
 * one key does not find, or answers with an error, is looked for with the next; an upstream that is broken is left alone until the
 * next round.
 */
async function askFor<Row extends TaskRow>(
  { deps, wire }: Round<Row>,
  channel: Channel,
  ids: readonly string[],
): Promise<Polled> {
  let tasks: Map<string, Json> | undefined;
  const answered = new Set<string>();
  let broken = 0;
  const isMissing = (id: string): boolean => tasks?.has(id) !== true;
  const ask = async (key: string): Promise<void> => {
    const request = {
      path: wire.pollPath,
      body: { ids: ids.filter(isMissing) },
      timeoutMs: TIMEOUT_MS,
    };
    const answer = await askTaskUpstream(deps, wire, { channel, key }, request);
    if (answer.status !== 200) {
      const failed = statusFailure(channel, answer, answer.text);
      broken += isRefusedKey(failed) ? 0 : 1;
      if (isRefusedKey(failed) || (broken >= BROKEN_ANSWERS && answered.size === 0)) throw failed;
      return;
    }
    const found = wire.readPoll(parseJson(answer.text));
    if (!found) return;
    answered.add(key);
    tasks = new Map([...(tasks ?? []), ...found]);
  };
  try {
    const { refused } = await askInTurn(keysInOrder(deps, channel), ask, () => !ids.some(isMissing));
    if (answered.size > 0)
      for (const { keyIndex, failed } of refused) restKey(deps, { channel, keyIndex }, NO_MODEL, failed);
  } catch {
    // Nobody answered, or nobody else did.
  }
  return { tasks, answered };
}

/** The rows that wait on; one that cannot be judged holds up no other. */
async function quietRows<Row extends TaskRow>(
  { deps }: Round<Row>,
  rows: readonly Row[],
  judgeRow: (row: Row) => Promise<Judgement>,
): Promise<Row[]> {
  const quiet: Row[] = [];
  for (const row of rows) {
    try {
      if ((await judgeRow(row)) === "quiet") quiet.push(row);
    } catch (error) {
      deps.logger.warn("a task could not be judged", { task: row.id, error: String(error) });
      quiet.push(row);
    }
  }
  return quiet;
}

async function failAll<Row extends TaskRow>(
  round: Round<Row>,
  rows: readonly Row[],
  failReason: string,
): Promise<void> {
  const quiet = await quietRows(round, rows, (row) => fail(round, row, { failReason }));
  await postponeTasks(round.deps, round.wire.family, quiet, "quiet");
}

function ageMs<Row extends TaskRow>({ deps, wire: { family } }: Round<Row>, row: Row): number {
  return taskAgeMs(deps.clock, family.name, row.id, family.submittedMs(row));
}

/**
 * Ends a task as failed. The charge of a call whose gateway was killed between the two never comes: such a task ends
 * without a refund once there is no hope, and the log says so.
 */
async function fail<Row extends TaskRow>(
  round: Round<Row>,
  row: Row,
  changes: TaskChanges<Row>,
): Promise<Judgement> {
  const { deps, wire } = round;
  if (await failTask(deps, wire.family, row, changes)) return "ended";
  if (ageMs(round, row) < UNCHARGED_MS) return "quiet";
  deps.logger.warn("a failed task was never charged: nothing to give back", {
    task: row.id,
    request_id: row.requestId,
  });
  await failTask(deps, wire.family, row, changes, true);
  return "ended";
}

/** What the upstream says of a task, or does not, becomes its row. `isForgotten`: who would know it has answered. */
async function judge<Row extends TaskRow>(
  round: Round<Row>,
  row: Row,
  { task, isForgotten }: { task: Json | undefined; isForgotten: boolean },
): Promise<Judgement> {
  const { deps, wire } = round;
  const { family } = wire;
  const nowMs = deps.clock.nowMs();
  const changes = task ? wire.changes(row, task) : {};
  const after = { ...row, ...changes };
  if (task && family.hasFailed(after))
    return fail(round, row, { ...changes, ...family.ended(changes, nowMs) });
  const patienceMs = family.patienceMs + (task || isForgotten ? 0 : SILENT_PATIENCE_MS);
  if (after.progress !== DONE && ageMs(round, row) > patienceMs)
    return fail(round, row, { ...changes, ...family.ended({}, nowMs), failReason: lostReason(patienceMs) });
  if (!differs(row, after)) return "quiet";
  const poll = nextPoll(row.polls, "news", nowMs);
  await moveTask(deps, family, row.id, { ...changes, ...family.moved(nowMs), ...poll });
  return after.progress === DONE ? "ended" : "news";
}

function differs<Row extends object>(row: Row, after: Row): boolean {
  return (Object.keys(after) as (keyof Row)[]).some((key) => row[key] !== after[key]);
}
