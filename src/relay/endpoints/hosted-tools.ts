// Tools that the provider runs and bills by the call: how often a request may call them, and what that can cost.
// Tools that cost nothing beside their tokens are not counted.
import type { CallPrice, SearchSize } from "../../core/prices/prices.ts";
import type { SearchWish } from "../../providers/apply-rules.ts";
import { asList, asObject } from "../../protocol/json.ts";
import type { Json } from "./endpoint.ts";

/** Calls that are held back for where the request sets no bound. */
const CALLS_WITHOUT_BOUND = 10;
const CALLS_PER_PRICE = 1000;

function isSearch(tool: Record<string, unknown> | undefined): boolean {
  return String(tool?.["type"]).startsWith("web_search");
}

/** How much of the web the request lets a search read; the middle one when it said nothing. */
export function searchSizeOf(json: Json): SearchSize {
  const options =
    asObject(json["web_search_options"]) ?? asList(json["tools"]).map(asObject).find(isSearch) ?? {};
  const size = options["search_context_size"];
  return size === "low" || size === "high" ? size : "medium";
}

/** Models that search by themselves do so exactly once a call. */
export function searchesByItself(model: string): boolean {
  return model.endsWith("search-preview");
}

/** What a request says that the search of a model may depend on (providers/model-rules.ts). */
export function searchWish(json: Json): SearchWish {
  return {
    hasFunctions: asList(json["tools"]).some((value) => {
      const tool = asObject(value);
      const type = tool?.["type"];
      if (type === "function" || type === "custom") return true;
      if (tool?.["functionDeclarations"] !== undefined || tool?.["function_declarations"] !== undefined)
        return true;
      // Anthropic's own form of a function has no type.
      return type === undefined && tool?.["input_schema"] !== undefined;
    }),
    effort: json["reasoning_effort"] ?? asObject(json["reasoning"])?.["effort"],
  };
}

/**
 * Units that the hosted tools of a request can cost, before the group ratio. `hasSearch` is false where the search that
 * it declares reaches no model.
 */
export function hostedToolUnits(
  json: Json,
  model: string,
  { tools, quotaPerUnit }: CallPrice,
  hasSearch = true,
): number {
  const listed = json["tools"];
  const searchOptions = asObject(json["web_search_options"]);
  if (!Array.isArray(listed) && !searchOptions && !searchesByItself(model)) return 0;
  const bound = json["max_tool_calls"];
  const perCall = hasSearch || searchesByItself(model) ? tools.webSearch[searchSizeOf(json)] : 0;
  let dollarsPerThousand = 0;
  for (const value of asList(listed)) {
    const tool = asObject(value);
    const price = isSearch(tool) ? perCall : tool?.["type"] === "file_search" ? tools.fileSearch : 0;
    if (price > 0) dollarsPerThousand += price * timesOf(tool?.["max_uses"] ?? bound);
  }
  if (searchesByItself(model)) dollarsPerThousand += perCall;
  else if (searchOptions) dollarsPerThousand += perCall * CALLS_WITHOUT_BOUND;
  return (dollarsPerThousand / CALLS_PER_PRICE) * quotaPerUnit;
}

function timesOf(bound: unknown): number {
  return typeof bound === "number" && bound >= 0 && Number.isFinite(bound) ? bound : CALLS_WITHOUT_BOUND;
}
