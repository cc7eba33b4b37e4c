// What people do with answers: see what they cost, edit, regenerate, branch, compare two models, attach pictures, look at events.
import { describe, expect, test } from "bun:test";
import { fireEvent, screen, waitFor, within } from "@testing-library/react";
import { transport } from "../../islands/lib/api.ts";
import { readStored, defaultSettings, storageKey } from "../../islands/screens/playground/conversation.ts";
import { readPictures } from "../../islands/screens/playground/read-pictures.ts";
import { bodyOf } from "../../islands/screens/playground/request.ts";
import { spokenLength } from "../../islands/screens/playground/spoken.tsx";
import {
  ask,
  buttonOf,
  chunk,
  composer,
  DATA,
  DONE,
  lastMessage,
  LOG,
  messages,
  open,
  PATH,
  sentMessages,
  stream,
  streamed,
  streamedAs,
} from "./playground-support.ts";
import { settle } from "./render.tsx";
import type { Island, SentRequest } from "./render.tsx";

const rowOf = (fields: Record<string, unknown>) => ({
  id: 5,
  type: 2,
  created_at: 1_790_000_000,
  quota: 0,
  ...fields,
});
const page = (...items: unknown[]) => ({ success: true, data: { items, total: items.length } });

/** Answers each model with its own stream. */
function perModel(island: Island, answers: Record<string, () => Response>): void {
  island.answer(PATH, (call: SentRequest) => {
    const { model } = call.body as { model: string };
    return answers[model]?.() ?? streamed(chunk(`from ${model}`), DONE);
  });
}

describe("the cost of an answer", () => {
  test("is what the log row says, and leads to that row", async () => {
    const island = open();
    island.answer(PATH, () => streamedAs("req-1", chunk("hi"), DONE));
    island.answer(LOG, (call: SentRequest) =>
      call.query["request_id"] === "req-1" ? page(rowOf({ quota: 1234 })) : page(),
    );
    await ask(island, "what");
    await waitFor(() => expect(within(lastMessage()).getByRole("link").textContent).toContain("$0.002468"));
    const link = within(lastMessage()).getByRole("link") as HTMLAnchorElement;
    expect(Object.fromEntries(new URL(link.href).searchParams)).toEqual({
      request_id: "req-1",
      start_timestamp: String(1_790_000_000 - 3600),
      end_timestamp: String(1_790_000_000 + 3600),
      id: "1790000000-5",
    });
    // Kept with the conversation.
    island.unmount();
    open();
    expect(lastMessage().textContent).toContain("$0.002468");
  });

  test("is looked for again while the row is not there yet, and shown in units where the site has no currency", async () => {
    const island = open({ status: { display_in_currency: false } });
    let looks = 0;
    island.answer(PATH, () => streamedAs("req-2", chunk("hi"), DONE));
    island.answer(LOG, () => (++looks < 3 ? page() : page(rowOf({ quota: 1234 }))));
    await ask(island, "what");
    await waitFor(() => expect(within(lastMessage()).getByRole("link").textContent).toContain("1,234"));
    expect(looks).toBe(3);
  });

  test("of administrators comes from the list that their link opens", async () => {
    const island = open({ user: { role: 100 } });
    island.answer(PATH, () => streamedAs("req-3", chunk("hi"), DONE));
    island.answer("GET /api/log", page(rowOf({ id: 777, quota: 0 })));
    await ask(island, "what");
    await waitFor(() => expect(within(lastMessage()).getByRole("link").textContent).toContain("$0"));
    expect(within(lastMessage()).getByRole("link").getAttribute("href")).toContain("&id=777");
  });

  test("that was not known when the page was left is found when it is opened again", async () => {
    const island = open();
    island.answer(PATH, () => streamedAs("req-4", chunk("hi"), DONE));
    island.answer(LOG, page());
    await ask(island, "what");
    expect(within(lastMessage()).queryByRole("link")).toBeNull();
    island.unmount();
    const again = open();
    again.answer(LOG, page(rowOf({ quota: 500 })));
    await waitFor(() => expect(within(lastMessage()).getByRole("link").textContent).toContain("$0.001"));
  });
});

describe("a failed call", () => {
  const refusal = (headers: Record<string, string>) =>
    Response.json(
      { error: { message: "No balance", code: "insufficient_user_quota" } },
      { status: 403, headers },
    );

  test("shows its code and leads to its row", async () => {
    const island = open();
    island.answer(PATH, () => refusal({ "X-Oneapi-Request-Id": "req-5" }));
    island.answer(LOG, page(rowOf({ type: 5, id: 9 })));
    await ask(island, "what");
    expect(within(lastMessage()).getByRole("alert").textContent).toContain("insufficient_user_quota");
    await waitFor(() =>
      expect(within(lastMessage()).getByRole("link", { name: "Entry in the usage log" })).toBeTruthy(),
    );
  });

  test("has the code of the dictionary where the server names it", async () => {
    const island = open();
    island.answer(PATH, () => refusal({ "x-weir-error-code": "user_quota_empty" }));
    await ask(island, "what");
    expect(within(lastMessage()).getByRole("alert").textContent).toContain("user_quota_empty");
    expect(within(lastMessage()).queryByRole("link")).toBeNull();
  });

  test("without a row shows the request id to copy", async () => {
    const island = open();
    island.answer(PATH, () => refusal({ "X-Oneapi-Request-Id": "req-6" }));
    island.answer(LOG, page());
    await ask(island, "what");
    expect(lastMessage().textContent).toContain("req-6");
    expect(buttonOf(lastMessage(), "Request ID")).toBeTruthy();
  });
});

describe("asking again", () => {
  async function two(island: Island) {
    island.answer(PATH, () => streamed(chunk("one"), DONE));
    await ask(island, "first");
    island.answer(PATH, () => streamed(chunk("two"), DONE));
    await ask(island, "second");
  }
  const said = (call: SentRequest | undefined) =>
    sentMessages(call)
      .slice(1)
      .map(({ role, content }) => `${role}: ${String(content)}`);

  test("an edited question replaces itself and what followed; Undo brings everything back", async () => {
    const island = open();
    await two(island);
    const before = messages().map((each) => each.textContent);
    await island.user.click(buttonOf(messages().at(-4), "Edit and resend"));
    const field = (await screen.findByRole("textbox", { name: "Edit the message" })) as HTMLTextAreaElement;
    expect(document.activeElement).toBe(field);
    expect(field.value).toBe("first");
    await island.user.clear(field);
    island.answer(PATH, () => streamed(chunk("new"), DONE));
    await island.user.type(field, "other{Enter}");
    await settle();
    expect(said(island.requests.at(-1))).toEqual(["user: other"]);
    expect(messages().map((each) => each.dataset["status"])).toHaveLength(4);
    expect(lastMessage().textContent).toContain("new");
    expect(document.activeElement).toBe(composer());
    await island.user.click(screen.getByRole("button", { name: "Undo" }));
    await settle();
    expect(messages().map((each) => each.textContent)).toEqual(before);
  });

  test("Undo of an edit stops the answer that it asked for", async () => {
    const island = open();
    await two(island);
    const running = stream();
    island.answer(PATH, () => running.response);
    await island.user.click(buttonOf(messages().at(-2), "Edit and resend"));
    await island.user.type(await screen.findByRole("textbox", { name: "Edit the message" }), "!{Enter}");
    await running.push(chunk("late"));
    await island.user.click(screen.getByRole("button", { name: "Undo" }));
    running.fail(new DOMException("", "AbortError"));
    await settle();
    expect(lastMessage().textContent).toContain("two");
    expect(screen.getByRole("button", { name: "Send" })).toBeTruthy();
  });

  test("Escape leaves the question as it was", async () => {
    const island = open();
    await two(island);
    await island.user.click(buttonOf(messages().at(-2), "Edit and resend"));
    await island.user.type(await screen.findByRole("textbox", { name: "Edit the message" }), "x{Escape}");
    await settle();
    expect(messages().at(-2)?.textContent).toContain("second");
    expect(island.requests).toHaveLength(2);
    expect(document.activeElement).toBe(buttonOf(messages().at(-2), "Edit and resend"));
  });

  test("a branch is a new conversation up to an answer; the old one stays as it was", async () => {
    const island = open();
    await two(island);
    await island.user.click(buttonOf(messages().at(-3), "Branch from here"));
    await settle();
    expect(lastMessage().textContent).toContain("one");
    island.answer(PATH, () => streamed(chunk("three"), DONE));
    const [call] = await ask(island, "elsewhere");
    expect(said(call)).toEqual(["user: first", "assistant: one", "user: elsewhere"]);
    await island.user.click(screen.getByRole("button", { name: "Conversations" }));
    expect(screen.getByRole("menuitem", { name: "↳ first" })).toBeTruthy();
    await island.user.click(screen.getByRole("menuitem", { name: "first" }));
    expect(lastMessage().textContent).toContain("two");
  });
});

describe("two models side by side", () => {
  async function compare(island: Island) {
    await island.user.click(screen.getByRole("switch", { name: "Compare two models" }));
  }

  test("each answers with its own stream, figures and cost, and is sent its own answers afterwards", async () => {
    const island = open();
    await compare(island);
    perModel(island, {
      "gpt-4o": () => streamedAs("a", chunk("left"), DONE),
      "gpt-4o-mini": () => streamedAs("b", chunk("right"), DONE),
    });
    island.answer(LOG, (call: SentRequest) =>
      page(rowOf({ quota: call.query["request_id"] === "a" ? 500 : 1000 })),
    );
    const calls = await ask(island, "both");
    expect(calls.map(({ body }) => (body as { model: string }).model)).toEqual(["gpt-4o-mini", "gpt-4o"]);
    const [first, second] = messages().slice(-2);
    expect([first?.textContent, second?.textContent]).toEqual([
      expect.stringContaining("right"),
      expect.stringContaining("left"),
    ]);
    expect(first?.parentElement).toBe(second?.parentElement ?? null);
    await waitFor(() => expect(second?.textContent).toContain("$0.001"));
    expect(first?.textContent).toContain("$0.002");
    const next = await ask(island, "again");
    expect(
      next.map((call) =>
        sentMessages(call)
          .map(({ content }) => content)
          .slice(1),
      ),
    ).toEqual([
      ["both", "right", "again"],
      ["both", "left", "again"],
    ]);
  });

  test("one can be stopped while the other goes on, and one alone can be asked again", async () => {
    const island = open();
    await compare(island);
    const left = stream();
    const right = stream();
    const streams = [left, right];
    const signals: AbortSignal[] = [];
    transport.fetch = async (_, init) => {
      const own = streams[signals.length];
      const signal = init?.signal;
      if (!own || !signal) throw new Error("one call too many");
      signals.push(signal);
      signal.addEventListener("abort", () => own.fail(signal.reason));
      return own.response;
    };
    await island.user.type(composer(), "both{Enter}");
    await left.push(chunk("so far"));
    await right.push(chunk("still"));
    await island.user.click(buttonOf(messages().at(-2), "Stop this answer"));
    await settle();
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, false]);
    expect(messages().at(-2)?.textContent).toContain("Stopped");
    expect(screen.getByRole("button", { name: "Stop" })).toBeTruthy();
    await right.push(chunk(" going") + DONE);
    await right.end();
    expect(lastMessage().textContent).toContain("still going");
    expect(screen.getByRole("button", { name: "Send" })).toBeTruthy();

    const again = stream();
    streams.push(again);
    await island.user.click(buttonOf(messages().at(-2), "Regenerate"));
    await again.push(chunk("anew") + DONE);
    await again.end();
    expect(
      messages()
        .slice(-2)
        .map((each) => each.textContent),
    ).toEqual([expect.stringContaining("anew"), expect.stringContaining("still going")]);
    expect(signals).toHaveLength(3);
  });

  test("a branch goes on with the answer and the model that it was begun at", async () => {
    const island = open();
    await compare(island);
    perModel(island, {});
    await ask(island, "both");
    await island.user.click(buttonOf(lastMessage(), "Branch from here"));
    await settle();
    const [call, ...more] = await ask(island, "on");
    expect(more).toEqual([]);
    expect(call?.body).toMatchObject({ model: "gpt-4o" });
    expect(
      sentMessages(call)
        .map(({ content }) => content)
        .slice(1),
    ).toEqual(["both", "from gpt-4o", "on"]);
  });

  test("where one of them failed, both go on with the answer of the other", async () => {
    const island = open();
    await compare(island);
    perModel(island, { "gpt-4o": () => streamed(`data: {"error":{"message":"broken"}}\n\n`) });
    await ask(island, "both");
    const next = await ask(island, "again");
    for (const call of next) {
      expect(sentMessages(call).map(({ content }) => content)).toContain("from gpt-4o-mini");
    }
  });
});

describe("pictures", () => {
  const PNG = Uint8Array.fromBase64("iVBORw0KGgo=");
  const picture = (name = "a.png", type = "image/png", bytes: Uint8Array<ArrayBuffer> = PNG) =>
    new File([bytes], name, { type });
  const area = () => composer().closest("form") as HTMLElement;

  test("come by button, drop and paste, are shown, can be taken away, and are sent as parts", async () => {
    const island = open();
    island.answer(PATH, () => streamed(chunk("a dot"), DONE));
    const field = area().querySelector("input[type=file]") as HTMLInputElement;
    fireEvent.change(field, { target: { files: [picture()] } });
    await waitFor(() => expect(screen.getAllByRole("img", { name: /^Picture/ })).toHaveLength(1));
    fireEvent.drop(area(), {
      dataTransfer: { types: ["Files"], files: [picture("b.jpg", "image/jpeg")] },
    });
    await waitFor(() => expect(screen.getAllByRole("img", { name: /^Picture/ })).toHaveLength(2));
    fireEvent.paste(composer(), {
      clipboardData: { files: [picture("c.gif", "image/gif")], getData: () => "" },
    });
    await waitFor(() => expect(screen.getAllByRole("img", { name: /^Picture/ })).toHaveLength(3));
    await island.user.click(screen.getByRole("button", { name: "Remove picture 2" }));
    const [call] = await ask(island, "look");
    expect(sentMessages(call).at(-1)?.content).toEqual([
      { type: "text", text: "look" },
      { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } },
      { type: "image_url", image_url: { url: "data:image/gif;base64,iVBORw0KGgo=" } },
    ]);
    expect(within(messages().at(-2) as HTMLElement).getAllByRole("img")).toHaveLength(2);
    expect(screen.queryByRole("list", { name: "Pictures to send" })).toBeNull();
  });

  test("without words they are a question too; text that is pasted beside a picture stays text", async () => {
    const island = open();
    island.answer(PATH, () => streamed(chunk("a dot"), DONE));
    fireEvent.paste(composer(), {
      clipboardData: { files: [picture()], getData: () => "a table" },
    });
    await settle();
    expect(screen.queryByRole("img", { name: /^Picture/ })).toBeNull();
    fireEvent.drop(area(), { dataTransfer: { types: ["Files"], files: [picture()] } });
    await screen.findByRole("img", { name: "Picture 1" });
    await island.user.click(screen.getByRole("button", { name: "Send" }));
    await settle();
    expect(sentMessages(island.requests[0]).at(-1)?.content).toEqual([
      { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } },
    ]);
  });

  test("what is no picture, or makes the call too large, is refused by name before it is sent", async () => {
    open();
    fireEvent.drop(area(), {
      dataTransfer: {
        types: ["Files"],
        files: [
          picture("page.pdf", "application/pdf"),
          picture("drawing.svg", "image/svg+xml"),
          picture("huge.png", "image/png", new Uint8Array(900_000)),
          picture("empty.png", "image/png", new Uint8Array()),
        ],
      },
    });
    await waitFor(() => expect(screen.getByRole("alert").textContent).toContain("page.pdf"));
    const alert = screen.getByRole("alert").textContent ?? "";
    expect(alert).toContain("drawing.svg is not a picture that models read");
    expect(alert).toContain("huge.png does not fit: a call may have 1 MB");
    expect(alert).toContain("empty.png cannot be read");
    expect(screen.queryByRole("img", { name: /^Picture/ })).toBeNull();
  });

  test("together they keep within what is left", async () => {
    const half = () => picture("x.png", "image/png", new Uint8Array(300));
    const { urls, refused } = await readPictures([half(), half(), half()], 1000);
    expect([urls.length, refused]).toEqual([2, [{ name: "x.png", reason: "size" }]]);
  });

  test("too large for the browser's storage, they go first: the words stay, and the message says what is gone", async () => {
    const island = open({ data: { ...DATA, mostBodyMb: 64 } });
    island.answer(PATH, () => streamed(chunk("a dot"), DONE));
    fireEvent.drop(area(), {
      dataTransfer: { types: ["Files"], files: [picture("big.png", "image/png", new Uint8Array(2_400_000))] },
    });
    await screen.findByRole("img", { name: "Picture 1" });
    await ask(island, "look");
    island.unmount();
    open();
    expect(messages().at(-2)?.textContent).toContain("look");
    expect(messages().at(-2)?.textContent).toContain("1 picture was too large to keep");
    expect(screen.queryByRole("img", { name: "Picture 1" })).toBeNull();
  });
});

describe("raw events", () => {
  test("are those of the stream, in order, as they came", async () => {
    const island = open();
    island.answer(PATH, () => streamed(chunk("one"), ": ping\n\n", chunk("two"), DONE));
    await ask(island, "what");
    await island.user.click(buttonOf(lastMessage(), "Raw events"));
    const drawer = within(await screen.findByRole("dialog", { name: "Raw events" }));
    expect(drawer.getAllByRole("listitem").map((each) => each.querySelector("code")?.textContent)).toEqual([
      `{"choices":[{"delta":{"content":"one"}}]}`,
      `{"choices":[{"delta":{"content":"two"}}]}`,
      "[DONE]",
    ]);
    expect(drawer.getByText("3 events")).toBeTruthy();
  });

  test("of an answer that is not streamed are its body", async () => {
    const island = open();
    island.answer(PATH, { choices: [{ message: { content: "Whole." }, finish_reason: "stop" }] });
    await island.user.click(screen.getByRole("switch", { name: "Stream the answer" }));
    await ask(island, "what");
    await island.user.click(buttonOf(lastMessage(), "Raw events"));
    const drawer = within(await screen.findByRole("dialog", { name: "Raw events" }));
    expect(drawer.getByRole("listitem").textContent).toContain(`"content":"Whole."`);
  });
});

describe("settings and storage", () => {
  test("further settings are sent only when something is typed in them", () => {
    const settings = { ...defaultSettings("m", "g"), system: "", isStream: false };
    const sent = bodyOf(
      { ...settings, top_p: "0.5", seed: "0", frequency_penalty: "x", reasoning_effort: "low" },
      [],
    );
    expect(sent).toMatchObject({ top_p: 0.5, seed: 0, reasoning_effort: "low" });
    expect(sent).not.toHaveProperty("frequency_penalty");
    expect(sent).not.toHaveProperty("presence_penalty");
  });

  test("a group's ratio is in the prices; without a currency they are units", async () => {
    const island = open();
    await island.user.selectOptions(screen.getByRole("combobox", { name: "Group" }), "vip");
    expect(screen.getByText("$8.75 in · $35.00 out per 1M tokens")).toBeTruthy();
    island.unmount();
    localStorage.clear();
    open({ status: { display_in_currency: false } });
    expect(screen.getByText("75,000 in · 300,000 out per 1M tokens")).toBeTruthy();
  });

  test("conversations of earlier releases are read as they are", () => {
    const old = {
      settings: {
        model: "gpt-4o",
        group: "default",
        system: "s",
        temperature: 0.5,
        max_tokens: 3,
        isStream: false,
      },
      conversations: [
        {
          id: "c",
          clearedAt: "",
          messages: [
            { id: "1", role: "user", content: "asked", createAt: 1, status: "complete" },
            { id: "2", role: "assistant", content: "said", createAt: 2, status: "loading", model: "gpt-4o" },
          ],
        },
      ],
      current: "c",
    };
    localStorage.setItem(storageKey(), JSON.stringify(old));
    const read = readStored(defaultSettings("m", "g"));
    expect(read?.settings).toEqual({ ...defaultSettings("gpt-4o", "default"), ...old.settings });
    expect(read?.conversations[0]?.messages.map(({ status }) => status)).toEqual(["complete", "incomplete"]);
    open();
    expect(lastMessage().textContent).toContain("said");
  });

  test("stored pictures that are none are not read", () => {
    const message = { id: "1", role: "user", content: "x", createAt: 1, status: "complete" };
    const stored = {
      conversations: [
        { id: "bad", clearedAt: "", messages: [{ ...message, images: ["https://spy.example/x.png"] }] },
        { id: "good", clearedAt: "", messages: [{ ...message, images: ["data:image/png;base64,AA=="] }] },
      ],
      current: "bad",
    };
    localStorage.setItem(storageKey(), JSON.stringify(stored));
    expect(readStored(defaultSettings("m", "g"))?.conversations.map(({ id }) => id)).toEqual(["good"]);
  });
});

describe("by keyboard and by ear", () => {
  test("Escape stops the answer, from the field and from the list", async () => {
    for (const from of [composer, () => screen.getByRole("region", { name: "Conversation" })]) {
      const island = open();
      const running = stream();
      transport.fetch = async (_, init) => {
        init?.signal?.addEventListener("abort", () => running.fail(init.signal?.reason));
        return running.response;
      };
      await island.user.type(composer(), "hi{Enter}");
      await running.push(chunk("so far"));
      from().focus();
      await island.user.keyboard("{Escape}");
      await settle();
      expect(lastMessage().dataset["status"]).toBe("incomplete");
      island.unmount();
      localStorage.clear();
    }
  });

  test("deleting a message leaves the focus in the field", async () => {
    const island = open();
    island.answer(PATH, () => streamed(chunk("one"), DONE));
    await ask(island, "first");
    await island.user.click(buttonOf(lastMessage(), "Delete message"));
    expect(document.activeElement).toBe(composer());
  });

  test("what is spoken ends with a sentence", () => {
    expect(spokenLength("One. Two is 3.5 long. Thr")).toBe("One. Two is 3.5 long.".length);
    expect(spokenLength("你好。这是")).toBe("你好。".length);
    expect(spokenLength("nothing yet")).toBe(0);
  });

  test("in Chinese every control has a name", async () => {
    const island = open({ language: "zh" });
    island.answer(PATH, () => streamed(chunk("好"), DONE));
    await island.user.type(screen.getByRole("textbox", { name: "消息" }), "你好{Enter}");
    await settle();
    await settle();
    for (const name of ["编辑并重新发送", "重新生成", "从此处分支", "原始事件", "添加图片", "发送"])
      expect(screen.getAllByRole("button", { name }).length).toBeGreaterThan(0);
    expect(screen.getByRole("switch", { name: "对比两个模型" })).toBeTruthy();
    expect(screen.getByText("每百万 token：输入 $0.15 · 输出 $0.60")).toBeTruthy();
  });
});
