// Notices about models and channels: written in a drawer of the channel list, read beside a key and above the composer.
import { beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { screen, within } from "@testing-library/react";
import ModelNotices from "../../islands/ui/model-notices.tsx";
import { calls, done, openChannels } from "./channel-fixture.ts";
import type { OpenOptions } from "./channel-fixture.ts";
import { DATA, open as openPlayground } from "./playground-support.ts";
import { renderPart } from "./render.tsx";
import type { Island } from "./render.tsx";

const NOW = Date.UTC(2026, 10, 20, 12) / 1000;
const SLOW = { id: "a1", models: ["gpt-4o"], channels: [1], text: "Slow today", until: NOW + 7200 };
const OVER = { id: "b2", models: ["o1"], channels: [], text: "Was down", until: NOW - 60 };

/** Bodies of the calls that were made there. */
const sent = (island: Island, call: string) =>
  calls(island)
    .filter(([method, path]) => `${String(method)} ${String(path)}` === call)
    .map(([, , body]) => body);

beforeAll(async () => {
  await import("../../islands/screens/channel/notices-drawer.tsx");
  await import("../../islands/screens/channel/test-drawer.tsx");
});
beforeEach(() => localStorage.clear());

async function openDrawer(options: OpenOptions = {}): Promise<Island> {
  const island = openChannels({ url: "/channel?notices=1", ...options });
  island.answer("GET /api/model_notice", { success: true, data: [SLOW, OVER] });
  island.answer("POST /api/model_notice", { success: true, data: SLOW });
  island.answer("PUT /api/model_notice/a1", { success: true, data: SLOW });
  island.answer("DELETE /api/model_notice/a1", { success: true });
  await screen.findByRole("dialog");
  await done();
  return island;
}
const drawer = () => within(screen.getByRole("dialog"));

describe("the drawer", () => {
  test("lists what is told, about what and until when; ended ones say so", async () => {
    await openDrawer();
    const [slow, over] = drawer().getAllByRole("listitem");
    expect(slow?.textContent).toBe("Slow todaygpt-4o; channel #1 alpha · until 2026-11-20 14:00");
    expect(over?.textContent).toBe("Was downo1 · ended 2026-11-20 11:59");
  });

  test("is opened from the page's menu, from a channel's and from a model's, each about its own", async () => {
    const island = openChannels();
    island.answer("GET /api/model_notice", { success: true, data: [] });
    const menu = async (name: string, item: string) => {
      await island.user.click(screen.getByRole("button", { name }));
      await island.user.click(screen.getByRole("menuitem", { name: item }));
      await screen.findByRole("dialog");
      await done();
    };
    await menu("More actions", "Notices to users…");
    expect(drawer().getByText("No notices")).toBeTruthy();
    await island.user.click(drawer().getByRole("button", { name: "Close" }));
    await menu("Actions for alpha", "Notice to users…");
    const about = (name: RegExp) =>
      within(drawer().getByRole("list", { name }))
        .getAllByRole("listitem")
        .map((each) => each.textContent);
    expect(about(/^Channels/)).toEqual(["1 alpha"]);
    await island.user.click(drawer().getByRole("button", { name: "Cancel" }));
    await island.user.click(drawer().getByRole("button", { name: "Close" }));
    await menu("Actions for delta", "Test models…");
    await island.user.click(drawer().getByRole("button", { name: "Notice about claude-b" }));
    await done();
    expect(about(/^Models/)).toEqual(["claude-b"]);
  });

  test("a new one is refused without words or subject, and sent as it was typed", async () => {
    const island = await openDrawer();
    await island.user.click(drawer().getByRole("button", { name: "New notice" }));
    await island.user.click(drawer().getByRole("button", { name: "Save" }));
    await done();
    expect(drawer().getByText("Say what users should know")).toBeTruthy();
    expect(drawer().getByText("Choose at least one model or channel")).toBeTruthy();
    await island.user.type(drawer().getByRole("textbox", { name: /^What users/ }), "Goes away");
    await island.user.type(drawer().getByRole("combobox", { name: /^Models/ }), "o1,");
    await island.user.click(drawer().getByRole("button", { name: "Save" }));
    await done();
    expect(sent(island, "POST /api/model_notice")).toEqual([
      { text: "Goes away", models: ["o1"], channels: [], until: 0 },
    ]);
  });

  test("one is changed with its end, and deleted with a way back", async () => {
    const island = await openDrawer();
    await island.user.click(drawer().getByRole("button", { name: "Edit: Slow today" }));
    await island.user.click(drawer().getByRole("button", { name: "No end" }));
    await island.user.click(drawer().getByRole("button", { name: "Save" }));
    await done();
    expect(sent(island, "PUT /api/model_notice/a1")).toEqual([
      { text: "Slow today", models: ["gpt-4o"], channels: [1], until: 0 },
    ]);
    await island.user.click(drawer().getByRole("button", { name: "Delete: Slow today" }));
    await done();
    expect(sent(island, "DELETE /api/model_notice/a1").length).toBe(1);
  });
});

describe("what is told", () => {
  test("only what concerns the models at hand, with the end in the visitor's zone", () => {
    const notices = [
      { id: "a", models: ["gpt-4o", "o1"], text: "Slow today", until: NOW + 7200 },
      { id: "b", models: ["claude"], text: "Goes away", until: 0 },
    ];
    renderPart(<ModelNotices notices={notices} models={["o1", "other"]} />);
    expect(screen.getAllByRole("listitem").map(({ textContent }) => textContent)).toEqual([
      "o1: Slow today until 2026-11-20 14:00",
    ]);
  });

  test("prices to come, with their moment in the visitor's zone and the way to them", () => {
    const vip = { group: "vip", before: 0.5, after: 0.8 };
    renderPart(
      <ModelNotices
        notices={[]}
        pricesToCome={[
          { effective_at: NOW + 3600, models: ["gpt-4o", "o1"], groups: [] },
          { effective_at: NOW + 7200, models: ["claude"], groups: [vip] },
          { effective_at: NOW + 9000, models: ["claude"], groups: [] },
        ]}
        models={["o1"]}
      />,
    );
    expect(screen.getAllByRole("listitem").map(({ textContent }) => textContent)).toEqual([
      "o1: new prices from 2026-11-20 13:00 (UTC) See prices",
      "vip: ratio of this group 0.5 → 0.8 from 2026-11-20 14:00 (UTC)",
    ]);
    expect(screen.getByRole("link").getAttribute("href")).toBe("/pricing?model=o1");
  });

  test("nothing stands there for models that nobody tells about", () => {
    renderPart(
      <ModelNotices notices={[{ id: "a", models: ["o1"], text: "Slow", until: 0 }]} models={["gpt-4o"]} />,
    );
    expect(screen.queryAllByRole("listitem").length).toBe(0);
  });

  test("the playground tells of the chosen model alone", async () => {
    const notices = [
      { id: "a", models: ["gpt-4o-mini"], text: "Slow today", until: 0 },
      { id: "b", models: ["painter"], text: "Goes away", until: 0 },
    ];
    openPlayground({ data: { ...DATA, notices } });
    expect(await screen.findByText(/Slow today/)).toBeTruthy();
    expect(screen.queryByText(/Goes away/)).toBeNull();
  });
});
