// Conversations of the playground as they are kept: one account's own, those of several tabs together, none lost by an undo or an edit.
import { beforeEach, describe, expect, test } from "bun:test";
import { act, screen } from "@testing-library/react";
import { branchOf } from "../../islands/screens/playground/branch.ts";
import type { Conversation, Message } from "../../islands/screens/playground/conversation.ts";
import { storageKey } from "../../islands/screens/playground/conversation.ts";
import { mergedConversations, syncedOf } from "../../islands/screens/playground/merge.ts";
import {
  ask,
  buttonOf,
  chunk,
  composer,
  DONE,
  lastMessage,
  messages,
  open,
  PATH,
  sentMessages,
  stream,
  streamed,
} from "./playground-support.ts";
import { settle } from "./render.tsx";
import type { Island } from "./render.tsx";

beforeEach(() => localStorage.clear());

const message = (id: string, part: Partial<Message> = {}): Message => ({
  id,
  role: "user",
  content: id,
  createAt: 1,
  status: "complete",
  ...part,
});
const talk = (id: string, ...said: string[]): Conversation => ({
  id,
  clearedAt: "",
  messages: said.map((each) => message(each)),
});
const kept = () =>
  JSON.parse(localStorage.getItem(storageKey()) ?? "{}") as { conversations: Conversation[] };
const textsOf = (conversations: readonly Conversation[]) =>
  conversations.map(({ messages: said }) =>
    said.filter(({ isGreeting }) => !isGreeting).map(({ content }) => content),
  );

/** Another tab of this browser changes what is stored. */
async function otherTab(change: (conversations: Conversation[]) => Conversation[]): Promise<void> {
  const stored = kept();
  const next = JSON.stringify({ ...stored, conversations: change(stored.conversations) });
  localStorage.setItem(storageKey(), next);
  act(() => void window.dispatchEvent(new StorageEvent("storage", { key: storageKey() })));
  await settle();
}

async function names(island: Island): Promise<string[]> {
  const button = screen.getByRole("button", { name: "Conversations" });
  await island.user.click(button);
  await settle();
  const items = screen.getAllByRole("menuitem").map((each) => each.textContent ?? "");
  await island.user.click(button);
  await settle();
  return items;
}

test("who signs in behind somebody else sees none of their conversations", async () => {
  const island = open();
  island.answer(PATH, () => streamed(chunk("kept"), DONE));
  await ask(island, "a secret of ada");
  island.unmount();
  open({ user: { id: 8, username: "carol" } }).unmount();
  localStorage.setItem("playground", localStorage.getItem("playground 7") ?? "");
  const carol = open({ user: { id: 8, username: "carol" } });
  expect(document.body.textContent).not.toContain("a secret of ada");
  // As earlier builds kept them: nobody's.
  expect(localStorage.getItem("playground")).toBeNull();
  carol.unmount();
  open();
  expect(messages().at(-2)?.textContent).toContain("a secret of ada");
});

test("what another tab asks, begins and deletes is taken over, and what is asked here is not taken back", async () => {
  const island = open();
  island.answer(PATH, () => streamed(chunk("kept"), DONE));
  await ask(island, "mine");
  await otherTab((before) => [talk("theirs", "their question"), ...before]);
  expect(await names(island)).toEqual(expect.arrayContaining(["their question", "mine"]));
  await ask(island, "more of mine");
  expect(textsOf(kept().conversations)).toEqual([
    ["their question"],
    ["mine", "kept", "more of mine", "kept"],
  ]);
  // Nothing is written where nothing is new: two tabs would write to each other without end.
  const written = localStorage.getItem(storageKey());
  const stored = `${written} `;
  localStorage.setItem(storageKey(), stored);
  act(() => void window.dispatchEvent(new StorageEvent("storage", { key: storageKey() })));
  await settle();
  expect(localStorage.getItem(storageKey())).toBe(stored);
  await otherTab((before) => before.filter(({ id }) => id !== "theirs"));
  expect(await names(island)).not.toContain("their question");
});

test("of what both tabs hold: theirs where only they changed it, mine where I did", () => {
  const [a, b, c, d] = [talk("a", "1"), talk("b", "1"), talk("c", "1"), talk("d", "1")];
  const mine = [a, talk("b", "1", "mine"), c, d, talk("new", "1")];
  const stored = [talk("a", "1", "theirs"), talk("b", "1", "theirs"), talk("other", "1")];
  const merged = mergedConversations(mine, { open: "d", synced: syncedOf([a, b, c, d]), stored });
  expect(merged.map(({ id, messages: said }) => `${id} ${said.at(-1)?.content}`)).toEqual([
    "other 1",
    "a theirs",
    "b mine",
    "d 1",
    "new 1",
  ]);
  const same = [a, b];
  expect(
    mergedConversations(same, {
      open: "a",
      synced: syncedOf(same),
      stored: [talk("a", "1"), talk("b", "1")],
    }),
  ).toBe(same);
});

test("Undo of a deleted conversation brings that one back, and leaves what was asked meanwhile", async () => {
  const island = open();
  island.answer(PATH, () => streamed(chunk("kept"), DONE));
  await ask(island, "old one");
  await island.user.click(screen.getByRole("button", { name: "Conversations" }));
  await island.user.click(screen.getByRole("menuitem", { name: "Delete this conversation" }));
  await settle();
  await ask(island, "asked meanwhile");
  await island.user.click(screen.getByRole("button", { name: "Undo" }));
  await settle();
  expect(messages().at(-2)?.textContent).toContain("old one");
  expect(await names(island)).toEqual(expect.arrayContaining(["old one", "asked meanwhile"]));
});

describe("a branch", () => {
  const answer = (id: string, side?: 1): Message =>
    message(id, { role: "assistant", ...(side ? { side } : {}) });
  const said = [message("q1"), answer("a1"), answer("b1", 1), message("q2"), answer("a2"), answer("b2", 1)];

  test.each([
    ["b1", "a2", "a1"],
    ["b1", "b2", "b1"],
    ["b2", "a2", "a2"],
    ["", "a2", ""],
  ])("of a talk that was cut at %p goes on from %p with the cut at %p", (clearedAt, from, cut) => {
    expect(branchOf({ id: "c", messages: said, clearedAt }, from)?.clearedAt).toBe(cut);
  });
});

test("a question that is being rewritten keeps its text while another one is answered", async () => {
  const island = open();
  const running = stream();
  island.answer(PATH, () => streamed(chunk("one"), DONE));
  await ask(island, "first");
  await island.user.click(buttonOf(messages().at(-2), "Edit and resend"));
  const field = (await screen.findByRole("textbox", { name: "Edit the message" })) as HTMLTextAreaElement;
  await island.user.type(field, " rewritten");
  island.answer(PATH, () => running.response);
  await island.user.type(composer(), "second{Enter}");
  await settle();
  const edited = () => screen.getByRole<HTMLTextAreaElement>("textbox", { name: "Edit the message" });
  const calls = island.requests.length;
  await island.user.type(edited(), "{Enter}");
  expect(island.requests.length).toBe(calls);
  await running.push(chunk("two"));
  await running.push(DONE);
  await running.end();
  expect(edited().value).toContain("first rewritten");
});

describe("an answer", () => {
  const PNG = "data:image/png;base64,iVBORw0KGgo=";
  const SPY = "https://spy.example/p.png";
  const images = (...urls: string[]) => urls.map((url) => ({ type: "image_url", image_url: { url } }));
  const event = (delta: object) => `data: ${JSON.stringify({ choices: [{ delta }] })}\n\n`;

  test.each([true, false])("brings its pictures and its refusal along (streamed: %p)", async (isStreamed) => {
    const island = open();
    const parts = { content: "look", images: images(PNG, SPY), refusal: "No more of it." };
    island.answer(PATH, () =>
      isStreamed
        ? streamed(
            event({ content: "look" }),
            event({ images: parts.images }),
            event({ refusal: parts.refusal }),
            DONE,
          )
        : Response.json({ choices: [{ message: parts, finish_reason: "stop" }] }),
    );
    await ask(island, "draw");
    const last = lastMessage();
    expect([...last.querySelectorAll("img")].map(({ src }) => src)).toEqual([PNG]);
    expect(last.textContent).toContain("No more of it.");
    expect(last.querySelector("a")?.getAttribute("href")).toBe(SPY);
    // What it drew is not sent back to it: few models take pictures as their own words.
    const [next] = await ask(island, "again");
    expect(JSON.stringify(sentMessages(next))).not.toContain("base64");
  });

  test("of a picture alone is complete, and is kept", async () => {
    const island = open();
    island.answer(PATH, () => streamed(event({ images: images(PNG) }), DONE));
    await ask(island, "draw");
    expect(lastMessage().dataset.status).toBe("complete");
    island.unmount();
    open();
    expect(lastMessage().querySelectorAll("img")).toHaveLength(1);
  });

  test("keeps a picture on the page that did not fit into the storage", async () => {
    const island = open();
    const large = `${PNG.slice(0, -1)}${"A".repeat(3_000_000)}=`;
    island.answer(PATH, () => streamed(event({ images: images(large) }), DONE));
    await ask(island, "draw");
    expect(kept().conversations[0]?.messages.at(-1)?.lostImages).toBe(1);
    // Another tab writes: what is stored of this talk is what this tab left there.
    await otherTab((before) => [...before, talk("theirs", "their question")]);
    expect(lastMessage().querySelectorAll("img")).toHaveLength(1);
    await otherTab((before) =>
      before.map((each) => (each.id === "theirs" ? each : talk(each.id, "changed"))),
    );
    expect(lastMessage().textContent).toContain("changed");
  });
});

test("talks stay on the page where the browser's storage takes nothing", async () => {
  const real = Object.getOwnPropertyDescriptor(globalThis, "localStorage") ?? {};
  const full = () => {
    throw new DOMException("full", "QuotaExceededError");
  };
  const value = { getItem: () => null, setItem: full, removeItem: () => undefined };
  Object.defineProperty(globalThis, "localStorage", { configurable: true, value });
  try {
    const island = open();
    island.answer(PATH, () => streamed(chunk("kept"), DONE));
    await ask(island, "first");
    await island.user.click(screen.getByRole("button", { name: "New conversation" }));
    await settle();
    await ask(island, "second");
    expect(await names(island)).toEqual(expect.arrayContaining(["first", "second"]));
    island.unmount();
  } finally {
    Object.defineProperty(globalThis, "localStorage", real);
  }
});
