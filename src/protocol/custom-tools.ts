// Free-text tools towards providers that only know functions: a function of one text field, and its calls back again.
// The grammar that a tool may have is told to the model in words, and listed as not enforced.
import type { Answer } from "./assemble.ts";
import type { CanonicalRequest, CustomTool, DialectName, FunctionTool } from "./canonical.ts";
import { drop } from "./carry.ts";
import type { CanonicalEvent } from "./events.ts";
import { asObject, asString, parseJson } from "./json.ts";
import { openaiTraits } from "./openai-models.ts";

/**
 * Whether an upstream knows free-text tools itself: the Responses API does, and chat completions of OpenAI's own
 * models. Others that speak chat completions refuse a tool that is no function.
 */
export function takesCustomTools(dialect: DialectName, model: string): boolean {
  if (dialect === "openai-chat") return openaiTraits(model).efforts !== undefined;
  return dialect === "openai-responses";
}

/** Arguments of the function that stands for a free-text tool. */
export function asArguments(text: string): string {
  return JSON.stringify({ [FIELD]: text });
}

/** The only field of the function that stands for a free-text tool. */
const FIELD = "input";

/** A free-text tool as the function that other providers know. */
export function asFunction(tool: CustomTool, dropped: string[]): FunctionTool {
  const format = asObject(tool.format);
  const grammar = asObject(format?.["grammar"]) ?? format;
  const definition = asString(grammar?.["definition"]);
  const words = [tool.description ?? ""];
  if (definition !== undefined) {
    drop(dropped, `tools.${tool.name}.format`);
    const syntax = asString(grammar?.["syntax"]) ?? "";
    words.push(`The field "${FIELD}" must follow this ${syntax} grammar:\n${definition}`);
  }
  const description = words.filter((text) => text !== "").join("\n\n");
  return {
    type: "function",
    name: tool.name,
    ...(description === "" ? {} : { description }),
    schema: {
      type: "object",
      properties: { [FIELD]: { type: "string" } },
      required: [FIELD],
      additionalProperties: false,
    },
  };
}

/** Names of the request's free-text tools. */
export function customNames({ tools }: CanonicalRequest): ReadonlySet<string> {
  return new Set(tools?.flatMap((tool) => (tool.type === "custom" ? [tool.name] : [])));
}

/** The text of a call that was made as a function: its field, or whatever stands in its place. */
function textOf(json: string): string {
  return asString(asObject(parseJson(json))?.[FIELD]) ?? json;
}

/** Makes the calls of free-text tools what their client knows again. Their text comes whole, when the call is. */
export function createUnwrapper(names: ReadonlySet<string>): (event: CanonicalEvent) => CanonicalEvent[] {
  let open: { at: number; pieces: string[] } | undefined;
  return (event) => {
    if (event.type === "open" && event.kind === "tool-call" && names.has(event.name ?? "")) {
      open = { at: event.at, pieces: [] };
      return [{ ...event, custom: true }];
    }
    if (!open || !("at" in event) || event.at !== open.at) return [event];
    if (event.type === "json") {
      open.pieces.push(event.delta);
      return [];
    }
    if (event.type !== "close") return [event];
    const { at, pieces } = open;
    open = undefined;
    const delta = textOf(pieces.join(""));
    return delta === "" ? [event] : [{ type: "json", at, delta }, event];
  };
}

/** The same for a whole answer, in place. */
export function unwrapAnswer(answer: Answer, names: ReadonlySet<string>): Answer {
  for (const block of answer.blocks) {
    if (block.kind !== "tool-call" || !names.has(block.name ?? "")) continue;
    block.custom = true;
    block.text = textOf(block.text);
  }
  return answer;
}
