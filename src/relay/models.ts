// The model list as the key sees it: its own limits, else what the channels of its group serve.
// Refuses nothing; who may ask was decided before.
import type { Deps } from "../core/deps.ts";
import { languageOf, messageText } from "../http/messages.ts";
import { newRequestId, REQUEST_ID_HEADER } from "../http/request-id.ts";
import { isPresetModel, modelOwner } from "../providers/models.ts";
import type { Caller } from "./admission.ts";
import { corsHeaders } from "./cors.ts";

/** The constant that clients of this API have always been shown. */
const CREATED = 1_626_777_600;

const PERMISSION = [
  {
    id: "modelperm-LwHkVFn8AcMItP432fKKDIKJ",
    object: "model_permission",
    created: CREATED,
    allow_create_engine: true,
    allow_sampling: true,
    allow_logprobs: true,
    allow_search_indices: false,
    allow_view: true,
    allow_fine_tuning: false,
    organization: "*",
    group: null,
    is_blocking: false,
  },
];

function modelObject(id: string, ownedBy: string): Record<string, unknown> {
  return {
    id,
    object: "model",
    created: CREATED,
    owned_by: ownedBy,
    permission: PERMISSION,
    root: id,
    parent: null,
  };
}

function answer(request: Request, body: unknown): Response {
  return Response.json(body, {
    headers: {
      ...corsHeaders(request),
      "cache-control": "no-store",
      [REQUEST_ID_HEADER]: newRequestId(),
    },
  });
}

function namesFor(deps: Pick<Deps, "routing">, caller: Caller): string[] {
  const limits = caller.token?.modelLimits;
  return limits ? [...limits].sort() : deps.routing.modelsOf(caller.group);
}

export function modelList(deps: Pick<Deps, "routing">, caller: Caller, request: Request): Response {
  const data = namesFor(deps, caller).map((id) => modelObject(id, modelOwner(id)));
  return answer(request, { success: true, object: "list", data });
}

/** One model; an unknown one is told with status 200, which clients of this call expect. */
export function oneModel(
  deps: Pick<Deps, "routing">,
  caller: Caller,
  request: Request,
  id: string,
): Response {
  const isKnown = namesFor(deps, caller).includes(id) || isPresetModel(id);
  if (isKnown) return answer(request, modelObject(id, modelOwner(id)));
  return answer(request, {
    error: {
      message: messageText("model_not_found", languageOf(request), { model: id }),
      type: "invalid_request_error",
      param: "model",
      code: "model_not_found",
    },
  });
}
