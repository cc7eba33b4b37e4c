// The answers that are running: each its own stream, stop and cost; two of them where two models are compared.
// Refuses to draw more often than the screen does, however many pieces a stream has.
import { useCallback, useEffect, useRef } from "react";
import type { Dispatch, SetStateAction } from "react";
import { t } from "../../lib/i18n.ts";
import { announce } from "../../lib/toasts.ts";
import type { Conversation, Message, Settings, Side, Stored } from "./conversation.ts";
import { contextOf, newId, updateMessage } from "./conversation.ts";
import { keepRawEvent } from "./raw-events.ts";
import { bodyOf } from "./request.ts";
import type { Reply } from "./run.ts";

/** Fetched as soon as the page is alive: nobody asks faster. */
const loadRun = () => import("./run.ts");

export type ChangeConversation = (id: string, next: (conversation: Conversation) => Conversation) => void;

export function messageOf(part: Pick<Message, "role" | "content" | "status"> & Partial<Message>): Message {
  return { id: newId(), createAt: Date.now(), ...part };
}

/** While nobody looks no frame comes: then it is drawn a few times a second, for what is saved when the page is left. */
const HIDDEN_MS = 250;

/** Hands on the last of what came since the last frame. */
function perFrame(draw: (reply: Reply) => void): {
  take: (reply: Reply) => void;
  finish: (reply: Reply) => void;
} {
  let waiting: Reply | undefined;
  let isOver = false;
  const flush = () => {
    if (waiting && !isOver) draw(waiting);
    waiting = undefined;
  };
  return {
    take(reply) {
      const isDue = waiting !== undefined;
      waiting = reply;
      if (isDue) return;
      if (document.hidden) setTimeout(flush, HIDDEN_MS);
      else requestAnimationFrame(flush);
    },
    finish(reply) {
      isOver = true;
      draw(reply);
    },
  };
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
      const frames = perFrame((patch) => change(id, (before) => updateMessage(before, reply.id, patch)));
      const body = bodyOf(settings, contextOf(conversation, reply.side));
      const run = await loadRun().catch(() => undefined);
      if (!run) {
        frames.finish({
          content: "",
          status: "error",
          error: t("common.failure.network"),
          errorCode: "network",
        });
        setRunning((before) => new Map([...before].filter(([each]) => each !== reply.id)));
        return;
      }
      const done = await run.requestAnswer(body, controller.signal, {
        onReply: frames.take,
        onRaw: (data, ms) => keepRawEvent(reply.id, { data, ms }),
      });
      frames.finish(done);
      setRunning((before) => new Map([...before].filter(([each]) => each !== reply.id)));
      announce(done.status === "error" ? "playground.answerFailed" : "playground.answered");
      const logged = await run.findLogged(done);
      if (logged) change(id, (before) => updateMessage(before, reply.id, { logged }));
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
