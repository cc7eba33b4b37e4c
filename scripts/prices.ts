// Makes src/core/prices/shipped-prices.json out of kept sources: `bun scripts/prices.ts`, without the network.
// `--data FILE` takes genai-prices' data.json in place of the package; `--date DAY` says of which day the prices are;
// `--cut FILE` renews prices-extra.json from LiteLLM's table; `--check FILE` lists what that table says differently.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { defaultModelPrice, defaultModelRatio } from "../src/core/options/default-prices.ts";
import { MAKERS, readGenaiPrices } from "../src/core/prices/sources/genai-prices.ts";
import { readLiteLlm } from "../src/core/prices/sources/litellm.ts";
import type { DroppedEntry, ModelLimits } from "../src/core/prices/sources/source.ts";
import { listPresetModels } from "../src/providers/models.ts";
import { isSamePrice, readPriceRow, tidyDollars } from "../src/shared/price-row.ts";
import type { PriceRow } from "../src/shared/price-row.ts";

const ROOT = join(import.meta.dir, "..");
const TABLE = join(ROOT, "src/core/prices/shipped-prices.json");
const EXTRA = join(ROOT, "scripts/prices-extra.json");
const OVERRIDE = join(ROOT, "scripts/prices-override.json");
const PACKAGE = "@pydantic/genai-prices";
/** LiteLLM's release that prices-extra.json is cut from. */
const LITELLM_VERSION = "1.109.1";

/** Makers that the source lacks, by their prefix in LiteLLM's table. */
const EXTRA_MAKERS = ["dashscope/", "volcengine/"] as const;
/** Where LiteLLM's table keeps a bare name, the maker's own entry first. */
const LIMIT_PREFIXES = [
  "",
  "openai/",
  "anthropic/",
  "gemini/",
  "xai/",
  "deepseek/",
  "mistral/",
  "moonshot/",
  "minimax/",
  "zai/",
  "cohere/",
  "perplexity/",
  "groq/",
  ...EXTRA_MAKERS,
] as const;

interface Override {
  rows: { names: string[]; row: PriceRow; reason: string }[];
  /** Name -> why its price stays although LiteLLM's table has another. */
  accepted: Record<string, string>;
}

interface Extra {
  source: string;
  version: string;
  license: string;
  rows: Record<string, PriceRow>;
  /** Tokens of context and of an answer; 0: unknown. */
  limits: Record<string, [context: number, maxOutput: number]>;
}

const readJson = <T>(path: string): T => JSON.parse(readFileSync(path, "utf8")) as T;

/** The names that anybody may ask for, so that a limit is worth keeping. */
function knownNames(priced: Iterable<string>): string[] {
  return [
    ...new Set([
      ...priced,
      ...listPresetModels().map(({ id }) => id),
      ...Object.keys(defaultModelRatio),
      ...Object.keys(defaultModelPrice),
    ]),
  ].toSorted();
}

async function packageText(): Promise<string> {
  const { findProvider } = await import("@pydantic/genai-prices");
  return JSON.stringify(MAKERS.flatMap((providerId) => findProvider({ providerId }) ?? []));
}

function packageVersion(): string {
  return (
    readJson<{ devDependencies: Record<string, string> }>(join(ROOT, "package.json")).devDependencies[
      PACKAGE
    ] ?? ""
  );
}

interface Made {
  rows: Map<string, PriceRow>;
  limits: Map<string, ModelLimits>;
  dropped: DroppedEntry[];
}

function checked(name: string, row: PriceRow): PriceRow {
  const { problem } = readPriceRow(row);
  if (problem !== undefined) throw new Error(`${name}: ${problem} is no price`);
  return row;
}

/** The whole table: what an override says, else the source, else the makers that it lacks. */
function makeRows(data: string, date: string): Made {
  const names = listPresetModels().map(({ id }) => id);
  const { rows, limits, dropped } = readGenaiPrices(data, { atMs: Date.parse(date), names });
  for (const [name, row] of Object.entries(readJson<Extra>(EXTRA).rows))
    if (!rows.has(name)) rows.set(name, checked(name, row));
  for (const { names: named, row } of readJson<Override>(OVERRIDE).rows)
    for (const name of named) rows.set(name, checked(name, row));
  return { rows, limits, dropped };
}

/** Names in one order whatever order a source has, kinds as option PriceRules lists them. */
const KEY_ORDER = [
  "in",
  "out",
  "thinking",
  "cache_read",
  "cache_write",
  "cache_write_1h",
  "image_in",
  "image_out",
  "audio_in",
  "audio_out",
  "call",
  "unit",
  "tools",
  "when",
  "over",
  "hours",
  "days",
  "tz",
  "from",
  "until",
  "tier",
  "size",
  "quality",
  "set",
  "times",
];

function tidy(value: unknown): unknown {
  if (typeof value === "number") return tidyDollars(value);
  if (Array.isArray(value)) return value.map(tidy);
  if (typeof value !== "object" || value === null) return value;
  const place = (key: string) => (KEY_ORDER.indexOf(key) + KEY_ORDER.length + 1) % (KEY_ORDER.length + 1);
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([a], [b]) => place(a) - place(b) || (a < b ? -1 : 1))
      .map(([key, each]) => [key, tidy(each)]),
  );
}

function modelsOf({ rows, limits }: Made): string[] {
  const extra = readJson<Extra>(EXTRA).limits;
  const groups = new Map<string, string[]>();
  for (const name of knownNames(rows.keys())) {
    const row = rows.get(name);
    const [context, maxOutput] = extra[name] ?? [limits.get(name)?.context ?? 0, 0];
    if (!row && maxOutput === 0) continue;
    if (/\s/.test(name)) throw new Error(`${name}: names are kept with spaces between them`);
    const known = context === 0 && maxOutput === 0 ? [] : [[context, maxOutput]];
    const key = JSON.stringify([row ? tidy(row) : null, ...known]);
    const group = groups.get(key);
    if (group) group.push(name);
    else groups.set(key, [name]);
  }
  return [...groups].map(([key, names]) => `[${JSON.stringify(names.join(" "))},${key.slice(1)}`).toSorted();
}

/** The text of shipped-prices.json: one model a line, so that a renewal can be read as a difference. */
export async function shippedText(
  date: string,
  data?: string,
): Promise<{ text: string; dropped: DroppedEntry[] }> {
  const made = makeRows(data ?? (await packageText()), date);
  const models = `[\n${modelsOf(made).join(",\n")}\n]`;
  const sha256 = new Bun.CryptoHasher("sha256").update(models).digest("hex");
  const head = { source: PACKAGE, version: packageVersion(), date, sha256 };
  return { text: `${JSON.stringify(head).slice(0, -1)},"models":${models}}\n`, dropped: made.dropped };
}

/** gpt-5-4-2026-03-05 and gpt-5.4 are one model, and have one limit. */
const familyOf = (name: string): string =>
  name
    .toLowerCase()
    .replace(/(-\d{4}-\d{2}-\d{2}|-\d{8}|-latest|-preview|-thinking)$/, "")
    .replaceAll(".", "-");

function cut(path: string, names: readonly string[]): void {
  const { rows, limits } = readLiteLlm(readFileSync(path, "utf8"));
  const families = new Map<string, ModelLimits>();
  for (const prefix of LIMIT_PREFIXES.toReversed())
    for (const [key, value] of limits)
      if (key.startsWith(prefix) && !key.slice(prefix.length).includes("/"))
        families.set(familyOf(key.slice(prefix.length)), value);
  const kept: Extra = { source: "litellm", version: LITELLM_VERSION, license: "MIT", rows: {}, limits: {} };
  for (const [key, row] of rows) {
    const maker = EXTRA_MAKERS.find((prefix) => key.startsWith(prefix));
    if (maker !== undefined) kept.rows[key.slice(maker.length)] = row;
  }
  for (const name of knownNames([...names, ...Object.keys(kept.rows)])) {
    const exact = LIMIT_PREFIXES.map((prefix) => limits.get(prefix + name)).find((each) => each?.maxOutput);
    const { context = 0, maxOutput = 0 } = exact ?? families.get(familyOf(name)) ?? {};
    if (context > 0 || maxOutput > 0) kept.limits[name] = [context, maxOutput];
  }
  writeFileSync(EXTRA, `${JSON.stringify(kept, undefined, 1)}\n`);
  console.log(`${Object.keys(kept.rows).length} prices, ${Object.keys(kept.limits).length} limits`);
}

/** What LiteLLM's table says differently about a name that nobody has accepted; 0 = nothing. */
function check(path: string, { rows }: Made): number {
  const other = readLiteLlm(readFileSync(path, "utf8")).rows;
  const { accepted, rows: overridden } = readJson<Override>(OVERRIDE);
  const known = new Set([...Object.keys(accepted), ...overridden.flatMap(({ names }) => names)]);
  let common = 0;
  let open = 0;
  for (const [name, row] of rows) {
    const theirs = LIMIT_PREFIXES.map((prefix) => other.get(prefix + name)).find(
      (each) => each !== undefined,
    );
    if (!theirs) continue;
    common += 1;
    const differing = (["in", "out", "cache_read"] as const).filter(
      (kind) =>
        row[kind] !== undefined && theirs[kind] !== undefined && !isSamePrice(row[kind], theirs[kind]),
    );
    if (differing.length === 0) continue;
    const isKnown = known.has(name);
    if (!isKnown) open += 1;
    const said = differing.map((kind) => `${kind} ${row[kind]} / ${theirs[kind]}`).join(", ");
    console.log(`${isKnown ? "accepted" : "OPEN    "} ${name}: ${said}`);
  }
  console.log(`${common} names in common, ${open} disagreements that nobody has accepted`);
  return open;
}

async function main(args: readonly string[]): Promise<number> {
  const valueOf = (name: string) => {
    const at = args.indexOf(name);
    return at < 0 ? undefined : args[at + 1];
  };
  const date = valueOf("--date") ?? readJson<{ date: string }>(TABLE).date;
  const dataFile = valueOf("--data");
  const data = dataFile === undefined ? await packageText() : readFileSync(dataFile, "utf8");
  const cutFile = valueOf("--cut");
  const checkFile = valueOf("--check");
  if (cutFile !== undefined) cut(cutFile, [...makeRows(data, date).rows.keys()]);
  if (checkFile !== undefined) return check(checkFile, makeRows(data, date)) === 0 ? 0 : 1;
  const { text, dropped } = await shippedText(date, data);
  writeFileSync(TABLE, text);
  for (const { name, reason, detail } of dropped) console.log(`left out: ${name} (${reason} ${detail})`);
  console.log(`${text.length} bytes`);
  return 0;
}

if (import.meta.main) process.exitCode = await main(process.argv.slice(2));
