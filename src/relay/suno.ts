// The Suno routes: music and lyrics are submitted, and the caller's own tasks are read.
// Refuses continuations of other people's songs.
import { Elysia } from "elysia";
import type { Deps } from "../core/deps.ts";
import type { CreativeTaskRow } from "../core/tasks/families.ts";
import { creativeTaskJson } from "../core/tasks/lists.ts";
import { checkedBy } from "../http/session.ts";
import { asString } from "../protocol/json.ts";
import type { Relay } from "./call/pipeline.ts";
import { createTaskEdge, idsOf, taskJson } from "./tasks/edge.ts";
import type { Submission } from "./tasks/submit.ts";
import { songModel, songOf, SUNO } from "./tasks/suno-wire.ts";
import type { Json } from "./tasks/task-wire.ts";
import { preflight } from "./wire/cors.ts";

const raw = { parse: "none", ...checkedBy("relay key") } as const;

/** A task in the form that clients of this API know; its data is the upstream's own. */
function taskOf(row: CreativeTaskRow): Json {
  const { task_id, action, status, fail_reason, submit_time, start_time, finish_time, progress, data } =
    creativeTaskJson(row, true);
  return { task_id, action, status, fail_reason, submit_time, start_time, finish_time, progress, data };
}

function submissionOf(action: string, body: Json): Submission<CreativeTaskRow> {
  const song = songOf(action, body);
  // A continuation goes to the channel that made its origin; nothing else names a task, which could be somebody else's.
  const origin = song["continue_clip_id"] ? (asString(song["task_id"]) ?? "") : "";
  if (origin === "") delete song["task_id"];
  const input = asString(song["gpt_description_prompt"]) ?? asString(song["prompt"]) ?? "";
  return {
    action,
    model: songModel(action),
    isFree: false,
    origin,
    path: `/suno/submit/${action}`,
    body: song,
    columns: () => ({ platform: "suno", status: "NOT_START", properties: JSON.stringify({ input }) }),
  };
}

export function sunoRelay(deps: Deps, relay: Relay): Elysia {
  const edge = createTaskEdge(deps, relay, SUNO);

  const submit = (request: Request, action: string): Promise<Response> =>
    edge.answer(
      request,
      async (call) => edge.submit(call, submissionOf(action, await edge.body(call))),
      songModel(action),
    );

  const fetchMany = (request: Request): Promise<Response> =>
    edge.answer(request, async (call) => {
      const body = await edge.body(call);
      const action = asString(body["action"])?.toUpperCase() ?? "";
      const ids = idsOf(body);
      const rows = await edge.ownTasks(call, ids);
      const found = rows.filter((row) => action === "" || row.action === action).map(taskOf);
      const data = ids.length > 0 && found.length === 0 ? null : found;
      return taskJson(request, { code: "success", message: "", data });
    });

  const fetchOne = (request: Request, id: string): Promise<Response> =>
    edge.answer(request, async (call) => {
      const data = taskOf(await edge.ownTask(call, id));
      return taskJson(request, { code: "success", message: "", data });
    });

  const routes = new Elysia({ prefix: "/suno" })
    .post("/submit/:action", ({ request, params }) => submit(request, params.action.toUpperCase()), raw)
    .post("/fetch", ({ request }) => fetchMany(request), raw)
    .get("/fetch/:id", ({ request, params }) => fetchOne(request, params.id), raw)
    .options("/*", ({ request }) => preflight(request), checkedBy("relay key"));
  return routes as unknown as Elysia;
}
