// What of a request names its session: headers of coding agents, fields of bodies, else how its prompt begins.
// Refuses nothing; a request that nothing names is nobody's session.
import type { DialectName } from "../../protocol/canonical.ts";
import { asObject, parseJson } from "../../protocol/json.ts";
import type { RelayBody } from "../wire/read-body.ts";
import type { Json } from "./endpoint.ts";

export interface SessionName {
  /** Kind of place that it was found in. */
  rule: string;
  /** The place. */
  source: string;
  value: string;
  /** How long it is kept; 0: as long as the site says. */
  ttlSeconds: number;
}

/** In this order; what coding agents send. */
const HEADERS = [
  "x-claude-code-session-id",
  "session-id",
  "session_id",
  "x-session-id",
  "x-session-affinity",
  "x-opencode-session",
] as const;
/** Kinds of places where a client gives its session a name. */
export const NAMED_RULES = [
  "session-header",
  "metadata-session",
  "body-session",
  "conversation",
  "prompt-cache-key",
] as const;
const MAX_NAME_CHARS = 1024;
/** A beginning that is shorter is cached nowhere (1,024 tokens at least). */
const LEAST_PREFIX_CHARS = 4096;
/** Caches of prompts live five minutes after their last use, or an hour where that was asked for. */
const PREFIX_SECONDS = 600;
const LONG_PREFIX_SECONDS = 3600;

/** The session that a request belongs to; undefined where nothing tells. */
export function sessionNameOf(
  headers: Headers,
  dialect: DialectName,
  body: RelayBody,
): SessionName | undefined {
  for (const name of HEADERS) {
    const value = headers.get(name);
    if (isName(value)) return { rule: "session-header", source: name, value, ttlSeconds: 0 };
  }
  return inBody(body.json) ?? byPrefix(dialect, body);
}

function isName(value: unknown): value is string {
  return typeof value === "string" && value.trim() !== "" && value.length <= MAX_NAME_CHARS;
}

function inBody(json: Json): SessionName | undefined {
  const found = (rule: (typeof NAMED_RULES)[number], source: string, value: string): SessionName => ({
    rule,
    source,
    value,
    ttlSeconds: 0,
  });
  const { metadata, conversation } = json;
  const session = metadata === undefined ? undefined : sessionIn(asObject(metadata)?.["user_id"]);
  if (session !== undefined) return found("metadata-session", "metadata.user_id", session);
  if (isName(json["session_id"])) return found("body-session", "session_id", json["session_id"]);
  const named = typeof conversation === "string" ? conversation : asObject(conversation)?.["id"];
  if (isName(named)) return found("conversation", "conversation", named);
  const cacheKey = json["prompt_cache_key"];
  return isName(cacheKey) ? found("prompt-cache-key", "prompt_cache_key", cacheKey) : undefined;
}

/** Claude Code writes JSON with `session_id`, or a name that ends in `_session_` and the id. */
function sessionIn(userId: unknown): string | undefined {
  if (!isName(userId)) return undefined;
  if (userId.startsWith("{")) {
    const session = asObject(parseJson(userId))?.["session_id"];
    return isName(session) ? session : undefined;
  }
  const [, session] = /_session_(.+)$/.exec(userId) ?? [];
  return session;
}

/** How a conversation begins: the same in every turn of it. */
interface Beginning {
  system: string;
  tools: string;
  firstUser: string;
}

/** Over the bytes: a search in long text takes ten times as long. */
const MARK = Buffer.from('"cache_control"');

function byPrefix(dialect: DialectName, { json, text, bytes }: RelayBody): SessionName | undefined {
  const isMarked = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).includes(MARK);
  if (!isMarked && text.length < LEAST_PREFIX_CHARS) return undefined;
  const { system, tools, firstUser } = beginningOf(dialect, json);
  if (!isMarked && system.length + tools.length < LEAST_PREFIX_CHARS) return undefined;
  const isLong = isMarked && /"ttl"\s*:\s*"1h"/.test(text);
  return {
    rule: "prefix",
    source: "prefix",
    value: [system, tools, firstUser].map(digestOf).join(" "),
    ttlSeconds: isLong ? LONG_PREFIX_SECONDS : PREFIX_SECONDS,
  };
}

/** 128 bits and the length; quick rather than strong: who finds two alike meets their own sessions alone. */
function digestOf(part: string): string {
  if (part === "") return "";
  const halves = [0n, 1n].map((seed) => Bun.hash.wyhash(part, seed).toString(16));
  return `${part.length}.${halves.join(".")}`;
}

function beginningOf(dialect: DialectName, json: Json): Beginning {
  const tools = json["tools"] === undefined ? "" : JSON.stringify(json["tools"]);
  if (dialect === "gemini") {
    const system = json["systemInstruction"] ?? json["system_instruction"];
    const [first] = listOf(json["contents"]);
    return {
      system: textOf(asObject(system)?.["parts"]),
      tools,
      firstUser: textOf(asObject(first)?.["parts"]),
    };
  }
  if (dialect === "anthropic") {
    const first = listOf(json["messages"]).find(isOfUser);
    return { system: textOf(json["system"]), tools, firstUser: textOf(asObject(first)?.["content"]) };
  }
  const { input } = json;
  const turns = listOf(dialect === "openai-chat" ? json["messages"] : input);
  const at = turns.findIndex(isOfUser);
  const before = at === -1 ? [] : turns.slice(0, at);
  const heads = before.map((each) => textOf(asObject(each)?.["content"]));
  return {
    system: [textOf(json["instructions"]), ...heads].join("\n"),
    tools,
    firstUser: typeof input === "string" ? input : textOf(asObject(turns[at])?.["content"]),
  };
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

const isOfUser = (turn: unknown): boolean => asObject(turn)?.["role"] === "user";

/** The text of a content, in either of its forms; marks of caches move from turn to turn and are left out. */
function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  return listOf(content)
    .map((part) => {
      const text = typeof part === "string" ? part : asObject(part)?.["text"];
      return typeof text === "string" ? text : "";
    })
    .join("\n");
}
