// What the tests of the playground share: the page's data, answers that stream when the test says so, the messages shown.
import { screen, within } from "@testing-library/react";
import Playground from "../../islands/screens/playground.tsx";
// What the page fetches when it is alive is there at once.
import "../../islands/screens/playground/messages.tsx";
import "../../islands/screens/playground/run.ts";
import { patience } from "../../islands/screens/playground/log-row.ts";
import { renderScreen, settle } from "./render.tsx";
import type { Island, IslandOptions, SentRequest } from "./render.tsx";

export const DATA = {
  groups: [
    { name: "default", desc: "Everybody", ratio: 1 },
    { name: "vip", desc: "", ratio: 3.5 },
  ],
  models: [
    ["claude-3-haiku", [0, 1], [0.125, 0.625]],
    ["gpt-4o", [0, 1], [1.25, 5]],
    ["gpt-4o-mini", [0], [0.075, 0.3]],
    ["painter", [0], [0.04]],
    ["unpriced", [0], []],
  ],
  mostBodyMb: 1,
};
export const PATH = "POST /pg/chat/completions";
export const LOG = "GET /api/log/self";

// Frames come when the test lets what is due happen; looking for a log row again does not wait.
globalThis.requestAnimationFrame = (run) => {
  queueMicrotask(() => run(0));
  return 0;
};
patience.sleep = () => new Promise((resolve) => setTimeout(resolve));

export function open(options: IslandOptions = {}): Island {
  return renderScreen(Playground, { url: "/playground", data: DATA, ...options });
}

export const composer = () => screen.getByRole("textbox", { name: "Message" }) as HTMLTextAreaElement;
export const chunk = (content: string) =>
  `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`;
export const DONE = "data: [DONE]\n\n";

/** An answer that grows when the test says so; an aborted call ends it. */
export function stream(id?: string) {
  let controls: ReadableStreamDefaultController<Uint8Array> | undefined;
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      controls = controller;
    },
  });
  return {
    response: new Response(body, { headers: headersOf(id) }),
    push: async (text: string) => {
      controls?.enqueue(new TextEncoder().encode(text));
      await settle();
    },
    end: async () => {
      controls?.close();
      await settle();
    },
    fail: (reason: unknown) => controls?.error(reason),
  };
}

const headersOf = (id: string | undefined) => ({
  "content-type": "text/event-stream; charset=utf-8",
  ...(id === undefined ? {} : { "X-Oneapi-Request-Id": id }),
});

export const streamed = (...parts: string[]) =>
  new Response(parts.join(""), { headers: headersOf(undefined) });

/** The same, of a call that has a row in the usage log. */
export const streamedAs = (id: string, ...parts: string[]) =>
  new Response(parts.join(""), { headers: headersOf(id) });

export const messages = (): HTMLElement[] => [
  ...screen.getByRole("region", { name: "Conversation" }).querySelectorAll<HTMLElement>("[data-message]"),
];

export function lastMessage(): HTMLElement {
  const last = messages().at(-1);
  if (!last) throw new Error("there is no message");
  return last;
}

export const buttonOf = (message: HTMLElement | undefined, name: string): HTMLElement => {
  if (!message) throw new Error("there is no message");
  return within(message).getByRole("button", { name });
};

export interface SentMessage {
  role: string;
  content: unknown;
}

export function sentMessages(call: SentRequest | undefined): SentMessage[] {
  return ((call?.body ?? {}) as { messages?: SentMessage[] }).messages ?? [];
}

/** Types a question and sends it; gives what was asked of the gateway. */
export async function ask(island: Island, text: string): Promise<SentRequest[]> {
  const before = island.requests.length;
  await island.user.type(composer(), `${text}{Enter}`);
  await settle();
  await settle();
  return island.requests.slice(before).filter(({ path }) => path === "/pg/chat/completions");
}
