// What a family of tasks does on the wire, as a row: how its channels are called, what their answers mean for a task, and
// in which words its API refuses. One row each in midjourney-wire.ts and suno-wire.ts.
import type { Channel } from "../../core/channels/rows.ts";
import type { Deps } from "../../core/deps.ts";
import type { TaskFamily, TaskRow } from "../../core/tasks/families.ts";
import { DIALECTS } from "../../protocol/dialects.ts";
import { asList, asObject, asString } from "../../protocol/json.ts";
import { applyHeaderRules } from "../call/rules.ts";
import { providerOf } from "../../providers/catalog.ts";
import type { FailureCode } from "../../shared/failure-codes.ts";
import { secretsOf, withoutKeys, withoutSecrets } from "../../shared/without-keys.ts";
import type { ProviderRow } from "../../providers/define.ts";
import { askUpstream, AttemptFailure, retryAfterOf, upstreamFailure } from "../call/attempt.ts";
import { markTold } from "../call/refusal-rows.ts";

export type Json = Record<string, unknown>;

/** What a family's client reads of a refusal, and the stable code behind it. */
export interface TaskRefusalWords {
  status: number;
  /** As the family's API has it. */
  code: string | number;
  message: string;
  /** Ours, of docs/error-codes.md. */
  reason: FailureCode;
  /** The message is the upstream's, not one of ours. */
  isUpstreams?: boolean;
}

/** A refusal in the form of the family's own API. */
export class TaskError extends Error {
  readonly status: number;
  readonly code: string | number;
  readonly reason: FailureCode;
  readonly isUpstreams: boolean;

  constructor({ status, code, message, reason, isUpstreams = false }: TaskRefusalWords) {
    super(message);
    this.status = status;
    this.code = code;
    this.reason = reason;
    this.isUpstreams = isUpstreams;
  }
}

/** An attempt that left no task, and what the client reads of it should no other attempt follow. */
export class RefusedAttempt extends AttemptFailure {
  readonly shown: TaskError;

  constructor({ failure, verdict, refusal }: AttemptFailure, shown: Omit<TaskRefusalWords, "reason">) {
    super(failure, verdict, refusal);
    this.shown = new TaskError({ ...shown, reason: failure.code });
    // The attempt leaves the row.
    markTold(this.shown);
  }
}

/** Refusals that every family has, each in its own words. */
type TaskRefusal =
  | "badBody"
  | "balanceTooLow"
  | "unknownTask"
  | "unknownOrigin"
  | "channelDisabled"
  | "unreachable"
  | "upstreamAccount";

/** An upstream's answer to a submission of which a row is kept. */
export interface TaskAnswer {
  /** What the client gets. */
  status: number;
  text: string;
  wire: Json;
  /** "" = the upstream gave none. */
  upstreamId: string;
  /** Absent: the upstream took the task, and it is charged. */
  failure?: AttemptFailure;
}

export type UpstreamAnswer = Awaited<ReturnType<typeof askUpstream>>;

export interface TaskWire<Row extends TaskRow> {
  family: TaskFamily<Row>;
  /** The word in the rows of the providers that take its tasks. */
  provider: NonNullable<ProviderRow["tasks"]>;
  /** Headers that carry the channel's key. */
  auth(key: string): Record<string, string>;
  refusals: Readonly<Record<TaskRefusal, readonly [status: number, code: string | number, message: string]>>;
  /** A refusal as the family's clients read it. */
  errorBody(error: TaskError): Json;
  /** What a submission's answer means. Throws RefusedAttempt where no row is kept of it. */
  readAnswer(answer: UpstreamAnswer, channel: Channel): TaskAnswer;
  /** Whether a submission that one channel refused is tried at the next. */
  triesOtherChannels: boolean;
  /** Why the channel that answered so can take no task at all; undefined = it can. */
  outOfServiceReason?(answer: TaskAnswer): string | undefined;
  /** Behind the log's sentence about the charge. */
  chargeSuffix(upstreamId: string): string;
  pollPath: string;
  /** The tasks in the answer to a poll, by id; undefined when it is none. */
  readPoll(wire: unknown): Map<string, Json> | undefined;
  /** The columns that say what the upstream says of the task; those it does not name stay as they are. */
  changes(row: Row, task: Json): Partial<Row>;
}

/** The failure that an answer of another status than 200 means, for key, channel and log. */
export function statusFailure(
  channel: Channel,
  { status, headers }: UpstreamAnswer,
  body: unknown,
): AttemptFailure {
  const dialect = DIALECTS["openai-chat"];
  return upstreamFailure({ dialect, channel, status, body, retryAfter: retryAfterOf(headers) });
}

/** The stable code of each refusal, where nothing closer is known. */
const REASONS: Readonly<Record<TaskRefusal, FailureCode>> = {
  badBody: "invalid_json",
  balanceTooLow: "user_quota_short",
  unknownTask: "task_not_found",
  unknownOrigin: "task_not_found",
  channelDisabled: "channel_disabled",
  unreachable: "do_request_failed",
  upstreamAccount: "upstream_auth",
};

export function refusalWords(
  wire: Pick<TaskWire<never>, "refusals">,
  which: TaskRefusal,
  reason = REASONS[which],
): TaskRefusalWords {
  const [status, code, message] = wire.refusals[which];
  return { status, code, message, reason };
}

export function refusal(
  wire: Pick<TaskWire<never>, "refusals">,
  which: TaskRefusal,
  reason?: FailureCode,
): TaskError {
  return new TaskError(refusalWords(wire, which, reason));
}

/** Trouble of the upstream with our own account there: no matter of the client's, who reads neither status nor words. */
export function isOfAccount({ failure }: AttemptFailure): boolean {
  return failure.kind === "upstream-auth" || failure.kind === "upstream-quota";
}

/** The tasks of a list, by the field that has their id. */
export function tasksById(list: unknown, idField: string): Map<string, Json> {
  return new Map(
    asList(list).flatMap((item) => {
      const task = asObject(item);
      return task ? [[asString(task[idField]) ?? "", task]] : [];
    }),
  );
}

export function proxyOf({ setting }: Channel): string {
  return typeof setting["proxy"] === "string" ? setting["proxy"] : "";
}

/** Of what the gateway asks on its own account. */
const NO_HEADERS = new Headers();

/**
 * A call at the upstream of a task's channel: at its own address, else at its type's. What it answers is without the key, also where
 * that is an error in a good status, or a task's own words.
 */
export async function askTaskUpstream(
  deps: Pick<Deps, "reach">,
  wire: Pick<TaskWire<never>, "auth">,
  { channel, key }: { channel: Channel; key: string },
  {
    path,
    body,
    timeoutMs,
    client = NO_HEADERS,
  }: { path: string; body?: Json; timeoutMs: number; client?: Headers },
): Promise<UpstreamAnswer> {
  const base = channel.baseUrl || providerOf(channel.type)?.baseUrl || "";
  const headers: Record<string, string> = {
    ...wire.auth(key),
    ...(body ? { "content-type": "application/json" } : {}),
    accept: "application/json",
  };
  // What a task is made of decides its price: of a channel's rules only those about headers concern it.
  applyHeaderRules({ channel, headers, client, key });
  const answer = await askUpstream({
    url: base + path,
    method: body ? "POST" : "GET",
    headers,
    ...(body ? { body: JSON.stringify(body) } : {}),
    proxy: proxyOf(channel),
    reach: (address) => deps.reach.target(address, channel),
    timeoutMs,
  });
  const { status, text } = answer;
  return {
    ...answer,
    text: status === 200 ? withoutSecrets(text, secretsOf(key)) : withoutKeys(text, [key]),
  };
}
