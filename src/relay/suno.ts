// The Suno routes: music and lyrics are submitted, and the caller's own tasks are read.
// Refuses continuations of other people's songs.
import { Elysia } from "elysia";
import type { Channel } from "../core/channels/rows.ts";
import {
  addCreativeTask,
  creativeTaskJson,
  ownCreativeTask,
  ownCreativeTasks,
} from "../core/tasks/creative-tasks.ts";
import type { CreativeTaskRow } from "../core/tasks/creative-tasks.ts";
import type { Deps } from "../core/deps.ts";
import { hourOf } from "../core/ledger/items.ts";
import { languageOf } from "../http/messages.ts";
import { newRequestId, REQUEST_ID_HEADER } from "../http/request-id.ts";
import { checkedBy } from "../http/session.ts";
import { asList, asObject, asString, parseJson } from "../protocol/json.ts";
import { scrub } from "../protocol/classify.ts";
import { Failure } from "../shared/failures.ts";
import type { Caller } from "./call/admission.ts";
import { askUpstream } from "./call/attempt.ts";
import { corsHeaders, preflight } from "./wire/cors.ts";
import type { Relay } from "./call/pipeline.ts";
import { readBody } from "./wire/read-body.ts";
import { asFailure, renderFailure } from "./wire/render-failure.ts";
import {
  admitTask,
  channelFor,
  channelOf,
  holdTask,
  proxyOf,
  settleTask,
  taskBase,
  taskPrice,
} from "./tasks/submit.ts";
import type { TaskCall } from "./tasks/submit.ts";

type Json = Record<string, unknown>;

const SUBMIT_TIMEOUT_MS = 60_000;
/** Refusals of a body that are told as they are: too slow, too large, too many. */
const PASSED_REFUSALS: ReadonlySet<number> = new Set([408, 413, 429]);
const BYTES_PER_MIB = 1024 * 1024;
const MAX_IDS = 1000;
const DEFAULT_VERSION = "chirp-v3-0";
const SATURATED = "当前分组上游负载已饱和，请稍后再试";
/** Words of a transport: what they tell is where the upstream lives. */
const TRANSPORT = /\b(?:post|dial|https?)\b/i;
const UNREACHABLE = "请求上游地址失败";
const FIELDS = [
  "gpt_description_prompt",
  "prompt",
  "mv",
  "title",
  "tags",
  "continue_at",
  "task_id",
  "continue_clip_id",
  "make_instrumental",
] as const;

class SongError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    /** Another channel may be asked. */
    readonly isRetryable = false,
    /** The message is the upstream's, not one of this file. */
    readonly isUpstreams = false,
  ) {
    super(message);
  }
}

const raw = { parse: "none", ...checkedBy("relay key") } as const;

/** Which upstream statuses another channel may make good (tasks reference, section 2.3). */
function mayRetry(status: number): boolean {
  if (status === 429 || status === 307) return true;
  if (status >= 500) return status !== 504 && status !== 524;
  return status !== 400 && status !== 408 && (status < 200 || status > 299);
}

/** A task in the form that clients of this API know; its data is the upstream's own. */
function told(row: CreativeTaskRow): Json {
  const { task_id, action, status, fail_reason, submit_time, start_time, finish_time, progress, data } =
    creativeTaskJson(row, true);
  return { task_id, action, status, fail_reason, submit_time, start_time, finish_time, progress, data };
}

export function sunoRelay(deps: Deps, relay: Relay): Elysia {
  const { options, clock } = deps;

  const json = (request: Request, body: unknown, status = 200): Response =>
    Response.json(body, {
      status,
      headers: { ...corsHeaders(request), "cache-control": "no-store", [REQUEST_ID_HEADER]: newRequestId() },
    });

  async function answered(request: Request, work: () => Promise<Response>): Promise<Response> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof SongError) {
        const isTransport = error.isUpstreams && TRANSPORT.test(error.message);
        const message = error.status === 429 ? SATURATED : isTransport ? UNREACHABLE : scrub(error.message);
        return json(request, { code: error.code, message, data: null }, error.status);
      }
      const view = {
        dialect: "openai-chat",
        language: languageOf(request),
        requestId: newRequestId(),
      } as const;
      return renderFailure(asFailure(error), view, corsHeaders(request));
    }
  }

  async function bodyOf(request: Request, { user }: Caller): Promise<Json> {
    try {
      const maxBytes = options.get("relay.max_body_mb") * BYTES_PER_MIB;
      const body = await readBody(request, maxBytes, relay.parts.bodies, user.id);
      // The upstream may take longer than a silent connection is kept.
      relay.parts.visitors.hold(request);
      return body.json;
    } catch (error) {
      if (error instanceof Failure && PASSED_REFUSALS.has(error.status)) throw error;
      throw new SongError(400, "invalid_request", "invalid_request");
    } finally {
      relay.parts.bodies.done(request);
    }
  }

  /** The fields that are sent on: known ones only, checked by action. */
  function songOf(action: string, body: Json): Json {
    const sent: Json = {};
    for (const field of FIELDS) if (body[field] !== undefined) sent[field] = body[field];
    if (action === "MUSIC") sent["mv"] ??= DEFAULT_VERSION;
    else if (action !== "LYRICS") throw new SongError(400, "invalid_request", "invalid_action");
    else if (!asString(sent["prompt"])) throw new SongError(400, "invalid_request", "prompt_empty");
    if (sent["continue_clip_id"] && !asString(sent["task_id"]))
      throw new SongError(400, "invalid_request", "task id is empty");
    return sent;
  }

  /** A continuation goes to the channel that made its origin. */
  async function originChannel(caller: Caller, song: Json): Promise<Channel | undefined> {
    if (!song["continue_clip_id"]) return undefined;
    const origin = await ownCreativeTask(deps, caller.user.id, asString(song["task_id"]) ?? "");
    if (!origin) throw new SongError(400, "task_not_exist", "task_origin_not_exist");
    const channel = channelOf(deps, origin.channelId);
    if (!channel) throw new SongError(400, "task_channel_disable", "该任务所属渠道已被禁用");
    return channel;
  }

  /** Id of the new task, and the upstream's own words. Throws SongError. */
  async function submitTo(
    channel: Channel,
    action: string,
    song: Json,
  ): Promise<{ taskId: string; text: string }> {
    let answer: Awaited<ReturnType<typeof askUpstream>>;
    try {
      answer = await askUpstream({
        url: `${taskBase(channel)}/suno/submit/${action}`,
        method: "POST",
        headers: {
          authorization: `Bearer ${channel.keys[0] ?? ""}`,
          "content-type": "application/json",
          accept: "application/json",
        },
        body: JSON.stringify(song),
        proxy: proxyOf(channel),
        reach: (address) => deps.reach.target(address, channel),
        timeoutMs: SUBMIT_TIMEOUT_MS,
      });
    } catch {
      throw new SongError(500, "do_request_failed", UNREACHABLE, true);
    }
    if (answer.status !== 200)
      throw new SongError(
        answer.status,
        "fail_to_fetch_task",
        scrub(answer.text),
        mayRetry(answer.status),
        true,
      );
    const wire = asObject(parseJson(answer.text));
    if (!wire)
      throw new SongError(500, "unmarshal_response_body_failed", "unmarshal_response_body_failed", true);
    const taskId = asString(wire["data"]);
    if (wire["code"] !== "success" || taskId === undefined)
      throw new SongError(
        500,
        asString(wire["code"]) ?? "upstream_error",
        asString(wire["message"]) ?? "",
        true,
        true,
      );
    return { taskId, text: answer.text };
  }

  async function submit(call: TaskCall, action: string): Promise<Response> {
    const { request } = call;
    const startedMs = performance.now();
    const model = `suno_${action.toLowerCase()}`;
    const caller = await admitTask(deps, relay, call, model);
    const song = songOf(action, await bodyOf(request, caller));
    const origin = await originChannel(caller, song);
    const price = taskPrice(deps, caller, model);
    const held = await holdTask(deps, caller, price).catch((error: unknown) => {
      if (error instanceof Failure && error.kind === "quota")
        throw new SongError(403, "quota_not_enough", "user quota is not enough");
      throw error;
    });
    try {
      const { channel, taskId, text } = await submitted(caller, model, action, song, origin);
      const atMs = clock.nowMs();
      const now = Math.floor(atMs / 1000);
      await addCreativeTask(deps, {
        platform: "suno",
        taskId,
        userId: caller.user.id,
        tokenId: caller.token?.id ?? 0,
        channelId: channel.id,
        group: caller.group,
        modelName: model,
        requestId: held.requestId,
        quota: price.quota,
        settledHour: hourOf(now),
        action,
        status: "NOT_START",
        createdAt: now,
        updatedAt: now,
        submitTime: now,
        properties: JSON.stringify({
          input: asString(song["gpt_description_prompt"]) ?? asString(song["prompt"]) ?? "",
        }),
      });
      if (price.quota > 0) await settleTask(held, caller, channel, model, price, action, startedMs, atMs);
      else await held.release();
      return new Response(text, {
        headers: {
          ...corsHeaders(request),
          "content-type": "application/json",
          "cache-control": "no-store",
          [REQUEST_ID_HEADER]: held.requestId,
        },
      });
    } catch (error) {
      await held.release();
      throw error;
    }
  }

  async function submitted(
    caller: Caller,
    model: string,
    action: string,
    song: Json,
    origin: Channel | undefined,
  ): Promise<{ channel: Channel; taskId: string; text: string }> {
    const failed = new Set<number>();
    const tries = origin || caller.pinned !== undefined ? 1 : options.get("RetryTimes") + 1;
    let last: unknown;
    for (let i = 0; i < tries; i++) {
      let channel: Channel;
      try {
        channel = origin ?? channelFor(deps, relay, caller, model, "suno", failed);
      } catch (error) {
        throw last ?? error;
      }
      try {
        return { channel, ...(await submitTo(channel, action, song)) };
      } catch (error) {
        last = error;
        failed.add(channel.id);
        if (!(error instanceof SongError) || !error.isRetryable) throw error;
      }
    }
    throw last;
  }

  const listRoute = (call: TaskCall): Promise<Response> =>
    answered(call.request, async () => {
      const caller = await admitTask(deps, relay, call);
      const body = await bodyOf(call.request, caller);
      const ids = asList(body["ids"]).filter((id) => typeof id === "string");
      const action = asString(body["action"])?.toUpperCase();
      const rows = await ownCreativeTasks(deps, caller.user.id, ids.slice(0, MAX_IDS));
      const found = rows
        .filter((row) => action === undefined || action === "" || row.action === action)
        .map(told);
      const data = ids.length > 0 && found.length === 0 ? null : found;
      return json(call.request, { code: "success", message: "", data });
    });

  const fetchRoute = (call: TaskCall, id: string): Promise<Response> =>
    answered(call.request, async () => {
      const caller = await admitTask(deps, relay, call);
      const row = await ownCreativeTask(deps, caller.user.id, id);
      if (!row) throw new SongError(400, "task_not_exist", "task_not_exist");
      return json(call.request, { code: "success", message: "", data: told(row) });
    });

  const routes = new Elysia({ prefix: "/suno" })
    .post(
      "/submit/:action",
      ({ request, params }) => answered(request, () => submit({ request }, params.action.toUpperCase())),
      raw,
    )
    .post("/fetch", ({ request }) => listRoute({ request }), raw)
    .get("/fetch/:id", ({ request, params }) => fetchRoute({ request }, params.id), raw)
    .options("/*", ({ request }) => preflight(request), checkedBy("relay key"));
  return routes as unknown as Elysia;
}
