// The inbox as administrators meet it: sentences in their language, links to the cure, what can be closed and what only put off.
import { afterEach, beforeEach, describe, expect, spyOn, test } from "bun:test";
import { screen, within } from "@testing-library/react";
import InboxScreen from "../../islands/screens/inbox.tsx";
import type { InboxPageData } from "../../islands/screens/inbox/row.ts";
import type { InboxRow } from "../../islands/lib/wire.ts";
import { renderScreen, settle } from "./render.tsx";
import type { Island, IslandOptions } from "./render.tsx";

const NOW = Date.UTC(2026, 10, 20, 12) / 1000;

function item(id: number, part: Partial<InboxRow>): InboxRow {
  return {
    id,
    kind: "price",
    subject: `model-${id}`,
    params: {},
    count: 1,
    opened_at: NOW - 3600,
    last_seen_at: NOW - 60,
    told_at: 0,
    snoozed_until: 0,
    closed_at: 0,
    closed_by: 0,
    ...part,
  };
}

const CHANNEL = item(1, {
  kind: "channel",
  subject: "7",
  params: { name: "main", reason: "余额不足", reason_en: "its balance is used up" },
});
const PRICE = item(2, { subject: "a model/with space" });
const DISK = item(3, { kind: "disk", subject: "abc", params: { node: "abc", free: "1.0 GiB", percent: 2 } });
const ROWS = [CHANNEL, PRICE, DISK];

const fetched: string[] = [];
let page = "";
let fetching: ReturnType<typeof spyOn>;
beforeEach(() => {
  localStorage.clear();
  sessionStorage.clear();
  fetched.length = 0;
  page = "";
  fetching = spyOn(globalThis, "fetch").mockImplementation((async (input: string) => {
    fetched.push(String(input));
    return new Response(page, { headers: { "content-type": "text/html" } });
  }) as unknown as typeof fetch);
});
afterEach(() => {
  fetching.mockRestore();
  document.querySelector("header.topbar")?.remove();
});

function open(options: IslandOptions & { rows?: InboxRow[] } = {}): Island {
  const { rows = ROWS, ...rest } = options;
  const data: InboxPageData = { rows, total: rows.length, pageSize: 10 };
  const island = renderScreen(InboxScreen, { data, url: "/inbox", user: { role: 10 }, ...rest });
  island.answer("GET /api/inbox", { success: true, data: { items: rows, total: rows.length } });
  for (const row of rows) island.answer(`PUT /api/inbox/${row.id}`, { success: true, data: row });
  return island;
}

const rowOf = (name: RegExp) => screen.getByRole("row", { name });
const puts = (island: Island) =>
  island.requests.filter(({ method }) => method === "PUT").map(({ path, body }) => [path, body]);

async function menuOf(island: Island, name: RegExp): Promise<string[]> {
  await island.user.click(within(rowOf(name)).getByRole("button", { name: /^Actions for/ }));
  return screen.getAllByRole("menuitem").map((each) => each.textContent ?? "");
}

describe("the list", () => {
  test("each item is a sentence in the reader's language, with a link to its cure where there is one", () => {
    open();
    const link = within(rowOf(/main/)).getByRole("link");
    expect(link.textContent).toBe("Channel “main” (#7) was disabled automatically: its balance is used up");
    expect(link.getAttribute("href")).toBe("/channel?edit=7");
    expect(
      within(rowOf(/with space/))
        .getByRole("link")
        .getAttribute("href"),
    ).toBe("/prices?view=unpriced&q=a%20model%2Fwith%20space");
    expect(within(rowOf(/disk of node/)).queryByRole("link")).toBeNull();
  });

  test("letters that cannot be sent lead to the mail server, for whoever may set it", () => {
    const MAIL = item(4, { kind: "mail", subject: "" });
    const links = (role: number) => {
      const { container, unmount } = open({ rows: [MAIL], user: { role } });
      const hrefs = [...container.querySelectorAll("td a")].map((each) => each.getAttribute("href"));
      unmount();
      return hrefs;
    };
    expect(links(100)).toEqual(["/setting?tab=system#SMTPServer"]);
    expect(links(10)).toEqual([]);
  });

  test("readers of Chinese get the Chinese reason", () => {
    open({ language: "zh" });
    expect(document.body.textContent).toContain("渠道「main」（#7）已被自动禁用：余额不足");
  });

  test("views are questions of the call, and a closed item says how it ended and leads nowhere", async () => {
    const closed = [
      { ...PRICE, closed_at: NOW - 60 },
      { ...CHANNEL, closed_at: NOW - 60, closed_by: 3 },
    ];
    const island = open({ rows: closed, url: "/inbox?state=closed" });
    expect(rowOf(/with space/).textContent).toContain("Closed itself");
    expect(rowOf(/main/).textContent).toContain("Closed by hand");
    expect(within(rowOf(/main/)).queryByRole("link")).toBeNull();
    expect(within(rowOf(/main/)).queryByRole("button")).toBeNull();
    await island.user.click(screen.getByRole("link", { name: "Snoozed" }));
    await settle();
    expect(island.requests.at(-1)?.query).toMatchObject({ state: "snoozed", kind: "" });
  });

  test("an inbox with nothing in it says so", () => {
    open({ rows: [] });
    expect(screen.getByText("Nothing needs you").tagName).not.toBe("");
  });
});

describe("what a person does", () => {
  test("an item is put off, and the bell of the frame follows", async () => {
    document.body.insertAdjacentHTML("afterbegin", '<header class="topbar" data-shell="topbar">3</header>');
    page = '<header class="topbar" data-shell="topbar">2</header><nav data-shell="sidebar">new</nav>';
    const island = open();
    expect(await menuOf(island, /with space/)).toEqual([
      "Go and fix",
      "Snooze for 1 hour",
      "Snooze for 1 day",
      "Snooze for 1 week",
      "Close",
    ]);
    await island.user.click(screen.getByRole("menuitem", { name: "Snooze for 1 day" }));
    await settle();
    await settle();
    expect(puts(island)).toEqual([["/api/inbox/2", { state: "snoozed", hours: 24 }]]);
    expect(island.requests.at(-1)).toMatchObject({ method: "GET", path: "/api/inbox" });
    expect(fetched).toHaveLength(1);
    expect(document.querySelector("header.topbar")?.textContent).toBe("2");
    expect(screen.getByText("1 item snoozed").textContent).toBe("1 item snoozed");
  });

  test("what lasts is not offered to be closed, alone or among others", async () => {
    const island = open();
    expect(await menuOf(island, /disk of node/)).toEqual([
      "Snooze for 1 hour",
      "Snooze for 1 day",
      "Snooze for 1 week",
    ]);
    await island.user.keyboard("{Escape}");
    for (const box of screen.getAllByRole("checkbox", { name: /^Select (Channel|The disk)/ }))
      await island.user.click(box);
    await island.user.click(screen.getByRole("button", { name: "Close" }));
    await settle();
    expect(puts(island)).toEqual([["/api/inbox/1", { state: "closed" }]]);
    expect(screen.getByText("1 item closed").textContent).toBe("1 item closed");
  });

  test("closing nothing but what lasts says why nothing happens", async () => {
    const island = open({ rows: [DISK] });
    await island.user.click(screen.getByRole("checkbox", { name: /^Select The disk/ }));
    await island.user.click(screen.getByRole("button", { name: "Close" }));
    await settle();
    expect(puts(island)).toEqual([]);
    expect(screen.getByText(/close themselves when their cause is gone; until/).textContent).not.toBe("");
  });

  test("what tells root of an administrator offers administrators no change, alone or among others; root gets it all", async () => {
    const balance = item(4, {
      kind: "balance",
      subject: "5:6",
      params: { admin: "keeper", user: "bob", what: "x", what_en: "y" },
    });
    const island = open({ rows: [balance] });
    expect(await menuOf(island, /of bob/)).toEqual(["Go and fix"]);
    await island.user.keyboard("{Escape}");
    await island.user.click(screen.getByRole("checkbox", { name: /^Select keeper/ }));
    for (const name of ["Close", "Snooze for 1 day"]) {
      await island.user.click(screen.getByRole("button", { name }));
      await settle();
    }
    expect(puts(island)).toEqual([]);
    expect(screen.getAllByText(/super administrator closes what/).length).toBeGreaterThan(0);
    island.unmount();
    const ofRoot = open({ rows: [balance], user: { role: 100 } });
    expect(await menuOf(ofRoot, /of bob/)).toContain("Close");
  });

  test("what lasts is offered to be closed once nobody has seen it for two hours", async () => {
    const island = open({ rows: [{ ...DISK, last_seen_at: NOW - 7200 }, PRICE] });
    expect(await menuOf(island, /abc/)).toContain("Close");
    await island.user.click(screen.getByRole("menuitem", { name: "Close" }));
    await settle();
    expect(puts(island)).toEqual([[`/api/inbox/${DISK.id}`, { state: "closed" }]]);
  });
  test("a snooze is ended from the snoozed view", async () => {
    const island = open({ rows: [{ ...PRICE, snoozed_until: NOW + 3600 }], url: "/inbox?state=snoozed" });
    expect(rowOf(/with space/).textContent).toContain("Snoozed until");
    expect(await menuOf(island, /with space/)).toEqual(["Go and fix", "End the snooze", "Close"]);
    await island.user.click(screen.getByRole("menuitem", { name: "End the snooze" }));
    await settle();
    expect(puts(island)).toEqual([["/api/inbox/2", { state: "open" }]]);
  });

  test("a refused change is said, and the list is read again", async () => {
    const island = open();
    island.answer("PUT /api/inbox/2", { success: false, message: "It is gone", code: "record_missing" });
    await menuOf(island, /with space/);
    await island.user.click(screen.getByRole("menuitem", { name: "Close" }));
    await settle();
    expect(screen.getByText("It is gone").textContent).toBe("It is gone");
    expect(island.requests.at(-1)).toMatchObject({ method: "GET", path: "/api/inbox" });
  });
});
