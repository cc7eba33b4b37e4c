// The Midjourney routes: submissions, follow-ups, the caller's own tasks, pictures and the upstream's pushes.
// Refuses follow-ups of other people's tasks, and pictures from closed networks.
import { Elysia } from "elysia";
import type { Channel } from "../core/channels/rows.ts";
import { disableChannel } from "../core/channels/state.ts";
import type { Deps } from "../core/deps.ts";
import {
  addDrawing,
  anyDrawing,
  DONE,
  moveDrawing,
  ownDrawing,
  ownDrawings,
  shownImage,
} from "../core/tasks/drawing-tasks.ts";
import type { DrawingRow } from "../core/tasks/drawing-tasks.ts";
import { hourOf } from "../core/ledger/items.ts";
import { languageOf } from "../http/messages.ts";
import { newRequestId, REQUEST_ID_HEADER } from "../http/request-id.ts";
import { checkedBy } from "../http/session.ts";
import { asList, asNumber, asObject, asString, parseJson } from "../protocol/json.ts";
import { scrub } from "../protocol/classify.ts";
import { Role } from "../shared/enums.ts";
import { Failure } from "../shared/failures.ts";
import type { Caller } from "./call/admission.ts";
import { askUpstream } from "./call/attempt.ts";
import { corsHeaders, preflight } from "./wire/cors.ts";
import {
  ACCEPTED_CODES,
  DrawingError,
  FREE_ACTIONS,
  readDrawing,
  sentDrawing,
  upstreamPath,
} from "./tasks/midjourney-actions.ts";
import type { Drawing, Json } from "./tasks/midjourney-actions.ts";
import { pushed } from "./tasks/midjourney-push.ts";
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

const SUBMIT_TIMEOUT_MS = 60_000;
const SEED_TIMEOUT_MS = 30_000;
const IMAGE_TIMEOUT_MS = 60_000;
/** Pictures read at the same time: anybody may ask for them, and each is held in memory whole. */
const MAX_DOWNLOADS = 16;
const MAX_ERROR_BYTES = 1000;
const MAX_IMAGE_BYTES = 50 * 1024 * 1024;
/** Refusals of a body that are told as they are: too slow, too large, too many. */
const PASSED_REFUSALS: ReadonlySet<number> = new Set([408, 413, 429]);
const BYTES_PER_MIB = 1024 * 1024;
const MAX_IDS = 1000;
const MAX_PUSH_TRIES = 5;
const NO_INSTANCE = 3;
const SATURATED = "当前分组负载已饱和，请稍后再试，或升级账户以提升服务质量。";

const raw = { parse: "none", ...checkedBy("relay key") } as const;
const open = { parse: "none", ...checkedBy("nobody: picture of a task") } as const;

function json(request: Request, body: unknown, status = 200): Response {
  return Response.json(body, {
    status,
    headers: { ...corsHeaders(request), "cache-control": "no-store", [REQUEST_ID_HEADER]: newRequestId() },
  });
}

/** A task in the form of the proxies that clients speak to. */
function told(deps: Deps, row: DrawingRow, request: Request): Json {
  const shown = shownImage(deps, row, new URL(request.url).origin);
  const isMoving = row.status !== "SUCCESS" && shown !== "" && shown !== row.imageUrl;
  return {
    id: row.mjId,
    action: row.action,
    customId: "",
    botType: "",
    prompt: row.prompt,
    promptEn: row.promptEn,
    description: row.description,
    state: row.state,
    submitTime: row.submitTimeMs,
    startTime: row.startTimeMs,
    finishTime: row.finishTimeMs,
    // The picture changes while it is drawn: no cache may keep the first one.
    imageUrl: isMoving ? `${shown}?rand=${deps.clock.nowMs()}` : shown,
    status: row.status,
    progress: row.progress,
    failReason: row.failReason,
    buttons: parseJson(row.buttons) ?? null,
    maskBase64: "",
    properties: parseJson(row.properties) ?? null,
  };
}

/** The upstream's answer to a submission. */
interface Submitted {
  status: number;
  code: number;
  description: string;
  result: unknown;
  properties: Json | undefined;
  text: string;
}

/** Typed as a bare plugin: the console never calls these, and two prefixes would double the types of all routes. */
export function midjourneyRelay(deps: Deps, relay: Relay): Elysia {
  const { options, clock } = deps;
  let downloads = 0;

  /** Failures in the form of this API; what the first checks refuse stays in OpenAI's. */
  async function answered(request: Request, work: () => Promise<Response>): Promise<Response> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof DrawingError) {
        const result = error.code === 30 ? SATURATED : error.result;
        const description = `${error.description} ${result}`.trim();
        return json(
          request,
          { description, type: "upstream_error", code: error.code },
          error.code === 30 ? 429 : error.status,
        );
      }
      const failure = asFailure(error);
      const view = {
        dialect: "openai-chat",
        language: languageOf(request),
        requestId: newRequestId(),
      } as const;
      return renderFailure(failure, view, corsHeaders(request));
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
      throw new DrawingError("bind_request_body_failed");
    } finally {
      relay.parts.bodies.done(request);
    }
  }

  async function askProxy(
    channel: Channel,
    path: string,
    init: { method: "GET" | "POST"; body?: Json },
    timeoutMs: number,
  ) {
    return askUpstream({
      url: taskBase(channel) + path,
      method: init.method,
      headers: {
        "mj-api-secret": channel.keys[0] ?? "",
        ...(init.body === undefined ? {} : { "content-type": "application/json" }),
        accept: "application/json",
      },
      ...(init.body === undefined ? {} : { body: JSON.stringify(init.body) }),
      proxy: proxyOf(channel),
      reach: (address) => deps.reach.target(address, channel),
      timeoutMs,
    });
  }

  async function submitTo(channel: Channel, path: string, body: Json): Promise<Submitted> {
    let answer: Awaited<ReturnType<typeof askUpstream>>;
    try {
      answer = await askProxy(channel, path, { method: "POST", body }, SUBMIT_TIMEOUT_MS);
    } catch {
      throw new DrawingError("do_request_failed", 5);
    }
    if (answer.text.trim() === "") throw new DrawingError("empty_response_body", 5);
    const wire = asObject(parseJson(answer.text));
    if (!wire) throw new DrawingError("unmarshal_response_body_failed", 5);
    return {
      status: answer.status,
      code: asNumber(wire["code"]) ?? 0,
      description: asString(wire["description"]) ?? "",
      result: wire["result"],
      properties: asObject(wire["properties"]),
      text: answer.text,
    };
  }

  /** The origin of a follow-up: the caller's own task, finished where the operator wants that, its channel in service. */
  async function originOf(
    userId: number,
    drawing: Drawing,
  ): Promise<{ row: DrawingRow; channel: Channel } | undefined> {
    if (drawing.origin === "") return undefined;
    const row = await ownDrawing(deps, userId, drawing.origin);
    if (!row) throw new DrawingError("task_not_found");
    const mustBeDone = options.get("MjActionCheckSuccessEnabled") && drawing.action !== "MODAL";
    if (mustBeDone && row.status !== "SUCCESS") throw new DrawingError("task_status_not_success");
    const channel = channelOf(deps, row.channelId);
    if (!channel) throw new DrawingError("该任务所属渠道已被禁用");
    return { row, channel };
  }

  async function submit(call: TaskCall, drawing: Drawing, body: Json): Promise<Response> {
    const { request } = call;
    const startedMs = performance.now();
    const caller = await admitTask(deps, relay, call, drawing.model);
    const origin = await originOf(caller.user.id, drawing);
    const channel = origin?.channel ?? channelFor(deps, relay, caller, drawing.model, "midjourney");
    const price = FREE_ACTIONS.has(drawing.action)
      ? { ...taskPrice(deps, caller, drawing.model), quota: 0 }
      : taskPrice(deps, caller, drawing.model);
    const held = await holdTask(deps, caller, price).catch((error: unknown) => {
      if (error instanceof Failure && error.kind === "quota") throw new DrawingError("quota_not_enough");
      throw error;
    });
    try {
      const path = upstreamPath(new URL(request.url).pathname);
      const answer = await submitTo(channel, path, sentDrawing(options, body));
      const isAccepted = answer.status === 200 && ACCEPTED_CODES.has(answer.code);
      const isCharged = isAccepted && price.quota > 0;
      const mjId = typeof answer.result === "string" ? answer.result : "";
      const atMs = clock.nowMs();
      if (answer.code === NO_INSTANCE && channel.autoBan && options.get("AutomaticDisableChannelEnabled"))
        await disableChannel(deps, channel, "No available account instance");
      await store(drawing, caller.user.id, caller.token?.id ?? 0, caller.group, channel.id, answer, {
        mjId,
        quota: isCharged ? price.quota : 0,
        submitTimeMs: atMs,
        requestId: held.requestId,
        prompt: drawing.prompt || (origin?.row.prompt ?? ""),
      });
      if (isCharged)
        await settleTask(
          held,
          caller,
          channel,
          drawing.model,
          price,
          drawing.action,
          startedMs,
          atMs,
          `，ID ${mjId}`,
        );
      else await held.release();
      // A task that exists or waits is a submitted one to the client; dialogs keep their code.
      const isHidden = (answer.code === 21 || answer.code === 22) && !FREE_ACTIONS.has(drawing.action);
      const text = isHidden ? JSON.stringify({ ...asObject(parseJson(answer.text)), code: 1 }) : answer.text;
      return new Response(text, {
        status: answer.status,
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

  async function store(
    drawing: Drawing,
    userId: number,
    tokenId: number,
    group: string,
    channelId: number,
    answer: Submitted,
    more: Pick<DrawingRow, "mjId" | "quota" | "submitTimeMs" | "requestId" | "prompt">,
  ): Promise<void> {
    const nowMs = more.submitTimeMs;
    const isAccepted = answer.status === 200 && ACCEPTED_CODES.has(answer.code);
    const existing = answer.code === 21 ? answer.properties : undefined;
    const status = asString(existing?.["status"]) ?? "";
    const isDone = status === "SUCCESS" || (drawing.action === "UPLOAD" && answer.code === 1);
    await addDrawing(deps, {
      ...more,
      userId,
      tokenId,
      group,
      channelId,
      modelName: drawing.model,
      action: drawing.action,
      code: answer.code,
      description: answer.description,
      settledHour: hourOf(Math.floor(nowMs / 1000)),
      startTimeMs: drawing.action === "SWAP_FACE" || isDone ? nowMs : 0,
      finishTimeMs: isDone ? nowMs : 0,
      status: isDone ? "SUCCESS" : isAccepted ? status : "FAILURE",
      progress: isDone || !isAccepted ? DONE : "0%",
      imageUrl: asString(existing?.["imageUrl"]) ?? "",
      failReason: isAccepted ? "" : answer.description,
    });
  }

  const submitRoute = async (call: TaskCall, kind: string): Promise<Response> =>
    answered(call.request, async () => {
      // The key first: a stranger learns nothing of bodies.
      const caller = await admitTask(deps, relay, call);
      const body = await bodyOf(call.request, caller);
      return submit(call, readDrawing(kind, body), body);
    });

  const swapRoute = (call: TaskCall): Promise<Response> =>
    answered(call.request, async () => {
      const caller = await admitTask(deps, relay, call);
      const body = await bodyOf(call.request, caller);
      if (!body["sourceBase64"] || !body["targetBase64"])
        throw new DrawingError("sour_base64_and_target_base64_is_required");
      return submit(
        call,
        { action: "SWAP_FACE", model: "swap_face", origin: "", prompt: "InsightFace" },
        body,
      );
    });

  const fetchRoute = (call: TaskCall, id: string): Promise<Response> =>
    answered(call.request, async () => {
      const caller = await admitTask(deps, relay, call);
      const row = await ownDrawing(deps, caller.user.id, id);
      if (!row) throw new DrawingError("task_no_found");
      return json(call.request, told(deps, row, call.request));
    });

  const listRoute = (call: TaskCall): Promise<Response> =>
    answered(call.request, async () => {
      const caller = await admitTask(deps, relay, call);
      const ids = asList((await bodyOf(call.request, caller))["ids"]).filter((id) => typeof id === "string");
      const rows = await ownDrawings(deps, caller.user.id, ids.slice(0, MAX_IDS));
      return json(
        call.request,
        rows.map((row) => told(deps, row, call.request)),
      );
    });

  const seedRoute = (call: TaskCall, id: string): Promise<Response> =>
    answered(call.request, async () => {
      const caller = await admitTask(deps, relay, call);
      const row = await ownDrawing(deps, caller.user.id, id);
      if (!row) throw new DrawingError("task_no_found");
      const channel = channelOf(deps, row.channelId);
      if (!channel) throw new DrawingError("该任务所属渠道已被禁用");
      const path = `/mj/task/${encodeURIComponent(row.mjId)}/image-seed`;
      const answer = await askProxy(channel, path, { method: "GET" }, SEED_TIMEOUT_MS).catch(() => {
        throw new DrawingError("do_request_failed", 5);
      });
      return new Response(answer.text, {
        status: answer.status,
        headers: {
          ...corsHeaders(call.request),
          "content-type": "application/json",
          [REQUEST_ID_HEADER]: newRequestId(),
        },
      });
    });

  /** The upstream tells how far a task is; when it began or failed is not taken from whoever holds a key. */
  const notifyRoute = (call: TaskCall): Promise<Response> =>
    answered(call.request, async () => {
      const caller = await admitTask(deps, relay, call);
      const body = await bodyOf(call.request, caller);
      const id = asString(body["id"]) ?? "";
      // The operator's own upstream pushes with an administrator's key, whoever the task belongs to.
      const isOperator = caller.user.role >= Role.admin;
      const find = () =>
        isOperator && id !== "" ? anyDrawing(deps, id) : ownDrawing(deps, caller.user.id, id);
      for (let left = MAX_PUSH_TRIES; left > 0; left--) {
        const row = await find();
        if (!row) throw new DrawingError("midjourney_task_not_found");
        const changes = pushed(row, body, clock.nowMs(), !isOperator);
        // Judged by what the row said: where the poller moved it meanwhile, the push is judged anew.
        if (row.progress === DONE || (await moveDrawing(deps, row.id, changes, row))) break;
      }
      return new Response(null, {
        headers: { ...corsHeaders(call.request), [REQUEST_ID_HEADER]: newRequestId() },
      });
    });

  /** Without a key: the id is the secret, and it shows one picture. */
  async function imageRoute(request: Request, id: string): Promise<Response> {
    const row = await anyDrawing(deps, id);
    if (!row || row.imageUrl === "") return json(request, { error: "midjourney_task_not_found" }, 400);
    const channel = deps.routing.channel(row.channelId);
    const proxy = channel ? proxyOf(channel) : "";
    if (proxy !== "" && !URL.canParse(proxy)) return json(request, { error: "proxy_url_invalid" }, 400);
    if (downloads >= MAX_DOWNLOADS) {
      const busy = json(request, { error: "http_get_image_failed" }, 503);
      busy.headers.set("retry-after", "1");
      return busy;
    }
    downloads++;
    try {
      const answer = await deps.guard(row.imageUrl, {
        maxBytes: MAX_IMAGE_BYTES,
        timeoutMs: IMAGE_TIMEOUT_MS,
        // What a user pushed may not lead into networks that were opened for the upstream's own answers.
        allow: channel && !row.imagePushed ? deps.reach.networks(row.imageUrl, channel) : [],
        proxy,
      });
      if (answer.status !== 200) {
        const text = new TextDecoder().decode(answer.bytes.subarray(0, MAX_ERROR_BYTES));
        return json(request, { error: scrub(text) || "http_get_image_failed" }, answer.status);
      }
      const said = answer.headers.get("content-type") ?? "";
      return new Response(answer.bytes, {
        headers: {
          ...corsHeaders(request),
          // Only pictures leave from here: a page under this address would be a page of this site.
          "content-type": /^image\/[\w.+-]+$/.test(said) && !said.includes("svg") ? said : "image/jpeg",
          "x-content-type-options": "nosniff",
          "cache-control": row.status === "SUCCESS" ? "public, max-age=86400" : "no-store",
        },
      });
    } catch {
      return json(request, { error: "http_get_image_failed" }, 500);
    } finally {
      downloads--;
    }
  }

  function mounted(prefix: string): Elysia {
    const routes = new Elysia()
      .get(`${prefix}/image/:id`, ({ request, params }) => imageRoute(request, params["id"] ?? ""), open)
      .post(
        `${prefix}/submit/:kind`,
        ({ request, params }) => submitRoute({ request }, params["kind"] ?? ""),
        raw,
      )
      .post(`${prefix}/insight-face/swap`, ({ request }) => swapRoute({ request }), raw)
      .post(`${prefix}/notify`, ({ request }) => notifyRoute({ request }), raw)
      .get(
        `${prefix}/task/:id/fetch`,
        ({ request, params }) => fetchRoute({ request }, params["id"] ?? ""),
        raw,
      )
      .get(
        `${prefix}/task/:id/image-seed`,
        ({ request, params }) => seedRoute({ request }, params["id"] ?? ""),
        raw,
      )
      .post(`${prefix}/task/list-by-condition`, ({ request }) => listRoute({ request }), raw)
      .options(`${prefix}/*`, ({ request }) => preflight(request), checkedBy("relay key"));
    return routes as unknown as Elysia;
  }

  return new Elysia().use(mounted("/mj")).use(mounted("/:mode/mj"));
}
