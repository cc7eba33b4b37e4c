// Plans as root changes them: what was typed is sent, and nothing else.
import { beforeEach, expect, test } from "bun:test";
import { fireEvent, screen, within } from "@testing-library/react";
import PlanScreen from "../../islands/screens/plan.tsx";
import type { PlanPageData } from "../../islands/screens/plan.tsx";
import type { Plan } from "../../islands/lib/wire.ts";
import { renderScreen, settle } from "./render.tsx";

const PLAN: Plan = {
  id: 4,
  title: "Monthly",
  description: "",
  price: "10.00",
  currency: "USD",
  wallet_price: 5_000_000,
  duration_unit: "month",
  duration_count: 1,
  reset: "none",
  quota: 10_000_000,
  group: "",
  overflow: true,
  max_per_user: 0,
  stack: "extend",
  enabled: true,
  sold: 3,
  running: 1,
  created_at: 0,
  updated_at: 0,
};

beforeEach(() => sessionStorage.clear());

test.each([
  ["description", "new words", { description: "new words" }],
  // An amount says nothing without its currency.
  ["price", "12", { price: "12", currency: "USD" }],
] as const)(
  "%s is changed, and no term that somebody else may have changed meanwhile",
  async (name, typed, body) => {
    const data: PlanPageData = { plans: [PLAN], groups: ["default"], currencies: ["USD"], mayChange: true };
    const island = renderScreen(PlanScreen, { data, url: "/plan?edit=4", user: { role: 100 } });
    island.answer("GET /api/plan", { success: true, data: [PLAN] });
    island.answer("PUT /api/plan/4", { success: true });
    const drawer = within(await screen.findByRole("dialog"));
    const field = document.querySelector(`dialog [name=${name}]`);
    if (!field) throw new Error(`no field ${name}`);
    fireEvent.change(field, { target: { value: typed } });
    await island.user.click(drawer.getByRole("button", { name: "Save" }));
    await settle();
    expect(island.requests.filter(({ method }) => method === "PUT").map((sent) => sent.body)).toEqual([body]);
  },
);
