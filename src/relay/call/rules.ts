// What a channel makes of a request beyond its provider's needs: betas, its own system prompt, rules, gates, headers, in this order.
// Refuses where a rule says so. A channel without any of it is passed by: nothing is copied, nothing is looked up.
import type { Channel } from "../../core/channels/rows.ts";
import type { DialectName } from "../../protocol/canonical.ts";
import { applyBetas } from "../../providers/betas.ts";
import type { ProviderRequest } from "../../providers/request.ts";
import { Failure } from "../../shared/failures.ts";
import type { Json } from "../endpoints/endpoint.ts";
import { gatedFields } from "../endpoints/gates.ts";
import { gatedTier, tierNames } from "../endpoints/service-tier.ts";
import type { TierGates } from "../endpoints/service-tier.ts";
import { systemPromptChanges } from "../endpoints/system-prompt.ts";
import { estimateTokens } from "../meter/token-count.ts";
import type { RuleFacts } from "../wire/rule-conditions.ts";
import { overrideHeaders } from "../wire/rule-headers.ts";
import type { HeaderPath } from "../wire/rule-headers.ts";
import { runRules } from "../wire/run-rules.ts";
import type { RuleAct } from "../wire/run-rules.ts";
import type { Call } from "./call.ts";
import { hintChanges } from "./session-hint.ts";
import type { Target } from "./upstream-request.ts";

/** What was sent in a request's place, where that decides what it may cost. */
interface Repriced {
  dialect: DialectName;
  body: Json;
  /** By which the prompt got longer, estimated. */
  addedTokens: number;
}

/** What a channel's rules did, for the log and for the price. */
export interface RulesDone {
  acts: RuleAct[];
  headerActs: readonly RuleAct[];
  /** Tokens of the channel's own system prompt, estimated; 0 where it has none or the client's stands. */
  promptTokens: number;
  repriced: Repriced | undefined;
}

export interface Ruled {
  /** Top-level members that differ from the input's; undefined takes one out. */
  changes: Record<string, unknown>;
  /** Names of what was left out. */
  dropped: string[];
  done: RulesDone | undefined;
}

/** Members by which a request gets dearer, whatever its dialect, or is kept; and those that hold its prompt. */
const PRICED: ReadonlySet<string> = new Set([
  "store",
  "n",
  "best_of",
  "size",
  "quality",
  "seconds",
  "duration",
  "resolution",
  "max_tokens",
  "max_completion_tokens",
  "max_output_tokens",
  "generationConfig",
  "generation_config",
  "service_tier",
  "serviceTier",
  "speed",
  "modalities",
  "thinking",
  "reasoning",
  "reasoning_effort",
  "web_search_options",
]);
const PROMPTS: ReadonlySet<string> = new Set([
  "messages",
  "input",
  "contents",
  "system",
  "instructions",
  "systemInstruction",
  "system_instruction",
  "prompt",
  "documents",
  "query",
  "tools",
]);

function factsOf(call: Call, model: string): RuleFacts {
  const { caller, attempts, lastFailure } = call;
  const facts: RuleFacts = {
    model,
    original_model: call.model,
    upstream_model: model,
    user_id: caller.user.id,
    user_group: caller.user.group,
    token_group: caller.token?.group ?? "",
    using_group: call.group,
    request_path: pathOf(call.request.url),
    retry_index: attempts.length,
    is_retry: attempts.length > 0,
    is_channel_test: call.isTest,
  };
  if (lastFailure)
    facts.last_error = {
      status_code: lastFailure.upstreamStatus ?? lastFailure.status,
      code: String(lastFailure.wireCode ?? lastFailure.code),
      type: lastFailure.type ?? "",
      message: lastFailure.upstreamText ?? "",
    };
  return facts;
}

function pathOf(url: string): string {
  return URL.canParse(url) ? new URL(url).pathname : "";
}

function withoutUndefined(body: Json): Record<string, unknown> {
  const kept: Record<string, unknown> = {};
  for (const key in body) if (body[key] !== undefined) kept[key] = body[key];
  return kept;
}

function withChanges(body: Json, changes: Json): Record<string, unknown> {
  return withoutUndefined({ ...body, ...changes });
}

function differences(before: Json, after: Json): Record<string, unknown> {
  const changes: Record<string, unknown> = {};
  for (const key in after) if (after[key] !== before[key]) changes[key] = after[key];
  for (const key in before)
    if (before[key] !== undefined && after[key] === undefined) changes[key] = undefined;
  return changes;
}

/** Where a rule's headers are read and written. */
function headerPath({ call, key }: Target, headers: Record<string, string>): HeaderPath {
  return { headers, client: call.request.headers, key };
}

/** The prompt that a channel puts into conversations. */
function promptOf({ setting }: Channel): string {
  return typeof setting.system_prompt === "string" ? setting.system_prompt.trim() : "";
}

const textTokens = (value: unknown): number =>
  value === undefined ? 0 : estimateTokens(typeof value === "string" ? value : JSON.stringify(value));

/** Undefined where nothing changed that a price, a hold or the length of the prompt follows from. */
function repricedBy(dialect: DialectName, before: Json, after: Json): Repriced | undefined {
  const changed = Object.keys(differences(before, after));
  if (!changed.some((key) => PRICED.has(key) || PROMPTS.has(key))) return undefined;
  const added = changed
    .filter((key) => PROMPTS.has(key))
    .reduce((sum, key) => sum + textTokens(after[key]) - textTokens(before[key]), 0);
  return { dialect, body: after, addedTokens: Math.max(0, added) };
}

interface RuledBody {
  body: Record<string, unknown>;
  done: RulesDone;
}

/** System prompt and rules of a channel that has some, and before them those of the rule that names the session. */
function runChannel(target: Target, built: ProviderRequest, dialect: DialectName, input: Json): RuledBody {
  const { call, channel } = target;
  const { paramOverride: fields, operations, setting } = channel;
  if (fields === null) throw new Failure("internal", "param_override_broken");
  const acts: RuleAct[] = [];
  const before = withoutUndefined(input);
  let body = before;
  let promptTokens = 0;
  const prompt = call.endpoint.isConversation ? promptOf(channel) : "";
  const prompted =
    prompt === ""
      ? undefined
      : systemPromptChanges(dialect, body, prompt, setting.system_prompt_override === true);
  if (prompted) {
    body = withChanges(body, prompted);
    promptTokens = estimateTokens(prompt);
    acts.push({ mode: "system_prompt", path: Object.keys(prompted).join(", ") });
  }
  const path = headerPath(target, built.headers);
  const about = { facts: factsOf(call, built.model), isModelInAddress: dialect === "gemini" };
  const template = call.affinity?.template;
  if (template) {
    const first = runRules(template, body, path, about);
    ({ body } = first);
    acts.push(...first.acts);
  }
  const run = runRules({ fields, operations }, body, path, about);
  acts.push(...run.acts);
  const repriced = repricedBy(dialect, before, run.body);
  return { body: run.body, done: { acts, headerActs: [], promptTokens, repriced } };
}

/** Undefined where the request stays as it is. `tiers`: which service tiers may be asked for. */
export function applyRules(
  target: Target,
  built: ProviderRequest,
  input: Json,
  tiers: TierGates,
): Ruled | undefined {
  const { channel, row, call } = target;
  const { dialect } = built.route;
  const dropped: string[] = [];
  let body = input;
  if (row.betas && dialect === "anthropic") {
    const ruling = applyBetas(row.betas, built.headers, body);
    if (ruling) {
      ({ body } = ruling);
      dropped.push(...ruling.dropped);
    }
  }
  const hinted = hintChanges(target.context.seal, channel, call, { dialect, body });
  if (hinted) body = withChanges(body, hinted);
  let done: RulesDone | undefined;
  if (channel.hasRules || call.affinity?.template) {
    ({ body, done } = runChannel(target, built, dialect, body));
    // What a rule asks for is held against the same gates as what a client does.
    const tier = call.endpoint.isConversation ? gatedTier(dialect, body, tiers) : undefined;
    if (tier) {
      body = withChanges(body, tier);
      dropped.push(...tierNames(tier));
    }
  }
  const gated = call.endpoint.isConversation ? gatedFields(dialect, body, channel.setting) : undefined;
  if (gated) {
    body = withChanges(body, gated.changes);
    dropped.push(...gated.names);
  }
  if (body === input) return undefined;
  const changes = differences(input, body);
  if (done?.repriced) done.repriced.body = body;
  return { changes, dropped, done };
}

/** Headers on their way to a channel: changed in place. What its `header_override` did, or undefined where it has none. */
export function applyHeaderRules({
  channel: { headerRules },
  ...path
}: HeaderPath & { channel: Pick<Channel, "headerRules"> }): readonly RuleAct[] | undefined {
  return headerRules && overrideHeaders(path, headerRules);
}
