// The small changes that OpenAI-shaped upstreams need in a JSON body, carried out as the rows name them.
// Refuses to touch its input, to invent fields that the row does not name, and to drop fields nobody named.
import { cannotCarry } from "../protocol/carry.ts";
import type { Operation, ProviderRow, Quirk } from "./define.ts";

export type JsonBody = Readonly<Record<string, unknown>>;

export interface PatchContext {
  /** The operation the upstream performs. */
  operation: Operation;
  /** False: stream_options is asked for only where the client did so itself. */
  forceStreamUsage?: boolean;
}

export interface Patched {
  /** The input itself when nothing changed. */
  body: JsonBody;
  /** Top-level keys whose value differs from the input's; one that is missing in `body` was removed. */
  changed: string[];
  /** Names of what the client asked for and the provider is not told, or told otherwise. */
  dropped: readonly string[];
}

type Draft = Record<string, unknown>;

const DEFAULT_OPERATIONS: readonly Operation[] = ["chat", "completions"];
const NOTHING: readonly string[] = [];
/** Asked for all the same: by the relay's own hand (form of vectors, documents of a result), or of `refuse-above` before. */
const KEPT_OTHERWISE: ReadonlySet<string> = new Set(["n", "encoding_format", "return_documents"]);
const EFFORT = /-(high|medium|low)$/;
const SEARCH_SUFFIX = "-search";
const DATA_URL = /^data:[^,]*;base64,/;

function isObject(value: unknown): value is Draft {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null;
}

/** Maps the parts of every message's content; parts that `change` leaves alone keep their identity. */
function mapParts(draft: Draft, change: (part: Draft) => Draft): void {
  const { messages } = draft;
  if (!Array.isArray(messages)) return;
  let hasChanged = false;
  const next = (messages as unknown[]).map((message) => {
    if (!isObject(message) || !Array.isArray(message["content"])) return message;
    const before = message["content"] as unknown[];
    const content = before.map((part) => (isObject(part) ? change(part) : part));
    if (content.every((part, index) => part === before[index])) return message;
    hasChanged = true;
    return { ...message, content };
  });
  if (hasChanged) draft["messages"] = next;
}

function imageUrl(part: Draft): string | undefined {
  const image = part["image_url"];
  if (part["type"] !== "image_url" || !isObject(image)) return undefined;
  return typeof image["url"] === "string" ? image["url"] : undefined;
}

function cutEffort(draft: Draft, operation: Operation): void {
  const model = String(draft["model"]);
  const effort = EFFORT.exec(model)?.[1];
  if (effort === undefined) return;
  draft["model"] = model.slice(0, -effort.length - 1);
  if (operation === "responses") {
    const reasoning = draft["reasoning"];
    draft["reasoning"] = { ...(isObject(reasoning) ? reasoning : {}), effort };
  } else draft["reasoning_effort"] = effort;
}

function moveOutputLimit(draft: Draft, to: "max_tokens" | "max_completion_tokens"): void {
  const from = to === "max_tokens" ? "max_completion_tokens" : "max_tokens";
  if (!isSet(draft[from])) return;
  // With both given the newer name has the say; the upstream refuses the pair.
  if (!isSet(draft[to]) || from === "max_completion_tokens") draft[to] = draft[from];
  delete draft[from];
}

function nameDeveloper(draft: Draft): void {
  const { messages } = draft;
  if (!Array.isArray(messages)) return;
  const [first, ...rest] = messages as unknown[];
  if (isObject(first) && first["role"] === "system")
    draft["messages"] = [{ ...first, role: "developer" }, ...rest];
}

function bound(draft: Draft, quirk: Extract<Quirk, { patch: "bound" }>): void {
  const value = draft[quirk.field];
  if (typeof value !== "number") return;
  const least = quirk.min ?? -Infinity;
  const most = quirk.max ?? Infinity;
  if (value < least) draft[quirk.field] = least;
  if (value > most) draft[quirk.field] = most;
}

function searchOnline(draft: Draft): void {
  draft["model"] = String(draft["model"]).slice(0, -SEARCH_SUFFIX.length);
  const own = draft["web_search"];
  draft["web_search"] = {
    enable: true,
    enable_citation: true,
    enable_trace: true,
    enable_status: false,
    ...(isObject(own) ? own : {}),
  };
}

/** Whose words a patch is about to leave out or to change: false and null ask for nothing that is not there anyway. */
function untoldBy(draft: Draft, quirk: Quirk): string[] {
  const asks = (field: string): boolean =>
    isSet(draft[field]) && draft[field] !== false && !KEPT_OTHERWISE.has(field);
  switch (quirk.patch) {
    case "omit":
      return quirk.fields.filter(asks);
    case "set":
      return asks(quirk.field) && draft[quirk.field] !== quirk.value && isForced(draft, quirk)
        ? [quirk.field]
        : [];
    case "bound": {
      const bounded = { ...draft };
      bound(bounded, quirk);
      return bounded[quirk.field] === draft[quirk.field] ? [] : [quirk.field];
    }
    default:
      return [];
  }
}

function isForced(draft: Draft, quirk: Extract<Quirk, { patch: "set" }>): boolean {
  return quirk.when !== "not-streaming" || draft["stream"] !== true;
}

function apply(draft: Draft, quirk: Quirk, operation: Operation): void {
  switch (quirk.patch) {
    case "effort-suffix":
      return cutEffort(draft, operation);
    case "move-output-limit":
      return moveOutputLimit(draft, quirk.to);
    case "developer-role":
      return nameDeveloper(draft);
    case "omit":
      for (const field of quirk.fields) delete draft[field];
      return;
    case "rename":
      if (!Object.hasOwn(draft, quirk.from)) return;
      if (!Object.hasOwn(draft, quirk.to)) draft[quirk.to] = draft[quirk.from];
      delete draft[quirk.from];
      return;
    case "bound":
      return bound(draft, quirk);
    case "refuse-above":
      // Bounding it in silence would sell one piece for the price of several.
      if (Number(draft[quirk.field]) > quirk.max) throw cannotCarry(quirk.field);
      return;
    case "set":
      if (isForced(draft, quirk)) draft[quirk.field] = quirk.value;
      return;
    case "as-list":
      if (typeof draft[quirk.field] === "string") draft[quirk.field] = [draft[quirk.field]];
      return;
    case "search-suffix":
      return searchOnline(draft);
    case "image-url-as-text":
      return mapParts(draft, (part) => {
        const url = imageUrl(part);
        return url === undefined ? part : { ...part, image_url: url };
      });
    case "bare-base64-images":
      return mapParts(draft, (part) => {
        const url = imageUrl(part);
        if (url === undefined || !DATA_URL.test(url)) return part;
        return { ...part, image_url: { ...(part["image_url"] as Draft), url: url.replace(DATA_URL, "") } };
      });
  }
}

/** Asks for the usage frame where the row allows it; elsewhere the whole member goes, for such upstreams refuse it. */
function patchStreamOptions(draft: Draft, row: ProviderRow, context: PatchContext): void {
  if (!DEFAULT_OPERATIONS.includes(context.operation)) return;
  const options = draft["stream_options"];
  if (!row.asksForStreamUsage || draft["stream"] !== true) {
    delete draft["stream_options"];
    return;
  }
  if (context.forceStreamUsage === false) return;
  if (isObject(options) && options["include_usage"] === true) return;
  draft["stream_options"] = { ...(isObject(options) ? options : {}), include_usage: true };
}

/**
 * The body as this provider wants it. Absent fields stay absent, zero, false and unknown fields survive, and the input
 * is never written to. Only rows that speak openai-chat or openai-responses for the operation are patched.
 */
export function patchBody(row: ProviderRow, body: JsonBody, context: PatchContext): Patched {
  const { operation } = context;
  const dialect = row.operations[operation]?.dialect;
  if (dialect !== "openai-chat" && dialect !== "openai-responses")
    return { body, changed: [], dropped: NOTHING };
  const model = typeof body["model"] === "string" ? body["model"] : "";
  let draft: Draft | undefined;
  let dropped = NOTHING;
  for (const quirk of row.quirks) {
    if (!(quirk.on ?? DEFAULT_OPERATIONS).includes(operation)) continue;
    if (quirk.models && !quirk.models.test(model)) continue;
    draft ??= { ...body };
    const untold = untoldBy(draft, quirk);
    if (untold.length > 0) dropped = [...dropped, ...untold];
    apply(draft, quirk, operation);
  }
  // Most bodies: nothing to patch, nothing to compare.
  if (!draft && body["stream"] !== true && body["stream_options"] === undefined)
    return { body, changed: [], dropped };
  draft ??= { ...body };
  patchStreamOptions(draft, row, context);
  const keys = new Set([...Object.keys(body), ...Object.keys(draft)]);
  const changed = [...keys].filter(
    (key) => Object.hasOwn(draft, key) !== Object.hasOwn(body, key) || draft[key] !== body[key],
  );
  return { body: changed.length === 0 ? body : draft, changed, dropped };
}
