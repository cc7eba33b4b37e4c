// The plan of changed prices: what changes in dollars, what it would have meant, what forbids it, and how it is applied, kept,
// refused for others' sake, and taken back; and the bar that leads to it.
import { afterEach, describe, expect, test } from "bun:test";
import { act, cleanup, screen, within } from "@testing-library/react";
import PlanSection from "../../islands/screens/price-desk/plan.tsx";
import "../../islands/screens/price-desk/save-draft.tsx";
import { setQuery } from "../../islands/lib/url-state.ts";
import {
  answerPlan,
  deskPrices,
  draftRow,
  effectOf,
  GROUP,
  ok,
  openSection,
  planOf,
  RATIO,
  refusal,
  revisionRow,
} from "./price-plan-fixture.ts";
import type { DeskOptions } from "./price-plan-fixture.ts";
import { settle } from "./render.tsx";
import type { Island } from "./render.tsx";

afterEach(cleanup);

const Nothing = () => null;
const open = (options: DeskOptions = {}) => openSection(PlanSection, [RATIO, GROUP], options);
const plans = (island: Island) =>
  island.requests
    .filter(({ path }) => path === "/api/price/plan")
    .map(({ body }) => body as { days: number; parent: number; changes: unknown[] });
const text = () => document.body.textContent ?? "";
const settled = async () => {
  for (let round = 0; round < 4; round++) await settle();
};

describe("the bar", () => {
  test("counts what was changed, goes back and forth by name, and is away when nothing is left", async () => {
    const { island, desk } = openSection(Nothing, [RATIO, GROUP]);
    const bar = () => screen.getByRole("region", { name: "Changes" });
    expect(bar().textContent).toContain("Changed: 1 model, 1 other entry");
    await island.user.click(screen.getByRole("button", { name: "Undo: Set vip" }));
    expect(bar().textContent).toContain("Changed: 1 model");
    await island.user.click(screen.getByRole("button", { name: "Redo: Set vip" }));
    expect(desk.changes.value).toHaveLength(2);
    await island.user.click(screen.getByRole("button", { name: "Undo: Set vip" }));
    await island.user.click(screen.getByRole("button", { name: "Undo: Set gpt-4o" }));
    expect(bar().textContent).toContain("Nothing changed");
    expect(screen.getByRole("button", { name: "Plan" }).hasAttribute("disabled")).toBe(true);
  });

  test("asks before it throws changes away, and undo brings them back", async () => {
    const { island, desk } = openSection(Nothing, [RATIO]);
    await island.user.click(screen.getByRole("button", { name: "Discard" }));
    const dialog = screen.getByRole("dialog", { name: "Discard the changes of 1 model?" });
    await island.user.click(within(dialog).getByRole("button", { name: "Cancel" }));
    expect(desk.changes.value).toHaveLength(1);
    await island.user.click(screen.getByRole("button", { name: "Discard" }));
    await island.user.click(within(screen.getByRole("dialog")).getByRole("button", { name: "Discard" }));
    expect(desk.changes.value).toHaveLength(0);
    act(() => desk.undo());
    expect(desk.changes.value).toHaveLength(1);
  });

  test("leaving the page asks as long as no draft has the changes", async () => {
    const { desk } = openSection(Nothing, [RATIO]);
    const leaves = () => window.dispatchEvent(new Event("beforeunload", { cancelable: true }));
    expect(leaves()).toBe(false);
    await act(async () => {
      desk.draft.value = { ...draftRow({ changes: [RATIO] }), changes: [RATIO] };
    });
    expect(leaves()).toBe(true);
    await act(async () => desk.write([{ ...GROUP }], "more"));
    expect(leaves()).toBe(false);
  });
});

describe("the difference", () => {
  test("is told in dollars and percent by maker, without what only follows; other options stand apart", async () => {
    open();
    await settled();
    const left = screen.getByRole("region", { name: "What changes: 1 model" }).textContent ?? "";
    expect(left).toContain("OpenAI");
    expect(left).toContain("$2.50 → ");
    expect(left).toContain("$3.00 / 1M");
    expect(left).toContain("+20 %");
    expect(left).not.toContain("Cached input");
    expect(left).toContain("Group ratios");
    expect(left).toContain("0.75");
  });

  test("a model that is new, gone or charged by another unit says so", async () => {
    const line = { kind: "fresh", per: "mtok" } as const;
    const call = { kind: "per_call", per: "call" } as const;
    const diff = [
      {
        model: "fresh-model",
        vendor: "",
        calls: 0,
        entries: [],
        lines: [{ ...line, before: null, after: 3 }],
      },
      {
        model: "gone-model",
        vendor: "",
        calls: 12,
        entries: [],
        lines: [{ ...line, before: 3, after: null }],
      },
      {
        model: "call-model",
        vendor: "",
        calls: 0,
        entries: [],
        lines: [
          { ...line, before: 3, after: null },
          { ...call, before: null, after: 0.04 },
        ],
      },
    ];
    const { island } = open();
    answerPlan(island, planOf({ diff, diff_count: 3, changes: [RATIO] }));
    await settled();
    const itemOf = (name: string) =>
      screen.getAllByRole("listitem").find((each) => each.textContent?.startsWith(name))?.textContent ?? "";
    expect(itemOf("fresh-model")).toStartWith("fresh-modelnew");
    expect(itemOf("gone-model")).toContain("no price any more12 calls in the last 7 days");
    expect(itemOf("call-model")).toContain("per token → per call");
    expect(itemOf("call-model")).toContain("$0.04 per call");
    expect(text()).toContain("Maker unknown");
  });

  test("plans on sale go by their title; applied they are done, also one that has its number only then", async () => {
    const terms = { title: "Pro", price: "9.90", currency: "USD", quota: 5_000_000, enabled: true };
    const sold = [
      { key: "Plans", name: "7", before: terms, after: { ...terms, price: "12.00" } },
      { key: "Plans", name: "New", before: null, after: { ...terms, title: "Small" } },
      { key: "Plans", name: "9", before: { ...terms, title: "Old" }, after: null },
    ];
    const { island, desk } = openSection(PlanSection, sold);
    answerPlan(island, planOf({ diff: [], diff_count: 0, changes: sold }));
    await settled();
    expect(text()).toContain("Plans on salePro" + "Price: 9.90 → 12.00");
    expect(text()).toContain("Smallfrom none →  to Title: Small; Price: 9.90; Currency: USD");
    expect(text()).toContain("Oldfrom Title: Old; Price: 9.90");
    island.answer("POST /api/price/apply", ok({ revision: 8, changes: 3 }));
    await island.user.click(screen.getByRole("button", { name: /^Apply/ }));
    await settled();
    expect(desk.changes.value).toEqual([]);
  });

  test("tiers and tools are told by their conditions", async () => {
    const entry = { kind: "in", tool: "", before: 5, after: 50 } as const;
    const entries = [
      { ...entry, when: { over: 272_000 } },
      { kind: "tool", when: null, tool: "web_search", before: 10, after: 20 } as const,
    ];
    const diff = [{ model: "tiered", vendor: "", calls: 0, lines: [], entries }];
    const { island } = open();
    answerPlan(island, planOf({ diff, diff_count: 1, changes: [RATIO] }));
    await settled();
    const item = screen.getAllByRole("listitem").find((each) => each.textContent?.startsWith("tiered"));
    expect(item?.textContent).toContain("Input over 272,000 tokens: inputfrom $5.00 →  to $50.00 / 1M");
    expect(item?.textContent).toContain("Web searchfrom $10.00 →  to $20.00 per 1K calls");
  });

  test("comes before the effect, which can be given up and asked for again", async () => {
    let answer: (effect: unknown) => void = () => undefined;
    const { island } = open();
    answerPlan(island, planOf(), () => new Promise((resolve) => (answer = resolve)));
    await settled();
    expect(plans(island).map(({ days }) => days)).toEqual([0, 7]);
    expect(screen.getByRole("region", { name: "What changes: 1 model" })).toBeTruthy();
    expect(screen.getByRole("button", { name: "Apply 2 changes" })).toBeTruthy();
    await island.user.click(screen.getByRole("button", { name: "Cancel" }));
    expect(text()).toContain("was not worked out");
    answer(effectOf());
    await settled();
    expect(text()).toContain("was not worked out");
    answerPlan(island);
    await island.user.click(screen.getByRole("button", { name: "Work it out" }));
    await settled();
    expect(text()).toContain("would have cost users $1,204.00 instead of $1,180.00");
  });
});

describe("the effect", () => {
  test("names both sums, who rises most, and the shares by model, group and user; the address keeps the days", async () => {
    const { island } = open();
    await settled();
    expect(text()).toContain("The last 7 days would have cost users $1,204.00 instead of $1,180.00.");
    expect(text()).toContain("(+2 %)");
    expect(text()).toContain("Most: alice +$9.10.");
    await island.user.click(screen.getByRole("button", { name: "User" }));
    expect(
      within(screen.getByRole("table")).getByRole("row", { name: /alice 3 \$2\.00 \$11\.10 \+\$9\.10/ }),
    ).toBeTruthy();
    await island.user.click(screen.getByRole("button", { name: "30 days" }));
    await settled();
    expect(location.search).toContain("days=30");
    expect(location.search).toContain("by=user");
    expect(plans(island).at(-1)?.days).toBe(30);
  });

  test("says what is lost, refused, estimated, sampled, and charged otherwise then", async () => {
    const { island } = open();
    answerPlan(
      island,
      planOf(),
      effectOf({
        lost_calls: 312,
        refused_calls: 45,
        uncertain: 2,
        approximate: { calls: 12, charged: 1_500_000 },
        every_hours: 3,
        charged: 500_000_000,
      }),
    );
    await settled();
    expect(text()).toContain("312 calls were of models that would have no price: they would be refused.");
    expect(text()).toContain("45 calls failed in this time");
    expect(text()).toContain("12 calls could only be estimated (charged $3.00).");
    expect(text()).toContain("2 calls began so near the edge");
    expect(text()).toContain("one hour in 3 was read");
    expect(text()).toContain("At the prices of that time $1,000.00 was charged.");
  });

  test("a failure leaves the difference, and says so where the sums would be", async () => {
    const { island } = open();
    island.answer("POST /api/price/plan", ({ body }: { body: { days: number } }) =>
      body.days === 0 ? ok(planOf()) : refusal("price_what_if_busy"),
    );
    await settled();
    expect(screen.getByRole("alert").textContent).toContain("price_what_if_busy");
    expect(screen.getByRole("button", { name: "Apply 2 changes" }).hasAttribute("disabled")).toBe(false);
  });
});

describe("applying", () => {
  const applied = (island: Island) => island.requests.find(({ path }) => path === "/api/price/apply")?.body;

  test("names both numbers, sends what was seen with the reason, and can be taken back from the toast", async () => {
    const { island, reloads } = open();
    island.answer("POST /api/price/apply", ok({ revision: 8, changes: 2 }));
    island.answer("POST /api/price/revisions/8/undo", ok({ revision: 9, changes: 2, skipped: [] }));
    await settled();
    await island.user.type(screen.getByRole("textbox", { name: "Reason" }), "New list");
    await island.user.click(screen.getByRole("button", { name: "Apply: last 7 days $1,180.00 → $1,204.00" }));
    await settled();
    expect(applied(island)).toEqual({
      plan_hash: "hash-7",
      parent: 7,
      changes: [RATIO, GROUP],
      note: "New list",
    });
    expect(text()).toContain("Applied: 2 entries");
    expect(reloads()).toBe(1);
    await island.user.click(screen.getByRole("button", { name: /^Undo$/ }));
    await settled();
    expect(text()).toContain("Undone: 2 entries");
    expect(reloads()).toBe(2);
  });

  test("is not offered while a warning forbids it; warnings stand first, the forbidding one on top", async () => {
    const { island } = open();
    const warning = (code: string, blocking: boolean) => ({
      code,
      key: "GroupRatio",
      name: "vip",
      blocking,
      params: { users: 3, keys: 1, channels: 0, options: "" },
    });
    answerPlan(
      island,
      planOf({
        warnings: [warning("price_free", false), warning("group_in_use", true)] as ReturnType<
          typeof planOf
        >["warnings"],
      }),
    );
    await settled();
    const items = within(screen.getByRole("region", { name: "2 warnings" })).getAllByRole("listitem");
    expect(items[0]?.textContent).toStartWith("Not possible: ");
    const button = screen.getByRole("button", { name: /^Apply/ });
    expect(button.hasAttribute("disabled")).toBe(true);
    expect(document.getElementById(button.getAttribute("aria-describedby") ?? "")?.textContent).toContain(
      "forbids it",
    );
  });

  test("an administrator keeps a draft in its place", async () => {
    const { island, desk } = open({ canApply: false });
    island.answer("POST /api/price/drafts", ok(draftRow()));
    await settled();
    expect(screen.queryByRole("button", { name: /^Apply/ })).toBeNull();
    await island.user.click(screen.getAllByRole("button", { name: "Save as draft" })[0] as HTMLElement);
    await settled();
    const drawer = screen.getByRole("dialog");
    await island.user.type(within(drawer).getByLabelText("Title"), "Autumn");
    await island.user.click(within(drawer).getByRole("switch", { name: "Announce it to users" }));
    await island.user.click(within(drawer).getByRole("button", { name: "Save" }));
    await settled();
    expect(
      island.requests.find(({ path, method }) => method === "POST" && path === "/api/price/drafts")?.body,
    ).toEqual({
      title: "Autumn",
      note: "",
      announce: true,
      changes: [RATIO, GROUP],
    });
    expect(desk.draft.value?.id).toBe(3);
    expect(desk.isUnsaved.value).toBe(false);
  });

  test("a plan on an older revision is refused: it says who changed what, and plans anew on what is there now", async () => {
    const { island, desk } = open({
      revisions: [revisionRow({ names: ["gpt-4o", "vip"], change_count: 2, user_id: 5, username: "other" })],
    });
    island.answer("POST /api/price/apply", refusal("price_plan_stale"));
    await settled();
    await island.user.click(screen.getByRole("button", { name: /^Apply:/ }));
    await settled();
    expect(text()).toContain("Prices changed since you opened the desk: 1 change");
    expect(text()).toContain("other, 5 min ago: gpt-4o, vip (2 entries)");
    expect(island.requests.find(({ path }) => path === "/api/price/revisions")?.query.after).toBe("7");
    expect(text()).not.toContain("Applied");
    // What the other one did: gpt-4o is at 1.4 now, vip where it was wanted.
    const texts = { ModelRatio: '{"gpt-4o":1.4}', GroupRatio: '{"default":1,"vip":0.75}' };
    act(() => desk.open(deskPrices({ revision: 8, texts })));
    await settled();
    expect(plans(island).at(-1)).toMatchObject({ parent: 8, changes: [{ ...RATIO, before: 1.25 }] });
  });

  test("is told when the prices had changed before the plan was made", async () => {
    const { island } = open();
    island.answer("POST /api/price/plan", refusal("price_plan_stale"));
    await settled();
    expect(text()).toContain("Prices changed since you opened the desk");
    answerPlan(island);
    await island.user.click(screen.getByRole("button", { name: "Plan again on the new prices" }));
    await settled();
    expect(screen.getByRole("button", { name: /^Apply:/ })).toBeTruthy();
  });

  test("without changes it leads back to the sheet", async () => {
    openSection(PlanSection, []);
    act(() => setQuery({ section: "plan" }));
    expect(text()).toContain("Nothing is changed");
    expect(screen.getByRole("button", { name: "To the sheet" })).toBeTruthy();
  });
});
