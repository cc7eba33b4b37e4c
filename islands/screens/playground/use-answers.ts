// The answers that are running: each its own stream, stop and cost; two of them where two models are compared.
// Refuses to lose an answer's cost: it is looked up when the answer has ended, and again when the page is opened anew.
import { useCallback, useEffect, useRef } from "react";
import type { Dispatch, SetStateAction } from "react";
import { t } from "../../lib/i18n.ts";
import { announce } from "../../lib/toasts.ts";
import type { Conversation, Message, Settings, Side, Stored } from "./conversation.ts";
import { newId, updateMessage } from "./conversation.ts";
import type { RunAnswer } from "./run.ts";

/** Fetched as soon as the page is alive: nobody asks faster. */
const loadRun = () => import("./run.ts");

/** Where it cannot be fetched the network is away, and so is the answer. */
const NO_RUN: { runAnswer: RunAnswer; findLogged: () => Promise<undefined> } = {
  runAnswer: ({ draw }) => {
    const failed = { content: "", status: "error", error: t("common.failure.network") } as const;
    draw(failed);
    return Promise.resolve(failed);
  },
  findLogged: () => Promise.resolve(undefined),
};

export type ChangeConversation = (id: string, next: (conversation: Conversation) => Conversation) => void;

export function messageOf(part: Pick<Message, "role" | "content" | "status"> & Partial<Message>): Message {
  return { id: newId(), createAt: Date.now(), ...part };
}

/** The settings as one of the two models is asked with. */
function settingsOf(settings: Settings, side: Side): Settings {
  return side === 1 && settings.other !== "" ? { ...settings, model: settings.other } : settings;
}

export interface Question {
  /** The conversation up to the question, itself included. */
  messages: readonly Message[];
  /** Who is asked. */
  sides: readonly Side[];
  /** An answer of the other model that stays beside. */
  kept?: Message | undefined;
}

/** How many stored answers are looked up at most when a conversation is opened. */
const MOST_LOOKUPS = 8;

/** Of a page that was left before the charge was known: looked up once more. */
export function useLateCosts(
  conversation: Conversation,
  isLoaded: boolean,
  change: ChangeConversation,
): void {
  const { id } = conversation;
  const latest = useRef(conversation);
  latest.current = conversation;
  useEffect(() => {
    loadRun().catch(() => undefined);
  }, []);
  useEffect(() => {
    if (!isLoaded) return;
    const unknown = latest.current.messages.filter(
      (each) => each.requestId !== undefined && !each.logged && each.totalMs !== undefined,
    );
    const lookUp = async (message: Message) => {
      const { findLogged } = await loadRun();
      const logged = await findLogged({ ...message, status: "complete" });
      if (logged) change(id, (before) => updateMessage(before, message.id, { logged }));
    };
    for (const message of unknown.slice(-MOST_LOOKUPS)) void lookUp(message).catch(() => undefined);
    // Once per conversation: what runs now is looked up when it ends.
  }, [id, isLoaded]);
}

/** By the id of the answer's message. */
export type Running = ReadonlyMap<string, AbortController>;

export interface Answering {
  latest: { current: Stored };
  change: ChangeConversation;
  setRunning: Dispatch<SetStateAction<Running>>;
}

/** Asks one model or both. */
export function useAsk({ latest, change, setRunning }: Answering): (question: Question) => void {
  const runOne = useCallback(
    async (conversation: Conversation, reply: Message, settings: Settings): Promise<void> => {
      const controller = new AbortController();
      setRunning((before) => new Map([...before, [reply.id, controller]]));
      const { id } = conversation;
      const draw = (patch: Partial<Message>) =>
        change(id, (before) => updateMessage(before, reply.id, patch));
      const { runAnswer, findLogged } = await loadRun().catch(() => NO_RUN);
      const done = await runAnswer({ conversation, reply, settings, signal: controller.signal, draw });
      setRunning((before) => new Map([...before].filter(([each]) => each !== reply.id)));
      announce(done.status === "error" ? "playground.answerFailed" : "playground.answered");
      const logged = await findLogged(done);
      if (logged) draw({ logged });
    },
    [change],
  );

  return useCallback(
    ({ messages, sides, kept }: Question) => {
      const { settings, current, conversations } = latest.current;
      const conversation = conversations.find(({ id }) => id === current);
      if (!conversation || settings.model === "") return;
      const replies = sides.map((side) => {
        const { model } = settingsOf(settings, side);
        const beside = side === 1 ? { side } : {};
        return messageOf({ role: "assistant", content: "", status: "loading", model, ...beside });
      });
      const answers = [...replies, ...(kept ? [kept] : [])].sort((a, b) => (a.side ?? 0) - (b.side ?? 0));
      change(current, (before) => ({ ...before, messages: [...messages, ...answers] }));
      const asked = { ...conversation, messages };
      for (const reply of replies) void runOne(asked, reply, settingsOf(settings, reply.side ?? 0));
    },
    [change, runOne],
  );
}
