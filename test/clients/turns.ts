// What a request in any of the four dialects asks for, as far as a scripted model has to know it.
import type { DialectName } from "../../src/protocol/canonical.ts";

export interface OfferedTool {
  name: string;
  /** Takes free text, as custom tools of the Responses dialect do. */
  isFree: boolean;
  /** The group that it lies in, where the dialect has one. */
  namespace?: string;
}

export interface Turn {
  model: string;
  isStream: boolean;
  tools: OfferedTool[];
  /** How many tools have answered in the conversation. */
  results: number;
}

type Json = Record<string, unknown>;
const list = (value: unknown): Json[] => (Array.isArray(value) ? (value as Json[]) : []);

function chatTools(tools: Json[]): OfferedTool[] {
  return tools.map((tool) => {
    const isFree = tool["type"] === "custom";
    const named = (tool[isFree ? "custom" : "function"] ?? {}) as { name?: string };
    return { name: named.name ?? "", isFree };
  });
}

function responsesTools(tools: Json[], namespace?: string): OfferedTool[] {
  return tools.flatMap((tool): OfferedTool[] => {
    const name = typeof tool["name"] === "string" ? tool["name"] : String(tool["type"]);
    if (tool["type"] === "namespace") return responsesTools(list(tool["tools"]), name);
    return [{ name, isFree: tool["type"] === "custom", ...(namespace === undefined ? {} : { namespace }) }];
  });
}

/** Reads model, stream, offered tools and the number of tool results out of a request. */
export function readTurn(dialect: DialectName, path: string, body: Json): Turn {
  const model = typeof body["model"] === "string" ? body["model"] : "";
  const isStream = body["stream"] === true;
  const tools = list(body["tools"]);
  if (dialect === "openai-chat") {
    const results = list(body["messages"]).filter(({ role }) => role === "tool").length;
    return { model, isStream, tools: chatTools(tools), results };
  }
  if (dialect === "openai-responses") {
    const input = list(body["input"]);
    const results = input.filter(({ type }) => String(type).endsWith("_output")).length;
    // Codex's newest models bring their tools as an item of the conversation.
    const brought = input.flatMap(({ type, tools: more }) => (type === "additional_tools" ? list(more) : []));
    return { model, isStream, tools: responsesTools([...tools, ...brought]), results };
  }
  if (dialect === "anthropic") {
    const blocks = list(body["messages"]).flatMap(({ content }) => list(content));
    const named = tools.map(({ name }) => ({ name: String(name), isFree: false }));
    return {
      model,
      isStream,
      tools: named,
      results: blocks.filter(({ type }) => type === "tool_result").length,
    };
  }
  // Google takes both spellings, and LiteLLM writes the one with underscores.
  const parts = list(body["contents"]).flatMap(({ parts: all }) => list(all));
  return {
    model: /models\/([^:]+):/.exec(path)?.[1] ?? "",
    isStream: path.includes(":stream"),
    tools: tools
      .flatMap((tool) => list(tool["functionDeclarations"] ?? tool["function_declarations"]))
      .map(({ name }) => ({ name: String(name), isFree: false })),
    results: parts.filter((part) => "functionResponse" in part || "function_response" in part).length,
  };
}
