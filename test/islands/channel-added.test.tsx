// After a channel was added: root is asked for the prices of its models that have none; nobody else is held up.
import { beforeAll, beforeEach, expect, test } from "bun:test";
import { screen, within } from "@testing-library/react";
import { calls, done, openChannels } from "./channel-fixture.ts";
import type { Island } from "./render.tsx";

/** Bodies of the calls that were made there. */
const sent = (island: Island, call: string) =>
  calls(island)
    .filter(([method, path]) => `${String(method)} ${String(path)}` === call)
    .map(([, , body]) => body);

beforeAll(async () => {
  await import("../../islands/screens/channel/drawer.tsx");
  await import("../../islands/screens/channel/routing-part.tsx");
  await import("../../islands/screens/channel/rewrite-part.tsx");
  await import("../../islands/screens/channel/new-prices.tsx");
});
beforeEach(() => {
  localStorage.clear();
  sessionStorage.clear();
});

async function add(models: string, role: number, isRefusing = true): Promise<Island> {
  const island = openChannels({ url: "/channel?new=1", user: { role } });
  island.answer("POST /api/channel", { success: true, data: [9] });
  island.answer("GET /api/channel/models_priced", {
    success: true,
    data: { isRefusing, names: ["gpt-4o"], ask: role >= 100 ? "" : "owner" },
  });
  const drawer = within(await screen.findByRole("dialog"));
  await done();
  await island.user.type(drawer.getByRole("textbox", { name: /^Name/ }), "fresh");
  await island.user.type(drawer.getByRole("textbox", { name: /^Key/ }), "sk-1");
  await island.user.type(drawer.getByRole("combobox", { name: /^Models/ }), `${models},`);
  await island.user.click(drawer.getByRole("button", { name: "Create" }));
  await done();
  expect(sent(island, "POST /api/channel").length).toBe(1);
  return island;
}
const asked = () => screen.queryByRole("dialog", { name: "Set prices" });

test("the super administrator is asked for the missing prices and for no others, and may leave it", async () => {
  const island = await add("gpt-4o,house-model", 100);
  const dialog = within(asked() ?? document.createElement("div"));
  expect(dialog.getAllByRole("group").map((each) => each.getAttribute("aria-label"))).toEqual([
    "house-model",
  ]);
  await island.user.click(dialog.getByRole("button", { name: "Cancel" }));
  await done();
  expect(asked()).toBeNull();
  expect(sent(island, "PUT /api/option").length).toBe(0);
});

test.each([
  ["every model has a price", "gpt-4o", 100, true],
  ["an administrator adds it, who may not set prices", "house-model", 10, true],
  ["nothing is refused for want of a price", "house-model", 100, false],
] as const)("nobody is asked where %s", async (_, models, role, isRefusing) => {
  await add(models, role, isRefusing);
  expect(asked()).toBeNull();
});
