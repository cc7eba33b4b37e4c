// The prices of Pydantic's genai-prices: providers, models, tiers, start dates, daily hours and tiers of service.
// Refuses to guess a name: a model is priced under its id, what its match equals, and the names it is asked about.
import type { PriceRow, PriceRule, TokenKind, TokenPrices } from "../../../shared/price-row.ts";
import { isSameRow, TOKEN_KINDS } from "../../../shared/price-row.ts";
import { BadEntry, badSource, collector, dollarsOf, isRecord, jsonOf, overRules } from "./source.ts";
import type { SourcePrices } from "./source.ts";

/** Whose prices a bare model name has, the first that knows it; resellers are none of them. */
export const MAKERS = [
  "openai",
  "anthropic",
  "google",
  "x-ai",
  "deepseek",
  "mistral",
  "moonshotai",
  "minimax",
  "zai",
  "zhipuai",
  "cohere",
  "perplexity",
  "groq",
] as const;

interface Wanted {
  /** The moment of which the prices are, Unix milliseconds: what began later becomes an entry of its own. */
  atMs: number;
  /** Names that are priced too where a model's match takes them. */
  names?: readonly string[];
}

const FIELD_KINDS: Readonly<Record<string, TokenKind>> = {
  input_mtok: "in",
  output_mtok: "out",
  output_reasoning_mtok: "thinking",
  cache_read_mtok: "cache_read",
  cache_write_mtok: "cache_write",
  cache_write_1h_mtok: "cache_write_1h",
  input_image_mtok: "image_in",
  output_image_mtok: "image_out",
  input_audio_mtok: "audio_in",
  output_audio_mtok: "audio_out",
};

const TOOL_FIELDS: Readonly<Record<string, string>> = {
  web_searches_kcount: "web_search",
  storage_searches_kcount: "file_search",
};

/** Calls count one kind of cached input, which is priced as cached text: what else is cached is rare and little. */
const UNREAD_FIELDS: ReadonlySet<string> = new Set(["cache_audio_read_mtok", "cache_image_read_mtok"]);
/** Calls do not tell frames of a video from pictures. */
const VIDEO_FIELD = "input_video_mtok";

interface Steps {
  base: PriceRow;
  /** Prices above a threshold of input. */
  over: Map<number, PriceRow>;
}

function dearest(row: TokenPrices, kind: TokenKind, price: number): void {
  row[kind] = Math.max(row[kind] ?? 0, price);
}

function putPrice(steps: Steps, kind: TokenKind, value: unknown, field: string): void {
  if (!isRecord(value)) {
    const price = dollarsOf(value, field);
    if (price !== undefined) dearest(steps.base, kind, price);
    return;
  }
  const base = dollarsOf(value["base"], field);
  if (base === undefined || !Array.isArray(value["tiers"])) throw new BadEntry("number", field);
  dearest(steps.base, kind, base);
  for (const tier of value["tiers"] as unknown[]) {
    if (!isRecord(tier)) throw new BadEntry("number", field);
    const { start } = tier;
    const price = dollarsOf(tier["price"], field);
    if (typeof start !== "number" || !Number.isSafeInteger(start) || start < 0 || price === undefined)
      throw new BadEntry("number", field);
    let step = steps.over.get(start);
    if (!step) steps.over.set(start, (step = {}));
    dearest(step, kind, price);
  }
}

function stepsOf(prices: unknown): Steps {
  if (!isRecord(prices)) throw new BadEntry("number", "prices");
  const steps: Steps = { base: {}, over: new Map() };
  for (const [field, value] of Object.entries(prices)) {
    const tool = Object.hasOwn(TOOL_FIELDS, field) ? TOOL_FIELDS[field] : undefined;
    if (Object.hasOwn(FIELD_KINDS, field)) putPrice(steps, FIELD_KINDS[field] ?? "in", value, field);
    else if (field === VIDEO_FIELD) putPrice(steps, "image_in", value, field);
    else if (tool !== undefined) {
      const price = dollarsOf(value, field);
      if (price !== undefined) (steps.base.tools ??= {})[tool] = price;
    } else if (!UNREAD_FIELDS.has(field)) throw new BadEntry("unit", field);
  }
  return steps;
}

/** The same for prices that are a model's own: something of it must cost or be free. */
function wholeSteps(prices: unknown): Steps {
  const steps = stepsOf(prices);
  if (steps.base.in === undefined && steps.base.out === undefined) throw new BadEntry("unit", "");
  steps.base.in ??= 0;
  return steps;
}

const pricesOf = (row: PriceRow): TokenPrices =>
  Object.fromEntries(
    TOKEN_KINDS.flatMap((kind) => (row[kind] === undefined ? [] : [[kind, row[kind]]])),
  ) as TokenPrices;

const CLOCK = /^(\d\d):(\d\d)/;

function minutesOf(value: unknown): number {
  const match = typeof value === "string" ? CLOCK.exec(value) : null;
  if (!match) throw new BadEntry("unit", "time_of_date");
  return Number(match[1]) * 60 + Number(match[2]);
}

const clockOf = (minutes: number): string =>
  `${String(Math.floor(minutes / 60)).padStart(2, "0")}:${String(minutes % 60).padStart(2, "0")}`;

const MINUTES_PER_DAY = 1440;

interface Window {
  start: number;
  end: number;
  steps: Steps;
}

/** Which entry is in force in each stretch of the day: `undefined` for the one that knows no hours. */
function stretches(windows: readonly Window[]): { hours: string; window: Window | undefined }[] {
  const cuts = new Set([0, MINUTES_PER_DAY]);
  for (const { start, end } of windows) {
    cuts.add(start);
    cuts.add(end);
  }
  const sorted = [...cuts].toSorted((a, b) => a - b);
  return sorted.slice(0, -1).map((start, index) => {
    const isIn = (each: Window) =>
      each.start < each.end
        ? start >= each.start && start < each.end
        : start >= each.start || start < each.end;
    return {
      hours: `${clockOf(start)}-${clockOf(sorted[index + 1] ?? MINUTES_PER_DAY)}`,
      window: windows.findLast(isIn),
    };
  });
}

/** The dearest of the day is the base, so that whoever reads no hours never sells below cost. */
function withWindows(allDay: Steps, windows: readonly Window[]): Steps & { rules: PriceRule[] } {
  const sum = ({ base }: Steps) => (base.in ?? 0) + (base.out ?? 0);
  const candidates = [allDay, ...windows.map(({ steps }) => steps)];
  const top = candidates.reduce((best, each) => (sum(each) > sum(best) ? each : best));
  const cheaper = new Map<string, { hours: string[]; set: TokenPrices }>();
  for (const { hours, window } of stretches(windows)) {
    const steps = window?.steps ?? allDay;
    if (isSameRow(pricesOf(steps.base), pricesOf(top.base))) continue;
    const set = pricesOf(steps.base);
    const key = JSON.stringify(set);
    const entry = cheaper.get(key);
    if (entry) entry.hours.push(hours);
    else cheaper.set(key, { hours: [hours], set });
  }
  return { ...top, rules: [...cheaper.values()].map(({ hours, set }) => ({ hours, tz: "UTC", set })) };
}

function startOf(constraint: unknown): number | undefined {
  if (!isRecord(constraint) || constraint["type"] !== "start_date") return undefined;
  const at = Date.parse(String(constraint["start_date"]));
  if (Number.isNaN(at)) throw new BadEntry("unit", "start_date");
  return at;
}

/** What begins later, as far as it is a price of tokens: while the cheaper of the two is in force it is the exception. */
function scheduled(now: Steps, next: Steps, from: string): { base: Steps; rule: PriceRule } {
  const isDearer = (next.base.in ?? 0) + (next.base.out ?? 0) > (now.base.in ?? 0) + (now.base.out ?? 0);
  return isDearer
    ? { base: next, rule: { until: from, set: pricesOf(now.base) } }
    : { base: now, rule: { from, set: pricesOf(next.base) } };
}

function tierRules(model: Record<string, unknown>): PriceRule[] {
  const variants = model["price_variants"];
  if (!Array.isArray(variants)) return [];
  return (variants as unknown[]).flatMap((variant): PriceRule[] => {
    if (!isRecord(variant) || !isRecord(variant["when"]) || variant["constraint"]) return [];
    const asked = Object.entries(variant["when"]);
    const [name, tier] = asked[0] ?? [];
    if (asked.length !== 1 || (name !== "service_tier" && name !== "processing") || typeof tier !== "string")
      return [];
    const { base, over } = stepsOf(variant["prices"]);
    const set = pricesOf(base);
    if (Object.keys(set).length === 0) return [];
    return [{ tier, set }, ...overRules(over).map((rule) => ({ ...rule, tier }))];
  });
}

function rowOf(model: Record<string, unknown>, { atMs }: Wanted): PriceRow {
  const { prices } = model;
  const list: unknown[] = Array.isArray(prices) ? prices : [{ prices }];
  let current: Steps | undefined;
  let next: { steps: Steps; from: string } | undefined;
  const windows: Window[] = [];
  for (const entry of list) {
    if (!isRecord(entry)) throw new BadEntry("number", "prices");
    const { constraint } = entry;
    const steps = wholeSteps(entry["prices"]);
    const start = startOf(constraint);
    if (!constraint || (start !== undefined && start <= atMs)) current = steps;
    else if (start !== undefined)
      next = { steps, from: String((constraint as Record<string, unknown>)["start_date"]) };
    else if (isRecord(constraint) && constraint["type"] === "time_of_date")
      windows.push({
        start: minutesOf(constraint["start_time"]),
        end: minutesOf(constraint["end_time"]),
        steps,
      });
    else throw new BadEntry("unit", "constraint");
  }
  current ??= windows[0]?.steps;
  if (!current) throw new BadEntry("unit", "start_date");
  const day = withWindows(current, windows);
  const change = next && scheduled(day, next.steps, next.from);
  const steps = change?.base ?? day;
  const when = [
    ...overRules(steps.over),
    ...day.rules,
    ...(change ? [change.rule] : []),
    ...tierRules(model),
  ];
  return when.length > 0 ? { ...steps.base, when } : steps.base;
}

/** Whether a model's match takes the name. */
function matches(match: unknown, name: string): boolean {
  if (!isRecord(match)) return false;
  return Object.entries(match).some(([kind, value]) => {
    if (kind === "or" || kind === "and") {
      const parts = Array.isArray(value) ? (value as unknown[]) : [];
      return kind === "or"
        ? parts.some((each) => matches(each, name))
        : parts.every((each) => matches(each, name));
    }
    if (typeof value !== "string") return false;
    if (kind === "equals") return name === value;
    if (kind === "starts_with") return name.startsWith(value);
    if (kind === "ends_with") return name.endsWith(value);
    return kind === "contains" ? name.includes(value) : kind === "regex" && isMatch(value, name);
  });
}

function isMatch(pattern: string, name: string): boolean {
  try {
    return new RegExp(pattern).test(name);
  } catch {
    return false;
  }
}

function equalNames(match: unknown): string[] {
  if (!isRecord(match)) return [];
  if (typeof match["equals"] === "string") return [match["equals"]];
  const parts = match["or"];
  return Array.isArray(parts) ? (parts as unknown[]).flatMap(equalNames) : [];
}

/** Fine-tuned models have names of their own behind this beginning. */
const isRealName = (name: string) => !name.startsWith("ft:") && !/[-.:]$/.test(name);

/** Rows of the makers' models by the names that they are called by. */
export function readGenaiPrices(text: string, wanted: Wanted): SourcePrices {
  const parsed = jsonOf(text, "genai-prices");
  const providers: unknown = isRecord(parsed) ? parsed["providers"] : parsed;
  if (!Array.isArray(providers)) throw badSource("genai-prices");
  const byId = new Map((providers as unknown[]).filter(isRecord).map((each) => [each["id"], each]));
  const found = collector();
  const taken = new Set<string>();
  const open = new Set(wanted.names ?? []);
  for (const maker of MAKERS) {
    const models = byId.get(maker)?.["models"];
    if (!Array.isArray(models)) continue;
    const own = new Set<string>();
    for (const model of (models as unknown[]).filter(isRecord)) {
      found.entry(model["id"], (id, add) => {
        const asked = [...open].filter((name) => matches(model["match"], name));
        const names = [...new Set([id, ...equalNames(model["match"]), ...asked])].filter(
          (name) => isRealName(name) && !taken.has(name) && !own.has(name),
        );
        // Claimed before the price is read: what is dropped here must not get a reseller's price.
        for (const name of names) own.add(name);
        const row = rowOf(model, wanted);
        for (const name of names) {
          add(row, name);
          found.limits(name, { context: model["context_window"] });
        }
      });
    }
    for (const name of own) taken.add(name);
    for (const name of own) open.delete(name);
  }
  return found.result();
}
