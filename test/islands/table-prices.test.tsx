// Missing prices from the shipped table in one click: where a model is refused, in the dialog for typing, and with a way back.
import { describe, expect, test } from "bun:test";
import { screen, within } from "@testing-library/react";
import { PriceAction } from "../../islands/ui/price-action.tsx";
import { renderPart, settle } from "./render.tsx";
import type { Island, IslandOptions } from "./render.tsx";

const TABLE = { source: "@pydantic/genai-prices", version: "0.1.8+abc", date: "2026-11-23" };
const item = (name: string, isKnown = true, guards: string[] = []) => ({
  name,
  row: isKnown ? { in: 2.5, out: 15 } : null,
  guards,
});

function open(options: IslandOptions & { models?: string[]; isPriced?: () => void } = {}): Island {
  const { models = ["gpt-5.4", "house-1"], isPriced, ...rest } = options;
  const island = renderPart(
    <PriceAction
      models={models}
      isPrimary
      onPriced={() => {
        isPriced?.();
        return Promise.resolve();
      }}
    />,
    { user: { role: 100 }, ...rest },
  );
  island.answer("GET /api/price/missing", {
    success: true,
    data: { table: TABLE, items: [item("gpt-5.4"), item("house-1", false)] },
  });
  island.answer("POST /api/price/missing", {
    success: true,
    data: { revision: 7, set: ["gpt-5.4"], unknown: ["house-1"], guarded: [], kept: [] },
  });
  return island;
}

describe("the button", () => {
  test("sets what the table has, tells what it has not, and takes it back", async () => {
    let told = 0;
    const island = open({ isPriced: () => (told += 1) });
    island.answer("POST /api/price/revisions/7/undo", { success: true, data: {} });
    const use = await screen.findByRole("button", { name: "Use 1 table price" });
    expect(use.title).toBe("Prices of 2026-11-23");
    expect(island.requests[0]?.query).toEqual({ models: "gpt-5.4,house-1" });
    await island.user.click(use);
    await settle();
    expect(island.requests.at(-1)).toMatchObject({
      method: "POST",
      path: "/api/price/missing",
      body: { models: ["gpt-5.4", "house-1"] },
    });
    expect(told).toBe(1);
    expect(screen.getByText(/1 model has a price now 1 is not in the table: house-1/)).toBeTruthy();
    await island.user.click(screen.getByRole("button", { name: "Undo" }));
    await settle();
    expect(island.requests.at(-1)?.path).toBe("/api/price/revisions/7/undo");
    expect(told).toBe(2);
  });

  test("is not there where the table knows nothing, or only what deserves a second look; typing is", async () => {
    const island = open();
    island.answer("GET /api/price/missing", {
      success: true,
      data: { table: TABLE, items: [item("gpt-5.4", true, ["free"]), item("house-1", false)] },
    });
    await settle();
    await settle();
    expect(screen.getAllByRole("button").map(({ textContent }) => textContent)).toEqual(["Set prices"]);
  });

  test("administrators are not asked for and not offered it", async () => {
    const island = open({ user: { role: 10 } });
    await settle();
    expect(screen.queryAllByRole("button")).toEqual([]);
    expect(island.requests).toEqual([]);
  });

  test("a refusal is told, and nothing is said to be priced", async () => {
    let told = 0;
    const island = open({ isPriced: () => (told += 1), language: "zh" });
    island.answer("POST /api/price/missing", { success: false, message: "数据库暂时不可用", code: "x" });
    await island.user.click(await screen.findByRole("button", { name: "使用价格表（1 个）" }));
    await settle();
    expect(screen.getByText("数据库暂时不可用")).toBeTruthy();
    expect(told).toBe(0);
  });
});

test("the dialog offers the table, and keeps the models that it does not know for typing", async () => {
  const island = open();
  await island.user.click(await screen.findByRole("button", { name: "Set prices" }));
  const dialog = await screen.findByRole("dialog", { name: "Set prices" });
  expect(await within(dialog).findByText(/table of 2026-11-23 has 1 of these: gpt-5\.4/)).toBeTruthy();
  await island.user.click(within(dialog).getByRole("button", { name: "Use 1 table price" }));
  await settle();
  expect(within(dialog).queryByRole("group", { name: "gpt-5.4" })).toBeNull();
  expect(within(dialog).getByRole("group", { name: "house-1" })).toBeTruthy();
});
