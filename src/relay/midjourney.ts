// The Midjourney routes: submissions, follow-ups, the caller's own tasks, pictures and the upstream's pushes.
// Refuses follow-ups of other people's tasks.
import { Elysia } from "elysia";
import type { Deps } from "../core/deps.ts";
import { DONE, DRAWINGS, SUCCESS } from "../core/tasks/families.ts";
import type { DrawingRow } from "../core/tasks/families.ts";
import { shownImage } from "../core/tasks/lists.ts";
import { anyTask, moveTask, ownTask } from "../core/tasks/store.ts";
import { ERROR_CODE_HEADER, newRequestId, REQUEST_ID_HEADER } from "../http/request-id.ts";
import { checkedBy } from "../http/session.ts";
import { scrub } from "../protocol/classify.ts";
import { asString, parseJson } from "../protocol/json.ts";
import { Role } from "../shared/enums.ts";
import { askWithKeys } from "./call/channel-keys.ts";
import type { Relay } from "./call/pipeline.ts";
import type { TaskCall } from "./tasks/charge.ts";
import { createTaskEdge, idsOf, taskJson } from "./tasks/edge.ts";
import type { TaskEdge } from "./tasks/edge.ts";
import {
  drawingError,
  FREE_ACTIONS,
  readDrawing,
  readFaceSwap,
  sentDrawing,
  upstreamPath,
} from "./tasks/midjourney-actions.ts";
import type { Drawing } from "./tasks/midjourney-actions.ts";
import { createPictures } from "./tasks/midjourney-picture.ts";
import { pushed } from "./tasks/midjourney-push.ts";
import { drawingColumns, drawingReply, MIDJOURNEY } from "./tasks/midjourney-wire.ts";
import { channelOf } from "./tasks/submit.ts";
import type { Submission } from "./tasks/submit.ts";
import { askTaskUpstream, isOfAccount, refusal, statusFailure } from "./tasks/task-wire.ts";
import type { Json } from "./tasks/task-wire.ts";
import { corsHeaders, preflight } from "./wire/cors.ts";

const SEED_TIMEOUT_MS = 30_000;
const MAX_PUSH_TRIES = 5;

const raw = { parse: "none", ...checkedBy("relay key") } as const;
const open = { parse: "none", ...checkedBy("nobody: picture of a task") } as const;

/** Typed as a bare plugin: the console never calls these, and two prefixes would double the types of all routes. */
export function midjourneyRelay(deps: Deps, relay: Relay): Elysia {
  const edge = createTaskEdge(deps, relay, MIDJOURNEY);
  const pictures = createPictures(deps);

  function mounted(prefix: string): Elysia {
    const routes = new Elysia()
      .get(`${prefix}/image/:id`, ({ request, params }) => pictures(request, params["id"] ?? ""), open)
      .post(
        `${prefix}/submit/:kind`,
        ({ request, params }) =>
          submit(deps, edge, request, (body) => readDrawing(params["kind"] ?? "", body)),
        raw,
      )
      .post(`${prefix}/insight-face/swap`, ({ request }) => submit(deps, edge, request, readFaceSwap), raw)
      .post(`${prefix}/notify`, ({ request }) => notify(deps, edge, request), raw)
      .get(
        `${prefix}/task/:id/fetch`,
        ({ request, params }) => fetchOne(deps, edge, request, params["id"] ?? ""),
        raw,
      )
      .get(
        `${prefix}/task/:id/image-seed`,
        ({ request, params }) => imageSeed(deps, edge, request, params["id"] ?? ""),
        raw,
      )
      .post(`${prefix}/task/list-by-condition`, ({ request }) => fetchMany(deps, edge, request), raw)
      .options(`${prefix}/*`, ({ request }) => preflight(request), checkedBy("relay key"));
    return routes as unknown as Elysia;
  }

  return new Elysia().use(mounted("/mj")).use(mounted("/:mode/mj"));
}

type Edge = TaskEdge<DrawingRow>;

const submit = (deps: Deps, edge: Edge, request: Request, read: (body: Json) => Drawing): Promise<Response> =>
  edge.answer(request, async (call) => {
    const body = await edge.body(call);
    return edge.submit(call, submissionOf(deps, request, read(body), body));
  });

function submissionOf(deps: Deps, request: Request, drawing: Drawing, body: Json): Submission<DrawingRow> {
  const { action, model, origin } = drawing;
  const mustBeDone = deps.options.get("MjActionCheckSuccessEnabled") && action !== "MODAL";
  return {
    action,
    model,
    isFree: FREE_ACTIONS.has(action),
    origin,
    checkOrigin({ status }) {
      if (mustBeDone && status !== SUCCESS) throw drawingError("task_status_not_success");
    },
    path: upstreamPath(new URL(request.url).pathname),
    body: sentDrawing(deps.options, body, origin),
    columns: (answer, originRow, atMs) => drawingColumns(drawing, answer, originRow, atMs),
    reply: (answer) =>
      drawingReply(drawing, answer, (imageUrl, mjId) =>
        shownImage(deps, { imageUrl, mjId }, new URL(request.url).origin),
      ),
  };
}

/** A task in the form of the proxies that clients speak to. */
function taskOf(deps: Deps, row: DrawingRow, request: Request): Json {
  const shown = shownImage(deps, row, new URL(request.url).origin);
  const isMoving = row.status !== SUCCESS && shown !== "" && shown !== row.imageUrl;
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

const fetchOne = (deps: Deps, edge: Edge, request: Request, id: string): Promise<Response> =>
  edge.answer(request, async (call) =>
    taskJson(request, taskOf(deps, await edge.ownTask(call, id), request)),
  );

const fetchMany = (deps: Deps, edge: Edge, request: Request): Promise<Response> =>
  edge.answer(request, async (call) => {
    const rows = await edge.ownTasks(call, idsOf(await edge.body(call)));
    return taskJson(
      request,
      rows.map((row) => taskOf(deps, row, request)),
    );
  });

/** Forwarded to the channel that drew the picture, with the key whose account knows it. */
const imageSeed = (deps: Deps, edge: Edge, request: Request, id: string): Promise<Response> =>
  edge.answer(request, async (call) => {
    const row = await edge.ownTask(call, id);
    const channel = channelOf(deps, MIDJOURNEY, row);
    const path = `/mj/task/${encodeURIComponent(row.mjId)}/image-seed`;
    const ask = (key: string) =>
      askTaskUpstream(deps, MIDJOURNEY, { channel, key }, { path, timeoutMs: SEED_TIMEOUT_MS });
    const { answer } = await askWithKeys(deps, channel, ask, ({ status }) => status === 200).catch(() => {
      throw refusal(MIDJOURNEY, "unreachable");
    });
    const { status, text } = answer;
    const failed = status === 200 ? undefined : statusFailure(channel, answer, parseJson(text) ?? text);
    if (failed && isOfAccount(failed)) throw refusal(MIDJOURNEY, "upstreamAccount", failed.failure.code);
    return new Response(failed ? scrub(text) : text, {
      status,
      headers: {
        ...corsHeaders(request),
        "content-type": "application/json",
        [REQUEST_ID_HEADER]: newRequestId(),
        ...(failed ? { [ERROR_CODE_HEADER]: failed.failure.code } : {}),
      },
    });
  });

/** The upstream tells how far a task is; when it began or failed is not taken from whoever holds a key. */
const notify = (deps: Deps, edge: Edge, request: Request): Promise<Response> =>
  edge.answer(request, async (call) => {
    await applyPush(deps, call, await edge.body(call));
    return new Response(null, {
      headers: { ...corsHeaders(request), [REQUEST_ID_HEADER]: newRequestId() },
    });
  });

async function applyPush(deps: Deps, { caller: { user } }: TaskCall, body: Json): Promise<void> {
  const id = asString(body["id"]) ?? "";
  // The operator's own upstream pushes with an administrator's key, whoever the task belongs to.
  const isOperator = user.role >= Role.admin;
  for (let left = MAX_PUSH_TRIES; left > 0; left--) {
    const row = await (isOperator && id !== ""
      ? anyTask(deps, DRAWINGS, id)
      : ownTask(deps, DRAWINGS, user.id, id));
    if (!row) throw drawingError("midjourney_task_not_found");
    if (row.progress === DONE) return;
    const changes = pushed(row, body, deps.clock.nowMs(), !isOperator);
    // Judged by what stood in the row: where the poller moved it meanwhile, the push is judged anew.
    if (await moveTask(deps, DRAWINGS, row.id, changes, row)) return;
  }
}
