// Free-text tools towards providers that only know functions: a function of one text field, and its calls back again.
// The grammar that a tool may have is told to the model in words, and listed as not enforced.
import type { CustomTool, DialectName, FunctionTool } from "./canonical.ts";
import { drop } from "./carry.ts";
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

/** The text of a call that was made as a function: its field, or whatever stands in its place. */
export function textOfCustom(json: string): string {
  return asString(asObject(parseJson(json))?.[FIELD]) ?? json;
}
