// What people can do in the playground: ask, watch the answer grow, stop it, ask again, tidy up, take the call as code.
import { describe, expect, test } from "bun:test";
import { fireEvent, screen, waitFor, within } from "@testing-library/react";
import { transport } from "../../islands/lib/api.ts";
import { eventBatches } from "../../islands/lib/sse.ts";
import { keepQuote } from "../../islands/screens/playground/quotes.ts";
import { defaultSettings, storageKey } from "../../islands/screens/playground/conversation.ts";
import ModelNotes from "../../islands/screens/playground/model-notes.tsx";
import { bodyOf } from "../../islands/screens/playground/request.ts";
import { sampleOf } from "../../islands/screens/playground/samples.ts";
import { gptFirst } from "../../islands/screens/playground/settings.tsx";
import {
  chunk,
  composer,
  DATA,
  DONE,
  lastMessage,
  messages,
  open,
  PATH,
  sentMessages,
  stream,
  streamed,
} from "./playground-support.ts";
import { renderScreen, settle } from "./render.tsx";

const usage = `data: ${JSON.stringify({ choices: [], usage: { prompt_tokens: 1200, completion_tokens: 7 } })}\n\n`;

describe("asking", () => {
  test("Enter sends, the answer grows, and its figures follow", async () => {
    const island = open();
    const answer = stream();
    island.answer(PATH, () => answer.response);
    await island.user.type(composer(), "What is a weir?{Enter}");
    await settle();
    expect(composer().value).toBe("");
    expect(lastMessage().dataset.status).toBe("loading");
    await answer.push(chunk("A low "));
    expect(lastMessage().dataset.status).toBe("incomplete");
    await answer.push(chunk("dam."));
    // Paragraphs are typeset once a frame, so the end of one may come after what the answer brought.
    await waitFor(() => expect(lastMessage().textContent).toContain("A low dam."));
    await answer.push(usage + DONE);
    await answer.end();
    expect(lastMessage().dataset.status).toBe("complete");
    expect(lastMessage().textContent).toContain("gpt-4o-mini");
    expect(lastMessage().textContent).toContain("1,200 prompt · 7 completion tokens");
    expect(lastMessage().textContent).toMatch(/first token \d+ ms/);
    expect(island.requests[0]?.headers["new-api-user"]).toBe("7");
    expect(island.requests[0]?.body).toEqual({
      model: "gpt-4o-mini",
      group: "default",
      messages: [
        { role: "system", content: "You are a helpful assistant that answers my questions." },
        { role: "user", content: "What is a weir?" },
      ],
      stream: true,
      stream_options: { include_usage: true },
      temperature: 0,
    });
  });

  test("the quote that was shown goes along, so that its price is kept; one of another model, or about to end, stays here", async () => {
    const island = open();
    island.answer(PATH, () => streamed(chunk("one"), DONE));
    const now = Math.floor(Date.now() / 1000);
    keepQuote("other-model", "default", { id: "of another", expiresAt: now + 300 });
    for (const [id, expiresAt, sent] of [
      ["q-good", now + 300, "q-good"],
      ["q-ending", now + 5, undefined],
    ] as const) {
      keepQuote("gpt-4o-mini", "default", { id, expiresAt });
      await island.user.type(composer(), "1{Enter}");
      await settle();
      expect(island.requests.at(-1)?.headers["x-quote"]).toBe(sent);
    }
  });

  test("Shift Enter breaks the line, and Enter does not send while an input method composes", async () => {
    const island = open();
    await island.user.type(composer(), "one{Shift>}{Enter}{/Shift}two");
    expect(composer().value).toBe("one\ntwo");
    fireEvent.keyDown(composer(), { key: "Enter", isComposing: true });
    fireEvent.keyDown(composer(), { key: "Enter", keyCode: 229 });
    await settle();
    expect(island.requests).toEqual([]);
    expect(composer().value).toBe("one\ntwo");
  });

  test("nothing is sent that says nothing, and nothing while an answer runs", async () => {
    const island = open();
    const answer = stream();
    island.answer(PATH, () => answer.response);
    await island.user.type(composer(), "   {Enter}");
    expect(island.requests.length).toBe(0);
    await island.user.type(composer(), "a{Enter}");
    await island.user.type(composer(), "b{Enter}");
    expect(island.requests.length).toBe(1);
    expect(composer().value).toContain("b");
    await answer.end();
  });

  test("the next question carries the conversation; greetings and failed answers are not sent", async () => {
    const island = open();
    island.answer(PATH, () => streamed(chunk("one"), DONE));
    await island.user.type(composer(), "1{Enter}");
    await settle();
    island.answer(PATH, () => streamed(`data: {"error":{"message":"broken","code":"upstream_down"}}\n\n`));
    await island.user.type(composer(), "2{Enter}");
    await settle();
    island.answer(PATH, () => streamed(chunk("three"), DONE));
    await island.user.type(composer(), "3{Enter}");
    await settle();
    const sent = sentMessages(island.requests.at(-1)).map(
      ({ role, content }) => `${role}: ${String(content)}`,
    );
    expect(sent.slice(1)).toEqual(["user: 1", "assistant: one", "user: 2", "user: 3"]);
  });

  test("an answer that is not streamed comes whole", async () => {
    const island = open();
    island.answer(PATH, {
      choices: [{ message: { role: "assistant", content: "Whole." }, finish_reason: "stop" }],
      usage: { prompt_tokens: 3, completion_tokens: 2 },
    });
    await island.user.click(screen.getByRole("switch", { name: "Stream the answer" }));
    await island.user.type(composer(), "hi{Enter}");
    await settle();
    expect(lastMessage().textContent).toContain("Whole.");
    expect(lastMessage().textContent).not.toContain("first token");
    expect(island.requests[0]?.body).toMatchObject({ stream: false });
  });
});

describe("what can go wrong", () => {
  test("an error in the stream keeps the text, is shown with its code, and can be asked again", async () => {
    const island = open();
    island.answer(PATH, () =>
      streamed(
        chunk("Half an "),
        `data: {"error":{"message":"The upstream broke","code":"broken_stream"}}\n\n`,
        DONE,
      ),
    );
    await island.user.type(composer(), "hi{Enter}");
    await settle();
    expect(lastMessage().dataset.status).toBe("error");
    expect(lastMessage().textContent).toContain("Half an");
    expect(within(lastMessage()).getByRole("alert").textContent).toContain("The upstream broke");
    expect(within(lastMessage()).getByRole("alert").textContent).toContain("broken_stream");
    island.answer(PATH, () => streamed(chunk("Whole."), DONE));
    await island.user.click(within(lastMessage()).getByRole("button", { name: "Regenerate" }));
    await settle();
    expect(lastMessage().dataset.status).toBe("complete");
    expect(messages().filter((each) => each.textContent?.includes("Half an"))).toEqual([]);
  });

  test("a refused call shows the server's sentence in the answer's place", async () => {
    const island = open();
    island.answer(
      PATH,
      Response.json(
        { error: { message: "No balance", type: "x", code: "user_quota_empty" } },
        { status: 403 },
      ),
    );
    await island.user.type(composer(), "hi{Enter}");
    await settle();
    expect(lastMessage().dataset.status).toBe("error");
    expect(lastMessage().textContent).toContain("No balance");
  });

  test("a connection that ends without an end mark is not taken for a whole answer", async () => {
    const island = open();
    island.answer(PATH, () => streamed(chunk("Half")));
    await island.user.type(composer(), "hi{Enter}");
    await settle();
    expect(lastMessage().dataset.status).toBe("error");
    expect(lastMessage().textContent).toContain("The connection ended early");
  });

  test("Stop aborts the call and keeps what came", async () => {
    const island = open();
    const answer = stream();
    let signal: AbortSignal | null | undefined;
    transport.fetch = async (_, init) => {
      signal = init?.signal;
      return new Response(
        new ReadableStream<Uint8Array>({
          async start(controller) {
            signal?.addEventListener("abort", () => controller.error(signal?.reason));
            const reader = answer.response.body?.getReader();
            for (;;) {
              const { done, value } = (await reader?.read()) ?? { done: true };
              if (done || !value) return;
              controller.enqueue(value);
            }
          },
        }),
        { headers: { "content-type": "text/event-stream" } },
      );
    };
    await island.user.type(composer(), "hi{Enter}");
    await answer.push(chunk("So far"));
    await island.user.click(screen.getByRole("button", { name: "Stop" }));
    await settle();
    expect(signal?.aborted).toBe(true);
    expect(lastMessage().dataset.status).toBe("incomplete");
    expect(lastMessage().textContent).toContain("So far");
    expect(lastMessage().textContent).toContain("Stopped");
    expect(screen.getByRole("button", { name: "Send" })).toBeTruthy();
  });

  test("what a model writes is never taken as markup", async () => {
    const island = open();
    island.answer(PATH, () => streamed(chunk("<img src=x onerror=alert(1)>\n```html\n<b>x</b>\n```"), DONE));
    await island.user.type(composer(), "hi{Enter}");
    await settle();
    expect(lastMessage().querySelector("img, b")).toBeNull();
    expect(lastMessage().textContent).toContain("<img src=x onerror=alert(1)>");
    await waitFor(() => expect(lastMessage().querySelector("pre")?.textContent).toBe("<b>x</b>"));
    expect(lastMessage().querySelector("img, b")).toBeNull();
    expect(lastMessage().textContent).toContain("<img src=x onerror=alert(1)>");
  });
});

describe("tidying up", () => {
  test("a cleared context is not sent; it can be restored", async () => {
    const island = open();
    island.answer(PATH, () => streamed(chunk("old"), DONE));
    await island.user.type(composer(), "before{Enter}");
    await settle();
    await island.user.click(screen.getByRole("button", { name: "Clear context" }));
    await island.user.type(composer(), "after{Enter}");
    await settle();
    const contents = () =>
      sentMessages(island.requests.at(-1))
        .map((each) => each.content)
        .slice(1);
    expect(contents()).toEqual(["after"]);
    await island.user.click(screen.getByRole("button", { name: "Restore" }));
    await island.user.type(composer(), "again{Enter}");
    await settle();
    expect(contents()).toEqual(["before", "old", "after", "old", "again"]);
  });

  test("a deleted message comes back with Undo, at its place", async () => {
    const island = open();
    island.answer(PATH, () => streamed(chunk("answer"), DONE));
    await island.user.type(composer(), "question{Enter}");
    await settle();
    const before = messages().map((each) => each.textContent);
    const question = messages().at(-2);
    if (!question) throw new Error("there is no question");
    await island.user.click(within(question).getByRole("button", { name: "Delete message" }));
    expect(messages().length).toBe(before.length - 1);
    await island.user.click(screen.getByRole("button", { name: "Undo" }));
    await settle();
    expect(messages().map((each) => each.textContent)).toEqual(before);
  });

  test("conversations and settings are still there after the page was left", async () => {
    const island = open();
    island.answer(PATH, () => streamed(chunk("kept"), DONE));
    await island.user.type(composer(), "remember{Enter}");
    await settle();
    fireEvent.change(screen.getByRole("slider", { name: "Temperature" }), { target: { value: "0.7" } });
    await settle();
    island.unmount();
    const again = open();
    expect(lastMessage().textContent).toContain("kept");
    expect(screen.getByRole("slider", { name: "Temperature" }).getAttribute("aria-valuetext")).toBe("0.7");
    await again.user.click(screen.getByRole("button", { name: "New conversation" }));
    expect(screen.queryByText("kept")).toBeNull();
    await again.user.click(screen.getByRole("button", { name: "Conversations" }));
    await again.user.click(screen.getByRole("menuitem", { name: "remember" }));
    expect(lastMessage().textContent).toContain("kept");
  });

  test("broken storage counts as nothing stored", () => {
    localStorage.setItem(storageKey(), `{"conversations":[{"id":5}],"settings":3}`);
    open();
    expect(screen.getByText("Hello, how can I help you?")).toBeTruthy();
  });
});

describe("settings", () => {
  test("the model is found by typing and chosen with the arrow keys", async () => {
    const island = open();
    const model = screen.getByRole("combobox", { name: "Model" }) as HTMLInputElement;
    expect(model.value).toBe("gpt-4o-mini");
    await island.user.click(model);
    const options = () => within(screen.getByRole("listbox", { name: "Model" })).getAllByRole("option");
    expect(options().map((each) => each.textContent)).toEqual([
      "gpt-4o$2.50 in · $10.00 out per 1M tokens",
      "gpt-4o-mini$0.15 in · $0.60 out per 1M tokens",
      "claude-3-haiku$0.25 in · $1.25 out per 1M tokens",
      "painter$0.04 per call",
      "unpricedNo price is set",
    ]);
    await island.user.clear(model);
    await island.user.keyboard("HAI");
    expect(options().length).toBe(1);
    await island.user.keyboard("{Enter}");
    expect(model.value).toBe("claude-3-haiku");
    await island.user.keyboard("{ArrowDown}{ArrowUp}{Enter}");
    expect(model.value).toBe("gpt-4o-mini");
    await island.user.keyboard("{ArrowDown}zzz");
    expect(screen.getByText("No model matches")).toBeTruthy();
    await island.user.keyboard("{Escape}");
    expect(model.value).toBe("gpt-4o-mini");
  });

  test("the key that chose a model without a price counts as use, even where the note of it comes later", async () => {
    const own = Object.getOwnPropertyDescriptor(navigator, "userActivation");
    try {
      for (const hasBeenActive of [false, true]) {
        Object.defineProperty(navigator, "userActivation", { value: { hasBeenActive }, configurable: true });
        const island = renderScreen(
          () => <ModelNotes chosen={[]} perhapsUnpriced={["unpriced"]} notices={[]} />,
          { url: "/playground", data: DATA },
        );
        island.answer("GET /api/user/models/unpriced", { success: true, data: ["unpriced"] });
        await settle();
        expect(island.requests.length).toBe(hasBeenActive ? 1 : 0);
        island.unmount();
      }
    } finally {
      if (own) Object.defineProperty(navigator, "userActivation", own);
      else Reflect.deleteProperty(navigator, "userActivation");
    }
  });

  test("a group brings its ratio and only its models", async () => {
    const island = open();
    await island.user.selectOptions(screen.getByRole("combobox", { name: "Group" }), "vip");
    expect(screen.getByText("3.5×")).toBeTruthy();
    expect((screen.getByRole("combobox", { name: "Model" }) as HTMLInputElement).value).toBe("gpt-4o");
  });

  test("output limit and system prompt are sent only when they say something", () => {
    const settings = {
      ...defaultSettings("m", "g"),
      system: " ",
      temperature: 0.3,
      isStream: false,
    };
    expect(bodyOf(settings, [])).toEqual({
      model: "m",
      group: "g",
      messages: [],
      stream: false,
      temperature: 0.3,
    });
    expect(bodyOf({ ...settings, max_tokens: 5, system: "be brief" }, [])).toMatchObject({
      max_tokens: 5,
      messages: [{ role: "system", content: "be brief" }],
    });
  });

  test("without a model the way to one is shown, and nothing can be sent", async () => {
    const island = open({ data: { ...DATA, models: [] }, user: { role: 100 } });
    const link = await screen.findByRole("link", { name: "Add a channel" });
    expect(link.getAttribute("href")).toBe("/channel?new=1");
    await island.user.type(composer(), "hi{Enter}");
    expect(island.requests).toEqual([]);
  });

  test("names that begin with gpt come first", () => {
    expect(gptFirst(["a", "gpt-1", "b", "gpt-0"])).toEqual(["gpt-1", "gpt-0", "a", "b"]);
  });
});

describe("the call as code", () => {
  const body = bodyOf({ ...defaultSettings("m", "vip"), system: "", temperature: 0.5 }, [
    { role: "user", content: `it's "quoted"\n\\ 堰` },
  ]);

  test("curl survives quotes in the text", async () => {
    const code = sampleOf("curl", "http://gate.example/", body);
    expect(code).toStartWith("curl http://gate.example/v1/chat/completions");
    // What a shell makes of it must be the body, without the group.
    const shell = Bun.spawnSync(["sh", "-c", code.replace(/^curl /, "printf '%s\\n' ")]);
    const sent = shell.stdout.toString().split("\n-d\n")[1] ?? "";
    const { group, ...expected } = body;
    expect(group).toBe("vip");
    expect(JSON.parse(sent)).toEqual(expected);
  });

  test("Python and Node hold the same call", () => {
    const python = sampleOf("Python", "http://gate.example", body);
    expect(python).toContain(`stream=True,`);
    expect(python).toContain(JSON.stringify(`it's "quoted"\n\\ 堰`));
    const node = sampleOf("Node", "http://gate.example", body);
    expect(node).toContain(`baseURL: "http://gate.example/v1"`);
    expect(node).not.toContain("vip");
  });

  test("is shown with what is being written", async () => {
    const island = open();
    await island.user.type(composer(), "my question");
    await island.user.click(screen.getByRole("button", { name: "View code" }));
    const drawer = await screen.findByRole("dialog", { name: "View code" });
    await island.user.click(within(drawer).getByRole("button", { name: "Python" }));
    expect(drawer.textContent).toContain(`{"role": "user", "content": "my question"}`);
  });
});

describe("events", () => {
  async function eventsOf(bytes: Uint8Array, cuts: readonly number[]): Promise<string[]> {
    const edges = [...new Set([0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length])].toSorted(
      (a, b) => a - b,
    );
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        edges.slice(1).forEach((to, index) => controller.enqueue(bytes.slice(edges[index], to)));
        controller.close();
      },
    });
    const found: string[] = [];
    for await (const batch of eventBatches(body)) found.push(...batch);
    return found;
  }

  test.each(["\n", "\r\n", "\r"])(
    "are the same wherever the network cuts them, with line ends %j",
    async (end) => {
      const text = [
        ": comment",
        "event: x",
        "data: 堰 one",
        "",
        "data:two",
        "data: lines",
        "",
        "id: 3",
        "",
        "data: last",
      ];
      const bytes = new TextEncoder().encode(text.join(end));
      const expected = ["堰 one", "two\nlines", "last"];
      for (let cut = 0; cut <= bytes.length; cut++)
        expect({ cut, events: await eventsOf(bytes, [cut]) }).toEqual({ cut, events: expected });
      // Byte by byte.
      expect(await eventsOf(bytes, [...bytes.keys()])).toEqual(expected);
    },
  );
});

test("a group's shipped description is said in the reader's language, an operator's as it was written", () => {
  const groups = [
    { name: "default", desc: "默认分组", ratio: 1 },
    { name: "gold", desc: "黄金会员", ratio: 2 },
  ];
  open({ data: { ...DATA, groups } });
  const list = screen.getAllByRole("combobox", { name: "Group" })[0] as HTMLSelectElement;
  const options = [...list.options].map(({ textContent }) => textContent);
  expect(options).toEqual(["default · Default group · 1×", "gold · 黄金会员 · 2×"]);
});
