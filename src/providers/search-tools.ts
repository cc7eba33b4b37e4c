// The search that a provider runs itself, as each dialect declares and demands it in a body.
// Knows the wire's names only; which model can search stands in the table of model rules.
import type { DialectName, JsonObject } from "../protocol/canonical.ts";
import { asList, asObject, asString } from "../protocol/json.ts";

const GEMINI_SEARCH: ReadonlySet<string> = new Set([
  "googleSearch",
  "google_search",
  "googleSearchRetrieval",
  "google_search_retrieval",
]);
const DECLARATIONS = ["functionDeclarations", "function_declarations"] as const;
/** Names by which a request of another dialect may have asked for it. */
const SEARCH_NAMES: ReadonlySet<unknown> = new Set(["web_search", "web_search_preview", "google_search"]);

/** Whether a member of one of Gemini's tools is a search. */
export function isSearchTool(name: string): boolean {
  return GEMINI_SEARCH.has(name);
}

function isSearch(tool: JsonObject | undefined): boolean {
  return asString(tool?.["type"])?.startsWith("web_search") === true;
}

/** Each tool without the members that `isGone`; a tool of nothing else goes as a whole. */
function filterMembers(tools: readonly unknown[], isGone: (name: string) => boolean): unknown[] {
  return tools.flatMap((value) => {
    const tool = asObject(value);
    if (!tool || !Object.keys(tool).some(isGone)) return [value];
    const left = Object.entries(tool).filter(([name]) => !isGone(name));
    return left.length > 0 ? [Object.fromEntries(left)] : [];
  });
}

/** Asked of every call with tools, most of which have none. */
function hasSearch(dialect: DialectName, tools: readonly unknown[]): boolean {
  for (const value of tools) {
    const tool = asObject(value);
    if (dialect !== "gemini") {
      if (isSearch(tool)) return true;
    } else for (const name in tool) if (isSearchTool(name)) return true;
  }
  return false;
}

/** The list without its search; the list itself where it has none. */
export function withoutSearch(dialect: DialectName, tools: readonly unknown[]): readonly unknown[] {
  if (!hasSearch(dialect, tools)) return tools;
  if (dialect === "gemini") return filterMembers(tools, isSearchTool);
  return tools.filter((tool) => !isSearch(asObject(tool)));
}

/** Gemini's tools without what stands beside functions, and the names of that; nothing goes where there are no functions. */
export function withoutHosted(tools: readonly unknown[]): { left: readonly unknown[]; names: string[] } {
  const isFunctions = (name: string): boolean => (DECLARATIONS as readonly string[]).includes(name);
  const names = tools.flatMap((tool) => Object.keys(asObject(tool) ?? {}));
  if (declaredNames(tools).length === 0) return { left: tools, names: [] };
  const hosted = names.filter((name) => !isFunctions(name));
  if (hosted.length === 0) return { left: tools, names: [] };
  return { left: filterMembers(tools, (name) => !isFunctions(name)), names: hosted };
}

function declaredNames(tools: readonly unknown[]): unknown[] {
  return tools
    .flatMap((tool) => DECLARATIONS.flatMap((key) => asList(asObject(tool)?.[key])))
    .map((declaration) => asObject(declaration)?.["name"]);
}

/** Names of the functions in a list of tools, whatever the dialect. */
function functionNames(tools: readonly unknown[]): unknown[] {
  const flat = tools.map((value) => {
    const tool = asObject(value);
    return asObject(tool?.["function"])?.["name"] ?? tool?.["name"];
  });
  return [...flat, ...declaredNames(tools)];
}

/** Whether the request insists on the search that is about to go; `left` are the tools that stay. */
export function demandsSearch(
  dialect: DialectName,
  body: Readonly<JsonObject>,
  left: readonly unknown[],
): boolean {
  const names = functionNames(left);
  const isGone = (name: unknown): boolean => SEARCH_NAMES.has(name) && !names.includes(name);
  if (dialect === "gemini") {
    const config = asObject(body["toolConfig"] ?? body["tool_config"]);
    const calling = asObject(config?.["functionCallingConfig"] ?? config?.["function_calling_config"]);
    if (calling?.["mode"] !== "ANY") return false;
    const allowed = asList(calling["allowedFunctionNames"] ?? calling["allowed_function_names"]);
    return names.every((name) => name === undefined) || (allowed.length > 0 && allowed.every(isGone));
  }
  const { tool_choice: choice } = body;
  if (choice === "required" || choice === "any") return left.length === 0;
  const chosen = asObject(choice);
  const type = asString(chosen?.["type"]);
  if (!chosen || type === undefined) return false;
  if (type === "any") return left.length === 0;
  if (type.startsWith("web_search")) return true;
  if (type !== "allowed_tools") return isGone(asObject(chosen["function"])?.["name"] ?? chosen["name"]);
  const inner = asObject(chosen["allowed_tools"]) ?? chosen;
  return (
    inner["mode"] === "required" &&
    asList(inner["tools"]).every((value) => {
      const tool = asObject(value);
      return isSearch(tool) || isGone(asObject(tool?.["function"])?.["name"] ?? tool?.["name"]);
    })
  );
}
