// What the routes of every task family share: the first checks, the body, the ids of a list, and answers and refusals in
// the form of the family's API.
import type { Deps } from "../../core/deps.ts";
import type { TaskRow } from "../../core/tasks/families.ts";
import { ownTask, ownTasks } from "../../core/tasks/store.ts";
import { ERROR_CODE_HEADER, newRequestId, REQUEST_ID_HEADER } from "../../http/request-id.ts";
import { asList } from "../../protocol/json.ts";
import { Failure, UPSTREAM_WAIT_SECONDS } from "../../shared/failures.ts";
import type { FailureKind } from "../../shared/failures.ts";
import { admitCaller, checkAddress, checkModel } from "../call/admission.ts";
import type { Caller } from "../call/admission.ts";
import { refusePlain } from "../call/exchange.ts";
import type { PlainRequest } from "../call/exchange.ts";
import type { Relay } from "../call/pipeline.ts";
import { isTold, logRefusal } from "../call/refusal-rows.ts";
import { callerAfter } from "../call/slow-body.ts";
import { tellRefused } from "../call/telling.ts";
import { beginRecord } from "../call/tracing.ts";
import type { RefusalServices } from "../call/refusal-rows.ts";
import { corsHeaders } from "../wire/cors.ts";
import { readBody } from "../wire/read-body.ts";
import type { TaskCall } from "./charge.ts";
import { submitTask } from "./submit.ts";
import type { Submission } from "./submit.ts";
import { refusal, TaskError } from "./task-wire.ts";
import type { Json, TaskWire } from "./task-wire.ts";

/** In whose words refusals stand that the family has no own for. */
const dialect = "openai-chat";
const BYTES_PER_MIB = 1024 * 1024;
/** Ids of a list that are looked up. */
const MAX_IDS = 1000;
const IDS_AT_ONCE = 50;
/** Of all tasks of one answer: an upstream's data about a task may be two million characters. */
const MAX_LISTED_CHARS = 32 * 1024 * 1024;
/** Refusals of a body that are passed on as they are: too slow, too large, too many. */
const PASSED_REFUSALS: ReadonlySet<number> = new Set([408, 413, 429]);

export interface TaskEdge<Row extends TaskRow> {
  /** Answers a call whose key is in order; whatever `work` throws becomes an answer. Never throws. */
  answer(
    request: Request,
    work: (call: TaskCall) => Promise<Response>,
    /** The requested model, where the address names it: the key must allow it before anything is read. */
    model?: string,
  ): Promise<Response>;
  /** Throws the family's refusal of a body that is none, and the first checks' where it came so slowly that they are made anew. */
  body(call: TaskCall): Promise<Json>;
  submit(call: TaskCall, submission: Submission<Row>): Promise<Response>;
  /** Throws the family's refusal where the caller has no such task. */
  ownTask(call: TaskCall, id: string): Promise<Row>;
  /** Those of the ids that are tasks of the caller, the newest first. */
  ownTasks(call: TaskCall, ids: readonly string[]): Promise<Row[]>;
}

/** The ids that a body lists. */
export function idsOf(body: Json): string[] {
  return asList(body["ids"]).filter((id) => typeof id === "string");
}

export function taskJson(request: Request, body: unknown, status = 200): Response {
  return Response.json(body, {
    status,
    headers: {
      ...corsHeaders(request),
      "cache-control": "no-store",
      [REQUEST_ID_HEADER]: newRequestId(),
      ...(status === 429 ? { "retry-after": String(UPSTREAM_WAIT_SECONDS) } : {}),
    },
  });
}

export function createTaskEdge<Row extends TaskRow>(
  deps: Deps,
  relay: Relay,
  wire: TaskWire<Row>,
): TaskEdge<Row> {
  const { bodies, visitors } = relay.parts;
  return {
    async answer(request, work, model) {
      const startedMs = performance.now();
      const record = beginRecord(deps, request);
      let call: TaskCall | undefined;
      let caller: Caller | undefined;
      try {
        caller = await admitCaller(deps, request, visitors);
        checkAddress(caller, request, visitors);
        // Its upstream may take longer than a silent connection is kept; a body is waited for first.
        if (request.method === "GET") visitors.hold(request);
        call = { request, caller, startedMs, record };
        if (model !== undefined) {
          call.model = model;
          checkModel(caller, model);
        }
        return await work(call);
      } catch (error) {
        const services = { deps, errorRows: relay.parts.errorRows };
        const refused = {
          services,
          request,
          caller,
          model: call?.model,
          startedMs,
          record,
          dialect,
        } as const;
        return errorAnswer(wire, refused, error);
      }
    },
    async body(call) {
      const { request, caller } = call;
      const beganMs = deps.clock.monotonicMs();
      let json: Json;
      try {
        const maxBytes = deps.options.get("relay.max_body_mb") * BYTES_PER_MIB;
        ({ json } = await readBody(request, maxBytes, bodies, caller.user.id));
        // The upstream may take longer than a silent connection is kept.
        visitors.hold(request);
      } catch (error) {
        const isPassed = error instanceof Failure && PASSED_REFUSALS.has(error.status);
        throw isPassed ? error : refusal(wire, "badBody", error instanceof Failure ? error.code : undefined);
      } finally {
        bodies.done(request);
      }
      call.caller = await callerAfter(deps, visitors, { request, caller, beganMs });
      return json;
    },
    submit: (call, submission) => submitTask({ deps, relay, wire, call, submission }),
    async ownTask({ caller }, id) {
      const row = await ownTask(deps, wire.family, caller.user.id, id);
      if (!row) throw refusal(wire, "unknownTask");
      return row;
    },
    async ownTasks({ caller }, asked) {
      const ids = [...new Set(asked)].slice(0, MAX_IDS);
      const rows: Row[] = [];
      let chars = 0;
      // In parts, so that what is too much is known before all of it is in memory.
      for (let at = 0; at < ids.length; at += IDS_AT_ONCE) {
        const some = await ownTasks(deps, wire.family, caller.user.id, ids.slice(at, at + IDS_AT_ONCE));
        for (const row of some) chars += wire.family.chars(row);
        if (chars > MAX_LISTED_CHARS) throw new Failure("client", "tasks_too_large", { status: 413 });
        rows.push(...some);
      }
      return rows.toSorted((one, other) => other.id - one.id);
    },
  };
}

interface RefusedTask extends PlainRequest {
  services: RefusalServices & { deps: Deps };
  caller: Caller | undefined;
  startedMs: number;
  record: TaskCall["record"];
}

/** Who failed: where attempts have left their rows, an upstream did, or what it was asked for. */
function kindOf(error: TaskError): FailureKind {
  if (!isTold(error)) return "client";
  return error.status >= 500 || error.status === 429 ? "upstream-down" : "upstream-request";
}

/** Failures in the form of the family's API; what the first checks refuse stays in OpenAI's. */
function errorAnswer<Row extends TaskRow>(
  wire: TaskWire<Row>,
  refused: RefusedTask,
  error: unknown,
): Response {
  const endpoint = { name: wire.provider };
  if (!(error instanceof TaskError)) return refusePlain(refused.services, { ...refused, endpoint }, error);
  const { request, caller, model, startedMs, record } = refused;
  const requestId = newRequestId();
  const { status, reason, message } = error;
  const failure = new Failure(kindOf(error), reason, { status, text: message.trim() });
  if (!isTold(error))
    logRefusal(refused.services, { requestId, caller, model, startedMs, dialect: refused.dialect }, failure);
  const told = { endpoint: wire.provider, group: caller?.group, model, requestId, startedMs, caller, record };
  tellRefused(refused.services.deps, told, failure);
  const answer = taskJson(request, wire.errorBody(error), error.status);
  answer.headers.set(REQUEST_ID_HEADER, requestId);
  answer.headers.set(ERROR_CODE_HEADER, error.reason);
  return answer;
}
