// Compares prices in force with those of a source: shipped, of another instance, of a public list, or of a text that was pasted.
// Refuses to change anything: its rows become changes of an ordinary plan, or of an automatic sync (kept-sources.ts).
import type { Deps } from "../deps.ts";
import { refuse } from "../../shared/failures.ts";
import { pacer } from "../kit/turns.ts";
import type { PriceRow } from "../../shared/price-row.ts";
import { isDollars } from "../../shared/price-row.ts";
import { MAX_SYNC_ROWS, SYNC_ADDRESSES } from "../../shared/price-sync.ts";
import type { SyncDrop, SyncRow, SyncSource } from "../../shared/price-sync.ts";
import { emptyMaps, PRICE_MAPS, pricedNames, putRow, rowOf } from "../../shared/row-maps.ts";
import { tablesIn } from "./changes.ts";
import { mergePrices } from "./merge.ts";
import { originRows, SHIPPED, shippedRows } from "./origins.ts";
import type { PriceOrigin } from "./origins.ts";
import { priceMapsOf } from "./prices.ts";
import { priceState } from "./revisions.ts";
import { shippedVersion } from "./shipped.ts";
import { fetchInstance, fetchSource, sourceUrl } from "./sources/fetch.ts";
import { detectFormat, parsedSource, readSource, withoutPrefixes } from "./sources/read.ts";
import type { DroppedEntry, SourceFormat } from "./sources/source.ts";
import { OWN_ORIGIN, takenMark } from "./taken.ts";

type SyncDeps = Pick<Deps, "db" | "clock" | "guard" | "reach" | "routing">;

export interface SyncRequest {
  source: SyncSource;
  /** Empty: the source's usual address. */
  url?: string | undefined;
  /** What would be fetched. */
  text?: string | undefined;
  /** The channel whose instance is asked. */
  channelId?: number | undefined;
  /** Beginnings that names lose. */
  strip: readonly string[];
  /** What its prices are remembered by; made of source and host where absent. */
  name?: string | undefined;
}

export interface SyncResult {
  source: string;
  version: string;
  /** What the rows were compared with. */
  revision: number;
  /** Names of the source that have a price. */
  total: number;
  /** How many of them are as they are here. */
  same: number;
  rows: SyncRow[];
  /** The first of those that could not be read. */
  dropped: SyncDrop[];
  droppedCount: number;
}

const MOST_DROPPED = 2000;
const VERSION_CHARS = 12;

interface Read {
  source: string;
  version: string;
  rows: ReadonlyMap<string, PriceRow>;
  dropped: DroppedEntry[];
}

/** Whether a request makes this server fetch something: that is root's to ask. */
export function isFetching({ source, text }: Pick<SyncRequest, "source" | "text">): boolean {
  return source !== "shipped" && text === undefined;
}

interface Got {
  text: string;
  /** A host, or "file". */
  where: string;
}

async function gotten(deps: SyncDeps, request: SyncRequest): Promise<Got> {
  const { source, text, channelId, url = "" } = request;
  if (text !== undefined) return { text: text.startsWith("\uFEFF") ? text.slice(1) : text, where: "file" };
  const channel = channelId === undefined ? undefined : deps.routing.channel(channelId);
  if (channelId !== undefined && !channel) throw refuse("record_missing");
  const address = channel ? channel.baseUrl : url.trim() || (SYNC_ADDRESSES[source] ?? "");
  if (address === "") throw refuse("price_source_missing");
  const { href, host } = sourceUrl(address);
  const networks = deps.reach.networks(href, channel ?? { baseUrl: href, setting: {} });
  const proxy = channel?.setting["proxy"];
  const asked = {
    address: href,
    allow: networks,
    ...(typeof proxy === "string" && proxy !== "" ? { proxy } : {}),
  };
  const fetcher = source === "instance" || channel ? fetchInstance : fetchSource;
  return { text: await fetcher(deps, asked), where: host };
}

const FORMATS: readonly SourceFormat[] = ["openrouter", "models.dev", "litellm", "genai-prices"];

async function readRequest(deps: SyncDeps, request: SyncRequest, quotaPerUnit: number): Promise<Read> {
  if (request.source === "shipped")
    return { source: SHIPPED, version: shippedVersion(), rows: shippedRows(quotaPerUnit), dropped: [] };
  const { text, where } = await gotten(deps, request);
  const named = FORMATS.find((format) => format === request.source);
  const parsed = parsedSource(text);
  const format = named ?? detectFormat(parsed);
  const { rows, dropped } = readSource(format, text, deps.clock.nowMs());
  if (rows.size === 0) throw refuse("price_source_empty");
  if (rows.size > MAX_SYNC_ROWS)
    throw refuse("price_source_too_many", { count: rows.size, limit: MAX_SYNC_ROWS });
  const bare = withoutPrefixes(rows, request.strip);
  const version = new Bun.CryptoHasher("sha256").update(text).digest("hex").slice(0, VERSION_CHARS);
  return {
    source: request.name ?? `${format}:${where}`,
    version,
    rows: bare.rows,
    dropped: [...dropped, ...bare.dropped],
  };
}

/** The row as this site's options would hold it; undefined where they cannot. */
function held(name: string, row: PriceRow, quotaPerUnit: number): PriceRow | undefined {
  const maps = emptyMaps();
  putRow(maps, name, row, quotaPerUnit);
  for (const key of PRICE_MAPS) {
    // Bounds of ratios are those of prices; a quotient of two good prices may still lie outside.
    if (key !== "PriceRules" && !isDollars(maps[key][name] ?? 0)) return undefined;
  }
  return rowOf(maps, name, quotaPerUnit);
}

/** What is compared, and how far the site's own history goes. */
interface Site {
  revision: number;
  quotaPerUnit: number;
  ours: Map<string, PriceRow>;
  origins: ReadonlyMap<string, PriceOrigin>;
  served: ReadonlySet<string>;
}

async function siteNow(deps: SyncDeps): Promise<Site> {
  const { revision, texts } = await priceState(deps.db);
  const tables = tablesIn(texts);
  const maps = priceMapsOf(tables);
  const ours = new Map<string, PriceRow>();
  for (const name of pricedNames(maps)) {
    const row = rowOf(maps, name, tables.quotaPerUnit);
    if (row) ours.set(name, row);
  }
  return {
    revision,
    quotaPerUnit: tables.quotaPerUnit,
    ours,
    origins: await originRows(deps),
    served: new Set(deps.routing.enabledModels()),
  };
}

/** A price of the operator's own is no base of anything: only that it was taken away counts. */
function baseOf({ origins, ours }: Site, name: string): Map<string, PriceRow> {
  const origin = origins.get(name);
  const isBase = origin && (origin.source !== OWN_ORIGIN || !ours.has(name));
  return new Map(isBase ? [[name, origin.row]] : []);
}

function shownRow(
  { source, version }: Read,
  { origins, served }: Site,
  line: ReturnType<typeof mergePrices>[number],
): SyncRow {
  const { name, base, ours, theirs } = line;
  return {
    name,
    case: line.case,
    guards: line.guards,
    ticked: line.ticked,
    served: served.has(name),
    ours: ours ?? null,
    theirs: theirs ?? null,
    base: line.case === "newer" || line.case === "gone" ? null : (base ?? null),
    origin: origins.get(name)?.source ?? "",
    taken: theirs ? takenMark(source, version, theirs) : "",
  };
}

/** The rows at which the source and the prices in force differ, in the order of their names. */
async function compared(read: Read, site: Site): Promise<Pick<SyncResult, "rows" | "same">> {
  const { quotaPerUnit, ours, origins, served } = site;
  const others = read.source === SHIPPED ? [] : [shippedRows(quotaPerUnit)];
  // What this very source had once and has no longer: other sources' names are none of its business.
  const gone = [...origins.keys()].filter(
    (name) => origins.get(name)?.source === read.source && !read.rows.has(name),
  );
  const names = [...read.rows.keys(), ...gone].toSorted();
  const rows: SyncRow[] = [];
  // One name of a hostile file may take as long as thousands of others.
  const turn = pacer();
  for (const name of names) {
    await turn();
    const row = read.rows.get(name);
    const lines = mergePrices({
      base: baseOf(site, name),
      ours,
      theirs: new Map(row ? [[name, row]] : []),
      isServed: (each) => served.has(each),
      others,
    });
    for (const line of lines) rows.push(shownRow(read, site, line));
  }
  return { rows, same: names.length - rows.length };
}

/** Reads the source and compares; whatever is wrong with all of it is told by a code of its own. */
export async function comparePrices(deps: SyncDeps, request: SyncRequest): Promise<SyncResult> {
  const site = await siteNow(deps);
  const read = await readRequest(deps, request, site.quotaPerUnit);
  const rows = new Map<string, PriceRow>();
  const dropped: SyncDrop[] = read.dropped.map(({ name, reason, detail = "" }) => ({ name, reason, detail }));
  const turn = pacer();
  for (const [name, row] of read.rows) {
    await turn();
    const kept = held(name, row, site.quotaPerUnit);
    if (kept) rows.set(name, kept);
    else dropped.push({ name, reason: "number", detail: "" });
  }
  const result = await compared({ ...read, rows }, site);
  return {
    source: read.source,
    version: read.version,
    revision: site.revision,
    total: rows.size,
    ...result,
    rows: result.rows.toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    dropped: dropped.slice(0, MOST_DROPPED),
    droppedCount: dropped.length,
  };
}
