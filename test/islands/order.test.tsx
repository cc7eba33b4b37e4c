// The payment inbox as administrators read it, and as root acts in it: by hand only with a reason and the order's number typed.
import { beforeEach, describe, expect, test } from "bun:test";
import { screen, within } from "@testing-library/react";
import OrderScreen from "../../islands/screens/order.tsx";
import { renderScreen, settle } from "./render.tsx";
import type { Island, IslandOptions } from "./render.tsx";

const NOW = Date.UTC(2026, 10, 20, 12) / 1000;
const TRADE = "USR9NOreview";
const ORDER = {
  id: 1,
  user_id: 9,
  username: "bob",
  amount: 10,
  unit: "dollars",
  plan: "",
  quota: 5_000_000,
  money: "73.00",
  currency: "CNY",
  trade_no: TRADE,
  rail: "epay",
  payment_method: "alipay",
  method_name: "Alipay",
  create_time: NOW - 600,
  complete_time: 0,
  expires_at: NOW + 3600,
  status: "review",
  refunded: "0.00",
  disputed: "0.00",
  debited_quota: 0,
  can_refund: false,
  note: "money",
  provider_ref: "",
  actor_id: 0,
  actor_name: "",
  paid: "70.00",
  snapshot: {},
};
const EVENTS = [{ trade_no: TRADE, rail: "epay", at: NOW - 300, verdict: "review" }];

beforeEach(() => localStorage.clear());

interface Opened extends IslandOptions {
  order?: typeof ORDER;
  isFlagged?: boolean;
}

async function open({ order = ORDER, isFlagged = false, ...rest }: Opened = {}): Promise<Island> {
  const island = renderScreen(OrderScreen, {
    url: `/order?order=${TRADE}`,
    user: { role: 100 },
    data: { rows: [order], total: 1, pageSize: 10 },
    ...rest,
  });
  island.answer("GET /api/user/topup", {
    success: true,
    data: { items: [order], total: 1, events: EVENTS },
  });
  island.answer("GET /api/user/9", { success: true, data: { id: 9, flagged: isFlagged } });
  island.answer(`GET /api/user/topup/${TRADE}/events`, {
    success: true,
    data: [
      {
        rail: "epay",
        event_id: "e1",
        trade_no: TRADE,
        at: NOW - 300,
        verdict: "review",
        payload: { money: "70.00", name: "TUC10" },
      },
    ],
  });
  for (const path of ["complete", "refund"]) island.answer(`POST /api/user/topup/${path}`, { success: true });
  await screen.findByText("What happened");
  return island;
}

const drawer = () => within(screen.getAllByRole("dialog")[0] as HTMLElement);
const writes = ({ requests }: Island) =>
  requests.filter(({ method }) => method !== "GET").map(({ path, body }) => ({ path, body }));

describe("the drawer of an order", () => {
  test("says why it waits, what happened in time, and what the rail reported", async () => {
    const island = await open();
    expect(drawer().getAllByText("In review").length).toBeGreaterThan(0);
    expect(drawer().getByText("the sum is not the order's")).toBeTruthy();
    expect(drawer().getByText("70.00 CNY")).toBeTruthy();
    const steps = drawer()
      .getAllByRole("listitem")
      .map((each) => each.textContent ?? "");
    expect(steps[0]).toContain("Order made");
    expect(steps[1]).toContain("Reported by the provider: does not fit, in review");
    expect((await drawer().findByRole("region", { name: "What was reported" })).textContent).toContain(
      '"money": "70.00"',
    );
    expect(writes(island)).toEqual([]);
  });

  test("an administrator reads all but the raw reports, and is offered nothing to do", async () => {
    const island = await open({ user: { role: 10 } });
    expect(drawer().getByText(/Only the super administrator/)).toBeTruthy();
    expect(drawer().queryByRole("button", { name: "Complete by hand" })).toBeNull();
    expect(island.requests.some(({ path }) => path.endsWith("/events"))).toBe(false);
  });

  test("completing asks for a reason, and for the order's number typed", async () => {
    const island = await open();
    await island.user.click(drawer().getByRole("button", { name: "Complete by hand" }));
    expect(screen.getByRole("alert").textContent).toBe("Enter a reason");
    await island.user.type(drawer().getByLabelText("Reason"), "paid in cash");
    await island.user.click(drawer().getByRole("checkbox", { name: /Credit the part/ }));
    await island.user.click(drawer().getByRole("button", { name: "Complete by hand" }));
    const question = within(screen.getAllByRole("dialog").at(-1) as HTMLElement);
    const button = question.getByRole("button", { name: "Complete by hand" });
    expect((button as HTMLButtonElement).disabled).toBe(true);
    await island.user.type(question.getByRole("textbox"), TRADE);
    await island.user.click(button);
    await settle();
    expect(writes(island)).toEqual([
      {
        path: "/api/user/topup/complete",
        body: { trade_no: TRADE, reason: "paid in cash", pro_rata: true },
      },
    ]);
  });

  test("a refund is offered where the rail can, and nothing is completed twice", async () => {
    const island = await open({ order: { ...ORDER, status: "success", can_refund: true, paid: "73.00" } });
    expect(drawer().queryByRole("button", { name: "Complete by hand" })).toBeNull();
    await island.user.type(drawer().getByLabelText("Reason"), "asked for it");
    await island.user.click(drawer().getByRole("button", { name: "Refund" }));
    const question = within(screen.getAllByRole("dialog").at(-1) as HTMLElement);
    await island.user.type(question.getByRole("textbox"), TRADE);
    await island.user.click(question.getByRole("button", { name: "Refund" }));
    await settle();
    expect(writes(island)).toEqual([
      { path: "/api/user/topup/refund", body: { trade_no: TRADE, reason: "asked for it" } },
    ]);
  });

  test("a flagged account is told of, and its flag lifted", async () => {
    const island = await open({ isFlagged: true });
    island.answer("PUT /api/user/9/notes", { success: true });
    await island.user.click(await drawer().findByRole("button", { name: "Lift the flag" }));
    const question = within(screen.getAllByRole("dialog").at(-1) as HTMLElement);
    await island.user.click(question.getByRole("button", { name: "Lift the flag" }));
    await settle();
    expect(writes(island)).toEqual([{ path: "/api/user/9/notes", body: { flagged: false } }]);
  });
});
