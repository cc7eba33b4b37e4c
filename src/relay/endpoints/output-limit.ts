// The limit on an answer's length as each dialect writes it: read from a body, and written into one where it must be lower.
// Refuses to raise a limit, and to name a second one where the body has one.
import type { DialectName } from "../../protocol/canonical.ts";
import { asObject } from "../../protocol/json.ts";
import type { Json } from "./endpoint.ts";
import { patchedBody } from "../wire/patch-json.ts";
import type { Changes } from "../wire/patch-json.ts";
import type { RelayBody } from "../wire/read-body.ts";

const CHAT_FIELDS = ["max_tokens", "max_completion_tokens"] as const;
/** Models of OpenAI's that know the newer name only. */
const NEWER_NAME = /(?:^|\/)(?:o\d|gpt-[5-9])/;

/** Where Gemini's limit stands; both spellings are accepted. */
function configKey(body: Json): "generationConfig" | "generation_config" {
  return body["generationConfig"] === undefined && body["generation_config"] !== undefined
    ? "generation_config"
    : "generationConfig";
}

function fieldsOf(dialect: DialectName): readonly string[] {
  if (dialect === "openai-chat") return CHAT_FIELDS;
  return dialect === "openai-responses" ? ["max_output_tokens"] : ["max_tokens"];
}

const GEMINI_LIMITS = ["maxOutputTokens", "max_output_tokens"] as const;

function isGeminiLimit(name: string): boolean {
  return GEMINI_LIMITS.some((each) => each === name);
}

/** Changes that take limits of 0 out of the body; undefined where it has none. */
function zeroLimits(dialect: DialectName, body: Json): Record<string, unknown> | undefined {
  let changes: Record<string, unknown> | undefined;
  if (dialect === "gemini") {
    for (const key of ["generationConfig", "generation_config"]) {
      const config = asObject(body[key]);
      if (!config || !GEMINI_LIMITS.some((name) => config[name] === 0)) continue;
      const rest = Object.entries(config).filter(([name, value]) => value !== 0 || !isGeminiLimit(name));
      (changes ??= {})[key] = Object.fromEntries(rest);
    }
    return changes;
  }
  for (const field of fieldsOf(dialect)) if (body[field] === 0) (changes ??= {})[field] = undefined;
  return changes;
}

/**
 * The body without limits of 0, by which older consoles say that they name none; every other byte stays. The same object where
 * there is nothing to take out, and for forms, whose fields are texts.
 */
export function withoutZeroLimits(dialect: DialectName, body: RelayBody): RelayBody {
  const changes = body.form ? undefined : zeroLimits(dialect, body.json);
  return changes ? patchedBody(body, changes) : body;
}

/** Limits that stand in the body and are larger than this one, lowered to it. */
export function loweredLimits(dialect: DialectName, body: Json, limit: number): Changes {
  const changes: Record<string, unknown> = {};
  if (dialect === "gemini") {
    const key = configKey(body);
    const config = asObject(body[key]);
    for (const name of GEMINI_LIMITS)
      if (typeof config?.[name] === "number" && config[name] > limit)
        changes[key] = { ...config, ...asObject(changes[key]), [name]: limit };
    return changes;
  }
  for (const field of fieldsOf(dialect)) {
    const named = body[field];
    if (typeof named === "number" && named > limit) changes[field] = limit;
  }
  return changes;
}

/** The same, and the limit itself where the body names none. */
export function limitChanges(dialect: DialectName, body: Json, limit: number, model: string): Changes {
  if (limitIn(dialect, body) > 0) return loweredLimits(dialect, body, limit);
  if (dialect === "gemini") {
    const key = configKey(body);
    return { [key]: { ...asObject(body[key]), maxOutputTokens: limit } };
  }
  if (dialect === "openai-chat")
    return { [NEWER_NAME.test(model) ? "max_completion_tokens" : "max_tokens"]: limit };
  return { [fieldsOf(dialect)[0] ?? "max_tokens"]: limit };
}

/** The largest limit that the body names in the dialect's words; 0 = none. */
export function limitIn(dialect: DialectName, body: Json): number {
  if (dialect === "gemini") {
    const config = asObject(body[configKey(body)]);
    return Math.max(positive(config?.["maxOutputTokens"]), positive(config?.["max_output_tokens"]));
  }
  let limit = 0;
  for (const field of fieldsOf(dialect)) limit = Math.max(limit, positive(body[field]));
  return limit;
}

/** The largest limit that an operator's overrides name, whatever their dialect; 0 = none. */
export function overriddenLimit(overrides: Json): number {
  return Math.max(
    limitIn("openai-chat", overrides),
    limitIn("openai-responses", overrides),
    limitIn("gemini", overrides),
  );
}

function positive(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) && value > 0 ? value : 0;
}
