// The sources of prices that a site keeps: where each is, which beginnings its names lose, and how much of it is taken by itself.
// Refuses a name twice, since prices are remembered by the name of their source.
import { refuse } from "../../shared/failures.ts";
import { SYNC_SOURCES } from "../../shared/price-sync.ts";
import type { SyncSource } from "../../shared/price-sync.ts";
import type { OptionKind } from "./kinds.ts";

export interface PriceSource {
  name: string;
  source: SyncSource;
  /** Empty: the source's usual address. */
  url: string;
  strip: string[];
  /** Whether newer prices of it are taken every day. */
  auto: boolean;
  /** By how much a price may change by itself, in percent. */
  limit: number;
}

const DEFAULT_LIMIT = 10;
const MAX_LIMIT = 100;
const MOST = 50;
/** "@" and "#" stand between name, version and digest; others end in a host. */
const NAME = /^[\p{L}\p{N}][\p{L}\p{N} ._-]{0,63}$/u;
/** What the program itself remembers prices by. */
const TAKEN_NAMES: readonly string[] = ["own", "shipped"];

const isText = (value: unknown, most: number): value is string =>
  typeof value === "string" && value.length <= most;

function isAddress(value: string): boolean {
  if (value === "") return true;
  const url = URL.parse(value);
  return url !== null && /^https?:$/.test(url.protocol) && url.username === "" && url.password === "";
}

function sourceOf(entry: unknown): PriceSource | undefined {
  if (typeof entry !== "object" || entry === null || Array.isArray(entry)) return undefined;
  const {
    name,
    source,
    url = "",
    strip = [],
    auto = false,
    limit = DEFAULT_LIMIT,
    ...more
  } = entry as Record<string, unknown>;
  const known = SYNC_SOURCES.find((each) => each === source);
  const isWhole =
    Object.keys(more).length === 0 &&
    isText(name, 64) &&
    NAME.test(name) &&
    !TAKEN_NAMES.includes(name) &&
    isText(url, 2000) &&
    isAddress(url) &&
    Array.isArray(strip) &&
    strip.length <= MOST &&
    (strip as unknown[]).every((each) => isText(each, 100)) &&
    typeof auto === "boolean" &&
    typeof limit === "number" &&
    limit > 0 &&
    limit <= MAX_LIMIT;
  if (!isWhole || !known) return undefined;
  return { name, source: known, url, strip: strip as string[], auto, limit };
}

export const priceSources: OptionKind<PriceSource[]> = {
  parse(value) {
    let list: unknown;
    try {
      list = value.trim() === "" ? [] : (JSON.parse(value) as unknown);
    } catch {
      throw refuse("option_not_json");
    }
    if (!Array.isArray(list) || list.length > MOST) throw refuse("option_not_list");
    const names = new Set<string>();
    return (list as unknown[]).map((entry, index) => {
      const source = sourceOf(entry);
      if (!source || names.has(source.name)) throw refuse("option_bad_price_source", { position: index + 1 });
      names.add(source.name);
      return source;
    });
  },
};
