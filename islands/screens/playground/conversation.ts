// What the playground keeps: settings and conversations in local storage, and the changes that a conversation can take.
// Refuses broken or foreign stored values: they count as nothing stored.
import { t } from "../../lib/i18n.ts";
import { readItem, writeItem } from "../../lib/storage.ts";

type MessageStatus = "loading" | "incomplete" | "complete" | "error";

export interface Message {
  id: string;
  role: "user" | "assistant" | "system";
  content: string;
  /** Unix milliseconds. */
  createAt: number;
  status: MessageStatus;
  /** Shown at the start of a conversation; never sent. */
  isGreeting?: true;
  thinking?: string;
  model?: string;
  firstTokenMs?: number;
  totalMs?: number;
  promptTokens?: number;
  completionTokens?: number;
  /** What went wrong, and the stable code of it. */
  error?: string;
  errorCode?: string;
}

export interface Settings {
  model: string;
  group: string;
  system: string;
  temperature: number;
  max_tokens: number;
  isStream: boolean;
}

export interface Conversation {
  id: string;
  messages: readonly Message[];
  /** Id of the last message that is no longer sent; empty when everything is. */
  clearedAt: string;
}

export interface Stored {
  settings: Settings;
  conversations: readonly Conversation[];
  /** Id of the open conversation. */
  current: string;
}

const STORAGE_KEY = "playground";
/** Older conversations fall off: local storage holds about five megabytes. */
const MOST_CONVERSATIONS = 30;
const MOST_STORED_CHARS = 3_000_000;

let counter = 0;

/** Not crypto.randomUUID: it is missing on pages without TLS. */
export function newId(nowMs = Date.now()): string {
  counter++;
  return `${nowMs.toString(36)}-${counter.toString(36)}`;
}

export function defaultSettings(model: string, group: string): Settings {
  return {
    model,
    group,
    system: t("playground.defaultSystem"),
    temperature: 0,
    max_tokens: 0,
    isStream: true,
  };
}

export function newConversation(nowMs = Date.now()): Conversation {
  const greeting = (role: "user" | "assistant", content: string): Message => ({
    id: newId(nowMs),
    role,
    content,
    createAt: nowMs,
    status: "complete",
    isGreeting: true,
  });
  return {
    id: newId(nowMs),
    messages: [
      greeting("user", t("playground.greetingUser")),
      greeting("assistant", t("playground.greeting")),
    ],
    clearedAt: "",
  };
}

/** First words of the first message that a person wrote; empty before that. */
export function conversationTitle({ messages }: Conversation): string {
  const first = messages.find((each) => each.role === "user" && !each.isGreeting);
  const chars = Array.from((first?.content ?? "").replaceAll(/\s+/g, " ").trim());
  return chars.length > 40 ? `${chars.slice(0, 40).join("")}…` : chars.join("");
}

export function updateMessage(
  { messages, ...rest }: Conversation,
  id: string,
  patch: Partial<Message>,
): Conversation {
  return { ...rest, messages: messages.map((each) => (each.id === id ? { ...each, ...patch } : each)) };
}

/** Messages that are sent with the next question: after the cut, said by somebody, and not failed. */
export function contextOf({ messages, clearedAt }: Conversation): Message[] {
  const cut = clearedAt === "" ? -1 : messages.findIndex(({ id }) => id === clearedAt);
  return messages
    .slice(cut + 1)
    .filter((each) => !each.isGreeting && each.status !== "error" && each.content.trim() !== "");
}

function isMessage(value: unknown): value is Message {
  const each = value as Partial<Message> | null;
  return (
    typeof each === "object" &&
    each !== null &&
    typeof each.id === "string" &&
    typeof each.content === "string" &&
    (each.role === "user" || each.role === "assistant" || each.role === "system")
  );
}

function isConversation(value: unknown): value is Conversation {
  const each = value as Partial<Conversation> | null;
  return (
    typeof each === "object" &&
    each !== null &&
    typeof each.id === "string" &&
    typeof each.clearedAt === "string" &&
    Array.isArray(each.messages) &&
    each.messages.every(isMessage)
  );
}

function readSettings(value: unknown, fallback: Settings): Settings {
  if (typeof value !== "object" || value === null) return fallback;
  const stored = value as Record<string, unknown>;
  const kept = Object.entries(fallback).map(([name, standard]) => [
    name,
    typeof stored[name] === typeof standard ? stored[name] : standard,
  ]);
  return Object.fromEntries(kept) as Settings;
}

/** Undefined when nothing usable is stored. An answer that was still running counts as stopped. */
export function readStored(fallback: Settings): Stored | undefined {
  let value: unknown;
  try {
    value = JSON.parse(readItem(STORAGE_KEY) ?? "null");
  } catch {
    return undefined;
  }
  if (typeof value !== "object" || value === null) return undefined;
  const { settings, conversations, current } = value as Partial<Record<keyof Stored, unknown>>;
  const usable = (Array.isArray(conversations) ? conversations.filter(isConversation) : []).map((each) => ({
    ...each,
    messages: each.messages.map((message) =>
      message.status === "loading" ? { ...message, status: "incomplete" as const } : message,
    ),
  }));
  const [first] = usable;
  if (!first) return undefined;
  return {
    settings: readSettings(settings, fallback),
    conversations: usable,
    current: usable.some(({ id }) => id === current) ? (current as string) : first.id,
  };
}

export function writeStored(stored: Stored): void {
  const isKept = (each: Conversation) => each.id === stored.current || conversationTitle(each) !== "";
  let conversations = stored.conversations.filter(isKept).slice(0, MOST_CONVERSATIONS);
  let text = JSON.stringify({ ...stored, conversations });
  while (text.length > MOST_STORED_CHARS && conversations.length > 1) {
    conversations = conversations.slice(0, -1);
    text = JSON.stringify({ ...stored, conversations });
  }
  writeItem(STORAGE_KEY, text);
}
