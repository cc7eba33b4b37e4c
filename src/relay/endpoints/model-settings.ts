// What the operator's Claude and Gemini settings make of a request: model suffixes, thinking budgets, safety, versions.
// Refuses to overrule a client that said itself how the model shall think.
import type { OptionStore } from "../../core/options/store.ts";
import { modelTraits } from "../../protocol/anthropic/models.ts";
import { dropSampling, mayThink, SHOWN_ADAPTIVE } from "../../protocol/anthropic/thinking.ts";
import { leastBudget } from "../../protocol/gemini/thinking.ts";
import { asObject } from "../../protocol/json.ts";
import type { Changes } from "../wire/patch-json.ts";

type Options = Pick<OptionStore, "get">;
type Body = Readonly<Record<string, unknown>>;

const THINKING = "-thinking";
const NO_THINKING = "-nothinking";
/** Anthropic accepts no smaller budget; the answer limit grows to hold it. */
const MIN_CLAUDE_BUDGET = 1024;
const MIN_CLAUDE_TOKENS = 1280;
/** The largest budget of the Gemini 2.5 family's smaller models. */
const MAX_GEMINI_BUDGET = 24_576;

const HARM_CATEGORIES = [
  "HARM_CATEGORY_HARASSMENT",
  "HARM_CATEGORY_HATE_SPEECH",
  "HARM_CATEGORY_SEXUALLY_EXPLICIT",
  "HARM_CATEGORY_DANGEROUS_CONTENT",
  "HARM_CATEGORY_CIVIC_INTEGRITY",
] as const;

function byModel<T>(map: Readonly<Record<string, T>>, model: string): T | undefined {
  return Object.hasOwn(map, model) ? map[model] : map["default"];
}

export function claudeDefaultMaxTokens(options: Options, model: string): number | undefined {
  return byModel(options.get("claude.default_max_tokens"), model);
}

/** Whether a Claude's name asks for thinking by the gateway's suffix. */
export function asksToThink(model: string): boolean {
  return model.endsWith(THINKING) && model.includes("claude");
}

/**
 * Tokens that such a name asks of Anthropic at the least, but for the sixteen that every answer gets; 0 where the suffix
 * means nothing.
 */
export function leastThinkingTokens(options: Options): number {
  return options.get("claude.thinking_adapter_enabled") ? MIN_CLAUDE_TOKENS - 16 : 0;
}

/** Version segment of Gemini's address for the model. */
export function geminiVersion(options: Options, model: string): string | undefined {
  return byModel(options.get("gemini.version_settings"), model);
}

/** Extra headers that the operator adds to Anthropic requests for the model. */
export function claudeHeaders(options: Options, model: string): Record<string, string> {
  const settings = options.get("claude.model_headers_settings");
  const own = Object.hasOwn(settings, model) ? settings[model] : undefined;
  const headers: Record<string, string> = {};
  for (const [name, values] of Object.entries(own ?? {})) headers[name.toLowerCase()] = values.join(",");
  return headers;
}

/** The name without the suffixes that are instructions to the gateway, where their option is on. */
export function plainModel(options: Options, dialect: string, model: string): string {
  if (dialect === "anthropic" && options.get("claude.thinking_adapter_enabled") && model.endsWith(THINKING))
    return model.slice(0, -THINKING.length);
  if (dialect === "gemini" && options.get("gemini.thinking_adapter_enabled")) {
    if (model.endsWith(NO_THINKING)) return model.slice(0, -NO_THINKING.length);
    if (model.endsWith(THINKING)) return model.slice(0, -THINKING.length);
  }
  return model;
}

/** What becomes of a body, and what of its wishes is left out: for the log. */
export interface SettingsDone {
  changes: Changes;
  dropped: readonly string[];
}

/**
 * Changes to an Anthropic body (undefined removes a field): an answer limit where there is none, and for `-thinking`
 * names a budget of the configured share of it. Anthropic wants sampling at its defaults beside thinking; models that
 * think by effort get adaptive thinking in place of a budget. Where thinking would be refused the model answers without.
 */
function claudeChanges(options: Options, model: string, body: Body): SettingsDone {
  const changes: Record<string, unknown> = {};
  const dropped: string[] = [];
  const named = body["max_tokens"];
  let maxTokens = typeof named === "number" && named > 0 ? named : 0;
  if (maxTokens === 0) {
    maxTokens = claudeDefaultMaxTokens(options, model) ?? 8192;
    changes["max_tokens"] = maxTokens;
  }
  const plain = plainModel(options, "anthropic", model);
  if (plain === model || asObject(body["thinking"])) return { changes, dropped };
  const { style, thinks } = modelTraits(plain);
  if (!thinks || !mayThink(body, style)) return { changes, dropped: ["reasoning"] };
  if (style === "effort") changes["thinking"] = SHOWN_ADAPTIVE;
  else {
    const limit = Math.max(MIN_CLAUDE_TOKENS, maxTokens);
    const share = Math.floor(limit * options.get("claude.thinking_adapter_budget_tokens_percentage"));
    // A share of 1 would leave nothing to answer with.
    const budget = Math.min(Math.max(MIN_CLAUDE_BUDGET, share), limit - 1);
    changes["max_tokens"] = limit;
    changes["thinking"] = { type: "enabled", budget_tokens: budget };
  }
  dropSampling({ ...body }, dropped, Infinity);
  for (const field of dropped) changes[field] = field === "temperature" ? 1 : undefined;
  return { changes, dropped };
}

/**
 * Changes to a Gemini body. `isConverted`: the client spoke another dialect, so it could not say itself which safety
 * thresholds and modalities it wants; the operator's settings stand in.
 */
function geminiChanges(
  options: Options,
  model: string,
  body: Body,
  isConverted: boolean,
): Record<string, unknown> {
  const changes: Record<string, unknown> = {};
  const config = asObject(body["generationConfig"]) ?? {};
  const added: Record<string, unknown> = {};
  const plain = plainModel(options, "gemini", model);
  if (plain !== model && config["thinkingConfig"] === undefined) {
    const isOff = model.endsWith(NO_THINKING);
    if (isOff) added["thinkingConfig"] = { thinkingBudget: leastBudget(plain) };
    else if (plain.startsWith("gemini-2.5-pro")) added["thinkingConfig"] = { includeThoughts: true };
    else {
      const limit = config["maxOutputTokens"];
      const share = options.get("gemini.thinking_adapter_budget_tokens_percentage");
      const budget =
        typeof limit === "number" && limit > 0
          ? Math.min(MAX_GEMINI_BUDGET, Math.floor(limit * share))
          : MAX_GEMINI_BUDGET;
      added["thinkingConfig"] = { thinkingBudget: budget, includeThoughts: true };
    }
  }
  if (isConverted) {
    if (
      config["responseModalities"] === undefined &&
      options.get("gemini.supported_imagine_models").includes(plain)
    )
      added["responseModalities"] = ["TEXT", "IMAGE"];
    if (body["safetySettings"] === undefined) {
      const thresholds = options.get("gemini.safety_settings");
      changes["safetySettings"] = HARM_CATEGORIES.map((category) => ({
        category,
        threshold: byModel(thresholds, category) ?? "OFF",
      }));
    }
  }
  if (Object.keys(added).length > 0) changes["generationConfig"] = { ...config, ...added };
  return changes;
}

/** Changes for an upstream dialect; nothing for the two of OpenAI, whose suffixes the provider rows handle. */
export function settingsChanges(
  options: Options,
  dialect: string,
  model: string,
  body: Body,
  isConverted: boolean,
): SettingsDone {
  if (dialect === "anthropic") return claudeChanges(options, model, body);
  const changes = dialect === "gemini" ? geminiChanges(options, model, body, isConverted) : {};
  return { changes, dropped: [] };
}
