// Drafts and the history at the price desk: opened without losing what is at hand, never saved over somebody else's, scheduled
// in the site's zone; each change from what to what, and the way back with what was changed since left alone.
import { afterEach, describe, expect, test } from "bun:test";
import { act, cleanup, fireEvent, screen, within } from "@testing-library/react";
import DraftsSection from "../../islands/screens/price-desk/drafts.tsx";
import HistorySection from "../../islands/screens/price-desk/history.tsx";
import "../../islands/screens/price-desk/plan.tsx";
import "../../islands/screens/price-desk/save-draft.tsx";
import { createDesk } from "../../islands/ui/price-sheet/desk.ts";
import {
  deskPrices,
  draftRow,
  GROUP,
  NOW,
  ok,
  openDesk,
  openSection,
  RATIO,
  refusal,
  revisionRow,
} from "./price-plan-fixture.ts";
import { settle } from "./render.tsx";
import type { Island } from "./render.tsx";

afterEach(cleanup);

const text = () => document.body.textContent ?? "";
const settled = async () => {
  for (let round = 0; round < 4; round++) await settle();
};
const puts = (island: Island) =>
  island.requests.filter(({ method }) => method === "PUT").map(({ body }) => body as Record<string, unknown>);

async function choose(island: Island, name: string, item: string): Promise<void> {
  await island.user.click(screen.getByRole("button", { name: `Actions for draft ${name}` }));
  await island.user.click(screen.getByRole("menuitem", { name: item }));
  await settled();
}

describe("the desk's store", () => {
  test("a draft takes the place of other changes as one step, and knows when it was changed", () => {
    const desk = createDesk();
    desk.open(deskPrices());
    desk.write([{ key: "ModelRatio", name: "old-model", after: 9 }], "first");
    desk.openDraft({ ...draftRow(), changes: [RATIO, GROUP] }, "open");
    expect(desk.changes.value).toEqual([RATIO, GROUP]);
    expect(desk.isUnsaved.value).toBe(false);
    desk.write([{ key: "ModelRatio", name: "old-model", after: 3 }], "more");
    expect(desk.isUnsaved.value).toBe(true);
    desk.undo();
    desk.undo();
    expect(desk.changes.value).toMatchObject([{ name: "old-model", after: 9 }]);
  });

  test("what others changed meanwhile is told with what stood there first; editing it again accepts it", () => {
    const desk = createDesk();
    desk.open(deskPrices());
    desk.write([RATIO], "first");
    desk.open(deskPrices({ revision: 8, texts: { ModelRatio: '{"gpt-4o":1.4}' } }));
    desk.open(deskPrices({ revision: 9, texts: { ModelRatio: '{"gpt-4o":1.45}' } }));
    expect(desk.changes.value).toEqual([{ ...RATIO, before: 1.25 }]);
    desk.write([{ ...RATIO, after: 1.6 }], "again");
    expect(desk.changes.value).toEqual([{ ...RATIO, before: 1.45, after: 1.6 }]);
  });

  test("what was applied is no change any more, and no step leads back to it", () => {
    const desk = createDesk();
    desk.open(deskPrices());
    desk.openDraft({ ...draftRow(), changes: [RATIO] }, "open");
    desk.write([GROUP], "more");
    const texts = { ModelRatio: '{"gpt-4o":1.5,"old-model":2}', GroupRatio: '{"default":1,"vip":0.75}' };
    desk.open(deskPrices({ revision: 8, texts }));
    expect([desk.changes.value.length, desk.undoable.value, desk.draft.value]).toEqual([
      0,
      undefined,
      undefined,
    ]);
  });

  test("steps that remain lead to changes only", () => {
    const desk = createDesk();
    desk.open(deskPrices());
    desk.write([RATIO], "first");
    desk.write([GROUP], "second");
    desk.open(deskPrices({ revision: 8, texts: { ...deskPrices().texts, ModelRatio: '{"gpt-4o":1.5}' } }));
    expect(desk.changes.value).toEqual([GROUP]);
    desk.undo();
    expect(desk.changes.value).toEqual([]);
  });
});

describe("drafts", () => {
  test("say whose they are, what they hold, when they come into force in the site's zone, and why they failed", async () => {
    openDesk("/prices?section=drafts", {
      status: { time_zone: "Asia/Shanghai" },
      drafts: [
        draftRow({
          id: 4,
          title: "",
          state: "scheduled",
          announce: true,
          effective_at: NOW + 86_400,
          scheduler_name: "chief",
        }),
        draftRow({
          id: 5,
          title: "Late",
          state: "failed",
          failure: { code: "price_plan_stale", names: "gpt-4o (ModelRatio)" },
        }),
        draftRow({ id: 6, title: "Done", state: "applied", revision_id: 12 }),
      ],
    });
    await settled();
    const [scheduled, failed, done] = screen.getAllByRole("listitem").map((each) => each.textContent ?? "");
    expect(scheduled).toContain("#4Scheduledannounced");
    expect(scheduled).toContain("1 model, 1 other entry · by keeper · version 1");
    expect(scheduled).toContain("Comes into force 2026-11-21 20:00 (Asia/Shanghai), scheduled by chief");
    expect(failed).toContain("prices had changed since: gpt-4o (ModelRatio)");
    expect(done).toContain("Applied as change 12");
    expect(screen.queryByRole("button", { name: "Actions for draft Done" })).toBeNull();
  });

  test("opening one shows its plan; unsaved changes are asked about first", async () => {
    const { island, desk } = openSection(DraftsSection, [{ key: "ModelRatio", name: "old-model", after: 5 }]);
    await settled();
    await choose(island, "Autumn", "Open");
    const dialog = screen.getByRole("dialog", { name: "Replace the unsaved changes of 1 model?" });
    await island.user.click(within(dialog).getByRole("button", { name: "Cancel" }));
    expect(desk.changes.value).toMatchObject([{ name: "old-model" }]);
    await choose(island, "Autumn", "Open");
    await island.user.click(screen.getByRole("button", { name: "Replace" }));
    await settled();
    expect(desk.changes.value).toEqual([RATIO, GROUP]);
    expect(location.search).toContain("section=plan");
  });

  test("the second of two who save the same draft is refused, and may keep it as a draft of its own", async () => {
    const { island, desk } = openSection(DraftsSection, []);
    await settled();
    await choose(island, "Autumn", "Open");
    act(() => desk.write([{ key: "ModelRatio", name: "old-model", after: 5 }], "mine"));
    island.answer("PUT /api/price/drafts", refusal("price_draft_changed"));
    island.answer("POST /api/price/drafts", ok(draftRow({ id: 9, title: "Autumn" })));
    await island.user.click(screen.getByRole("button", { name: "Save draft" }));
    await settled();
    const drawer = screen.getByRole("dialog");
    await island.user.click(within(drawer).getByRole("button", { name: "Save" }));
    await settled();
    expect(puts(island)[0]).toMatchObject({ id: 3, version: 1 });
    expect(drawer.textContent).toContain("Somebody changed the draft “Autumn” meanwhile.");
    expect(desk.changes.value).toHaveLength(3);
    const saved = Promise.withResolvers<unknown>();
    island.answer("POST /api/price/drafts", () => saved.promise);
    const again = within(drawer).getByRole<HTMLButtonElement>("button", { name: "Save as a new draft" });
    await island.user.click(again);
    await island.user.click(again);
    saved.resolve(ok(draftRow({ id: 9, title: "Autumn" })));
    await settled();
    expect(
      island.requests.filter(({ method, path }) => method === "POST" && path.endsWith("/drafts")),
    ).toHaveLength(1);
    expect(desk.draft.value?.id).toBe(9);
  });

  test("root schedules one on the prices at hand, by the site's clock; a time that has passed is refused", async () => {
    const { island } = openSection(DraftsSection, [], { status: { time_zone: "Asia/Shanghai" } });
    island.answer("PUT /api/price/drafts", ok(draftRow({ state: "scheduled", version: 2 })));
    await settled();
    await choose(island, "Autumn", "Schedule");
    const drawer = screen.getByRole("dialog");
    const field = within(drawer).getByLabelText(/Date and time/);
    fireEvent.change(field, { target: { value: "2020-01-01T00:00" } });
    await island.user.click(within(drawer).getByRole("button", { name: "Schedule" }));
    expect(drawer.textContent).toContain("This time has passed.");
    fireEvent.change(field, { target: { value: "2126-12-01T00:00" } });
    await island.user.click(within(drawer).getByRole("switch", { name: "Announce it to users" }));
    await island.user.click(within(drawer).getByRole("button", { name: "Schedule" }));
    await settled();
    expect(puts(island)).toEqual([
      { id: 3, version: 1, announce: true, effective_at: Date.UTC(2126, 10, 30, 16) / 1000, parent: 7 },
    ]);
  });

  test("where prices moved meanwhile, scheduling reads them anew and asks to look again", async () => {
    const { island, reloads } = openSection(DraftsSection, []);
    island.answer("PUT /api/price/drafts", refusal("price_plan_stale"));
    await settled();
    await choose(island, "Autumn", "Schedule");
    const drawer = screen.getByRole("dialog");
    fireEvent.change(within(drawer).getByLabelText(/Date and time/), {
      target: { value: "2126-12-01T00:00" },
    });
    await island.user.click(within(drawer).getByRole("button", { name: "Schedule" }));
    await settled();
    expect(drawer.textContent).toContain("Look at the draft's plan again");
    expect(reloads()).toBe(1);
  });

  test("administrators neither schedule nor touch a scheduled one; root lifts and discards it", async () => {
    const drafts = [draftRow({ state: "scheduled", effective_at: NOW + 60 })];
    const first = openSection(DraftsSection, [], { canApply: false, drafts });
    await settled();
    await first.island.user.click(screen.getByRole("button", { name: "Actions for draft Autumn" }));
    expect(screen.getAllByRole("menuitem").map((each) => each.textContent)).toEqual(["Open"]);
    cleanup();
    const { island } = openSection(DraftsSection, [], { drafts });
    island.answer("PUT /api/price/drafts", ok(draftRow()));
    island.answer("DELETE /api/price/drafts/3", { success: true, message: "" });
    await settled();
    await choose(island, "Autumn", "Cancel schedule");
    expect(puts(island)).toEqual([{ id: 3, version: 1, effective_at: 0 }]);
    await choose(island, "Autumn", "Discard draft");
    await island.user.click(
      within(screen.getByRole("dialog")).getByRole("button", { name: "Discard draft" }),
    );
    await settled();
    expect(island.requests.some(({ method }) => method === "DELETE")).toBe(true);
  });
});

describe("the history", () => {
  const revisions = [
    revisionRow({ id: 9, kind: "undo", undo_of: 8, note: "Too dear" }),
    revisionRow({
      id: 8,
      kind: "apply",
      draft_id: 3,
      undone_by: 9,
      change_count: 700,
      names: ["a", "b", "c", "d", "e", "f"],
    }),
    revisionRow({ id: 1, kind: "write", user_id: 0, username: "" }),
    revisionRow({ id: 2, kind: "something-new" }),
    ...["write", "reset", "apply", "schedule", "undo", "sync", "cli", "plans"].map((kind, at) =>
      revisionRow({ id: 20 + at, kind }),
    ),
  ];
  const detail = {
    ...revisionRow({ id: 8, note: "Autumn", created_at: NOW }),
    changes: [
      RATIO,
      { key: "CompletionRatio", name: "gpt-4o", before: 4, after: 5 },
      { key: "CacheRatio", name: "old-model", before: null, after: 0.1 },
      { key: "ModelPrice", name: "picture", before: 0.04, after: null },
      GROUP,
    ],
  };

  test("says who did what by which way, and what was undone", async () => {
    openSection(HistorySection, [], { revisions });
    await settled();
    const rows = screen.getAllByRole("listitem").map((each) => each.textContent ?? "");
    expect(rows[0]).toContain("chiefundo");
    expect(rows[0]).toContain("Too dearUndoes change 8");
    expect(rows[1]).toContain("from a draft");
    expect(rows[1]).toContain("a, b, c, d, e … 700 entries");
    expect(rows[1]).toContain("Undone by change 9");
    expect(rows[2]).toContain("the programby itself");
    expect(rows[3]).toContain("something-new");
    expect(rows.slice(4).map((row) => /^chief(.*?)5 min/.exec(row)?.[1])).toEqual([
      "in the settings",
      "reset in the settings",
      "at the price desk",
      "as scheduled",
      "undo",
      "by a price sync",
      "from a file",
      "under Plans",
    ]);
  });

  test("is narrowed to one name by its address and by its field", async () => {
    const { island } = openSection(HistorySection, [], { url: "/prices?section=history&name=gpt-4o" });
    await settled();
    const asked = () =>
      island.requests.filter(({ path }) => path === "/api/price/revisions").at(-1)?.query.name;
    expect(asked()).toBe("gpt-4o");
    const field = screen.getByRole("searchbox");
    await island.user.clear(field);
    await island.user.type(field, "vip{Enter}");
    await settled();
    expect(asked()).toBe("vip");
    expect(location.search).toContain("name=vip");
    await island.user.click(screen.getByRole("button", { name: "Show all" }));
    await settled();
    expect(asked()).toBe("");
  });

  test("an opened change tells prices in dollars where it can, in the site's zone", async () => {
    const { island } = openSection(HistorySection, [], {
      url: "/prices?section=history&revision=8",
      status: { time_zone: "Asia/Shanghai" },
      canApply: false,
    });
    island.answer("GET /api/price/revisions/8", ok(detail));
    await settled();
    const drawer = screen.getByRole("dialog").textContent ?? "";
    expect(drawer).toContain("2026-11-20 20:00:00 (Asia/Shanghai)");
    expect(drawer).toContain("Input / 1Mfrom $2.50 →  to $3.00");
    expect(drawer).toContain("Outputfrom $10.00 →  to $15.00");
    expect(drawer).toContain("Cached inputfrom none →  to 0.1×");
    expect(drawer).toContain("Per callfrom $0.04 →  to none");
    expect(drawer).toContain("vipGroup ratiosfrom 0.5 →  to 0.75");
    expect(screen.queryByRole("button", { name: "Undo…" })).toBeNull();
  });

  test("a plan on sale goes by its title, with the terms that differ; one that is new is told whole", async () => {
    const terms = {
      title: "Pro",
      price: "9.90",
      currency: "USD",
      quota: 5_000_000,
      stack: "extend",
      group: "",
    };
    const sold = [
      { key: "Plans", name: "7", before: terms, after: { ...terms, price: "12.00", stack: "parallel" } },
      { key: "Plans", name: "8", before: null, after: { ...terms, title: "Small" } },
    ];
    const { island } = openSection(HistorySection, [], { url: "/prices?section=history&revision=8" });
    island.answer("GET /api/price/revisions/8", ok({ ...detail, changes: sold }));
    island.answer(
      "GET /api/price/revisions/8/undo",
      ok({
        revision: 8,
        parent: 9,
        changes: [],
        skipped: [{ ...sold[0], before: terms, after: sold[0]?.after }],
      }),
    );
    await settled();
    const drawer = () => screen.getByRole("dialog").textContent ?? "";
    expect(drawer()).toContain(
      "ProPlans on salePricefrom 9.90 →  to 12.00Bought againfrom Appended →  to At once",
    );
    expect(drawer()).toContain("SmallPlans on saleTitlefrom none →  to Small");
    expect(drawer()).not.toContain("empty");
    await island.user.click(screen.getByRole("button", { name: "Undo…" }));
    await settled();
    expect(drawer()).toContain("Pro Plans on salePrice: 12.00 → 9.90");
  });

  test("undoing is looked at first; what was changed since is left alone unless it is ticked", async () => {
    const { island, reloads } = openSection(HistorySection, [], {
      url: "/prices?section=history&revision=8",
    });
    island.answer("GET /api/price/revisions/8", ok(detail));
    island.answer(
      "GET /api/price/revisions/8/undo",
      ok({
        revision: 8,
        parent: 9,
        changes: [{ ...GROUP, before: 0.75, after: 0.5 }],
        skipped: [{ ...RATIO, after: 2 }],
      }),
    );
    island.answer("POST /api/price/revisions/8/undo", ok({ revision: 10, changes: 2, skipped: [] }));
    await settled();
    await island.user.click(screen.getByRole("button", { name: "Undo…" }));
    await settled();
    const form = screen.getByRole("form", { name: "Undo…" });
    expect(document.activeElement).toBe(form);
    expect(form.textContent).toContain("is $4.00 now; would be $2.50 again");
    expect(within(form).getByRole("button", { name: "Undo 1 entry" })).toBeTruthy();
    await island.user.click(within(form).getByRole("checkbox"));
    await island.user.type(within(form).getByRole("textbox", { name: "Reason" }), "Mistake");
    await island.user.click(within(form).getByRole("button", { name: "Undo 2 entries" }));
    await settled();
    expect(island.requests.find(({ method }) => method === "POST")?.body).toEqual({
      note: "Mistake",
      include: [{ key: "ModelRatio", name: "gpt-4o" }],
    });
    expect(reloads()).toBe(1);
    expect(text()).toContain("Undone: 2 entries");
    expect(screen.queryByRole("dialog")).toBeNull();
  });
});
