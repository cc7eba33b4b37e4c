// Where a session stays: what of a request names it, which channel and key it is bound to, and what becomes of that with each call.
// A binding is a wish: whatever is off, resting, full, or has failed in this call is passed by, and whoever answers is bound.
import { RE2JS } from "re2js";
import { FINGERPRINT_CHARS, STORED_RULE } from "../../core/channels/affinity.ts";
import type { Binding, Strength } from "../../core/channels/affinity.ts";
import type { PickedChannel, Picker } from "../../core/channels/picker.ts";
import type { Channel } from "../../core/channels/rows.ts";
import type { CacheUse, Deps } from "../../core/deps.ts";
import type { AffinityRule, AffinitySource } from "../../shared/affinity-rules.ts";
import { ChannelStatus, KeyStatus } from "../../shared/enums.ts";
import { readRequestRules, segmentsOf } from "../../shared/request-rules.ts";
import type { RequestRules } from "../../shared/request-rules.ts";
import { NAMED_RULES, sessionNameOf } from "../endpoints/session-name.ts";
import type { SessionName } from "../endpoints/session-name.ts";
import { valueAt } from "../wire/rule-paths.ts";
import { TURN_STATE, turnStateHome } from "../wire/turn-state.ts";
import { completionTokens, promptTokens } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";
import type { Caller } from "./admission.ts";
import { groupsOf } from "./auto-group.ts";
import type { Call } from "./call.ts";

/** Where a session was. */
type Home = Pick<Binding, "channelId" | "keyHash" | "isMixed">;

/** Why a session is served elsewhere than it was. */
type LeftFor = "off" | "unserved" | "failed" | "unfit" | "key_off" | "resting" | "full";

/** What of a call decides where it stays, and what became of that. */
export interface CallAffinity {
  /** Name of the rule; of what comes by itself, where it was found. */
  readonly rule: string;
  /** Where its value stood. */
  readonly source: string;
  readonly strength: Exclude<Strength, "must">;
  readonly ttlMs: number;
  readonly skipsRetry: boolean;
  /** Run before the channel's own rules; undefined: none. */
  readonly template: RequestRules | undefined;
  /** The id of its binding in a group. */
  idIn(group: string): string;
  /** Who gave the turn state that the call brings back: known also where no binding is left. */
  readonly turn: Home | undefined;
  /** Bindings that were found for it, the first first. */
  readonly seen: Home[];
  /** Why the last one that was found is not followed. */
  leftFor: LeftFor | undefined;
  /** Its upstream could not read the proofs in its conversation, and got it without them. */
  wasRejected: boolean;
  /** The attempt under way is where it was bound. */
  isBound: boolean;
  /** Once it is served: as the log tells it. */
  state: "new" | "kept" | "switched" | undefined;
  /** First eight digits of its id in the group that served. */
  fingerprint: string;
}

interface CompiledRule {
  rule: AffinityRule;
  models: readonly RE2JS[];
  paths: readonly RE2JS[];
  agents: readonly string[];
  value: RE2JS | undefined;
  template: RequestRules | undefined;
}

const compiled = new WeakMap<readonly AffinityRule[], readonly CompiledRule[]>();

/** Once for each text of the option. */
function compiledRules(rules: readonly AffinityRule[]): readonly CompiledRule[] {
  const known = compiled.get(rules);
  if (known) return known;
  const made = rules.flatMap(compiledRule);
  compiled.set(rules, made);
  return made;
}

/** A rule that was stored by who checks less is nobody's: calls go on without it. */
function compiledRule(rule: AffinityRule): CompiledRule[] {
  const hasTemplate = Object.keys(rule.param_override_template).length > 0;
  try {
    return [
      {
        rule,
        models: rule.model_regex.map((pattern) => RE2JS.compile(pattern)),
        paths: rule.path_regex.map((pattern) => RE2JS.compile(pattern)),
        agents: rule.user_agent_include.map((part) => part.toLowerCase()),
        value: rule.value_regex === "" ? undefined : RE2JS.compile(rule.value_regex),
        template: hasTemplate ? readRequestRules(rule.param_override_template).rules : undefined,
      },
    ];
  } catch {
    return [];
  }
}

type NamedCall = Pick<Call, "request" | "endpoint" | "caller" | "body" | "model">;

function contextValue({ user, token, tokenName, group }: Caller, key: string): string {
  const facts: Record<string, string | number | undefined> = {
    id: user.id,
    token_id: token?.id,
    username: user.username,
    token_name: token?.name ?? tokenName,
    group: user.group,
    user_group: user.group,
    token_group: token?.group,
    using_group: group,
  };
  return String(facts[key] ?? "");
}

function sourceValue({ request, body, caller }: NamedCall, { type, key, path }: AffinitySource): string {
  if (type === "request_header") return request.headers.get(key) ?? "";
  if (type !== "gjson") return contextValue(caller, key);
  const { value } = valueAt(body.json, segmentsOf(path));
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean"
    ? String(value)
    : "";
}

const isMet = (patterns: readonly RE2JS[], text: string): boolean =>
  patterns.length === 0 || patterns.some((pattern) => pattern.matcher(text).find());

interface Named extends SessionName {
  compiled: CompiledRule | undefined;
}

/** The first rule that the request meets and that finds a value. */
function namedByRule(call: NamedCall, rules: readonly CompiledRule[]): Named | undefined {
  const { pathname } = new URL(call.request.url);
  const agent = call.request.headers.get("user-agent")?.toLowerCase() ?? "";
  for (const each of rules) {
    const { rule, models, paths, agents, value: wanted } = each;
    if (!isMet(models, call.model) || !isMet(paths, pathname)) continue;
    if (agents.length > 0 && !agents.some((part) => agent.includes(part))) continue;
    for (const source of rule.key_sources) {
      const value = sourceValue(call, source).trim();
      if (value === "" || (wanted && !wanted.matcher(value).find())) continue;
      const found = `${source.type} ${source.type === "gjson" ? source.path : source.key}`;
      return { rule: rule.name, source: found, value, ttlSeconds: rule.ttl_seconds, compiled: each };
    }
  }
  return undefined;
}

/** Whether there is anything to choose: most sites of one person have one channel with one key. */
function hasChoice({ routing }: Pick<Deps, "routing">, caller: Caller, model: string): boolean {
  const groups = groupsOf(caller);
  if (groups.length > 1) return true;
  const tiers = routing.tiers(groups[0] ?? caller.group, model);
  const [first] = tiers;
  if (!first || tiers.length > 1 || first.entries.length > 1) return first !== undefined;
  return (first.entries[0]?.channel.keys.length ?? 0) > 1;
}

/** One look for all: a search for each of them takes ten times as long. */
const PROOF = /"encrypted_content"|"signature"|hought_?[Ss]ignature/;

/** What only the account that made it can read. */
function bringsProof({ body, request }: NamedCall): boolean {
  return PROOF.test(body.text) || request.headers.has(TURN_STATE);
}

/** Undefined where nothing names a session, or nothing is to choose and nothing bound. */
export function affinityOf(
  deps: Pick<Deps, "options" | "routing" | "affinity" | "seal">,
  call: NamedCall,
): CallAffinity | undefined {
  const { options, affinity } = deps;
  if (!options.get("channel_affinity_setting.enabled")) return undefined;
  const rules = options.get("channel_affinity_setting.rules");
  // Where the last choice has gone, bindings still say whose proofs a call brings back.
  const mayBeBound = (): boolean => !affinity.isEmpty() || (affinity.isShared && bringsProof(call));
  if (rules.length === 0 && !mayBeBound() && !hasChoice(deps, call.caller, call.model)) return undefined;
  const named =
    (rules.length > 0 ? namedByRule(call, compiledRules(rules)) : undefined) ??
    (call.endpoint.isConversation ? byItself(call) : undefined);
  if (!named) return undefined;
  const { rule, source, value, ttlSeconds } = named;
  const settings = named.compiled?.rule;
  const name = {
    userId: call.caller.user.id,
    model: settings?.include_model_name === false ? "" : call.model,
    rule: settings?.include_rule_name === false ? "" : rule,
    value,
  };
  const ids = new Map<string, string>();
  const seconds = ttlSeconds > 0 ? ttlSeconds : options.get("channel_affinity_setting.default_ttl_seconds");
  return {
    rule,
    source,
    strength: bringsProof(call) ? "own" : "prefer",
    ttlMs: seconds * 1000,
    skipsRetry: settings?.skip_retry_on_failure === true,
    template: named.compiled?.template,
    idIn(group) {
      let id = ids.get(group);
      if (id === undefined) ids.set(group, (id = affinity.idOf({ ...name, group })));
      return id;
    },
    turn: turnHomeOf(deps, call),
    seen: [],
    leftFor: undefined,
    wasRejected: false,
    isBound: false,
    state: undefined,
    fingerprint: "",
  };
}

function turnHomeOf(
  { seal, routing }: Pick<Deps, "seal" | "routing">,
  { request, caller }: NamedCall,
): Home | undefined {
  const state = request.headers.get(TURN_STATE);
  const home = state === null ? undefined : turnStateHome(seal, caller.user.id, state);
  const channel = home && routing.channel(home.channelId);
  const keyIndex = channel?.keys.findIndex(home?.isKey ?? (() => false)) ?? -1;
  const keyHash = channel?.keyRows[keyIndex]?.hash;
  return channel && keyHash !== undefined ? { channelId: channel.id, keyHash, isMixed: false } : undefined;
}

function byItself({ request, endpoint, body }: NamedCall): Named | undefined {
  const found = sessionNameOf(request.headers, endpoint.dialect, body);
  return found && { ...found, compiled: undefined };
}

/**
 * Where this node does not know the session other nodes are asked, for some milliseconds at most. Undefined: nothing is waited
 * for.
 */
export function recallSession(
  { affinity, clock }: Pick<Deps, "affinity" | "clock">,
  { affinity: session, caller }: Pick<Call, "affinity" | "caller">,
): Promise<void> | undefined {
  if (!session || !affinity.isShared) return undefined;
  return affinity.recall(
    groupsOf(caller).map((group) => session.idIn(group)),
    clock.monotonicMs(),
  );
}

/** What a look at bindings needs of the attempts of a call. */
export interface BoundRequest {
  caller: Caller;
  model: string;
  affinity: CallAffinity;
  /** Of the prompt, as far as they are known. */
  tokens: number;
  accepts: (channel: Channel) => boolean;
  excluded: ReadonlySet<number>;
}

interface AffinityServices {
  deps: Pick<Deps, "routing" | "keyring" | "caps" | "affinity" | "options" | "clock">;
  picker: Picker;
}

/** Channel and key that the session is bound to, where they may be asked now; they are: whoever rested is tried by this call. */
export function boundPlace(
  services: AffinityServices,
  request: BoundRequest,
  nowMs: number,
): (PickedChannel & { keyIndex: number }) | undefined {
  const found = boundHome(services, request, nowMs);
  request.affinity.isBound = found !== undefined;
  if (!found) return undefined;
  const { deps, picker } = services;
  if (!picker.isCalm(nowMs)) picker.take(found.channel, request.model, nowMs);
  deps.keyring.take(found.channel, found.keyIndex, request.model, nowMs);
  return found;
}

/**
 * A session that somebody asks about, by the name that its client gives it, wherever that would stand, or by its fingerprint;
 * undefined: it is bound nowhere.
 */
export async function boundSession(
  { affinity, options, clock }: Pick<Deps, "affinity" | "options" | "clock">,
  caller: Caller,
  { model, session }: { model: string; session: string },
): Promise<CallAffinity | undefined> {
  const nowMs = clock.monotonicMs();
  const known = session.length === FINGERPRINT_CHARS ? await affinity.idWith(session, nowMs) : undefined;
  const named = (rule: string, ofModel: string) => (group: string) =>
    affinity.idOf({ userId: caller.user.id, group, model: ofModel, rule, value: session });
  const ids = known
    ? [() => known]
    : [
        ...options
          .get("channel_affinity_setting.rules")
          .map(({ name, include_model_name: ofModel, include_rule_name: ofRule }) =>
            named(ofRule ? name : "", ofModel ? model : ""),
          ),
        ...NAMED_RULES.map((rule) => named(rule, model)),
      ];
  const groups = groupsOf(caller);
  await affinity.recall(
    ids.flatMap((id) => groups.map(id)),
    nowMs,
  );
  const idIn = ids.find((id) => groups.some((group) => affinity.find(id(group), nowMs)));
  return (
    idIn && {
      rule: "",
      source: "",
      strength: "prefer",
      ttlMs: 0,
      skipsRetry: false,
      template: undefined,
      idIn,
      turn: undefined,
      seen: [],
      leftFor: undefined,
      wasRejected: false,
      isBound: false,
      state: undefined,
      fingerprint: "",
    }
  );
}

/** The same as `boundPlace` without asking anybody. */
export function boundHome(
  services: AffinityServices,
  request: BoundRequest,
  nowMs: number,
): (PickedChannel & { keyIndex: number }) | undefined {
  const { affinity } = request;
  const { turn } = affinity;
  for (const group of groupsOf(request.caller)) {
    const binding = services.deps.affinity.find(affinity.idIn(group), nowMs) ?? turn;
    if (!binding) continue;
    if (!affinity.seen.includes(binding)) affinity.seen.push(binding);
    const found = followed(services, request, { binding, group }, nowMs);
    if (typeof found === "string") {
      affinity.leftFor = found;
      continue;
    }
    return { ...found, group };
  }
  return undefined;
}

/** Why the binding is not followed, or where it leads. */
function followed(
  { deps, picker }: AffinityServices,
  { model, tokens, accepts, excluded }: BoundRequest,
  { binding, group }: { binding: Home; group: string },
  nowMs: number,
): { channel: Channel; keyIndex: number } | LeftFor {
  const channel = deps.routing.channel(binding.channelId);
  if (channel?.status !== ChannelStatus.enabled) return "off";
  if (!channel.groups.includes(group) || !channel.models.includes(model)) return "unserved";
  if (excluded.has(channel.id)) return "failed";
  if (!accepts(channel)) return "unfit";
  const keyIndex = keyIn(channel, binding);
  if (keyIndex === -1) return "key_off";
  if (deps.keyring.restOf(channel, keyIndex, model, nowMs)) return "resting";
  if (!picker.isCalm(nowMs) && !picker.isUsable(channel, model, nowMs)) return "resting";
  if (channel.isCapped && !deps.caps.hasRoom(channel, keyIndex, tokens, nowMs)) return "full";
  return { channel, keyIndex };
}

/** Place of the bound key, where it is still there and on. */
function keyIn({ keyRows }: Channel, { keyHash }: Home): number {
  return keyRows.findIndex(({ hash, status }) => hash === keyHash && status === KeyStatus.on);
}

/** Channel and key answered: the session stays there from now on. */
export function keepServed(
  { deps }: AffinityServices,
  { affinity, model }: Pick<BoundRequest, "affinity" | "model">,
  { channel, keyIndex, group }: { channel: Channel; keyIndex: number; group: string },
): void {
  const { routing, options, clock } = deps;
  const nowMs = clock.monotonicMs();
  const id = affinity.idIn(group);
  const keyHash = channel.keyRows[keyIndex]?.hash ?? "";
  const [before] = affinity.seen;
  const known = deps.affinity.find(id, nowMs);
  // Of a call that goes on from a stored response nobody looked.
  const home = before ?? known;
  const isHome = home?.channelId === channel.id && home.keyHash === keyHash;
  affinity.fingerprint = id.slice(0, FINGERPRINT_CHARS);
  affinity.state = isHome ? "kept" : before ? "switched" : "new";
  if (known?.channelId === channel.id && known.keyHash === keyHash) {
    known.strength = affinity.strength;
    if (affinity.wasRejected) known.isMixed = true;
    deps.affinity.keep(id, known, nowMs, isOfTopTier(routing, channel, { group, model }));
    return;
  }
  if (known && stays(deps, affinity, known, options.get("channel_affinity_setting.switch_on_success")))
    return;
  const { strength, rule, ttlMs } = affinity;
  deps.affinity.bind(
    id,
    { channelId: channel.id, keyHash, strength, rule, ttlMs, isMixed: affinity.wasRejected },
    nowMs,
  );
}

/**
 * Whether the call goes without its proofs: another account made them, or the one that is asked has said of this conversation that
 * it cannot read them.
 */
export function leavesProofs(
  affinity: CallAffinity | undefined,
  { channel, keyIndex }: { channel: Channel; keyIndex: number },
): boolean {
  const [home] = affinity?.strength === "own" ? (affinity?.seen ?? []) : [];
  if (!home) return false;
  const isHome = home.channelId === channel.id && home.keyHash === channel.keyRows[keyIndex]?.hash;
  return home.isMixed || !isHome;
}

/** Another call of the session has bound it meanwhile, or only what is gone may be replaced. */
function stays(
  { routing }: Pick<Deps, "routing">,
  { seen }: CallAffinity,
  known: Binding,
  switches: boolean,
): boolean {
  if (switches && seen.includes(known)) return false;
  const channel = routing.channel(known.channelId);
  return channel?.status === ChannelStatus.enabled && keyIn(channel, known) !== -1;
}

/** What serves in a better one's place serves for one time only: the session goes back when that is over. */
function isOfTopTier(
  routing: Deps["routing"],
  { priority }: Channel,
  { group, model }: { group: string; model: string },
): boolean {
  const [top] = routing.tiers(group, model);
  return !top || priority >= top.priority;
}

/** By which rule the call found its place, and whether it was the old one; undefined: by none. */
export function placedBy({
  affinity,
  pinnedKey,
}: Pick<Call, "affinity" | "pinnedKey">): { rule: string; state: "new" | "kept" | "switched" } | undefined {
  if (pinnedKey !== undefined) return { rule: STORED_RULE, state: "kept" };
  return affinity?.state === undefined ? undefined : { rule: affinity.rule, state: affinity.state };
}

/** As the log row tells it to administrators; nothing of the value but its fingerprint. Undefined: no session, and nothing stored. */
export function affinityNote({
  affinity,
  pinnedKey,
}: Pick<Call, "affinity" | "pinnedKey">): Record<string, unknown> | undefined {
  if (pinnedKey !== undefined)
    return { rule_name: STORED_RULE, key_source: "previous_response_id", strength: "must", state: "kept" };
  if (affinity?.state === undefined) return undefined;
  const { rule, source, fingerprint, strength, state, leftFor, seen } = affinity;
  const [before] = seen;
  return {
    rule_name: rule,
    key_source: source,
    key_fp: fingerprint,
    strength,
    state,
    ...(state === "switched" && leftFor !== undefined ? { reason: leftFor } : {}),
    ...(state === "switched" && before ? { from_channel: before.channelId } : {}),
  };
}

/** The call is settled: what it used is told with its session's binding. */
export function noteUse(
  deps: Pick<Deps, "affinity">,
  { affinity, group }: Pick<Call, "affinity" | "group">,
  usage: Usage,
  { read: cachedTokens }: CacheUse,
): void {
  if (!affinity) return;
  const use = { promptTokens: promptTokens(usage), completionTokens: completionTokens(usage), cachedTokens };
  deps.affinity.used(affinity.idIn(group), use);
}
