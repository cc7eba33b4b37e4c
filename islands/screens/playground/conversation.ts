// What the playground keeps: settings and conversations in local storage, and the changes that a conversation can take.
// Refuses broken or foreign stored values: they count as nothing stored.
import { user } from "../../lib/boot.ts";
import { t } from "../../lib/i18n.ts";
import { readItem, removeItem, writeItem } from "../../lib/storage.ts";

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
  /** Pictures of a question or an answer, as data URLs. */
  images?: readonly string[];
  /** So many pictures were too large to be kept in the browser's storage. */
  lostImages?: number;
  /** 1: the answer of the second model, which stands at the right. */
  side?: Side;
  /** Names the rows that the call has in the usage log. */
  requestId?: string;
  /** What the usage log says of the call, once it does. */
  logged?: Logged;
}

/** 0: the model of the settings. 1: the one beside it. */
export type Side = 0 | 1;

export interface Logged {
  /** What was charged, in units. */
  quota: number;
  /** Unix seconds. */
  at: number;
  /** The key of the row in the list that the visitor sees. */
  key: string;
}

export interface Settings {
  model: string;
  group: string;
  system: string;
  temperature: number;
  max_tokens: number;
  isStream: boolean;
  /** The second model, which answers beside the first one; empty: nobody does. */
  other: string;
  /** As typed; empty: not sent. */
  top_p: string;
  frequency_penalty: string;
  presence_penalty: string;
  seed: string;
  reasoning_effort: string;
}

export interface Conversation {
  id: string;
  messages: readonly Message[];
  /** Id of the last message that is no longer sent; empty when everything is. */
  clearedAt: string;
  /** Begun as a copy of another one up to a message. */
  isBranch?: true;
}

export interface Stored {
  settings: Settings;
  conversations: readonly Conversation[];
  /** Id of the open conversation. */
  current: string;
}

/** Held the conversations of whoever was signed in. */
const SHARED_KEY = "playground";

/** Of one account: whoever signs in behind somebody else sees their own. */
export const storageKey = (): string => `playground ${user.peek()?.id ?? 0}`;
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
    other: "",
    top_p: "",
    frequency_penalty: "",
    presence_penalty: "",
    seed: "",
    reasoning_effort: "",
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
export function conversationTitle({ messages, isBranch }: Conversation): string {
  const first = messages.find((each) => each.role === "user" && !each.isGreeting);
  if (!first) return "";
  const chars = Array.from(first.content.replaceAll(/\s+/g, " ").trim() || t("playground.picture"));
  const title = chars.length > 40 ? `${chars.slice(0, 40).join("")}…` : chars.join("");
  return isBranch ? `↳ ${title}` : title;
}

export function updateMessage(
  { messages, ...rest }: Conversation,
  id: string,
  patch: Partial<Message>,
): Conversation {
  return { ...rest, messages: messages.map((each) => (each.id === id ? { ...each, ...patch } : each)) };
}

/** Messages that stand in one row: a question alone, or the answers of both models to it. */
export function turnsOf(messages: readonly Message[]): Message[][] {
  const turns: Message[][] = [];
  for (const message of messages) {
    const last = turns.at(-1);
    const isBeside = message.side === 1 && last?.length === 1 && isAnswer(last[0]) && last[0]?.side !== 1;
    if (isBeside) last.push(message);
    else turns.push([message]);
  }
  return turns;
}

const isAnswer = (message: Message | undefined): boolean =>
  message?.role === "assistant" && !message.isGreeting;

/**
 * Messages that are sent with the next question: after the cut, said by somebody, and not failed. Where both models
 * answered, each one is sent its own answer; where one of them did not, the other's.
 */
export function contextOf({ messages, clearedAt }: Conversation, side: Side = 0): Message[] {
  const cut = clearedAt === "" ? -1 : messages.findIndex(({ id }) => id === clearedAt);
  // Pictures that a model made are not sent back to it.
  const hasContent = ({ role, content, images }: Message) =>
    content.trim() !== "" || (role === "user" && images !== undefined);
  const isSaid = (each: Message) => !each.isGreeting && each.status !== "error" && hasContent(each);
  return turnsOf(messages.slice(cut + 1)).flatMap((turn) => {
    const said = turn.filter(isSaid);
    const own = said.find((each) => (each.side ?? 0) === side) ?? said[0];
    return own ? [own] : [];
  });
}

/** Pictures as the composer makes them: what is stored may be foreign. */
export const isPicture = (value: unknown): boolean =>
  typeof value === "string" && /^data:image\/(png|jpeg|webp|gif);base64,/.test(value);

function isMessage(value: unknown): value is Message {
  const each = value as Partial<Message> | null;
  return (
    typeof each === "object" &&
    each !== null &&
    typeof each.id === "string" &&
    typeof each.content === "string" &&
    (each.images === undefined || (Array.isArray(each.images) && each.images.every(isPicture))) &&
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
  // Whose they were nobody knows.
  removeItem(SHARED_KEY);
  let value: unknown;
  try {
    value = JSON.parse(readItem(storageKey()) ?? "null");
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

/** The same without its pictures: how many there were is kept. */
function withoutPictures({ messages, ...rest }: Conversation): Conversation {
  return {
    ...rest,
    messages: messages.map((message) => {
      if (message.images === undefined) return message;
      const { images, ...kept } = message;
      return { ...kept, lostImages: (kept.lostImages ?? 0) + images.length };
    }),
  };
}

const hasPictures = ({ messages }: Conversation): boolean =>
  messages.some((each) => each.images !== undefined);

/**
 * Where everything does not fit, pictures go first, those of the oldest conversations before others. False where the browser
 * kept nothing of it.
 */
export function writeStored(stored: Stored): boolean {
  const isKept = (each: Conversation) => each.id === stored.current || conversationTitle(each) !== "";
  let conversations = stored.conversations.filter(isKept).slice(0, MOST_CONVERSATIONS);
  let text = JSON.stringify({ ...stored, conversations });
  while (text.length > MOST_STORED_CHARS) {
    const at = conversations.findLastIndex(hasPictures);
    if (at < 0) break;
    conversations = conversations.map((each, index) => (index === at ? withoutPictures(each) : each));
    text = JSON.stringify({ ...stored, conversations });
  }
  while (text.length > MOST_STORED_CHARS && conversations.length > 1) {
    conversations = conversations.slice(0, -1);
    text = JSON.stringify({ ...stored, conversations });
  }
  writeItem(storageKey(), text);
  return readItem(storageKey()) === text;
}
