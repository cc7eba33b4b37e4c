// The search that a provider runs itself, between the dialects' spellings of its settings.
// A setting that the other side has no word for is listed.
import { defined } from "./assemble.ts";
import type { DialectName, HostedTool, JsonObject } from "./canonical.ts";
import { drop } from "./carry.ts";
import { asList, asNumber, asObject, asString, rest } from "./json.ts";

/** The settings by the names that dropped ones are listed under. */
interface SearchSettings {
  search_context_size?: string;
  /** City, region, country and time zone, without the wrapping that differs. */
  user_location?: JsonObject;
  allowed_domains?: unknown[];
  blocked_domains?: unknown[];
  max_uses?: number;
}

const CARRIED: Readonly<Record<DialectName, ReadonlySet<keyof SearchSettings>>> = {
  "openai-chat": new Set(["search_context_size", "user_location"]),
  "openai-responses": new Set(["search_context_size", "user_location", "allowed_domains"]),
  anthropic: new Set(["user_location", "allowed_domains", "blocked_domains", "max_uses"]),
  gemini: new Set(["blocked_domains"]),
};

const WRAPPED = ["type", "name", "cache_control", "search_context_size", "user_location", "filters"];
const FLAT = ["allowed_domains", "blocked_domains", "max_uses", "excludeDomains", "exclude_domains"];

function filled(value: unknown): unknown[] | undefined {
  const list = asList(value);
  return list.length > 0 ? list : undefined;
}

function read({ value }: HostedTool): SearchSettings {
  const location = asObject(value["user_location"]);
  const place = asObject(location?.["approximate"]) ?? location;
  const filters = asObject(value["filters"]);
  return defined({
    search_context_size: asString(value["search_context_size"]),
    user_location: place && rest(place, ["type"]),
    allowed_domains: filled(filters?.["allowed_domains"] ?? value["allowed_domains"]),
    blocked_domains: filled(value["blocked_domains"] ?? value["excludeDomains"] ?? value["exclude_domains"]),
    max_uses: asNumber(value["max_uses"]),
  });
}

/**
 * The settings of a foreign search tool in the words of `target`, without the tool's own type and name; what cannot be
 * said there goes to `dropped` as `tools.web_search.<setting>`.
 */
export function searchFor(target: DialectName, tool: HostedTool, dropped: string[]): JsonObject {
  const settings = read(tool);
  const known: SearchSettings = {};
  for (const key in settings) {
    const name = key as keyof SearchSettings;
    if (CARRIED[target].has(name)) Object.assign(known, { [name]: settings[name] });
    else drop(dropped, `tools.web_search.${name}`);
  }
  const odd = rest(tool.value, [...WRAPPED, ...FLAT]);
  for (const key in odd) if (odd[key] !== null) drop(dropped, `tools.web_search.${key}`);
  const { user_location: place, allowed_domains, blocked_domains, max_uses, search_context_size } = known;
  const near = place && { type: "approximate", ...place };
  switch (target) {
    case "openai-chat":
      return defined({
        search_context_size,
        user_location: place && { type: "approximate", approximate: place },
      });
    case "openai-responses":
      return defined({
        search_context_size,
        user_location: near,
        filters: allowed_domains && { allowed_domains },
      });
    case "anthropic":
      return defined({ max_uses, allowed_domains, blocked_domains, user_location: near });
    case "gemini":
      return defined({ excludeDomains: blocked_domains });
  }
}
