// What an administrator sees of a channel's health, of what its upstream lists, and of who would serve a call.
import { beforeAll, beforeEach, expect, test } from "bun:test";
import { fireEvent, screen } from "@testing-library/react";
import { openChannels } from "./channel-fixture.ts";
import type { Island } from "./render.tsx";

beforeAll(async () => {
  // Parts that are loaded on demand: a slow first import must not decide a test.
  await import("../../islands/screens/channel/drawer.tsx");
  await import("../../islands/screens/channel/health-part.tsx");
  await import("../../islands/screens/channel/upstream-part.tsx");
  await import("../../islands/screens/channel/route-drawer.tsx");
});
beforeEach(() => {
  localStorage.clear();
  sessionStorage.clear();
});

const sent = (island: Island, path: string): unknown[] =>
  island.requests.filter((request) => request.path.endsWith(path)).map(({ body }) => body);

test("a model that rests says why and until when, how its last calls ended, and is let go on", async () => {
  const island = openChannels({ url: "/channel?edit=1" });
  const cell = {
    model: "gpt-4o",
    key_index: -1,
    scope: "model",
    state: "open",
    reason: "down",
    detail: "upstream says 503",
    until: Date.UTC(2026, 10, 20, 12) / 1000,
    failures: 3,
    outcomes: ["ok", "down", "down", "down"].map((verdict) => ({ at: 0, verdict })),
  };
  island.answer("GET /api/channel/cells/1", { success: true, data: [cell] });
  island.answer("POST /api/channel/cells/1/close", { success: true, data: [] });
  await screen.findByText(/upstream says 503/);
  expect(screen.getByText("1 of the last 4 calls were answered")).toBeTruthy();
  fireEvent.click(screen.getByRole("button", { name: "Let calls through to gpt-4o again" }));
  await screen.findByText("None of its models had trouble lately.");
  expect(sent(island, "/cells/1/close")).toEqual([{ model: "gpt-4o" }]);
});

test("who would serve: the order, the key, and what keeps the others out", async () => {
  const island = openChannels({ url: "/channel?route=1" });
  const place = {
    type: 1,
    priority: 5,
    weight: 0,
    multi_key_mode: "polling",
    detail: "",
    until: 0,
    keys: [],
  };
  island.answer("POST /api/channel/route", {
    success: true,
    data: {
      groups: ["default"],
      refused: null,
      session: { state: "left", channel_id: 7, reason: "resting" },
      candidates: [
        { ...place, id: 1, name: "alpha", order: 1, group: "default", key_index: 0, verdict: "chosen" },
        { ...place, id: 2, name: "bravo", order: 0, group: "", key_index: -1, verdict: "auto_off" },
      ],
    },
  });
  fireEvent.change(await screen.findByLabelText("Model"), { target: { value: "gpt-4o" } });
  fireEvent.change(screen.getByLabelText("User ID"), { target: { value: "7" } });
  fireEvent.change(screen.getByLabelText(/^Session/), { target: { value: " 0a1b2c3d " } });
  fireEvent.click(screen.getByRole("button", { name: "Look" }));
  await screen.findByText("Would serve");
  expect(screen.getByText("The session leaves channel #7")).toBeTruthy();
  expect(screen.getByText("Disabled by itself")).toBeTruthy();
  expect(sent(island, "/route")).toMatchObject([
    { user_id: 7, model: "gpt-4o", tokens: 1000, session: "0a1b2c3d" },
  ]);
});
