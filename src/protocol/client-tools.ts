// Tools that clients run themselves, in forms which only their own protocol has (namespaces, searches for tools, shells),
// as plain functions for every other provider; and the calls of those functions as the client knows them again.
// What has no such form is left out and listed, or refused by name where it is the provider's own work.
import type { Answer } from "./assemble.ts";
import type {
  CanonicalRequest,
  CustomTool,
  FunctionTool,
  JsonObject,
  Message,
  Part,
  Tool,
} from "./canonical.ts";
import { drop } from "./carry.ts";
import { textOfCustom } from "./custom-tools.ts";
import type { CanonicalEvent, OpenEvent } from "./events.ts";
import { asList, asObject, asString, rest } from "./json.ts";
import { asClientFunction, readClientItem } from "./openai-responses/client-items.ts";
import { decodeTool } from "./openai-responses/decode-request.ts";

/** What a function that was offered upstream is to its client. */
export interface ClientTool {
  name: string;
  /** Responses: the namespace that the tool was declared in. */
  namespace?: string;
  /** A free-text tool. */
  custom?: boolean;
  /** Responses: the type of a tool whose calls are items of their own. */
  form?: string;
}

interface PlainTools {
  /** The request with plain functions and free-text tools only, in its history too. */
  request: CanonicalRequest;
  /** By the names that are offered upstream: the tools that are something else to their client. */
  names: ReadonlyMap<string, ClientTool>;
  dropped: readonly string[];
}

/** Longest name that every provider takes. */
const MAX_NAME = 64;

const plain = new WeakMap<CanonicalRequest, PlainTools>();

/** The request as a provider of another dialect is asked, and the list of what had to stay behind so far. */
export function askedOf(request: CanonicalRequest): EncodedFrom {
  const { request: asked, dropped } = plainTools(request);
  return { request: asked, dropped: [...dropped] };
}

interface EncodedFrom {
  request: CanonicalRequest;
  dropped: string[];
}

/** The same request gives the same names, also turns later. */
function plainTools(request: CanonicalRequest): PlainTools {
  let known = plain.get(request);
  if (!known) {
    if (request.dialect === "anthropic") known = plainAnthropic(request);
    else if (request.dialect === "openai-responses") known = plainResponses(request);
    else return { request, names: NONE, dropped: [] };
    plain.set(request, known);
  }
  return known;
}

const NONE: ReadonlyMap<string, ClientTool> = new Map();

/** Offers tools under names of their own: letters, digits, _ and -, at most 64 of them, none twice. */
interface Offer {
  readonly tools: Tool[];
  readonly names: Map<string, ClientTool>;
  readonly byOrigin: Map<string, string>;
  readonly taken: Set<string>;
}

function originOf({ namespace = "", form = "", name }: ClientTool): string {
  return `${form} ${namespace} ${name}`;
}

/** The name under which a tool is offered: its own, led by its namespace's; a hash where that is too long or taken. */
function offeredName(offer: Offer, tool: ClientTool): string {
  const origin = originOf(tool);
  const known = offer.byOrigin.get(origin);
  if (known !== undefined) return known;
  const { namespace } = tool;
  const gap = namespace === undefined || namespace.endsWith("__") ? "" : "__";
  const wanted = `${namespace ?? ""}${gap}${tool.name}`.replace(/[^a-zA-Z0-9_-]/g, "_");
  const isFree = wanted !== "" && wanted.length <= MAX_NAME && !offer.taken.has(wanted);
  const hash = Bun.SHA256.hash(origin, "hex");
  let name = isFree ? wanted : `${wanted.slice(0, MAX_NAME - 9)}_${hash.slice(0, 8)}`;
  for (let at = 1; !isFree && offer.taken.has(name); at++)
    name = `${wanted.slice(0, MAX_NAME - 9)}_${hash.slice(at, at + 8)}`;
  offer.taken.add(name);
  offer.byOrigin.set(origin, name);
  if (name !== tool.name || tool.form !== undefined || namespace !== undefined) offer.names.set(name, tool);
  return name;
}

function offerTool(
  offer: Offer,
  tool: FunctionTool | CustomTool,
  origin: Omit<ClientTool, "name" | "custom">,
): void {
  const isNew = !offer.byOrigin.has(originOf({ ...origin, name: tool.name }));
  const custom = tool.type === "custom";
  const name = offeredName(offer, { ...origin, name: tool.name, ...(custom ? { custom } : {}) });
  if (isNew) offer.tools.push({ ...tool, name });
}

/** Adds declared tools: those of a namespace one by one. */
function offerAll(offer: Offer, tools: readonly Tool[], namespace?: { name: string; about: string }): void {
  for (const [index, tool] of tools.entries()) {
    if (tool.type !== "hosted") {
      if (!namespace) {
        // A search may have found the same one more than once.
        if (offer.byOrigin.has(originOf({ name: tool.name }))) continue;
        offer.byOrigin.set(originOf({ name: tool.name }), tool.name);
        offer.tools.push(tool);
        continue;
      }
      // What the namespace says stands once: it may be long.
      const about = index === 0 ? namespace.about : "";
      const description = [about, tool.description ?? ""].filter((text) => text !== "").join("\n\n");
      const told = description === "" ? tool : { ...tool, description };
      offerTool(offer, told, { namespace: namespace.name });
    } else if (tool.name === "namespace") {
      const name = asString(tool.value["name"]) ?? "";
      const about = asString(tool.value["description"]) ?? "";
      offerAll(offer, asList(tool.value["tools"]).map(decodeTool), { name, about });
    } else {
      const own = asClientFunction(tool.name, tool.value);
      if (own) offerTool(offer, own, { form: tool.name });
      else offer.tools.push(tool);
    }
  }
}

const ITEM = "input.";

/** The item of a message that is nothing but one. */
function itemOf({ parts: [part] }: Message): JsonObject | undefined {
  const isItem = part?.type === "opaque" && part.dialect === "openai-responses" && part.name.startsWith(ITEM);
  return isItem ? asObject(part.value) : undefined;
}

/** Tools that came in the conversation: Codex declares them there for some models, and brings those that it found. */
function laterTools({ messages }: CanonicalRequest): Tool[] {
  return messages.flatMap((message) => {
    const item = itemOf(message);
    const declares = item?.["type"] === "additional_tools" || item?.["type"] === "tool_search_output";
    return declares ? asList(item?.["tools"]).map(decodeTool) : [];
  });
}

/** A search that the provider itself would make, over tools that are simply offered elsewhere. */
function isProvidersSearch(tool: Tool): boolean {
  return tool.type === "hosted" && tool.name === "tool_search" && tool.value["execution"] !== "client";
}

function plainResponses(request: CanonicalRequest): PlainTools {
  const later = laterTools(request);
  const declared = [...(request.tools ?? []), ...later];
  const isPlain =
    later.length === 0 &&
    !declared.some((tool) => tool.type === "hosted") &&
    !request.messages.some((message) => itemOf(message) ?? message.extra?.["namespace"]);
  if (isPlain) return { request, names: NONE, dropped: [] };
  const dropped: string[] = [];
  const offer: Offer = { tools: [], names: new Map(), byOrigin: new Map(), taken: new Set() };
  for (const tool of declared) if (tool.type !== "hosted") offer.taken.add(tool.name);
  const kept = declared.filter((tool) => !isProvidersSearch(tool));
  if (kept.length < declared.length) drop(dropped, "tools.tool_search");
  offerAll(offer, kept);
  const messages = request.messages.flatMap((message) => plainMessage(message, offer) ?? []);
  const tools = request.tools || offer.tools.length > 0 ? { tools: offer.tools } : {};
  const plainOne: CanonicalRequest = { ...request, ...tools, messages };
  const choice = plainChoice(request, offer);
  if (choice) plainOne.toolChoice = choice;
  return { request: plainOne, names: offer.names, dropped };
}

/** A message with its call under the name that is offered, or an item as the call or result that it is. */
function plainMessage(message: Message, offer: Offer): Message | undefined {
  const item = itemOf(message);
  if (!item) {
    const namespace = asString(message.extra?.["namespace"]);
    const [part] = message.parts;
    if (namespace === undefined || part?.type !== "tool-call") return message;
    const { custom } = part;
    const name = offeredName(offer, { name: part.name, namespace, ...(custom ? { custom } : {}) });
    return { ...message, parts: [{ ...part, name }], extra: rest(message.extra ?? {}, ["namespace"]) ?? {} };
  }
  if (item["type"] === "additional_tools") return undefined;
  if (item["type"] === "agent_message") return agentMessage(item);
  const turn = readClientItem(item);
  // What nobody offers here was the provider's own: a record.
  const name = turn && offer.byOrigin.get(originOf({ form: turn.form, name: turn.form }));
  if (!turn || name === undefined) return message;
  if (turn.part.type === "tool-call") return { role: "assistant", parts: [{ ...turn.part, name }] };
  return { role: "tool", parts: [{ ...turn.part, content: foundTools(item, offer) ?? turn.part.content }] };
}

/** What a search found, by the names that it is offered under. */
function foundTools(item: JsonObject, offer: Offer): Part[] | undefined {
  if (item["type"] !== "tool_search_output") return undefined;
  const found = asList(item["tools"]).flatMap((value) => {
    const tool = asObject(value) ?? {};
    const namespace = tool["type"] === "namespace" ? asString(tool["name"]) : undefined;
    const inner = namespace === undefined ? [tool] : asList(tool["tools"]);
    return inner.map((each) => {
      const name = asString(asObject(each)?.["name"]) ?? "";
      return (
        offer.byOrigin.get(originOf({ name, ...(namespace === undefined ? {} : { namespace }) })) ?? name
      );
    });
  });
  return [{ type: "text", text: JSON.stringify({ tools: found }) }];
}

/** Words of one agent of a team to another, which other protocols know as the user's. */
function agentMessage(item: JsonObject): Message {
  const texts = asList(item["content"]).map((part) => asString(asObject(part)?.["text"]) ?? "");
  const from = `[${asString(item["author"]) ?? ""} → ${asString(item["recipient"]) ?? ""}]`;
  return { role: "user", parts: [{ type: "text", text: `${from}\n${texts.join("\n")}` }] };
}

/** A choice of a tool that goes under another name here. */
function plainChoice({ toolChoice: choice }: CanonicalRequest, offer: Offer): CanonicalRequest["toolChoice"] {
  if (choice?.mode === "tool" && !offer.taken.has(choice.name)) {
    for (const [name, tool] of offer.names) if (tool.name === choice.name) return { ...choice, name };
  }
  if (choice?.mode !== "hosted") return undefined;
  const form = asString(asObject(choice.value)?.["type"]) ?? "";
  const name = offer.byOrigin.get(originOf({ form, name: form }));
  return name === undefined ? undefined : { mode: "tool", name };
}

const TEXT = { type: "string" };
const EDITOR = {
  type: "object",
  properties: {
    command: TEXT,
    path: TEXT,
    view_range: { type: "array", items: { type: "integer" } },
    file_text: TEXT,
    old_str: TEXT,
    new_str: TEXT,
    insert_line: { type: "integer" },
    insert_text: TEXT,
    old_path: TEXT,
    new_path: TEXT,
  },
  required: ["command"],
};
const BASH = { type: "object", properties: { command: TEXT, restart: { type: "boolean" } } };

/**
 * Anthropic's tools that the client runs, by the beginning of their dated types. The model knows their schemas by heart;
 * others have to be told. Source: Anthropic's documentation of the bash, text editor and memory tools.
 */
const ANTHROPIC_TOOLS: readonly { type: RegExp; description: string; schema: JsonObject }[] = [
  { type: /^bash_\d/, description: "Runs a command in the user's shell.", schema: BASH },
  {
    type: /^text_editor_\d/,
    description: "Edits files by the commands view, create, str_replace and insert.",
    schema: EDITOR,
  },
  {
    type: /^memory_\d/,
    description:
      "Keeps files under /memories by the commands view, create, str_replace, insert, delete and rename.",
    schema: EDITOR,
  },
];

/** Anthropic's own search over tools: elsewhere all of them are offered. */
const ANTHROPIC_SEARCH = /^tool_search_tool_/;

function plainAnthropic(request: CanonicalRequest): PlainTools {
  const isPlain = request.tools?.every((tool) => tool.type === "function" && !tool.extra?.["defer_loading"]);
  if (isPlain ?? true) return { request, names: NONE, dropped: [] };
  const dropped: string[] = [];
  const tools = request.tools?.flatMap((tool): Tool[] => {
    if (tool.type !== "hosted") return [tool];
    if (ANTHROPIC_SEARCH.test(tool.name)) {
      drop(dropped, `tools.${tool.name}`);
      return [];
    }
    const row = ANTHROPIC_TOOLS.find(({ type }) => type.test(tool.name));
    if (!row) return [tool];
    const name = asString(tool.value["name"]) ?? tool.name;
    const extra = rest(tool.value, ["type", "name"]);
    return [
      {
        type: "function",
        name,
        description: row.description,
        schema: row.schema,
        ...(extra ? { extra } : {}),
      },
    ];
  });
  const messages = request.messages.map((message) =>
    message.parts.some((part) => part.type === "tool-result")
      ? { ...message, parts: message.parts.map(withoutReferences) }
      : message,
  );
  const plainOne = { ...request, ...(tools ? { tools } : {}), messages };
  return { request: plainOne, names: NONE, dropped };
}

/** What a client's own search for tools found, in words. */
function withoutReferences(part: Part): Part {
  if (part.type !== "tool-result") return part;
  const content = part.content.map((inner): Part => {
    if (inner.type !== "opaque" || inner.name !== "tool_reference") return inner;
    return { type: "text", text: asString(asObject(inner.value)?.["tool_name"]) ?? "" };
  });
  return { ...part, content };
}

/** What is known of the client's tools to its answers: undefined where all of them are what they seem. */
export function clientNames(
  request: CanonicalRequest,
  takesCustom: boolean,
): ReadonlyMap<string, ClientTool> | undefined {
  const { request: asked, names } = plainTools(request);
  const all = new Map(names);
  for (const tool of asked.tools ?? []) {
    if (tool.type !== "custom" || takesCustom) continue;
    all.set(tool.name, { ...(names.get(tool.name) ?? { name: tool.name }), custom: true });
  }
  return all.size > 0 ? all : undefined;
}

/** Makes calls what their client knows again. The text of a free-text tool comes whole, when the call is. */
export function createUnwrapper(
  names: ReadonlyMap<string, ClientTool>,
): (event: CanonicalEvent) => CanonicalEvent[] {
  let open: { at: number; pieces: string[] } | undefined;
  return (event) => {
    if (event.type === "open" && event.kind === "tool-call") {
      const tool = names.get(event.name ?? "");
      if (!tool) return [event];
      if (tool.custom === true && event.custom !== true) open = { at: event.at, pieces: [] };
      return [renamed(event, tool)];
    }
    if (!open || !("at" in event) || event.at !== open.at) return [event];
    if (event.type === "json") {
      open.pieces.push(event.delta);
      return [];
    }
    if (event.type !== "close") return [event];
    const { at, pieces } = open;
    open = undefined;
    const delta = textOfCustom(pieces.join(""));
    return delta === "" ? [event] : [{ type: "json", at, delta }, event];
  };
}

function renamed(event: OpenEvent, tool: ClientTool): OpenEvent {
  return { ...event, ...tool };
}

/** The same for a whole answer, in place. */
export function unwrapAnswer(answer: Answer, names: ReadonlyMap<string, ClientTool>): Answer {
  for (const block of answer.blocks) {
    const tool = block.kind === "tool-call" ? names.get(block.name ?? "") : undefined;
    if (!tool) continue;
    if (tool.custom === true && block.custom !== true) block.text = textOfCustom(block.text);
    Object.assign(block, tool);
  }
  return answer;
}
