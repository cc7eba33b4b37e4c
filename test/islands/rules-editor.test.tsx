// The rules editor: what is typed becomes rules as the options hold them, or says at its field why it does not; the focus goes
// along.
import { describe, expect, test } from "bun:test";
import { screen, within } from "@testing-library/react";
import {
  draftOfRules,
  inOrder,
  isInOrder,
  problemsOf,
  rulesOf,
} from "../../islands/ui/price-sheet/rule-draft.ts";
import RulesEditor from "../../islands/ui/price-sheet/rules-editor.tsx";
import { shippedPrices } from "../../src/core/prices/shipped.ts";
import { readPriceRules } from "../../src/shared/price-row.ts";
import type { PriceRow, PriceRules } from "../../src/shared/price-row.ts";
import { renderPart, settle } from "./render.tsx";
import type { Island, IslandOptions } from "./render.tsx";

const BASE: PriceRow = { in: 2.5, out: 15 };
const NOON = Date.UTC(2026, 10, 20, 12);
const RULES: PriceRules = {
  thinking: 20,
  tools: { web_search: 10 },
  when: [
    { over: 272_000, set: { in: 5, out: 22.5 } },
    { hours: ["01:00-04:00", "22:00-24:00"], days: ["mon", "tue"], tz: "Asia/Shanghai", set: { in: 1 } },
    { tier: ["flex", "batch"], from: "2026-01-01", until: "2027-01-01T08:00Z", times: 0.5 },
  ],
};

/** What was heard last. */
let heard: PriceRules | undefined | "nothing" = "nothing";

function open(
  rules: PriceRules = {},
  base = BASE,
  options: IslandOptions & { isTold?: boolean } = {},
): Island {
  heard = "nothing";
  const { isTold = false, ...rest } = options;
  return renderPart(
    <RulesEditor
      model="gpt-5.4"
      rules={rules}
      base={base}
      isTold={isTold}
      nowMs={NOON}
      onChange={(next) => {
        heard = next;
      }}
    />,
    rest,
  );
}

const rule = (number: number) => within(screen.getByRole("listitem", { name: `Rule ${number}` }));
const field = (number: number, name: string) => rule(number).getByLabelText<HTMLInputElement>(name);
/** Label of the field that has the focus, or what stands on the button. */
const focused = (): string => {
  const at = document.activeElement;
  return (at instanceof HTMLInputElement ? at.labels?.[0]?.textContent : at?.textContent) ?? "";
};
const sum = () =>
  within(screen.getByRole("region", { name: "Example call" })).getByRole("status").textContent;

describe("drafts", () => {
  test("every rule of the shipped table comes back as it was", () => {
    for (const [name, row] of shippedPrices().rows) {
      const { tools, when } = row;
      const rules: PriceRules = { ...(tools ? { tools } : {}), ...(when ? { when } : {}) };
      const back = rulesOf(draftOfRules(rules));
      // A zone is always written out.
      const zoned = when?.map((each) => ((each.hours ?? each.days) ? { tz: "UTC", ...each } : each));
      expect([name, back]).toEqual([name, { ...rules, ...(zoned ? { when: zoned } : {}) }]);
    }
    const back = rulesOf(draftOfRules(RULES));
    expect(back).toEqual(RULES);
    expect(readPriceRules(back).problem).toBeUndefined();
  });

  test("whatever has no problem is taken by the options; what they refuse has one", () => {
    const draft = draftOfRules(RULES);
    const [first] = draft.rules;
    if (!first) throw new Error("no rule");
    const tries: [object, string][] = [
      [{ over: "272.5" }, "over"],
      [{ over: "" }, "over"],
      [{ tier: " , " }, "tier"],
      [{ from: "tomorrow" }, "from"],
      [{ from: "2026-02-01", until: "2026-01-01" }, "until"],
      [{ times: "-1" }, "times"],
      [{ prices: { in: "1e9" } }, "set.in"],
      [{ prices: { in: "" } }, "set.in"],
      [{ time: { ranges: [{ from: "25:00", to: "04:00" }], days: [], tz: "UTC" } }, "hours.0"],
      [{ time: { ranges: [{ from: "04:00", to: "04:00" }], days: [], tz: "UTC" } }, "hours.0"],
      [{ time: { ranges: [], days: [], tz: "UTC" } }, "time"],
      [{ time: { ranges: [], days: ["mon"], tz: "+08" } }, "tz"],
      [{ over: undefined }, "rule"],
      [{ prices: {} }, "rule"],
    ];
    for (const [change, at] of tries) {
      const next = { ...draft, rules: [{ ...first, ...change }] };
      expect([change, [...problemsOf(next).keys()]]).toEqual([change, [`${first.id}.${at}`]]);
      expect(rulesOf(next)).toBeUndefined();
    }
  });

  test("low thresholds come before high ones, and factors last; equal ones stay as they are", () => {
    const { rules } = draftOfRules({
      when: [
        { tier: "flex", times: 0.5 },
        { over: 128_000, set: { in: 3 } },
        { over: 32_000, set: { in: 2 } },
        { tier: "batch", times: 0.4 },
      ],
    });
    expect(isInOrder(rules)).toBe(false);
    expect(inOrder(rules).map(({ over, tier }) => over ?? tier)).toEqual([
      "32000",
      "128000",
      "flex",
      "batch",
    ]);
    expect(isInOrder(inOrder(rules))).toBe(true);
  });
});

describe("the editor", () => {
  test("shows the rules as sentences and fields", () => {
    open(RULES);
    expect(rule(1).getByText(/Input over 272,000 tokens: the whole call at input \$5\.00/)).toBeTruthy();
    expect(field(1, "Input over, tokens").value).toBe("272000");
    expect(rule(2).getByRole<HTMLInputElement>("checkbox", { name: "Tue" }).checked).toBe(true);
    expect(field(2, "Time zone").value).toBe("Asia/Shanghai");
    expect(field(3, "Service tier").value).toBe("flex, batch");
    expect(screen.getByRole<HTMLInputElement>("textbox", { name: "Dollars per 1K calls" }).value).toBe("10");
  });

  test("a rule that is added has the focus in its first field, and what is typed is told as rules", async () => {
    const { user } = open();
    expect(screen.getByText("No rules: every call costs the list price.")).toBeTruthy();
    await user.tab();
    expect(focused()).toBe("Long context");
    await user.keyboard("{Enter}");
    await settle();
    expect(focused()).toBe("Input over, tokens");
    expect(heard).toBeUndefined();
    await user.keyboard("272,000");
    await user.type(field(1, "input / 1M"), "5");
    await user.type(field(1, "output / 1M"), "$22.5");
    expect(heard).toEqual({ when: [{ over: 272_000, set: { in: 5, out: 22.5 } }] });
    await user.click(rule(1).getByText("Add a condition"));
    await user.click(rule(1).getByRole("button", { name: "Hours or days" }));
    await settle();
    expect(focused()).toBe("From");
    await user.keyboard("1:00");
    await user.tab();
    await user.keyboard("24:00");
    await user.click(rule(1).getByRole("checkbox", { name: "Sun" }));
    expect(heard).toEqual({
      when: [{ over: 272_000, hours: ["01:00-24:00"], days: ["sun"], tz: "UTC", set: { in: 5, out: 22.5 } }],
    });
    await user.click(rule(1).getByRole("button", { name: "Remove Input over, tokens" }));
    await user.click(rule(1).getByRole("button", { name: "Remove output / 1M" }));
    expect(heard).toEqual({ when: [{ hours: ["01:00-24:00"], days: ["sun"], tz: "UTC", set: { in: 5 } }] });
    await user.click(rule(1).getByRole("button", { name: "Remove rule 1" }));
    expect(heard).toEqual({});
    expect(focused()).toBe("Long context");
  });

  test("what is wrong is said at its field when it is left, or when saving was tried", async () => {
    const { user, unmount } = open();
    await user.click(screen.getByRole("button", { name: "Service tier" }));
    await user.keyboard("flex");
    await user.type(field(1, "Factor"), "half");
    expect(screen.queryAllByRole("alert")).toHaveLength(0);
    await user.tab();
    expect(rule(1).getByRole("alert").textContent).toBe("Enter a factor such as 0.5.");
    expect(field(1, "Factor").getAttribute("aria-invalid")).toBe("true");
    expect([heard, sum()]).toEqual([undefined, "Correct the rules first."]);
    unmount();
    open({ when: [{ over: 1, set: { in: 1 } }], tools: { web_search: 1 } }, BASE, { isTold: true });
    await user.clear(field(1, "input / 1M"));
    await user.clear(screen.getByLabelText("Tool"));
    expect(screen.getAllByRole("alert").map(({ textContent }) => textContent)).toEqual([
      "Enter an amount such as 2.5.",
      "Enter a name that is not there yet.",
    ]);
  });

  test("rules change places, and are told and put in order where one undoes another", async () => {
    const { user } = open({
      when: [
        { over: 10, set: { in: 2 } },
        { over: 20, set: { in: 3 } },
      ],
    });
    expect(screen.queryAllByText(/undoes one above/)).toHaveLength(0);
    await user.click(screen.getByRole("button", { name: "Move rule 2 up" }));
    expect(heard).toEqual({
      when: [
        { over: 20, set: { in: 3 } },
        { over: 10, set: { in: 2 } },
      ],
    });
    expect(screen.getByText("In this order a rule undoes one above it.")).toBeTruthy();
    await user.click(screen.getByRole("button", { name: "Put them in order" }));
    expect(heard).toEqual({
      when: [
        { over: 10, set: { in: 2 } },
        { over: 20, set: { in: 3 } },
      ],
    });
    const up = screen.getByRole("button", { name: "Move rule 1 up" });
    expect(up.getAttribute("aria-disabled")).toBe("true");
  });

  test("a model that is priced by the piece has sizes and one price", async () => {
    const { user } = open({ unit: "image" }, { call: 0.04, unit: "image" });
    await user.click(screen.getByRole("button", { name: "Size" }));
    await user.keyboard("1024x1792, 1792x1024");
    await user.type(field(1, "Price"), "0.08");
    expect(heard).toEqual({
      unit: "image",
      when: [{ size: ["1024x1792", "1792x1024"], set: { call: 0.08 } }],
    });
    expect(rule(1).getByText(/\$0\.08 per image/)).toBeTruthy();
    expect(sum()).toBe("Costs $0.04, at the list price");
    await user.selectOptions(screen.getByRole("combobox", { name: "Size" }), "1792x1024");
    expect(sum()).toBe("Costs $0.08, by Size 1024x1792 or 1792x1024");
  });

  test("the example call is reckoned by the rules as they are typed", async () => {
    const { user } = open({ when: RULES.when?.slice(0, 2) ?? [] });
    // 100,000 × $2.50 and 2,000 × $15.00 a million.
    expect(sum()).toBe("Costs $0.28, at the list price");
    const input = screen.getByRole("textbox", { name: "Input tokens" });
    await user.clear(input);
    await user.type(input, "272,001");
    expect(sum()).toBe("Costs $1.405005, by Input over 272,000 tokens");
    // Monday, half past one in Shanghai.
    const at = screen.getByLabelText("Begins at (UTC)");
    await user.clear(at);
    await user.type(at, "2026-11-22T17:30");
    expect(sum()).toContain("Costs $0.317001, by Input over 272,000 tokens and Mon and Tue 01:00–04:00");
  });

  test("in Chinese", () => {
    open(RULES, BASE, { language: "zh" });
    expect(screen.getByRole("heading", { name: "gpt-5.4 的规则" })).toBeTruthy();
    expect(screen.getByText("费用 $0.28，按标价")).toBeTruthy();
  });
});
