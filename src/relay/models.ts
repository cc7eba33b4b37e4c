// The model list as the key sees it: its own limits, else what the channels of its groups serve.
import type { Deps } from "../core/deps.ts";
import { newRequestId, REQUEST_ID_HEADER } from "../http/request-id.ts";
import type { DialectName } from "../protocol/canonical.ts";
import { isPresetModel, modelOwner } from "../providers/models.ts";
import { modelNotFound } from "./call/admission.ts";
import { claudeCodeNames, codexModels, isClaudeCode } from "./endpoints/agent-models.ts";
import type { Caller } from "./call/admission.ts";
import { corsHeaders } from "./wire/cors.ts";

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
  if (limits) return [...limits].sort();
  if (!caller.auto) return deps.routing.modelsOf(caller.group);
  return [...new Set(caller.auto.flatMap((group) => deps.routing.modelsOf(group)))].sort();
}

/** The dialect a caller of /v1/models expects: Anthropic's clients name the version of their API, Google's bring their own header. */
export function listDialect({ headers }: Request): DialectName {
  if (headers.has("anthropic-version")) return "anthropic";
  return headers.has("x-goog-api-key") ? "gemini" : "openai-chat";
}

function anthropicModel(id: string, label = id): Record<string, unknown> {
  return { type: "model", id, display_name: label, created_at: new Date(CREATED * 1000).toISOString() };
}

/** Anthropic's list, a page at a time: `limit` (20, at most 1000), `after_id`, `before_id`. */
function anthropicList(given: readonly string[], request: Request): unknown {
  const menu = isClaudeCode(request) ? claudeCodeNames(given) : given.map((id) => ({ id, label: id }));
  const names = menu.map(({ id }) => id);
  const { searchParams } = new URL(request.url);
  const requested = Number(searchParams.get("limit") ?? 20);
  const limit = Number.isInteger(requested) && requested > 0 ? Math.min(requested, 1000) : 20;
  const after = names.indexOf(searchParams.get("after_id") ?? "");
  const before = names.indexOf(searchParams.get("before_id") ?? "");
  const from = before > -1 ? Math.max(0, before - limit) : after + 1;
  const to = before > -1 ? before : from + limit;
  const page = names.slice(from, to);
  return {
    data: menu.slice(from, to).map(({ id, label }) => anthropicModel(id, label)),
    has_more: before > -1 ? from > 0 : to < names.length,
    first_id: page[0] ?? null,
    last_id: page.at(-1) ?? null,
  };
}

function geminiObject(id: string): Record<string, unknown> {
  const isEmbedding = /embed/i.test(id);
  return {
    name: `models/${id}`,
    baseModelId: id,
    version: "001",
    displayName: id,
    supportedGenerationMethods: isEmbedding
      ? ["embedContent", "batchEmbedContents"]
      : ["generateContent", "streamGenerateContent", "countTokens"],
  };
}

/** Google's list, a page at a time: `pageSize` (50, at most 1000) and `pageToken`. */
export function geminiModelList(deps: Pick<Deps, "routing">, caller: Caller, request: Request): Response {
  const names = namesFor(deps, caller);
  const { searchParams } = new URL(request.url);
  const requested = Number(searchParams.get("pageSize") ?? 50);
  const size = Number.isInteger(requested) && requested > 0 ? Math.min(requested, 1000) : 50;
  const token = Number(searchParams.get("pageToken") ?? 0);
  const from = Number.isInteger(token) && token > 0 ? token : 0;
  const models = names.slice(from, from + size).map(geminiObject);
  const next = from + size < names.length ? { nextPageToken: String(from + size) } : {};
  return answer(request, { models, ...next });
}

export function geminiModel(
  deps: Pick<Deps, "routing">,
  caller: Caller,
  request: Request,
  id: string,
): Response {
  if (namesFor(deps, caller).includes(id) || isPresetModel(id)) return answer(request, geminiObject(id));
  throw modelNotFound(id);
}

export function modelList(deps: Pick<Deps, "routing">, caller: Caller, request: Request): Response {
  if (listDialect(request) === "gemini") return geminiModelList(deps, caller, request);
  const names = namesFor(deps, caller);
  if (listDialect(request) === "anthropic") return answer(request, anthropicList(names, request));
  const data = names.map((id) => modelObject(id, modelOwner(id)));
  const models = codexModels(names, request);
  return answer(request, { success: true, object: "list", data, ...(models ? { models } : {}) });
}

/** One model. Throws model_not_found. */
export function oneModel(
  deps: Pick<Deps, "routing" | "options">,
  caller: Caller,
  request: Request,
  id: string,
): Response {
  if (listDialect(request) === "gemini") return geminiModel(deps, caller, request, id);
  if (!namesFor(deps, caller).includes(id) && !isPresetModel(id)) throw modelNotFound(id);
  return answer(
    request,
    listDialect(request) === "anthropic" ? anthropicModel(id) : modelObject(id, modelOwner(id)),
  );
}
