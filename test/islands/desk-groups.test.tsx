// The sheets of groups on the price desk: groups, what replaces their ratios, who may choose them, the automatic choice.
// Each works by keyboard, says in words what it means, and collects steps that undo takes back.
import { describe, expect, test } from "bun:test";
import { act, fireEvent, screen, within } from "@testing-library/react";
import { useEffect, useState } from "react";
import type { ComponentType } from "react";
import AutoGroups from "../../islands/screens/price-desk/auto.tsx";
import { createDesk } from "../../islands/ui/price-sheet/desk.ts";
import type { Desk } from "../../islands/ui/price-sheet/desk.ts";
import Groups from "../../islands/screens/price-desk/groups.tsx";
import Overrides from "../../islands/screens/price-desk/overrides.tsx";
import type { SectionProps } from "../../islands/ui/price-sheet/section-props.ts";
import SpecialGroups from "../../islands/screens/price-desk/special.tsx";
import type { DeskPrices } from "../../src/shared/price-desk.ts";
import { renderPart, settle } from "./render.tsx";

const TEXTS = {
  GroupRatio: '{"default":1,"vip":1.2,"premium":2,"spare":3}',
  UserUsableGroups: '{"default":"默认分组","vip":"Fast"}',
  TopupGroupRatio: '{"default":1}',
  GroupGroupRatio: "{}",
  GroupSpecialUsableGroup: "{}",
  AutoGroups: "[]",
};

/** "old" is named by accounts only; "auto" by keys, which is none. */
const GROUPS = [
  { name: "auto", users: 0, keys: 4, channels: 0, enabledChannels: 0 },
  { name: "default", users: 12, keys: 1, channels: 3, enabledChannels: 3 },
  { name: "old", users: 1, keys: 0, channels: 0, enabledChannels: 0 },
  { name: "premium", users: 0, keys: 0, channels: 1, enabledChannels: 1 },
  { name: "vip", users: 2, keys: 3, channels: 0, enabledChannels: 0 },
];

function prices(texts: Partial<typeof TEXTS>): DeskPrices {
  return {
    revision: 1,
    texts: { ...TEXTS, ...texts },
    served: [],
    refused: {},
    groups: GROUPS,
    makers: [],
    isAutoDefault: false,
  };
}

function open(Section: ComponentType<SectionProps>, texts: Partial<typeof TEXTS> = {}, canApply = true) {
  const desk = createDesk();
  desk.open(prices(texts));
  let reloads = 0;
  const reload = async () => {
    reloads++;
  };
  // As on the page: the section comes when its prices are there, after everything around it.
  function Late() {
    const [isThere, setThere] = useState(false);
    useEffect(() => setThere(true), []);
    return isThere ? <Section desk={desk} canApply={canApply} reload={reload} /> : null;
  }
  const island = renderPart(<Late />, { url: "/prices?section=groups" });
  return { ...island, desk, reloads: () => reloads };
}

/** What a plan would be sent. */
const changesOf = (desk: Desk) =>
  desk.changes.value.map(({ key, name, before, after }) => [key, name, before, after]);

const grid = () => screen.getByRole("grid");
/** The row of a name, as its cells read. */
const row = (name: string) => {
  const found = within(grid())
    .getAllByRole("row")
    .find((each) => each.querySelector(".mono")?.textContent === name);
  if (!found) throw new Error(`there is no row of ${name}`);
  return found;
};
const texts = (of: Element) =>
  [...of.querySelectorAll(".sheet-text")].map((cell) => cell.textContent?.trim() ?? "");

/** Goes to a cell by keyboard, from the first one. */
async function goTo(user: ReturnType<typeof open>["user"], down: number, right: number): Promise<void> {
  grid().focus();
  await user.keyboard(
    `{Control>}{Home}{/Control}${"{ArrowDown}".repeat(down)}${"{ArrowRight}".repeat(right)}`,
  );
}

async function paste(text: string): Promise<void> {
  fireEvent.paste(grid(), { clipboardData: { getData: () => text } });
  await settle();
}

describe("groups", () => {
  test("each has a row, those that are only named too: they count as 1 and say so", () => {
    open(Groups);
    expect(texts(row("default"))).toEqual(["default", "1", "yes", "Default group", "1", "12", "1", "3"]);
    expect(texts(row("premium"))).toEqual(["premium", "2", "no", "", "1", "0", "0", "1"]);
    expect(texts(row("old"))).toEqual(["oldcounts as 1", "1", "no", "", "1", "1", "0", "0"]);
    // It is no group.
    expect(within(grid()).queryByText("auto")).toBeNull();
  });

  test("cells are typed over by keyboard; each is a step that undo takes back and redo does again", async () => {
    const { desk, user } = open(Groups);
    await goTo(user, 1, 1);
    await user.keyboard("1.5{Enter}");
    expect(changesOf(desk)).toEqual([["GroupRatio", "vip", 1.2, 1.5]]);
    expect(row("vip").textContent).toContain("1.2");
    await goTo(user, 2, 3);
    await user.keyboard("Best{Enter}");
    expect(screen.getByRole("alert").textContent).toBe(
      "Users may not choose premium: say yes there before you describe it",
    );
    await user.keyboard("{Escape}");
    await goTo(user, 2, 2);
    await paste("yes\tBest\t0.9");
    expect(changesOf(desk)).toEqual([
      ["GroupRatio", "vip", 1.2, 1.5],
      ["TopupGroupRatio", "premium", null, 0.9],
      ["UserUsableGroups", "premium", null, "Best"],
    ]);
    await user.keyboard("{Control>}z{/Control}");
    expect(changesOf(desk)).toEqual([["GroupRatio", "vip", 1.2, 1.5]]);
    await user.click(screen.getByRole("button", { name: "Undo: Ratio of vip" }));
    expect(changesOf(desk)).toEqual([]);
    await user.click(screen.getByRole("button", { name: "Redo: Ratio of vip" }));
    expect(changesOf(desk)).toEqual([["GroupRatio", "vip", 1.2, 1.5]]);
  });

  test.each([
    ["-1", "Must not be below 0"],
    ["much", "“much” is not a number"],
    ["2000000", "At most 1,000,000"],
  ])("the ratio %s is refused at its cell: %s", async (typed, said) => {
    const { desk, user } = open(Groups);
    await goTo(user, 1, 1);
    await user.keyboard(`${typed}{Enter}`);
    expect(screen.getByRole("alert").textContent).toBe(said);
    expect(changesOf(desk)).toEqual([]);
  });

  test("closing a group and opening it again is no change: its words are kept", async () => {
    const { desk, user } = open(Groups);
    await goTo(user, 1, 2);
    await paste("no");
    expect(changesOf(desk)).toEqual([["UserUsableGroups", "vip", "Fast", null]]);
    await paste("yes");
    expect(changesOf(desk)).toEqual([]);
  });

  test("a group is added with ratio 1; names that cannot be are told", async () => {
    const { desk, user } = open(Groups);
    const name = screen.getByLabelText("Name of a new group");
    for (const [typed, said] of [
      ["vip", "There is a group vip already"],
      ["a,b", "A name cannot contain a comma: channels list their groups with commas"],
      ["auto", "“auto” is no group: it stands for the automatic choice of one"],
    ] as const) {
      await user.clear(name);
      await user.type(name, `${typed}{Enter}`);
      expect(screen.getByRole("alert").textContent).toBe(said);
    }
    expect(changesOf(desk)).toEqual([]);
    await user.clear(name);
    await user.type(name, "gold{Enter}");
    expect(changesOf(desk)).toEqual([["GroupRatio", "gold", null, 1]]);
    expect(row("gold").textContent).toContain("new");
  });

  test("a group in use is not removed, and says by whom; one that nobody uses goes in one step", async () => {
    const { desk, user } = open(Groups, { AutoGroups: '["vip"]', UserUsableGroups: '{"spare":"Rest"}' });
    await goTo(user, 1, 0);
    await user.keyboard("{Enter}");
    let drawer = within(screen.getByRole("dialog"));
    expect(drawer.getByText(/cannot be renamed/)).toBeTruthy();
    expect(
      drawer.getByText(
        "vip cannot be removed while it is used by 2 users, 3 API keys, and the automatic choice.",
      ),
    ).toBeTruthy();
    await user.click(drawer.getByRole("button", { name: "Remove vip" }));
    expect(changesOf(desk)).toEqual([]);
    await user.click(drawer.getByRole("button", { name: "Close" }));
    await goTo(user, 3, 0);
    await user.keyboard("{Enter}");
    drawer = within(screen.getByRole("dialog"));
    await user.click(drawer.getByRole("button", { name: "Remove spare" }));
    expect(changesOf(desk)).toEqual([
      ["GroupRatio", "spare", 3, null],
      ["UserUsableGroups", "spare", "Rest", null],
    ]);
    expect(screen.getByText("To be removed: spare")).toBeTruthy();
    await user.click(screen.getByRole("button", { name: "Undo: remove group spare" }));
    expect(changesOf(desk)).toEqual([]);
  });
});

describe("overrides", () => {
  const START = { GroupGroupRatio: '{"vip":{"premium":0.8}}' };

  test("a cell replaces a ratio, 0 is free, an empty one is the group's own; each is said in words", async () => {
    const { desk, user } = open(Overrides, START);
    expect(texts(row("vip"))).toEqual([
      "vip",
      "1 the group’s own ratio",
      "1.2 the group’s own ratio",
      "0.8 in place of 2",
      "3 the group’s own ratio",
    ]);
    const said = screen.getByRole("region", { name: "In words" });
    expect(said.textContent).toBe("In wordsUsers of vip calling premium pay 0.8 in place of 2.");
    await goTo(user, 0, 1);
    await user.keyboard("0{Enter}");
    expect(said.textContent).toContain("Users of vip calling default pay nothing in place of 1.");
    await goTo(user, 0, 3);
    await user.keyboard("{Delete}");
    expect(changesOf(desk)).toEqual([["GroupGroupRatio", "vip", { premium: 0.8 }, { default: 0 }]]);
    await user.keyboard("{Control>}z{/Control}{Control>}z{/Control}");
    expect(changesOf(desk)).toEqual([]);
  });

  test("changed cells alone say what stood there; a row without numbers is no entry", async () => {
    const { desk, user } = open(Overrides, START);
    const before = () =>
      [...row("vip").querySelectorAll(".line-through")].map((each) => each.textContent?.trim());
    expect(before()).toEqual([]);
    await goTo(user, 0, 3);
    await user.keyboard("{Delete}");
    expect(before()).toEqual(["before: 0.8"]);
    expect(changesOf(desk)).toEqual([["GroupGroupRatio", "vip", { premium: 0.8 }, null]]);
    // Its row stays, and says what comes of it.
    expect(screen.getByText("Its overrides are to be removed")).toBeTruthy();
  });

  test("what says the same in another order is no change", async () => {
    const { desk, user } = open(Overrides, { GroupGroupRatio: '{"vip":{"premium":0.8,"default":2}}' });
    await goTo(user, 0, 3);
    await user.keyboard("{Delete}");
    expect(changesOf(desk)).toHaveLength(1);
    await user.keyboard("0.8{Enter}");
    expect(changesOf(desk)).toEqual([]);
  });

  test("a row is added and filled by pasting, and taken away whole", async () => {
    const { desk, user } = open(Overrides, START);
    await user.selectOptions(screen.getByLabelText("Group of users"), "old");
    await user.click(screen.getByRole("button", { name: "Add row" }));
    expect(changesOf(desk)).toEqual([]);
    await goTo(user, 1, 1);
    await paste("0.5\t-1\t0.7");
    expect(changesOf(desk)).toEqual([["GroupGroupRatio", "old", null, { default: 0.5, premium: 0.7 }]]);
    expect(screen.getByText(/1 cell was not taken: old, vip: Must not be below 0/)).toBeTruthy();
    await user.click(screen.getByRole("button", { name: "Remove all overrides of vip" }));
    expect(changesOf(desk)).toEqual([
      ["GroupGroupRatio", "old", null, { default: 0.5, premium: 0.7 }],
      ["GroupGroupRatio", "vip", { premium: 0.8 }, null],
    ]);
    await user.click(screen.getByRole("button", { name: "Undo: remove the overrides of vip" }));
    expect(changesOf(desk)).toHaveLength(1);
  });

  test("of hundreds of groups those of an override are columns; another one is added", async () => {
    const names = Array.from({ length: 300 }, (_, at) => `team-${at}`);
    const { user, desk } = open(Overrides, {
      GroupRatio: JSON.stringify(Object.fromEntries(names.map((name) => [name, 1]))),
      GroupGroupRatio: '{"team-1":{"team-7":0.5}}',
    });
    const columns = () => within(grid()).getAllByRole("columnheader").length;
    expect(columns()).toBe(2);
    await user.selectOptions(screen.getByLabelText("Group that they call in"), "team-9");
    await user.click(screen.getByRole("button", { name: "Add column" }));
    expect(columns()).toBe(3);
    await user.selectOptions(screen.getByLabelText("Group of users"), "team-2");
    await user.click(screen.getByRole("button", { name: "Add row" }));
    expect([within(grid()).getAllByRole("rowheader").length, changesOf(desk)]).toEqual([2, []]);
  });

  test("a matrix of 300 by 300 draws what is in sight; keys, finding and pasting reach all of it", async () => {
    const names = Array.from({ length: 300 }, (_, at) => `team-${at}`);
    const ratios = Object.fromEntries(names.map((name) => [name, 0.5]));
    const { user, desk, container } = open(Overrides, {
      GroupRatio: JSON.stringify(Object.fromEntries(names.map((name) => [name, 1]))),
      GroupGroupRatio: JSON.stringify(Object.fromEntries(names.map((name) => [name, ratios]))),
    });
    // Looked for by their attributes: roles are computed of every element there is.
    const table = () => container.querySelector<HTMLElement>("[role=grid]");
    const size = () =>
      [table()?.getAttribute("aria-rowcount"), table()?.getAttribute("aria-colcount")].join();
    const current = () => document.getElementById(table()?.getAttribute("aria-activedescendant") ?? "");
    const place = () => [current()?.dataset["row"], current()?.dataset["column"]].join();
    const drawn = () => container.querySelectorAll("*").length;
    expect([size(), drawn() < 6000]).toEqual(["301,301", true]);
    act(() => table()?.focus());
    // A cell far away is there as soon as it is the current one.
    await user.keyboard("{Control>}{ArrowRight}{ArrowDown}{/Control}");
    expect([place(), current()?.textContent, drawn() < 6000]).toEqual(["299,300", "0.5 in place of 1", true]);
    await user.keyboard("{ArrowLeft}{ArrowUp}");
    const clipboardData = { getData: () => "0.7\t0.8\n0.9\t1" };
    fireEvent.paste(table() as HTMLElement, { clipboardData });
    await settle();
    expect(changesOf(desk).map(([, name]) => name)).toEqual(["team-298", "team-299"]);
    const last = { "team-297": 0.5, "team-298": 0.9, "team-299": 1 };
    expect(desk.valueOf("GroupGroupRatio", "team-299")).toMatchObject(last);
    const find = (value: string) =>
      fireEvent.change(screen.getByLabelText("Find a group"), { target: { value } });
    find("TEAM-29");
    // 29, and 290 to 299.
    expect([size(), container.querySelector("[role=grid]")?.textContent?.includes("team-299")]).toEqual([
      "12,12",
      true,
    ]);
    find("TEAM-29x");
    expect(container.textContent).toContain("No group matches “TEAM-29x”");
  });

  test("names that nothing knows are marked", () => {
    open(Overrides, { GroupGroupRatio: '{"vpi":{"premuim":0.8}}' });
    expect(row("vpi").textContent).toContain("unknown");
    expect(screen.getByRole("columnheader", { name: "premuim no ratio: counts as 1" })).toBeTruthy();
  });
});

describe("special groups", () => {
  const START = { GroupSpecialUsableGroup: '{"vip":{"+:premium":"For you","-:default":""}}' };
  const preview = () => document.querySelector("[data-preview]")?.textContent;

  test("what users of a group may choose in the end is said as a sentence, after every change", async () => {
    const { desk, user } = open(SpecialGroups, START);
    expect(preview()).toBe("Users of vip may choose: vip and premium.");
    await user.click(screen.getByRole("button", { name: "Remove default from the rules of vip" }));
    expect(preview()).toBe("Users of vip may choose: default, vip, and premium.");
    const words = screen.getByLabelText("What users of vip read about premium");
    await user.clear(words);
    await user.type(words, "Best{Enter}");
    expect(changesOf(desk)).toEqual([
      [
        "GroupSpecialUsableGroup",
        "vip",
        { "+:premium": "For you", "-:default": "" },
        { "+:premium": "Best" },
      ],
    ]);
    expect(screen.getByText("Was: For you")).toBeTruthy();
    // Typing was one step.
    await user.tab();
    await user.keyboard("{Control>}z{/Control}");
    expect(desk.valueOf("GroupSpecialUsableGroup", "vip")).toEqual({ "+:premium": "For you" });
    await user.keyboard("{Control>}z{/Control}");
    expect(changesOf(desk)).toEqual([]);
  });

  test("Escape takes back what was typed, and undo in a field is the field's", async () => {
    const { desk, user } = open(SpecialGroups, START);
    await user.click(screen.getByRole("button", { name: "Remove default from the rules of vip" }));
    const words = screen.getByLabelText<HTMLInputElement>("What users of vip read about premium");
    await user.type(words, "x{Backspace}{Enter}");
    expect(desk.undoable.value).toBe("remove default from the rules of vip");
    await user.type(words, "x{Control>}z{/Control}{Escape}");
    expect(words.value).toBe("For you");
    expect(desk.valueOf("GroupSpecialUsableGroup", "vip")).toEqual({ "+:premium": "For you" });
  });

  test("a group of users is added; one group is opened to it and one closed", async () => {
    const { desk, user } = open(SpecialGroups);
    expect(screen.getByText("The same groups are open to everybody")).toBeTruthy();
    await user.selectOptions(screen.getByLabelText("Group of users"), "premium");
    await user.click(screen.getByRole("button", { name: "Add group of users" }));
    expect(preview()).toBe("Users of premium may choose: default, vip, and premium.");
    await user.selectOptions(screen.getByLabelText("Group that users of premium may choose"), "spare");
    await user.click(screen.getByRole("button", { name: "Open group" }));
    await settle();
    expect(document.activeElement?.getAttribute("aria-label")).toBe("What users of premium read about spare");
    await user.selectOptions(screen.getByLabelText("Group that users of premium may not choose"), "vip");
    await user.click(screen.getByRole("button", { name: "Close group" }));
    expect(preview()).toBe("Users of premium may choose: default, spare, and premium.");
    expect(changesOf(desk)).toEqual([
      ["GroupSpecialUsableGroup", "premium", null, { "+:spare": "spare", "-:vip": "" }],
    ]);
  });

  test("hundreds of groups of users are lines that are found and opened", async () => {
    const names = Array.from({ length: 300 }, (_, at) => `team-${at}`);
    const { user, container } = open(SpecialGroups, {
      GroupRatio: JSON.stringify(Object.fromEntries(names.map((name) => [name, 1]))),
      GroupSpecialUsableGroup: JSON.stringify(
        Object.fromEntries(names.map((name) => [name, { "+:team-5": "five" }])),
      ),
    });
    expect(container.querySelectorAll("details").length).toBe(300);
    expect(container.querySelectorAll("*").length).toBeLessThan(2500);
    await user.type(screen.getByRole("searchbox", { name: "Find a group of users" }), "team-29");
    expect([...container.querySelectorAll("summary")].map((each) => each.textContent)).toHaveLength(11);
    await user.click(screen.getByText("Users of team-299"));
    await settle();
    expect(screen.getByRole("region", { name: "Users of team-299" }).textContent).toContain("team-5");
  });

  test("what has no effect or cannot be is told beside it", () => {
    open(SpecialGroups, {
      GroupSpecialUsableGroup: '{"vip":{"-:vip":"","+:old":"x"},"vpi":{"+:premium":"","-:premium":""}}',
    });
    expect(screen.getByText(/Without effect: users of vip/)).toBeTruthy();
    expect(screen.getByText("old has no ratio, so API keys cannot use it.")).toBeTruthy();
    expect(screen.getByText(/No group of this name/)).toBeTruthy();
    expect(screen.getAllByText("premium is opened and closed at once: remove one of both.")).toHaveLength(2);
  });
});

describe("the automatic choice", () => {
  const START = { AutoGroups: '["default","vip","premium"]' };
  const order = () =>
    within(screen.getByRole("list", { name: /order in which/ }))
      .getAllByRole("listitem")
      .map((item) => item.querySelector(".mono")?.textContent?.replace(" new", ""));

  test("groups are added, moved by buttons and by Alt with the arrows, and removed, each as a step", async () => {
    const { desk, user } = open(AutoGroups, START);
    await user.click(screen.getByRole("button", { name: "Move premium up" }));
    await settle();
    expect(order()).toEqual(["default", "premium", "vip"]);
    expect(document.activeElement?.getAttribute("aria-label")).toBe("Move premium up");
    await user.keyboard("{Alt>}{ArrowUp}{/Alt}");
    await settle();
    expect(order()).toEqual(["premium", "default", "vip"]);
    expect(document.activeElement?.getAttribute("aria-label")).toBe("Move premium down");
    expect(screen.getByText("Was: default → vip → premium")).toBeTruthy();
    await user.selectOptions(screen.getByLabelText("Group to try"), "spare");
    await user.click(screen.getByRole("button", { name: "Add group" }));
    await user.click(screen.getByRole("button", { name: "Remove default from the automatic choice" }));
    expect(changesOf(desk)).toEqual([["AutoGroups", "", START.AutoGroups, '["premium","vip","spare"]']]);
    for (const _ of [1, 2, 3, 4]) await user.keyboard("{Control>}z{/Control}");
    expect(changesOf(desk)).toEqual([]);
    expect(order()).toEqual(["default", "vip", "premium"]);
  });

  test("groups that are passed over whoever asks say why", () => {
    open(AutoGroups, { AutoGroups: '["default","old","vip","premium"]', UserUsableGroups: '{"vip":"Fast"}' });
    const problems = within(screen.getByRole("list", { name: /order in which/ }))
      .getAllByRole("listitem")
      .map((item) => item.querySelector("p")?.textContent);
    expect(problems).toEqual([
      undefined,
      "Passed over: it has no ratio.",
      "Passed over: it has no channel.",
      "Passed over: nobody may choose it.",
    ]);
  });

  test("what users of each group get in the end is said, at their ratio", () => {
    open(AutoGroups, {
      ...START,
      GroupGroupRatio: '{"vip":{"premium":0.5}}',
      // vip has no channel.
      GroupSpecialUsableGroup: '{"old":{"-:default":""},"vip":{"+:premium":"Best"}}',
    });
    const said = [...document.querySelectorAll("[data-preview]")].map((each) => each.textContent);
    expect(said).toEqual([
      "Users of default: default ×1",
      "Users of old: no group, so calls are refused",
      "Users of vip: default ×1 → premium ×0.5",
    ]);
  });

  test("the switch saves at once, and its message takes it back: before any step of the desk", async () => {
    const { answer, requests, user, desk, reloads } = open(AutoGroups, START);
    answer("PUT /api/option", { success: true, message: "", data: null });
    await user.click(screen.getByRole("button", { name: "Move vip up" }));
    await user.click(screen.getByRole("switch"));
    await settle();
    await user.keyboard("{Control>}z{/Control}");
    await settle();
    expect(requests.map(({ body }) => body)).toEqual([
      { key: "DefaultUseAutoGroup", value: "true" },
      { key: "DefaultUseAutoGroup", value: "false" },
    ]);
    expect(reloads()).toBe(2);
    expect(changesOf(desk)).toHaveLength(1);
    await user.keyboard("{Control>}z{/Control}");
    expect(changesOf(desk)).toEqual([]);
  });

  test("a refused switch goes back and says why; only root turns it", async () => {
    const { answer, user, unmount } = open(AutoGroups, START);
    answer("PUT /api/option", { success: false, message: "no", code: "forbidden" });
    await user.click(screen.getByRole("switch"));
    await settle();
    expect(screen.getByRole("alert").textContent).not.toBe("");
    expect(screen.getByRole<HTMLInputElement>("switch").checked).toBe(false);
    unmount();
    open(AutoGroups, START, false);
    expect(screen.getByRole<HTMLInputElement>("switch").disabled).toBe(true);
    expect(screen.getByText(/Only the super administrator/)).toBeTruthy();
  });
});
