// Whether an operation of request rules acts: its conditions about the body that is sent and the facts of the call.
// Refuses to guess: what has another type than the condition's value does not fit it. Refuses to take a body's word for a fact.
import { segmentsOf } from "../../shared/request-rules.ts";
import type { RuleCondition } from "../../shared/request-rules.ts";
import { clientHeader } from "./rule-headers.ts";
import { expanded, valueAt } from "./rule-paths.ts";

/** What conditions may ask about besides the body; names are those of this family's gateways. */
export interface RuleFacts {
  /** At the upstream. */
  model: string;
  original_model: string;
  upstream_model: string;
  user_id: number;
  user_group: string;
  token_group: string;
  using_group: string;
  request_path: string;
  /** Attempts before this one. */
  retry_index: number;
  is_retry: boolean;
  /** Of the attempt before. */
  last_error?: { status_code: number; code: string; type: string; message: string };
  is_channel_test: boolean;
}

/** The sides that a condition looks at. */
export interface RuleScene {
  body: Readonly<Record<string, unknown>>;
  /** Absent: an object by itself, whose members alone are asked about. */
  facts?: RuleFacts;
  client: Headers;
  /** The model is named by the address: a member of that name in the body is the client's, and nothing (Gemini). */
  isModelInAddress?: boolean;
}

const HEADERS = "request_headers";
/**
 * Conditions that begin like this ask about the call, whatever its client writes under these names: else whoever adds
 * "token_group" to a body would choose which rules hold for it.
 */
const FACTS: ReadonlySet<string> = new Set<Exclude<keyof RuleFacts, "model">>([
  "original_model",
  "upstream_model",
  "user_id",
  "user_group",
  "token_group",
  "using_group",
  "request_path",
  "retry_index",
  "is_retry",
  "last_error",
  "is_channel_test",
]);

function inFacts(facts: RuleFacts, segments: readonly string[]): unknown[] {
  const { exists, value } = valueAt(facts as unknown as Record<string, unknown>, segments);
  return exists && value !== undefined ? [value] : [];
}

function inBody(body: RuleScene["body"], path: string): unknown[] {
  const found = expanded(body, path).map((segments) => valueAt(body, segments));
  return found.filter(({ exists }) => exists).map(({ value }) => value);
}

/** The model may be another one by an operation before: the body that is sent says it, where it names one at all. */
function found({ body, facts, client, isModelInAddress }: RuleScene, path: string): unknown[] {
  if (!facts) return inBody(body, path);
  const segments = segmentsOf(path);
  const [name = ""] = segments;
  if (name === HEADERS) {
    const value = clientHeader(client, path.slice(HEADERS.length + 1).toLowerCase());
    return value === undefined ? [] : [value];
  }
  if (FACTS.has(name) || (name === "model" && isModelInAddress === true)) return inFacts(facts, segments);
  const values = inBody(body, path);
  return values.length === 0 && name === "model" ? inFacts(facts, segments) : values;
}

function fits({ mode, value: wanted }: RuleCondition, value: unknown): boolean {
  switch (mode) {
    case "full":
      return Bun.deepEquals(value, wanted, true);
    case "prefix":
      return typeof value === "string" && value.startsWith(String(wanted));
    case "suffix":
      return typeof value === "string" && value.endsWith(String(wanted));
    case "contains":
      if (Array.isArray(value)) return value.some((each) => Bun.deepEquals(each, wanted, true));
      return typeof value === "string" && value.includes(String(wanted));
    default: {
      if (typeof value !== "number" || typeof wanted !== "number") return false;
      if (mode === "gt") return value > wanted;
      if (mode === "gte") return value >= wanted;
      return mode === "lt" ? value < wanted : value <= wanted;
    }
  }
}

function holds(scene: RuleScene, condition: RuleCondition): boolean {
  const values = found(scene, condition.path);
  if (values.length === 0) return condition.passMissingKey;
  return values.some((value) => fits(condition, value)) !== condition.invert;
}

/** No condition is one that holds. */
export function conditionsHold(
  scene: RuleScene,
  { conditions, logic }: { conditions: readonly RuleCondition[]; logic: "AND" | "OR" },
): boolean {
  if (conditions.length === 0) return true;
  const holdsHere = (condition: RuleCondition): boolean => holds(scene, condition);
  return logic === "AND" ? conditions.every(holdsHere) : conditions.some(holdsHere);
}
