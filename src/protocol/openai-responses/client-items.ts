// Tools of the Responses API that the client runs itself and that have items of their own: as the function which other
// providers know, and the calls of that function as those items again. Source: OpenAI's API reference, and Codex 0.169.
import type { FunctionTool, JsonObject, Part } from "../canonical.ts";
import { asList, asObject, asString, parseJson } from "../json.ts";

interface ClientItem {
  /** Type of the call's item; the function's arguments stand in its `field`, beside what is `fixed`. */
  call: string;
  field: string;
  /** Type of the item that brings the result. */
  output: string;
  description: string;
  schema: JsonObject;
  fixed?: JsonObject;
  /** More members of the call's item. */
  beside?: JsonObject;
  /** Whether the client runs the declared tool, and not the provider. */
  isOurs?: (tool: JsonObject) => boolean;
}

const TEXT = { type: "string" };
const TEXTS = { type: "array", items: TEXT };

function object(properties: JsonObject, ...required: string[]): JsonObject {
  return { type: "object", properties, required };
}

/** By the tool's type. */
const CLIENT_ITEMS: Readonly<Record<string, ClientItem>> = {
  tool_search: {
    call: "tool_search_call",
    field: "arguments",
    output: "tool_search_output",
    description: "Finds more tools; those it finds can be called from then on.",
    schema: object({ query: TEXT, limit: { type: "number" } }, "query"),
    beside: { execution: "client" },
    isOurs: (tool) => tool["execution"] === "client",
  },
  local_shell: {
    call: "local_shell_call",
    field: "action",
    output: "local_shell_call_output",
    description: "Runs a command on the user's machine.",
    schema: object({ command: TEXTS, working_directory: TEXT, timeout_ms: { type: "number" } }, "command"),
    fixed: { type: "exec", env: {} },
  },
  shell: {
    call: "shell_call",
    field: "action",
    output: "shell_call_output",
    description: "Runs commands on the user's machine.",
    schema: object(
      { commands: TEXTS, timeout_ms: { type: "number" }, max_output_length: { type: "number" } },
      "commands",
    ),
    // Without an environment, or in one of another type, the provider runs it.
    isOurs: (tool) => asObject(tool["environment"])?.["type"] === "local",
  },
  apply_patch: {
    call: "apply_patch_call",
    field: "operation",
    output: "apply_patch_call_output",
    description: "Changes one file; `diff` is a V4A diff, and not given to delete a file.",
    schema: object(
      { type: { ...TEXT, enum: ["create_file", "update_file", "delete_file"] }, path: TEXT, diff: TEXT },
      "type",
      "path",
    ),
  },
};

/** The function that stands for a declared tool; undefined where the provider runs it, or it is no such tool. */
export function asClientFunction(form: string, tool: JsonObject): FunctionTool | undefined {
  const row = CLIENT_ITEMS[form];
  if (!row || row.isOurs?.(tool) === false) return undefined;
  return {
    type: "function",
    name: form,
    description: asString(tool["description"]) ?? row.description,
    schema: asObject(tool["parameters"]) ?? row.schema,
  };
}

/** The item of a call, out of its function's arguments. */
export function clientCallItem(
  form: string,
  id: string,
  callId: string | undefined,
  args: string,
): JsonObject {
  const row = CLIENT_ITEMS[form];
  const given = asObject(parseJson(args)) ?? {};
  return {
    id,
    type: row?.call ?? `${form}_call`,
    status: "completed",
    call_id: callId,
    ...row?.beside,
    [row?.field ?? "arguments"]: { ...row?.fixed, ...given },
  };
}

/** A call or a result that came back as such an item; undefined for every other item. */
export interface ClientTurn {
  form: string;
  part: Extract<Part, { type: "tool-call" | "tool-result" }>;
}

export function readClientItem(item: JsonObject): ClientTurn | undefined {
  for (const form in CLIENT_ITEMS) {
    const row = CLIENT_ITEMS[form];
    const id = asString(item["call_id"]) ?? asString(item["id"]) ?? "";
    if (item["type"] === row?.call) {
      const input = JSON.stringify(item[row?.field ?? ""] ?? {});
      return { form, part: { type: "tool-call", id, name: form, input } };
    }
    if (item["type"] !== row?.output) continue;
    const { output = item["tools"] } = item;
    const text = typeof output === "string" ? output : JSON.stringify(output ?? asList(undefined));
    return { form, part: { type: "tool-result", id, content: [{ type: "text", text }], bare: "string" } };
  }
  return undefined;
}
