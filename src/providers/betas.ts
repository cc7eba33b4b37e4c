// Anthropic's beta names at providers that serve its models but not all of its betas: what of a request has to stay here.
// Refuses nothing: a beta that a provider does not know is left out with the fields that hang on it, and listed.
import { asList, asObject } from "../protocol/json.ts";
import type { JsonObject } from "../protocol/canonical.ts";
import type { JsonBody } from "./quirks.ts";

/** AWS, "Anthropic Claude Messages API", beta headers (2026-11): what InvokeModel takes in `anthropic_beta`. */
export const BEDROCK_BETAS: readonly string[] = [
  "computer-use-2025-01-24",
  "computer-use-2025-11-24",
  "token-efficient-tools-2025-02-19",
  "interleaved-thinking-2025-05-14",
  "output-128k-2025-02-19",
  "dev-full-thinking-2025-05-14",
  "context-1m-2025-08-07",
  "context-management-2025-06-27",
  "compact-2026-01-12",
  "effort-2025-11-24",
  "fine-grained-tool-streaming-2025-05-14",
  "tool-search-tool-2025-10-19",
  "tool-examples-2025-10-29",
];

/** Google Cloud, "Use Anthropic's Claude models" (2026-11). */
export const VERTEX_BETAS: readonly string[] = [
  "computer-use-2025-01-24",
  "computer-use-2025-11-24",
  "interleaved-thinking-2025-05-14",
  "context-1m-2025-08-07",
  "context-management-2025-06-27",
  "compact-2026-01-12",
  "tool-search-tool-2025-10-19",
  "web-search-2025-03-05",
];

/** A field that only means something with one of these betas. */
interface BetaField {
  betas: readonly RegExp[];
  /** Where it stands: the request itself, its tools, or wherever a cache mark stands. */
  place: "body" | "tools" | "cache_control";
  field: string;
}

/** Anthropic, "Beta headers" and the pages of each feature. */
const FIELDS: readonly BetaField[] = [
  { betas: [/^advanced-tool-use-/, /^tool-search-tool-/], place: "tools", field: "defer_loading" },
  { betas: [/^advanced-tool-use-/], place: "tools", field: "allowed_callers" },
  { betas: [/^advanced-tool-use-/, /^tool-examples-/], place: "tools", field: "input_examples" },
  { betas: [/^fine-grained-tool-streaming-/], place: "tools", field: "eager_input_streaming" },
  { betas: [/^context-management-/, /^compact-/], place: "body", field: "context_management" },
  { betas: [/^mcp-client-/], place: "body", field: "mcp_servers" },
  { betas: [/^skills-/, /^code-execution-/], place: "body", field: "container" },
  { betas: [/^structured-outputs-/], place: "body", field: "output_format" },
  { betas: [/^fast-mode-/], place: "body", field: "speed" },
  { betas: [/^prompt-caching-scope-/], place: "cache_control", field: "scope" },
];

export interface BetaRuling {
  /** As it is sent; the input where no field had to go. */
  body: JsonBody;
  /** Top-level members whose value differs from the input's. */
  changed: string[];
  /** Names for the log. */
  dropped: string[];
}

const HEADER = "anthropic-beta";
const MEMBER = "anthropic_beta";

function tokensOf(value: unknown): string[] {
  const list = Array.isArray(value)
    ? (value as unknown[])
    : typeof value === "string"
      ? value.split(",")
      : [];
  return list
    .filter((each) => typeof each === "string")
    .map((each) => each.trim())
    .filter((each) => each !== "");
}

function without(object: JsonObject, field: string): JsonObject {
  const { [field]: _, ...rest } = object;
  return rest;
}

/** Cache marks stand at any depth of messages, system and tools. */
function withoutMarkField(value: unknown, field: string): unknown {
  if (Array.isArray(value)) {
    const list = (value as unknown[]).map((each) => withoutMarkField(each, field));
    return list.some((each, index) => each !== value[index]) ? list : value;
  }
  const object = asObject(value);
  if (!object) return value;
  let changed: JsonObject | undefined;
  const mark = asObject(object["cache_control"]);
  if (mark?.[field] !== undefined) changed = { ...object, cache_control: without(mark, field) };
  if (Array.isArray(object["content"])) {
    const content = withoutMarkField(object["content"], field);
    if (content !== object["content"]) changed = { ...(changed ?? object), content };
  }
  return changed ?? value;
}

/** One field out of the body; the same object where it does not stand there. */
function withoutField(body: JsonBody, { place, field }: BetaField): JsonBody {
  if (place === "body") return body[field] === undefined ? body : without({ ...body }, field);
  if (place === "tools") {
    const tools = asList(body["tools"]);
    if (!tools.some((tool) => asObject(tool)?.[field] !== undefined)) return body;
    const left = tools.map((tool) => {
      const object = asObject(tool);
      return object ? without(object, field) : tool;
    });
    return { ...body, tools: left };
  }
  let changed: JsonObject | undefined;
  for (const key of ["system", "messages", "tools"]) {
    const value = withoutMarkField(body[key], field);
    if (value !== body[key]) (changed ??= { ...body })[key] = value;
  }
  return changed ?? body;
}

/** Whether a field's beta stays behind: it was asked for and left out, or the provider has none that carries the field. */
function hangsLoose(
  { betas }: BetaField,
  allowed: readonly string[],
  sent: readonly string[],
  stay: readonly string[],
): boolean {
  const carries = (token: string): boolean => betas.some((beta) => beta.test(token));
  if (stay.some(carries)) return false;
  return sent.some(carries) || !allowed.some(carries);
}

/**
 * Holds the betas of header and body against the provider's list. `headers` loses what is not on it; undefined where nothing
 * had to go.
 */
export function applyBetas(
  allowed: readonly string[],
  headers: Record<string, string>,
  input: JsonBody,
): BetaRuling | undefined {
  const dropped: string[] = [];
  /** Tokens that came, and those of them that go on. */
  const sent: string[] = [];
  const stay: string[] = [];
  const kept = (tokens: string[]): string[] => {
    sent.push(...tokens);
    const left = tokens.filter((token) => {
      const isKnown = allowed.includes(token);
      if (!isKnown && !dropped.includes(`${HEADER}: ${token}`)) dropped.push(`${HEADER}: ${token}`);
      return isKnown;
    });
    stay.push(...left);
    return left;
  };
  const ofHeader = tokensOf(headers[HEADER]);
  const left = kept(ofHeader);
  if (left.length === 0) delete headers[HEADER];
  else if (left.length < ofHeader.length) headers[HEADER] = left.join(",");
  let body = input;
  if (input[MEMBER] !== undefined) {
    const ofBody = tokensOf(input[MEMBER]);
    const leftOfBody = kept(ofBody);
    if (leftOfBody.length === 0) body = without({ ...body }, MEMBER);
    else if (leftOfBody.length < ofBody.length) body = { ...body, [MEMBER]: leftOfBody };
  }
  for (const field of FIELDS) {
    if (!hangsLoose(field, allowed, sent, stay)) continue;
    const after = withoutField(body, field);
    if (after === body) continue;
    body = after;
    dropped.push(field.place === "body" ? field.field : `${field.place}.${field.field}`);
  }
  if (dropped.length === 0) return undefined;
  const changed = Object.keys({ ...input, ...body }).filter((key) => body[key] !== input[key]);
  return { body, changed, dropped };
}
